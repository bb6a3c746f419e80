"""The systems of a run: how they are named, and that no two are the same.

A system is a codec, the unchanged audio (`unprocessed`), or generated audio. A codec is a name, a class or an object;
`NAME=CODEC` names the row. A custom codec is otherwise named by its `CodecInfo`, known once it is loaded. Objects, and
classes that no worker can import (of a notebook), run in the caller's process.
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
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.option import names
from codec_bench.data import Source
from codec_bench.engine.stage import StageSpec
from codec_bench.messages.errors import UserError
from codec_bench.types import Sample

UNPROCESSED = "unprocessed"
GENERATED = "generated"
LONGEST_NAME = 100
_RESERVED_FOLDERS = ("reference", "questions")  # the folders of the audio that all systems of a run share
_FOLDER_BYTES = 200


class AnyCodec(Protocol):
    """An object that codes audio; it need not derive from `Codec`."""

    @property
    def info(self) -> CodecInfo:
        """Declared facts."""
        ...

    def encode(self, batch: Any, /) -> Any:
        """Encode a batch of audio; see `Codec.encode`."""
        ...

    def decode(self, codes: Any, /) -> Any:
        """Decode a batch of codes to audio; see `Codec.decode`."""
        ...


_One = str | os.PathLike[str] | type | AnyCodec
Codecs = _One | Sequence[_One] | Mapping[str, _One]
"""Codecs as a Python caller may name them."""


@dataclass(frozen=True, slots=True)
class System:
    """A row of the result.

    Args:
        name: of the row; `spec` until a custom codec is loaded, unless the caller named it (`titled`).
        kind: `codec`, `unprocessed`, or `files` for generated audio.
        spec: the name as typed, or the name of the class.
        codec: name by which a worker loads it; None if it is no codec or no worker can load it.
        live: the class or object; None for names.
        source: samples with this system's audio; None if the samples of the run name it.
        is_prompted: whether the reference is a recording of the voice with other words.
        stage: how the codec is built; added by the plan.
        folder: of its audio, below `audio/` in the run folder; empty until the name is final.
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
        """Whether the row has the name that the codec declares."""
        is_custom = self.live is not None or (
            self.codec is not None and (is_custom_code(self.codec) or is_command_file(self.codec))
        )
        return self.kind == "codec" and is_custom and not self.titled

    @property
    def runs_here(self) -> bool:
        """Whether the codec runs in this process; known once it is loaded."""
        return self.live is not None and self.codec is None

    @property
    def cls(self) -> type:
        """Class of a codec that is a class or an object."""
        return self.live if isinstance(self.live, type) else type(self.live)

    def sample(self, number: int, sample: Sample) -> Sample:
        """The sample with this system's audio, by the number and sample of the run."""
        return sample if self.source is None else self.source.samples[number]

    def takes(self, option_of: str) -> bool:
        """Whether options for `option_of` apply: this system's row, spec or file."""
        if option_of in (self.name, self.spec):
            return True
        return self.codec is not None and _is_path(option_of) and resolve_codec(option_of) == resolve_codec(self.codec)


def build_generated(name: str = GENERATED, spec: str = GENERATED) -> System:
    """A system of generated audio; `spec` is its folder or manifest for messages."""
    return System(name, "files", spec, titled=name != GENERATED)


def split_name(text: str) -> tuple[str | None, str]:
    """Split `NAME=SYSTEM` into (NAME, SYSTEM); other texts and paths are (None, text)."""
    text = text.strip()
    name, equals, value = (word.strip() for word in text.partition("="))
    if not equals or "/" in name or os.sep in name or os.path.exists(_file_of(text)):
        return None, text
    if not name or not value:
        raise UserError(
            "name_or_system_missing", text=text, hint="for example tts=outputs/tts or mine=./my_codec.py:MyCodec"
        )
    return name, value


def check_name(name: Any, of: str) -> str:
    """Return a valid name of a row, or raise UserError."""
    hint = f"name the row: NAME={of}"
    if not isinstance(name, str) or not name.strip():
        raise UserError("name_empty", system=of, name=name, hint=hint)
    if len(name) > LONGEST_NAME:
        raise UserError("name_too_long", system=of, length=len(name), begin=name[:30], most=LONGEST_NAME, hint=hint)
    if name == UNPROCESSED:
        raise UserError("name_of_unprocessed", system=of, name=name, hint=hint)
    if "," in name or name != name.strip() or not name.isprintable():
        raise UserError("name_characters", system=of, name=name, hint=hint)
    return name


def read_systems(specs: Any) -> tuple[System, ...]:
    """The systems of a run, in the order of their names.

    Args:
        specs: names with commas; a name, class or object; a mapping of names to these; or a list of these.

    Raises:
        UserError: nothing is named, an entry cannot be a codec, or two entries are one codec or have one name.
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
        raise UserError("no_codec_named", hint="name at least one, or 'unprocessed'; see codec-bench list codecs")
    return systems


def read_generated(generated_audio: Any) -> list[tuple[System, Any]]:
    """The systems of generated audio, each with its folder, manifest or samples.

    Args:
        generated_audio: a folder, a manifest, `NAME=FOLDER` with commas, a list of these, a mapping of names to
            folders, manifests or samples, or one list of samples.

    Raises:
        UserError: it is none of these, or two entries have one name or one folder.
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
                "generated_type",
                audio=audio,
                type=type(audio).__name__,
                hint='several systems are {"name": folder, "other": folder}',
            )
        label = os.fspath(audio) if isinstance(audio, (str, os.PathLike)) else f"samples of {name or GENERATED}"
        pairs.append((build_generated(GENERATED if name is None else check_name(name, label), label), audio))
    if not pairs:
        raise UserError("no_audio_named", hint="name a folder or a manifest")
    systems = [system for system, _ in pairs]
    check_different(systems)
    name_systems(systems)
    return pairs


def _holds_samples(audio: Any) -> bool:
    return (
        isinstance(audio, Sequence)
        and not isinstance(audio, (str, bytes))
        and all(isinstance(s, Sample) for s in audio)
    )


def _system(name: Any, value: Any) -> System:
    """Make a system of a codec's name, class or object."""
    if isinstance(value, (str, os.PathLike)):
        return _named_system(name, os.fspath(value).strip())
    label = value.__name__ if isinstance(value, type) else type(value).__name__
    if not _is_codec(value):
        raise UserError("codec_type", codec=value, type=label, hint="see codec-bench list codecs")
    codec = _importable(value) if isinstance(value, type) else None
    if name is None:
        return System(label, "codec", label, codec=codec, live=value)
    return System(check_name(name, label), "codec", label, titled=True, codec=codec, live=value)


def _named_system(name: Any, spec: str) -> System:
    """Make a system of `unprocessed` or a codec's name, with an optional row name."""
    if spec == UNPROCESSED:
        if name not in (None, UNPROCESSED):
            raise UserError("unprocessed_renamed", system=UNPROCESSED, name=name, hint=f"write {UNPROCESSED}")
        return System(UNPROCESSED, "unprocessed", UNPROCESSED)
    if name is None or name == spec:
        return System(spec, "codec", spec, titled=name is not None, codec=spec)
    check_name(name, spec)
    if _is_registered(name) and resolve_codec(name) != resolve_codec(spec):
        raise UserError("name_of_registered_codec", name=name, system=spec, hint="choose another")
    return System(name, "codec", spec, titled=True, codec=spec)


def _is_registered(name: str) -> bool:
    try:
        return not is_custom_code(name) and has_codec(name)
    except UserError:  # it is no name of a codec at all
        return False


def _is_codec(value: Any) -> bool:
    return not isinstance(value, (str, bytes)) and any(
        callable(getattr(value, method, None)) for method in ("encode", "decode")
    )


def _importable(cls: type) -> str | None:
    """Name by which a worker can load a class; None for one of a notebook or function."""
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__ == "__main__" or getattr(module, cls.__qualname__, None) is not cls:
        return None
    if getattr(module, "__package__", None):
        return f"{cls.__module__}:{cls.__qualname__}"
    file = getattr(module, "__file__", None)
    return f"{file}:{cls.__qualname__}" if file and file.endswith(".py") and os.path.isfile(file) else None


# ---- one thing under two names, one name for two things ----


def _is_path(text: str) -> bool:
    return is_command_file(text) or (is_custom_code(text) and text.rpartition(":")[0].endswith(".py"))


def _file_of(text: str) -> str:
    """Return the file of `FILE.py:CLASS` or of a command file's name."""
    if is_custom_code(text):
        text = text.rpartition(":")[0]
    elif is_command_file(text):
        text = text.partition("@")[0]
    return os.path.expanduser(text)


def resolve_codec(codec: str) -> Hashable:
    """Return a key that two names share if they mean one codec with equal options."""
    if _is_path(codec):
        file = _file_of(codec)
        return str(Path(file).resolve()), os.path.expanduser(codec)[len(file) :]
    if is_custom_code(codec) or (entry := catalogue.find(codec)) is None:
        return codec
    return entry.family.adapter, json.dumps(entry.options, sort_keys=True)


def check_different(systems: Sequence[System]) -> None:
    """Raise UserError if two systems are the same codec with equal options, or folder."""
    seen: dict[Hashable, System] = {}
    for system in systems:
        thing: Hashable = system.kind
        if system.stage is not None:
            codec = resolve_codec(system.codec) if system.codec is not None else id(system.live)
            thing = codec, json.dumps(system.stage.options, sort_keys=True, default=repr)
        elif system.kind == "files":
            thing = os.path.realpath(system.spec)
        first = seen.setdefault(thing, system)
        if first is not system:
            both = f"'{first.spec}'" if first.spec == system.spec else f"'{first.spec}' and '{system.spec}'"
            rows = "" if first.name == system.name else f" (as '{first.name}' and '{system.name}')"
            kind = "audio" if system.kind == "files" else "codec"
            raise UserError("named_twice", kind=kind, systems=f"{both}{rows}", hint="name each once")


def name_systems(systems: Sequence[System], facts: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[System, ...]:
    """Give the systems the final names of their rows and separate audio folders.

    Args:
        facts: of the loaded codecs, by the key of their stage.

    Raises:
        UserError: two rows have one name, or a codec's own name is invalid.
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
                "name_of_two_rows",
                name=system.name,
                one=other.spec,
                other=system.spec,
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
    """An unused folder name for a row, valid on any file system; added to `used`."""
    safe = "".join(c if c.isalnum() or c in "-_.@" else "_" for c in name)
    safe = safe.encode()[:_FOLDER_BYTES].decode(errors="ignore")
    safe = safe if safe.strip(".") else f"_{safe}"
    free, number = safe, 2
    while free.casefold() in used:
        free, number = f"{safe}_{number}", number + 1
    used.add(free.casefold())
    return free
