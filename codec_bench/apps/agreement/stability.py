"""Stability: how metrics react to changes that listeners would not mind.

The same coded speech is scored before and after each of `CHANGES`. Shifts are compared with the spread of the metric's
means over five codecs.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.audio.encode import flac_bytes
from codec_bench.audio.resample import to_rate
from codec_bench.config.option import names
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Sample, Score

SYSTEMS = ("opus-6k", "opus-12k", "opus-24k", "amr-nb-12k", "g722")
"""The ranked codecs."""
CLIPS = 3
QUIET_DBFS = -60.0
_MP3 = "mp3@320"
_M4A_BPS = 128_000
_16_BITS, _24_BITS = 2.0**15, 2.0**23


@dataclass(frozen=True, slots=True)
class Change:
    """A small change of the audio that leaves its quality equal to a listener.

    Args:
        both: change reference and estimate, as for a data set in another format; otherwise the estimate alone.
    """

    name: str
    group: str
    apply: Callable[[Audio], Audio]
    both: bool = False


@dataclass(frozen=True, slots=True)
class Stability:
    """The effect of one change on one metric.

    Args:
        n: pairs of scores, over clips and codecs.
        lost: pairs with a value only before the change.
        mean_shift, largest_shift: value after minus before, on average and largest in size; None without values.
        spread: the standard deviation of the metric's means over the codecs.
        places: codecs that would change their rank if they alone were changed.
    """

    metric: str
    change: str
    group: str
    n: int
    lost: int
    mean_shift: float | None
    largest_shift: float | None
    spread: float
    places: int

    @property
    def in_spreads(self) -> float | None:
        """The size of the mean shift in units of the spread; None without either."""
        return None if self.mean_shift is None or not self.spread else abs(self.mean_shift) / self.spread


@dataclass(frozen=True, slots=True)
class StabilityTable:
    """The rows of all metrics and changes, with clips, systems and protocols."""

    rows: list[Stability]
    clips: list[str]
    systems: tuple[str, ...] = SYSTEMS
    protocols: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The table as JSON holds it."""
        rows = [{**asdict(row), "in_spreads": row.in_spreads} for row in self.rows]
        return {"systems": list(self.systems), "clips": self.clips, "protocols": self.protocols, "rows": rows}


def metric_stability(
    metrics: str | Sequence[str], *, data: Any = "embedded", limit: int = CLIPS, device: str = "auto"
) -> StabilityTable:
    """Measure the shift of metrics on coded speech under each change of `CHANGES`.

    Args:
        metrics: names or groups, as on the command line. Statistics of sets are excluded from groups.
        data: as for `evaluate`. Clips should last a second or more, with transcripts where the metrics need them.
        limit: number of clips.

    Returns:
        One row for each metric and change, in order. Shifts are in the metric's unit.

    Raises:
        UserError: a metric is unknown, cannot be measured here, or is a statistic of a set; or there are fewer than two
            clips.

    Examples:
        >>> from codec_bench import metric_stability
        >>> found = metric_stability("snr", limit=2)
        >>> {row.change: row.places for row in found.rows}["polarity turned"]
        4
    """
    from codec_bench.api.load_metric import load_metric
    from codec_bench.data import open_source

    samples = [sample for sample in open_source(data, limit=limit) if sample.audio is not None]
    if len(samples) < 2:
        raise UserError("too_few_clips_with_sound", count=len(samples), hint="give another --data or --limit")
    references = [Audio.read(str(sample.audio)) for sample in samples]
    coded = {system: _through(system, references) for system in SYSTEMS}
    metric = load_metric(",".join(_select_metrics(names(metrics), samples)), device=device)
    before, *after = (_score_clips(metric, samples, references, coded, change) for change in (None, *CHANGES))
    rows = [
        _row(name, change, _of(before, name), _of(scores, name))
        for name in metric.protocols
        for change, scores in zip(CHANGES, after)
    ]
    return StabilityTable(rows, [sample.id for sample in samples], protocols=metric.protocols)


def _select_metrics(chosen: Sequence[str], samples: Sequence[Sample]) -> list[str]:
    """Select metrics that score single clips.

    Raises:
        UserError: a named one scores only sets of clips; in groups these are skipped.
    """
    from codec_bench.metrics import build_metric, expand
    from codec_bench.metrics.groups import GroupConditions, expand_groups, names_group

    metric_names = expand_groups(chosen, GroupConditions.of(samples, coded=False)).metrics
    of_sets = [text for text in metric_names if build_metric(expand([text])[0]).aggregate not in ("mean", "ratio")]
    if refused := [text for text in of_sets if text in chosen and not names_group(text)]:
        raise UserError("no_value_for_one_clip", metric=refused[0])
    return [text for text in metric_names if text not in of_sets]


def _through(system: str, sounds: Sequence[Audio]) -> list[Audio]:
    """Encode and decode audio by a codec, at its original rate and length."""
    from codec_bench.codecs import load_codec
    from codec_bench.codecs.adapt import reconstruct

    items = reconstruct(load_codec(system, device="cpu"), sounds).items
    return [
        _fitted(to_rate(one.estimate, sound.sample_rate_hz), sound.num_samples) for sound, one in zip(sounds, items)
    ]


def _score_clips(
    metric: Any,
    samples: Sequence[Sample],
    references: Sequence[Audio],
    coded: Mapping[str, Sequence[Audio]],
    change: Change | None,
) -> dict[str, list[dict[str, Score]]]:
    """Score each clip by codec, after a change of the audio; None for no change."""
    if change is not None and change.both:
        references = [change.apply(audio) for audio in references]
    by_system: dict[str, list[dict[str, Score]]] = {system: [] for system in coded}
    for sample, reference, *sounds in zip(samples, references, *coded.values()):
        estimates = sounds if change is None else [change.apply(audio) for audio in sounds]
        size = len(estimates)
        scores = metric(
            estimate=estimates, reference=[reference] * size, text=[sample.text] * size, language=sample.language
        )
        for items, score in zip(by_system.values(), scores):
            items.append(score)
    return by_system


def _of(scores: dict[str, list[dict[str, Score]]], name: str) -> dict[str, list[Score]]:
    return {system: [item[name] for item in items] for system, items in scores.items()}


def _row(metric: str, change: Change, before: dict[str, list[Score]], after: dict[str, list[Score]]) -> Stability:
    """Compute a metric's shift by a change, and how many codecs change their rank.

    Args:
        before, after: scores by codec.
    """
    pairs = {
        system: [(one.value, two.value) for one, two in zip(before[system], after[system]) if one.value is not None]
        for system in before
    }
    complete = {system: [(a, b) for a, b in both if b is not None] for system, both in pairs.items()}
    missing = sum(map(len, pairs.values())) - sum(map(len, complete.values()))
    means = {system: fmean(a for a, _ in both) for system, both in complete.items() if both}
    shifts = [b - a for both in complete.values() for a, b in both]
    if not shifts:
        return Stability(metric, change.name, change.group, 0, missing, None, None, 0.0, 0)
    moved = {system: means[system] + fmean(b - a for a, b in complete[system]) for system in means}
    places = sum(_rank_among(means, one, moved[one]) != _rank_among(means, one, means[one]) for one in means)
    facts = (fmean(shifts), max(shifts, key=abs), pstdev(means.values()), places)
    return Stability(metric, change.name, change.group, len(shifts), missing, *facts)


def _rank_among(means: dict[str, float], system: str, value: float) -> int:
    return sum(other < value and not math.isclose(other, value) for name, other in means.items() if name != system)


def _at(rate_hz: int) -> Callable[[Audio], Audio]:
    return lambda audio: to_rate(audio, rate_hz)


def _narrow(audio: Audio) -> Audio:
    return _fitted(to_rate(to_rate(audio, 8_000), audio.sample_rate_hz), audio.num_samples)


def _fitted(audio: Audio, samples: int) -> Audio:
    rows = audio.samples[:, :samples]
    return Audio(np.pad(rows, ((0, 0), (0, samples - rows.shape[1]))), audio.sample_rate_hz)


def _samples(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Audio], Audio]:
    return lambda audio: Audio(change(audio.samples), audio.sample_rate_hz)


def _add_silence(seconds: float, *, noise: bool) -> Callable[[Audio], Audio]:
    """Add equal silence before and after, digital or with quiet noise."""

    def changed(audio: Audio) -> Audio:
        """Return the audio with `seconds` of silence or noise on both sides."""
        size = (audio.channels, round(seconds * audio.sample_rate_hz))
        level = 10 ** (QUIET_DBFS / 20) if noise else 0.0
        sides = np.random.default_rng(0).standard_normal((2, *size)) * level
        return Audio(np.concatenate([sides[0], audio.samples, sides[1]], axis=1), audio.sample_rate_hz)

    return changed


def _late(samples: Callable[[int], int]) -> Callable[[Audio], Audio]:
    def changed(audio: Audio) -> Audio:
        by = samples(audio.sample_rate_hz)
        return Audio(np.pad(audio.samples, ((0, 0), (by, 0)))[:, : audio.num_samples], audio.sample_rate_hz)

    return changed


def _quantise(steps: float, *, dither: bool = False) -> Callable[[np.ndarray], np.ndarray]:
    """Round to whole steps, after triangular noise of one step if dithered."""

    def changed(x: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng(0).random((2, *x.shape)) - 0.5 if dither else np.zeros((2, *x.shape))
        return np.clip(np.round(x * steps + noise.sum(axis=0)), -steps, steps - 1) / steps

    return changed


def _m4a(audio: Audio) -> Audio:
    """Round-trip through an M4A file, at the length that the file states."""
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="ipod") as box:
        stream = box.add_stream("aac", rate=audio.sample_rate_hz, bit_rate=_M4A_BPS)
        stream.layout = "mono" if audio.channels == 1 else "stereo"
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(audio.samples), "fltp", stream.layout)
        frame.sample_rate, frame.pts = audio.sample_rate_hz, 0
        box.mux(stream.encode(frame))
        box.mux(stream.encode(None))
    return Clip(file.getvalue()).read()


CHANGES: Sequence[Change] = (
    *(
        Change(f"{seconds:g} s of {label} before and after", group, _add_silence(seconds, noise=noise), both=True)
        for label, group, noise in (("zeros", "zeros around", False), ("quiet noise", "noise around", True))
        for seconds in (0.5, 1.5, 5.0)
    ),
    Change("6 dB louder", "6 dB", _samples(lambda x: x * 10**0.3)),
    Change("6 dB quieter", "6 dB", _samples(lambda x: x / 10**0.3)),
    Change("a constant of 0.01 added", "constant", _samples(lambda x: x + 0.01)),
    Change("polarity turned", "polarity", _samples(lambda x: -x)),
    Change("one sample later", "one sample", _late(lambda rate: 1)),
    Change("5 ms later", "5 ms", _late(lambda rate: round(0.005 * rate))),
    *(
        Change(f"stored at {rate / 1000:g} kHz", "rate", _at(rate), both=True)
        for rate in (16_000, 22_050, 24_000, 44_100, 48_000)
    ),
    Change("telephone band: brought to 8 kHz and back", "narrow band", _narrow, both=True),
    Change("rounded to 16 bits", "bits", _samples(_quantise(_16_BITS))),
    Change("rounded to 16 bits with dither", "bits", _samples(_quantise(_16_BITS, dither=True))),
    Change("rounded to 24 bits", "bits", _samples(_quantise(_24_BITS))),
    Change("in a FLAC file of 16 bits", "bits", lambda audio: Clip(flac_bytes(audio)).read()),
    Change(
        "floating point with peaks of 1.2",
        "peaks of 1.2",
        _samples(lambda x: x * (1.2 / max(float(np.abs(x).max()), 1e-9))),
    ),
    Change("two equal channels", "channels", _samples(lambda x: np.concatenate([x, x]))),
    Change("through MP3 at 320 kbit/s", "MP3, M4A", lambda audio: _through(_MP3, [audio])[0]),
    Change("in an M4A file, AAC at 128 kbit/s", "MP3, M4A", _m4a),
)
