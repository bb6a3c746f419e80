"""Notes on values: chance level, failure rules, reading rates, win rate, bias.

See `codec_bench.stats.chance_level`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.report import numbers
from codec_bench.report.numbers import Entries, decimals, number, plain, shown_unit, spread
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import Counted, MetricSummary, Subset

_COUNTED = {"as-wrong": "counts them as wrong", "left-out": "leaves them out"}


def chance_text(entry: MetricSummary | Subset | None) -> str:
    """Return the chance level, such as `chance 0.25`; empty without options."""
    chance = None if entry is None or entry.chance is UNSET else entry.chance
    return "" if chance is None else f"chance {number(chance, 2)}"


def metric_notes(entries: Entries) -> list[str]:
    """Return notes on metrics of answers."""
    entries = list(entries)
    notes = _failures(entries)
    for system, metric, entry in entries:
        notes += [f"{metric} of {system}: {phrase}" for phrase in (*_read(entry), *_preference_notes(entry))]
    return list(map(plain, notes))


def value_notes(entries: Entries) -> list[str]:
    """Return the notes on the values of a table of results."""
    entries = list(entries)
    further = (numbers.draw_notes, numbers.best_notes, numbers.missing_notes, numbers.interval_notes)
    return [note for notes_of in (metric_notes, *further) for note in notes_of(entries)]


def _failures(entries: Sequence[tuple[str, str, MetricSummary]]) -> list[str]:
    """Return the values by the rules for failures, where they differ."""
    values_by_rule: dict[tuple[str, str, str], list[str]] = {}
    for system, metric, entry in entries:
        policies = entry.policies
        if not policies or policies.left_out == policies.as_wrong:
            continue
        factor, unit = shown_unit(entry.unit)
        places = decimals([entry], factor)
        values = (policies.left_out, policies.as_wrong)
        written = " and ".join(number(value, places, factor) for value in values)
        values_by_rule.setdefault((system, policies.official.toolkit, policies.official.counts), []).append(
            f"{metric} {written} {unit}".rstrip()
        )
    return [
        f"{system} with failures excluded and as wrong: {', '.join(values)}; {toolkit} {_COUNTED[counts]}"
        for (system, toolkit, counts), values in values_by_rule.items()
    ]


def _read(entry: MetricSummary) -> list[str]:
    """A note on how many answers rule and judge could read; [] if not counted."""
    reading = entry.read
    if not reading:
        return []
    total = reading.exact + reading.aligned + reading.neither
    return [
        f"of {total:,} answers the rule read an option in {100 * reading.exact_share:.1f} %, and rule and judge "
        f"together in {100 * reading.share:.1f} %"
    ]


def _preference_notes(entry: MetricSummary) -> list[str]:
    """Notes on answers rated against references: win rate, ties, position bias."""
    comparison = entry.compared
    if not comparison:
        return []
    wins, bias = comparison.win_rate, comparison.position_bias
    phrases = [
        f"rated above the reference in {_written(wins, 3)} of the answers and level with it in "
        f"{number(comparison.ties, 3)}; the references have {number(comparison.reference, 2)} on average"
    ]
    if comparison.changed is not UNSET:
        phrases.append(
            f"the verdict changed with the order in {number(comparison.changed, 3)} of the answers, which count as ties"
        )
    if bias.value is not None:
        more = f"gets {_written(bias, 2, sign=True)} more than the second"
        phrases.append(f"position bias: the answer in the first place {more}")
    return phrases


def _written(entry: Counted, places: int, *, sign: bool = False) -> str:
    return " ".join(filter(None, (number(entry.value, places, sign=sign), spread(entry, places))))
