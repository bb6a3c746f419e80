"""The rows of a leaderboard from own runs.

Ratings: ours have another judge and wording than published ones, so they are shown with both and enter no published
column or average; means over one judge's ratings likewise. Several judges give several rows (`raters.py`). Where a
judge reads answers for a rule, rows by one judge are ranked (the rubric's, or that of most systems) on boards without
published rows; others are marked, without a rank.
Conditions: a column is its definition's benchmark with the questions of most runs, those of the repository before
copies; disagreeing copies of equal number are in no rank. Runs with other data, prompt, reading, option order or
precision, partial runs, and copies at unknown commits without support are separate rows, named so, without a rank.
Failures follow the benchmark's toolkit. Later runs replace earlier ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import NamedTuple

from codec_bench.apps.leaderboards.board import (
    AVERAGE,
    BoardRow,
    CellSource,
    Column,
    Rules,
    Variant,
    average,
    group_mean,
)
from codec_bench.apps.leaderboards.raters import BoardJudge, RaterKey, published_rater
from codec_bench.benchmark import Benchmark, has_benchmark, load_benchmark
from codec_bench.benchmark.identity import other_than_defined
from codec_bench.benchmark.judge.metric import STEM, is_judge_metric
from codec_bench.messages import Diagnostic
from codec_bench.report.breakdown.rows import subsets_of
from codec_bench.report.numbers import rows_text
from codec_bench.report.open_run import open_run
from codec_bench.stats.controls import Controlled
from codec_bench.stats.row_counts import count_rows
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import MetricSummary, ServedModel, Subset, Summary
from codec_bench.store.controls import NONE, Control
from codec_bench.store.folders import run_folders
from codec_bench.store.identity import identity_of, question_hashes
from codec_bench.store.judge_tests import NOT_TESTED
from codec_bench.store.record import Run


@dataclass(frozen=True, slots=True)
class Conditions:
    """Differences of a run from its benchmark, which decide whether it is compared.

    Args:
        rows: the hash of its questions; None if not recorded.
        deviations: differences from the benchmark, such as `other prompt`.
        subset: its number of questions, if not all; else "".
        limited, unfinished, rerouted, states: as of `BoardRow`.
        copied: its data copy a repository at no known commit, so they may differ.
    """

    folder: str
    rows: str | None
    deviations: tuple[str, ...]
    subset: str
    limited: bool
    unfinished: bool
    rerouted: bool
    states: tuple[str, ...]
    copied: bool

    @property
    def is_complete(self) -> bool:
        """Whether the run has all questions of its benchmark."""
        return not (self.subset or self.limited or self.unfinished)

    @property
    def is_decisive(self) -> bool:
        """Whether the run's questions may define the questions of a column."""
        return self.rows is not None and not self.deviations


class _Result(NamedTuple):
    """A value from a run.

    System and variant, column, summary entry, judge (or None) and whether it rated or read the answers, source,
    conditions, and the text-alone control.
    """

    system: tuple[str, str]
    column: Column
    entry: MetricSummary | Subset
    rater: BoardJudge | None
    rated: bool
    source: CellSource
    conditions: Conditions
    alone: Controlled | None = None


@dataclass(slots=True)
class _Values:
    """The values of one row's runs: see `BoardRow`; `ratings` with their judges."""

    cells: dict[str, Decimal] = field(default_factory=dict)
    ratings: dict[str, tuple[Decimal, BoardJudge]] = field(default_factory=dict)
    raters: dict[str, BoardJudge] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    policies: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    failures: dict[str, Diagnostic] = field(default_factory=dict)
    wording_spreads: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    limited: bool = False
    parts: dict[str, str] = field(default_factory=dict)
    rerouted: bool = False
    states: dict[str, None] = field(default_factory=dict)
    unfinished: bool = False
    copied: bool = False
    earlier_values: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, CellSource] = field(default_factory=dict)
    intervals: dict[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    gains_over_text: dict[str, tuple[Decimal, tuple[Decimal, Decimal] | None]] = field(default_factory=dict)

    def take(self, result: _Result) -> None:
        """Set the value of one column; a different earlier one goes to `earlier_values`."""
        column, entry, conditions = result.column, result.entry, result.conditions
        judge = result.rater if result.rated else None
        self.folders[result.source.folder] = None
        self.limited |= conditions.limited
        self.unfinished |= conditions.unfinished
        self.rerouted |= conditions.rerouted
        self.states |= dict.fromkeys(conditions.states)
        if conditions.subset:
            self.parts[column.name] = conditions.subset
        value, interval = _by_rule(entry)
        self.sources[column.name] = result.source
        before, rated = self.cells.get(column.name), self.ratings.get(column.name)
        if judge is None and before is not None and before != column.shown(value):
            self.earlier_values.setdefault(column.name, []).append(str(before))
        if judge is not None and rated is not None and rated[0] != column.shown(value):
            self.earlier_values.setdefault(column.name, []).append(f"{rated[0]} by {rated[1].words}")
        if result.rater is not None:
            self.raters[column.name] = result.rater
        if judge is not None:
            self.ratings[column.name] = (column.shown(value), judge)
        else:
            self.cells[column.name] = column.shown(value)
        self.counts[column.name] = entry.n
        self.intervals.pop(column.name, None)
        # The interval is only that of the official rule for failures.
        if judge is None and entry.ci95 and all(map(isfinite, entry.ci95)) and value == entry.value:
            self.intervals[column.name] = (column.shown(entry.ci95[0]), column.shown(entry.ci95[1]))
        self.gains_over_text.pop(column.name, None)
        if result.alone is not None:
            self.gains_over_text[column.name] = _gain_over_text(result.alone, column)
        self.wording_spreads.pop(column.name, None)
        if spread := _over_wordings(entry, column):
            self.wording_spreads[column.name] = spread
        self.policies.pop(column.name, None)
        if interval:
            self.policies[column.name] = {rule: column.shown(number) for rule, number in interval.items()}
        self.failures.pop(column.name, None)
        if (note := _failures_of(entry, column)) is not None:
            self.failures[column.name] = note


def user_rows(
    runs: Iterable[str | os.PathLike[str]], rules: Rules, variants: Sequence[Variant], *, published: bool
) -> tuple[list[BoardRow], list[str]]:
    """Build rows from the user's runs, and list the folders of runs without a value.

    There is a row for every system and variant with a value for at least one column.

    Args:
        runs: run folders, or folders that hold run folders at any depth.
        variants: configurations of the same models, such as with other metrics; the first one has no name.
        published: whether the board has published rows.

    Raises:
        UserError: a folder holds no run, or a record is damaged.
    """
    every: list[_Result] = []
    ignored: list[str] = []
    names = {variant.of(column)[0] for variant in variants for column in rules.columns}
    definitions = {name: load_benchmark(name) for name in names if has_benchmark(name)}
    for run_path in (inner for folder in runs for inner in run_folders(folder)):
        run = open_run(run_path)
        run.check()  # report a damaged run of another benchmark too
        values = list(_values(run, rules.columns, variants, definitions))
        ignored += [] if values else [str(run_path)]
        every += values
    settled, questions = _settle_conditions(every), cache(lambda folder: question_hashes(open_run(folder)))
    known = {(one.column.name, one.conditions.rows) for one in every if not one.conditions.copied}
    several, read = _with_several_judges(every), _name_readers(every)
    reads = {} if published else _most_readers(every)
    rows: dict[tuple[tuple[str, ...], tuple[str, ...], bool], _Values] = {}
    for value in every:
        conditions, rater, system = value.conditions, value.rater, tuple[str, ...](value.system)
        holds = settled.get((value.column.name, value.system[1]))
        other = conditions.is_decisive and _is_other(conditions, holds, questions)
        deviations = ((_OTHER_DATA if holds else _DISPUTED),) if other else conditions.deviations
        if value.system in read:
            system = (*system, f"read by {read[value.system]}")
        elif rater is not None and not value.rated:
            system = (*system, f"read by {rater.read}")
        if rater is not None and not value.rated:
            if reads.get((value.column.name, value.system[1])) != rater.key:
                deviations = (*deviations, _OTHER_JUDGE)
        elif rater is not None and value.system in several:
            system = (*system, f"rated by {rater.name}")
        row = rows.setdefault((system, deviations, bool(conditions.subset)), _Values())
        row.take(value)
        as_defined = not (other or conditions.deviations)
        row.copied |= conditions.copied and as_defined and (value.column.name, conditions.rows) not in known
    return [_build_row(system, deviations, values, rules) for (system, deviations, _), values in rows.items()], ignored


def _with_several_judges(results: Sequence[_Result]) -> set[tuple[str, str]]:
    """Return the (system, variant) pairs with a column of ratings by several judges."""
    raters: dict[tuple[tuple[str, str], str], set[RaterKey]] = {}
    for one in results:
        if one.rated and one.rater is not None:
            raters.setdefault((one.system, one.column.name), set()).add(one.rater.key)
    return {system for (system, _), held in raters.items() if len(held) > 1}


def _name_readers(results: Sequence[_Result]) -> dict[tuple[str, str], str]:
    """Name the judges that parsed a system's answers, if each metric had another.

    Returns:
        Names by (system, variant).
    """
    readers: dict[tuple[str, str], dict[str, dict[RaterKey, BoardJudge]]] = {}
    for one in results:
        if one.rater is not None and not one.rated:
            of = readers.setdefault(one.system, {}).setdefault(one.source.metric, {})
            of[one.rater.key] = one.rater
    readers_of = {system: [r for held in of.values() for r in held.values()] for system, of in readers.items()}
    return {
        system: " and ".join(sorted({f"{rater.read}" for rater in raters}))
        for system, raters in readers_of.items()
        if len(raters) == len(readers[system]) == len({rater.name for rater in raters}) > 1
    }


def _most_readers(results: Sequence[_Result]) -> dict[tuple[str, str], RaterKey]:
    """Select the judge that parsed the answers, by (column, variant).

    It is the judge that the rubric names, otherwise that of most systems.
    """
    systems: dict[tuple[str, str], dict[RaterKey, set[str]]] = {}
    others: set[RaterKey] = set()
    for one in results:
        if one.rater is not None and not one.rated:
            held = systems.setdefault((one.column.name, one.system[1]), {})
            held[one.rater.key] = held.pop(one.rater.key, set()) | {one.system[0]}
            others |= {one.rater.key} if one.rater.named else set()
    return {
        key: max(reversed(held), key=lambda rater: (rater not in others, len(held[rater])))
        for key, held in systems.items()
    }


_OTHER_DATA, _COPIED, _OTHER_JUDGE = "other data", "own copy of the data", "other judge"
_DISPUTED = "copies of the data that disagree"
_BASELINE_SUFFIX = "/beside-"


def _settle_conditions(results: Sequence[_Result]) -> dict[tuple[str, str], Conditions | None]:
    """Select the run whose questions define each (column, variant), or None.

    The repository comes before copies, complete before partial runs, most systems before few, then the latest. Equally
    many copies that disagree give None.
    """
    systems: dict[tuple[str, str], dict[str, tuple[Conditions, set[str]]]] = {}
    for one in results:
        if one.conditions.is_decisive:
            by_conditions = systems.setdefault((one.column.name, one.system[1]), {})
            before, named = by_conditions.pop(str(one.conditions.rows), (one.conditions, set[str]()))
            sure = one.conditions if before.copied else before
            by_conditions[str(one.conditions.rows)] = sure, named | {one.system[0]}  # the latest stands last
    settled: dict[tuple[str, str], Conditions | None] = {}
    for key, by_conditions in systems.items():
        ranks = [(not one.copied, one.is_complete, len(named)) for one, named in by_conditions.values()]
        best, *others = [one for (one, _), rank in zip(by_conditions.values(), ranks) if rank == max(ranks)][::-1]
        settled[key] = None if others and best.copied and best.is_complete else best
    return settled


def _is_other(
    conditions: Conditions, settled: Conditions | None, questions: Callable[[str], Mapping[str, str]]
) -> bool:
    """Whether a run's questions differ from those that define the column.

    Args:
        settled: the run that defines them; None if none does.
        questions: returns the hash of each question of a run folder, by id.
    """
    if settled is None:
        return conditions.is_complete
    if conditions.rows == settled.rows or (conditions.is_complete and settled.is_complete):
        return conditions.rows != settled.rows
    known = questions(settled.folder)
    return any(known.get(id, question) != question for id, question in questions(conditions.folder).items())


def _read_conditions(run: Run, one: Benchmark, served: Sequence[ServedModel]) -> Conditions:
    """Collect how a run differs from its benchmark: data, prompt, number of questions."""
    meta = run.meta
    config = meta.get("config") or {}
    # Imported records do not know their definition.
    rows = count_rows(run, one.size) if "size" in (meta.get("benchmark") or {}) else UNSET
    limit = config.get("limit")
    limited = rows.why == "limit" if rows else limit is not None
    subset = rows_text(rows) if rows and rows.why else f"limited to {limit:,} questions" if limited else ""
    unfinished = meta.get("state") not in (None, "finished")
    fingerprint = (meta.get("fingerprint") or {}).get("asked") or {}
    copied = "revision" in fingerprint and fingerprint["revision"] is None and one.data.path is None
    deviations = tuple(other_than_defined(run, one))
    rerouted, states = any(one.other for one in served), tuple(one.state for one in served)
    return Conditions(
        str(run.folder), identity_of(run).rows, deviations, subset, limited, unfinished, rerouted, states, copied
    )


def _build_row(system: tuple[str, ...], deviations: tuple[str, ...], values: _Values, rules: Rules) -> BoardRow:
    """Build the row of a system from the values of its runs."""
    parts = dict.fromkeys(values.parts.values())
    notes = [
        *deviations,
        *(parts if len(parts) < 2 else ["parts of the questions"]),
        *([_COPIED] if values.copied else []),
    ]
    return rules.build_row(
        _name(*system, *notes),
        values.cells,
        {},
        values.counts,
        tuple(c.name for c in rules.columns if c.name not in values.cells and c.name not in values.ratings),
        published=False,
        folders=tuple(values.folders),
        limited=values.limited,
        short=bool(values.parts) and not values.limited,
        parts=values.parts,
        deviations=deviations,
        states=tuple(values.states),
        earlier_values={name: ", ".join(others) for name, others in values.earlier_values.items()},
        judged=_describe_ratings(values, rules),
        failures=tuple(values.failures[c.name] for c in rules.columns if c.name in values.failures),
        **{name: getattr(values, name) for name in _SHARED_FIELDS},
    )


_SHARED_FIELDS = (
    "rerouted",
    "unfinished",
    "raters",
    "policies",
    "wording_spreads",
    "sources",
    "intervals",
    "gains_over_text",
)
"""Fields of `BoardRow` that `_Values` has too."""


def _gain_over_text(one: Controlled, column: Column) -> tuple[Decimal, tuple[Decimal, Decimal] | None]:
    """Return the gain over text alone and its interval or None, in the column's unit."""
    sign = -1 if one.higher_is_better is False else 1
    ends = None if one.ci95 is None else sorted(column.shown(sign * end) for end in one.ci95)
    return column.shown(sign * (one.difference or 0.0)), None if ends is None else (ends[0], ends[1])


def _over_wordings(entry: MetricSummary | Subset, column: Column) -> dict[str, Decimal]:
    """Return `mean`, `worst` and so on over prompt wordings; empty for one wording."""
    over = entry.robustness if isinstance(entry, MetricSummary) else None
    if not over or not over.same_questions:
        return {}
    statistics = {"mean": over.mean, "worst": over.worst, "best": over.best, "sd": over.sd}
    known = {name: one.value for name, one in statistics.items() if one is not None and one.value is not None}
    return {"n": Decimal(over.n), **{name: column.shown(value) for name, value in known.items()}}


def _describe_ratings(values: _Values, rules: Rules) -> dict[str, str]:
    """Describe ratings by other judges than the published, by column or group."""
    ratings = {name: f"{value} by {rater.words}" for name, (value, rater) in values.ratings.items()}
    if len({rater.key for _, rater in values.ratings.values()}) != 1:
        return ratings
    judge = next(iter(values.ratings.values()))[1].words
    cells = {name: value for name, (value, _) in values.ratings.items()}
    for group in rules.means:
        mean = group_mean(cells, rules.columns, group)
        if mean is not None and group not in ratings:
            is_complete = all(column.name in cells for column in rules.columns if column.group == group)
            ratings[group] = f"{mean} by {judge}" + ("" if is_complete else " (part)")
    if rules.averages and all(column.counts == "rating" for column in rules.columns):
        mean, _ = average(cells, rules.columns)
        ratings[AVERAGE] = f"{mean} by {judge}" + ("" if len(cells) == len(rules.columns) else " (part)")
    return ratings


def _by_rule(entry: MetricSummary | Subset) -> tuple[float, dict[str, float]]:
    """Return the value by the benchmark's own rule for failures, and by all rules.

    The second is empty if failures do not matter.
    """
    value, policies = entry.value, entry.policies if isinstance(entry, MetricSummary) else None
    assert value is not None, "what has no value is not found"
    if not policies:
        with_failures = entry.counting_failures.of_all if entry.counting_failures else None
        matters = with_failures is not None and with_failures != value
        return value, {"as_wrong": with_failures, "left_out": value} if matters and with_failures is not None else {}
    official = policies.official.value
    excluded, as_wrong = policies.left_out, policies.as_wrong
    every = {"left_out": excluded, "as_wrong": as_wrong, "official": official}
    known = {rule: value for rule, value in every.items() if value is not None}
    return (value if official is None else official), known if excluded != as_wrong else {}


def _failures_of(entry: MetricSummary | Subset, column: Column) -> Diagnostic | None:
    """Note how many items of a cell failed; None if none did."""
    counting = entry.counting_failures
    if not counting:
        return None
    items = counting.n + counting.uncounted
    if items == entry.n:
        return None
    code = "failures_without_worst" if counting.uncounted else "failures_in_column"
    return Diagnostic(code, column=column.name, failed=items - entry.n, items=items)


def _values(
    run: Run, columns: Sequence[Column], variants: Sequence[Variant], definitions: Mapping[str, Benchmark]
) -> Iterator[_Result]:
    """Yield a run's values that fill columns of the board, by system and variant.

    Args:
        definitions: benchmarks by the name that the columns use.
    """
    benchmark = (run.meta.get("benchmark") or {}).get("name")
    every = [(variant, column, variant.of(column)) for variant in variants for column in columns]
    selected = [one for one in every if (of := definitions.get(one[2][0])) is not None and of.name == benchmark]
    if not selected:
        return
    summary = summarise(run)
    served = summary.answers.served if summary.answers else ()
    conditions = {name: _read_conditions(run, definitions[name], served) for name in {one[2][0] for one in selected}}
    for system, held in summary.systems.items():
        for variant, column, (name, metric, subset) in selected:
            overall = held.metrics.get(metric)
            entry: MetricSummary | Subset | None = overall
            if subset is not None:
                kind, _, value = subset.partition("=")
                entry = subsets_of(overall).get(kind, {}).get(value)
            if entry is None or entry.value is None or not _counts_all(entry):
                continue
            rater = _rater(run, metric, overall)
            alone = None if subset is not None else _text_alone(summary, metric)
            source = CellSource(str(run.folder), system, metric, str(run.metrics[metric].get("protocol", "")))
            rated = rater is not None and column.counts == "rating"  # else a judge read the answers at most
            yield _Result((system, variant.name), column, entry, rater, rated, source, conditions[name], alone)


def _text_alone(summary: Summary, metric: str) -> Controlled | None:
    """Return a metric's comparison with the model on text alone; None if unknown."""
    text = Control(NONE).words
    known = (one for one in summary.controls or () if one.control == text and one.metric == metric)
    return next((one for one in known if one.difference is not None), None)


def _counts_all(entry: MetricSummary | Subset) -> bool:
    """Whether the toolkit's rule applies: failures need a worst value."""
    rules = entry.policies if isinstance(entry, MetricSummary) else None
    return not rules or rules.official.value is not None


def _name(system: str, *about: str) -> str:
    """Name a row: the model, and in brackets how its benchmarks were run."""
    about_text = ", ".join(filter(None, about))
    return f"{system} ({about_text})" if about_text else system


def _rater(run: Run, metric: str, entry: MetricSummary | None) -> BoardJudge | None:
    """Return the judge that a metric's record names; None if no judge is involved."""
    kind, _, rest = str(run.metrics[metric].get("protocol", "")).partition("/")
    rubric, _, judge = rest.partition("/")
    judging = entry.judging if entry is not None and entry.judging else None
    served, tested = (tuple(judging.served), judging.tested) if judging else ((), NOT_TESTED)
    named = published_rater(metric)
    if kind == STEM and judge:
        # Preference rubrics append the baseline to the judge.
        other = named is not None and named.judge != judge.partition(_BASELINE_SUFFIX)[0]
        return BoardJudge(judge, served, f"{STEM}/{rubric}", tested, named.judge if named is not None and other else "")
    if not is_judge_metric(metric):
        return None
    return BoardJudge((run.meta.get("config") or {}).get("judge") or "an unknown judge", served, tested=tested)
