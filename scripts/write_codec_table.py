"""Writes the table of codec families in docs/codecs/names.md from the registry, between its two marks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codec_bench.codecs import catalogue, list_codecs

PAGE = Path(__file__).parents[1] / "docs" / "codecs" / "names.md"
BEGIN, END = "<!-- families: begin -->\n", "<!-- families: end -->\n"
HEAD = (
    "family",
    "variants",
    "points (kbps)",
    "rates (kHz)",
    "channels",
    "frames/s",
    "kbps",
    "licence of code; of weights",
)


def table() -> str:
    """The table, a family a row, from what `codec-bench list codecs` lists."""
    rows = {row.name: row.info for row in list_codecs() if row.info is not None}
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for name, family in sorted(catalogue.families().items()):
        members = [n for n in rows if n in family.variants or n.split("@")[0] == name]
        infos = [rows[n] for n in members]
        rates = sorted({rate / 1000 for info in infos for rate in info.sample_rates_hz})
        frames = sorted({info.frame_rate_hz for info in infos if info.frame_rate_hz})
        kbps = sorted({info.nominal_bitrate_bps / 1000 for info in infos if info.nominal_bitrate_bps})
        cells = (
            f"`{name}`",
            " ".join(f"`{variant}`" for variant in family.variants),
            family.points_text(),
            ", ".join(f"{rate:g}" for rate in rates) if len(rates) < 5 else f"{rates[0]:g} to {rates[-1]:g}",
            ", ".join(map(str, sorted({count for info in infos for count in info.channels}))),
            ", ".join(f"{rate:.5g}" for rate in frames),
            ", ".join(f"{rate:.3g}" for rate in kbps),
            family.licence.code + (f"; {family.licence.weights}" if family.licence.weights else ""),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page as it should be."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table() + END + after


def main() -> None:
    """Writes the page, or with `--check` says whether it is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        sys.exit(0 if page() == PAGE.read_text("utf-8") else f"{PAGE} is out of date: python {sys.argv[0]}")
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
