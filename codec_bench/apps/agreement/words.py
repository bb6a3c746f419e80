"""The agreement of raters as tables and notes, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

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
"""Display names of the coefficients."""
ROLES = {
    "judge": "judge", "metric": "metric", "person": "person", "run": "run", "majority": "most people",
    "mean": "mean of people",
}  # fmt: skip
MAIN = {
    "rating": ("spearman", "kappa_quadratic", "exact"),
    "option": ("exact", "kappa"),
    "preference": ("exact", "kappa"),
}
"""The coefficients in tables of subsets; JSON has all."""

_NOTES = 4
"""The most notes on subsets that are shown."""
Rows = tuple[list[str], list[list[str]]]
"""The heads of a table, and its rows."""


def rater_rows(agreement: Agreement) -> Rows:
    """Build one row per rater: counts and missing ratings."""
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
    """Build one row per compared pair, over all items."""
    names = list(agreement.pairs[0].overall.coefficients)
    rows = [[*_who(pair), *_numbers(pair.overall, names)] for pair in agreement.pairs]
    return ["reference", "rater", "items", "units", *(NAMES[name] for name in names)], rows


def headed(agreement: Agreement) -> list[Compared]:
    """Return the pairs for further tables: with the consensus, or else all."""
    together = {rater.name for rater in agreement.raters if rater.role in ("mean", "majority")}
    return [pair for pair in agreement.pairs if pair.reference in together] or list(agreement.pairs)


def crossed(agreement: Agreement) -> list[Compared]:
    """Return the pairs with a confusion: `headed` without the mean of people."""
    mean = {rater.name for rater in agreement.raters if rater.role == "mean"}
    return [pair for pair in headed(agreement) if pair.reference not in mean]


def subset_notes(agreement: Agreement) -> list[str]:
    """Explain asterisks and missing intervals of subset tables."""
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
    """Build one row per value of a column and pair of `headed`."""
    names = MAIN[agreement.kind]
    rows = [
        [plain(value), *_who(pair), *_numbers(pair_agreement, names)]
        for value in _values(agreement, column)
        for pair in headed(agreement)
        if (pair_agreement := pair.subsets.get(column, {}).get(value)) is not None
    ]
    return [plain(column), "reference", "rater", "items", "units", *(NAMES[name] for name in names)], rows


def columns_of(agreement: Agreement) -> list[str]:
    """List the columns of the breakdown."""
    return list(dict.fromkeys(column for pair in agreement.pairs for column in pair.subsets))


def problem_rows(agreement: Agreement) -> Rows:
    """Build the rows of unusable ratings."""
    rows = [
        [one["what"], plain(one["rater"]), f"{one['count']:,}", plain("; ".join(one["examples"]))]
        for one in agreement.problems
    ]
    return ["problem", "rater", "ratings", "for example"], rows


def confusion_rows(pair: Compared) -> Rows:
    """Build the confusion of rater (columns) and reference (rows)."""
    confusion = pair.confusion
    rows = [
        [plain(name), *(f"{count:,}" for count in counts)] for name, counts in zip(confusion.rows, confusion.counts)
    ]
    return ["", *map(plain, confusion.columns)], rows


def apart_rows(agreement: Agreement) -> Rows:
    """Build the rows of items of most disagreement, with their ratings."""
    names = [one.name for one in agreement.raters if any(one.name in item.ratings for item in agreement.apart)]
    rows = [
        [
            plain(item.item.id),
            plain(f"{item.item.system} and {item.item.other}" if item.item.other else item.item.system),
            f"{item.gap:.3g}",
            *(plain(item.ratings.get(n, "–")) for n in names),
        ]
        for item in agreement.apart
    ]
    return ["item", "system", "apart", *map(plain, names)], rows


def agreement_notes(agreement: Agreement) -> list[str]:
    """Explain missing numbers and intervals, one sentence each."""
    entries = [
        (
            f"{pair.reference} and {pair.rater}",
            NAMES[name],
            Counted.from_dict({**coefficient.as_dict(), "n": pair.overall.n}),
        )
        for pair in agreement.pairs
        for name, coefficient in pair.overall.coefficients.items()
    ]
    return [*interval_notes(entries), *map(plain, agreement.notes)]


def coefficient_text(coefficient: Coefficient) -> str:
    """Format a coefficient with its interval."""
    return " ".join(
        filter(None, (number(coefficient.value, PLACES), spread(Counted.from_dict(coefficient.as_dict()), PLACES)))
    )


def _values(agreement: Agreement, column: str) -> list[str]:
    return list(dict.fromkeys(value for pair in agreement.pairs for value in pair.subsets.get(column, {})))


def _who(pair: Compared) -> list[str]:
    return [plain(pair.reference), plain(pair.rater)]


def _numbers(pair: PairAgreement, names: Sequence[str]) -> list[str]:
    """Format the cells of a row: items, units and coefficients."""
    cells = [f"{pair.n:,}", f"{pair.units:,}"]
    return [*cells, *(coefficient_text(pair.coefficients[name]) for name in names)]
