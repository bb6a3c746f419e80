"""The verdict of a gate on each metric, and its limits.

A metric is `worse` if its loss is beyond the margin at the gate's rate of false alarms (Holm over metrics), `better` if
its interval is beyond the margin on the other side, `same` if the interval ends below the margin, else `cannot_tell`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from codec_bench.apps.gating.repeats import Loss, PairedRuns, measure_loss, rounding_of
from codec_bench.apps.gating.run_scores import RunScores
from codec_bench.config import fit, load_mapping
from codec_bench.messages.errors import UserError
from codec_bench.stats.intervals import FEW_UNITS, folded, unit_codes
from codec_bench.stats.paired import holm
from codec_bench.store.files import write_text

Verdict = Literal["better", "same", "worse", "cannot_tell"]
MOST_MOVED = 10
HALF = 0.5
"""The threshold of `items_above_50`."""
SCHEMA = 1
ALPHA = 0.01
POWER = 0.8

_HEADER = """\
# margin: the largest loss that is accepted, in the metric's unit.
# cannot_tell: whether a metric whose interval covers its margin fails the gate (fail) or not (pass).
# Per metric: max, min (of the value), failed (items without a score), items_above_50 (items with a rate above 50 %).
"""

Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class MovedItem:
    """An item whose score changed.

    Args:
        loss: negative is better.
        before, after: mean scores over repeats.
        transcript_before, transcript_after: of a recogniser; None for other metrics.
    """

    id: str
    loss: float
    before: float
    after: float
    text: str | None
    transcript_before: str | None
    transcript_after: str | None


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The verdict on one metric.

    Args:
        baseline, value: of the items that both have scores for.
        margin: the largest accepted loss.
        loss: with its interval; None if undefined.
        p_holm: of a loss beyond the margin, adjusted for all metrics of the gate.
        few_speakers: items are the units because there are fewer than six speakers.
        lost: ids with a score in the baseline and none in the run.
        moved: the items that lost most.
    """

    metric: str
    unit: str
    higher_is_better: bool
    verdict: Verdict
    baseline: float | None
    value: float | None
    margin: float
    loss: Loss | None
    p_holm: float | None
    items: int
    few_speakers: bool
    lost: tuple[str, ...]
    moved: tuple[MovedItem, ...]


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A limit and its value.

    Args:
        code: `max`, `min`, `failed`, `silent`, `truncated` or `items_above_50`.
        metric: None for the whole run.
        limit: of the spec, or of the baseline where the spec has none.
    """

    code: str
    metric: str | None
    limit: float
    value: float | None
    passed: bool


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate; `fail_undecided` fails it for undecided metrics."""

    system: str
    repeats: int
    alpha: float
    metrics: tuple[GateVerdict, ...]
    limits: tuple[LimitCheck, ...]
    fail_undecided: bool

    @property
    def regressed(self) -> bool:
        """Whether a metric is worse or a limit is exceeded."""
        return any(one.verdict == "worse" for one in self.metrics) or not all(one.passed for one in self.limits)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 regressed, 3 if an undecided metric fails the gate."""
        if self.regressed:
            return 1
        return 3 if self.fail_undecided and any(one.verdict == "cannot_tell" for one in self.metrics) else 0

    @property
    def passed(self) -> bool:
        """Whether the gate is passed."""
        return self.exit_code == 0

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {**asdict(self), "regressed": self.regressed, "passed": self.passed, "exit_code": self.exit_code}


def judge_run(baseline: Sequence[RunScores], candidate: Sequence[RunScores], spec: GateSpec) -> GateResult:
    """Compare repeats of a run with a baseline; raises UserError below six items."""
    names = list(spec.metrics) or list(baseline[0].metrics)
    compared = [_compare(baseline, candidate, name, spec.metrics.get(name, MetricSpec()), spec) for name in names]
    adjusted = holm([None if one.loss is None else one.loss.p for one in compared])
    verdicts = tuple(_with_verdict(one, p, spec.alpha) for one, p in zip(compared, adjusted))
    limits = [
        *_run_limits(baseline, candidate, spec),
        *(check for one in verdicts for check in _metric_limits(baseline, candidate, one, spec.metrics)),
    ]
    return GateResult(
        candidate[0].system, len(baseline), spec.alpha, verdicts, tuple(limits), spec.cannot_tell == "fail"
    )


def shared_parts(runs: Sequence[RunScores], metric: str) -> tuple[list[str], list[np.ndarray]]:
    """Return ids with scores in every run, and each run's parts `(items, k)`.

    Parts are what the metric's value is computed from, such as numerator and denominator.
    """
    held = [run.scores[metric] for run in runs]
    ids = sorted(id for id in held[0] if all(of[id].value is not None and of[id].parts for of in held))
    return ids, [
        np.asarray([of[id].parts for id in ids], np.float64).reshape(len(ids), -1 if ids else 2) for of in held
    ]


def find_units(run: RunScores, metric: str, ids: Sequence[str]) -> tuple[np.ndarray | None, bool]:
    """Return each item's unit as a code, and whether items are the units.

    Units are speakers; below six speakers, items are, and the codes are None.

    Raises:
        UserError: there are fewer than six items.
    """
    if len(ids) < FEW_UNITS:
        raise UserError(
            "too_few_items_for_gate",
            metric=metric,
            count=len(ids),
            needed=FEW_UNITS,
            hint="use more items, or leave the metric out of the spec",
        )
    codes = unit_codes([run.units[id] for id in ids], len(ids))
    small_sample = codes is not None and len(set(codes.tolist())) < FEW_UNITS
    return (None if small_sample else codes), small_sample


def _compare(
    baseline: Sequence[RunScores], candidate: Sequence[RunScores], metric: str, metric_spec: MetricSpec, spec: GateSpec
) -> GateVerdict:
    """Measure one metric's loss over common items; its verdict is still `cannot_tell`."""
    facts = baseline[0].metrics[metric]
    ids, parts = shared_parts([*baseline, *candidate], metric)
    codes, few_speakers = find_units(baseline[0], metric, ids)
    before, after = parts[: len(baseline)], parts[len(baseline) :]
    fold = facts.fold(metric)
    better, bounds = facts.higher_is_better, facts.value_bounds
    runs = PairedRuns(fold, before, after, codes, higher_is_better=better, bounds=bounds)
    loss = measure_loss(runs, margin=metric_spec.margin, level=1 - 2 * spec.alpha)
    scored = {id for run in baseline for id, one in run.scores[metric].items() if one.value is not None}
    missing = {id for run in candidate for id, one in run.scores[metric].items() if one.value is None}
    return GateVerdict(
        metric, facts.unit, facts.higher_is_better, "cannot_tell",
        folded(fold, np.mean(before, axis=0)), folded(fold, np.mean(after, axis=0)), metric_spec.margin, loss, None,
        len(ids), few_speakers,
        tuple(sorted(scored & missing)), _worst_items(baseline, candidate, metric, ids, facts.higher_is_better),
    )  # fmt: skip


def _with_verdict(one: GateVerdict, p: float | None, alpha: float) -> GateVerdict:
    """Set the verdict from the interval of the loss and `p`, adjusted for all metrics."""
    verdict: Verdict = "cannot_tell"
    if one.loss is not None and p is not None:
        if p < alpha:
            verdict = "worse"
        elif one.loss.high < -one.margin:
            verdict = "better"
        elif one.loss.high <= one.margin + rounding_of(one.margin):
            verdict = "same"
    return replace(one, verdict=verdict, p_holm=p)


def _worst_items(
    baseline: Sequence[RunScores], candidate: Sequence[RunScores], metric: str, ids: Sequence[str], higher: bool
) -> tuple[MovedItem, ...]:
    """Return the items with the largest loss; `higher`: whether higher is better."""

    def mean(runs: Sequence[RunScores]) -> np.ndarray:
        return np.mean(np.array([[run.scores[metric][id].value for id in ids] for run in runs], np.float64), axis=0)

    before, after = mean(baseline), mean(candidate)
    loss = before - after if higher else after - before
    first, last = baseline[0], candidate[0]
    return tuple(
        MovedItem(
            ids[k], float(loss[k]), float(before[k]), float(after[k]), first.texts[ids[k]],
            first.scores[metric][ids[k]].transcript, last.scores[metric][ids[k]].transcript,
        )
        for k in np.argsort(-loss, kind="stable")[:MOST_MOVED] if loss[k] > 0
    )  # fmt: skip


def _run_limits(baseline: Sequence[RunScores], candidate: Sequence[RunScores], spec: GateSpec) -> list[LimitCheck]:
    """Check failed, silent and truncated items against limit or baseline."""
    checks = []
    for code in ("failed", "silent", "truncated"):
        declared = getattr(spec.limits, code)
        limit = max(getattr(run, code) for run in baseline) if declared is None else declared
        value = max(getattr(run, code) for run in candidate)
        checks.append(LimitCheck(code, None, limit, value, value <= limit))
    return checks


def _metric_limits(
    baseline: Sequence[RunScores], candidate: Sequence[RunScores], one: GateVerdict, specs: Any
) -> list[LimitCheck]:
    """Check a metric's hard limits: failures, maximum, minimum, items above 50 %.

    Args:
        specs: `MetricSpec` by metric.
    """
    metric_spec = specs.get(one.metric, MetricSpec())
    limit = max(count_failed(run, one.metric) for run in baseline) if metric_spec.failed is None else metric_spec.failed
    value = max(count_failed(run, one.metric) for run in candidate)
    checks = [LimitCheck("failed", one.metric, limit, value, value <= limit)]
    if (most := metric_spec.max) is not None:
        checks.append(LimitCheck("max", one.metric, most, one.value, one.value is not None and one.value <= most))
    if (least := metric_spec.min) is not None:
        checks.append(LimitCheck("min", one.metric, least, one.value, one.value is not None and one.value >= least))
    if (most := metric_spec.items_above_50) is not None:
        values = [[score.value for score in run.scores[one.metric].values()] for run in candidate]
        above = max(sum(value is not None and value > HALF for value in held) for held in values)
        checks.append(LimitCheck("items_above_50", one.metric, most, above, above <= most))
    return checks


def count_failed(run: RunScores, metric: str) -> int:
    """Count items without a score."""
    return sum(one.value is None for one in run.scores[metric].values())


class MetricSpec(BaseModel):
    """The accepted change of one metric.

    Args:
        margin: the largest accepted loss, in the metric's unit.
        max, min: hard limits of the value.
        failed: most items without a score.
        items_above_50: most items with a value above 0.5, for error rates.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    max: Number | None = None
    min: Number | None = None
    failed: Count | None = None
    items_above_50: Count | None = None


class RunLimits(BaseModel):
    """Limits of a run: items without an estimate, silent ones, truncated answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    failed: Count | None = None
    silent: Count | None = None
    truncated: Count | None = None


class GateSpec(BaseModel):
    """A gate.

    Args:
        alpha: the rate of false alarms of the whole gate.
        power: of detection in `gate_calibrate`.
        cannot_tell: whether an undecided metric fails the gate.
        limits: of the run.
        metrics: to compare, by name; empty for all of the baseline with margin 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Annotated[Literal[1], Field(alias="schema")] = 1
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = ALPHA
    power: Annotated[float, Field(gt=0.5, lt=1)] = POWER
    cannot_tell: Literal["pass", "fail"] = "pass"
    limits: RunLimits = RunLimits()
    metrics: Mapping[str, MetricSpec] = {}

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, document: object) -> object:
        """Drop keys without a value, as `limits:` alone."""
        return {k: v for k, v in document.items() if v is not None} if isinstance(document, dict) else document


def read_spec(file: Path) -> GateSpec:
    """Read a gate's YAML file; raises UserError naming file and field."""
    return fit(load_mapping(file), GateSpec, source=str(file))


def write_spec(spec: GateSpec, file: Path) -> None:
    """Write a gate's YAML file, atomically."""
    import yaml

    document = spec.model_dump(by_alias=True, exclude_none=True, mode="json")
    write_text(file, _HEADER + yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
