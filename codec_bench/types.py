"""The values that the parts of codec-bench pass to each other: frozen, with shapes and units.

Conventions
    Audio is float32 `(channels, samples)`, nominally in [-1, 1]. It always carries its sample rate.
    The name of a bare number ends in its unit: `_hz`, `_s`, `_bps`, `_db`, `_samples`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from codec_bench.decoding.decode import check_audio, decoded
from codec_bench.messages import Diagnostic, as_reason, as_remark

if TYPE_CHECKING:
    import os

Built = TypeVar("Built")
Spoken = TypeVar("Spoken")
Status = Literal["ok", "undefined", "failed", "refused", "unparsed"]
"""Of a score; `store.statuses` says what follows from each."""
LARGEST = 1e100
"""The squares of smaller values can be summed, which a mean and its interval need."""
SPOKEN = "text_norm"
"""The column of a manifest, and the key of `Sample.extra`, that holds a transcript with its numbers written out."""
WORDS, ESTIMATE_WORDS = "words", "estimate_words"
"""The columns that hold when each word of the reference, and of an estimate with a timing of its own, is said."""
TRIALS = "trials"
"""What a list of trials says of a sample as the test: the ids of the enrolments, each with 1 for one speaker or 0 for
two.
"""
MEASURED_BY = (SPOKEN, WORDS, ESTIMATE_WORDS, TRIALS)
"""The further columns that a metric reads."""
FLAG_FROM = "flag_from"
"""The key in the detail of a score beside its `flag`: that flag is counted beside a value only from more than this
share of the scores.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """A piece of sound.

    Args:
        samples: floats `(channels, samples)`, which become float32; a one-dimensional array is taken as one channel.
        sample_rate_hz: samples per second. It has no default, because a guessed rate gives wrong numbers.

    Raises:
        ValueError: the samples are integers or no numbers, the array has neither one nor two dimensions, or the rate is
            no positive whole number.

    Examples:
        >>> sound = Audio(np.zeros(8000), 16000)
        >>> sound.samples.shape, sound.channels, sound.duration_s
        ((1, 8000), 1, 0.5)
    """

    samples: np.ndarray
    sample_rate_hz: int

    def __post_init__(self) -> None:
        audio = decoded(self.samples, self.sample_rate_hz)
        object.__setattr__(self, "samples", audio.samples)
        object.__setattr__(self, "sample_rate_hz", audio.sample_rate_hz)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Audio:
        """Reads a sound in any format that libsndfile or FFmpeg knows: all channels, at its own rate.

        Args:
            path: the path of a file; a URL such as `s3://bucket/a.flac`; a locator such as
                `/data/test.parquet::audio::17` of a row of a table, or `/data/a.tar::1536+48044::clip1.flac` of a
                member of a tar file.

        Raises:
            AudioError: the sound is missing, empty, truncated or not audio, or it holds no samples or samples that are
                not finite.
            UserError: the package that reads such URLs is not installed.
        """
        from codec_bench.decoding.read import read_sound  # tables and URLs are slow to import

        return cls(*read_sound(path))

    def check(self, name: str) -> None:
        """Refuses what is not sound: no samples, samples that are not finite or far beyond full scale, an impossible
        rate.

        Raises:
            AudioError: the message names the item by `name`, and the rate or the first bad sample.
        """
        check_audio(self, name)

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.samples.shape[0]

    @property
    def num_samples(self) -> int:
        """Samples per channel."""
        return self.samples.shape[1]

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.num_samples / self.sample_rate_hz


@dataclass(frozen=True, slots=True, eq=False)
class CodeStream:
    """One stream of discrete codes.

    Args:
        values: integers `(codebooks, frames)`, each in [0, cardinality).
        cardinality: entries per codebook.
        frame_rate_hz: frames per second of audio; 0 for codes that are sent once per utterance.
        name: what the stream carries; shown in reports.

    Examples:
        >>> stream = CodeStream(np.zeros((8, 75), int), cardinality=1024, frame_rate_hz=75.0)
        >>> stream.bits, stream.nominal_bitrate_bps
        (6000.0, 6000.0)
    """

    values: np.ndarray
    cardinality: int
    frame_rate_hz: float
    name: str = "codes"

    @property
    def bits(self) -> float:
        """Number of bits of all codes, each packed in log2(cardinality) bits."""
        return self.values.size * math.log2(self.cardinality)

    @property
    def nominal_bitrate_bps(self) -> float:
        """Bits per second: codebooks times frame rate times log2(cardinality)."""
        return self.values.shape[0] * self.frame_rate_hz * math.log2(self.cardinality)


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """What a codec sends for one piece of audio.

    Args:
        streams: the discrete codes; empty for a codec whose output is a bitstream.
        num_samples: samples per channel of the audio that was encoded; the decoded audio has the same length.
        sample_rate_hz: sample rate of the audio that was encoded.
        packets: the payload of a classical codec, one entry per packet, without the container's overhead.
        side_bits: bits sent in addition to the streams and packets (scales, loudness, headers).
        side: the values that those bits carry, for the decoder; numbers and arrays only.

    Examples:
        >>> stream = CodeStream(np.zeros((8, 75), int), cardinality=1024, frame_rate_hz=75.0)
        >>> sent = Codes((stream,), num_samples=24000, sample_rate_hz=24000, side_bits=64)
        >>> sent.bits, sent.duration_s, sent.nominal_bitrate_bps
        (6064.0, 1.0, 6064.0)
    """

    streams: tuple[CodeStream, ...]
    num_samples: int
    sample_rate_hz: int
    packets: tuple[bytes, ...] = field(default=(), repr=False)
    side_bits: float = 0.0
    side: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bits(self) -> float:
        """All bits sent: packed codes, packets and side information."""
        return sum(s.bits for s in self.streams) + 8 * sum(map(len, self.packets)) + self.side_bits

    @property
    def duration_s(self) -> float:
        """Length of the encoded audio in seconds."""
        return self.num_samples / self.sample_rate_hz

    @property
    def nominal_bitrate_bps(self) -> float:
        """Bits per second: the streams' nominal rates, plus the bits of packets and side information over the duration."""
        sent = 8 * sum(map(len, self.packets)) + self.side_bits
        return sum(s.nominal_bitrate_bps for s in self.streams) + (sent / self.duration_s if sent else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Latents:
    """What a continuous codec makes of one piece of audio: vectors of real numbers, where a discrete codec has `Codes`.

    Real numbers have no number of bits, so `bits` is None and `no_bits` says why. `codec_bench.codecs.quantised` rounds
    them to codes that have one.

    Args:
        values: floats `(dimensions, frames)`.
        frame_rate_hz: frames per second of audio.
        num_samples, sample_rate_hz, side: as of `Codes`.

    Examples:
        >>> made = Latents(np.zeros((32, 25), np.float32), 12.5, num_samples=48000, sample_rate_hz=24000)
        >>> made.bits, made.no_bits
        (None, 'it is not discrete: its 32 real numbers 12.5 times a second have no bitrate')
    """

    values: np.ndarray
    frame_rate_hz: float
    num_samples: int
    sample_rate_hz: int
    side: Mapping[str, Any] = field(default_factory=dict)
    streams: ClassVar[tuple[CodeStream, ...]] = ()
    packets: ClassVar[tuple[bytes, ...]] = ()
    bits: ClassVar[float | None] = None

    @property
    def no_bits(self) -> Diagnostic:
        """Why there is no bitrate."""
        return not_discrete(len(self.values), self.frame_rate_hz)

    @property
    def duration_s(self) -> float:
        """Length of the encoded audio in seconds."""
        return self.num_samples / self.sample_rate_hz


def not_discrete(dimensions: int, frame_rate_hz: float) -> Diagnostic:
    """Why latents have no bitrate."""
    return Diagnostic("not_discrete", dimensions=dimensions, frame_rate_hz=frame_rate_hz)


Sent: TypeAlias = Codes | Latents
"""What a codec sends for one piece of audio."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One item of a data set. It names its audio, which is not decoded yet.

    Args:
        id: unique in the data set.
        audio: path of the reference audio; None if there is none (generated speech that has only a text).
        text: the words that are spoken; None if unknown.
        speaker: who speaks; None if unknown. Confidence intervals are clustered by speaker.
        language: a code such as `en`; None if unknown.
        estimate: path of audio that was made elsewhere, for `score`.
        extra: the other columns of the manifest.

    Examples:
        >>> sample = Sample("a", "a.flac", text="a cat sat", speaker="ann", language="en")
        >>> sample.speaker, sample.estimate is None
        ('ann', True)
    """

    id: str
    audio: str | None
    text: str | None = None
    speaker: str | None = None
    language: str | None = None
    estimate: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Sound(Protocol):
    """A sound that is read when it is needed. `codec_bench.audio.clip.Clip` implements it."""

    def read(self) -> Audio:
        """All channels at the sound's own rate.

        Raises:
            AudioError: the sound cannot be read.
        """
        ...

    def signal(self, rate_hz: int, limit_s: float | None = None) -> tuple[Audio, float]:
        """One channel at a sample rate, cut to a length.

        Args:
            rate_hz: the rate wanted.
            limit_s: keep at most this many seconds from the start; None keeps all.

        Returns:
            (audio `(1, samples)`, seconds that were cut off).
        """
        ...

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """What is made of the sound, such as an encoded file; made once where several requests share the sound.

        Args:
            key: tells it from other things that are made of the sound. make: makes it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Windows:
    """How a sound that is longer than a model takes is asked about in parts, and how the answers to the parts become
    one.

    Args:
        join: `words` puts the answers in a row, as for a transcript or a translation; `vote` takes the answer that most
            windows gave, the earlier one of two; `lines` puts every answer on a line of its own.
        overlap_s: seconds that a window shares with the one before it. With `words`, what both windows say of them is
            kept once.
        length_s: the longest window; None for the longest that the model takes.
    """

    join: Literal["words", "vote", "lines"] = "words"
    overlap_s: float = 0.0
    length_s: float | None = None


Wants: TypeAlias = Literal["text", "audio", "likelihood"]
"""What a benchmark needs of a model: a text, a sound, or how likely sounds are to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One turn of a conversation.

    Args:
        role: `system`, `user` or `assistant`.
        content: texts and sounds, in order. An assistant's turn without any stands for an answer that is still to be
            given (`codec_bench.benchmark.asking.rounds`); a model never gets one.

    Examples:
        >>> Message("user", ("What do you hear?",)).content
        ('What do you hear?',)
    """

    role: Literal["system", "user", "assistant"]
    content: tuple[str | Sound, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What a model is asked about one sample.

    Args:
        id: the id of the sample.
        messages: the conversation; its last turn is the user's. Empty if the prompt fills only fields.
        fields: named inputs for models that take no conversation (speech synthesis, transcription): `text`,
            `instruction`, `audio`, `prompt_audio`, `prompt_text`, `language`. Sounds are clips.
        wants: the kind of answer that the benchmark needs; `likelihood` is two numbers
            (`codec_bench.models.likelihood`).
        parameters: generation parameters (`max_tokens`, `temperature`, `top_p`, `stop`, `seed`) that the benchmark or
            the caller sets.
        windows: how a sound that is longer than the model takes is asked about in parts; None leaves it to the model.

    Examples:
        >>> asked = Request("a", (Message("user", ("What do you hear?",)),), parameters={"max_tokens": 64})
        >>> asked.wants, asked.messages[-1].role
        ('text', 'user')
    """

    id: str
    messages: tuple[Message, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    wants: Wants = "text"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    windows: Windows | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Answered(Generic[Spoken]):
    """The fields of an answer; `Response` explains them. `Spoken` is what a spoken answer is held as."""

    status: Status = "ok"
    reason: str | None = None
    text: str | None = None
    audio: Spoken | None = None
    usage: Mapping[str, float] = field(default_factory=dict)
    latency_s: float | None = None
    first_s: float | None = None
    finish: str | None = None
    cut_s: float = 0.0
    attempts: int = 1
    cached: bool = False
    notes: tuple[str, ...] = ()
    served: Mapping[str, str] = field(default_factory=dict)
    sound_s: float | None = None
    reasoning: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.reason, str):
            object.__setattr__(self, "reason", as_reason(self.reason))
        if isinstance(self.notes, tuple | list) and all(isinstance(note, str) for note in self.notes):
            object.__setattr__(self, "notes", tuple(map(as_remark, self.notes)))

    @property
    def code(self) -> str | None:
        """The code of the reason."""
        return self.reason.code if isinstance(self.reason, Diagnostic) else None

    @property
    def state(self) -> str:
        """What the service called the model that answered, with the state that it named; "" if it named neither."""
        return " ".join(filter(None, (self.served.get("model"), self.served.get("revision"))))


@dataclass(frozen=True, slots=True, eq=False)
class Response(Answered[Audio]):
    """What a model gave back for one request. A failure is a status with a reason, never an empty answer.

    Args:
        status: `ok`; `failed` (the model or the connection to it failed); `refused` (the model does not take this
            request).
        reason: a `Diagnostic` for every status except `ok`; a text becomes one with the code `error`.
        text: the written answer, or None.
        audio: the spoken answer, or None.
        usage: counts that were reported or derived: `input_tokens`, `output_tokens`, `cost_usd`. Where a service does
            not say which tokens were sound, `cost_usd` is the most that the answer cost, and `cost_unsure_usd` by how
            much it may be less.
        latency_s: seconds from the request to the complete answer. In a batch: the time of the batch divided by its
            number of items. None if the answer came from the cache.
        first_s: seconds from the request to the first piece of a streamed answer, or None.
        finish: why the answer ended, as the model reports it (`stop`, `length`, ...), or None.
        cut_s: seconds of input audio that the model was not given; 0 if it was given all of it.
        attempts: how often the model was asked. cached: whether the answer came from the cache.
        notes: remarks that are not failures, as `Diagnostic`; a text becomes one with the code `remark`.
        served: what the service said of itself with this answer: `model`, `revision` (its `system_fingerprint` or the
            like), `request` (the id of the request); empty if it said nothing, or if no service answered.
        sound_s: seconds of input audio in all, those of `cut_s` included; None if it is not known.
        reasoning: what the model thought before its answer, where that came apart from it; None if nothing did.

    Examples:
        >>> Response(text="a dog").status, Response.failed("the model has no answer").reason
        ('ok', 'the model has no answer')
    """

    @classmethod
    def failed(cls, reason: str, **more: Any) -> Response:
        """A response for a request whose model, or the connection to it, failed."""
        return cls(status="failed", reason=reason, **more)

    @classmethod
    def refused(cls, reason: str, **more: Any) -> Response:
        """A response for a request that the model does not take, or that its service declined."""
        return cls(status="refused", reason=reason, **more)


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one metric for one item. A failure is a status with a reason, never a number.

    Args:
        value: the number; None unless `status` is `ok`.
        status: `ok`; `undefined` (the metric has no value for this item, such as STOI of 50 ms of audio); `failed`
            (computing it failed); `refused` (the metric does not apply to this item); `unparsed` (the answer could not
            be read).
        reason: a `Diagnostic` for every status except `ok`; a text becomes one with the code `error`. `code` and
            `parameters` are its code and parameters, and as a text it is a sentence.
        protocol: the exact measurement, such as `stoi/pystoi-0.4`.
        numerator, denominator: what this item adds to a corpus ratio (errors and words, bits and seconds);
            for a plain mean, the value and 1, which a score with a value has if neither is given.
        detail: further numbers about this item (hits, substitutions, ...), kept in the run record. Its `flag` is a
            `Diagnostic` that says why the value is in doubt; a text becomes one with the code `remark`.

    Examples:
        >>> score = Score.ok(0.2, "wer/mine-1", numerator=1, denominator=5)
        >>> score.value, score.status, Score.failed("the line was down", "wer/mine-1").value
        (0.2, 'ok', None)
    """

    value: float | None
    status: Status
    reason: str | None
    protocol: str
    numerator: float | None = None
    denominator: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.value is not None and self.numerator is None and self.denominator is None:
            object.__setattr__(self, "numerator", self.value)
            object.__setattr__(self, "denominator", 1.0)
        object.__setattr__(self, "reason", as_reason(self.reason))
        flag = self.detail.get("flag")
        if isinstance(flag, str) and not isinstance(flag, Diagnostic):
            object.__setattr__(self, "detail", {**self.detail, "flag": as_remark(flag)})

    @property
    def code(self) -> str | None:
        """The code of the reason; None for a score that is ok."""
        return self.reason.code if isinstance(self.reason, Diagnostic) else None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the reason."""
        return self.reason.parameters if isinstance(self.reason, Diagnostic) else {}

    @classmethod
    def ok(
        cls, value: float, protocol: str, *, numerator: float | None = None, denominator: float | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Score:  # fmt: skip
        """A score with a value. A value that is not finite, or too large to be averaged, gives a `failed` score, so
        that no average includes it.

        Args:
            value: the number.
            protocol: the exact measurement.
            numerator, denominator: what the item adds to a corpus ratio; both or neither. Without them: the value and
                1.
            detail: further numbers about this item.

        Raises:
            ValueError: a numerator was given without a denominator.
        """
        value = float(value)
        if not all(abs(number) < LARGEST for number in (value, numerator or 0.0, denominator or 0.0)):
            parts = "" if numerator is None else f" from {numerator} over {denominator}"
            return cls.failed(f"the metric returned {value}{parts}, which no average can hold", protocol)
        if numerator is None:
            return cls(value, "ok", None, protocol, detail=detail or {})
        if denominator is None:
            raise ValueError(f"a score of '{protocol}' has a numerator and no denominator; give both or neither")
        return cls(value, "ok", None, protocol, float(numerator), float(denominator), detail or {})

    def counting_wrong(self, worst: Score | None) -> Score:
        """The same score, with what the item adds to a corpus value where failures count as the worst value.

        Its `detail["wrong"]` holds the parts of `worst`, the worst score that this item could have. A score that has a
        value stays as it is, and so does every score if there is no worst one.
        """
        if self.value is not None or worst is None or worst.status != "ok":
            return self
        parts = worst.detail.get("counts")
        if parts is None:
            if worst.numerator is None or worst.denominator is None:
                return self
            parts = (worst.numerator, worst.denominator)
        return replace(self, detail={**self.detail, "wrong": [float(number) for number in parts]})

    @classmethod
    def undefined(cls, reason: str, protocol: str) -> Score:
        """The metric has no value for this input."""
        return cls(None, "undefined", reason, protocol)

    @classmethod
    def failed(cls, reason: str, protocol: str) -> Score:
        """Computing the metric failed for this input."""
        return cls(None, "failed", reason, protocol)

    @classmethod
    def refused(cls, reason: str, protocol: str) -> Score:
        """The metric does not apply to this input, and was not computed."""
        return cls(None, "refused", reason, protocol)

    @classmethod
    def unparsed(cls, reason: str, protocol: str, *, detail: Mapping[str, Any] | None = None) -> Score:
        """The answer, or the judge's reply, could not be read."""
        return cls(None, "unparsed", reason, protocol, detail=detail or {})
