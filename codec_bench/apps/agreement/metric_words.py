"""The agreement of metrics as tables, notes, and CSV."""

from __future__ import annotations

import io
from typing import Any

from codec_bench.apps.agreement.metric_correlations import COEFFICIENTS, MetricAgreement, MetricPair
from codec_bench.apps.agreement.stability import StabilityTable
from codec_bench.apps.agreement.words import NAMES, Rows, coefficient_text
from codec_bench.report.numbers import interval_notes, number, plain
from codec_bench.stats.summary_types import Counted
from codec_bench.store.export import write_csv

STABILITY_FIELDS = (
    *("metric", "change", "group", "n", "lost", "mean_shift", "largest_shift", "spread", "in_spreads", "places"),
)
_ENDS = ("", "_low", "_high")


def metric_rows(agreement: MetricAgreement) -> Rows:
    """Build one row per metric, by cluster."""
    cluster = {name: number for number, names in enumerate(agreement.clusters, 1) for name in names}
    rows = [[plain(c.name), str(cluster[c.name]), c.better, f"{c.n:,}", f"{c.without:,}"] for c in agreement.columns]
    return ["metric", "cluster", "better", "items", "without a value"], rows


def stability_rows(stability: StabilityTable, metric: str) -> Rows:
    """Build one row per change of the audio, largest shift first."""
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
    file = io.StringIO()
    write_csv(file, STABILITY_FIELDS, ([_field(row, name) for name in STABILITY_FIELDS] for row in stability.rows))
    return file.getvalue()


def _field(row: Any, name: str) -> Any:
    value = getattr(row, name)
    return float(f"{round(value, 6):.4g}") if isinstance(value, float) else value


def matrix_rows(agreement: MetricAgreement) -> Rows:
    """Build the matrix of Spearman's correlations over items."""
    values = {frozenset((p.first, p.second)): p.items.coefficients["spearman"].value for p in agreement.pairs}
    names = [column.name for column in agreement.columns]
    cell = lambda a, b: "" if a == b else number(values[frozenset((a, b))], 2)  # noqa: E731
    return ["Spearman over items", *map(plain, names)], [[plain(a), *(cell(a, b) for b in names)] for a in names]


def pair_rows(agreement: MetricAgreement) -> Rows:
    """Build one row per pair of metrics, highest agreement first."""
    over = [f"{NAMES[name]} over {unit}" for unit in ("items", "systems") for name in COEFFICIENTS]
    heads = ["metrics", "say the same", "items", "units", "left out", over[0], over[1], "systems", over[2], over[3]]
    size = lambda pair: pair.items.coefficients["spearman"].value  # noqa: E731
    ordered = sorted(agreement.pairs, key=lambda pair: -2.0 if size(pair) is None else size(pair), reverse=True)
    return heads, [_cells(pair) for pair in ordered]


def _cells(pair: MetricPair) -> list[str]:
    items = [coefficient_text(pair.items.coefficients[name]) for name in COEFFICIENTS]
    systems = [coefficient_text(pair.of_systems[name]) for name in COEFFICIENTS]
    return [
        f"{plain(pair.first)} and {plain(pair.second)}", "yes" if pair.is_same else "", f"{pair.items.n:,}",
        f"{pair.items.units:,}", f"{pair.excluded:,}", *items, str(pair.systems), *systems,
    ]  # fmt: skip


def metric_agreement_notes(agreement: MetricAgreement) -> list[str]:
    """Explain missing numbers and intervals, and metrics that are not negated."""
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
    out = io.StringIO()
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
    write_csv(out, ["first", "second", "same", "items", "units", "left_out", "systems", *columns, "judges"], rows)
    return out.getvalue()
