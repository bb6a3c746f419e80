"""What it costs to run a data set in eight shards, one after the other, on one machine (target: at most 5 % more than one run).

    python bench/bench_shards.py [--copies 40] [--shards 8]

The data are the embedded utterances, each several times under ids of its own. The commands are those that a user types. The cost of
a shard is a start: the processes, the codec, and the kernels and networks that they load. The merged record must have the scores of
the run of one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from common import append_rows, row

COMMAND = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]
METRICS = "pesq_wb,stoi,estoi,si_sdr,mel_distance,dnsmos,bitrate"


def make(folder: Path, copies: int) -> Path:
    """A manifest of the embedded utterances, each as often as asked for."""
    from codec_bench.data import open_source

    manifest = folder / "manifest.jsonl"
    rows = [{"id": f"{sample.id}-{copy}", "audio": str(sample.audio)} for copy in range(copies) for sample in open_source("embedded")]  # fmt: skip
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return manifest


def call(*arguments: str | Path) -> float:
    """Seconds of a command."""
    begun = time.perf_counter()
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.perf_counter() - begun


def scores(out: Path) -> list[tuple[object, ...]]:
    """Every score of a record, in its order."""
    from codec_bench import open_run

    with closing(open_run(out)) as run:
        return [(s.system, s.id, s.metric, s.value, s.status) for s in run.scores()]


def compare(merged: list[tuple[object, ...]], whole: list[tuple[object, ...]]) -> None:
    """Stops if a score is another or is missing."""
    different = [pair for pair in zip(merged, whole) if pair[0] != pair[1]]
    if len(merged) != len(whole) or not whole or different:
        raise SystemExit(
            f"{len(merged)} scores where one machine has {len(whole)}; {len(different)} differ: {different[:1]}"
        )


def main() -> None:
    """Measures, prints, writes rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--copies", type=int, default=40)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--dry", action="store_true", help="write no rows")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["CODEC_BENCH_CACHE"] = str(folder / "cache")
        manifest = make(folder, asked.copies)
        run = [
            "eval",
            "--codec",
            "opus-12k",
            "--data",
            manifest,
            "--metrics",
            METRICS,
            "--no-cache",
            "--save-audio",
            "none",
        ]
        call(*run, "--limit", "4", "--out", folder / "warm")  # kernels are compiled, files are in memory
        whole_s = call(*run, "--out", folder / "whole")
        each_s = [call(*run, "--shard", f"{k}/{asked.shards}", "--out", folder / "parts" / str(k)) for k in range(1, asked.shards + 1)]  # fmt: skip
        merge_s = call("merge", folder / "parts", "--out", folder / "merged")
        compare(scores(folder / "merged"), scores(folder / "whole"))
        count = len(manifest.read_text("utf-8").splitlines())
    more = (sum(each_s) + merge_s) / whole_s - 1
    case = f"{count} utterances, {asked.shards} shards"
    a_shard_s = (sum(each_s) - whole_s) / (asked.shards - 1)
    note = (
        f"{100 * more:.1f} % more than one run; {a_shard_s:.1f} s for each further shard, {merge_s:.1f} s for merging"
    )
    sys.stdout.write(f"{case}: one run {whole_s:.1f} s, shards {sum(each_s):.1f} s; {note}\n")
    rows = [
        row(case, "one run", np.asarray([whole_s]), n=count),
        row(case, "shards and merge", np.asarray([sum(each_s) + merge_s]), n=count, ratio=1 + more, agreement="every score as of one run", note=note),
    ]  # fmt: skip
    if not asked.dry:
        append_rows("shards", rows)


if __name__ == "__main__":
    main()
