"""From the metrics asked for to what must be computed for them: signals, features and stages.

Conventions
    Rates are in Hz. `NATIVE` stands for the reference's own rate, which differs from sample to sample.
    Each codec is a stage and each feature is a stage. All metrics that read only signals are one stage together, so that
    the audio of an item is sent to one worker once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codec_bench.audio.resample import SIGNALS
from codec_bench.engine.stage import StageSpec
from codec_bench.errors import UnknownName, UserError
from codec_bench.features import load_feature
from codec_bench.metrics import build_metric, expand
from codec_bench.metrics.base import Metric
from codec_bench.weights import noting

NATIVE = 0
UNPROCESSED = "unprocessed"
GENERATED = "generated"


@dataclass(frozen=True, slots=True)
class System:
    """A row of the result: a codec, the unchanged audio (`unprocessed`), or audio made elsewhere (`generated`).

    Args:
        stage: the codec's stage; None for the other two.
    """

    name: str
    stage: StageSpec | None

    @property
    def from_files(self) -> bool:
        """Whether its estimates are read from files."""
        return self.stage is None and self.name != UNPROCESSED


@dataclass(frozen=True, slots=True)
class FeaturePlan:
    """A feature that the run needs.

    Args:
        stage: how it is built. rate_hz: of the signals that it reads. where: `device` or `cpu`.
        batch_s: padded seconds of a batch. cache_id: its part of the cache key; None if its results are not cached.
        reads_language: whether it is told the language of a sample.
    """

    name: str
    stage: StageSpec
    rate_hz: int
    where: str
    batch_s: float
    cache_id: str | None
    reads_language: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run computes."""

    systems: tuple[System, ...]
    metrics: Mapping[str, Metric]
    features: Mapping[str, FeaturePlan]
    signal_metrics: tuple[str, ...]
    feature_metrics: tuple[str, ...]
    inline_metrics: tuple[str, ...]
    estimate_features: tuple[str, ...]
    reference_features: tuple[str, ...]
    estimate_rates: frozenset[int]
    reference_rates: frozenset[int]

    def rates(self, side: str, native_hz: int) -> frozenset[int]:
        """The rates at which one side (`estimate` or `reference`) of a sample is needed."""
        wanted = self.estimate_rates if side == "estimate" else self.reference_rates
        return frozenset(rate or native_hz for rate in wanted)

    @property
    def needs_codec_audio(self) -> bool:
        """Whether any system codes the reference audio."""
        return any(s.stage is not None for s in self.systems)


def build_plan(
    systems: Sequence[str],
    metrics: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    languages: Iterable[str | None] | None = None,
) -> Plan:
    """Makes the plan.

    Args:
        systems: names of codecs, `unprocessed`, or `generated`.
        metrics: names of metrics and groups.
        options: arguments by codec or feature name, such as {"dnsmos": {"weights": "path"}}.
        languages: of the samples; features that none of these languages needs are left out. None: of any language.

    Raises:
        UserError: a name is unknown or given twice, a package is missing, or an option is for a name that is not in the run.
    """
    _check_names(systems, metrics)
    built = {name: build_metric(name) for name in expand(list(metrics))}
    rows = tuple(
        System(n, None if n in (UNPROCESSED, GENERATED) else StageSpec(n, "codec", (n,), dict(options.get(n, {}))))
        for n in systems
    )
    estimate_features, reference_features = _features(list(built.values()), languages)
    features = {f: _plan_feature(f, options) for f in dict.fromkeys([*estimate_features, *reference_features])}
    for metric in built.values():
        for name in features_read(metric):
            weights = options.get(name, {}).get("weights")
            if weights is not None:  # with other weights it is another measurement
                metric.protocol += f"/weights={os.path.basename(os.path.normpath(weights))}"
    read = {f for m in built.values() for f in features_read(m)}
    unused = [k for k in options if k not in read and k not in systems]
    if unused:
        raise UnknownName("codec or feature in this run", unused[0], [*features, *systems])
    signals = [m for m in built.values() if m.signals]
    estimate_rates = {m.rate_hz or NATIVE for m in signals} | {features[f].rate_hz for f in estimate_features}
    reference_rates = {m.rate_hz or NATIVE for m in signals if m.kind == "pair"} | {
        features[f].rate_hz for f in reference_features
    }
    if UNPROCESSED in systems:
        reference_rates |= estimate_rates
    on_cpu = {n: m for n, m in built.items() if m.where == "cpu"}
    reads_features = lambda m: bool(m.estimate_features or m.reference_features)  # noqa: E731
    return Plan(
        systems=rows,
        metrics=built,
        features=features,
        signal_metrics=tuple(n for n, m in on_cpu.items() if not reads_features(m)),
        feature_metrics=tuple(n for n, m in on_cpu.items() if reads_features(m)),
        inline_metrics=tuple(n for n, m in built.items() if m.where == "inline"),
        estimate_features=estimate_features,
        reference_features=reference_features,
        estimate_rates=frozenset(estimate_rates),
        reference_rates=frozenset(reference_rates),
    )


def _check_names(systems: Sequence[str], metrics: Sequence[str]) -> None:
    """Checks that a codec and a metric are named, and no codec twice."""
    if not systems:
        raise UserError("no codec was named", hint="name at least one, or 'unprocessed'; see codec-bench list codecs")
    if not metrics:
        raise UserError("no metric was named", hint="see codec-bench list metrics")
    for name in systems:
        if list(systems).count(name) > 1:
            raise UserError(f"the codec '{name}' is named twice", hint="name each codec once")


def features_read(metric: Metric) -> tuple[str, ...]:
    """Every feature that a metric may read, of either side and for any language."""
    return tuple(dict.fromkeys([*metric.estimate_features, *metric.reference_features]))


def _features(
    metrics: Sequence[Metric], languages: Iterable[str | None] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The features of the estimate and those of the reference, each once, in the order of the metrics."""
    spoken = None if languages is None else sorted(set(languages), key=str)
    sides: tuple[dict[str, None], dict[str, None]] = {}, {}
    for metric in metrics:
        for names, wanted in zip(sides, (metric.estimate_features, metric.reference_features)):
            if spoken is None:
                names.update(dict.fromkeys(wanted))
        for language in spoken or ():
            if metric.refusal(text="", language=language) is None:
                for names, wanted in zip(sides, metric.features_of(language)):
                    names.update(dict.fromkeys(wanted))
    return tuple(sides[0]), tuple(sides[1])


def _plan_feature(name: str, options: Mapping[str, Mapping[str, Any]]) -> FeaturePlan:
    mine = dict(options.get(name, {}))
    with noting() as found:
        feature = load_feature(name, **mine)  # does not load the model: the worker does, with its first batch
    weights = "+".join(checkpoint.identity for checkpoint in found) or _identity(mine.get("weights"))
    cache_id = f"{SIGNALS}|{feature.name}|{feature.protocol}|{weights}" if feature.cached else None
    return FeaturePlan(
        name=name,
        stage=StageSpec(name, "feature", (name,), mine),
        rate_hz=feature.rate_hz,
        where=feature.where,
        batch_s=feature.batch_s,
        cache_id=cache_id,
        reads_language=feature.reads_language,
    )


def _identity(weights: str | None) -> str:
    """What tells the caller's own weights apart: path, size and time of change. Hashing gigabytes would take too long."""
    if weights is None:
        return ""
    path = os.path.abspath(weights)
    if not os.path.exists(path):
        return weights
    status = os.stat(path)
    return f"{path}:{status.st_size}:{status.st_mtime_ns}"
