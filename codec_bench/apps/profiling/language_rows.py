"""Rows and plot of a profile's language section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from codec_bench.apps.profiling.cells import (
    ProfileCell,
    ProfileRow,
    ProfileSection,
    number_cell,
    row_of,
    rows_of,
    spread_text,
)
from codec_bench.apps.profiling.ngrams import ORDERS

TRANSFORMER = len(ORDERS) + 1
"""Position of the transformer in the plot, after the orders; 0 is that of equally likely codes."""


def language_section(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the rows of all codecs."""
    rows = [_order(codecs, index, order) for index, order in enumerate(ORDERS)]
    rows += rows_of(
        codecs,
        {
            "language.rate_by_the_highest_of_these_orders": _best_rate,
            "transformer.small_transformer": lambda t: f"{t['bits_per_token']:.3f}",
            "transformer.rate_by_the_transformer": lambda t: f"{t['bps'] / 1000:.3g}",
            "transformer.of_equally_likely_codes": lambda t: f"{100 * t['bps'] / t['uniform_bps']:.1f}",
            "transformer.bits_per_phone": partial(_each, "phone", "no clip has an alignment"),
            "transformer.bits_per_character": partial(_each, "character", "no clip has a text"),
            "language.zipf_exponent": partial(_spread, "zipf"),
            "language.heaps_exponent": partial(_spread, "heaps"),
        },
    )
    return ProfileSection(
        "Tokens for a language model",
        "Order n is the entropy of a code that knows the n - 1 before it in its codebook, by Grassberger's estimator; "
        "an order that the data cannot carry has a dash. The transformer is the same for all codecs, and how much it "
        "learns depends on how much data there is: compare over the same data only.",
        rows,
    )


def _order(codecs: Mapping[str, Any], index: int, order: int) -> ProfileRow:
    knows = ("nothing", "the code before it", f"the {order - 1} codes before it")[min(order, 3) - 1]
    description = f"Entropy of a code that knows {knows} in its codebook; lower is easier to model."
    return row_of(
        codecs, f"entropy rate, order {order}", "bits per token", description, "language", partial(_order_cell, index)
    )  # fmt: skip


def _order_cell(index: int, language: Mapping[str, Any]) -> ProfileCell:
    estimate = language["orders"][index]
    return number_cell(estimate["bits_per_token"], "{:.3f}", estimate["reason"])


def _best_rate(language: Mapping[str, Any]) -> ProfileCell:
    reliable = [estimate for estimate in language["orders"] if not estimate["reason"]]
    return (
        ProfileCell(f"{reliable[-1]['bps'] / 1000:.3g}")
        if reliable
        else ProfileCell("–", language["orders"][0]["reason"])
    )


def _each(unit: str, reason: str, transformer: Mapping[str, Any]) -> ProfileCell:
    return number_cell(transformer[f"bits_per_{unit}"], "{:.3g}", reason)


def _spread(key: str, language: Mapping[str, Any]) -> ProfileCell:
    values = [value for stream in language["streams"] for value in stream[key] if value is not None]
    return ProfileCell(spread_text(values, "{:.2f}"), None if values else "there are too few different codes")


def language_lines(codecs: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Build each codec's line: [position, bits per second]."""
    lines = []
    for text, codec in zip(labels, codecs.values()):
        if codec["language"]["state"] != "ok":
            continue
        language = codec["language"]
        points = [
            [0, language["nominal_bps"]],
            *([o["order"], o["bps"]] for o in language["orders"] if o["bps"] is not None),
        ]
        if codec["transformer"]["state"] == "ok":
            points.append([TRANSFORMER, codec["transformer"]["bps"]])
        lines.append({"codec": text, "points": points})
    return lines
