"""What stands beside the values of metrics of answers, in words and short texts: the chance level, rules for failures,
rates of reading, win rate and position bias (see `codec_bench.stats.chance_level`)."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.report.numbers import Entries, decimals, number, plain, shown_unit, spread
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import Counted, MetricSummary, Subset

_COUNTED = {"as-wrong": "counts them as wrong", "left-out": "leaves them out"}


def chance_text(entry: MetricSummary | Subset | None) -> str:
    """The chance level as it stands with a value, such as `chance 0.25`; empty if the questions have no options."""
    chance = None if entry is None or entry.chance is UNSET else entry.chance
    return "" if chance is None else f"chance {number(chance, 2)}"


def metric_notes(entries: Entries) -> list[str]:
    """What to know of metrics of answers beside their values; one sentence each.

    Args:
        entries: (system, metric, entry of the summary), of all systems.
    """
    entries = list(entries)
    notes = _failures(entries)
    for system, metric, entry in entries:
        notes += [f"{metric} of {system}: {phrase}" for phrase in (*_read(entry), *_compared(entry))]
    return list(map(plain, notes))


def _failures(entries: Sequence[tuple[str, str, MetricSummary]]) -> list[str]:
    """The values by the rules for failures, where they differ: one sentence for each system and toolkit."""
    values_by_rule: dict[tuple[str, str, str], list[str]] = {}
    for system, metric, entry in entries:
        policies = entry.policies
        if not policies or policies.left_out == policies.as_wrong:
            continue
        factor, unit = shown_unit(entry.unit)
        places = decimals([entry], factor)
        values = (policies.left_out, policies.as_wrong)
        written = " and ".join(number(None if value is None else factor * value, places) for value in values)
        values_by_rule.setdefault((system, policies.official.toolkit, policies.official.counts), []).append(
            f"{metric} {written} {unit}".rstrip()
        )
    return [
        f"{system} with failures left out and as wrong: {', '.join(values)}; {toolkit} {_COUNTED[counts]}"
        for (system, toolkit, counts), values in values_by_rule.items()
    ]


def _read(entry: MetricSummary) -> list[str]:
    """How many answers a rule and the judge could read."""
    reading = entry.read
    if not reading:
        return []
    total = reading.exact + reading.aligned + reading.neither
    return [
        f"of {total:,} answers the rule read an option in {100 * reading.exact_share:.1f} %, and rule and judge together in "
        f"{100 * reading.share:.1f} %"
    ]


def _compared(entry: MetricSummary) -> list[str]:
    """How often the answers win against the references, and what the judge gives to the first place."""
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
        phrases.append(
            f"position bias: the answer that stands first gets {_written(bias, 2, sign=True)} more than the one that stands second"
        )
    return phrases


def _written(entry: Counted, places: int, *, sign: bool = False) -> str:
    """A value with its interval."""
    return " ".join(filter(None, (number(entry.value, places, sign=sign), spread(entry, places))))
