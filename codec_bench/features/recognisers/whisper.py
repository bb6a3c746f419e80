"""Transcripts by Whisper through CTranslate2. Windows of many recordings are decoded together, greedily.

Conventions
    Signals are mono float32 `(samples,)` at 16 kHz. A window is 30 s of log-mel spectrogram, `(n_mels, 3000)`.
    Languages are base codes (`en`, `zh`, `yue`), as Whisper writes them.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.errors import MissingExtra, UserError, WeightsError
from codec_bench.features.base import Feature, Result, Unavailable
from codec_bench.features.recognisers.speech_windows import WINDOWS, Windows, check_windows, joined, parts, window_id

if TYPE_CHECKING:
    import torch

RATE_HZ = 16_000
FRAME_SAMPLES = 160
WINDOW_FRAMES = 3_000
MAX_LENGTH = 448
"""Whisper's context in tokens. CTranslate2 writes at most half as many new tokens, so an endless text ends after 224."""
WINDOWS_AT_ONCE = {"cpu": 8, "cuda": 64}
"""Windows that are encoded and decoded together. large-v3 in float32 needs 0.6 GB for the keys and values of each."""

COMPUTE_TYPES = ("float32", "float16", "bfloat16", "int8", "int8_float16", "int8_float32")

LANGUAGES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te "
    "fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps "
    "tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su"
).split()
"""The 99 languages of the first models; large-v3 and turbo also know Cantonese, `yue`."""
ALIASES = {"fil": "tl", "jv": "jw", "nb": "no", "iw": "he"}
"""Other codes of languages, and the codes of Whisper's tokens for them."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a checkpoint must have: its mel bands, whether it is multilingual, and the languages it was trained for."""

    n_mels: int
    multilingual: bool
    languages: tuple[str, ...]


_ALL = (*LANGUAGES, *ALIASES)
_ENGLISH = ("en",)
_FACTS = {
    "whisper-large-v3": _Facts(128, True, (*_ALL, "yue")),
    "whisper-large-v3-turbo": _Facts(128, True, (*_ALL, "yue")),
    "whisper-distil-large-v3": _Facts(128, True, _ENGLISH),
    "whisper-distil-large-v3.5": _Facts(128, True, _ENGLISH),
    "whisper-large-v2": _Facts(80, True, _ALL),
    **{f"whisper-{size}": _Facts(80, True, _ALL) for size in ("medium", "small", "base", "tiny")},
    **{f"whisper-{size}.en": _Facts(80, False, _ENGLISH) for size in ("medium", "small", "base", "tiny")},
}
MODELS = tuple(_FACTS)
"""The registered names."""


def parse_point(model: str, point: str | None) -> tuple[Windows, str]:
    """Windows and compute type of a name such as `whisper-large-v3@28s+float16`.

    Raises:
        UserError: an option that does not exist, or two of one kind.
    """
    windows, compute_type = None, None
    for option in (point or "").split("+") if point is not None else ():
        if option in WINDOWS and windows is None:
            windows = option
        elif option in COMPUTE_TYPES and compute_type is None:
            compute_type = option
        else:
            known = f"windows {', '.join(WINDOWS)}; compute types {', '.join(COMPUTE_TYPES)}"
            raise UserError(
                f"{model} has no '@{point}'" + (f": '{option}'" if option != point else ""),
                hint=f"at most one of each, joined by +: {known}",
            )
    return windows or "30s", compute_type or "float32"


def protocol_id(model: str, point: str | None = None) -> str:
    """The id of a recogniser. Neither its weights nor its package are needed for it.

    Raises:
        UserError: there is no such model or point.
    """
    _facts(model)
    windows, compute_type = parse_point(model, point)
    return f"{model}/ct2/greedy/{window_id(windows)}" + ("" if compute_type == "float32" else f"/{compute_type}")


def languages_of(model: str) -> tuple[str, ...]:
    """Base codes of the languages that a model was trained for, with other codes of the same languages."""
    return _facts(model).languages


@dataclass(slots=True, eq=False)
class _Window:
    """One window of one signal: its spectrogram `(frames, n_mels)`, at most 3000 frames, and what was decoded."""

    item: int
    mel: torch.Tensor
    first: bool
    tokens: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    no_speech: float = 0.0


class Whisper(Feature):
    """Transcripts by Whisper, as written text with punctuation.

    Protocol `<model>/ct2/greedy/<windows>[/<compute type>]`: one decoding without timestamps, which takes the most
    probable token at each step. There is no second decoding at a higher temperature, the text of the previous window is
    not a prompt, and no text is dropped for its low probability. The tokens that faster-whisper suppresses by default are
    suppressed. The language is the given one, else the most probable one of the first window. Without `@`, windows are
    30 s and the type is float32.

    Result: `transcript`; `tokens`, int32, those of all windows in order; `language`, the one that was used (empty if there
    was no speech to detect it in) and `language_detected`; `no_speech_prob`, the highest of all windows, because one silent
    window can give invented text (1 if the voice-activity network found no speech); `avg_logprob`, per token, where the
    end of each window counts as a token; `windows`, their number; `seconds`, their length. If a decoding did not end,
    `fault` says so.

    All windows of a batch of signals are encoded together, at most `WINDOWS_AT_ONCE` at a time and the longest first, so
    that windows of similar length are decoded together. Each window is encoded once, for its language and its text.

    Paper: A. Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023; distil: S. Gandhi et
    al., "Distil-Whisper", 2023. Reference implementation: faster-whisper 1.2.1 `WhisperModel.transcribe(beam_size=1,
    temperature=0, without_timestamps=True, condition_on_previous_text=False)` with all thresholds None, for `vad`
    `BatchedInferencePipeline.transcribe`: token for token in float32. Where a model writes timestamps in spite of
    `<|notimestamps|>`, faster-whisper may move its next window; docs/metrics/whisper.md has the details.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a folder with a checkpoint converted to CTranslate2, of the same kind, or None for the published one.
        model: the registered name.
        point: windows and compute type, joined by `+`.

    Raises:
        MissingExtra: faster-whisper is not installed. UserError: there is no such model or point.
        WeightsError: there are no such weights.
    """

    name = "whisper"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 600.0
    reads_language = True
    protocol_id = staticmethod(protocol_id)
    languages_of = staticmethod(languages_of)

    def __init__(
        self,
        device: str = "cpu",
        weights: str | None = None,
        model: str = "whisper-large-v3",
        point: str | None = None,
    ) -> None:
        super().__init__(device, weights)
        self.name, self.facts = model, _facts(model)
        self.windows, self.compute_type = parse_point(model, point)
        self.protocol = protocol_id(model, point)
        self.languages = self.facts.languages
        if any(importlib.util.find_spec(package) is None for package in ("ctranslate2", "faster_whisper")):
            raise MissingExtra(f"the recogniser '{model}'", "faster-whisper", "asr")
        check_windows(self.windows)
        self._folder = _converted(model, weights)
        self._kind = "cpu" if device == "cpu" else "cuda"
        self._at_once = WINDOWS_AT_ONCE[self._kind]
        self._net: Any = None
        self._read: _Tokens | None = None

    def load(self) -> None:
        """Loads the model.

        Raises:
            UserError: the device cannot compute in the type that was asked for.
            WeightsError: the checkpoint is broken, or that of another kind of model.
        """
        if self._net is not None:
            return
        import ctranslate2

        index = int(self.device.partition(":")[2] or 0) if self._kind == "cuda" else 0
        able = ctranslate2.get_supported_compute_types(self._kind, index)
        if self.compute_type not in able:
            can = ", ".join(kind for kind in COMPUTE_TYPES if kind in able)
            raise UserError(
                f"{self.name}: '{self.device}' cannot compute in {self.compute_type}", hint=f"it can: {can}"
            )
        tokens = _Tokens.read(self._folder, self.facts.multilingual)
        try:
            net = ctranslate2.models.Whisper(
                str(self._folder),
                device=self._kind,
                device_index=index,
                compute_type=self.compute_type,
                # The engine runs one process per core, so a second thread in each process would make it slower.
                intra_threads=1 if self._kind == "cpu" else 0,
            )
        except Exception as error:  # a broken file raises RuntimeError, ValueError, MemoryError or a JSON error
            reason = " ".join(str(error).split())
            if "out of memory" in reason:
                raise MemoryError(f"{self.name} does not fit into the memory of '{self.device}'") from error
            raise WeightsError(
                f"the weights in '{self._folder}' cannot be loaded: {type(error).__name__}: {reason}",
                hint="the file may be cut short or of another kind: codec-bench weights verify",
            ) from error
        self._check(net)
        self._net, self._read = net, tokens

    @property
    def _tokens(self) -> _Tokens:
        assert self._read is not None, "load() comes first"
        return self._read

    def _check(self, net: Any) -> None:
        said = _bands_said(self._folder, net.n_mels)
        wrong = []
        if net.n_mels != self.facts.n_mels:
            wrong.append(f"they take {net.n_mels} mel bands (expected {self.facts.n_mels})")
        if net.is_multilingual != self.facts.multilingual:
            wrong.append(f"they know {'several languages' if net.is_multilingual else 'English only'}")
        if said != net.n_mels:
            wrong.append(f"preprocessor_config.json says {said} mel bands, model.bin {net.n_mels}")
        if wrong:
            raise WeightsError(f"the weights in '{self._folder}' are not those of {self.name}: {'; '.join(wrong)}")

    def compute(
        self, signals: Sequence[np.ndarray], languages: Sequence[str | None] | None = None
    ) -> list[Result | Unavailable]:
        """One transcript per signal `(samples,)`, float32 at 16 kHz.

        Args:
            languages: base code of each signal's language, None to have it detected.
        """
        from codec_bench.networks.log_mel import log_mels
        from codec_bench.networks.precision import computing

        self.load()
        given = list(languages) if languages is not None else [None] * len(signals)
        spoken = [self._language(code) for code in given]
        refused = [_refusal(signal, code) for signal, code in zip(signals, spoken)]
        codes = [None if isinstance(code, Unavailable) else code for code in spoken]
        cut = [
            (item, part)
            for item, signal in enumerate(signals)
            if refused[item] is None
            for part in parts(np.asarray(signal, np.float32), self.windows)
            if part.size >= FRAME_SAMPLES
        ]
        by_item: list[list[_Window]] = [[] for _ in signals]
        with computing(self.device, "float32"):
            mels = log_mels([part for _, part in cut], self.facts.n_mels, self.device)
            for (item, part), mel in zip(cut, mels):
                by_item[item] += _windows(item, mel[: part.size // FRAME_SAMPLES], first=not by_item[item])
            self._decode([window for windows in by_item for window in windows], codes)
        return [
            refused[item] or self._result(windows, codes[item] or "", detected=spoken[item] is None)
            for item, windows in enumerate(by_item)
        ]

    def _language(self, code: str | None) -> str | Unavailable | None:
        """The language to decode in, None to detect it."""
        if self.facts.languages == _ENGLISH:
            return "en" if code in (None, "en") else Unavailable(f"{self.name} knows English only, not '{code}'")
        known = None if code is None else ALIASES.get(code, code)
        if known is not None and known not in self._tokens.languages:
            return Unavailable(f"{self.name} has no token for the language '{code}'")
        return known

    def _decode(self, windows: list[_Window], codes: list[str | None]) -> None:
        """Decodes windows, and fills in the languages that are to be detected."""
        # The first windows of items without a language come first, because the item's other windows need the language.
        waiting = sorted(windows, key=lambda w: (not (w.first and codes[w.item] is None), -w.mel.shape[0]))
        while waiting:
            groups = math.ceil(len(waiting) / self._at_once)
            some = waiting[: math.ceil(len(waiting) / groups)]  # groups of equal size, because small groups are slow
            try:
                self._decode_together(some, codes)
            except (MemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                if len(some) == 1:
                    raise MemoryError("one window does not fit into memory") from error
                self._at_once = len(some) // 2
                continue
            waiting = waiting[len(some) :]

    def _decode_together(self, windows: list[_Window], codes: list[str | None]) -> None:
        encoded = self._encode(windows)
        if any(codes[window.item] is None for window in windows):
            for window, ranked in zip(windows, self._net.detect_language(encoded)):
                if codes[window.item] is None:  # set by its first window, which comes first
                    codes[window.item] = ranked[0][0].strip("<|>")
        languages = [code for window in windows if (code := codes[window.item]) is not None]  # every one is known now
        prompts = [self._tokens.prompt(language) for language in languages]
        decoded = self._net.generate(
            encoded,
            prompts,
            beam_size=1,
            max_length=MAX_LENGTH,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=self._tokens.suppressed,
        )
        for window, found in zip(windows, decoded):
            window.tokens = list(found.sequences_ids[0])
            window.log_probability = found.scores[0] * len(window.tokens)
            window.no_speech = found.no_speech_prob

    def _encode(self, windows: list[_Window]) -> Any:
        """The encoder's output `(windows, 1500, width)`, on the model's device."""
        import ctranslate2
        import torch

        if self._kind == "cuda":
            batch = self._batch(windows)
            torch.cuda.current_stream(self.device).synchronize()  # CTranslate2 reads the batch on another stream
            return self._net.encode(ctranslate2.StorageView.from_array(batch))
        # On a CPU, windows are encoded one at a time: the attention of several windows does not fit into a core's cache.
        views = [ctranslate2.StorageView.from_array(self._batch([window]).numpy()) for window in windows]
        outputs = [np.asarray(self._net.encode(view)) for view in views]
        return ctranslate2.StorageView.from_array(np.concatenate(outputs))

    def _batch(self, windows: list[_Window]) -> torch.Tensor:
        """Windows as the encoder takes them, float32 `(windows, n_mels, 3000)`, with zeros after the last frame."""
        import torch

        batch = torch.zeros((len(windows), self.facts.n_mels, WINDOW_FRAMES), dtype=torch.float32, device=self.device)
        for row, window in zip(batch, windows):
            row[:, : window.mel.shape[0]] = window.mel.T
        return batch

    def _result(self, windows: list[_Window], language: str, *, detected: bool) -> Result:
        texts, tokens = [], []
        for window in windows:
            text = self._tokens.text(window.tokens)
            if text.strip():  # as faster-whisper, which gives no segment for a window without text
                texts.append(text)
                tokens += window.tokens
        steps = sum(len(window.tokens) + 1 for window in windows)
        result = {
            "transcript": joined(texts, self.windows, language),
            "tokens": np.asarray(tokens, np.int32),
            "language": language,
            "language_detected": detected and bool(language),
            "no_speech_prob": max((window.no_speech for window in windows), default=1.0),
            "avg_logprob": math.fsum(window.log_probability for window in windows) / steps if steps else 0.0,
            "windows": len(windows),
            "seconds": sum(window.mel.shape[0] for window in windows) / 100,
        }
        bound = min(MAX_LENGTH // 2, MAX_LENGTH - len(self._tokens.prompt(language or "en")) + 1)
        if any(len(window.tokens) >= bound for window in windows):
            result["fault"] = f"the recogniser's text did not end within {bound} tokens"
        return result


@dataclass(frozen=True, slots=True, eq=False)
class _Tokens:
    """A checkpoint's tokeniser, and the ids that decoding needs."""

    tokenizer: Any
    start: int
    end: int
    transcribe: int
    no_timestamps: int
    languages: dict[str, int]
    multilingual: bool
    suppressed: list[int]

    @classmethod
    def read(cls, folder: Path, multilingual: bool) -> _Tokens:
        """Reads tokenizer.json.

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
            whole = Tokenizer(tokenizer, multilingual, task="transcribe", language="en")
            suppressed = list(get_suppressed_tokens(whole, [-1]))
            ids = {
                "<|startoftranscript|>": whole.sot,
                "<|endoftext|>": whole.eot,
                "<|transcribe|>": whole.transcribe,
                "<|notimestamps|>": whole.no_timestamps,
            }
        except Exception as error:  # the parser raises bare Exceptions, and a missing token breaks the sorting
            reason = " ".join(str(error).split())
            raise WeightsError(f"'{path}' is not a Whisper's tokeniser: {type(error).__name__}: {reason}") from error
        lacking = [token for token, place in ids.items() if place is None]
        if lacking:
            raise WeightsError(f"'{path}' is not a Whisper's tokeniser: it has no {lacking[0]}")
        known = {code: place for code, place in languages.items() if place is not None}
        start, end, transcribe, no_timestamps = ids.values()
        return cls(tokenizer, start, end, transcribe, no_timestamps, known, multilingual, suppressed)

    def prompt(self, language: str) -> list[int]:
        """The tokens that precede the decoder's text."""
        if not self.multilingual:
            return [self.start, self.no_timestamps]
        return [self.start, self.languages[language], self.transcribe, self.no_timestamps]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special tokens."""
        return self.tokenizer.decode([token for token in tokens if token < self.end])


def _facts(model: str) -> _Facts:
    if model not in _FACTS:
        raise UserError(f"there is no recogniser called '{model}'", hint=f"there is {', '.join(MODELS)}")
    return _FACTS[model]


def _refusal(signal: np.ndarray, language: str | Unavailable | None) -> Unavailable | None:
    """Why a signal cannot be transcribed, or None."""
    if isinstance(language, Unavailable):
        return language
    if signal.size < FRAME_SAMPLES:
        return Unavailable(f"the signal has {signal.size} samples; one frame is {FRAME_SAMPLES} (10 ms)")
    if not np.isfinite(signal).all():
        return Unavailable("the signal has samples that are not numbers")
    return None


def _windows(item: int, mel: torch.Tensor, *, first: bool) -> list[_Window]:
    """Steps of 3000 frames through the spectrogram of a part; `first` if it is the item's first part."""
    starts = range(0, mel.shape[0], WINDOW_FRAMES)
    return [_Window(item, mel[start : start + WINDOW_FRAMES], first and start == 0) for start in starts]


def _out_of_memory(error: BaseException) -> bool:
    """Whether torch, CTranslate2 or the system had too little memory."""
    return isinstance(error, MemoryError) or "out of memory" in str(error) or "bad_alloc" in str(error)


def _converted(model: str, weights: str | None) -> Path:
    """The folder of a checkpoint in CTranslate2's layout.

    Raises:
        WeightsError: there is no such folder. For a checkpoint in another layout, the hint is the command that converts it.
    """
    from codec_bench.weights import find

    path = Path(weights).expanduser() if weights is not None else None
    if path is not None and path.is_file():
        if path.name != "model.bin":
            raise WeightsError(
                f"the weights '{weights}' are a single file; CTranslate2 reads a folder with a model.bin",
                hint="a checkpoint in the layout of transformers is converted by ct2-transformers-converter",
            )
        path = path.parent
    if path is not None and path.is_dir() and not (path / "model.bin").is_file():
        kept = sorted(file.name for kind in ("*.safetensors", "*.pt", "pytorch_model*.bin") for file in path.glob(kind))
        if kept:
            raise WeightsError(
                f"the weights folder '{weights}' has a checkpoint that is not converted to CTranslate2 ({kept[0]})",
                hint=f"convert it: ct2-transformers-converter --model {path} --output_dir {path.name}-ct2 "
                "--copy_files tokenizer.json preprocessor_config.json",
            )
    return find(model, weights if path is None else str(path)).folder


def _bands_said(folder: Path, otherwise: int) -> int:
    """The number of mel bands in preprocessor_config.json; `otherwise` for older checkpoints, which lack that file."""
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return otherwise
    try:
        return int(json.loads(path.read_text("utf-8")).get("feature_size", otherwise))
    except (ValueError, TypeError, AttributeError) as error:
        raise WeightsError(f"'{path}' cannot be read: {error}") from error
