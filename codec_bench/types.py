"""The values that parts of codec-bench exchange: frozen, with shapes, units.

Audio is float32 `(channels, samples)`, nominally in [-1, 1], always with its sample rate. The name of a bare number
ends in its unit: `_hz`, `_s`, `_bps`, `_db`, `_samples`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from codec_bench.decoding.decode import check_audio, decode_bytes, decoded
from codec_bench.messages import Diagnostic, as_reason, as_remark

if TYPE_CHECKING:
    import os

Built = TypeVar("Built")
Spoken = TypeVar("Spoken")
Status = Literal["ok", "undefined", "failed", "refused", "unparsed"]
"""Of a score; see `store.statuses`."""
LARGEST = 1e100
"""The squares of smaller values can be summed, for a mean and its interval."""
SPOKEN = "text_norm"
"""Column of a manifest, and key of `Sample.extra`, with a transcript whose numbers are written out."""
WORDS, ESTIMATE_WORDS = "words", "estimate_words"
"""Columns with the times of the words of the reference, and of an estimate with other timing."""
TRIALS = "trials"
"""Trials of a sample as the test: ids of the enrolments, each with 1 for one speaker or 0 for two."""
MEASURED_BY = (SPOKEN, WORDS, ESTIMATE_WORDS, TRIALS)
"""Further columns that a metric reads."""


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """A piece of sound.

    Args:
        samples: floats `(channels, samples)`, which become float32; a one-dimensional array is one channel.
        sample_rate_hz: samples per second, without a default: a guessed rate gives wrong numbers.

    Raises:
        ValueError: the samples are integers or no numbers, the array has other than one or two dimensions, or the rate
            is no positive whole number.

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
        """Read a sound of libsndfile or FFmpeg: all channels, at its own rate.

        Args:
            path: of a file; a URL such as `s3://bucket/a.flac`; a locator such as `/data/test.parquet::audio::17` of a
                row of a table, or `/data/a.tar::1536+48044::clip1.flac` of a member of a tar file.

        Raises:
            AudioError: the sound is missing, empty, truncated or not audio, or holds no samples or non-finite ones.
            UserError: the package that reads such URLs is not installed.
        """
        from codec_bench.decoding.read import read_sound  # tables and URLs are slow to import

        return cls(*read_sound(path))

    @classmethod
    def decode(cls, data: bytes, name: str, most_s: float = math.inf) -> Audio:
        """Decode the bytes of a sound file: all channels, at its own rate.

        Args:
            name: of the sound, for messages. most_s: seconds from which a sound is refused.

        Raises:
            AudioError: the bytes are empty, truncated or not audio, or hold no samples or non-finite ones.
        """
        return cls(*decode_bytes(data, name, most_s))

    def check(self, name: str) -> None:
        """Refuse invalid sound: no samples, non-finite or huge ones, an impossible rate.

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
        name: of the content; shown in reports.

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
    """The data that a codec sends for one piece of audio.

    Args:
        streams: the discrete codes; empty for a codec whose output is a bitstream.
        num_samples, sample_rate_hz: samples per channel and rate of the encoded audio; decoded audio has the same
            length.
        packets: the payload of a classical codec, one entry per packet, without the container's overhead.
        side_bits: bits sent in addition to the streams and packets (scales, loudness, headers).
        side: the values of those bits, for the decoder; numbers and arrays only.

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
        """Bits per second: the streams' nominal rates, plus packets and side information."""
        sent = 8 * sum(map(len, self.packets)) + self.side_bits
        return sum(s.nominal_bitrate_bps for s in self.streams) + (sent / self.duration_s if sent else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Latents:
    """The output of a continuous codec's encoder: real vectors in place of `Codes`.

    Real numbers have no number of bits, so `bits` is None and `no_bits` holds the reason.
    `codec_bench.codecs.quantised` rounds them to codes.

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
"""The data that a codec sends for one piece of audio."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One item of a data set; its audio is a path.

    Args:
        id: unique in the data set.
        audio: path of the reference audio; None if there is none (generated speech that has only a text).
        text: the spoken words; None if unknown.
        speaker: None if unknown. Confidence intervals are clustered by speaker.
        language: a code such as `en`; None if unknown.
        estimate: path of generated audio, for `score`.
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
    """A lazily read sound; `codec_bench.audio.clip.Clip` implements it."""

    def read(self) -> Audio:
        """All channels at the sound's own rate; an AudioError if it cannot be read."""
        ...

    def signal(self, rate_hz: int, limit_s: float | None = None) -> tuple[Audio, float]:
        """One channel at a sample rate, cut to at most `limit_s` seconds.

        Returns:
            (audio `(1, samples)`, seconds that were cut off).
        """
        ...

    def once(self, key: Hashable, make: Callable[[], Built]) -> Built:
        """A derived form of the sound, such as an encoded file, cached for all requests.

        Args:
            key: identifies the form. make: makes it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Windows:
    """How to ask about a sound in parts if it is longer than a model takes.

    Args:
        join: `words` joins the answers, as for a transcript or a translation; `vote` takes the most frequent answer,
            the earlier of two; `lines` puts every answer on its own line.
        overlap_s: seconds that a window shares with the previous one. With `words`, common words appear once.
        length_s: the longest window; None for the model's limit.
    """

    join: Literal["words", "vote", "lines"] = "words"
    overlap_s: float = 0.0
    length_s: float | None = None


Wants: TypeAlias = Literal["text", "audio", "likelihood"]
"""Output that a benchmark needs of a model: a text, a sound, or likelihoods of sounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One turn of a conversation.

    Args:
        role: `system`, `user` or `assistant`.
        content: texts and sounds, in order. An empty assistant's turn is a placeholder for an answer
            (`codec_bench.benchmark.asking.rounds`); a model never gets one.

    Examples:
        >>> Message("user", ("What do you hear?",)).content
        ('What do you hear?',)
    """

    role: Literal["system", "user", "assistant"]
    content: tuple[str | Sound, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request to a model about one sample.

    Args:
        id: the id of the sample.
        messages: the conversation; its last turn is the user's. Empty if the prompt fills only fields.
        fields: named inputs for models without conversations (speech synthesis, transcription): `text`, `instruction`,
            `audio`, `prompt_audio`, `prompt_text`, `language`. Sounds are clips.
        wants: the kind of answer; `likelihood` is two numbers (`codec_bench.models.likelihood`).
        parameters: generation parameters (`max_tokens`, `temperature`, `top_p`, `stop`, `seed`) of the benchmark or
            caller.
        windows: how a sound longer than the model's limit is split; None leaves it to the model.

    Examples:
        >>> request = Request("a", (Message("user", ("What do you hear?",)),), parameters={"max_tokens": 64})
        >>> request.wants, request.messages[-1].role
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
    """The fields of an answer; see `Response`. `Spoken`: of a spoken answer."""

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
        """Model and revision that the service reported, or ""."""
        return " ".join(filter(None, (self.served.get("model"), self.served.get("revision"))))


@dataclass(frozen=True, slots=True, eq=False)
class Response(Answered[Audio]):
    """A model's response to one request. A failure is a status with a reason.

    Args:
        status: `ok`; `failed` (the model or the connection failed); `refused` (the model does not take this request).
        reason: a `Diagnostic` for every status except `ok`; a text becomes one with the code `error`.
        text, audio: the written and the spoken answer, or None.
        usage: reported or derived counts: `input_tokens`, `output_tokens`, `cost_usd`. If a service does not report
            which tokens were sound, `cost_usd` is the largest possible cost, and `cost_unsure_usd` its uncertainty.
        latency_s: seconds from the request to the complete answer; in a batch, the batch's time over its items. None if
            the answer came from the cache.
        first_s: seconds from the request to the first piece of a streamed answer, or None.
        finish: why the answer ended, as the model reports it (`stop`, `length`, ...), or None.
        cut_s: seconds of input audio that the model did not get.
        attempts: number of calls. cached: whether the answer came from the cache.
        notes: remarks that are not failures, as `Diagnostic`; a text becomes one with the code `remark`.
        served: what the service reported of itself: `model`, `revision` (its `system_fingerprint` or the like),
            `request` (the id of the request); empty if nothing.
        sound_s: seconds of input audio in all, with those of `cut_s`; None if unknown.
        reasoning: the model's separate reasoning, or None.

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
        """A response to a request that the model or its service declined."""
        return cls(status="refused", reason=reason, **more)


def json_value(value: Any) -> Any:
    """A value with lists and plain numbers in place of arrays, tensors and numpy's numbers."""
    if value is None or isinstance(value, (str, bool, int, float, Diagnostic)):
        return value
    if isinstance(value, Mapping):
        return {str(name): json_value(held) for name, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(held) for held in value]
    if hasattr(value, "tolist"):
        return json_value(value.tolist())
    raise TypeError(f"a result holds {type(value).__name__}; expected numbers, texts, lists and mappings")


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one metric for one item. A failure is a status with a reason.

    Args:
        value: the number; None unless `status` is `ok`.
        status: `ok`; `undefined` (the metric has no value for this item, such as STOI of 50 ms of audio); `failed`
            (computing it failed); `refused` (the metric does not apply to this item); `unparsed` (the answer could not
            be read).
        reason: a `Diagnostic` for every status except `ok`; a text becomes one with the code `error`.
        protocol: the exact measurement, such as `stoi/pystoi-0.4`.
        numerator, denominator: the item's part in a corpus ratio (errors and words, bits and seconds); the value and 1
            by default, for a plain mean.
        detail: further numbers about this item (hits, substitutions, ...), stored in the run record. Its `flag` is a
            `Diagnostic` on a doubtful value; a text becomes one with the code `remark`.

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
        """A score with a value; one that is not finite or too large becomes `failed`.

        Args:
            numerator, denominator: the item's part in a corpus ratio; both or neither (the value and 1).
            detail: further numbers about this item.

        Raises:
            ValueError: there is a numerator without a denominator.
        """
        value = float(value)
        if not all(abs(number) < LARGEST for number in (value, numerator or 0.0, denominator or 0.0)):
            parts = {"numerator": numerator, "denominator": denominator} if numerator is not None else {}
            held = {name: str(number) for name, number in {"value": value, **parts}.items()}  # JSON has no NaN
            return cls.failed(Diagnostic("value_beyond_average", **held), protocol)
        if numerator is None:
            return cls(value, "ok", None, protocol, detail=detail or {})
        if denominator is None:
            raise ValueError(f"a score of '{protocol}' has a numerator and no denominator; give both or neither")
        return cls(value, "ok", None, protocol, float(numerator), float(denominator), detail or {})

    @classmethod
    def of_result(cls, result: Any, protocol: str) -> Score:
        """The result of a custom metric as a score that a record can hold.

        A number becomes an `ok` score. Arrays and numpy's numbers in `detail` become lists and numbers. A score by
        another protocol fails, because the record averages all scores of a metric.

        Args:
            protocol: of the metric.

        Raises:
            TypeError, ValueError: it is no number and no score, or its detail holds another type.
        """
        if not isinstance(result, cls):
            return cls.ok(result, protocol)
        score = replace(result, detail={str(name): json_value(held) for name, held in result.detail.items()})
        if score.status != "ok":
            return score
        if score.value is None:
            raise ValueError("a score that is ok has no value")
        if score.protocol not in (protocol, protocol.partition("/weights=")[0]):  # the plan adds the name of weights
            return cls.failed(
                Diagnostic("score_of_other_protocol", protocol=score.protocol, expected=protocol), protocol
            )
        parts = {"numerator": score.numerator, "denominator": score.denominator}
        return cls.ok(score.value, score.protocol, **parts, detail=score.detail)

    def counting_wrong(self, worst: Score | None) -> Score:
        """The score with its part in a corpus value if failures count as the worst value.

        `detail["wrong"]` holds the parts of `worst`. A score with a value, or without a worst one, stays as it is.
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
