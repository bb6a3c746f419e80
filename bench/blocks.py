"""Tables of the documentation that are made of more than one claim a line: each from the rows of one bench."""

from __future__ import annotations

from collections.abc import Callable

from rows import NOT_QUIET, rows_of


def drift_table() -> str:
    """How far scores in half precision are from float32, and batches from single items, from the newest row of each."""
    lines = ["| what | compared | of how many | middle | greatest |", "|---|---|--:|--:|--:|"]
    rows = [row for row in rows_of("precision") if row["unit"] != "share"]
    for row in {(row["case"], row["unit"], row["variant"]): row for row in rows}.values():
        greatest = row["agreement"].removeprefix("at most ")
        lines.append(f"| {row['case']}, {row['unit']} | {row['variant']} | {row['n']} | {row['p50']} | {greatest} |")
    return "\n".join(lines) + f"\n\n{row['note']}. Measured on {row['machine']}, {row['date'][:10]}.\n"


CORE_HOUR, GPU_HOUR = 0.04, 3.0
"""Prices in dollars, as examples: the documentation says that they are."""


def cost_table(number: Callable[[str], float | None]) -> str:
    """What a million utterances and more cost, each figure in proportion to a measured one.

    Args:
        number: the measured number of a claim; None where it was not measured.
    """
    each = {
        "Opus, STOI, SI-SDR and PESQ, 2.6 s of speech: hours of a core": ("ray-pool", 2 / 2000 / 3600),
        "the same: dollars": ("ray-pool", 2 / 2000 / 3600 * CORE_HOUR),
        "WER (Whisper large-v3), SIM, UTMOS and DNSMOS in float32, 7.4 s of speech: hours of an H200, estimated": ("virtual-seconds", 1 / 3000 / 3600),
        "the same: dollars, estimated": ("virtual-seconds", GPU_HOUR / 3000 / 3600),
        "planning, scheduling and writing: hours of a core": ("million-main", 1 / 1000 / 3600),
        "record with three scores an utterance: GB": ("million-bytes", 1e-9),
        "`merge`: minutes": ("merge-thousand", 1 / 3_333_334 / 60),
        "`report`: minutes": ("ten-report", 1 / 3_333_334 / 60),
        "`compare`: minutes": ("ten-compare", 1 / 3_333_334 / 60),
    }  # fmt: skip
    lines = ["| one system | 10^6 utterances | 10^7 | 10^8 |", "|---|--:|--:|--:|"]
    for what, (claim, factor) in each.items():
        found = number(claim)
        sizes = (None if found is None else found * factor * count for count in (1e6, 1e7, 1e8))
        lines.append(f"| {what} | {' | '.join(NOT_QUIET if one is None else _two_digits(one) for one in sizes)} |")
    return "\n".join(lines) + "\n"


def _two_digits(number: float) -> str:
    """A number to two significant digits: 0.31, 2.4, 1,300."""
    kept = float(f"{number:.2g}")
    return f"{kept:,.0f}" if kept >= 10 else f"{kept:g}"
