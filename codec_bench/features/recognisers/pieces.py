"""What recognisers have in common that take a signal whole, or a long one in pieces, and hear pieces of many signals
together.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from codec_bench.audio.padded_passes import EIGHT_SECONDS, passes
from codec_bench.errors import UnknownName
from codec_bench.features.base import Feature, Result, Unavailable, Word
from codec_bench.features.precision_names import parse_precision, suffix
from codec_bench.features.recognisers.pocketsphinx import windows
from codec_bench.weights import find

RATE_HZ = 16_000


@dataclass(frozen=True, slots=True)
class PieceTranscript:
    """What was heard in one piece.

    Args:
        text: the transcript. language: base code of the language in which the recogniser wrote it, empty if it does not
            say.
        fault: why the text cannot be trusted, or an empty string.
    """

    text: str
    language: str = ""
    fault: str = ""


class PiecewiseRecogniser(Feature):
    """A recogniser of transformers that hears signals of at most `whole_s` seconds whole.

    Longer ones are cut, because the time and memory of attention grow with the square of the length. Such a signal is
    cut where it is quietest (0.1 s frames) between the 20th and the 30th second of each piece, each piece is recognised
    by itself, and one space stands between the texts. On a CPU a batch is split into passes of similar length.

    Args:
        model: a key of `models`.
        device: `cpu` or `cuda:N`.
        weights: a folder in the layout of transformers, or a hub id in the local cache, in place of the published one.
        point: `tf32` or `bfloat16`, or None for float32.

    Class attributes
        models: the names of the weights in the catalogue by the names of the recognisers.
        whole_s: how long a signal may be that is heard whole.
    """

    rate_hz = RATE_HZ
    where = "device"
    batch_s: ClassVar[float] = 120.0
    whole_s: float = 60.0
    models: ClassVar[Mapping[str, str]]

    def __init__(self, model: str, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights)
        self.protocol = self.protocol_id(model, point)
        self.name = model
        self._precision = parse_precision(model, point)
        self._folder = find(self.models[model], weights).folder
        self._net: Any = None

    @classmethod
    def protocol_id(cls, model: str, point: str | None = None) -> str:
        """The id of a recogniser. No weights are needed for it.

        Raises:
            UnknownName: no such recogniser. UserError: no such precision.
        """
        if model not in cls.models:
            raise UnknownName("recogniser", model, cls.models)
        return f"{model}/{cls.decoding_id()}{suffix(parse_precision(model, point))}"

    def load(self) -> None:
        """Loads the network, its front end and its tokens.

        Raises:
            WeightsError: they do not fit together, or belong to another kind of model.
        """
        if self._net is None:
            self._net = self._network().to(self.device).eval()

    @abstractmethod
    def _network(self) -> Any:
        """The network on the CPU. It also keeps the front end and the tokens, after it has checked that they fit."""

    @classmethod
    def decoding_id(cls) -> str:
        """The part of a protocol id that says how the recogniser decodes."""
        return f"greedy/whole-to-{cls.whole_s:g}s"

    @property
    @abstractmethod
    def shortest(self) -> int:
        """The number of samples from which a piece has something to be heard in. The network is loaded."""

    @abstractmethod
    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """What is heard in each piece `(samples,)`, of at least `shortest` samples, in the language given for it or
        None.
        """

    def refusal(self, signal: np.ndarray, language: str | None) -> str | None:
        """Why a signal cannot be transcribed, or None."""
        if signal.size < self.shortest:
            return f"the signal has {signal.size} samples; the recogniser needs at least {self.shortest}"
        return None if np.isfinite(signal).all() else "the signal has samples that are not numbers"

    def compute(
        self, signals: Sequence[np.ndarray], languages: Sequence[str | None] | None = None
    ) -> list[Result | Unavailable]:
        """One transcript per signal `(samples,)`, float32 at `rate_hz`.

        Args:
            languages: base code of each signal's language, None where it is not known.
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
        """The result of a signal from what was heard in its pieces, in order."""
        result: Result = {"transcript": joined(parts)}
        if fault := next((transcript.fault for transcript in parts if transcript.fault), ""):
            result["fault"] = fault
        return result

    def timed(self, signal: np.ndarray) -> list[Word]:
        """As `Feature.timed`. Raises `Unavailable` as `refusal` says."""
        self.load()
        if (reason := self.refusal(signal, None)) is not None:
            raise Unavailable(reason)
        out: list[Word] = []
        for start, segment in self._pieces(np.asarray(signal, np.float32)):
            at_s = start / self.rate_hz
            out += [(text, round(at_s + begin, 3), round(at_s + end, 3)) for text, begin, end in self.words(segment)]
        return out

    def words(self, segment: np.ndarray) -> list[Word]:
        """The words of one piece with their times in it, if `times_words`."""
        raise NotImplementedError

    def _pieces(self, signal: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """The signal, or the pieces of a long one in which something can be heard, each with the sample where it
        begins.
        """
        if signal.size <= self.whole_s * self.rate_hz:
            yield 0, signal
            return
        for start, end in windows(signal, self.rate_hz):
            if end - start >= self.shortest:
                yield start, signal[start:end]


def joined(parts: Sequence[PieceTranscript], *, between: str = " ") -> str:
    """One transcript from the texts of the pieces, in order, with a space or nothing between them."""
    return between.join(transcript.text for transcript in parts if transcript.text)
