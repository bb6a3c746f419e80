"""Whisper's checkpoints: their names, points, layouts and tokenisers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from codec_bench.features.recognisers.speech_windows import WINDOWS, Windows, window_id
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, WeightsError

Backend = Literal["ct2", "torch"]
"""The library that computes the network."""
COMPUTE_TYPES: dict[Backend, tuple[str, ...]] = {
    "ct2": ("float32", "float16", "bfloat16", "int8", "int8_float16", "int8_float32"),
    "torch": ("float32", "float16", "bfloat16"),
}

LANGUAGES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi "
    "ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd "
    "gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su"
).split()
"""The 99 languages of the first models; large-v3 and turbo also know Cantonese, `yue`."""
ALIASES = {"fil": "tl", "jv": "jw", "nb": "no", "iw": "he"}
"""Other codes of languages, and Whisper's tokens for them."""


@dataclass(frozen=True, slots=True)
class CheckpointSize:
    """The size of a checkpoint.

    Args:
        n_mels: mel bands. multilingual: whether it has tokens of languages. width: of the hidden states.
    """

    n_mels: int
    multilingual: bool
    languages: tuple[str, ...]
    width: int
    decoder_layers: int


_ALL = (*LANGUAGES, *ALIASES)
ENGLISH = ("en",)
_SIZES = {"medium": (1024, 24), "small": (768, 12), "base": (512, 6), "tiny": (384, 4)}
_FACTS = {
    "whisper-large-v3": CheckpointSize(128, True, (*_ALL, "yue"), 1280, 32),
    "whisper-large-v3-turbo": CheckpointSize(128, True, (*_ALL, "yue"), 1280, 4),
    "whisper-distil-large-v3": CheckpointSize(128, True, ENGLISH, 1280, 2),
    "whisper-distil-large-v3.5": CheckpointSize(128, True, ENGLISH, 1280, 2),
    "whisper-large-v2": CheckpointSize(80, True, _ALL, 1280, 32),
    **{f"whisper-{size}": CheckpointSize(80, True, _ALL, *shape) for size, shape in _SIZES.items()},
    **{f"whisper-{size}.en": CheckpointSize(80, False, ENGLISH, *shape) for size, shape in _SIZES.items()},
}
MODELS = tuple(_FACTS)
"""The registered names."""


def facts_of(model: str) -> CheckpointSize:
    """Return the size of a published checkpoint by the model's name.

    Raises:
        UserError: no such model.
    """
    if model not in _FACTS:
        raise UserError("unknown_name", kind="recogniser", name=model, hint=f"there is {', '.join(MODELS)}")
    return _FACTS[model]


ENCODED_FRAMES = 1_500
_TOKENS = 448
_HEAD = 64
_HALVES = ("float16", "bfloat16", "int8_float16")


def window_bytes(facts: CheckpointSize, compute_type: str) -> int:
    """Estimate the memory in bytes that one more window of a batch takes.

    The decoder holds the keys and values of every layer, for the encoder's frames and the tokens. The encoder holds the
    attention of every head over all frames, and each layer's frames. The larger counts.
    """
    caches = 2 * facts.decoder_layers * (ENCODED_FRAMES + _TOKENS) * facts.width
    attention = facts.width // _HEAD * ENCODED_FRAMES**2
    return (2 if compute_type in _HALVES else 4) * max(caches, attention + 8 * ENCODED_FRAMES * facts.width)


class WhisperPoint(NamedTuple):
    """Options after a name's `@`: library, windows, number type."""

    backend: Backend | None
    windows: Windows
    compute_type: str


def parse_point(model: str, point: str | None) -> WhisperPoint:
    """Parse the options of a name such as `whisper-large-v3@28s+float16`.

    Raises:
        UserError: an unknown option, two of one kind, or a type that torch does not compute Whisper in.
    """
    types = COMPUTE_TYPES["ct2"]
    kinds: dict[str, Sequence[str]] = {"backend": tuple(COMPUTE_TYPES), "windows": WINDOWS, "compute_type": types}
    chosen: dict[str, str | None] = {"backend": None, "windows": "30s", "compute_type": "float32"}
    kinds_seen: set[str] = set()
    for option in point.split("+") if point is not None else ():
        kind = next((name for name, options in kinds.items() if option in options and name not in kinds_seen), None)
        if kind is None:
            known = f"{' or '.join(COMPUTE_TYPES)}; windows {', '.join(WINDOWS)}; compute types {', '.join(types)}"
            raise UserError(
                "no_point_of_metric", name=model, point=option, hint=f"at most one of each, joined by +: {known}"
            )
        kinds_seen.add(kind)
        chosen[kind] = option
    parsed = WhisperPoint(**chosen)  # type: ignore[arg-type]
    if parsed.backend is not None and parsed.compute_type not in COMPUTE_TYPES[parsed.backend]:
        raise UserError(
            "compute_type_unsupported",
            name=model,
            compute_type=parsed.compute_type,
            device=parsed.backend,
            hint=f"it computes in {', '.join(COMPUTE_TYPES[parsed.backend])}",
        )
    return parsed


def protocol_id(model: str, point: str | None = None) -> str:
    """Return the id that names a recogniser's method in records.

    It names neither weights nor library.

    Args:
        point: the text after the `@` of its name, or None.

    Raises:
        UserError: no such model or point.
    """
    facts_of(model)
    _, windows, compute_type = parse_point(model, point)
    return f"{model}/greedy/{window_id(windows)}" + ("" if compute_type == "float32" else f"/{compute_type}")


def exact_point(model: str, point: str | None, weights: str | None, *, gpu: bool) -> str:
    """Return the options of a name with the library that the device would choose.

    It is torch on a GPU and CTranslate2 on a CPU, unless only the other one reads the folder's layout and has the type,
    or the published checkpoint is here in the other's layout alone.

    Args:
        point: the text after the `@`, or None.
        weights: as for `folder_of`.
        gpu: whether the recogniser runs on a GPU.

    Raises:
        UserError: no such model or point.
    """
    backend, _, compute_type = parse_point(model, point)
    if backend is not None:
        return str(point)
    preferred: list[Backend] = ["torch", "ct2"] if gpu else ["ct2", "torch"]
    able = [one for one in preferred if compute_type in COMPUTE_TYPES[one] and _layout(weights) in (None, one)]
    chosen = next((one for one in able if _is_here(model, one, weights)), (able or preferred[-1:])[0])
    return f"{chosen}+{point}" if point is not None else chosen


def _layout(weights: str | None) -> Backend | None:
    """Return the library whose files a folder of custom weights holds.

    None for no weights, an unknown layout, or files of both libraries.
    """
    if weights is None:
        return None
    path = Path(weights).expanduser()
    folder = path.parent if path.is_file() else path
    converted = (folder / "model.bin").is_file()
    if any(any(folder.glob(pattern)) for pattern in ("model*.safetensors", "pytorch_model*.bin")):
        return None if converted else "torch"
    return "ct2" if converted else None


def _is_here(model: str, backend: Backend, weights: str | None) -> bool:
    try:
        folder_of(model, backend, weights)
    except WeightsError:
        return False
    return True


def languages_of(model: str) -> tuple[str, ...]:
    """Return the base codes of a model's languages, aliases included."""
    return facts_of(model).languages


def folder_of(model: str, backend: Backend, weights: str | None) -> Path:
    """Find the folder of a checkpoint in a library's layout.

    Args:
        weights: a folder, a file in it, or a hub id in the local cache; None for the published checkpoint.

    Raises:
        WeightsError: no such folder. The hint names the layout that is needed.
    """
    from codec_bench.weights import find

    path = Path(weights).expanduser() if weights is not None else None
    if backend == "torch":
        folder = path.parent if path is not None and path.is_file() else path
        if folder is not None and (folder / "model.bin").is_file() and not (folder / "model.safetensors").is_file():
            raise WeightsError(
                "weights_of_ctranslate2",
                weights=weights,
                model=model,
                hint=f"use {model} without @torch, or run `codec-bench weights fetch {model}-transformers`",
            )
        return find(f"{model}-transformers", weights).folder
    if path is not None and path.is_file():
        if path.name != "model.bin":
            raise WeightsError(
                "weights_single_file",
                weights=weights,
                hint="a checkpoint in the layout of transformers is converted by ct2-transformers-converter",
            )
        path = path.parent
    if path is not None and path.is_dir() and not (path / "model.bin").is_file():
        checkpoints = sorted(
            file.name for kind in ("*.safetensors", "*.pt", "pytorch_model*.bin") for file in path.glob(kind)
        )
        if checkpoints:
            raise WeightsError(
                "weights_not_converted",
                weights=weights,
                checkpoint=checkpoints[0],
                hint=f"convert it: ct2-transformers-converter --model {path} --output_dir {path.name}-ct2 "
                f"--copy_files tokenizer.json preprocessor_config.json; or name {model}@torch, which reads it as it is",
            )
    return find(model, weights if path is None else str(path)).folder


def declared_bands(folder: Path, otherwise: int) -> int:
    """Read the number of mel bands in a folder's preprocessor_config.json.

    Args:
        otherwise: the result if the file is missing or does not state it.
    """
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return otherwise
    try:
        return int(json.loads(path.read_text("utf-8")).get("feature_size", otherwise))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise WeightsError("file_not_readable", path=path, cause=error) from error


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A checkpoint's tokeniser, and the ids that decoding needs."""

    tokenizer: Any
    start: int
    end: int
    transcribe: int
    no_timestamps: int
    no_speech: int
    languages: dict[str, int]
    multilingual: bool
    suppressed: list[int]

    @classmethod
    def read(cls, folder: Path, multilingual: bool) -> Tokens:
        """Read tokenizer.json.

        Raises:
            WeightsError: it is broken, or not a Whisper's.
        """
        import tokenizers
        from faster_whisper.tokenizer import Tokenizer
        from faster_whisper.transcribe import get_suppressed_tokens

        path = folder / "tokenizer.json"
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
            languages = {code: tokenizer.token_to_id(f"<|{code}|>") for code in (*LANGUAGES, "yue")}
            loaded = Tokenizer(tokenizer, multilingual, task="transcribe", language="en")
            suppressed = list(get_suppressed_tokens(loaded, [-1]))
            ids = {
                "<|startoftranscript|>": loaded.sot,
                "<|endoftext|>": loaded.eot,
                "<|transcribe|>": loaded.transcribe,
                "<|notimestamps|>": loaded.no_timestamps,
                "<|nospeech|>": loaded.no_speech,
            }
        except Exception as error:  # the parser raises bare Exceptions, and a missing token breaks the sorting
            reason = " ".join(str(error).split())
            raise WeightsError("not_a_tokeniser", path=path, cause=f"{type(error).__name__}: {reason}") from error
        lacking = [token for token, index in ids.items() if index is None]
        if lacking:
            raise WeightsError("not_a_tokeniser", path=path, cause=Diagnostic("tokeniser_lacks", token=lacking[0]))
        known = {code: index for code, index in languages.items() if index is not None}
        start, end, transcribe, no_timestamps, no_speech = ids.values()
        return cls(tokenizer, start, end, transcribe, no_timestamps, no_speech, known, multilingual, suppressed)

    def prompt(self, language: str) -> list[int]:
        """Return the tokens that precede the decoder's text."""
        if not self.multilingual:
            return [self.start, self.no_timestamps]
        return [self.start, self.languages[language], self.transcribe, self.no_timestamps]

    def text(self, tokens: Sequence[int]) -> str:
        """Decode tokens without special ones."""
        return self.tokenizer.decode([token for token in tokens if token < self.end])
