"""Transcripts by Whisper through CTranslate2 or torch, greedy, batched.

Signals are mono float32 `(samples,)` at 16 kHz. A window is 30 s of log-mel spectrogram, `(n_mels, 3000)`. Languages
are base codes (`en`, `zh`, `yue`), as Whisper writes them.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.audio.budget import FILLED, Budget
from codec_bench.features.base import PreparedFeature, Result, Unavailable, Word
from codec_bench.features.recognisers.speech_windows import check_windows, joined, parts
from codec_bench.features.recognisers.whisper_checkpoint import (
    ALIASES,
    ENGLISH,
    Backend,
    CheckpointSize,
    Tokens,
    declared_bands,
    exact_point,
    facts_of,
    folder_of,
    languages_of,
    parse_point,
    protocol_id,
    window_bytes,
)
from codec_bench.features.recognisers.whisper_network import (
    WINDOW_FRAMES,
    WhisperNetwork,
    most_tokens,
    refuse_if_too_large,
)
from codec_bench.machine.memory import give_back, out_of_memory, room
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UserError, WeightsError

if TYPE_CHECKING:
    import torch

    from codec_bench.networks.log_mel import LaidOut

RATE_HZ = 16_000
FRAME_SAMPLES = 160
WINDOW_S = 30.0
WINDOWS_AT_ONCE = {"cpu": 8, "cuda": 128}
"""The most windows per batch. On a GPU, as many as fill `FILLED` of the free memory."""


@dataclass(slots=True)
class _Together(Budget):
    """The audio decoded at once, in padded seconds; halved when memory is full."""

    budget_s: float
    growing: bool = False

    @property
    def windows(self) -> int:
        return math.ceil(self.budget_s / WINDOW_S)


@dataclass(slots=True, eq=False)
class _Window:
    """A window of a signal's spectrogram, up to 3000 frames, and its decoded text."""

    item: int
    mel: torch.Tensor
    first: bool
    tokens: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    no_speech: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """A prepared batch.

    Args:
        refused: for each signal, why it cannot be transcribed, or None.
        codes: the language of each signal; None to detect it.
        items: the signal of each part.
        frames: the number of frames of each part.
        laid: the parts on the device.
    """

    refused: list[Unavailable | None]
    codes: list[str | None]
    items: list[int]
    frames: list[int]
    laid: LaidOut


class Whisper(PreparedFeature):
    """Transcripts by Whisper, as written text with punctuation.

    Protocol `<model>/greedy/<windows>[/<compute type>]`: one greedy decoding without timestamps. There is no second
    decoding at a higher temperature, no prompt from the previous window, and no text is dropped for its low
    probability. The tokens that faster-whisper suppresses by default are suppressed. The language is the sample's, else
    the most probable one of the first window. Without `@`, windows are 30 s and the type is float32.

    The library is not part of the protocol, because both write the same tokens in float32: `torch`, the default on a
    GPU, reads checkpoints of transformers; `ct2` (CTranslate2), the default on a CPU, reads converted ones. The layout
    of custom weights decides, and so does that of the published ones if only one is on this machine.

    Result: `transcript`; `tokens`, int32, of all windows in order; `language` (empty if there was no speech to detect
    it in) and `language_detected`; `no_speech_prob`, the highest of all windows, because one silent window can give
    invented text (1 if the voice-activity network detected no speech); `avg_logprob`, per token, counting each window's
    end; `windows`, their number; `seconds`, their length. `fault` reports a decoding that did not end.

    All windows of a batch are encoded together, at most `WINDOWS_AT_ONCE` at a time and the longest first, so windows
    of similar length are decoded together. If they do not fit into a GPU's memory, torch frees its cache and tries
    again, then with half as many.

    Paper: A. Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023; distil: S. Gandhi
    et al., "Distil-Whisper", 2023. Reference implementation: faster-whisper 1.2.1 `WhisperModel.transcribe(beam_size=1,
    temperature=0, without_timestamps=True, condition_on_previous_text=False)` with all thresholds None, for `vad`
    `BatchedInferencePipeline.transcribe`: token for token in float32. `torch` and `ct2` write the same tokens on the
    same weights in float32. Where a model writes timestamps in spite of `<|notimestamps|>`, faster-whisper may move its
    next window (docs/metrics/whisper.md).

    Args:
        device: `cpu` or `cuda:N`.
        weights: a folder of a checkpoint of the same kind, in the layout of transformers or CTranslate2; None for the
            published one.
        model: the registered name.
        point: backend, windows and compute type, joined by `+`.

    Raises:
        MissingExtra: faster-whisper is not installed, or cuBLAS 12 when it is loaded for a GPU.
        UserError: no such model or point. WeightsError: no such weights.
    """

    name = "whisper"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 600.0
    reads_language = True
    protocol_id = staticmethod(protocol_id)
    exact_point = staticmethod(exact_point)
    languages_of = staticmethod(languages_of)

    def __init__(
        self, device: str = "cpu", weights: str | None = None, model: str = "whisper-large-v3", point: str | None = None
    ) -> None:
        super().__init__(device, weights)
        self.name, self.facts = model, facts_of(model)
        exact = exact_point(model, point, weights, gpu=device != "cpu")
        backend, self.windows, self.compute_type = parse_point(model, exact)
        self.by: Backend = "ct2" if backend is None else backend
        self.protocol = protocol_id(model, point)
        self.languages = self.facts.languages
        # torch aligns nothing, and windows joined from speech have no times.
        self.times_words = self.by == "ct2" and self.windows == "30s"
        if any(importlib.util.find_spec(package) is None for package in ("ctranslate2", "faster_whisper")):
            raise MissingExtra("recogniser", "faster-whisper", "asr", name=model)
        check_windows(self.windows)
        self._folder = folder_of(model, self.by, weights)
        self._kind = "cpu" if device == "cpu" else "cuda"
        self._together = _Together(WINDOWS_AT_ONCE[self._kind] * WINDOW_S)
        self._net: WhisperNetwork | None = None
        self._read: Tokens | None = None

    def load(self) -> None:
        """Load the checkpoint, and encode a silent window as a test.

        Raises:
            UserError: the device cannot compute, or not in the requested type.
            MissingExtra: cuBLAS 12 is missing for a GPU.
            WeightsError: the checkpoint is broken or of another kind of model.
        """
        if self._net is not None:
            return
        tokens = Tokens.read(self._folder, self.facts.multilingual)
        net = self._network(tokens)
        self._check(net)
        if self._kind == "cuda":
            self._try(net)
            together = windows_that_fit(self.facts, self.compute_type, room(self.device))
            self._together = _Together(together * WINDOW_S)
        self._net, self._read = net, tokens

    def _network(self, tokens: Tokens) -> WhisperNetwork:
        """Load the checkpoint with the feature's library, transformers or CTranslate2."""
        options = (self.name, self._folder, self.device, self.compute_type, tokens)
        if self.by == "torch":
            from codec_bench.features.recognisers.whisper_torch import TorchWhisper

            return TorchWhisper(*options)
        from codec_bench.features.recognisers.whisper_ct2 import CTranslate2Whisper

        return CTranslate2Whisper(*options)

    def _try(self, net: WhisperNetwork) -> None:
        """Encode a silent window, which shows a missing or old library before any item.

        Raises:
            UserError: encoding fails, or its output is not finite.
        """
        other = "" if self.by == "torch" else f"; {self.name}@torch computes without CTranslate2"
        try:
            right = net.computes()
        except RuntimeError as error:
            refuse_if_too_large(self.name, self.device, error)
            raise UserError(
                "computing_fails",
                name=self.name,
                device=self.device,
                cause=" ".join(str(error).split()),
                hint=f"codec-bench doctor checks the device and its libraries{other}",
            ) from error
        if not right:
            raise UserError(
                "computes_nothing",
                name=self.name,
                device=self.device,
                hint=f"the driver may be too old: codec-bench doctor compares the GPU with the CPU{other}",
            )

    @property
    def _loaded(self) -> WhisperNetwork:
        assert self._net is not None, "load() comes first"
        return self._net

    @property
    def _tokens(self) -> Tokens:
        assert self._read is not None, "load() comes first"
        return self._read

    def _check(self, net: WhisperNetwork) -> None:
        """Check that a checkpoint has the model's mel bands and languages.

        Raises:
            WeightsError: it does not.
        """
        declared = declared_bands(self._folder, net.n_mels)
        wrong = []
        if net.n_mels != self.facts.n_mels:
            wrong.append(f"they take {net.n_mels} mel bands (expected {self.facts.n_mels})")
        if net.multilingual != self.facts.multilingual:
            wrong.append(f"they know {'several languages' if net.multilingual else 'English only'}")
        if declared != net.n_mels:
            wrong.append(f"preprocessor_config.json says {declared} mel bands, the network has {net.n_mels}")
        if wrong:
            raise WeightsError("weights_of_another_model", folder=self._folder, difference="; ".join(wrong))

    def prepare(self, signals: Sequence[np.ndarray], languages: Sequence[str | None] | None = None) -> _Batch:
        """Cut the signals into parts on the device, and resolve their languages.

        Args:
            languages: base code of each signal's language, None to detect it.
        """
        from codec_bench.networks.log_mel import laid_out

        language_codes = list(languages) if languages is not None else [None] * len(signals)
        spoken = [self._language(code) for code in language_codes]
        refused = [_refusal(signal, code) for signal, code in zip(signals, spoken)]
        codes = [None if isinstance(code, Unavailable) else code for code in spoken]
        cut = [
            (item, window)
            for item, signal in enumerate(signals)
            if refused[item] is None
            for window in parts(np.asanyarray(signal, np.float32), self.windows)
            if window.size >= FRAME_SAMPLES
        ]
        return _Batch(
            refused,
            codes,
            items=[item for item, _ in cut],
            frames=[window.size // FRAME_SAMPLES for _, window in cut],
            laid=laid_out([window for _, window in cut], self.device),
        )

    def compute(
        self, signals: Sequence[np.ndarray], languages: Sequence[str | None] | None = None
    ) -> list[Result | Unavailable]:
        """Transcribe signals `(samples,)`, float32 at 16 kHz (see `prepare`)."""
        self.load()
        return self.compute_prepared(self.prepare(signals, languages))

    def compute_prepared(self, batch: _Batch) -> list[Result | Unavailable]:
        """Transcribe a prepared batch."""
        by_item, codes = self._decode_windows(batch)
        return [
            batch.refused[item] or self._result(windows, codes[item] or "", detected=batch.codes[item] is None)
            for item, windows in enumerate(by_item)
        ]

    def timed(self, signal: np.ndarray) -> list[Word]:
        """Return words with start and end in seconds, by the decoder's attention.

        Reference implementation: faster-whisper 1.2.1 `transcribe(..., word_timestamps=True)`: the same words and
        times.

        Raises:
            Unavailable: the signal cannot be transcribed.
        """
        self.load()
        batch = self.prepare([signal])
        if (refused := batch.refused[0]) is not None:
            raise refused
        ((windows,), (code,)) = self._decode_windows(batch)
        out: list[Word] = []
        for number, window in enumerate(windows):
            if self._tokens.text(window.tokens).strip():
                before_s = out[-1][2] if out else 0.0
                out += self._loaded.words(
                    self._encode([window]),
                    window.tokens,
                    code or "en",
                    number * WINDOW_S,
                    window.mel.shape[0],
                    before_s,
                )
        return [word for word in out if any(map(str.isalnum, word[0]))]

    def _decode_windows(self, batch: _Batch) -> tuple[list[list[_Window]], list[str | None]]:
        """Decode the windows of each signal.

        Returns:
            By signal, its windows with their tokens, and its language, detected where it was unknown.
        """
        from codec_bench.networks.log_mel import log_mels_of
        from codec_bench.networks.precision import computing

        codes = list(batch.codes)
        by_item: list[list[_Window]] = [[] for _ in codes]
        with computing(self.device, "float32"):
            mels = log_mels_of(batch.laid, self.facts.n_mels)
            for item, frames, mel in zip(batch.items, batch.frames, mels, strict=True):
                by_item[item] += _windows(item, mel[:frames], first=not by_item[item])
            self._decode([window for windows in by_item for window in windows], codes)
        return by_item, codes

    def _language(self, code: str | None) -> str | Unavailable | None:
        """Return the language in which a signal is decoded.

        Args:
            code: of the signal, None if unknown.

        Returns:
            None to detect it, or the reason why the model cannot.
        """
        if self.facts.languages == ENGLISH:
            return (
                "en"
                if code in (None, "en")
                else Unavailable(Diagnostic("english_only", model=self.name, language=code))
            )
        known = None if code is None else ALIASES.get(code, code)
        if known is not None and known not in self._tokens.languages:
            return Unavailable(Diagnostic("no_language_token", model=self.name, language=code))
        return known

    def _decode(self, windows: list[_Window], codes: list[str | None]) -> None:
        """Decode windows in place, as many at once as memory allows.

        Args:
            windows: get their tokens and probabilities.
            codes: the language of each signal; None is replaced by the detected one.
        """
        # First windows of items without a language come first: the item's other windows need it.
        waiting = sorted(windows, key=lambda w: (not (w.first and codes[w.item] is None), -w.mel.shape[0]))
        full = False  # whether the last ones did not fit in spite of torch's freed cache
        while waiting:
            groups = math.ceil(len(waiting) / self._together.windows)
            some = waiting[: math.ceil(len(waiting) / groups)]  # groups of equal size, because small groups are slow
            try:
                self._decode_together(some, codes)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                if len(some) == 1 and (full or self._kind == "cpu"):
                    raise MemoryError("one window does not fit into memory") from error
            else:
                self._together.fitted(len(some) * WINDOW_S)
                waiting, full = waiting[len(some) :], False
                continue
            if full or self._kind == "cpu":
                self._together.did_not_fit(len(some) * WINDOW_S)
            give_back(self.device)
            full = True

    def _decode_together(self, windows: list[_Window], codes: list[str | None]) -> None:
        """Decode windows in place as one batch; arguments as of `_decode`.

        The first window of a signal without a language comes before its other windows.
        """
        encoded = self._encode(windows)
        if any(codes[window.item] is None for window in windows):
            for window, (language, _) in zip(windows, self._loaded.detect_languages(encoded)):
                if codes[window.item] is None:  # set by its first window, which comes first
                    codes[window.item] = language
        languages = [code for window in windows if (code := codes[window.item]) is not None]  # every one is known now
        prompts = [self._tokens.prompt(language) for language in languages]
        for window, result in zip(windows, self._loaded.decode(encoded, prompts)):
            window.tokens, window.log_probability, window.no_speech = (
                result.tokens,
                result.log_probability,
                result.no_speech,
            )

    def _encode(self, windows: list[_Window]) -> Any:
        """Encode windows on the model's device."""
        # On a CPU one window at a time: the attention of several does not fit into a core's cache.
        at_once = len(windows) if self._kind == "cuda" else 1
        groups = (windows[first : first + at_once] for first in range(0, len(windows), at_once))
        return self._loaded.encode(self._batch(group) for group in groups)

    def _batch(self, windows: list[_Window]) -> torch.Tensor:
        """Pad windows to the encoder's input, float32 `(windows, n_mels, 3000)`."""
        import torch

        batch = torch.zeros((len(windows), self.facts.n_mels, WINDOW_FRAMES), dtype=torch.float32, device=self.device)
        for row, window in zip(batch, windows):
            row[:, : window.mel.shape[0]] = window.mel.T
        return batch

    def _result(self, windows: list[_Window], language: str, *, detected: bool) -> Result:
        """Join the texts of a signal's windows, with their probabilities and lengths.

        Args:
            detected: whether Whisper detected the language.
        """
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
        bound = most_tokens(self._tokens.prompt(language or "en"))
        if any(len(window.tokens) >= bound for window in windows):
            result["fault"] = Diagnostic("text_endless", tokens=bound)
        return result


class WhisperLanguage(Whisper):
    """The language that Whisper detects in the first 30 s, and its probability.

    The probability is that among all languages. The sample's own language is not read, and nothing is decoded.

    Result: `{"language": str, "probability": float}`.

    Paper and reference implementation: as `Whisper`; faster-whisper 1.2.1 `detect_language`, to 1e-4.

    Args:
        device: `cpu` or `cuda:N`. weights: as for `Whisper`.
        variant: a multilingual Whisper; None for `whisper-large-v3`. point: its backend and compute type.

    Raises:
        UserError: no such model, or it knows one language. WeightsError, MissingExtra: as `Whisper`.
    """

    reads_language = False
    exact_point: Any = None
    protocol_id: Any = None
    languages_of: Any = staticmethod(lambda model: ())

    def __init__(
        self, device: str = "cpu", weights: str | None = None, variant: str | None = None, point: str | None = None
    ) -> None:
        super().__init__(device, weights, variant or "whisper-large-v3", point)
        self.name = "spoken-language" + (f"[{variant}]" if variant else "") + (f"@{point}" if point else "")
        self.protocol = "lid/" + self.protocol

    def compute_prepared(self, batch: _Batch) -> list[Result | Unavailable]:
        """Return each signal's most probable language with its probability."""
        from codec_bench.networks.log_mel import log_mels_of
        from codec_bench.networks.precision import computing

        out: list[Result | Unavailable | None] = list(batch.refused)
        with computing(self.device, "float32"):
            mels = log_mels_of(batch.laid, self.facts.n_mels)
            first: dict[int, _Window] = {}
            for item, frames, mel in zip(batch.items, batch.frames, mels, strict=True):
                first.setdefault(item, _windows(item, mel[:frames], first=True)[0])
            windows = list(first.values())
            for start in range(0, len(windows), self._together.windows):
                some = windows[start : start + self._together.windows]
                for window, (language, share) in zip(
                    some, self._loaded.detect_languages(self._encode(some)), strict=True
                ):
                    out[window.item] = {"language": language, "probability": share}
        return [result or Unavailable(Diagnostic("signal_silent")) for result in out]


def windows_that_fit(facts: CheckpointSize, compute_type: str, room_bytes: float) -> int:
    """Return how many windows a GPU computes at once with this much free memory."""
    return min(WINDOWS_AT_ONCE["cuda"], max(1, int(FILLED * room_bytes / window_bytes(facts, compute_type))))


def _refusal(signal: np.ndarray, language: str | Unavailable | None) -> Unavailable | None:
    """Return why a signal cannot be transcribed, or None."""
    if isinstance(language, Unavailable):
        return language
    if signal.size < FRAME_SAMPLES:
        return Unavailable(Diagnostic("signal_short_frame", samples=signal.size, needed=FRAME_SAMPLES))
    if not np.isfinite(signal).all():
        return Unavailable(Diagnostic("signal_not_finite"))
    return None


def _windows(item: int, mel: torch.Tensor, *, first: bool) -> list[_Window]:
    """Cut a spectrogram into windows of 3000 frames.

    Args:
        item: the index of its signal.
        first: whether the signal begins with this spectrogram.
    """
    starts = range(0, mel.shape[0], WINDOW_FRAMES)
    return [_Window(item, mel[start : start + WINDOW_FRAMES], first and start == 0) for start in starts]
