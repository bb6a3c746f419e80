"""From the requested metrics to the signals, features and stages they need.

Rates are in Hz; `NATIVE` is the reference's own rate. Each codec and each feature is a stage. All our metrics that
read only signals share one, so an item's audio is sent once. Foreign code is a stage with its name as the owner, and
has its own workers (`pool.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from codec_bench.audio.resample import SIGNALS
from codec_bench.codecs import is_foreign_codec, require_codec, require_weights
from codec_bench.config import check_settings
from codec_bench.config.registry import Spec
from codec_bench.engine.stage import StageSpec
from codec_bench.engine.systems import System, check_different, name_systems, read_systems
from codec_bench.features import REGISTRY as FEATURES
from codec_bench.features import exact_name, load_feature
from codec_bench.machine.process_state import preserved_process_state
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.metrics import build_metric, expand, is_foreign_metric
from codec_bench.metrics.base import Metric
from codec_bench.weights import WeightsMissing, noting, weights_identity

NATIVE = 0
SIGNAL_METRICS = "signal metrics"
FEATURE_METRICS = "feature metrics"
_KINDS = {"recognisers": "recogniser", "speakers": "speaker encoder"}
"""Names of the models of some rooms in messages."""


@dataclass(frozen=True, slots=True)
class FeaturePlan:
    """A feature that the run needs.

    Args:
        cache_id: its part of the cache key; None if not cached.
        code: the hash of the code of a custom feature or of another package's; else empty.
        mib_per_s: GPU memory per padded second, or None.
        kind: of its model, for messages.
        seed: of the run, if it draws for each sample.
    """

    name: str
    stage: StageSpec
    rate_hz: int
    where: str
    batch_s: float
    cache_id: str | None
    mib_per_s: float | None = None
    reads_language: bool = False
    kind: str = "model"
    seed: int | None = None
    code: str = ""

    @property
    def identity(self) -> str:
        """Everything by which its results differ, for records."""
        return self.cache_id or f"{self.name} {self.code}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run computes."""

    systems: tuple[System, ...]
    metrics: Mapping[str, Metric]
    features: Mapping[str, FeaturePlan]
    signal_stages: tuple[StageSpec, ...]
    feature_stages: tuple[StageSpec, ...]
    inline_metrics: tuple[str, ...]
    estimate_features: tuple[str, ...]
    reference_features: tuple[str, ...]
    estimate_rates: frozenset[int]
    reference_rates: frozenset[int]

    def rates(self, role: str, native_hz: int) -> frozenset[int]:
        """The sample rates in Hz that metrics need of `estimate` or `reference`."""
        needed = self.estimate_rates if role == "estimate" else self.reference_rates
        return frozenset(rate or native_hz for rate in needed)

    @property
    def needs_codec_audio(self) -> bool:
        """Whether any system codes the reference audio."""
        return any(s.stage is not None for s in self.systems)


def build_plan(
    systems: Any,
    metrics: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    languages: Iterable[str | None] | None = None,
    *,
    gpu: bool = False,
    seed: int | None = None,
) -> Plan:
    """Make the plan.

    Args:
        systems: as `read_systems` takes them.
        metrics: names of metrics and groups.
        options: arguments by codec or feature name, such as {"dnsmos": {"weights": "path"}}.
        languages: of the samples, to drop features that none needs. None: of any language.
        gpu: whether features are computed as on a GPU.
        seed: of the run; None if samples have no lasting ids.

    Raises:
        UserError: a name is unknown or repeated, a package is missing, or an option is for a name outside the run.
        WeightsMissing: weights of features or codecs are not on this machine; it names all of them.
    """
    requested = read_systems(systems)
    if not metrics:
        raise UserError("no_metric_named", hint="see codec-bench list metrics")
    built = {name: _build_metric(name) for name in expand(list(metrics))}
    estimate_features, reference_features = _feature_names(list(built.values()), languages)
    features, missing = _plan_features(dict.fromkeys([*estimate_features, *reference_features]), options, gpu, seed)
    for metric in built.values():
        for name in list_features_read(metric):
            weights = options.get(name, {}).get("weights")
            if weights is not None and metric.own_weights:
                raise UserError(
                    "custom_weights_unsupported",
                    metric=metric.name,
                    name=name,
                    reason=metric.own_weights,
                    hint="set CODEC_BENCH_WEIGHTS (see codec-bench doctor), or leave the metric out",
                )
            if weights is not None:  # with other weights it is another measurement
                metric.protocol += f"/weights={os.path.basename(os.path.normpath(weights))}"
    read = {f for m in built.values() for f in list_features_read(m)}
    rows = _with_stages(requested, options, [*read, *filter(is_foreign_metric, built), SIGNAL_METRICS, FEATURE_METRICS])
    check_different(rows)
    rows = name_systems(rows)
    unread = [k for k in options if k not in read and not any(system.takes(k) for system in rows)]
    known = [name for system in rows for name in (system.name, system.spec)]
    check_settings(unread, [*features, *known], "stage_of_run")
    for system in rows:
        if system.stage is not None and system.codec is not None:
            # Before the weights, which would not help a codec that does not exist.
            require_codec(system.codec, system.spec)
    if missing := [*missing, *_codec_weights_missing(rows)]:
        raise WeightsMissing(missing)
    signals = [m for m in built.values() if m.signals]
    estimate_rates = {m.rate_hz or NATIVE for m in signals} | {features[f].rate_hz for f in estimate_features}
    reference_rates = {m.rate_hz or NATIVE for m in signals if m.kind == "pair"} | {
        features[f].rate_hz for f in reference_features
    }
    if any(system.kind == "unprocessed" for system in rows):
        reference_rates |= estimate_rates
    if estimate_rates and not estimate_rates & reference_rates:
        # Each estimate is compared with its reference, if it has one, by level (`audio.level_checks`).
        reference_rates.add(min(estimate_rates))
    in_workers = {n: m for n, m in built.items() if m.where == "cpu" or is_foreign_metric(n)}
    reads_features = lambda m: bool(m.estimate_features or m.reference_features)  # noqa: E731
    return Plan(
        systems=rows,
        metrics=built,
        features=features,
        signal_stages=_metric_stages(SIGNAL_METRICS, [n for n, m in in_workers.items() if not reads_features(m)]),
        feature_stages=_metric_stages(FEATURE_METRICS, [n for n, m in in_workers.items() if reads_features(m)]),
        inline_metrics=tuple(n for n in built if n not in in_workers),
        estimate_features=estimate_features,
        reference_features=reference_features,
        estimate_rates=frozenset(estimate_rates),
        reference_rates=frozenset(reference_rates),
    )


def _build_metric(name: str) -> Metric:
    """Build a metric. Foreign code changes nothing in this process."""
    with preserved_process_state() if is_foreign_metric(name) else nullcontext():
        return build_metric(name)


def _metric_stages(key: str, names: Sequence[str]) -> tuple[StageSpec, ...]:
    """The stages that compute metrics: `key` for built-in ones, one per user metric."""
    ours = tuple(name for name in names if not is_foreign_metric(name))
    theirs = [StageSpec(name, "metrics", (name,), owner=name) for name in names if name not in ours]
    return (*([StageSpec(key, "metrics", ours)] if ours else []), *theirs)


def _with_stages(
    systems: Sequence[System], options: Mapping[str, Mapping[str, Any]], reserved: Sequence[str]
) -> tuple[System, ...]:
    """Give each codec its stage, with its options; those by a row's name win.

    Raises:
        UserError: a row has a name of `reserved`, or an option is for a codec that is already built.
    """
    out: list[System] = []
    for system in systems:
        if system.titled and system.name in reserved:
            raise UserError("same_name_as_stage", system=system.spec, name=system.name, hint="choose another name")
        if system.kind == "codec":
            chosen = {
                k: v for of, some in options.items() if of != system.name and system.takes(of) for k, v in some.items()
            }
            chosen |= options.get(system.name, {})
            if chosen and system.live is not None and not isinstance(system.live, type):
                raise UserError(
                    "option_of_object",
                    option=next(iter(chosen)),
                    name=system.name,
                    hint="give its class, or build the object with this option",
                )
            before = [*reserved, *(one.name for one in out)].count(system.name)  # two classes may have one name
            key = f"{system.name} ({before + 1})" if before else system.name
            owner = key if is_foreign_codec(system.codec) else ""
            spec = StageSpec(key, "codec", (system.codec or system.spec,), chosen, owner)
            system = replace(system, stage=spec)
        out.append(system)
    return tuple(out)


def list_features_read(metric: Metric) -> tuple[str, ...]:
    """Every feature that a metric may read, on either side and in any language."""
    return tuple(dict.fromkeys([*metric.estimate_features, *metric.reference_features]))


def _feature_names(
    metrics: Sequence[Metric], languages: Iterable[str | None] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the features of (estimates, references), in the order of the metrics.

    Args:
        languages: of the samples; a metric that refuses a language reads no features for it. None: any language.
    """
    spoken = None if languages is None else sorted(set(languages), key=str)
    sides: tuple[dict[str, None], dict[str, None]] = {}, {}
    for metric in metrics:
        for names, required in zip(sides, (metric.estimate_features, metric.reference_features)):
            if spoken is None:
                names.update(dict.fromkeys(required))
        for language in spoken or ():
            if metric.refusal(text="", language=language) is None:
                for names, required in zip(sides, metric.features_of(language)):
                    names.update(dict.fromkeys(required))
    return tuple(sides[0]), tuple(sides[1])


def _plan_features(
    names: Iterable[str], options: Mapping[str, Mapping[str, Any]], gpu: bool, seed: int | None
) -> tuple[dict[str, FeaturePlan], list[str]]:
    """Plan the features; also return the names of missing weights."""
    planned: dict[str, FeaturePlan] = {}
    missing: list[str] = []
    for name in names:
        try:
            planned[name] = _plan_feature(name, options, gpu, seed)
        except WeightsMissing as error:
            missing += error.names
    return planned, missing


def _codec_weights_missing(systems: Iterable[System]) -> list[str]:
    """Missing weights of codecs; other faults of a codec show when it is loaded."""
    missing: list[str] = []
    for system in systems:
        if system.stage is not None and system.codec is not None:
            try:
                require_weights(system.codec, **system.stage.options)
            except WeightsMissing as error:
                missing += error.names
            except UserError:
                continue
    return missing


def _plan_feature(name: str, options: Mapping[str, Mapping[str, Any]], gpu: bool, seed: int | None) -> FeaturePlan:
    """Create a feature's plan without loading its model."""
    mine = dict(options.get(name, {}))
    if unknown := [option for option in mine if option != "weights"]:
        raise UnknownName("feature_option", unknown[0], ["weights"], within=name)
    # Every worker gets the implementation's name, also one without a GPU that takes over.
    exact = exact_name(name, gpu=gpu, weights=mine.get("weights"))
    with noting() as warnings:
        feature = load_feature(exact, **mine)  # does not load the model: the worker does, with its first batch
    weights = weights_identity(warnings, mine.get("weights"))
    by = f"|{feature.by}" if feature.by else ""
    code = FEATURES.code_hash(Spec.parse(exact).name)
    # Two classes of a file may have one name and protocol.
    suffix = f"|{code}|{Spec.parse(exact).name.rpartition(':')[2]}" if code else ""
    cache_id = f"{SIGNALS}|{feature.name}|{feature.protocol}{by}|{weights}{suffix}" if feature.cached else None
    return FeaturePlan(
        name=name,
        stage=StageSpec(name, "feature", (exact,), mine, name if FEATURES.is_foreign(Spec.parse(exact).name) else ""),
        rate_hz=feature.rate_hz,
        where=feature.where,
        batch_s=feature.batch_s,
        cache_id=cache_id,
        mib_per_s=feature.mib_per_s,
        reads_language=feature.reads_language,
        code=code,
        kind=_KINDS.get(".".join(type(feature).__module__.split(".")[-2:-1]), "model"),
        seed=seed if getattr(feature, "reads_seed", False) else None,
    )
