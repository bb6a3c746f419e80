"""The values that travel between rooms: frozen, with shapes and units.

Conventions
    Audio is float32 `(channels, samples)`, nominally in [-1, 1], always with its rate.
    Bare numbers carry their unit as a suffix: `_hz`, `_s`, `_bps`, `_db`, `_samples`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import os

    from codec_bench.audio.clip import Clip

Status = Literal["ok", "undefined", "failed", "refused", "unparsed"]
SPOKEN = "text_norm"
"""The column of a manifest, and the key of `Sample.extra`, that holds a transcript with its numbers written out."""


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """A piece of sound.

    Args:
        samples: float32 `(channels, samples)`; a one-dimensional array is taken as one channel.
        sample_rate_hz: its rate. It has no default: a guessed rate is a wrong number.

    Raises:
        ValueError: the array has no or more than two dimensions, or the rate is not positive.
    """

    samples: np.ndarray
    sample_rate_hz: int

    def __post_init__(self) -> None:
        samples = np.asarray(self.samples)
        if samples.ndim == 1:
            samples = samples[None, :]
        if samples.ndim != 2:
            raise ValueError(f"audio has shape {samples.shape}; expected (channels, samples)")
        if self.sample_rate_hz <= 0:
            raise ValueError(f"the sample rate is {self.sample_rate_hz}; expected a positive number of Hz")
        object.__setattr__(self, "samples", np.ascontiguousarray(samples, dtype=np.float32))
        object.__setattr__(self, "sample_rate_hz", int(self.sample_rate_hz))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Audio:
        """Reads a sound file (any format libsndfile or FFmpeg knows), all channels, at its own rate.

        Raises:
            AudioError: the file is missing, empty, truncated or not audio.
        """
        from codec_bench.audio.decode import read_audio  # the one upward reference: reading needs the audio room

        return read_audio(path)

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
        frame_rate_hz: frames per second of audio; 0 for codes sent once per utterance.
        name: what the stream carries, for reports.
    """

    values: np.ndarray
    cardinality: int
    frame_rate_hz: float
    name: str = "codes"

    @property
    def bits(self) -> float:
        """Bits that these codes take when packed."""
        return self.values.size * math.log2(self.cardinality)

    @property
    def nominal_bitrate_bps(self) -> float:
        """Bits per second that this stream takes while it runs."""
        return self.values.shape[0] * self.frame_rate_hz * math.log2(self.cardinality)


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """What a codec sends for one piece of audio.

    Args:
        streams: the discrete codes; empty for a codec whose output is a bitstream.
        num_samples: length of the audio that was encoded, per channel, so that decoding can give it back.
        sample_rate_hz: rate of the audio that was encoded.
        packets: a classical codec's payload, one entry a packet, container overhead left out.
        side_bits: bits beside the streams and packets (scales, loudness, headers that must be sent).
        side: the values those bits carry, for the decoder (numbers and arrays only).
    """

    streams: tuple[CodeStream, ...]
    num_samples: int
    sample_rate_hz: int
    packets: tuple[bytes, ...] = ()
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
        """Rate of the streams; for a bitstream and for side information, the bits sent over the duration."""
        sent = 8 * sum(map(len, self.packets)) + self.side_bits
        return sum(s.nominal_bitrate_bps for s in self.streams) + (sent / self.duration_s if sent else 0.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """One item of a data set, named and not yet decoded.

    Args:
        id: unique in the data set.
        audio: path of the reference audio, or None where there is none (generated speech with a text only).
        text: what is said, or None.
        speaker: who says it, or None; intervals are clustered by it.
        language: code such as `en`, or None.
        estimate: path of audio made elsewhere, for `score`.
        extra: the manifest's other columns.
    """

    id: str
    audio: str | None
    text: str | None = None
    speaker: str | None = None
    language: str | None = None
    estimate: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One turn of a conversation.

    Args:
        role: `system`, `user` or `assistant`.
        content: texts and sounds, in order.
    """

    role: Literal["system", "user", "assistant"]
    content: tuple[str | Clip, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What a model is asked about one sample.

    Args:
        id: the sample's.
        messages: the conversation; the last turn is the user's. Empty for a prompt that only fills fields.
        fields: named inputs for models that are not asked in words (speech synthesis, transcription): `text`,
            `instruction`, `audio`, `prompt_audio`, `prompt_text`, `language`; sounds are clips.
        wants: what the benchmark needs back.
        parameters: of the generation (`max_tokens`, `temperature`, `top_p`, `stop`, `seed`), where the benchmark or the
            caller sets them.
    """

    id: str
    messages: tuple[Message, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    wants: Literal["text", "audio"] = "text"
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """What a model gave back for one request. A failure is a status with a reason, never an empty answer.

    Args:
        status: ok; failed (the model or the way to it broke); refused (the model does not take this request).
        reason: one sentence, for every status but ok.
        text: what it wrote, or None.
        audio: what it said, or None.
        usage: counts that were reported or derived: `input_tokens`, `output_tokens`, `cost_usd`.
        latency_s: from the request to the whole answer; for a batch, its time over its items. None from a cache.
        first_s: from the request to the first piece of a streamed answer, or None.
        finish: why it ended as the model says it (`stop`, `length`, ...), or None.
        cut_s: seconds of input audio that the model was not given, 0 where it heard all.
        attempts: how often it was asked. cached: whether the answer came from the cache.
        notes: things worth knowing that are not failures.
    """

    status: Status = "ok"
    reason: str | None = None
    text: str | None = None
    audio: Audio | None = None
    usage: Mapping[str, float] = field(default_factory=dict)
    latency_s: float | None = None
    first_s: float | None = None
    finish: str | None = None
    cut_s: float = 0.0
    attempts: int = 1
    cached: bool = False
    notes: tuple[str, ...] = ()

    @classmethod
    def failed(cls, reason: str, **more: Any) -> Response:
        """The model, or the way to it, broke."""
        return cls(status="failed", reason=reason, **more)

    @classmethod
    def refused(cls, reason: str, **more: Any) -> Response:
        """The model does not take such a request, or declined it as a service."""
        return cls(status="refused", reason=reason, **more)


@dataclass(frozen=True, slots=True)
class Score:
    """One metric's verdict on one item. A failure is a status with a reason, never a number.

    Args:
        value: the number, or None unless `status` is ok.
        status: ok; undefined (the metric has no value here, as STOI of 50 ms); failed (something broke);
            refused (the metric does not apply here); unparsed (an answer that could not be read).
        reason: one sentence, for every status but ok.
        protocol: which exact measurement this is, such as `stoi/pystoi-0.4`.
        numerator, denominator: what this item adds to a corpus ratio (errors and words, bits and seconds);
            for a plain mean, the value and 1.
        detail: further numbers of this item (hits, substitutions, ...), for the record.
    """

    value: float | None
    status: Status
    reason: str | None
    protocol: str
    numerator: float | None = None
    denominator: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def ok(
        cls,
        value: float,
        protocol: str,
        *,
        numerator: float | None = None,
        denominator: float | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Score:
        """A number. One that is not finite becomes `failed`: nothing may average it."""
        value = float(value)
        if not math.isfinite(value):
            return cls.failed(f"the metric returned {value}", protocol)
        if numerator is None:
            numerator, denominator = value, 1.0
        return cls(value, "ok", None, protocol, float(numerator), float(denominator), detail or {})

    @classmethod
    def undefined(cls, reason: str, protocol: str) -> Score:
        """The metric has no value for this input."""
        return cls(None, "undefined", reason, protocol)

    @classmethod
    def failed(cls, reason: str, protocol: str) -> Score:
        """Something broke while computing it."""
        return cls(None, "failed", reason, protocol)

    @classmethod
    def refused(cls, reason: str, protocol: str) -> Score:
        """The metric does not apply to this input and was not computed."""
        return cls(None, "refused", reason, protocol)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A ratio of sums that can be added: merging parts equals the whole.

    A corpus word error rate is errors over words, a mean is the sum of values over their number, an average
    bitrate is bits over seconds. `count` items entered; `missing` says, per status, how many did not.
    """

    numerator: float = 0.0
    denominator: float = 0.0
    count: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def zero(cls) -> Statistic:
        """The statistic of nothing: adding it changes nothing."""
        return cls()

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Statistic:
        """The statistic of these scores."""
        missing: dict[str, int] = {}
        good = [s for s in scores if s.status == "ok"]
        for score in scores:
            if score.status != "ok":
                missing[score.status] = missing.get(score.status, 0) + 1
        return cls(math.fsum(s.numerator for s in good), math.fsum(s.denominator for s in good), len(good), missing)

    def __add__(self, other: Statistic) -> Statistic:
        missing = dict(self.missing)
        for status, n in other.missing.items():
            missing[status] = missing.get(status, 0) + n
        return Statistic(
            self.numerator + other.numerator, self.denominator + other.denominator, self.count + other.count, missing
        )

    @property
    def value(self) -> float | None:
        """The ratio, or None where nothing entered it."""
        return self.numerator / self.denominator if self.denominator else None
