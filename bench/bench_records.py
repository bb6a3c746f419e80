"""A record as SQLite against Parquet: size, time and memory of readers.

    python bench/bench_records.py [--samples 500000] [--metrics 3]

The record holds random scores of two systems. `report`, `export --format parquet` and `compare` are processes, whose
peak memory is read. The numbers of one metric of one system must be equal in both files.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from common import Cases, Options, bench, figures, time_readers

from codec_bench import Sample, Score
from codec_bench.data import Source
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter

SYSTEMS = ("first", "second")
METRICS = ("stoi", "si_sdr", "pesq_wb")
_AT_ONCE = 2_048


def write(folder: Path, count: int, metrics: Sequence[str]) -> None:
    """Write the finished record of so many samples without files, with random scores."""
    source = Source("made", [Sample(f"u{number:08d}", f"{number}.wav") for number in range(count)])
    source.fingerprint = "made"
    facts = {name: {"protocol": name, "kind": "pair", "unit": "", "higher_is_better": True} for name in metrics}
    with closing(RunWriter(folder, {"data": "made"})) as writer:
        writer.begin({key: {} for key in SYSTEMS}, facts, source, source.numbers, ())
        for start in range(0, len(source), _AT_ONCE):
            chosen = slice(start, start + _AT_ONCE)
            numbers, samples = source.numbers[chosen], source.samples[chosen]
            drawn = np.random.default_rng(start).random((len(numbers), len(SYSTEMS), len(metrics)))
            records: list[tuple[int, ItemRecord]] = []
            for number, values, sample in zip(numbers, drawn, samples, strict=True):
                for system, of_system in zip(SYSTEMS, values):
                    scores = {name: Score(float(value), "ok", None, name) for name, value in zip(metrics, of_system)}
                    item = ItemRecord(system, sample.id, "ok", None, scores, bits=12_000.0, duration_s=0.3,
                                      sample_rate_hz=16_000, channels=1)  # fmt: skip
                    records.append((number, item))
            writer.write(records)
        writer.set_meta(state="finished", config={}, data={"name": "made"})


def from_record(folder: Path) -> tuple[float, np.ndarray]:
    """Seconds to read one metric of one system, and its values by sample."""
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
    filters = [("system", "=", SYSTEMS[0]), ("metric", "=", METRICS[0])]
    values = pq.read_table(file, columns=["value"], filters=filters)["value"].to_numpy()
    return time.perf_counter() - start, values


def check(record: np.ndarray, parquet: np.ndarray, samples: int) -> None:
    """Stop unless both hold the same value of every sample."""
    if len(record) != samples or not np.array_equal(record, parquet):
        raise SystemExit(
            f"{len(record)} values of the record, {len(parquet)} of Parquet: {samples} equal ones expected"
        )


def measured(folder: Path, samples: int, metrics: int = len(METRICS)) -> dict[str, tuple[float, str, str]]:
    """Write and read a record; return each figure by its name: value, unit, note."""
    items = samples * len(SYSTEMS)
    write(
        folder / "run", samples, [*METRICS, *(f"metric{number}" for number in range(len(METRICS), metrics))][:metrics]
    )
    size = (folder / "run" / "run.sqlite").stat().st_size
    readings = {"SQLite": (size / 1e6, "MB", f"{size / items:.0f} bytes an item")}
    parquet = folder / "rows.parquet"
    for name, seconds, mib in time_readers(folder / "run", parquet, SYSTEMS):
        readings[name] = (seconds, "s", f"peak {mib:.0f} MiB")
    readings["Parquet"] = (parquet.stat().st_size / 1e6, "MB", f"{parquet.stat().st_size / items:.0f} bytes an item")
    (record_s, record), (parquet_s, values) = from_record(folder / "run"), from_parquet(parquet)
    check(record, values, samples)
    readings["one metric from SQLite"] = (record_s, "s", "its rows are checked")
    readings["one metric from Parquet"] = (parquet_s, "s", "")
    return readings


@bench(samples=500_000, metrics=len(METRICS))
def main(options: Options) -> Cases:
    """Every figure of one record."""
    items = options.samples * len(SYSTEMS)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CODEC_BENCH_CACHE"] = f"{scratch}/cache"
        readings = measured(Path(scratch), options.samples, options.metrics)
    about = {"case": f"{items} items with {options.metrics} scores", "n": items, "agreement": "equal values from both"}
    rows = (figures({unit: v}, **about, variant=name, note=note) for name, (v, unit, note) in readings.items())
    yield [row for (row,) in rows]
