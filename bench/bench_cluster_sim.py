"""How well 64 workers share one data set, on a machine that has none of them (target: at least 90 % of one worker's rate each).

    python bench/bench_cluster_sim.py [--utterances 300000] [--workers 64] [--per-worker 1 8] [--precision float32]

Each worker is a machine with one device that is not there, on a virtual clock (`device_sim.py` says what is real and what is
estimated). Choosing its samples, its scheduler and its record are real, and so is the merge at the end. With one part a worker, as
in an array of jobs, the run ends with the largest part. With several, a worker takes the next part when it has ended one, as with
`--executor ray`. What the machine here computes for a worker is added to that worker's clock.

The efficiency is the time of one worker for all utterances, over the time of all workers and the merge, and over their number.
The merged record must hold the rows of the one worker's record.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from unittest import mock

from bench_merge import compare, merge
from common import append_rows
from device_sim import COSTS, HOST, RATE, Run, VirtualPool, record

from codec_bench.data import Shard, Source, part_of
from codec_bench.engine import feed
from codec_bench.store import record as store
from codec_bench.store.parts import mark_part


def check(name: str, counts: Mapping[str, int], samples: int) -> None:
    """Stops where a part lacks an item, or a score failed."""
    if counts["finished"] != samples or counts["failed_scores"]:
        raise SystemExit(f"{name}: {counts['finished']} of {samples} items, {counts['failed_scores']} scores failed")


class Cluster:
    """Workers that are not there, and what they run.

    Args:
        run: the utterances and the precision. folder: where the records go.
    """

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self._folder = run, folder
        samples = run.samples()
        self._known = {path: s for sample, s in zip(samples, run.seconds) for path in (sample.audio, sample.estimate)}
        self.source = Source("simulated", samples)
        self.source.fingerprint = "simulated"
        costs = COSTS[run.precision].values()
        self.start_s = HOST.start_s + sum(cost.weights_gib for cost in costs) / HOST.loaded_gib_s
        """Seconds until a worker has started and loaded its networks."""

    def part(self, name: str, shard: Shard | None) -> tuple[Path, float]:
        """Runs one part, or everything, into a folder; gives the folder and the seconds that its worker took."""
        began = time.process_time()
        part = part_of(self.source, shard)
        chosen_s = time.process_time() - began
        folder = self._folder / name
        pool = VirtualPool(1, 14, COSTS[self._run.precision], self._known, (), 0.0)
        with mock.patch.object(feed, "file_bytes", lambda sample: 2 * RATE * self._known[sample.audio]):
            fingerprint = {"shard": str(shard)} if shard else {}
            counts = record(pool, part.samples, folder, part.numbers, **fingerprint)
        check(name, counts, len(part))
        with closing(store.Run(folder)) as run:
            mark_part(run)
        return folder, chosen_s + pool.now

    def all_parts(self, workers: int, each: int) -> tuple[float, float, Path]:
        """Runs all parts and merges them.

        Args:
            workers: how many. each: how many parts there are for each worker.

        Returns:
            Seconds until the last worker has ended, seconds of the merge, and the merged record's folder.
        """
        free = [self.start_s] * workers
        folders = []
        count = workers * each
        for number in range(1, count + 1):
            folder, seconds = self.part(f"{count}-{number}", Shard(number, count))
            folders.append(folder)
            heapq.heapreplace(free, free[0] + seconds)
        merged = self._folder / f"merged-{count}"
        took_s, _ = merge(folders, merged)
        return max(free), took_s, merged


def measured(asked: argparse.Namespace) -> list[dict[str, object]]:
    """Runs, checks and prints; the rows."""
    rows: list[dict[str, object]] = []
    run = Run(asked.utterances, asked.precision)
    with tempfile.TemporaryDirectory() as scratch:
        cluster = Cluster(run, Path(scratch))
        whole, one_s = cluster.part("whole", None)
        one_s += cluster.start_s
        for each in asked.per_worker:
            last_s, merge_s, merged = cluster.all_parts(asked.workers, each)
            held = compare(merged, whole)
            efficiency = one_s / (last_s + merge_s) / asked.workers
            case = f"{asked.utterances} utterances, {asked.workers} workers, {each} parts each, {asked.precision}"
            note = (
                f"virtual clock, device costs estimated; one worker {one_s:.0f} s, the last worker {last_s:.1f} s of which "
                f"{cluster.start_s:.1f} s to start, merge {merge_s:.1f} s; {held} rows as of one worker"
            )
            sys.stdout.write(f"{case}: efficiency {100 * efficiency:.1f} % ({note})\n")
            for unit, value in (("efficiency", efficiency), ("s", last_s + merge_s)):
                rows.append({"case": case, "variant": "virtual workers", "n": asked.utterances, "unit": unit, "p50": f"{value:.5g}", "note": note})  # fmt: skip
    return rows


def main() -> None:
    """Simulates, prints, writes rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--utterances", type=int, default=300_000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--per-worker", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--precision", default="float32", choices=list(COSTS))
    parser.add_argument("--dry", action="store_true", help="write no rows")
    asked = parser.parse_args()
    rows = measured(asked)
    if not asked.dry:
        append_rows("cluster_sim", rows)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
