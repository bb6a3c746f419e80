"""Agreement of raters and metrics, and P.1401, as tables, notes, plots and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.apps.agreement.coefficients import PairAgreement
from codec_bench.apps.agreement.metric_correlations import COEFFICIENTS, MetricAgreement, MetricPair
from codec_bench.apps.agreement.p1401 import Against, Fit, Mapped, Standard, shown_mapping
from codec_bench.apps.agreement.panel import Agreement, Compared
from codec_bench.apps.agreement.stability import StabilityTable
from codec_bench.report.numbers import interval_notes, number, plain, probability, spread
from codec_bench.stats.correlation import Coefficient
from codec_bench.stats.summary_types import Counted
from codec_bench.store.export import csv_text

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
MAPPINGS = {"none": "none", "first": "line", "third": "cubic"}
_ENDS = ("", "_low", "_high")
_WIDTH, _HEIGHT, _LEFT, _BELOW = 340, 260, 34, 26
STABILITY_FIELDS = (
    *("metric", "change", "group", "n", "lost", "mean_shift", "largest_shift", "spread", "in_spreads", "places"),
)


def metric_rows(agreement: MetricAgreement) -> Rows:
    """Build the table of metrics: cluster, direction and counts."""
    cluster = {name: number for number, names in enumerate(agreement.clusters, 1) for name in names}
    rows = [[plain(c.name), str(cluster[c.name]), c.better, f"{c.n:,}", f"{c.without:,}"] for c in agreement.columns]
    return ["metric", "cluster", "better", "items", "without a value"], rows


def stability_rows(stability: StabilityTable, metric: str) -> Rows:
    """Build the table of a metric's shifts under small changes of the audio.

    Returns:
        Column heads, and one row of texts per change, largest mean shift in spreads first.
    """
    rows = sorted((row for row in stability.rows if row.metric == metric), key=lambda row: -(row.in_spreads or 0.0))
    heads = [plain(metric), "moves by", "at most", "in spreads", "places that change", "scores", "without a value"]
    return heads, [
        [
            row.change, number(row.mean_shift, 4), number(row.largest_shift, 4), number(row.in_spreads, 2),
            str(row.places), str(row.n),
            str(row.lost),
        ]
        for row in rows
    ]  # fmt: skip


def stability_csv(stability: StabilityTable) -> str:
    """Write all rows, as `codec_bench.metrics.sensitivity` reads them."""
    return csv_text(STABILITY_FIELDS, ([_field(row, name) for name in STABILITY_FIELDS] for row in stability.rows))


def _field(row: Any, name: str) -> Any:
    value = getattr(row, name)
    return float(f"{round(value, 6):.4g}") if isinstance(value, float) else value


def matrix_rows(agreement: MetricAgreement) -> Rows:
    """Build the matrix of metrics: Spearman's correlations over items."""
    values = {frozenset((p.first, p.second)): p.items.coefficients["spearman"].value for p in agreement.pairs}
    names = [column.name for column in agreement.columns]
    cell = lambda a, b: "" if a == b else number(values[frozenset((a, b))], 2)  # noqa: E731
    return ["Spearman over items", *map(plain, names)], [[plain(a), *(cell(a, b) for b in names)] for a in names]


def metric_pair_rows(agreement: MetricAgreement) -> Rows:
    """Build one row per pair of metrics, highest agreement first."""
    over = [f"{NAMES[name]} over {unit}" for unit in ("items", "systems") for name in COEFFICIENTS]
    heads = ["metrics", "say the same", "items", "units", "excluded", over[0], over[1], "systems", over[2], over[3]]
    size = lambda pair: pair.items.coefficients["spearman"].value  # noqa: E731
    ordered = sorted(agreement.pairs, key=lambda pair: -2.0 if size(pair) is None else size(pair), reverse=True)
    return heads, [_pair_cells(pair) for pair in ordered]


def _pair_cells(pair: MetricPair) -> list[str]:
    """Format the cells of a metric pair's line."""
    items = [coefficient_text(pair.items.coefficients[name]) for name in COEFFICIENTS]
    systems = [coefficient_text(pair.of_systems[name]) for name in COEFFICIENTS]
    return [
        f"{plain(pair.first)} and {plain(pair.second)}", "yes" if pair.is_same else "", f"{pair.items.n:,}",
        f"{pair.items.units:,}", f"{pair.excluded:,}", *items, str(pair.systems), *systems,
    ]  # fmt: skip


def metric_agreement_notes(agreement: MetricAgreement) -> list[str]:
    """Explain missing intervals, metrics without direction, and judges, as sentences."""
    entries = [
        (f"{pair.first} and {pair.second}", f"{NAMES[name]} over {label}", Counted.from_dict({**one.as_dict(), "n": n}))
        for pair in agreement.pairs
        for label, held, n in (
            ("items", pair.items.coefficients, pair.items.n),
            ("systems", pair.of_systems, pair.systems),
        )
        for name, one in held.items()
    ]
    undirected = [plain(column.name) for column in agreement.columns if column.better == "neither"]
    notes = [f"without a direction, so the sign of their correlations has no meaning: {', '.join(undirected)}"]
    judges = [f"{plain(name)}: {plain(words)}" for name, words in agreement.judges.items()]
    return [*interval_notes(entries), *(notes if undirected else []), *judges]


def metric_agreement_csv(agreement: MetricAgreement) -> str:
    """Write one line per pair of metrics, in the order of the clusters."""
    columns = [f"{name}_{unit}{end}" for unit in ("items", "systems") for name in COEFFICIENTS for end in _ENDS]
    rows = []
    for pair in agreement.pairs:
        of = [held[name] for held in (pair.items.coefficients, pair.of_systems) for name in COEFFICIENTS]
        numbers = [(one.value, one.low, one.high) for one in of]
        counts = (int(pair.is_same), pair.items.n, pair.items.units, pair.excluded, pair.systems)
        judges = "; ".join(
            f"{name}: {agreement.judges[name]}" for name in (pair.first, pair.second) if name in agreement.judges
        )
        rows.append(
            [pair.first, pair.second, *counts, *(value for three in numbers for value in three), judges or None]
        )
    return csv_text(["first", "second", "same", "items", "units", "left_out", "systems", *columns, "judges"], rows)


def rater_rows(agreement: Agreement) -> Rows:
    """Build the table of raters: role, rated items, and reasons of missing ratings."""
    missing = lambda one: ", ".join(f"{n:,} {plain(why)}" for why, n in one.missing.items())  # noqa: E731
    rows = [[plain(one.name), ROLES[one.role], f"{one.rated:,}", missing(one)] for one in agreement.raters]
    return ["rater", "is", "rated", "without a rating"], rows


def pair_rows(agreement: Agreement) -> Rows:
    """Build one row per compared pair, over all items."""
    names = list(agreement.pairs[0].overall.coefficients)
    rows = [[*_who(pair), *_numbers(pair.overall, names)] for pair in agreement.pairs]
    return ["reference", "rater", "items", "units", *(NAMES[name] for name in names)], rows


def headline_pairs(agreement: Agreement) -> list[Compared]:
    """Return the pairs for further tables: with the consensus, or else all."""
    together = {rater.name for rater in agreement.raters if rater.role in ("mean", "majority")}
    return [pair for pair in agreement.pairs if pair.reference in together] or list(agreement.pairs)


def confusion_pairs(agreement: Agreement) -> list[Compared]:
    """Return the pairs with a confusion: `headline_pairs` without the mean of people."""
    mean = {rater.name for rater in agreement.raters if rater.role == "mean"}
    return [pair for pair in headline_pairs(agreement) if pair.reference not in mean]


def subset_notes(agreement: Agreement) -> list[str]:
    """Explain asterisks and missing intervals of subset tables."""
    of_subset = {
        (agreement_of_value.coefficients[name].note, agreement_of_value.coefficients[name].low is None)
        for pair in headline_pairs(agreement)
        for values in pair.subsets.values()
        for agreement_of_value in values.values()
        for name in MAIN[agreement.kind]
        if agreement_of_value.coefficients[name].note and agreement_of_value.n
    }
    notes = sorted(
        {f"{'interval or value missing' if none else '* interval'} in subsets: {note}" for note, none in of_subset}
    )
    if len(notes) > _NOTES:
        notes[_NOTES:] = [f"{len(notes) - _NOTES} more notes on subsets are in the data that --json prints"]
    return list(map(plain, notes))


def subset_rows(agreement: Agreement, column: str) -> Rows:
    """Build the table of agreement by value of a column, for `headline_pairs`."""
    names = MAIN[agreement.kind]
    rows = [
        [plain(value), *_who(pair), *_numbers(pair_agreement, names)]
        for value in _values(agreement, column)
        for pair in headline_pairs(agreement)
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
    rows = zip(confusion.rows, confusion.counts)
    return ["", *map(plain, confusion.columns)], [[plain(name), *map("{:,}".format, counts)] for name, counts in rows]


def apart_rows(agreement: Agreement) -> Rows:
    """Build the table of the items with most disagreement, with all ratings."""
    names = [one.name for one in agreement.raters if any(one.name in item.ratings for item in agreement.apart)]
    rows = []
    for one in agreement.apart:
        systems = f"{one.item.system} and {one.item.other}" if one.item.other else one.item.system
        ratings = (plain(one.ratings.get(name, "–")) for name in names)
        rows.append([plain(one.item.id), plain(systems), f"{one.gap:.3g}", *ratings])
    return ["item", "system", "apart", *map(plain, names)], rows


def agreement_notes(agreement: Agreement) -> list[str]:
    """Explain missing numbers and intervals, one sentence each."""
    counted = lambda coefficient, n: Counted.from_dict({**coefficient.as_dict(), "n": n})  # noqa: E731
    entries = [
        (f"{pair.reference} and {pair.rater}", NAMES[name], counted(coefficient, pair.overall.n))
        for pair in agreement.pairs
        for name, coefficient in pair.overall.coefficients.items()
    ]
    return [*interval_notes(entries), *map(plain, agreement.notes)]


def coefficient_text(coefficient: Coefficient) -> str:
    """Format a coefficient with its interval."""
    ends = spread(Counted.from_dict(coefficient.as_dict()), PLACES)
    return " ".join(filter(None, (number(coefficient.value, PLACES), ends)))


def _values(agreement: Agreement, column: str) -> list[str]:
    return list(dict.fromkeys(value for pair in agreement.pairs for value in pair.subsets.get(column, {})))


def _who(pair: Compared) -> list[str]:
    return [plain(pair.reference), plain(pair.rater)]


def _numbers(pair: PairAgreement, names: Sequence[str]) -> list[str]:
    """Format the cells of a row: items, units and coefficients."""
    cells = [f"{pair.n:,}", f"{pair.units:,}"]
    return [*cells, *(coefficient_text(pair.coefficients[name]) for name in names)]


def fit_rows(standard: Standard) -> Rows:
    """Build one row per metric, level and mapping with figures."""
    heads = ["metric", "over", "n", "excluded", "mapping", "RMSE", "RMSE*", "outlier ratio", "Pearson", "Spearman"]
    rows = [
        [
            plain(fit.metric), fit.level, f"{fit.n:,}", f"{fit.excluded:,}", MAPPINGS[one.mapping],
            coefficient_text(one.rmse),
            number(one.rmse_star, PLACES), coefficient_text(one.outlier_ratio), coefficient_text(one.pearson),
            coefficient_text(fit.spearman),
        ]
        for fit in standard.fits
        for one in fit.mapped
        if one.note is None
    ]  # fmt: skip
    return heads, rows


def against_rows(standard: Standard) -> Rows:
    """Build one row per pair and level, after the highest common mapping."""
    last = {(one.first, one.second, one.level): one for one in standard.compared}
    heads = ["metrics", "over", "n", "mapping", "RMSE", "RMSE*", "outlier ratio", "Pearson", "Pearson, same data"]
    rows = [
        [
            f"{plain(one.first)} and {plain(one.second)}", one.level, f"{one.n:,}", MAPPINGS[one.mapping],
            *(probability(p) for p in (one.p_rmse, one.p_rmse_star, one.p_outliers, one.p_pearson, one.p_dependent)),
        ]
        for one in last.values()
    ]  # fmt: skip
    return heads, rows


def standard_notes(standard: Standard) -> list[str]:
    """Explain missing figures, one sentence each."""
    notes: dict[str, list[str]] = {}
    for fit in standard.fits:
        for one in fit.mapped:
            if one.note:
                notes.setdefault(f"{MAPPINGS[one.mapping]} over {fit.level}: {one.note}", []).append(plain(fit.metric))
    turned = dict.fromkeys(plain(fit.metric) for fit in standard.fits if fit.turned)
    signs = [f"less is better, so the sign is turned before the mapping: {', '.join(turned)}"] if turned else []
    figures = [f"no figure for {', '.join(names)}; mapping {why}" for why, names in notes.items()]
    return [*figures, *signs, *standard.notes]


def standard_csv(standard: Standard) -> str:
    """Write one table of metrics and pairs; `second` is empty for a metric."""
    tests = ("f_rmse", "p_rmse", "f_rmse_star", "p_rmse_star", "z_pearson", "p_pearson", "p_dependent", "p_outliers")
    figures = [f"{name}{end}" for name in ("rmse", "outlier_ratio", "pearson", "spearman") for end in _ENDS]
    heads = ["metric", "second", "level", "mapping", "n", "left_out", "rmse_star", *figures]
    heads += ["coefficients", "note", *tests]
    rows: list[list[Any]] = [_fit_line(fit, one) + [None] * len(tests) for fit in standard.fits for one in fit.mapped]
    rows += [_against_line(one, len(figures) + 4, tests) for one in standard.compared]
    return csv_text(heads, rows)


def _fit_line(fit: Fit, one: Mapped) -> list[Any]:
    """Return the CSV cells of one metric under one mapping."""
    held = (one.rmse, one.outlier_ratio, one.pearson, fit.spearman)
    ends = [value for figure in held for value in (figure.value, figure.low, figure.high)]
    coefficients = " ".join(f"{value:.9g}" for value in one.coefficients)
    return [fit.metric, "", fit.level, one.mapping, fit.n, fit.excluded, one.rmse_star, *ends, coefficients, one.note]


def _against_line(one: Against, empty: int, tests: tuple[str, ...]) -> list[Any]:
    between: list[Any] = [None] * empty
    return [one.first, one.second, one.level, one.mapping, one.n, *between, *(getattr(one, name) for name in tests)]


def plots(standard: Standard) -> list[dict[str, Any]]:
    """Describe the plots of each metric and level, in units of the drawing."""
    return [_plot(fit, one) for fit in standard.fits if (one := shown_mapping(fit)).note is None]


def _plot(fit: Fit, one: Mapped) -> dict[str, Any]:
    """Build the scatter plot of mean votes over a metric, with the fitted mapping."""
    points = fit.points
    left, right = float(points.value.min()), float(points.value.max())
    bottom = float((points.mos - points.ci).min())
    top = float((points.mos + points.ci).max())
    x = lambda value: _LEFT + 8 + (value - left) / (right - left) * (_WIDTH - _LEFT - 16)  # noqa: E731
    y = lambda mos: (_HEIGHT - _BELOW) * (1 - 0.03 - 0.94 * (mos - bottom) / max(top - bottom, 1e-9))  # noqa: E731
    over = np.linspace(left, right, 61)
    curve = np.polynomial.polynomial.polyval(over, one.coefficients)
    shown = -1.0 if fit.turned else 1.0
    return {
        "metric": fit.metric, "level": fit.level, "n": fit.n, "mapping": MAPPINGS[one.mapping], "turned": fit.turned,
        "figures": [("RMSE", coefficient_text(one.rmse)), ("RMSE*", number(one.rmse_star, PLACES)),
            ("outlier ratio", coefficient_text(one.outlier_ratio)),
                    ("Pearson", coefficient_text(one.pearson))],
        "width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "floor": _HEIGHT - _BELOW,
        "curve": " ".join(
            f"{x(a):.1f},{y(b):.1f}" for a, b in zip(over.tolist(), np.clip(curve, bottom, top).tolist())
        ),
        "points": [
            {
                "x": f"{x(value):.1f}", "y": f"{y(mos):.1f}", "low": f"{y(mos - ci):.1f}", "high": f"{y(mos + ci):.1f}",
                "words": f"{name}: {fit.metric} {shown * value:.4g}, votes {mos:.2f} ± {ci:.2f}",
            }
            for name, value, mos, ci in points.rows()
        ],
        "x_ticks": [(f"{x(v):.1f}", f"{shown * v:.3g}") for v in (left, (left + right) / 2, right)],
        "y_ticks": [(f"{y(v):.1f}", f"{v:.3g}") for v in np.linspace(bottom, top, 4).tolist()],
    }  # fmt: skip
