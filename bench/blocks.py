"""Tables of the documentation that are made of more than one claim a line: each from the rows of one bench."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from rows import NOT_QUIET, quiet, rows_of, runs


def noise_table() -> str:
    """How often pitch agrees with Praat, by the level of noise, from the newest row of each."""
    cells: dict[tuple[str, str], str] = {}
    for row in rows_of("pitch"):
        if (level := re.fullmatch(r"noise (\S+) dB below", row["case"])) is None:
            continue
        both = []
        for text, pattern in (
            (row["note"], r"mean ([\d.]+) %, least ([\d.]+) %"),
            (row["agreement"], r"on ([\d.]+) % .*least ([\d.]+) %"),
        ):
            mean, least = (f"{float(number):.1f} %" for number in re.search(pattern, text).groups())
            both.append(mean if mean == least else f"{mean} ({least})")
        cells[level[1], row["n"]] = " | ".join(both)
    lines = [
        "| noise | voicing, 6 real recordings | pitch to 0.2 % | voicing, 32 embedded clips | pitch to 0.2 % |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {level} dB | {cells[level, '6']} | {cells[level, '32']} |" for level in ("40", "30", "20", "10", "5", "0")
    ]
    return "\n".join(lines) + "\n"


def searches_table() -> str:
    """Error rate and processor time of PocketSphinx's searches, from the newest run that has all of them."""
    found = list(runs("pocketsphinx"))
    if not found:
        return f"The searches were {NOT_QUIET}.\n"
    rows = next((rows for _, rows in reversed(found) if quiet(rows[0])), found[-1][1])
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        length, rate, share = re.fullmatch(
            r"(.+); word error rate (.+); (\S+) of the audio's time", row["note"]
        ).groups()
        cells.setdefault(row["variant"], {})[f"{row['case']}, {row['n']} utterances, {length}"] = f"{rate}, {share}"
    heads = list(next(iter(cells.values())))
    lines = [f"| search | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(of.values())} |" for name, of in cells.items()]
    state = "" if quiet(rows[0]) else f" The times were {NOT_QUIET}."
    return "\n".join(lines) + f"\n\nMeasured on {rows[0]['machine']}, {rows[0]['date'][:10]}.{state}\n"


def example_table() -> str:
    """The summary of the example's newest run: a line for each metric, a column for each system."""
    from codec_bench.report import numbers

    found = list(runs("example"))
    if not found:
        return "The run was not measured yet.\n"
    run, rows = found[-1]
    entries: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["unit"] == "value":
            ends = [float(row["p20"]), float(row["p80"])] if row["p20"] else None
            value = float(row["p50"]) if row["p50"] else None
            entry = {**json.loads(row["note"]), "value": value, "ci95": ends, "n": int(row["n"])}
            entries.setdefault(row["case"], {})[row["variant"]] = entry
    systems = list(next(iter(entries.values())))
    lines = [f"| metric | {' | '.join(systems)} |", "|---" + "|--:" * len(systems) + "|"]
    for metric, of in entries.items():
        factor, unit = numbers.shown_unit(next(iter(of.values()))["unit"])
        arrow = numbers.ARROWS[next(iter(of.values()))["higher_is_better"]]
        places = numbers.decimals(of.values(), factor)
        counts = sorted({entry["n"] for entry in of.values() if entry["n"]})
        head = " ".join(filter(None, (f"`{metric}`", arrow, unit)))
        head += (
            f", n={'–'.join(map(str, counts))}"
            if counts != [max(e["n"] for m in entries.values() for e in m.values())]
            else ""
        )
        cells = []
        for system in systems:
            entry = of.get(system)
            if entry is None or entry["value"] is None:
                cells.append("–")
                continue
            value = numbers.number(factor * entry["value"], places)
            cells.append(f"{value} {numbers.spread(entry, places, factor)}".strip().replace("*", "\\*"))
        lines.append(f"| {head} | {' | '.join(cells)} |")
    told = dict.fromkeys(e["note"] for of in entries.values() for e in of.values() if e["note"] and e["ci95"])
    text = "\n".join(lines) + "\n" + "".join(f"\n\\* The interval {note}.\n" for note in told)
    for row in rows:
        if row["unit"] == "difference":
            value, low, high = (numbers.number(float(row[name]), 3, sign=True) for name in ("p50", "p20", "p80"))
            text += f"\n{row['case']}: {value} ({low} to {high}), over {row['n']} pairs.\n"
    return f"{text}\nMade by run `{run}` of `bench/bench_example.py` at revision {rows[0]['commit']}.\n"


def drift_table() -> str:
    """How far scores in half precision are from float32, and batches from single items, from the newest row of each."""
    lines = ["| what | compared | of how many | middle | greatest |", "|---|---|--:|--:|--:|"]
    for (case, variant), row in _newest("precision").items():
        if row["unit"] != "share":
            greatest = row["agreement"].removeprefix("at most ")
            lines.append(f"| {case}, {row['unit']} | {variant} | {row['n']} | {row['p50']} | {greatest} |")
    return _noted(lines, "precision", "1 - cosine")


def texts_table() -> str:
    """Word error rates of Whisper by compute type, from the newest row of each."""
    lines = ["| model | computed in | word error rate | transcripts |", "|---|---|--:|---|"]
    for (case, variant), row in _newest("precision").items():
        if row["unit"] == "share":
            model = case.removesuffix(", word error rate")
            errors = row["note"].partition(",")[0]
            lines.append(f"| {model} | {variant} | {100 * float(row['p50']):.2f} % ({errors}) | {row['agreement']} |")
    return _noted(lines, "precision", "share")


def _newest(stem: str) -> dict[tuple[str, str], dict[str, str]]:
    """The newest row of each case and variant, in the order of the rows."""
    return {(row["case"], row["variant"]): row for row in rows_of(stem)}


def _noted(lines: list[str], stem: str, unit: str) -> str:
    """A table, and what its newest row says of how it was measured."""
    rows = [row for row in rows_of(stem) if row["unit"] == unit]
    if not rows:
        return "This was not measured yet.\n"
    return "\n".join(lines) + f"\n\n{rows[-1]['note']}. Measured on {rows[-1]['machine']}, {rows[-1]['date'][:10]}.\n"


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
        "WER (Whisper large-v3), SIM, UTMOS and DNSMOS in float32, 7.4 s of speech: hours of an H200, estimated": ("cluster-one", 1 / 300_000 / 3600),
        "the same: dollars, estimated": ("cluster-one", GPU_HOUR / 300_000 / 3600),
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
