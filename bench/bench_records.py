"""A record as SQLite against the same rows as Parquet: size, and what the readers of a run ask of it (targets: under 60
s and 1 GiB).

    python bench/bench_records.py [--samples 500000] [--metrics 3]

The record is written by the package's own writer, with made results: two systems, some metrics without details.
`report`, `export` and `compare` run in processes of their own, whose peak memory is read. The Parquet file is what
`export --format parquet` writes. One metric of one system is read from both, and the numbers must be equal.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from bench_merge import METRICS, SYSTEMS, source_of, write
from common import MAIN, Cases, Options, bench, figures, in_own_process

from codec_bench.store.record import Run


def from_record(folder: Path) -> tuple[float, np.ndarray]:
    """Seconds to read one metric of one system from a record, and its values in the order of the samples' numbers."""
    start = time.perf_counter()
    run = Run(folder)
    numbers, tops, bottoms, _, _ = run.columns(SYSTEMS[0], METRICS[0])
    values = np.asarray(tops) / np.asarray(bottoms)
    seconds = time.perf_counter() - start
    run.close()
    return seconds, values[np.argsort(numbers)]


def from_parquet(file: Path) -> tuple[float, np.ndarray]:
    """The same from the Parquet file."""
    start = time.perf_counter()
    wanted = [("system", "=", SYSTEMS[0]), ("metric", "=", METRICS[0])]
    values = pq.read_table(file, columns=["value"], filters=wanted)["value"].to_numpy()
    return time.perf_counter() - start, values


def check(record: np.ndarray, parquet: np.ndarray, samples: int) -> None:
    """Stops unless both hold the same value of every sample."""
    if len(record) != samples or not np.array_equal(record, parquet):
        raise SystemExit(
            f"{len(record)} values of the record and {len(parquet)} of Parquet are not the {samples} equal ones"
        )


def measured(folder: Path, samples: int, metrics: int = len(METRICS)) -> dict[str, tuple[float, str, str]]:
    """Writes and reads a record; gives each figure by its name: value, unit, note."""
    items = samples * len(SYSTEMS)
    source, start = source_of(samples), time.perf_counter()
    write(folder / "run", source, (*METRICS, *(f"metric{number}" for number in range(len(METRICS), metrics)))[:metrics])
    found = {"written": (time.perf_counter() - start, "s", f"{items * metrics} scores")}
    del source
    size = (folder / "run" / "run.sqlite").stat().st_size
    found["SQLite"] = (size / 1e6, "MB", f"{size / items:.0f} bytes an item")
    parquet = folder / "rows.parquet"
    for name, arguments in {
        "report": ("report", folder / "run", "--out", folder / "page.html"),
        "export": ("export", folder / "run", "--out", parquet, "--format", "parquet"),
        "compare": ("compare", folder / "run", "--systems", ",".join(SYSTEMS)),
    }.items():
        seconds, peak = in_own_process(MAIN, *arguments)
        found[name] = (seconds, "s", f"peak {peak:.0f} MiB")
    found["Parquet"] = (parquet.stat().st_size / 1e6, "MB", f"{parquet.stat().st_size / items:.0f} bytes an item")
    (record_s, record), (parquet_s, values) = from_record(folder / "run"), from_parquet(parquet)
    check(record, values, samples)
    found["one metric from SQLite"] = (record_s, "s", "its rows are checked")
    found["one metric from Parquet"] = (parquet_s, "s", "")
    return found


@bench(samples=500_000, metrics=len(METRICS))
def main(options: Options) -> Cases:
    """Every figure of one record."""
    items = options.samples * len(SYSTEMS)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CODEC_BENCH_CACHE"] = f"{scratch}/cache"
        found = measured(Path(scratch), options.samples, options.metrics)
    about = {"case": f"{items} items with {options.metrics} scores", "n": items, "agreement": "equal values from both"}
    yield [
        row
        for name, (value, unit, note) in found.items()
        for row in figures({unit: value}, **about, variant=name, note=note)
    ]
