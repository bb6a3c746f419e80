"""The agreement of raters in words, for the terminal and the page: tables as heads and rows, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codec_bench.apps.agreement.coefficients import PairAgreement
from codec_bench.apps.agreement.panel import Agreement, Compared
from codec_bench.report.numbers import interval_notes, number, plain, spread
from codec_bench.stats.correlation import Coefficient
from codec_bench.stats.summary_types import Counted

PLACES = 3
NAMES = {
    "spearman": "Spearman", "kendall": "Kendall", "pearson": "Pearson", "kappa_quadratic": "kappa (quadratic)",
    "kappa_linear": "kappa (linear)", "kappa": "kappa (unweighted)", "exact": "equal", "within_one": "within 1",
    "difference": "difference",
}  # fmt: skip
"""What the coefficients are called in tables."""
ROLES = {
    "judge": "judge", "metric": "metric", "person": "person", "run": "run", "majority": "most people", "mean": "mean of people",
}  # fmt: skip
MAIN = {
    "rating": ("spearman", "kappa_quadratic", "exact"),
    "option": ("exact", "kappa"),
    "preference": ("exact", "kappa"),
}
"""The coefficients in the tables of subsets; the data that are printed as JSON have all."""

_NOTES = 4
"""The most notes on subsets that are shown."""
Rows = tuple[list[str], list[list[str]]]
"""The heads of a table, and its rows."""


def rater_rows(agreement: Agreement) -> Rows:
    """Who rated, how much, and what is missing."""
    rows = [
        [
            plain(one.name),
            ROLES[one.role],
            f"{one.rated:,}",
            ", ".join(f"{n:,} {plain(why)}" for why, n in one.missing.items()),
        ]
        for one in agreement.raters
    ]
    return ["rater", "is", "rated", "without a rating"], rows


def pair_rows(agreement: Agreement) -> Rows:
    """One row for each two raters that were compared, over all items."""
    names = list(agreement.pairs[0].overall.coefficients)
    rows = [[*_who(pair), *_numbers(pair.overall, names)] for pair in agreement.pairs]
    return ["reference", "rater", "items", "units", *(NAMES[name] for name in names)], rows


def headed(agreement: Agreement) -> list[Compared]:
    """The pairs that the further tables are about: those with the people together, where there are several, or else
    all.
    """
    together = {rater.name for rater in agreement.raters if rater.role in ("mean", "majority")}
    return [pair for pair in agreement.pairs if pair.reference in together] or list(agreement.pairs)


def crossed(agreement: Agreement) -> list[Compared]:
    """The pairs whose confusion is shown: those of `headed` without the mean of people, which is no value of the scale."""
    mean = {rater.name for rater in agreement.raters if rater.role == "mean"}
    return [pair for pair in headed(agreement) if pair.reference not in mean]


def subset_notes(agreement: Agreement) -> list[str]:
    """What the tables of subsets say with an asterisk, or by leaving an interval out; one sentence each."""
    of_subset = {
        (agreement_of_value.coefficients[name].note, agreement_of_value.coefficients[name].low is None)
        for pair in headed(agreement)
        for values in pair.subsets.values()
        for agreement_of_value in values.values()
        for name in MAIN[agreement.kind]
        if agreement_of_value.coefficients[name].note and agreement_of_value.n
    }
    notes = sorted(
        {f"{'interval or value missing' if none else '* interval'} in subsets: {note}" for note, none in of_subset}
    )
    more = (
        [f"{len(notes) - _NOTES} more notes on subsets are in the data that --json prints"]
        if len(notes) > _NOTES
        else []
    )
    return [*map(plain, notes[:_NOTES]), *more]


def subset_rows(agreement: Agreement, column: str) -> Rows:
    """One row for each value of a column and each pair of `headed`."""
    names = MAIN[agreement.kind]
    rows = [
        [plain(value), *_who(pair), *_numbers(pair_agreement, names)]
        for value in _values(agreement, column)
        for pair in headed(agreement)
        if (pair_agreement := pair.subsets.get(column, {}).get(value)) is not None
    ]
    return [plain(column), "reference", "rater", "items", "units", *(NAMES[name] for name in names)], rows


def columns_of(agreement: Agreement) -> list[str]:
    """The columns by which the agreement is broken down."""
    return list(dict.fromkeys(column for pair in agreement.pairs for column in pair.subsets))


def problem_rows(agreement: Agreement) -> Rows:
    """What could not be used of a file of ratings."""
    rows = [
        [one["what"], plain(one["rater"]), f"{one['count']:,}", plain("; ".join(one["examples"]))]
        for one in agreement.problems
    ]
    return ["problem", "rater", "ratings", "for example"], rows


def confusion_rows(pair: Compared) -> Rows:
    """How often each rating of the rater (columns) stands beside each of the reference (rows)."""
    confusion = pair.confusion
    rows = [
        [plain(name), *(f"{count:,}" for count in counts)] for name, counts in zip(confusion.rows, confusion.counts)
    ]
    return ["", *map(plain, confusion.columns)], rows


def apart_rows(agreement: Agreement) -> Rows:
    """The items on which the raters differ most, with their ratings."""
    names = [one.name for one in agreement.raters if any(one.name in item.ratings for item in agreement.apart)]
    rows = [
        [
            plain(item.item.id),
            plain(_system(item.item)),
            f"{item.gap:.3g}",
            *(plain(item.ratings.get(n, "–")) for n in names),
        ]
        for item in agreement.apart
    ]
    return ["item", "system", "apart", *map(plain, names)], rows


def agreement_notes(agreement: Agreement) -> list[str]:
    """Why numbers or intervals are missing, and what else to know; one sentence each."""
    entries = [
        (f"{pair.reference} and {pair.rater}", NAMES[name], _entry(pair.overall, coefficient))
        for pair in agreement.pairs
        for name, coefficient in pair.overall.coefficients.items()
    ]
    return [*interval_notes(entries), *map(plain, agreement.notes)]


def coefficient_text(coefficient: Coefficient) -> str:
    """A coefficient with its interval, as a cell."""
    return " ".join(
        filter(None, (number(coefficient.value, PLACES), spread(Counted.from_dict(coefficient.as_dict()), PLACES)))
    )


def _values(agreement: Agreement, column: str) -> list[str]:
    return list(dict.fromkeys(value for pair in agreement.pairs for value in pair.subsets.get(column, {})))


def _who(pair: Compared) -> list[str]:
    return [plain(pair.reference), plain(pair.rater)]


def _system(item: Any) -> str:
    return f"{item.system} and {item.other}" if item.other else str(item.system)


def _entry(pair: PairAgreement, coefficient: Coefficient) -> Counted:
    return Counted.from_dict({**coefficient.as_dict(), "n": pair.n})


def _numbers(pair: PairAgreement, names: Sequence[str]) -> list[str]:
    """The cells of a row: items, units and the coefficients with their intervals."""
    cells = [f"{pair.n:,}", f"{pair.units:,}"]
    return [*cells, *(coefficient_text(pair.coefficients[name]) for name in names)]
