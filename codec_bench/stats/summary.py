"""The summary of a run, in one pass over its record (see `summary_types`).

`n + failed` is the number of finished items; `missing` counts those without a value by status. A value is the sum of
numerators over the sum of denominators of ok scores, with the interval of `stats.intervals` over speakers or items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from codec_bench.messages import VARIES, Diagnostic, read, together
from codec_bench.stats.answers import answers_of, count_missing_answers, missing_answers_by_wording, wordings_of
from codec_bench.stats.breakdown import MetricParts, Subsets, finished_only, parts_in, subsets_of
from codec_bench.stats.chance_level import answer_statistics, failing, judging_of, policies
from codec_bench.stats.controls import Controlled
from codec_bench.stats.data_warnings import Warned, warn_copied, warn_implausible, warn_shared
from codec_bench.stats.draws import RULES, draw_statistics
from codec_bench.stats.recorded import JUDGED, RecordedRun, Scores, SystemItems
from codec_bench.stats.robustness import robustness
from codec_bench.stats.row_counts import count_rows, other_data
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import (
    BITRATE,
    UNPROCESSED,
    Channels,
    FailureCounts,
    FailureReason,
    MetricSummary,
    Summary,
    SystemSummary,
    TokenFacts,
)
from codec_bench.stats.verdict import verdict
from codec_bench.store.controls import control_of
from codec_bench.store.draws import WORDING
from codec_bench.store.record import Run
from codec_bench.store.statuses import FAILURES, WITHOUT_VALUE

MAX_REASONS = 500
MAX_REASON_CHARACTERS = 500
_SLOT = re.compile(r"'[^']*'|\"[^\"]*\"|[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?")
_ORDER = {status: rank for rank, status in enumerate((*WITHOUT_VALUE, "flagged"))}


def summarise(run: Run, by: str | Sequence[str] | None = None, *, suspects: Collection[str] = ()) -> Summary:
    """Summarise a run's scores by system and metric, also of a run in progress.

    Args:
        by: columns to break results down by (see `data.columns`), or one string with commas; None takes the run's own.
        suspects: systems with findings of checks outside the run.
    """
    recorded = RecordedRun(run)
    reasons = _Reasons()
    subsets = subsets_of(run, by)
    systems = [_of_system(recorded, name, subsets) for name in recorded.systems]
    entries: dict[str, dict[str, MetricSummary]] = {system.name: {} for system in systems}
    # Samples share the voices of prompts.
    is_prompted = (recorded.meta.get("config") or {}).get("reference") == "prompt"
    repeated = [] if is_prompted else warn_shared(*run.shared_sounds(), questions=recorded.has_answers)
    doubtful: dict[str, list[Warned]] = {
        system.name: [*repeated, *warn_copied(*run.repeated_estimates(system.name))] for system in systems
    }
    for metric in recorded.metrics:
        for name, entry in _metric(recorded, metric, systems, reasons, {*recorded.suspects, *suspects}, doubtful):
            entries[name][metric] = entry
    answers = answers_of(run)
    unheard = None if answers is None else answers.cut.unheard
    summaries: dict[str, SystemSummary] = {}
    for system in systems:
        for number, (status, reason) in system.items.unscored.items():
            reasons.add(system.name, None, status, reason, number)
        summaries[system.name] = _entry_of_system(
            recorded, system, entries[system.name], unheard, doubtful[system.name]
        )
        if answers is not None:
            groups = system.subsets.get(WORDING, {})
            wordings = missing_answers_by_wording(system.items, groups, wordings_of(recorded.meta))
            answers = replace(answers, **count_missing_answers(system.items.noted.values()), wordings=wordings)
    unscored = sum(len(system.items.unscored) for system in systems)
    of_scores = [status for status in FAILURES if status != "no_estimate"]  # those are among the lost
    broken = (e.missing.get(status, 0) for of in entries.values() for e in of.values() for status in of_scores)
    failures = FailureCounts(unscored, sum(broken), reasons.rows(recorded, [system.name for system in systems]))
    return Summary(
        systems=summaries, failures=failures, answers=UNSET if answers is None else answers, rows=count_rows(run),
        other_data=other_data(run) or UNSET, control=control.words if (control := control_of(run)) else UNSET,
        controls=[Controlled.from_dict(one) for one in run.meta.get("controls") or ()] or UNSET,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _System:
    """One system: its finished items, their numbers by column and value, its draws."""

    name: str
    items: SystemItems
    subsets: Subsets
    drawn: Mapping[int, tuple[str, int]]


def _of_system(recorded: RecordedRun, name: str, subsets: Subsets) -> _System:
    """Read one system's items, and its subsets and draws of finished samples."""
    items = recorded.items(name)
    finished = set(items.finished) if subsets or recorded.draws else set()
    drawn = {number: draw for number, draw in recorded.draws.items() if number in finished}
    return _System(name, items, finished_only(subsets, finished), drawn)


def _entry_of_system(
    recorded: RecordedRun,
    system: _System,
    entries: Mapping[str, MetricSummary],
    unheard: float | None,
    data_warnings: Sequence[Warned],
) -> SystemSummary:
    """Build a system's part of the summary from its metrics and warnings."""
    items, name = system.items, system.name
    warned = [*items.tally.warned(len(items.finished) - len(items.unscored), recorded.metrics), *data_warnings]
    timings = ((recorded.meta.get("timings") or {}).get("systems") or {}).get(name)
    # Items without an estimate took no full part in the time, so there is no speed.
    hidden = "times_" if items.unscored else None
    return SystemSummary(
        metrics=entries,
        silent=items.silent,
        partial=items.partial,
        unlike=items.dissimilar,
        clipped=items.clipped,
        same=items.same,
        warned=warned or UNSET,
        unheard=unheard,
        checks=(recorded.meta.get("checks") or {}).get(name),
        channels=_channels(items, recorded.systems[name].get("channels") or ()),
        bitrate_bps=entries.get(BITRATE, UNSET),
        tokens=_tokens(recorded.systems[name]),
        timing=UNSET
        if timings is None
        else {key: None if hidden and key.startswith(hidden) else value for key, value in timings.items()},
    )


def _tokens(facts: Mapping[str, Any]) -> TokenFacts:
    if latents := facts.get("latents"):
        return TokenFacts(None, None, latents)
    per_s, rate_bps = facts.get("tokens_per_s"), facts.get("nominal_bitrate_bps")
    return TokenFacts(per_s, rate_bps / per_s if rate_bps else None) if per_s else UNSET


def _channels(items: SystemItems, declared: Sequence[int]) -> Channels | None:
    """Items with several channels; `declared`: channel counts that the codec codes."""
    seconds = sum(channels * s for channels, s, _ in items.several)
    if not seconds:
        return None
    each = bool(declared) and any(channels not in declared for channels, _, _ in items.several)
    return Channels(len(items.several), each, sum(bits for _, _, bits in items.several) / seconds)


def _metric(
    recorded: RecordedRun, metric: str, systems: Sequence[_System], reasons: _Reasons, suspects: Collection[str],
    doubtful: Mapping[str, list[Warned]],
) -> Iterable[tuple[str, MetricSummary]]:  # fmt: skip
    """Build each system's entry of one metric, with tests between the systems."""
    draws = 1 + max((draw for _, draw in recorded.draws.values()), default=0)
    read = [recorded.scores(system.name, metric) for system in systems]
    parts = [parts_in(recorded, s.name, metric, scores, draws=draws) for s, scores in zip(systems, read)]
    rivals = {system.name: of for system, of in zip(systems, parts) if system.name != UNPROCESSED}
    better = None if metric == BITRATE else recorded.metrics[metric].get("higher_is_better")
    decided = verdict(rivals, suspects, better)
    for system, scores, of in zip(systems, read, parts):
        shared = decided.common if rivals else np.asarray(of.numbers, np.int64)
        entry = _entry(recorded, metric, system, scores, of, shared, reasons)
        doubtful[system.name] += warn_implausible(metric, recorded.metrics[metric], scores.sums)
        alone = len(rivals) < 2 and system.name not in decided.excluded
        if better is not None and system.name in rivals and not alone:
            entry = replace(entry, standing=decided.standing(system.name))
        yield system.name, entry


def _entry(
    recorded: RecordedRun, metric: str, system: _System, scores: Scores, parts: MetricParts, shared: np.ndarray,
    reasons: _Reasons,
) -> MetricSummary:  # fmt: skip
    """Build a metric's part of a system's summary: value, interval, counts."""
    facts, meta = recorded.metrics[metric], recorded.meta
    scored, better = len(parts.numbers), facts.get("higher_is_better")
    interval = parts.interval if scored else None
    judging, counting = judging_of(scores, facts, meta.get("judge_tests")), parts.counting_failures()
    entry = MetricSummary(
        value=parts.value,
        ci95=interval.ends if interval else None,
        note=together(interval.note if interval else None, failing(judging), judging.tested if judging else None),
        method=interval.method if interval else "",
        units=interval.units if interval else 0,
        n=scored,
        failed=len(system.items.finished) - scored,
        missing=_missing(system, metric, scores, reasons),
        flagged=sum(count for count, _ in scores.flags.values()) or UNSET,
        unit=facts.get("unit", ""),
        higher_is_better=better,
        protocol=facts.get("protocol", ""),
        extrapolated=parts.extrapolated,
        below_50=parts.below_50,
        judging=judging or UNSET,
        counting_failures=counting,
        common=parts.among(shared),
        subsets=parts.by_subset(system.subsets) if system.subsets or recorded.has_answers else UNSET,
    )
    if facts.get("kind") in JUDGED:
        entry = replace(entry, **answer_statistics(scores, parts, system.subsets, entry.subsets or {}))
    if (failures := (meta.get("benchmark") or {}).get("failures")) is not None:
        entry = replace(entry, policies=policies(entry.value, counting, failures))
    return replace(entry, **_repeat_fields(recorded, metric, system, parts))


def _repeat_fields(recorded: RecordedRun, metric: str, system: _System, parts: MetricParts) -> dict[str, Any]:
    """The fields `draws` and `robustness` of an entry with repeated questions."""
    better = recorded.metrics[metric].get("higher_is_better")
    wordings = system.subsets.get(WORDING, {})
    fields: dict[str, Any] = {}
    if drawn := system.drawn:
        fields["draws"] = draw_statistics(parts, drawn, *_passing(recorded.meta, metric), better, recorded.draw_counts)
    if len(wordings) > 1:
        fields["robustness"] = robustness(parts, wordings, drawn, better)
    return fields


def _passing(meta: Mapping[str, Any], metric: str) -> tuple[Sequence[str], float | None]:
    """Rules for several answers to a question, and the primary metric's passing value."""
    benchmark = meta.get("benchmark") or {}
    passing = benchmark.get("passing") or {}
    return passing.get("rules", RULES), passing.get("at") if metric == benchmark.get("primary") else None


def _missing(system: _System, metric: str, scores: Scores, reasons: _Reasons) -> dict[str, int]:
    """Count a system's items without a value by status; add their reasons."""
    name, without = system.name, system.items.unscored
    missing: dict[str, int] = {}
    for number, status, reason in scores.unscored:
        status_of = "no_estimate" if number in without else status
        missing[status_of] = missing.get(status_of, 0) + 1
        if status_of != "no_estimate":
            reasons.add(name, metric, status, reason, number)
    for flag, (count, example) in scores.flags.items():
        reasons.add(name, metric, "flagged", flag, example, count)
    unrecorded = len(system.items.finished) - len(scores.numbers) - sum(missing.values())
    if unrecorded:
        no_estimate = min(unrecorded, len(without) - missing.get("no_estimate", 0))
        if no_estimate:
            missing["no_estimate"] = missing.get("no_estimate", 0) + no_estimate
        if unrecorded > no_estimate:
            missing["not_scored"] = unrecorded - no_estimate
            reasons.add(name, metric, "not_scored", Diagnostic("no_score"), None, unrecorded - no_estimate)
    return dict(sorted(missing.items(), key=lambda item: _ORDER.get(item[0], 9)))


class _Reasons:
    """Groups reasons of different items that have one code."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Any, ...], _ReasonGroup] = {}

    def add(
        self,
        system: str,
        metric: str | None,
        status: str,
        reason: Diagnostic | None,
        example: int | None,
        count: int = 1,
    ) -> None:
        """Add a reason; `example` is the number of a sample with it."""
        reason = reason or Diagnostic("unknown")
        slots: list[Any] = []
        shape = _shape(reason, slots)
        group = self._groups.setdefault(
            (system, metric, status, json.dumps(shape)), _ReasonGroup(shape, slots, 0, example)
        )
        group.count += count
        group.slots = [a if a == b else VARIES for a, b in zip(group.slots, slots)]

    def rows(self, recorded: RecordedRun, systems: Sequence[str]) -> list[FailureReason]:
        """Reasons of whole items, then failures, then others; frequent ones first.

        Args:
            systems: their order, for reasons with equal counts.
        """
        ids = recorded.ids({group.example for group in self._groups.values() if group.example is not None})
        rows = [
            FailureReason(
                system, metric, status, read(_fill_reason(group.shape, iter(group.slots))), group.count,
                "" if group.example is None else ids.get(group.example, ""),
            )
            for (system, metric, status, _), group in self._groups.items()
        ]  # fmt: skip
        position = {name: n for n, name in enumerate(systems)}
        rows.sort(key=lambda r: (r.metric is not None, _ORDER.get(r.status, 9), -r.count, position[r.system]))
        if len(rows) <= MAX_REASONS:
            return rows
        others: dict[tuple[Any, ...], FailureReason] = {}
        for row in rows[MAX_REASONS:]:
            other = others.get(key := (row.system, row.metric, row.status), replace(row, count=0))
            others[key] = replace(other, reason=Diagnostic("other_reasons"), count=other.count + row.count)
        return rows[:MAX_REASONS] + list(others.values())


@dataclass(slots=True)
class _ReasonGroup:
    """Reasons that differ only in numbers and quoted words, which are in `slots`."""

    shape: Any
    slots: list[Any]
    count: int
    example: int | None


def _shape(value: Any, slots: list[Any]) -> Any:
    """Replace what varies between items in a reason by None; add it to `slots`."""
    if isinstance(value, Diagnostic):
        held = {name: _shape(one, slots) for name, one in value.parameters.items()}
        return {"code": value.code, **held}
    if isinstance(value, list):
        return [_shape(one, slots) for one in value]
    if isinstance(value, str):
        text = " ".join(value.replace("\0", "\ufffd").split())[:MAX_REASON_CHARACTERS]
        slots += _SLOT.findall(text)
        return _SLOT.sub("\0", text)
    slots.append(value)
    return None


def _fill_reason(shape: Any, slots: Iterator[Any]) -> Any:
    """The JSON values of a reason from its shape and slots."""
    if isinstance(shape, Mapping):
        return {name: one if name == "code" else _fill_reason(one, slots) for name, one in shape.items()}
    if isinstance(shape, list):
        return [_fill_reason(one, slots) for one in shape]
    if shape is None:
        return next(slots)
    return re.sub("\0", lambda _: str(next(slots)), shape)
