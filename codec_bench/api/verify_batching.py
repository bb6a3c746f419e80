"""Checks that results do not depend on the batch: each clip alone, and all clips together in two orders.

A result of a batch may differ from that of the clip alone by 1e-5 relative for features and scores, and by 1e-4 for
waveforms. Codes must be equal in at least 99.99 % of the frames; every frame that differs is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from codec_bench.audio.resample import prepare, resample, to_rate
from codec_bench.codecs.adapt import choose_rate, split_channels
from codec_bench.data import open_source, problem_of
from codec_bench.engine.device import resolve_devices
from codec_bench.engine.stage import compute_features
from codec_bench.errors import UnknownName, UserError
from codec_bench.types import Audio, Codes, Score

TOLERANCE = 1e-5
WAVE_TOLERANCE = 1e-4
CODE_SHARE = 0.9999


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `verify_batching` found.

    Args:
        name, kind: what was checked; `kind` is `codec`, `feature` or `metric`.
        items: how many clips. shortest_s, longest_s: their lengths in seconds.
        relative: largest difference of a number from that of the clip alone, relative to the largest number of that
            result; None for a codec.
        wave: largest difference of a sample of decoded audio; None if there is none.
        frames, flips: how many code frames were compared, and how many of them differ; None if there are no codes.
        worst: the id of the clip with the largest difference.
        exact: whether all differences are within the tolerances.
    """

    name: str
    kind: str
    items: int
    shortest_s: float
    longest_s: float
    relative: float | None
    wave: float | None
    frames: int | None
    flips: int | None
    worst: str
    exact: bool

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def verify_batching(
    *, name: str, data: Any = "embedded", limit: int = 12, device: str = "auto", seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Verdict:  # fmt: skip
    """Checks that the results of a codec, a feature or a metric do not depend on the batch.

    The clips are cut to random lengths, so that a batch of them is padded. Each is run alone, then all together in the
    order of the data, then all together in a random order.

    Args:
        name: of a codec, feature or metric, own code included.
        data: as for `evaluate`. limit: how many clips to take. device: `auto`, `cpu` or `cuda:0`.
        seed: of the lengths and the order. options: further arguments, such as {"dnsmos": {"weights": "folder"}}.

    Raises:
        UserError: there is no such name, or the data has fewer than two usable clips.
    """
    rng = np.random.default_rng(seed)
    clips, labels = _clips(data, limit, rng)
    target = resolve_devices(device)[0]
    kind, run = _runner(name, clips, target, dict((options or {}).get(name, {})))
    alone = [run([k])[0] for k in range(len(clips))]
    orders = [list(range(len(clips))), list(rng.permutation(len(clips)))]
    relative = wave = 0.0
    frames = flips = 0
    saw_wave = False
    worst, worst_by = labels[0], -1.0
    for order in orders:
        for k, result in zip(order, run(order)):
            r, w, f, n = _difference(alone[k], result)
            relative, frames, flips = max(relative, r), frames + n, flips + f
            if w is not None:
                wave, saw_wave = max(wave, w), True
            size = max(r, w or 0.0, float(f))
            if size > worst_by:
                worst, worst_by = labels[k], size
    exact = relative <= TOLERANCE and wave <= WAVE_TOLERANCE and (not frames or 1 - flips / frames >= CODE_SHARE)
    lengths = [c.duration_s for c in clips]
    return Verdict(
        name=name,
        kind=kind,
        items=len(clips),
        shortest_s=min(lengths),
        longest_s=max(lengths),
        relative=None if kind == "codec" else relative,
        wave=wave if saw_wave else None,
        frames=frames or None,
        flips=flips if frames else None,
        worst=worst,
        exact=exact,
    )


def _clips(data: Any, limit: int, rng: np.random.Generator) -> tuple[list[Audio], list[str]]:
    clips, labels = [], []
    for sample in open_source(data):
        if problem_of(sample) is not None or sample.audio is None:
            continue
        audio = Audio.read(sample.audio)
        keep = max(1, int(audio.num_samples * rng.uniform(0.3, 1.0)))
        clips.append(Audio(audio.samples[:, :keep], audio.sample_rate_hz))
        labels.append(sample.id)
        if len(clips) == limit:
            break
    if len(clips) < 2:
        raise UserError(f"'{data}' has {len(clips)} usable clips; a batch needs at least 2")
    return clips, labels


def _runner(
    name: str, clips: Sequence[Audio], device: str, options: dict[str, Any]
) -> tuple[str, Callable[[list[int]], list[Any]]]:
    from codec_bench import codecs, features, metrics
    from codec_bench.registry import Spec, is_own_code

    base = Spec.parse(name).name
    own = codecs.REGISTRY.resolve(base) if is_own_code(base) else None
    if base in features.REGISTRY.names() or (own is not None and hasattr(own, "compute") and hasattr(own, "cached")):
        feature = features.load_feature(name, device=device, **options)
        signals = [prepare(c, feature.rate_hz) for c in clips]
        languages = ["en"] * len(signals)
        return "feature", lambda order: compute_features(feature, [signals[k] for k in order], languages)
    if base in metrics.REGISTRY.names() or base in metrics.GROUPS or (own is not None and hasattr(own, "compute")):
        return "metric", _metric_runner(name, clips, device)
    if own is None and not codecs.has_codec(name):
        raise UnknownName(
            "codec, feature or metric",
            name,
            [*codecs.codec_names(), *features.REGISTRY.names(), *metrics.REGISTRY.names()],
        )
    codec = codecs.load_codec(name, device=device, **options)
    info = codec.info
    pieces = []
    for clip in clips:
        ready = to_rate(clip, choose_rate(info.sample_rates_hz, clip.sample_rate_hz))
        pieces.append(split_channels(ready, info.channels)[0])

    def run(order: list[int]) -> list[Any]:
        codes = codec.encode([pieces[k] for k in order])
        return list(zip(codes, codec.decode(codes)))

    return "codec", run


def _metric_runner(name: str, clips: Sequence[Audio], device: str) -> Callable[[list[int]], list[Any]]:
    from codec_bench.api.load_metric import load_metric

    metric = load_metric(name, device=device)
    # Pair metrics need a difference to measure: the estimate is the clip at telephone bandwidth.
    damaged = [Audio(_telephone(c), c.sample_rate_hz) for c in clips]
    texts = ["the quick brown fox jumps over the lazy dog"] * len(clips)

    def run(order: list[int]) -> list[Any]:
        return metric(
            reference=[clips[k] for k in order],
            estimate=[damaged[k] for k in order],
            text=[texts[k] for k in order],
            language="en",
        )

    return run


def _telephone(clip: Audio) -> np.ndarray:
    narrow = resample(resample(clip.samples, clip.sample_rate_hz, 7000), 7000, clip.sample_rate_hz)
    return np.pad(narrow, ((0, 0), (0, max(0, clip.num_samples - narrow.shape[1]))))[:, : clip.num_samples]


def _difference(alone: Any, together: Any) -> tuple[float, float | None, int, int]:
    """How two results differ: (relative, wave, code frames that differ, code frames)."""
    if isinstance(alone, tuple):
        (codes, audio), (codes2, audio2) = alone, together
        flips, frames = _flips(codes, codes2)
        if audio.samples.shape != audio2.samples.shape:
            return float("inf"), float("inf"), flips, frames
        # If codes differ, the waves differ for that reason. They are then not compared.
        same = flips == 0
        wave = float(np.abs(audio.samples - audio2.samples).max(initial=0.0)) if same else 0.0
        return 0.0, wave, flips, frames
    if isinstance(alone, Exception) or isinstance(together, Exception):
        return (0.0 if type(alone) is type(together) else float("inf")), None, 0, 0
    if isinstance(alone, Mapping):
        return max((_relative(alone[k], together[k]) for k in alone), default=0.0), None, 0, 0
    return _relative(alone, together), None, 0, 0


def _flips(codes: Codes, other: Codes) -> tuple[int, int]:
    flips = frames = 0
    for a, b in zip(codes.streams, other.streams):
        a_values, b_values = np.asarray(a.values), np.asarray(b.values)
        frames += a_values.shape[1]
        flips += (
            int((a_values != b_values).any(axis=0).sum()) if a_values.shape == b_values.shape else a_values.shape[1]
        )
    if codes.packets or other.packets:
        frames += len(codes.packets)
        same = sum(a == b for a, b in zip(codes.packets, other.packets))
        flips += max(len(codes.packets), len(other.packets)) - same
    return flips, frames


def _relative(a: Any, b: Any) -> float:
    if isinstance(a, Score):
        if a.status != b.status:
            return float("inf")
        return 0.0 if a.value is None else _relative(a.value, b.value)
    if isinstance(a, str):
        return 0.0 if a == b else float("inf")
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return float("inf")
    scale = max(float(np.abs(a).max(initial=0.0)), 1e-12)
    return float(np.abs(a - b).max(initial=0.0)) / scale
