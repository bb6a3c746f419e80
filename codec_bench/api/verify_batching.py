"""Check that results do not depend on the batch.

A result in a batch may differ from that of the clip alone by 1e-5 relative for features and scores, and by 1e-4 for
waveforms. Codes must be equal in at least 99.99 % of the frames; all differing frames are counted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.audio.resample import prepare, resample
from codec_bench.codecs import require_codec
from codec_bench.codecs.checks.compare import CompareJob, read_clips
from codec_bench.config import check_settings
from codec_bench.config.limits import Limits
from codec_bench.data import open_source, problem_of
from codec_bench.engine.codec_worker import measure
from codec_bench.engine.device import resolve_devices
from codec_bench.engine.stage import compute_feature
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.types import Audio, Score

TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class BatchingResult:
    """Result of `verify_batching`.

    Args:
        kind: `codec`, `feature` or `metric`.
        items: number of clips. shortest_s, longest_s: their lengths in seconds.
        relative: largest difference of a number from that of the clip alone, relative to the largest number of the
            result; None for a codec.
        wave: largest difference of a sample of decoded audio, or None.
        frames, flips: compared and differing code frames; None without codes.
        worst: id of the clip with the largest difference.
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
    options: Mapping[str, Mapping[str, Any]] | None = None, settings: Limits | None = None,
) -> BatchingResult:  # fmt: skip
    """Check that results of a codec, a feature or a metric do not depend on the batch.

    Clips are cut to random lengths and run alone, together in the order of the data, and together in random order,
    padded. A codec also gets unfavourable lengths (a frame, one sample more, silence) and other batch sizes, in its own
    process.

    Args:
        name: of a codec, feature or metric, custom code included.
        data: as for `evaluate`.
        limit: number of clips.
        device: `auto`, `cpu` or `cuda:0`.
        seed: of the lengths and the order.
        options: further arguments, such as {"dnsmos": {"weights": "folder"}}.
        settings: time limit of one call of a codec, and memory limit.

    Raises:
        UserError: there is no such name, the data has fewer than two usable clips, a feature or metric has no value for
            any of them, or the codec cannot be run: it raised, ended its process, did not answer in time, or exceeded
            its memory.

    Examples:
        >>> from codec_bench import verify_batching
        >>> found = verify_batching(name="snr", data="embedded", limit=3)
        >>> found.kind, found.items, found.exact
        ('metric', 3, True)
    """
    check_settings(options or {}, [name], "batched_name_of_check")
    rng = np.random.default_rng(seed)
    chosen = _select_clips(data, limit)
    parts = tuple(float(rng.uniform(0.3, 1.0)) for _ in chosen)
    target = resolve_devices(device)[0]
    arguments = dict((options or {}).get(name, {}))
    if _is_codec(name):
        steps, limits = tuple(CompareJob.SECTIONS), settings or Limits()
        return _verify_codec(CompareJob(name, chosen, target, limits, steps, arguments, parts=parts))
    clips, labels = read_clips(chosen, parts), [id for id, _ in chosen]
    kind, run = _runner(name, clips, target, arguments)
    alone = [run([k])[0] for k in range(len(clips))]
    reasons = [_missing_reason(result) for result in alone]
    if all(reason is not None for reason in reasons):
        raise UserError("batch_without_value", kind=kind, name=name, clips=len(clips), reason=reasons[0])
    orders = [list(range(len(clips))), list(rng.permutation(len(clips)))]
    relative, worst, worst_by = 0.0, labels[0], -1.0
    for order in orders:
        for k, result in zip(order, run(order)):
            size = _difference(alone[k], result)
            relative = max(relative, size)
            if size > worst_by:
                worst, worst_by = labels[k], size
    lengths = [c.duration_s for c in clips]
    lengths_s, is_exact = (min(lengths), max(lengths)), relative <= TOLERANCE
    return BatchingResult(name, kind, len(clips), *lengths_s, relative, None, None, None, worst, is_exact)


def _is_codec(name: str) -> bool:
    """Whether a name is a codec's; custom code is run only if its source is unclear."""
    from codec_bench import codecs
    from codec_bench.config.custom_code import is_custom_code
    from codec_bench.config.registry import declared_methods, load_attribute

    if not is_custom_code(name):
        return codecs.has_codec(name)
    methods = declared_methods(name)
    return bool({"encode", "decode"} & methods) or not hasattr(load_attribute(name), "compute")


def _verify_codec(request: CompareJob) -> BatchingResult:
    """Compare a codec's output alone and in batches, in its own process."""
    require_codec(request.codec)
    with tempfile.TemporaryDirectory() as folder:
        sections = measure(request, Path(folder) / "output.log")
    for section in sections.values():
        if section["state"] == "failed":
            raise UserError("codec_not_run", codec=request.codec, reason=section["reason"])
    result = sections["batches"]
    del result["state"]
    return BatchingResult(name=request.codec, kind="codec", **result)


def _select_clips(data: Any, limit: int) -> tuple[tuple[str, str], ...]:
    usable = [(s.id, s.audio) for s in open_source(data) if s.audio is not None and problem_of(s) is None][:limit]
    if len(usable) < 2:
        raise UserError("few_usable_clips", data=data, clips=len(usable))
    return tuple(usable)


def _runner(
    name: str, clips: Sequence[Audio], device: str, options: dict[str, Any]
) -> tuple[str, Callable[[list[int]], list[Any]]]:
    """Build the function that computes clips as one batch, in any order.

    Returns:
        (`feature` or `metric`, the function from clip numbers to results).
    """
    from codec_bench import codecs, features, metrics
    from codec_bench.config.custom_code import is_custom_code
    from codec_bench.config.registry import Spec, load_attribute

    base = Spec.parse(name).name
    custom = load_attribute(base) if is_custom_code(base) else None
    if base in features.REGISTRY.names() or (hasattr(custom, "compute") and hasattr(custom, "cached")):
        feature = features.load_feature(name, device=device, **options)
        signals = [prepare(c, feature.rate_hz) for c in clips]
        languages = ["en"] * len(signals)
        return "feature", lambda order: compute_feature(feature, [signals[k] for k in order], languages)
    if base in metrics.REGISTRY.names() or base in metrics.GROUPS or hasattr(custom, "compute"):
        return "metric", _metric_runner(name, clips, device, options)
    known = [*codecs.codec_names(), *features.REGISTRY.names(), *metrics.REGISTRY.names()]
    raise UnknownName("batched_name", name, known)


def _metric_runner(
    name: str, clips: Sequence[Audio], device: str, options: Mapping[str, Any]
) -> Callable[[list[int]], list[Any]]:
    """Build the function that scores telephone-band copies of clips against them."""
    from codec_bench.api.load_metric import load_metric

    check_settings(options, ["weights"], f"option of the metric '{name}'")
    metric = load_metric(name, device=device, weights=options.get("weights"))
    # Pair metrics need a difference to measure: the estimate is the clip at telephone bandwidth.
    damaged = [Audio(_telephone(c), c.sample_rate_hz) for c in clips]
    text = "the quick brown fox jumps over the lazy dog"
    pick = lambda sounds, order: [sounds[k] for k in order]  # noqa: E731
    return lambda order: metric(reference=pick(clips, order), estimate=pick(damaged, order), text=text, language="en")


def _telephone(clip: Audio) -> np.ndarray:
    narrow = resample(resample(clip.samples, clip.sample_rate_hz, 7000), 7000, clip.sample_rate_hz)
    return np.pad(narrow, ((0, 0), (0, max(0, clip.num_samples - narrow.shape[1]))))[:, : clip.num_samples]


def _missing_reason(result: Any) -> str | None:
    """Why a result is an error or has no value at all; None if it has one."""
    if isinstance(result, Exception):
        return str(result)
    scores = [one for one in result.values() if isinstance(one, Score)] if isinstance(result, Mapping) else []
    lacking = [str(score.reason) for score in scores if score.value is None]
    return lacking[0] if scores and len(lacking) == len(scores) else None


def _difference(alone: Any, together: Any) -> float:
    """The relative difference of a result alone and in a batch; inf for one exception."""
    if isinstance(alone, Exception) or isinstance(together, Exception):
        return 0.0 if type(alone) is type(together) else float("inf")
    if isinstance(alone, Mapping):
        return max((_relative_difference(alone[k], together[k]) for k in alone), default=0.0)
    return _relative_difference(alone, together)


def _relative_difference(a: Any, b: Any) -> float:
    """The largest difference relative to the largest value of `a`; inf if unlike."""
    if isinstance(a, Score):
        if a.status != b.status:
            return float("inf")
        return 0.0 if a.value is None else _relative_difference(a.value, b.value)
    if isinstance(a, str):
        return 0.0 if a == b else float("inf")
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        return float("inf")
    scale = max(float(np.abs(a).max(initial=0.0)), 1e-12)
    return float(np.abs(a - b).max(initial=0.0)) / scale
