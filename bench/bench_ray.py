"""A run on Ray against the built-in pool of workers (target: two actors with one CPU each at least 0.9 as fast as two workers).

CODEC_BENCH_TEST_RECORDINGS=DIR python bench/bench_ray.py [--clips 2000] [--turns 3]

Both send the same clips through the same codec and metrics, one after the other in turns. The clips are hard links to the
recordings of the folder, under new names; without the variable, to the embedded speech. Ray is started before the first turn, with
two nodes of one CPU each, as a cluster runs before anybody uses it. A turn on Ray begins with the driver's connection and ends
with the merged record; starting actors, their workers and merging count. The merged record must be the pool's, row for row.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from common import append_rows, asked, ranked

from codec_bench import evaluate
from codec_bench.data import open_source
from codec_bench.engine.executor import OnRay
from codec_bench.engine.running import Running

RECORDINGS = "CODEC_BENCH_TEST_RECORDINGS"
WHAT = {"codec": "opus-12k", "metrics": "stoi,si_sdr,pesq_wb,bitrate"}
WORKERS = 2


def linked(folder: Path, data: str, clips: int) -> Path:
    """A folder of so many clips, which are links to those of a data set, with a manifest."""
    folder.mkdir()
    with open(folder / "manifest.jsonl", "w") as manifest:
        for number, sample in enumerate(islice(cycle(open_source(data)), clips)):
            source = Path(str(sample.audio))
            name = f"{number:06d}{source.suffix}"
            try:
                os.link(source, folder / name)
            except OSError:  # another file system
                (folder / name).symlink_to(source)
            manifest.write(json.dumps({"id": f"{number:06d}", "audio": name}) + "\n")
    return folder


def timed(data: Path, out: Path, running: Running) -> tuple[float, list[object]]:
    """Seconds of a whole run, and its rows."""
    start = time.perf_counter()
    with closing(evaluate(**WHAT, data=str(data), out=out, running=running)) as run:
        return time.perf_counter() - start, list(run.rows())


def compare(found: list[object], expected: list[object]) -> None:
    """Stops if a record of Ray does not hold the rows of the pool's."""
    if not expected or found != expected:
        raise SystemExit(f"the record of Ray has {len(found)} rows that are not the {len(expected)} of the pool")


def main() -> None:
    """Runs both in turns, and compares their records."""
    options = asked(__doc__, clips=2000, turns=3)
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    small = {"object_store_memory": 80 << 20, "include_dashboard": False}
    given = os.environ.get(RECORDINGS)
    seconds: dict[str, list[float]] = {"pool": [], "ray": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        data = linked(folder / "data", given or "embedded", options.clips)
        cluster = Cluster(initialize_head=True, head_node_args={**small, "num_cpus": 0})
        try:
            for _ in range(WORKERS):
                cluster.add_node(**small, num_cpus=1)
            same = {"cache": False, "save_audio": "none", "page": False}
            ways = {
                "pool": Running(workers=WORKERS, **same),
                "ray": Running(executor=OnRay(cluster.address, actors=WORKERS, cpus=1), **same),
            }
            for turn in range(options.turns):
                held = {}
                for name, running in ways.items():
                    took, held[name] = timed(data, folder / f"{name}{turn}", running)
                    seconds[name].append(took)
                compare(held["ray"], held["pool"])
        finally:
            cluster.shutdown()
    what = "recordings" if given else "embedded clips"
    case = f"{options.clips} {what}, {WHAT['codec']}, {WHAT['metrics']}"
    names = {"pool": f"pool of {WORKERS} workers", "ray": f"Ray, {WORKERS} actors"}
    times = {names[way]: np.asarray(taken) for way, taken in seconds.items()}
    rows = ranked(case, times, n=options.clips, agreement={names["ray"]: "every row as of the pool"})
    append_rows("ray", rows, ("ray",))


if __name__ == "__main__":
    main()
