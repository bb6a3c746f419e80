"""A run on Ray against the built-in pool of workers (target: two actors with one CPU each at least 0.9 as fast as two
workers).

python bench/bench_ray.py [--recordings DIR] [--clips 2000] [--turns 3]

Both send the same clips through the same codec and metrics, one after the other in turns. The clips are the recordings
of the folder again and again, under new names. Ray is started before the first turn, with two nodes of one CPU each, as
a cluster runs before anybody uses it. A turn on Ray begins with the driver's connection and ends with the merged
record; starting actors, their workers and merging count. The merged record must be the pool's, row for row.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from common import Cases, Options, bench, ranked, write_manifest

from codec_bench import evaluate
from codec_bench.data import open_source
from codec_bench.engine.executor import OnRay
from codec_bench.engine.running import Running

WHAT = {"codec": "opus-12k", "metrics": "stoi,si_sdr,pesq_wb,bitrate"}
WORKERS = 2


def repeated(path: Path, data: str, clips: int) -> Path:
    """A manifest of so many clips, which are those of a data set under new names."""
    samples = enumerate(islice(cycle(open_source(data)), clips))
    return write_manifest(path, ({"id": f"{number:06d}", "audio": str(sample.audio)} for number, sample in samples))


def timed(data: Path, out: Path, running: Running) -> tuple[float, list[object]]:
    """Seconds of a whole run, and its rows."""
    start = time.perf_counter()
    with closing(evaluate(**WHAT, data=str(data), out=out, running=running)) as run:
        return time.perf_counter() - start, list(run.rows())


def compare(found: list[object], expected: list[object]) -> None:
    """Stops if a record of Ray does not hold the rows of the pool's."""
    if not expected or found != expected:
        raise SystemExit(f"the record of Ray has {len(found)} rows that are not the {len(expected)} of the pool")


@bench("ray", recordings=None, clips=2000, turns=3)
def main(options: Options) -> Cases:
    """Both in turns, and their records beside each other."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    small = {"object_store_memory": 80 << 20, "include_dashboard": False}
    pool, ray = names = f"pool of {WORKERS} workers", f"Ray, {WORKERS} actors"
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        data = repeated(folder / "manifest.jsonl", options.recordings or "embedded", options.clips)
        cluster = Cluster(initialize_head=True, head_node_args={**small, "num_cpus": 0})
        try:
            for _ in range(WORKERS):
                cluster.add_node(**small, num_cpus=1)
            same = {"cache": False, "save_audio": "none", "page": False}
            ways = {
                pool: Running(workers=WORKERS, **same),
                ray: Running(executor=OnRay(cluster.address, actors=WORKERS, cpus=1), **same),
            }
            for turn in range(options.turns):
                held = {}
                for name, running in ways.items():
                    took, held[name] = timed(data, folder / f"{name[:4]}{turn}", running)
                    seconds[name].append(took)
                compare(held[ray], held[pool])
        finally:
            cluster.shutdown()
    what = "recordings" if options.recordings else "embedded clips"
    case = f"{options.clips} {what}, {WHAT['codec']}, {WHAT['metrics']}"
    times = {name: np.asarray(taken) for name, taken in seconds.items()}
    yield ranked(case, times, n=options.clips, agreement={ray: "every row as of the pool"})
