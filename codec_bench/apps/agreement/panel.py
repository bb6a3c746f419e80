"""A panel: several raters of the same items, and the agreement of pairs by subset.

Each rater has one number per item, NaN where missing; `Panel.labels` names numbered options. Two raters are compared on
their common items. Items of one unit (a speaker, or the answers to one question) count as one for intervals.

Consensus of raters, and preferences from scores.
A table of ratings or numbered labels is float64 `(raters, items)`, NaN where missing. The majority is the most frequent
value of an item with at least two raters; `TIES` names the rule for ties, since published protocols rarely state it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from codec_bench.apps.agreement.coefficients import (
    CORRELATIONS,
    KAPPAS,
    OF_LABELS,
    OF_RATINGS,
    SHARES,
    PairAgreement,
    agreement_of,
    confusion,
    middle_ranks,
)
from codec_bench.apps.agreement.p1401 import Standard
from codec_bench.apps.agreement.raters import RatedItem, Scale
from codec_bench.messages import Diagnostic, to_json
from codec_bench.stats.intervals import unit_codes

TIES = ("left-out", "any", "equal")
"""Rules for ties: no majority, any most frequent value agrees, or equal preference."""
FEWEST_RATERS = 2
PREFERRED, EQUAL, OTHER = 1.0, 0.0, -1.0
"""Preferences as numbers: the first system, neither, the second system."""
Role = Literal["judge", "metric", "person", "run", "majority", "mean"]
COEFFICIENTS = {"rating": OF_RATINGS, "option": OF_LABELS, "preference": ("kappa_linear", "kappa", "exact")}
"""The coefficients by kind. Preferences are ordered: first system, neither, second."""
PREFERENCES = {PREFERRED: "first", EQUAL: "equal", OTHER: "second"}
MOST_LEVELS = 21
MIXED = Diagnostic("benchmarks_of_scales")
OF_MEAN = Diagnostic("mean_of_raters")
_BINS = 10


def majority(table: np.ndarray, *, ties: str = "left-out", against: np.ndarray | None = None) -> np.ndarray:
    """Return the most frequent value of each item, `(items,)`; NaN without one.

    Args:
        table: `(raters, items)`, NaN without a rating; items need two ratings.
        ties: `left-out` gives NaN, `equal` gives 0, and `any` a most frequent value, that of `against` if it is one.
        against: the values of the compared rater, `(items,)`; for `any`.
    """
    best, most, tied = _modes(table)
    out = np.where((~np.isnan(table)).sum(axis=0) >= FEWEST_RATERS, best, np.nan)
    usable = tied & ~np.isnan(out)
    if ties == "equal":
        return np.where(usable, EQUAL, out)
    if ties == "any" and against is not None:
        agrees = (table == against).sum(axis=0) == most
        return np.where(usable & agrees, against, out)
    return out if ties == "any" else np.where(usable, np.nan, out)


def undecided(table: np.ndarray) -> int:
    """Count the tied items among those with two or more ratings."""
    _, _, tied = _modes(table)
    return int((tied & ((~np.isnan(table)).sum(axis=0) >= FEWEST_RATERS)).sum())


def mean_rating(table: np.ndarray) -> np.ndarray:
    """Return the mean of `(raters, items)` for each item; NaN below two ratings."""
    known = ~np.isnan(table)
    count = known.sum(axis=0)
    sums = np.where(known, table, 0.0).sum(axis=0)
    return np.where(count >= FEWEST_RATERS, sums / np.maximum(count, 1), np.nan)


def preference(first: np.ndarray, second: np.ndarray, *, equal_within: float = 0.0) -> np.ndarray:
    """Derive preferences from two systems' scores, each `(items,)`; NaN without one.

    Higher scores are better; differences up to `equal_within` are `EQUAL`.
    """
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return np.where(
        np.isnan(differences), np.nan, np.sign(np.where(np.abs(differences) <= equal_within + 1e-12, 0.0, differences))
    )


def _modes(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each item's most frequent value, its count, and whether another ties."""
    ordered = np.sort(table, axis=0)  # NaN goes last
    items = table.shape[1]
    best, most, tied, run = np.full(items, np.nan), np.zeros(items, int), np.zeros(items, bool), np.zeros(items, int)
    for index, row in enumerate(ordered):
        same = row == ordered[index - 1] if index else np.zeros(items, bool)
        run = np.where(np.isnan(row), 0, np.where(same, run + 1, 1))
        more = run > most
        tied = np.where(more, False, tied | ((run == most) & (run > 0) & (row != best)))
        best, most = np.where(more, row, best), np.maximum(most, run)
    return best, most, tied


@dataclass(slots=True)
class Rater:
    """One rater of a panel.

    Args:
        values: the ratings, float64 `(items,)`, NaN where there is none.
        scales: by benchmark, the lowest and the highest rating; None if unknown.
    """

    name: str
    role: Role
    values: np.ndarray
    scales: Mapping[str, Scale | None] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def rated(self) -> int:
        """How many items it rated."""
        return int((~np.isnan(self.values)).sum())

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values, without the ratings."""
        return {"name": self.name, "role": self.role, "rated": self.rated, "missing": dict(self.missing)}


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of pairs of ratings: reference in rows, rater in columns."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The agreement of two raters of a panel, overall and by column and value."""

    reference: str
    rater: str
    overall: PairAgreement
    subsets: Mapping[str, Mapping[str, PairAgreement]]
    confusion: Confusion

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        subsets = {
            column: {value: agreement.as_dict() for value, agreement in values.items()}
            for column, values in self.subsets.items()
        }
        facts = {"reference": self.reference, "rater": self.rater, **self.overall.as_dict()}
        counts = [list(row) for row in self.confusion.counts]
        confusion = {"rows": list(self.confusion.rows), "columns": list(self.confusion.columns), "counts": counts}
        return {**facts, "subsets": subsets, "confusion": confusion}


@dataclass(slots=True)
class Panel:
    """Items and their raters.

    Args:
        kind: `rating`, `option` or `preference`.
        units: the independent unit of each item.
        subsets: by column and value, the positions of the items.
    """

    kind: str
    items: Sequence[RatedItem]
    units: Sequence[str]
    raters: list[Rater]
    subsets: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    labels: Sequence[str] = ()

    def of_role(self, *roles: Role) -> list[Rater]:
        """Return the raters with one of these roles."""
        return [rater for rater in self.raters if rater.role in roles]

    def format_rating(self, value: float) -> str:
        """Format a rating."""
        if self.kind == "preference":
            return PREFERENCES.get(value, f"{value:g}")
        return self.labels[int(value)] if self.kind == "option" else f"{value:.4g}"


def with_consensus(panel: Panel, ties: str) -> None:
    """Append the people's majority and, of ratings, mean as raters of the panel."""
    persons = panel.of_role("person")
    if len(persons) < 2:
        return
    table = np.stack([person.values for person in persons])
    scales = persons[0].scales
    of = f"of {len(persons)} raters"
    if panel.kind == "rating":
        panel.raters.append(Rater(f"mean {of}", "mean", mean_rating(table), scales))
    panel.raters.append(Rater(f"majority {of}", "majority", majority(table, ties=ties), scales))


def compare_raters(panel: Panel, reference: Rater, rater: Rater, *, ties: str = "left-out") -> Compared:
    """Compare two raters by the coefficients of their kind, and by subset.

    Args:
        ties: of a majority as reference. With `any` it takes the rater's value where that is among the most frequent;
            other rules were applied when its values were made.
    """
    against = reference.values
    if reference.role == "majority" and ties == "any":
        table = np.stack([person.values for person in panel.of_role("person")])
        against = majority(table, ties=ties, against=rater.values)
    both = ~(np.isnan(against) | np.isnan(rater.values))
    codes = unit_codes(panel.units, len(panel.units))
    assert codes is not None  # there are units
    names = COEFFICIENTS[panel.kind]

    def over(places: np.ndarray) -> PairAgreement:
        return agreement_of(
            reference=against[places], rater=rater.values[places],
            codes=np.unique(codes[places], return_inverse=True)[1],
            names=names, without=_inapplicable_coefficients(panel, reference, rater, places),
        )  # fmt: skip

    rated = lambda places: np.asarray([n for n in places if both[n]], int)  # noqa: E731
    subsets = {
        column: {value: over(rated(places)) for value, places in values.items()}
        for column, values in panel.subsets.items()
    }
    shared = np.flatnonzero(both)
    counts = _confusion(panel, against[shared], rater.values[shared])
    return Compared(reference.name, rater.name, over(shared), subsets, counts)


def _inapplicable_coefficients(panel: Panel, reference: Rater, rater: Rater, places: np.ndarray) -> dict[str, str]:
    """Map the coefficients that do not apply to two raters to the reasons.

    Args:
        places: positions of the items compared.
    """
    if panel.kind != "rating":
        return {}
    over = {item.benchmark for item in panel.items}
    if len(over) > 1:
        over = {panel.items[index].benchmark for index in places.tolist()}
    scales = [{one.scales.get(benchmark) for benchmark in over} for one in (reference, rater)]
    if any(len(of_rater) > 1 for of_rater in scales):
        return dict.fromkeys(OF_RATINGS, MIXED)
    # People of one file share an unknown scale; unbounded metrics share none.
    is_unbounded = None in scales[0] | scales[1] and "metric" in (reference.role, rater.role)
    if scales[0] != scales[1] or is_unbounded:
        (first,), (second,) = (sorted(map(_scale_words, of_rater)) or [""] for of_rater in scales)
        why = Diagnostic("raters_of_scales", first=first, second=second)
        return {name: why for name in OF_RATINGS if name not in CORRELATIONS}
    if "mean" in (reference.role, rater.role):
        return dict.fromkeys(("kappa", *SHARES), OF_MEAN)
    return {}


def _scale_words(scale: Scale | None) -> str:
    return "" if scale is None else f"{scale[0]:g} to {scale[1]:g}"


def _confusion(panel: Panel, reference: np.ndarray, rater: np.ndarray) -> Confusion:
    """Count pairs of ratings; many different numbers are binned evenly."""
    if panel.kind == "rating" and len(np.unique(np.concatenate([reference, rater]))) > MOST_LEVELS:
        edges = np.linspace(min(reference.min(), rater.min()), max(reference.max(), rater.max()), _BINS + 1)
        names = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
        bins = [np.clip(np.searchsorted(edges, values, "right") - 1, 0, _BINS - 1) for values in (reference, rater)]
        rows, columns, counts = confusion(*bins)
        write = lambda value: names[int(value)]  # noqa: E731
    else:
        rows, columns, counts = confusion(reference, rater)
        write = panel.format_rating
    return Confusion(
        tuple(map(write, rows.tolist())), tuple(map(write, columns.tolist())), tuple(map(tuple, counts.tolist()))
    )


def gaps(panel: Panel, reference: Rater, rater: Rater) -> np.ndarray:
    """Return the distance of two raters on each item, `(items,)`; 0 without a rating.

    It is that of ratings if they share a scale, otherwise of ranks as a share of all. Different labels are 1 apart.
    """
    distances = np.zeros(len(panel.items))
    both = np.flatnonzero(~(np.isnan(reference.values) | np.isnan(rater.values)))
    x, y = reference.values[both], rater.values[both]
    if panel.kind == "option":
        distances[both] = x != y
    elif panel.kind == "rating" and KAPPAS[0] in _inapplicable_coefficients(panel, reference, rater, both):
        distances[both] = np.abs(middle_ranks(x) - middle_ranks(y))
    else:
        distances[both] = np.abs(x - y)
    return distances


@dataclass(frozen=True, slots=True)
class Apart:
    """An item of disagreement: the largest gap of compared raters, and all ratings."""

    item: RatedItem
    gap: float
    ratings: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {**self.item._asdict(), "gap": self.gap, "ratings": dict(self.ratings)}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters.

    Args:
        items: rated by at least one compared rater.
        pairs: the compared pairs; differences are rater minus reference.
        apart: the items of most disagreement, largest first.
        problems: unusable ratings of a file: `what`, `count`, `examples` with their lines, `rater`.
        standard: P.1401 figures; None without people.
    """

    kind: str
    items: int
    raters: tuple[Rater, ...]
    pairs: tuple[Compared, ...]
    apart: tuple[Apart, ...]
    problems: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    standard: Standard | None = None

    def pair(self, reference: str, rater: str) -> Compared:
        """Return two compared raters by name; raises KeyError."""
        for one in self.pairs:
            if (one.reference, one.rater) == (reference, rater):
                return one
        raise KeyError(f"{reference} and {rater} were not compared")

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "kind": self.kind,
            "items": self.items,
            "raters": [rater.as_dict() for rater in self.raters],
            "pairs": [pair.as_dict() for pair in self.pairs],
            "apart": [one.as_dict() for one in self.apart],
            "problems": [dict(problem) for problem in self.problems],
            **to_json({"notes": self.notes}),
            **({"p1401": self.standard.as_dict()} if self.standard else {}),
        }


def farthest(panel: Panel, compared: Sequence[tuple[Rater, Rater]], most: int) -> tuple[Apart, ...]:
    """Find up to `most` items with the largest distance between compared raters."""
    if not compared or not panel.items:
        return ()
    gap = np.max([gaps(panel, reference, rater) for reference, rater in compared], axis=0)
    order = np.argsort(-gap, kind="stable")[:most]
    ratings_of = lambda index: {  # noqa: E731
        one.name: _rated(panel, one, index) for one in panel.raters if not np.isnan(one.values[index])
    }
    farthest_first = [index for index in order.tolist() if gap[index] > 0]
    return tuple(Apart(panel.items[index], float(gap[index]), ratings_of(index)) for index in farthest_first)


def _rated(panel: Panel, rater: Rater, index: int) -> str:
    value = float(rater.values[index])
    return f"{value:.4g}" if rater.role == "mean" else panel.format_rating(value)
