"""The run that docs/examples.md shows: seven systems over the real recordings, with every metric that needs no network.

    python bench/bench_example.py [--recordings DIR] [--limit N]

The rows hold each metric's value and the ends of its interval, the rest of its entry in the summary as JSON, and what
`compare` finds between two codecs. They do not depend on how busy the machine is. Right means: no item failed, the
unprocessed audio equals itself, and every value that is said to be one is a number within its interval.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import append_rows

from codec_bench import compare as compare_runs
from codec_bench import evaluate
from codec_bench.stats.summary import summarise

CODECS = ("unprocessed", "opus-6k", "opus-12k", "opus-24k", "mp3-32k", "amr-nb-12k", "g722")
PAIR = "opus-6k,opus-12k"
ITSELF = {"sim[ge2e]": 1.0, "stoi": 1.0, "estoi": 1.0, "mel_distance": 0.0, "stft_distance": 0.0}
"""Values of audio that is compared with itself, by definition."""


def compare(summary: Mapping[str, Any]) -> None:
    """Stops where an item failed, the unprocessed audio is not itself, or a value is no number within its interval."""
    if summary["failures"]["items"]:
        raise SystemExit(f"{summary['failures']['items']} items have no estimate: {summary['failures']['reasons'][:1]}")
    for system, held in summary["systems"].items():
        for metric, entry in held["metrics"].items():
            value, ends = entry["value"], entry["ci95"]
            if (value is None) != (entry["n"] == 0) or (value is not None and not math.isfinite(value)):
                raise SystemExit(f"{system}, {metric}: {value} over {entry['n']} items")
            if ends is not None and not ends[0] <= value <= ends[1]:
                raise SystemExit(f"{system}, {metric}: {value} is not within {ends}")
    own = summary["systems"]["unprocessed"]["metrics"]
    for metric, expected in ITSELF.items():
        if metric in own and not (own[metric]["value"] is not None and abs(own[metric]["value"] - expected) <= 1e-5):
            raise SystemExit(f"unprocessed, {metric}: {own[metric]['value']} for {expected}")


def rows_of(summary: Mapping[str, Any]) -> list[dict[str, object]]:
    """A row for each metric and system."""
    rows: list[dict[str, object]] = []
    for system, held in summary["systems"].items():
        for metric, entry in held["metrics"].items():
            ends = entry["ci95"] or ("", "")
            rest = {name: entry[name] for name in ("note", "unit", "higher_is_better", "failed")}
            rows.append(
                {
                    "case": metric, "variant": system, "n": entry["n"], "unit": "value", "p20": ends[0],
                    "p50": "" if entry["value"] is None else entry["value"], "p80": ends[1], "agreement": entry["protocol"],
                    "note": json.dumps(rest, ensure_ascii=False),
                }
            )  # fmt: skip
    return rows


def main() -> None:
    """Runs the example and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"))
    parser.add_argument("--limit", type=int, help="this many recordings")
    options = parser.parse_args()
    if not options.recordings:
        parser.error("--recordings is needed: the folder of recordings with its manifest.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        run = evaluate(
            codec=list(CODECS), data=str(Path(options.recordings) / "manifest.jsonl"), preset="embedded", limit=options.limit,
            out=Path(folder) / "run", page=False, save_audio="none",
        )  # fmt: skip
        summary = summarise(run)
        compare(summary)
        rows = rows_of(summary)
        for pair in compare_runs(runs=[run], systems=PAIR, metrics=["pesq_wb", "wer[pocketsphinx]"]):
            for found in pair.comparisons:
                ends = (found.test.low, found.test.high)
                rows.append(
                    {
                        "case": f"{pair.a} beside {pair.b}, {found.metric}", "variant": "difference", "n": found.pairs,
                        "unit": "difference", "p20": ends[0], "p50": found.test.difference, "p80": ends[1],
                    }
                )  # fmt: skip
    sys.stdout.write(f"{len(rows)} values\n")
    path = append_rows("example", rows, ("codec-bench", "pesq", "pystoi", "pocketsphinx", "onnxruntime"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
