"""Gates: the functions behind `codec-bench gate freeze`, `calibrate` and `check`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.messages.errors import UnknownName, UserError

if TYPE_CHECKING:
    from codec_bench.apps.gating.repeats import Spread
    from codec_bench.apps.gating.run_scores import RunScores
    from codec_bench.apps.gating.verdicts import GateResult, GateSpec

PathLike = str | os.PathLike[str]
MORE_REPEATS = (2, 3, 5, 10)
MORE_ITEMS = (2, 4)


@dataclass(frozen=True, slots=True)
class GateBaseline:
    """A baseline file of one system, with its numbers of items and runs."""

    file: Path
    system: str
    items: int
    repeats: int
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricCalibration:
    """The detectable regression of one metric, in its unit.

    Args:
        value: the mean over repeats.
        spread: over items and repeats.
        detectable: regression beyond the margin at the stated power; None with one run.
        margin: for `gate.yaml`: `detectable`, rounded up to two digits; 0 with one run.
        with_repeats, with_items: `detectable` with this many repeats, and this multiple of items.
    """

    unit: str
    value: float
    spread: Spread
    detectable: float | None
    margin: float
    with_repeats: Mapping[int, float]
    with_items: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The detectable regressions, metrics without a value, and the gate with margins."""

    repeats: int
    metrics: Mapping[str, MetricCalibration]
    undefined: tuple[str, ...]
    spec: GateSpec

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "repeats": self.repeats,
            "metrics": {name: asdict(one) for name, one in self.metrics.items()},
            "undefined": list(self.undefined),
            "spec": self.spec.model_dump(by_alias=True, exclude_none=True, mode="json"),
        }


def gate_freeze(runs: PathLike | Sequence[PathLike], *, out: PathLike, system: str | None = None) -> GateBaseline:
    """Write the scores of a run, or of repeats of it, to one small Parquet file.

    Args:
        runs: a run folder, or several of one system over the same items, such as with other seeds.
        out: the file, such as `baseline.parquet`.
        system: the name of the system; None for the only one of each run.

    Raises:
        UserError: a run is not complete, the runs are not comparable, or the file cannot be written.

    Examples:
        >>> from codec_bench import gate_freeze
        >>> frozen = gate_freeze("runs/small", out="baseline.parquet", system="g722")  # the run of evaluate's example
        >>> frozen.system, frozen.items, frozen.repeats
        ('g722', 8, 1)
    """
    from codec_bench.apps.gating.run_scores import write_baseline

    folders = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
    repeats = _read_runs(folders, system)
    for folder, other in zip(folders[1:], repeats[1:]):
        if other.system != repeats[0].system:
            raise UserError(
                "run_of_other_system",
                folder=folder,
                system=other.system,
                expected=repeats[0].system,
                other_folder=folders[0],
            )
        _check_comparable(repeats[0], other, str(folder))
    write_baseline(repeats, Path(out))
    return GateBaseline(Path(out), repeats[0].system, len(repeats[0].contents), len(repeats), tuple(repeats[0].metrics))


def gate_calibrate(
    baseline: PathLike, *, out: PathLike | None = None, alpha: float | None = None, power: float | None = None
) -> Calibration:
    """Compute the regressions that a baseline can show, as margins of a gate.

    Args:
        baseline: a file of `gate_freeze`.
        out: the YAML file of the gate to write; None writes none.
        alpha: the rate of false alarms of the gate; None for 0.01.
        power: of detection; None for 0.8.

    Raises:
        UserError: the baseline cannot be read, or a metric has scores of fewer than six items.

    Examples:
        >>> from codec_bench import gate_calibrate, gate_freeze
        >>> frozen = gate_freeze("runs/small", out="baseline.parquet", system="g722")  # the run of evaluate's example
        >>> found = gate_calibrate("baseline.parquet")
        >>> found.repeats, found.metrics["snr"].detectable  # of one run the spread between repeats is unknown
        (1, None)
    """
    from codec_bench.apps.gating.repeats import measure_spread
    from codec_bench.apps.gating.run_scores import read_baseline
    from codec_bench.apps.gating.verdicts import (
        ALPHA,
        POWER,
        GateSpec,
        MetricSpec,
        RunLimits,
        count_failed,
        find_units,
        shared_parts,
        write_spec,
    )
    from codec_bench.config import fit
    from codec_bench.stats.intervals import folded

    if out is not None and Path(out).exists():
        raise UserError("file_exists", path=out, hint="delete it, or name another file with --out")

    repeats = read_baseline(Path(baseline))
    first = repeats[0]
    document = {"schema": 1, "alpha": ALPHA if alpha is None else alpha, "power": POWER if power is None else power}
    rates = fit(document, GateSpec, source="the gate")
    level = 1 - 2 * rates.alpha / len(first.metrics)  # Holm's first step
    calibrations: dict[str, MetricCalibration] = {}
    undefined = []
    for name, facts in first.metrics.items():
        ids, parts = shared_parts(repeats, name)
        fold = facts.fold(name)
        spread = measure_spread(fold, parts, find_units(first, name, ids)[0]) if ids else None
        value = folded(fold, np.mean(parts, axis=0)) if ids else None
        if spread is None or value is None:
            undefined.append(name)
            continue
        detectable = spread.detectable(level, rates.power)
        more = {k: spread.detectable(level, rates.power, repeats=k) for k in MORE_REPEATS if k > len(repeats)}
        items = {k: spread.detectable(level, rates.power, items=k) for k in MORE_ITEMS}
        calibrations[name] = MetricCalibration(
            facts.unit, value, spread, detectable, _rounded_up(detectable or 0.0),
            {k: v for k, v in more.items() if v is not None}, {k: v for k, v in items.items() if v is not None},
        )  # fmt: skip
    if not calibrations:
        raise UserError("baseline_without_values", baseline=baseline)
    spec = GateSpec(
        alpha=rates.alpha,
        power=rates.power,
        limits=RunLimits(**{code: max(getattr(run, code) for run in repeats) for code in RunLimits.model_fields}),
        metrics={
            name: MetricSpec(margin=one.margin, failed=max(count_failed(run, name) for run in repeats))
            for name, one in calibrations.items()
        },
    )
    if out is not None:
        write_spec(spec, Path(out))
    return Calibration(len(repeats), calibrations, tuple(undefined), spec)


def gate_check(
    run: PathLike | Sequence[PathLike],
    *,
    against: PathLike,
    spec: PathLike | GateSpec | None = None,
    system: str | None = None,
) -> GateResult:
    """Compare a run with a baseline: better, same, worse or cannot tell.

    Args:
        run: a run folder, or several repeats of one system.
        against: the baseline, a file of `gate_freeze`.
        spec: the gate, or its YAML file; None compares all metrics with margin 0.
        system: the name of the system; None for the only one of the run.

    Raises:
        UserError: a file cannot be read, the run is not complete, or run and baseline are not comparable: other items,
            data, protocol, decoding or judge, or fewer than six items.

    Examples:
        >>> from codec_bench import gate_check, gate_freeze
        >>> frozen = gate_freeze("runs/small", out="baseline.parquet", system="g722")  # the run of evaluate's example
        >>> found = gate_check("runs/small", against="baseline.parquet", system="g722")
        >>> found.passed, found.metrics[0].verdict
        (True, 'same')
    """
    from codec_bench.apps.gating.run_scores import read_baseline
    from codec_bench.apps.gating.verdicts import GateSpec, judge_run, read_spec
    from codec_bench.stats.bounds import is_rate

    baseline = read_baseline(Path(against))
    gate = spec if isinstance(spec, GateSpec) else GateSpec() if spec is None else read_spec(Path(spec))
    for name in gate.metrics:
        if name not in baseline[0].metrics:
            raise UnknownName("metric", name, list(baseline[0].metrics), within=against)
    for name, metric_spec in gate.metrics.items():
        if metric_spec.items_above_50 is not None and not is_rate(baseline[0].metrics[name].value_bounds):
            raise UserError("not_an_error_rate", metric=name, hint="use min or max")
    folders = [run] if isinstance(run, str | os.PathLike) else list(run)
    candidate = _read_runs(folders, system)
    for folder, other in zip(folders, candidate):
        _check_comparable(baseline[0], other, str(folder), list(gate.metrics) or None)
    return judge_run(baseline, candidate, gate)


def _read_runs(folders: Sequence[PathLike], system: str | None) -> list[RunScores]:
    """Read a system's scores from run folders; UserError if one is named twice."""
    from codec_bench.apps.gating.run_scores import read_scores
    from codec_bench.store.record import Run

    if not folders:
        raise UserError("no_run_to_gate", hint="name a run folder")
    places = [Path(folder).resolve() for folder in folders]
    for index, folder in zip(places, folders):
        if places.count(index) > 1:
            raise UserError("run_named_twice", folder=folder)
    with ExitStack() as stack:
        return [read_scores(stack.enter_context(closing(Run(folder))), system) for folder in folders]


def _check_comparable(first: RunScores, other: RunScores, where: str, metrics: Sequence[str] | None = None) -> None:
    """Raise UserError if run `other`, called `where`, is not comparable with `first`.

    Args:
        metrics: only these; None for all of `first`.
    """
    for name in sorted({*first.identity, *other.identity}):
        if first.identity.get(name) != other.identity.get(name):
            raise UserError("run_differs_from_baseline", run=where, field=name, hint="compare runs of one benchmark")
    for metric in metrics or list(first.metrics):
        here = other.metrics.get(metric)
        if here is None:
            raise UserError(
                "run_lacks_metric",
                run=where,
                metric=metric,
                hint="score the run with it, or name the metrics to compare in the spec",
            )
        facts = first.metrics[metric]
        if here.protocol != facts.protocol:
            raise UserError(
                "run_of_other_protocol", run=where, metric=metric, protocol=here.protocol, expected=facts.protocol
            )
        if here.judge != facts.judge:
            raise UserError("run_of_other_judge", run=where, metric=metric, judge=here.judge, expected=facts.judge)
    missing = sorted(first.contents.keys() - other.contents.keys())
    added = sorted(other.contents.keys() - first.contents.keys())
    if missing or added:
        which, ids = ("lacks", missing) if missing else ("adds", added)
        raise UserError(
            "run_of_other_items",
            run=where,
            difference=which,
            count=len(ids),
            item=ids[0],
            baseline_count=len(first.contents),
            hint="run it over the same data without --limit"
            if first.contents.keys() & other.contents.keys()
            else "freeze a new baseline for new data",
        )
    if changed := sorted(id for id, content in first.contents.items() if other.contents[id] != content):
        raise UserError(
            "items_changed_since_baseline",
            count=len(changed),
            run=where,
            item=changed[0],
            hint="freeze a new baseline for new data",
        )


def _rounded_up(value: float) -> float:
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.6g}")
