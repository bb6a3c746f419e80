"""Effects of wordings and option orders on a model's scores: rows and notes.

Failures count as wrong, so unreadable answers do not improve a wording. A wording stands out if its value's interval is
worse than the median over all wordings, or if it has no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from codec_bench.report import numbers
from codec_bench.stats.summary_types import (
    Answers,
    Estimate,
    Extreme,
    MetricSummary,
    OfWording,
    RobustnessSummary,
    Wording,
    WordingSpread,
)

WAYS = {
    "empty": "empty",
    "endless": "without an end",
    "copy": "copies of the prompt",
    "phonemes": "phonemes",
    "language": "in another language or script",
    "truncated": "cut inside of the reasoning",
    "refusal": "refusals",
}
"""The kinds of missing answers, in words."""
_NOTABLE = 0.1
"""The share of missing answers from which a sentence reports them."""
_MOST_NAMED = 3
_TEXT = 60
"""Characters of a wording on the terminal; the page and `summary.json` have all."""


@dataclass(frozen=True, slots=True)
class RobustnessCell:
    """The value of one metric in one wording, failures counted as wrong.

    Args:
        value, spread: formatted.
        n, failed: answers with and without a score.
        stands_out: whether it is much worse.
        filled: the share of the greatest value, in per cent, for a bar.
    """

    value: str
    spread: str
    n: int
    failed: int
    stands_out: bool
    filled: float


@dataclass(frozen=True, slots=True)
class RobustnessRow:
    """One wording: number, text, answers, cells by metric, and missing answers.

    `none` is their share in words, or empty; `is_notable` whether they are many.
    """

    name: str
    text: str
    n: int
    cells: Sequence[RobustnessCell | None]
    none: str
    is_notable: bool

    @property
    def stands_out(self) -> bool:
        """Whether the wording stands out by some metric or by its answers."""
        return self.is_notable or any(cell is not None and cell.stands_out for cell in self.cells)


@dataclass(frozen=True, slots=True)
class RobustnessTable:
    """The wordings of one model."""

    metrics: Sequence[str]
    rows: Sequence[RobustnessRow]
    sentences: Sequence[str]
    same: bool


def robustness_of(metrics: Mapping[str, MetricSummary], answers: Answers) -> RobustnessTable | None:
    """Return the wordings of one model; None if it has a single one."""
    measured = {name: entry for name, entry in metrics.items() if entry.robustness}
    wordings = (answers and answers.wordings) or {}
    if not measured or len(wordings) < 2:
        return None
    columns = {name: _cells(entry) for name, entry in measured.items()}
    rows = []
    for name, about in wordings.items():
        share = about.no_answer / about.n if about.n else 0.0
        text = numbers.plain(about.text or "", 300)
        cells = [column.get(name) for column in columns.values()]
        rows.append(RobustnessRow(name, text, about.n, cells, _none(about), share >= _NOTABLE))
    phrases = [_sentence(name, entry.robustness, entry.unit) for name, entry in measured.items() if entry.robustness]
    notable = sorted((row for row in rows if row.is_notable), key=lambda row: -wordings[row.name].no_answer)
    if notable:
        named = "; ".join(f"in wording {row.name} {row.none}" for row in notable[:_MOST_NAMED])
        more = f"; and in {len(notable) - _MOST_NAMED} more" if len(notable) > _MOST_NAMED else ""
        phrases.append(f"answers that are none: {named}{more}")
    same = all(entry.robustness and entry.robustness.same_questions for entry in measured.values())
    heads = [
        " ".join(filter(None, (name, numbers.shown_unit(e.unit)[1], numbers.ARROWS[e.higher_is_better])))
        for name, e in measured.items()
    ]
    return RobustnessTable([numbers.plain(head) for head in heads], rows, [numbers.plain(one) for one in phrases], same)


def choice_notes(choices: Mapping[str, Any] | None, *, places: bool = True) -> list[str]:
    """Return notes on the effect of the options' order.

    Args:
        choices: the entry `choices` of the summary's `answers`.
        places: whether to include the content of `place_rows`.
    """
    if not choices:
        return []
    notes, same = [], choices["consistent"]
    if same is not None and same["value"] is not None:
        without_answer = f", without {same['failed']:,} that lack an answer" if same["failed"] else ""
        value = f"{numbers.number(same['value'], 3)} {numbers.spread(Estimate.from_dict(same), 3)}"
        notes.append(f"the same option is named in all rotations of {value} of {same['n']:,} questions{without_answer}")
    if places:
        notes += _place_notes(choices["places"])
    if choices["unnamed"]["n"]:
        unnamed = choices["unnamed"]
        notes.append(f"{unnamed['n']:,} answers ({100 * unnamed['share']:.3g} %) name no option, or several")
    if unchanged := choices["kept"]:
        their = "question has no new order of its" if unchanged == 1 else "questions have no new order of their"
        notes.append(f"{unchanged:,} {their} options: there are none, or some that name the places of others")
    return notes


def _place_notes(places: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Notes on preferred option positions, and on accuracy by position."""
    notes = []
    rate = lambda value: numbers.number(100 * value, 1)  # noqa: E731
    named = [
        f"{at} {rate(one['named']['value'])} % (without a preference {rate(one['expected'])} %)"
        for at, one in places.items()
        if one["named"]["value"] is not None
    ]
    if named:
        notes.append(f"the places that answers name: {', '.join(named)}")
    shares = {at: Estimate.from_dict(one["right"]) for at, one in places.items()}
    right = [
        f"{at} {numbers.number(share.value, 3)} {numbers.spread(share, 3)}".rstrip()
        for at, share in shares.items()
        if share.value is not None
    ]
    if right:
        notes.append(f"the share of right answers by the place of the right option: {', '.join(right)}")
    return notes


def place_rows(choices: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return rows by option's place: named, expected and right shares.

    Args:
        choices: as `choices_summary` returns them, which describes the shares.
    """

    def share(one: Mapping[str, Any]) -> tuple[str, str]:
        held = Estimate.from_dict(one)
        return numbers.number(held.value, 1, 100), numbers.spread(held, 1, 100)

    rows = []
    for at, one in choices["places"].items():
        (named, named_spread), (right, right_spread) = share(one["named"]), share(one["right"])
        expected = numbers.number(one["expected"], 1, 100)
        rows.append(
            {"at": at, "named": named, "named_spread": named_spread, "expected": expected, "right": right,
             "right_spread": right_spread, "n": f"{one['right']['n']:,}"}
        )  # fmt: skip
    return rows


def _cells(entry: MetricSummary) -> dict[str, RobustnessCell]:
    """A metric's cells by wording, with marks on the worse ones."""
    held = entry.robustness.wordings if entry.robustness else {}
    factor, higher = numbers.shown_unit(entry.unit)[0], entry.higher_is_better
    places = numbers.decimals(held.values(), factor)
    known = [one.value for one in held.values() if one.value is not None]
    middle, greatest = median(known), max(map(abs, known)) or 1.0
    cells = {}
    for name, one in held.items():
        value = one.value
        cells[name] = RobustnessCell(
            numbers.number(value, places, factor),
            numbers.spread(one, places, factor),
            one.n,
            one.failed,
            value is None or _is_worse(one, middle, higher),
            0.0 if value is None else 100 * abs(value) / greatest,
        )
    return cells


def _is_worse(one: OfWording, middle: float, higher_is_better: bool | None) -> bool:
    if not one.ci95 or higher_is_better is None:
        return False
    low, high = one.ci95
    return bool(high < middle if higher_is_better else low > middle)


def _none(about: Wording) -> str:
    if not about.no_answer:
        return ""
    ways = ", ".join(f"{WAYS[kind]} {count:,}" for kind, count in sorted(about.ways.items(), key=lambda kind: -kind[1]))
    return f"{about.no_answer:,} of {about.n:,} ({ways})"


def _sentence(name: str, over: RobustnessSummary, unit: str) -> str:
    """Mean, spread, range and extremes of a metric over wordings, as a sentence."""
    factor, shown_unit = numbers.shown_unit(unit)
    places = max(numbers.decimals([over.mean], factor), numbers.three_digits([over.sd.value], factor))

    def written(one: WordingSpread | Extreme) -> str:
        shown = numbers.number(one.value, places, factor)
        return " ".join(filter(None, (shown, numbers.spread(one, places, factor), shown_unit)))

    phrases = [f"mean {written(over.mean)}", f"standard deviation {written(over.sd)}"]
    if over.sd_by_chance is not None:
        phrases[-1] += f" (by chance alone {numbers.number(factor * over.sd_by_chance, places)})"
    phrases.append(f"range {written(over.range)}")
    for word, one in (("worst", over.worst), ("best", over.best)):
        if one is not None:
            phrases.append(f"{word} {written(one)} in wording {one.wording}")
    if over.without_value:
        phrases.append(f"no value in wording {', '.join(over.without_value)}")
    same_questions = "" if over.same_questions else ", each over different questions"
    wrong = ", failures as wrong" if any(one.failed for one in over.wordings.values()) else ""
    return f"{name} over {over.n} wordings{same_questions}{wrong}: {'; '.join(phrases)}"


def wording_heads(table: RobustnessTable) -> list[str]:
    """Return the heads of the table in the terminal."""
    return ["wording", "", *table.metrics, "no answers", "text"]


def wording_rows(table: RobustnessTable) -> list[list[str]]:
    """Return a row of texts per wording, with an exclamation mark where it stands out."""
    return [
        [row.name, "!" if row.stands_out else "", *map(_written, row.cells), row.none or "–", _shortened(row.text)]
        for row in table.rows
    ]


def _written(cell: RobustnessCell | None) -> str:
    if cell is None:
        return "–"
    return " ".join(filter(None, (cell.value, cell.spread, f"({cell.failed:,} failed)" if cell.failed else "")))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 1]}…"
