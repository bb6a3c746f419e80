"""Rows and plots of a profile's probes and language section."""

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
    section_of,
    spread_text,
)
from codec_bench.apps.profiling.language import ORDERS
from codec_bench.apps.profiling.probes import PROBES, TASKS

_READS = {
    "speaker": "Clips with the right speaker; no clip is in both parts.",
    "emotion": "Clips with the right emotion, of speakers unknown to the probe.",
    "phone": "Frames with the right phone, of speakers unknown to the probe.",
    "pitch": "Voiced frames with the right fifth of pitch, of speakers unknown to the probe.",
}
_NAMES = {"linear": "linear", "hidden": "hidden layer"}
TRANSFORMER = len(ORDERS) + 1
"""Position of the transformer in the plot, after the orders; 0 is that of equally likely codes."""


def probes_section(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the rows of all codecs."""
    rows = [
        row_of(codecs, f"{task}, {_NAMES[probe]}", "%", _READS[task], "probes", partial(_cell, task, probe))
        for task in TASKS
        for probe in PROBES
    ]
    return section_of("probes", rows)


def _cell(task: str, probe: str, probes: Mapping[str, Any]) -> ProfileCell:
    """Format a probe's accuracy in %, next to log-mel and chance."""
    result = probes["tasks"][task]
    if result["state"] != "ok":
        return ProfileCell("–", result["reason"])
    one, ends = result["codes"][probe], result["codes"][probe]["ci95"]
    spread = "" if ends is None else f" ({100 * ends[0]:.0f}–{100 * ends[1]:.0f})"
    reference = f"log-mel {100 * result['mel'][probe]['accuracy']:.1f}; chance {100 * result['chance']:.1f}"
    return ProfileCell(f"{100 * one['accuracy']:.1f}{spread}; {reference}")


def probe_points(codecs: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """Build the plot of linear-probe accuracy for each codec, log-mel and chance."""
    measured = [
        (text, codec["probes"]["tasks"])
        for text, codec in zip(labels, codecs.values())
        if codec["probes"]["state"] == "ok"
    ]
    tasks = [task for task in TASKS if any(tasks[task]["state"] == "ok" for _, tasks in measured)]
    lines = [{"codec": text, "points": _probe_points(tasks, of, "codes")} for text, of in measured]
    if lines and tasks:
        lines.append({"codec": "log-mel", "points": _probe_points(tasks, measured[0][1], "mel")})
        chance = [
            [index, measured[0][1][t]["chance"], None, None]
            for index, t in enumerate(tasks)
            if measured[0][1][t]["state"] == "ok"
        ]
        lines.append({"codec": "chance", "points": chance})
    return {"tasks": tasks, "lines": lines if tasks else []}


def _probe_points(tasks: Sequence[str], of: Mapping[str, Any], source: str) -> list[list[Any]]:
    """List index, accuracy and interval of each measured task."""
    points = []
    for index, task in enumerate(tasks):
        if of[task]["state"] == "ok":
            one = of[task][source]["linear"]
            points.append([index, one["accuracy"], *(one["ci95"] or (None, None))])
    return points


def language_section(codecs: Mapping[str, Any]) -> ProfileSection:
    """Build the section of entropy rates, transformer bits, and Zipf and Heaps."""
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
    return section_of("language", rows)


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
    kbps = reliable[-1]["bps"] / 1000 if reliable else None
    return number_cell(kbps, "{:.3g}", language["orders"][0]["reason"])


def _each(unit: str, reason: str, transformer: Mapping[str, Any]) -> ProfileCell:
    return number_cell(transformer[f"bits_per_{unit}"], "{:.3g}", reason)


def _spread(key: str, language: Mapping[str, Any]) -> ProfileCell:
    values = [value for stream in language["streams"] for value in stream[key] if value is not None]
    return ProfileCell(spread_text(values, "{:.2f}"), None if values else "there are too few different codes")


def language_lines(codecs: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Build each codec's line of entropy rates: [order, bits per second]."""
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
