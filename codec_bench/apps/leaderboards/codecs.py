"""Codecs by quality and cost, with Pareto fronts and delta rates.

A table has one metric by one protocol over the same data from one source. Own bitrates are measured, else nominal. The
real-time factor is seconds of computing per second of audio on the run's machine. Tokens, look-ahead and parameters are
the codec's facts, the last from a profile. Points without the cost, with findings, or with too few values
(`stats.verdict`) are on no front. Later runs of a system replace earlier ones over the same data.

Pareto fronts of quality and cost, with their certainty.
Lower cost is better. A point is on the front if no other is as cheap and as good, with one strictly better; equal
points are all on it. Certainty comes from draws of values around the observed ones, with the jackknife's covariance
over shared units and Student's t. Costs are fixed.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from codec_bench.apps.leaderboards.ranking import Changes, UnitEffects, changes_of, combine, drawn_values, sizes_of
from codec_bench.config import config_names, read_config
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report import numbers
from codec_bench.report.open_run import open_run
from codec_bench.stats.bd_rate import bd_rate, bd_rate_interval
from codec_bench.stats.intervals import FEWEST_UNITS, Interval
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import MetricSummary, SystemSummary
from codec_bench.stats.verdict import SUSPECT, find_excluded
from codec_bench.store.folders import run_folders
from codec_bench.store.identity import hashed
from codec_bench.store.record import Run

AXES = {
    "bitrate": ("bitrate", "kbps", 1e-3),
    "tokens": ("tokens", "per s", 1.0),
    "real_time_factor": ("real-time factor", "", 1.0),
    "lookahead": ("look-ahead", "ms", 1e3),
    "parameters": ("parameters", "M", 1e-6),
}
"""Costs: name, shown unit, and factor to it."""
DIMENSIONS = {
    "words": ("wer", "wer_macro", "wer_below_50", "cer", "dwer"),
    "voice": ("sim",),
    "sound": ("utmos", "dnsmos_ovrl", "dnsmos_p808", "pesq_wb", "visqol", "stoi", "mel_distance", "si_sdr"),
}
"""The three sides of a codec, each with its metrics by preference."""
LOCAL_RUNS = "your runs"
DRAWS = 4_000


@dataclass(frozen=True, slots=True)
class CodecPoint:
    """One codec at one operating point.

    Args:
        family: its name without the operating point.
        costs: known ones by the names in `AXES`, in bit/s, per second, as a ratio, in seconds, and as a count.
        n: items; None if unknown.
        failed: items without a value because the codec failed.
        on_front: None without the cost.
        share: the share of draws of other items on the front.
        suspicion: why it is not compared: findings, or too few values.
        continuous: it makes latents instead of codes; such codecs have a separate Pareto front.
        bits_per_token: nominal bits of a code; None without codes.
    """

    name: str
    family: str
    run: str
    costs: Mapping[str, float]
    value: float
    ci95: tuple[float, float] | None = None
    n: int | None = None
    failed: int = 0
    on_front: bool | None = None
    share: float | None = None
    suspicion: str | None = None
    continuous: bool = False
    bits_per_token: float | None = None


@dataclass(frozen=True, slots=True)
class DeltaRate:
    """A family's relative bitrate at the anchor's quality (-0.25: a quarter less)."""

    family: str
    value: float | None
    interval: Interval | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CodecTable:
    """The comparable points of one metric.

    Args:
        source: `OWN`, or the publication.
        delta_rates: against the anchor.
        imported: the results come from another toolkit.
    """

    source: str
    data: str
    metric: str
    unit: str
    higher_is_better: bool | None
    protocol: str
    points: tuple[CodecPoint, ...]
    delta_rates: tuple[DeltaRate, ...] = ()
    imported: bool = False

    @property
    def dimension(self) -> str | None:
        """`words`, `voice` or `sound`; None for other metrics."""
        base = numbers.split_name(self.metric)[0]
        return next((name for name, metrics in DIMENSIONS.items() if base in metrics), None)


@dataclass(frozen=True, slots=True)
class CodecBoard:
    """Tables of codecs by one cost (`axis`), with notes and the anchor."""

    axis: str
    tables: tuple[CodecTable, ...]
    notes: tuple[Diagnostic, ...] = ()
    anchor: str | None = None


@dataclass(slots=True)
class _Gathered:
    """Values of one table from runs: points by system, and leave-one-out changes."""

    facts: Mapping[str, Any]
    points: dict[str, CodecPoint] = field(default_factory=dict)
    changes: dict[str, Changes] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)


Key = tuple[str, str, str, str]
"""Fingerprint and name of the data, metric, and protocol."""


def codec_board(
    runs: Iterable[str | os.PathLike[str]] = (),
    *,
    axis: str = "bitrate",
    metrics: Sequence[str] = (),
    anchor: str | None = None,
    seed: int = 0,
) -> CodecBoard:
    """Compare codecs of runs and publications: quality against cost.

    Args:
        runs: run folders, or folders that hold run folders at any depth.
        axis: the cost, one of `AXES`.
        metrics: only these, by their names or the part before the first bracket; empty for all.
        anchor: the family of codecs that delta rates (Bjøntegaard) refer to.
        seed: of the draws of other items.

    Raises:
        UnknownName: there is no such axis, metric or anchor.
        UserError: a folder holds no run, or a record is damaged.
    """
    if axis not in AXES:
        raise UnknownName("axis", axis, list(AXES))
    gathered, notes = _gather(runs)
    tables = [_own_table(key, held, axis, anchor, seed) for key, held in gathered.items()]
    tables += [_mark_front(table, axis, anchor, {}, seed) for table in published_codecs()]
    if metrics:
        known = {name for table in tables for name in (table.metric, numbers.split_name(table.metric)[0])}
        for name in metrics:
            if name not in known:
                raise UnknownName("metric_of_tables", name, sorted(known))
        tables = [t for t in tables if t.metric in metrics or numbers.split_name(t.metric)[0] in metrics]
    families = {point.family for table in tables for point in table.points}
    if anchor is not None and anchor not in families:
        raise UnknownName("codec_family", anchor, sorted(families))
    return CodecBoard(axis, tuple(tables), (*notes, *_failure_notes(tables)), anchor)


def published_codecs() -> list[CodecTable]:
    """Return the published tables of codecs, each with its source and protocol."""
    names = [name for name in config_names("published") if name.startswith("codecs-")]
    return [table for name in names for table in _tables(read_config("published", name))]


def _tables(document: dict[str, Any]) -> list[CodecTable]:
    """Read the points of one publication's CSV file, a table per column."""
    text = (files("codec_bench") / "configs" / "published" / document["published"]).read_bytes().decode("utf-8")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    lines.sort(key=lambda line: float(line["kbps"]))
    tables = []
    for column in document["columns"]:
        name, data = column["name"], column.get("data", document["data"])
        points = tuple(
            CodecPoint(one["codec"], one["family"], "", {"bitrate": 1000 * float(one["kbps"])}, float(one[name]))
            for one in lines
            if one[name]
        )
        facts = (column["metric"], column.get("unit", ""), column["higher_is_better"], column["protocol"])
        tables.append(CodecTable(document["source"], data, *facts, points))
    return tables


def _gather(runs: Iterable[str | os.PathLike[str]]) -> tuple[dict[Key, _Gathered], list[Diagnostic]]:
    """Collect the codecs of runs by data, metric and protocol; and notes on the rest."""
    gathered: dict[Key, _Gathered] = {}
    notes: list[Diagnostic] = []
    for run_path in (inside for folder in runs for inside in run_folders(folder)):
        with closing(open_run(run_path)) as run:
            run.check()
            state = run.meta.get("state")
            if state not in (None, "finished"):
                notes.append(Diagnostic("run_not_finished", run=run_path, state=state))
                continue
            is_used = _take(run, gathered, notes)
        if not is_used:
            notes.append(Diagnostic("run_without_codec", run=run_path))
    return gathered, notes


def _take(run: Run, gathered: dict[Key, _Gathered], notes: list[Diagnostic]) -> bool:
    """Add a run's codecs to `gathered`, and disagreements to `notes`; False if none."""
    meta, is_used = run.meta, False
    data = meta.get("data") or {}
    name = numbers.plain(Path(str(data.get("name") or (meta.get("benchmark") or {}).get("name") or "data")).name)
    print_ = str(data.get("fingerprint") or run.folder)
    title = f"{name}, {data.get('samples') or run.counts()['samples']:,} samples"
    if sounds := run.query("SELECT id, sound FROM samples WHERE sound IS NOT NULL ORDER BY id"):
        # The fingerprint covers names and sizes; contents may differ.
        files, print_ = f"{print_} ", f"{print_} {hashed(sounds)}"
        kin = {known: shown for known, shown, *_ in gathered if known.startswith(files)}
        title = kin.get(print_, f"{title} (other sounds)" if kin else title)
    for system, held in summarise(run).systems.items():
        costs = _costs(run, system, held)
        if system == numbers.UNPROCESSED or not (costs or run.systems[system].get("imported")):
            continue
        for metric, entry in held.metrics.items():
            if metric == "bitrate" or entry.value is None:
                continue
            key = (print_, title, metric, entry.protocol)
            table = gathered.setdefault(key, _Gathered(run.metrics[metric]))
            point = CodecPoint(
                system, numbers.family(system), str(run.folder), costs, entry.value,
                None if entry.ci95 is None else (entry.ci95[0], entry.ci95[1]), entry.n, _failed(entry),
                suspicion=numbers.doubts_text(held)
                or (entry.standing.why if entry.standing and not entry.standing.compared else None),
                continuous=run.systems[system].get("latents") is not None,
                bits_per_token=held.tokens.bits if held.tokens else None,
            )  # fmt: skip
            before = table.points.get(system)
            if before is not None and before.value != point.value:
                notes.append(
                    Diagnostic(
                        "codec_of_two_values",
                        codec=system,
                        metric=metric,
                        value=before.value,
                        run=before.run,
                        later_value=point.value,
                        later_run=point.run,
                    )
                )
            table.points[system], table.changes[system] = point, changes_of(run, system, metric)
            if table.changes[system]:
                table.sizes |= sizes_of(run, system, metric)
            is_used = True
    return is_used


def _failed(entry: MetricSummary) -> int:
    counting = entry.counting_failures
    return counting.n + counting.uncounted - entry.n if counting else 0


def _failure_notes(tables: Sequence[CodecTable]) -> list[Diagnostic]:
    """Note how many items each codec failed on, with the metrics of which it is so."""
    metrics: dict[tuple[str, str, int, int], list[str]] = {}
    for table in tables:
        for point in table.points:
            if point.failed:
                key = (point.name, point.run, point.failed, point.failed + (point.n or 0))
                metrics.setdefault(key, []).append(table.metric)
    return [
        Diagnostic("codec_failures", codec=codec, metrics=names, failed=failed, items=items)
        for (codec, _, failed, items), names in metrics.items()
    ]


def _costs(run: Run, system: str, held: SystemSummary) -> dict[str, float]:
    """Return a codec's known costs, such as `bitrate` in bit/s, by axis."""
    facts, timing = run.systems[system], held.timing or {}
    bits = held.bitrate_bps.value if held.bitrate_bps else None
    speed = timing.get("times_real_time")
    known = {
        "bitrate": bits or facts.get("nominal_bitrate_bps"),
        "tokens": held.tokens.per_s if held.tokens else None,
        "real_time_factor": 1 / speed if speed else None,
        "lookahead": facts.get("lookahead_s"),
        "parameters": _parameters(run.folder, system),
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def _parameters(folder: Path, system: str) -> float | None:
    """Return a codec's parameters, if the run belongs to a profile that counted them."""
    try:
        codecs = json.loads((folder.parent / "profile.json").read_text("utf-8"))["codecs"]
        return float(codecs[system]["complexity"]["parameters"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _own_table(key: Key, held: _Gathered, axis: str, anchor: str | None, seed: int) -> CodecTable:
    """Build the table of one metric from the user's runs, with front and delta rates.

    Args:
        held: the codecs' points.
        axis, anchor, seed: as in `codec_board`.
    """
    _, data, metric, protocol = key
    facts = held.facts
    doubted = {name: point.suspicion for name, point in held.points.items() if point.suspicion}
    out = find_excluded({name: point.n or 0 for name, point in held.points.items()}, dict.fromkeys(doubted, SUSPECT))
    ordered = sorted(held.points.values(), key=lambda point: (point.costs.get("bitrate", float("inf")), point.name))
    points = tuple(replace(point, suspicion=point.suspicion or out.get(point.name)) for point in ordered)
    table = CodecTable(
        LOCAL_RUNS, data, metric, facts.get("unit", ""), facts.get("higher_is_better"), protocol, points,
        imported=protocol.startswith("imported/"),
    )  # fmt: skip
    return _mark_front(table, axis, anchor, held.changes, seed, held.sizes)


def _mark_front(
    table: CodecTable,
    axis: str,
    anchor: str | None,
    changes: Mapping[str, Changes],
    seed: int,
    sizes: Mapping[str, float] = MappingProxyType({}),
) -> CodecTable:
    """Mark the Pareto front in a table, and add delta rates if there is an `anchor`.

    Codecs of real-valued latents have a separate Pareto front.

    Args:
        axis: the cost.
        changes: leave-one-out changes by codec; without them there are no intervals.
        sizes: of the excluded units.
    """
    if table.higher_is_better is None:
        return table
    for continuous in (False, True):  # real numbers cost no bits, so they are on no front with codes
        comparable = [
            n for n, point in enumerate(table.points) if point.continuous == continuous and not point.suspicion
        ]
        priced = [n for n in comparable if axis in table.points[n].costs]
        if not priced:
            continue
        known = all(changes.get(table.points[n].name) for n in priced)
        items = combine({index: changes[table.points[n].name] for index, n in enumerate(priced)}) if known else None
        front = pareto_front(
            costs=[table.points[n].costs[axis] for n in priced], values=[table.points[n].value for n in priced],
            higher_is_better=table.higher_is_better, items=items, seed=seed,
        )  # fmt: skip
        points = list(table.points)
        for index, n in enumerate(priced):
            share = None if front.shares is None else front.shares[index]
            points[n] = replace(points[n], on_front=front.on[index], share=share)
        table = replace(table, points=tuple(points))
    return table if anchor is None else replace(table, delta_rates=_delta_rates(table, anchor, changes, sizes))


def _delta_rates(
    table: CodecTable, anchor: str, changes: Mapping[str, Changes], sizes: Mapping[str, float]
) -> tuple[DeltaRate, ...]:
    """Compute the delta rate of each codec family against the family `anchor`."""
    families: dict[str, list[CodecPoint]] = {}
    for point in table.points:
        if "bitrate" in point.costs and not point.suspicion:
            families.setdefault(point.family, []).append(point)
    if anchor not in families:
        return ()
    members = families.pop(anchor)
    return tuple(_delta_rate(table, members, others, changes, sizes) for others in families.values())


def _delta_rate(
    table: CodecTable,
    anchor: Sequence[CodecPoint],
    test: Sequence[CodecPoint],
    changes: Mapping[str, Changes],
    sizes: Mapping[str, float],
) -> DeltaRate:
    """Bjøntegaard delta rate of one family against the anchor, with its interval.

    Args:
        changes: leave-one-out changes by codec; without them there is no interval.
        sizes: of the excluded units.
    """
    curves = [[(point.costs["bitrate"], point.value) for point in points] for points in (anchor, test)]
    better, interval = bool(table.higher_is_better), None
    every = [*anchor, *test]
    try:
        value = bd_rate(anchor=curves[0], test=curves[1], higher_is_better=better)
        if all(changes.get(point.name) for point in every):
            rows = {index: changes[point.name] for index, point in enumerate(every)}
            units = dict.fromkeys(unit for row in rows.values() for unit in row)  # in the order of `combine`
            interval = bd_rate_interval(
                anchor=curves[0], test=curves[1], leave_one_out=combine(rows).added,
                sizes=np.array([sizes[unit] for unit in units]), higher_is_better=better,
            )  # fmt: skip
    except UserError as error:
        return DeltaRate(test[0].family, None, None, error.message)
    return DeltaRate(test[0].family, value, interval)


@dataclass(frozen=True, slots=True)
class Front:
    """Which points are on the Pareto front, and in which share of draws (or None)."""

    on: tuple[bool, ...]
    shares: tuple[float, ...] | None = None


def pareto_front(
    *,
    costs: Sequence[float] | np.ndarray,
    values: Sequence[float] | np.ndarray,
    higher_is_better: bool,
    items: UnitEffects | None = None,
    seed: int = 0,
) -> Front:
    """Find the Pareto front: the points without a cheaper and better one.

    Args:
        costs: lower is better.
        items: leave-one-out changes of the values, rows in the order of the points. With them, each point gets the
            share of draws of test items in which it is on the front.
        seed: of the draws.
    """
    price = np.asarray(costs, np.float64)
    good = np.asarray(values, np.float64) * (1 if higher_is_better else -1)
    on = tuple(bool(one) for one in _on_front(price, good[None])[0])
    if items is None or items.units < FEWEST_UNITS:
        return Front(on)
    sign = 1 if higher_is_better else -1
    drawn = sign * drawn_values(np.asarray(values, np.float64), [items], seed=seed, draws=DRAWS)
    return Front(on, tuple(float(share) for share in _on_front(price, drawn).mean(axis=0)))


def _on_front(price: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Return which points are on the front in each draw, bool `(draws, points)`.

    Args:
        price: cost `(points,)`, lower is better.
        good: quality `(draws, points)`, higher is better.
    """
    on = np.ones(good.shape, bool)
    for point in range(len(price)):
        cheaper, as_cheap = price < price[point], price <= price[point]
        as_good, better = good >= good[:, point : point + 1], good > good[:, point : point + 1]
        on[:, point] = ~((as_cheap & better) | (cheaper & as_good)).any(axis=1)
    return on
