"""The base of recognisers that take a signal whole and cut a long one into pieces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from codec_bench.audio.padded_passes import EIGHT_SECONDS, passes
from codec_bench.features.base import Feature, Result, Unavailable, Word
from codec_bench.features.precision_names import parse_precision, suffix
from codec_bench.features.recognisers.pocketsphinx import windows
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.weights import find

RATE_HZ = 16_000


@dataclass(frozen=True, slots=True)
class PieceTranscript:
    """The transcript of one segment of a signal.

    Args:
        language: base code of the language that the recogniser reports, or empty.
        fault: why the text cannot be trusted, or None.
    """

    text: str
    language: str = ""
    fault: Diagnostic | None = None


class PiecewiseRecogniser(Feature):
    """A recogniser of signals of at most `whole_s` seconds.

    Time and memory of attention grow with the square of the length. So a longer signal is cut where it is quietest (0.1
    s frames) between the 20th and the 30th second of each piece, and the texts are joined by a space. On a CPU a batch
    is split into passes of similar length.

    Args:
        model: a key of `models`. device: `cpu` or `cuda:N`.
        weights: a transformers folder or a hub id in the local cache; None for the published ones.
        point: `tf32` or `bfloat16`; None for float32.

    Class attributes:
        models: the names of the weights in the catalogue, by recogniser.
        whole_s: the longest signal that is not cut.
    """

    rate_hz = RATE_HZ
    where = "device"
    batch_s: ClassVar[float] = 120.0
    whole_s: float = 60.0
    models: ClassVar[Mapping[str, str]]
    needs_language: bool = False

    def __init__(self, model: str, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights)
        self.protocol = self.protocol_id(model, point)
        self.name = model
        self._precision = parse_precision(model, point)
        self._folder = find(self.models[model], weights).folder
        self._net: Any = None

    @classmethod
    def protocol_id(cls, model: str, point: str | None = None) -> str:
        """Return the id of a recogniser, without its weights.

        Raises:
            UnknownName: no such recogniser. UserError: no such precision.
        """
        if model not in cls.models:
            raise UnknownName("recogniser", model, cls.models)
        return f"{model}/{cls.decoding_id()}{suffix(parse_precision(model, point))}"

    def load(self) -> None:
        """Load the network, its front end and its tokens.

        Raises:
            WeightsError: they do not fit together, or belong to another kind of model.
        """
        if self._net is None:
            self._net = self._network().to(self.device).eval()

    @abstractmethod
    def _network(self) -> Any:
        """Load the network on the CPU, and the front end and tokens that fit it."""

    @classmethod
    def decoding_id(cls) -> str:
        """Return the part of a protocol id that describes the decoding."""
        return f"greedy/whole-to-{cls.whole_s:g}s"

    @property
    @abstractmethod
    def shortest(self) -> int:
        """The fewest samples of a segment. The network must be loaded."""

    @abstractmethod
    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """Transcribe segments `(samples,)` of at least `shortest` samples."""

    def refusal(self, signal: np.ndarray, language: str | None) -> str | None:
        """Return why a signal cannot be transcribed; None if it can.

        Args:
            language: the base code of the signal's language, None if unknown.
        """
        if language is None and self.needs_language:
            return Diagnostic("recogniser_needs_language", name=self.name)
        if self.reads_language and language is not None and self.languages and language not in self.languages:
            return Diagnostic("recogniser_language_unknown", name=self.name, language=language)
        if signal.size < self.shortest:
            return Diagnostic("signal_short", samples=signal.size, model=self.name, needed=self.shortest)
        return None if np.isfinite(signal).all() else Diagnostic("signal_not_finite")

    def compute(
        self, signals: Sequence[np.ndarray], languages: Sequence[str | None] | None = None
    ) -> list[Result | Unavailable]:
        """Transcribe signals `(samples,)`, float32 at `rate_hz`.

        Args:
            languages: base code of each signal's language, None where unknown.
        """
        self.load()
        codes = list(languages) if languages is not None else [None] * len(signals)
        results: dict[int, Result | Unavailable] = {}
        pieces: list[tuple[int, np.ndarray]] = []
        for position, signal in enumerate(signals):
            if (reason := self.refusal(signal, codes[position])) is not None:
                results[position] = Unavailable(reason)
            else:
                pieces += [(position, segment) for _, segment in self._pieces(np.asarray(signal, np.float32))]
        transcripts: dict[int, PieceTranscript] = {}
        longest = max((signal.size for signal in signals), default=0)
        budget = len(signals) * min(longest, round(self.whole_s * self.rate_hz))
        for indices in passes(
            [segment.size for _, segment in pieces],
            self.device,
            most=budget,
            most_on_cpu=min(budget, EIGHT_SECONDS * self.rate_hz // RATE_HZ),
        ):
            some = [pieces[index] for index in indices]
            transcripts.update(
                zip(
                    indices,
                    self.transcribe([segment for _, segment in some], [codes[position] for position, _ in some]),
                )
            )
        by_place: dict[int, list[PieceTranscript]] = {}
        for index, (position, _) in enumerate(pieces):
            by_place.setdefault(position, []).append(transcripts[index])
        for position, parts in by_place.items():
            results[position] = self.result(parts, codes[position])
        return [results[position] for position in range(len(signals))]

    def result(self, parts: Sequence[PieceTranscript], language: str | None) -> Result:
        """Join the transcripts of a signal's segments, in order, to the feature's result.

        The first segment's `fault`, if there is one, becomes that of the result.
        """
        result: Result = {"transcript": joined(parts)}
        if fault := next((transcript.fault for transcript in parts if transcript.fault), None):
            result["fault"] = fault
        return result

    def timed(self, signal: np.ndarray) -> list[Word]:
        """Return the words of a signal with start and end in seconds.

        Raises:
            Unavailable: the signal cannot be transcribed (`refusal`).
        """
        self.load()
        if (reason := self.refusal(signal, None)) is not None:
            raise Unavailable(reason)
        out: list[Word] = []
        for start, segment in self._pieces(np.asarray(signal, np.float32)):
            at_s = start / self.rate_hz
            out += [(text, round(at_s + begin, 3), round(at_s + end, 3)) for text, begin, end in self.words(segment)]
        return out

    def words(self, segment: np.ndarray) -> list[Word]:
        """Return the words of one segment with their times in it, if `times_words`."""
        raise NotImplementedError

    def _pieces(self, signal: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Cut a signal into segments that are not silent, each with its first sample."""
        if signal.size <= self.whole_s * self.rate_hz:
            yield 0, signal
            return
        for start, end in windows(signal, self.rate_hz):
            if end - start >= self.shortest:
                yield start, signal[start:end]


def joined(parts: Sequence[PieceTranscript], *, between: str = " ") -> str:
    """Join the texts of segments; `between` is the separator."""
    return between.join(transcript.text for transcript in parts if transcript.text)
