"""Formats numbers and names for the terminal and the page.

A number's decimals follow from its interval: up to the first non-zero digit of the half width, one more if that is a 1;
at least three digits (for papers), at most four decimals. All numbers of a column have the same number of decimals.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from codec_bench.messages import Diagnostic, in_common
from codec_bench.messages.errors import plain
from codec_bench.report.data_warnings import warned_notes
from codec_bench.stats.summary_types import (
    BITRATE,
    UNPROCESSED,
    Counted,
    Ends,
    MetricSummary,
    RowCount,
    Summary,
    SystemSummary,
)
from codec_bench.store.record import Run
from codec_bench.store.rows import doubts_text as text_of
from codec_bench.store.rows import finding_text

__all__ = ["UNPROCESSED", "plain"]  # code that formats numbers also names the unprocessed audio, and texts from data
ALIKE = "≈ marks values not distinguishable from the best (paired test, Holm)"
METHODS = {
    "t": "Student's t with cluster-robust standard errors (CR2, Satterthwaite)",
    "wilson": "Wilson",
    "clopper-pearson": "Clopper-Pearson where fewer than ten items are right or wrong",
    "bootstrap": "percentile bootstrap over units",
    "bca": "BCa bootstrap over units",
    "jackknife-blocks": "delete-a-group jackknife",
}
"""The methods of intervals, for captions."""
BOLD = f"Bold is the best value of a column. {ALIKE}"
SUSPECT = " (suspect)"
ARROWS = {True: "↑", False: "↓", None: ""}
_OPERATING_POINT = re.compile(r"(?:@.*|[-_]\d+(?:\.\d+)?\s*(?:k|kbps|bps|kbit|cb|bit)?)$")
_NUMBERED = re.compile(r"^(?P<stem>.*[^\W\d_]{2})(?P<point>\d+(?:\.\d+)?(?:k|kbps)?)$")
"""Two letters at least: `g711` and `g722` are no operating points."""
_METRIC = re.compile(r"^(?P<name>[\w-]+)(\[(?P<argument>[^\[\]]*)\])?(?P<point>@[^\[\]]+)?$")


class Valued(Protocol):
    """A number with its interval."""

    @property
    def value(self) -> float | None:
        """The number, or None."""
        ...

    @property
    def ci95(self) -> Ends:
        """The ends of the interval, or None."""
        ...

    @property
    def note(self) -> str | None:
        """A remark on value or interval, or None."""
        ...


Entries = Iterable[tuple[str, str, MetricSummary]]
"""(system, metric, entry of the summary)"""


def split_name(metric: str) -> tuple[str, str]:
    """Split a metric's name, such as into ("wer", "pocketsphinx"), ("sim", "@tf32")."""
    match = _METRIC.match(metric)
    if match is None:  # own code, or a name from another package
        return metric, ""
    return match["name"], " ".join(filter(None, (match["argument"], match["point"])))


def family(system: str) -> str:
    """Return a codec's name without operating point: `opus-12k` is `opus`."""
    return _OPERATING_POINT.sub("", system) or system


def uncurved(names: Iterable[str]) -> list[str]:
    """Advise on names that look like operating points of one codec without a curve.

    `rvq2` and `rvq16` are two families, `rvq@2` and `rvq@16` are one.
    """
    by_stem: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(names):
        numbered = _NUMBERED.match(name)
        if numbered and family(name) == name:
            by_stem.setdefault(numbered["stem"], {})[name] = f"{numbered['stem']}@{numbered['point']}"
    return [
        plain(
            f"{', '.join(points)} are on no common curve: if they are operating points of one codec, name them "
            f"{', '.join(points.values())}, by the name in `info` or as NAME=CODEC"
        )
        for points in by_stem.values()
        if len(points) > 1
    ]


def shown_unit(unit: str) -> tuple[float, str]:
    """Return the factor to the shown unit, and that unit: bit/s are shown as kbps."""
    return (1e-3, "kbps") if unit in ("bps", "bit/s") else (1.0, unit)


def entries(summary: Summary, metric: str) -> list[MetricSummary]:
    """Return one metric's entries of all systems that have it."""
    return [system.metrics[metric] for system in summary.systems.values() if metric in system.metrics]


def remarks(system: SystemSummary) -> list[str]:
    """Return the remarks below a system's name: failures, flags, failed checks."""
    counts = (
        (system.without_estimate, "failed"),
        (system.silent, "silent"),
        (system.partial, "partial"),
        (system.unlike, "unlike"),
        (system.clipped, "clipped"),
        (system.same, "same"),
    )
    phrases = [f"{count:,} {state}" for count, state in counts if count]
    if system.unheard:
        phrases.append(f"{100 * system.unheard:.3g} % of the sound cut")
    failed_checks = dict.fromkeys(finding["check"] for finding in system.doubts)
    return [*phrases, *(f"suspect: {plain(str(check))}" for check in failed_checks)]


def marked(name: str, system: SystemSummary) -> str:
    """Return a system's displayed name, marked if its checks found something."""
    return name + SUSPECT if system.doubts else name


def doubts_text(system: SystemSummary) -> str | None:
    """Return the findings of the checks of a system as one text; None without any."""
    return text_of(system.doubts)


def doubts_in(run: Run, system: str) -> str | None:
    """Return the findings of a run's checks of a system as one text, or None."""
    return text_of(findings_in(run, system))


def findings_in(run: Run, system: str) -> Sequence[Mapping[str, Any]]:
    """Return the findings of a run's checks of a system."""
    return SystemSummary(checks=(run.meta.get("checks") or {}).get(system)).doubts


def system_notes(systems: Mapping[str, SystemSummary]) -> list[str]:
    """Return notes on systems: silent or unrelated outputs, findings, data, channels."""
    notes = []
    for name, system in systems.items():
        for count, state in (
            (system.silent, "silent; where the reference is not, the scores are flagged"),
            (system.partial, "without much of the reference's sound; the scores are flagged"),
            (system.unlike, "unlike the reference in the course of its levels; the scores are flagged"),
        ):
            if count:
                notes.append(plain(f"{name}: {count:,} estimate{'s are' if count != 1 else ' is'} {state}"))
        if system.same:
            many = (
                f"{system.same:,} estimate{'s equal their references' if system.same != 1 else ' equals its reference'}"
            )
            notes.append(
                plain(f"{name}: {many} sample by sample; scores of these say nothing of a system that loses anything")
            )
        for finding in system.doubts:
            notes.append(plain(f"{name}: {finding_text(finding)}"))
    notes += warned_notes(systems)
    names_by_text: dict[str, list[str]] = {}
    for name, system in systems.items():
        channels = system.channels
        if channels is not None:
            coding = "coded each by itself" if channels.each else "coded together"
            of = f"{channels.items:,} clip{'s have' if channels.items != 1 else ' has'} several channels, {coding}"
            names_by_text.setdefault(of, []).append(
                plain(f"{name} ({channels.bitrate_bps / 1000:.3g} kbit/s for each channel)")
            )
    for of, names in names_by_text.items():
        notes.append(f"bitrate counts the bits of all channels; {of}: {', '.join(names)}")
    return notes


_WHY = {
    "limit": "a limit of {limit:,} was set",
    "shard": "the run is of one shard",
    "unfinished": "the run is not finished",
    "data": "the data hold no more",
}


def rows_notes(rows: RowCount, other: Sequence[str] = ()) -> list[str]:
    """Return notes on a run with other questions than its benchmark, with the reason."""
    data_notes = [plain(f"other data than the definition's: {', '.join(other)}")] if other else []
    if not rows or rows.why is None:
        return data_notes
    why = _WHY[rows.why].format(limit=rows.limit or 0) if rows.n < rows.size else "the definition says a smaller number"
    return [f"{rows_text(rows)}: {why}", *data_notes]


def rows_text(rows: RowCount) -> str:
    """Describe the number of questions in a run, relative to its benchmark."""
    if rows.n > rows.size:
        return f"{rows.n:,} questions in place of {rows.size:,}"
    return f"{rows.n:,} of {rows.size:,} questions"


def grouped_reasons(reasons: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Group equal reasons of several systems, with `systems` and added counts."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in reasons:
        key = (row["metric"], row["status"], json.dumps(row["reason_code"]))
        group = groups.setdefault(key, {**row, "systems": [], "count": 0})
        group["systems"].append(row["system"])
        group["count"] += row["count"]
    return list(groups.values())


def decimals(column: Iterable[Valued], factor: float = 1.0) -> int:
    """Choose the decimals of a column of `factor * value`, by its median interval."""
    column = [entry for entry in column if entry.value is not None]
    halves = sorted(factor * (e.ci95[1] - e.ci95[0]) / 2 for e in column if e.ci95)
    halves = [half for half in halves if half > 0]
    least = three_digits([e.value for e in column], factor)
    if not halves:
        return least
    # The median, not the narrowest: a system at a metric's ceiling would add meaningless decimals.
    return max(least, _clamp(-math.floor(math.log10(halves[len(halves) // 2] / 2))))


def three_digits(values: Iterable[float | None], factor: float = 1.0) -> int:
    """Return how many decimals show three digits of the median of `factor * values`."""
    sizes = sorted(abs(factor * value) for value in values if value)
    return _clamp(2 - math.floor(math.log10(sizes[len(sizes) // 2]))) if sizes else 3


def _clamp(count: int) -> int:
    return max(0, min(4, count))


def number(value: float | None, places: int, factor: float = 1.0, *, sign: bool = False) -> str:
    """Format `factor * value` with `places` decimals and a true minus; `–` for None."""
    if value is None:
        return "–"
    text = f"{factor * value:{'+' if sign else ''}.{places}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def probability(p: float | None) -> str:
    """Format a p-value; small ones are below 0.001."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def spread(entry: Valued, places: int, factor: float = 1.0) -> str:
    """Format an interval: `±0.02` if it is symmetric within a tenth, else its ends.

    An interval with a note ends with an asterisk.
    """
    if not entry.ci95 or entry.value is None:
        return ""
    low, high = entry.ci95
    below, above = entry.value - low, high - entry.value
    mark = "*" if entry.note else ""
    places = _visible(factor * (high - low) / 2, places)
    if abs(above - below) <= 0.1 * (above + below) / 2:
        return f"±{factor * (high - low) / 2:.{places}f}{mark}"
    return f"[{number(low, places, factor)}, {number(high, places, factor)}]{mark}"


def _visible(width: float, places: int) -> int:
    """Return enough decimals to show a positive width as non-zero."""
    return next((more for more in range(places, 9) if not width > 0 or float(f"{width:.{more}f}")), places)


def interval_notes(entries: Iterable[tuple[str, str, MetricSummary | Counted]]) -> list[str]:
    """Return notes on missing values, missing intervals and intervals."""
    places_by_note: dict[tuple[str, str], dict[str, list[str]]] = {}
    texts: dict[tuple[str, str], dict[Diagnostic, None]] = {}
    every: dict[str, list[str]] = {}
    for system, metric, entry in entries:
        if entry.value is None and not entry.n:
            continue
        every.setdefault(plain(metric), []).append(plain(system))
        judged = entry.judging.tested if isinstance(entry, MetricSummary) and entry.judging else None
        for note in entry.note.parts if entry.note else ():
            # A codec's fixed rate is exact, however few items there are.
            if metric == BITRATE and note.code == "all_equal":
                continue
            mark = "no value" if entry.value is None else "*" if entry.ci95 else "–"
            # A judge's test has a note per result, other notes one per code.
            key_of_note = json.dumps(note.as_dict()) if note == judged or note.code == "remark" else note.code
            key = ("* judge" if note == judged else mark, key_of_note)
            texts.setdefault(key, {})[note] = None
            places_by_note.setdefault(key, {}).setdefault(plain(metric), []).append(plain(system))
    return [
        f"{mark}{_about(where, every)}: {in_common(texts[mark, note_key])}"
        for (mark, note_key), where in places_by_note.items()
    ]


def methods_of(entries: Iterable[tuple[str, str, MetricSummary]]) -> list[str]:
    """Return the codes of the interval methods of a table."""
    return list(dict.fromkeys(entry.method for _, _, entry in entries if entry.ci95 and entry.method))


def legend(entries: Sequence[tuple[str, str, MetricSummary]]) -> list[str]:
    """Return one line on interval methods and on the mark of values like the best."""
    methods = ", ".join(methods_of(entries))
    tied_note = ALIKE if any(is_alike(entry) for _, _, entry in entries) else ""
    return list(filter(None, ["; ".join(filter(None, [methods and f"95 % intervals: {methods}", tied_note]))]))


MOST_NOTES = 4
"""The most notes below a table on the terminal."""


def shortened(notes: Sequence[str], most: int = MOST_NOTES) -> list[str]:
    """Return the first notes, and how many more are on the page."""
    more = len(notes) - most + 1
    return list(notes) if len(notes) <= most else [*notes[: most - 1], f"{more} more notes are on the page"]


def _about(where: Mapping[str, Sequence[str]], every: Mapping[str, Sequence[str]]) -> str:
    """Return a note's metrics and systems in brackets; empty if it covers all."""
    if where == every:
        return ""
    together: dict[tuple[str, ...], list[str]] = {}
    for metric, systems in where.items():
        together.setdefault(() if systems == every[metric] else tuple(systems), []).append(metric)
    parts = []
    for systems, metrics in together.items():
        named = "all metrics" if len(metrics) == len(every) > 1 else ", ".join(metrics)
        parts.append(f"{named} of {', '.join(systems)}" if systems else named)
    return f" ({'; '.join(parts)})"


def below_50_text(entry: MetricSummary, places: int) -> str:
    """Return an error rate without items above 50 %, and their count, or ""."""
    rest = entry.below_50
    if not rest:
        return ""
    items = f"{rest.above:,} item{'s' if rest.above > 1 else ''} above 50 %"
    return f"{number(rest.value, places)} {spread(rest, places)} without {items}".replace("  ", " ")


def is_best(entry: MetricSummary) -> bool:
    """Whether a system is marked as the best in a metric (see `stats.verdict`)."""
    return bool(entry.standing and entry.standing.best)


def is_alike(entry: MetricSummary) -> bool:
    """Whether a system is not distinguishable from the best in a metric."""
    return bool(entry.standing and entry.standing.alike)


def best_notes(entries: Entries) -> list[str]:
    """Return notes on the best values: over which samples, who is excluded, and why."""
    over: dict[int, dict[str, None]] = {}
    uncompared: dict[tuple[str, str], dict[str, None]] = {}
    nobody: dict[str, dict[str, None]] = {}
    marked: set[str] = set()
    of: dict[str, dict[str, None]] = {}
    entries = list(entries)
    if len({system for system, _, _ in entries}) < 2:
        return []
    for system, metric, entry in entries:
        standing = entry.standing
        if not standing:
            continue
        if standing.compared:
            of.setdefault(plain(metric), {})[plain(system)] = None
            marked |= {plain(metric)} if standing.best else set()
            if standing.why:
                nobody.setdefault(standing.why, {})[plain(metric)] = None
            elif entry.common:
                over.setdefault(entry.common.n, {})[plain(metric)] = None
        else:
            of.setdefault(plain(metric), {})
            uncompared.setdefault((plain(system), standing.why or ""), {})[plain(metric)] = None
    about = lambda metrics: "" if len(metrics) == len(of) else f" ({', '.join(metrics)})"  # noqa: E731
    return [
        *(f"{system} is not compared{about(metrics)}: {why}" for (system, why), metrics in uncompared.items()),
        *(
            f"the best is found over the {n:,} samples for which all compared systems have a value{about(metrics)}"
            for n, metrics in over.items()
        ),
        *(
            f"{'' if marked.issuperset(metrics) else 'no best is marked: '}{why}{about(metrics)}"
            for why, metrics in nobody.items()
        ),
    ]


def missing_notes(entries: Entries) -> list[str]:
    """Return notes on systems with different missing samples, one per metric.

    They state the values over common samples, and with failures as the worst value.
    """
    by_metric: dict[str, dict[str, MetricSummary]] = {}
    for system, metric, entry in entries:
        by_metric.setdefault(metric, {})[system] = entry
    return [
        plain(f"{metric}: {text}", most=2_000)
        for metric, held in by_metric.items()
        if (text := _missing_note(held)) is not None
    ]


def _missing_note(held: Mapping[str, MetricSummary]) -> str | None:
    """Note on systems without values for the same samples; None if all have them."""
    held = {
        name: entry
        for name, entry in held.items()
        if entry.n or (entry.counting_failures and entry.counting_failures.of_all is not None)
    }
    common = next((entry.common for entry in held.values() if entry.common), None)
    if common is None and len({entry.n for entry in held.values()}) < 2:
        return None
    factor, unit = shown_unit(next(iter(held.values())).unit)
    places = decimals(held.values(), factor)

    def written(values: Mapping[str, float | None]) -> str:
        each = (f"{name} {number(value, places, factor)}" for name, value in values.items())
        return " ".join(filter(None, (", ".join(each), unit)))

    compared = {name: entry for name, entry in held.items() if not entry.standing or entry.standing.compared}
    over = {name: (entry.common or entry).value for name, entry in compared.items()}
    worst = {name: worst_values.of_all for name, entry in held.items() if (worst_values := entry.counting_failures)}
    phrases = ["systems lack values for different samples"] if common is None or common.n else []
    if common is not None and common.n and over:
        phrases.append(f"over the {common.n:,} that all have: {written(over)}")
    if any(value is not None for value in worst.values()):
        phrases.append(f"with failures as the worst value: {written(worst)}")
    return "; ".join(phrases) or None


def draw_notes(entries: Entries) -> list[str]:
    """Return notes on several answers per question, one per number."""
    return [
        plain(f"{metric} of {system}: {_draws_note(entry)}")
        for system, metric, entry in entries
        if entry.draws and entry.value is not None
    ]


def _draws_note(entry: MetricSummary) -> str:
    """Note on a metric over several answers per question: spread, share that pass."""
    draws, (factor, unit) = entry.draws, shown_unit(entry.unit)
    places = decimals([entry], factor)
    each = str(draws.n) if draws.fewest == draws.n else f"{draws.fewest} to {draws.n}"
    phrases = [f"over {each} answers to each of {draws.questions:,} questions"]
    if draws.spread is not None:
        of = f"{number(factor * draws.spread, max(places, three_digits([draws.spread], factor)))} {unit}".rstrip()
        phrases.append(f"the standard deviation between draws is {of}")
    shares = []
    for rule, words in (("all", "in all answers"), ("any", "in any answer"), ("majority", "in most answers")):
        passed = draws.passes.get(rule)
        if passed and passed.value is not None:
            shares.append(f"{words} {number(passed.value, 3)} {spread(passed, 3)}".rstrip())
    if shares:
        right = "are right" if draws.passes_at == 1 else f"pass with {draws.passes_at:g}"
        without_score = max(passed.failed for passed in draws.passes.values())
        but = f", without {without_score:,} questions with an answer without a score" if without_score else ""
        phrases.append(f"the share of questions that {right}{but}: {', '.join(shares)}")
    return "; ".join(phrases)


def duration(seconds: float | None) -> str:
    """Format a duration such as `1.4 s`, `2 min 05 s` or `3 h 20 min`; `–` if unknown."""
    if seconds is None:
        return "–"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60:02d} min"
