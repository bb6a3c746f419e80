"""The rows of `codec-bench list metrics`."""

from __future__ import annotations

from typing import Any

from codec_bench.config.registry import doc_summary
from codec_bench.messages.errors import UnknownName, UserError

BETTER = {True: "higher", False: "lower", None: "neither"}
COST = "s an hour"
"""Column with the cost of a metric: processor seconds per hour of sound."""
ORDERS = ("about", "needs", "cost")


def metric_row(name: str) -> dict[str, Any]:
    """Build the table row of a metric, or of a group of metrics of one model."""
    from codec_bench import metrics
    from codec_bench.metrics.costs import cost_of

    if name in metrics.GROUPS:
        members, needs = metrics.GROUPS[name], metrics.weights_of(name)
        facts = {"name": name, "about": metrics.topic_of(name), "kind": "group", "needs": needs}
        return {**facts, COST: cost_of(members[0]), "better": "", "unit": "", "measures": ", ".join(members)}
    try:
        metric = metrics.REGISTRY.resolve(name)
    except UserError as error:  # from a broken package; the other rows are not affected
        return {"name": name, "measures": f"broken: {error.message}"}
    inputs = {"pair": "reference", "text": "text"}.get(metric.kind, "")
    return {
        "name": name, "about": metrics.topic_of(name), "kind": metric.kind,
        "needs": ", ".join(filter(None, [inputs, metrics.weights_of(name)])),
        COST: cost_of(name), "better": BETTER[metric.higher_is_better], "unit": metric.unit,
        "measures": doc_summary(metric), "variants": ", ".join(filter(None, getattr(metric, "variants", ()))),
    }  # fmt: skip


def metric_rows(by: str) -> list[dict[str, Any]]:
    """The rows of all metrics and of groups from one model, in an order of `ORDERS`."""
    from codec_bench import metrics

    if by not in ORDERS:
        raise UnknownName("metric_order", by, ORDERS)
    topics = [*metrics.TOPICS, ""]
    names = sorted(
        [*metrics.REGISTRY.names(), *metrics.GROUPS], key=lambda name: (topics.index(metrics.topic_of(name)), name)
    )
    rows = [metric_row(name) for name in names]
    if by == "needs":
        rows.sort(key=lambda row: (row.get("needs", "").count(","), row.get("needs", "")))
    if by == "cost":
        rows.sort(key=lambda row: (row.get(COST) is None, row.get(COST) or 0.0))
    return rows


def group_rows() -> list[dict[str, Any]]:
    """The groups of metrics by topic, each with its possible members."""
    from codec_bench.metrics import OFFLINE, group_names
    from codec_bench.metrics.groups import group_metrics

    # Its metrics are those of all other groups, and a table that names them again is no table.
    return [
        {"name": name, "metrics": "all, as far as they need no download" if name == OFFLINE else group_metrics(name)}
        for name in group_names()
    ]
