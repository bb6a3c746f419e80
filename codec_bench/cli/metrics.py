"""`codec-bench metrics --agree`: which metrics of runs say the same; and the rows of `codec-bench list metrics`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.errors import UnknownName, UserError

if TYPE_CHECKING:
    from codec_bench.stats.metric_agreement import MetricAgreement

FORMATS = ("table", "json", "csv")
BETTER = {True: "higher", False: "lower", None: "neither"}
COST = "s an hour"
"""The column of what a metric costs: processor seconds for an hour of sound."""
ORDERS = ("about", "needs", "cost")
_MOST_PAIRS = 40


def metrics(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.")],
    agree: Annotated[bool, typer.Option("--agree", help="Correlate the metrics of the runs with each other.")] = False,
    only: Annotated[str | None, typer.Option("--metrics", help="Only these, with commas. Default: all of the runs.")] = None,
    human: Annotated[Path | None, typer.Option("--with", help="A CSV file of listeners' ratings, as listen import writes it (ratings.csv): one more column, by sample and system.")] = None,
    least: Annotated[float, typer.Option("--least", help="Spearman's correlation over items from which two metrics say the same.")] = 0.9,
    form: Annotated[str, typer.Option("--format", help="table, json or csv.")] = "table",
) -> None:  # fmt: skip
    """Say which metrics of runs say the same, and how well they agree with listeners."""
    from codec_bench.api.metric_agreement import metric_agreement
    from codec_bench.report.metric_agreement import metric_agreement_csv

    if not agree:
        raise UserError(
            "it is not said what about the metrics of these runs is wanted",
            hint="codec-bench metrics --agree RUN; codec-bench list metrics lists all metrics",
        )
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    found = metric_agreement(runs=runs, metrics=only, human=human, least=least)
    if form == "json":
        sys.stdout.write(json.dumps(found.as_dict(), ensure_ascii=False, allow_nan=False) + "\n")
    elif form == "csv":
        sys.stdout.write(metric_agreement_csv(found))
    else:
        _print(found)
    if found.problems:
        from codec_bench.cli.output import talk

        told = "; ".join(f"{one['count']:,} {one['what']} (such as {one['examples'][0]})" for one in found.problems)
        talk(f"ratings that were not used or need a look: {told}")


def _print(found: MetricAgreement) -> None:
    from codec_bench.cli.output import console, talk
    from codec_bench.report import metric_agreement as written
    from codec_bench.report.table import wide_table

    out = console()
    for heads, rows in (written.metric_rows(found), written.matrix_rows(found)):
        out.print(wide_table(heads, rows, out.width))
    heads, rows = written.pair_rows(found)
    out.print(wide_table(heads, rows[:_MOST_PAIRS], out.width))
    if len(rows) > _MOST_PAIRS:
        talk(f"{len(rows) - _MOST_PAIRS:,} more pairs, which agree less, are in --format csv")
    for cluster in found.clusters:
        if len(cluster) > 1:
            out.print(f"say the same (from {found.least:g}): {', '.join(cluster)}", markup=False)
    for note in written.metric_agreement_notes(found):
        out.print(note, markup=False)


def metric_row(name: str) -> dict[str, Any]:
    """The row of a metric, or of a group that one model gives, in the list of metrics."""
    from codec_bench import metrics
    from codec_bench.metrics.costs import cost_of

    if name in metrics.GROUPS:
        return {
            "name": name,
            "about": metrics.topic_of(name),
            "kind": "group",
            "needs": metrics.weights_of(name),
            COST: cost_of(metrics.GROUPS[name][0]),
            "better": "",
            "unit": "",
            "measures": ", ".join(metrics.GROUPS[name]),
        }
    try:
        made = metrics.REGISTRY.resolve(name)
    except UserError as error:  # from a broken package; the other rows are not affected
        return {"name": name, "measures": f"broken: {error.message}"}
    given = {"pair": "reference", "text": "text"}.get(made.kind, "")
    return {
        "name": name, "about": metrics.topic_of(name), "kind": made.kind,
        "needs": ", ".join(filter(None, [given, metrics.weights_of(name)])),
        COST: cost_of(name), "better": BETTER[made.higher_is_better], "unit": made.unit,
        "variants": ", ".join(filter(None, getattr(made, "variants", ()))), "measures": (made.__doc__ or "").strip().split("\n")[0],
    }  # fmt: skip


def metric_rows(by: str) -> list[dict[str, Any]]:
    """The rows of all metrics, and of the groups that one model gives.

    Args:
        by: their order: `about`, `needs` (what needs least first) or `cost` (the cheapest first; what was not measured last).

    Raises:
        UnknownName: there is no such order.
    """
    from codec_bench import metrics

    if by not in ORDERS:
        raise UnknownName("order of metrics", by, ORDERS)
    topics = [*metrics.TOPICS, ""]
    found = sorted(
        [*metrics.REGISTRY.names(), *metrics.GROUPS], key=lambda name: (topics.index(metrics.topic_of(name)), name)
    )
    rows = [metric_row(name) for name in found]
    if by == "needs":
        rows.sort(key=lambda row: (row.get("needs", "").count(","), row.get("needs", "")))
    if by == "cost":
        rows.sort(key=lambda row: (row.get(COST) is None, row.get(COST) or 0.0))
    return rows


def group_rows() -> list[dict[str, Any]]:
    """The groups of metrics by topic, each with all metrics that it may stand for."""
    from codec_bench.metrics import OFFLINE, group_names
    from codec_bench.metrics.groups import group_metrics

    # Its metrics are those of all other groups, and a table that names them again is no table.
    return [
        {"name": name, "metrics": "all, as far as they need no download" if name == OFFLINE else group_metrics(name)}
        for name in group_names()
    ]
