"""Which systems a run has: how they are asked for, what their rows are called, and that no two of them are the same.

Conventions
    A system is a codec, the unchanged audio (`unprocessed`), or audio made elsewhere.
    Codecs are asked for by name, as a class, or as an object. `NAME=CODEC` names the row. Otherwise a registered codec
    has the name that was typed, and a codec of one's own the name that it gives itself in its `CodecInfo`, which is
    known only when it has been loaded (`named`). A class of a file or a module is loaded by the workers, like its name.
    An object, and a class that no worker process can import, such as one of a notebook, run in the caller's process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from codec_bench.codecs import catalogue, has_codec, is_command_file
from codec_bench.codecs.base import CodecInfo
from codec_bench.config.option import names
from codec_bench.data import Source
from codec_bench.engine.stage import StageSpec
from codec_bench.errors import UserError
from codec_bench.registry import is_own_code
from codec_bench.types import Sample

UNPROCESSED = "unprocessed"
GENERATED = "generated"
LONGEST_NAME = 100
_RESERVED_FOLDERS = ("reference", "questions")  # the folders of the audio that all systems of a run share
_FOLDER_BYTES = 200


class AnyCodec(Protocol):
    """An object that codes audio. It need not derive from `Codec`."""

    @property
    def info(self) -> CodecInfo:
        """What it declares."""
        ...

    def encode(self, batch: Any, /) -> Any:
        """As `Codec.encode`."""
        ...

    def decode(self, codes: Any, /) -> Any:
        """As `Codec.decode`."""
        ...


_One = str | os.PathLike[str] | type | AnyCodec
Codecs = _One | Sequence[_One] | Mapping[str, _One]
"""How a caller of Python may ask for codecs."""


@dataclass(frozen=True, slots=True)
class System:
    """A row of the result.

    Args:
        name: of the row. Until a codec of one's own is loaded it is `spec`, unless the caller named the row.
        kind: `codec`, `unprocessed`, or `files` for audio made elsewhere.
        spec: the name that was typed, or the name of a class.
        titled: whether the caller named the row.
        codec: the name that a worker loads it by; None if it is no codec, or if no worker can load it.
        live: the class or the object that was given; None for names.
        source: the samples with this system's audio; None if the samples of the run name it themselves.
        is_prompted: whether the reference audio is a recording of the voice with other words.
        stage: how the codec is built; a plan adds it.
        folder: where its audio is kept, below `audio/` in the run folder; empty until the name is final.
    """

    name: str
    kind: Literal["codec", "unprocessed", "files"]
    spec: str
    titled: bool = False
    codec: str | None = None
    live: Any = None
    source: Source | None = field(default=None, repr=False)
    is_prompted: bool = False
    stage: StageSpec | None = None
    folder: str = ""

    @property
    def names_itself(self) -> bool:
        """Whether the row has the name that the codec gives itself."""
        is_custom = self.live is not None or (
            self.codec is not None and (is_own_code(self.codec) or is_command_file(self.codec))
        )
        return self.kind == "codec" and is_custom and not self.titled

    @property
    def runs_here(self) -> bool:
        """Whether it is a codec that runs in this process; known when it is loaded."""
        return self.live is not None and self.codec is None

    @property
    def cls(self) -> type:
        """The class of a codec that was given as a class or an object."""
        return self.live if isinstance(self.live, type) else type(self.live)

    def sample(self, number: int, sample: Sample) -> Sample:
        """The sample that names this system's audio, given its number and itself as the run has it."""
        return sample if self.source is None else self.source.samples[number]

    def takes(self, option_of: str) -> bool:
        """Whether options for this name are for this system: its row's, what was typed, or another path of the same
        file.
        """
        if option_of in (self.name, self.spec):
            return True
        return self.codec is not None and _is_path(option_of) and same_codec(option_of) == same_codec(self.codec)


def generated(name: str = GENERATED, spec: str = GENERATED, source: Source | None = None) -> System:
    """Audio made elsewhere.

    Args:
        name: of its row. spec: the folder or manifest, for messages.
        source: the samples with their audio; None if the samples of the run name it.
    """
    return System(name, "files", spec, titled=name != GENERATED, source=source)


def split_name(text: str) -> tuple[str | None, str]:
    """`NAME=WHAT` as (NAME, WHAT), and anything else as (None, text).

    What stands before `=` is a name if it has no slash, and if there is no file or folder that is called like the
    whole.

    Raises:
        UserError: the name or what it stands for is missing.
    """
    text = text.strip()
    name, equals, value = (word.strip() for word in text.partition("="))
    if not equals or "/" in name or os.sep in name or os.path.exists(_file_of(text)):
        return None, text
    if not name or not value:
        raise UserError(
            f"'{text}' has no {'name before' if not name else 'thing after'} the '='; expected NAME=WHAT",
            hint="for example tts=outputs/tts or mine=./my_codec.py:MyCodec",
        )
    return name, value


def check_name(name: Any, of: str) -> str:
    """The name of a row, which options and commands can be given.

    Raises:
        UserError: it is no text, is empty or too long, holds a comma or a character that cannot be printed, or is
            `unprocessed`.
    """
    hint = f"name the row: NAME={of}"
    if not isinstance(name, str) or not name.strip():
        raise UserError(f"the name of '{of}' is {name!r}; expected a text that is not empty", hint=hint)
    if len(name) > LONGEST_NAME:
        raise UserError(
            f"the name of '{of}' has {len(name)} characters ('{name[:30]}...'); expected at most {LONGEST_NAME}",
            hint=hint,
        )
    if name == UNPROCESSED:
        raise UserError(f"'{of}' is called '{name}', which is the name of the unchanged audio", hint=hint)
    if "," in name or name != name.strip() or not name.isprintable():
        raise UserError(
            f"the name of '{of}' is {name!r}; expected one without commas, control characters and spaces around it",
            hint=hint,
        )
    return name


def read_systems(specs: Any) -> tuple[System, ...]:
    """The systems of a run, in the order in which they were named.

    Args:
        specs: names with commas; a name, a class or an object; a mapping of names to these; or a list of any of these.

    Raises:
        UserError: nothing is named, something cannot be a codec, or two entries are one thing or have one name.
    """
    if isinstance(specs, (str, os.PathLike)):
        specs = names(os.fspath(specs))
    if isinstance(specs, Mapping):
        entries = list(specs.items())
    elif isinstance(specs, Iterable) and not isinstance(specs, type) and not _is_codec(specs):
        entries = [split_name(os.fspath(one)) if isinstance(one, (str, os.PathLike)) else (None, one) for one in specs]
    else:
        entries = [(None, specs)]
    systems = tuple(one if isinstance(one, System) else _system(name, one) for name, one in entries if one != "")
    if not systems:
        raise UserError("no codec was named", hint="name at least one, or 'unprocessed'; see codec-bench list codecs")
    return systems


def read_generated(generated_audio: Any) -> list[tuple[System, Any]]:
    """The systems whose audio was made elsewhere, each with its folder, manifest or samples.

    Args:
        generated_audio: a folder or a manifest, `NAME=FOLDER` with commas, a list of these, a mapping of names to
            folders, manifests or lists of samples, or one list of samples.

    Raises:
        UserError: it is none of these, or two entries have one name or are one folder.
    """
    if isinstance(generated_audio, (str, os.PathLike)):
        text = os.fspath(generated_audio)
        generated_audio = [text] if os.path.exists(os.path.expanduser(text)) else names(text)
    if isinstance(generated_audio, Mapping):
        entries = list(generated_audio.items())
    elif (
        isinstance(generated_audio, Sequence)
        and generated_audio
        and all(isinstance(one, (str, os.PathLike)) for one in generated_audio)
    ):
        entries = [split_name(os.fspath(one)) for one in generated_audio]
    else:
        entries = [(None, generated_audio)]
    pairs: list[tuple[System, Any]] = []
    for name, audio in entries:
        if name is None and len(entries) > 1 and isinstance(audio, (str, os.PathLike)):
            name = Path(audio).name.replace(",", " ").strip() or None
        if not isinstance(audio, (str, os.PathLike, Source)) and not _holds_samples(audio):
            raise UserError(
                f"the generated audio is {audio!r:.60} ({type(audio).__name__}); expected a folder, a manifest or samples",
                hint='several systems are {"name": folder, "other": folder}',
            )
        label = os.fspath(audio) if isinstance(audio, (str, os.PathLike)) else f"samples of {name or GENERATED}"
        pairs.append((generated(GENERATED if name is None else check_name(name, label), label), audio))
    if not pairs:
        raise UserError("no generated audio was named", hint="name a folder or a manifest")
    systems = [system for system, _ in pairs]
    check_different(systems)
    named(systems)
    return pairs


def _holds_samples(audio: Any) -> bool:
    return (
        isinstance(audio, Sequence)
        and not isinstance(audio, (str, bytes))
        and all(isinstance(s, Sample) for s in audio)
    )


def _system(name: Any, value: Any) -> System:
    if isinstance(value, (str, os.PathLike)):
        return _of_text(name, os.fspath(value).strip())
    label = value.__name__ if isinstance(value, type) else type(value).__name__
    if not _is_codec(value):
        raise UserError(
            f"the codec is {value!r:.60} ({label}); expected a name, a class, an object with encode and decode, or a list of these",
            hint="see codec-bench list codecs",
        )
    codec = _importable(value) if isinstance(value, type) else None
    if name is None:
        return System(label, "codec", label, codec=codec, live=value)
    return System(check_name(name, label), "codec", label, titled=True, codec=codec, live=value)


def _of_text(name: Any, spec: str) -> System:
    if spec == UNPROCESSED:
        if name not in (None, UNPROCESSED):
            raise UserError(
                f"'{UNPROCESSED}' was given the name '{name}'; the row of the unchanged audio keeps its own name",
                hint=f"write {UNPROCESSED}",
            )
        return System(UNPROCESSED, "unprocessed", UNPROCESSED)
    if name is None or name == spec:
        return System(spec, "codec", spec, titled=name is not None, codec=spec)
    check_name(name, spec)
    if _is_registered(name) and same_codec(name) != same_codec(spec):
        raise UserError(
            f"'{name}' is the name of a registered codec, and was given to '{spec}'", hint="choose another name"
        )
    return System(name, "codec", spec, titled=True, codec=spec)


def _is_registered(name: str) -> bool:
    try:
        return not is_own_code(name) and has_codec(name)
    except UserError:  # it is no name of a codec at all
        return False


def _is_codec(value: Any) -> bool:
    return not isinstance(value, (str, bytes)) and any(
        callable(getattr(value, method, None)) for method in ("encode", "decode")
    )


def _importable(cls: type) -> str | None:
    """The name by which a worker process may load a class; None for a class of a notebook, a script or a function."""
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__ == "__main__" or getattr(module, cls.__qualname__, None) is not cls:
        return None
    if getattr(module, "__package__", None):
        return f"{cls.__module__}:{cls.__qualname__}"
    file = getattr(module, "__file__", None)
    return f"{file}:{cls.__qualname__}" if file and file.endswith(".py") and os.path.isfile(file) else None


# ---- one thing under two names, one name for two things ----


def _is_path(text: str) -> bool:
    return is_command_file(text) or (is_own_code(text) and text.rpartition(":")[0].endswith(".py"))


def _file_of(text: str) -> str:
    """The part of a text that could be a path: without the class of own code, and without the point of a file of
    programs.
    """
    if is_own_code(text):
        text = text.rpartition(":")[0]
    elif is_command_file(text):
        text = text.partition("@")[0]
    return os.path.expanduser(text)


def same_codec(codec: str) -> Hashable:
    """Equal for two names of one codec: a file by several paths, or a variant and the point that it is.

    Raises:
        UserError: a family of codecs has no such operating point.
    """
    if _is_path(codec):
        file = _file_of(codec)
        return str(Path(file).resolve()), os.path.expanduser(codec)[len(file) :]
    if is_own_code(codec) or (entry := catalogue.find(codec)) is None:
        return codec
    return entry.family.adapter, json.dumps(entry.options, sort_keys=True)


def check_different(systems: Sequence[System]) -> None:
    """Checks that no two systems are one thing: the same codec with the same options, or the same folder.

    Raises:
        UserError: two systems are the same; both are named.
    """
    seen: dict[Hashable, System] = {}
    for system in systems:
        thing: Hashable = system.kind
        if system.stage is not None:
            codec = same_codec(system.codec) if system.codec is not None else id(system.live)
            thing = codec, json.dumps(system.stage.options, sort_keys=True, default=repr)
        elif system.kind == "files":
            thing = os.path.realpath(system.spec)
        first = seen.setdefault(thing, system)
        if first is not system:
            both = f"'{first.spec}'" if first.spec == system.spec else f"'{first.spec}' and '{system.spec}'"
            rows = "" if first.name == system.name else f" (as '{first.name}' and '{system.name}')"
            kind = "audio" if system.kind == "files" else "codec"
            raise UserError(f"the same {kind} is named twice: {both}{rows}", hint="name each once")


def named(systems: Sequence[System], facts: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[System, ...]:
    """The systems with the final names of their rows, and a folder of its own for each one's audio.

    Args:
        facts: of the codecs that are loaded, by the key of their stage.

    Raises:
        UserError: two rows have one name, or a codec gives itself a name that cannot be one.
    """
    out: list[System] = []
    folders = {folder.casefold() for folder in _RESERVED_FOLDERS}
    for system in systems:
        if facts is not None and system.stage is not None and system.names_itself:
            name = check_name(facts[system.stage.key]["name"], system.spec)
            system = replace(system, name=name)
        waits = facts is None and system.names_itself  # its name is known when it is loaded
        other = next((one for one in out if one.name == system.name and not waits and one.folder), None)
        if other is not None:
            raise UserError(
                f"'{system.name}' would be the name of two rows: '{other.spec}' and '{system.spec}'",
                hint="name one of them yourself: NAME=" + system.spec,
            )
        if waits:
            out.append(system)
        elif system.kind == "unprocessed":
            out.append(replace(system, folder=_RESERVED_FOLDERS[0]))
        else:
            out.append(replace(system, folder=_free_folder(system.name, folders)))
    return tuple(out)


def _free_folder(name: str, used: set[str]) -> str:
    """A folder's name for a row, and no row's before it on any file system; it is added to `used`."""
    safe = "".join(c if c.isalnum() or c in "-_.@" else "_" for c in name)
    safe = safe.encode()[:_FOLDER_BYTES].decode(errors="ignore")
    safe = safe if safe.strip(".") else f"_{safe}"
    free, number = safe, 2
    while free.casefold() in used:
        free, number = f"{safe}_{number}", number + 1
    used.add(free.casefold())
    return free
