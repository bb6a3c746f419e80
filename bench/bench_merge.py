"""Merging the records of shards (target: a million items of two systems in under 60 s, in memory that does not grow
with the items).

python bench/bench_merge.py [--samples 500000] [--parts 100] [--turns 3]

The records are written by the package's own writer, with made results: two systems, three metrics without details. The
record of one machine is written too, and the merged one must hold the same rows. The floor is copying the parts' files.
Merging runs in a process of its own, whose peak memory is read.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from common import Cases, Options, bench, in_own_process, ranked

from codec_bench.data import Shard, Source, part_of
from codec_bench.store.parts import mark_part
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.tables import checksum_of, identity_of, layout_of
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

SYSTEMS = ("first", "second")
METRICS = ("stoi", "si_sdr", "pesq_wb")
TABLES = ("samples", "items", "scores")
_AT_ONCE = 2_048
MERGE = "from pathlib import Path; from codec_bench.store.merge import merge_records; out, *parts = map(Path, sys.argv[1:]); merge_records(parts, out)"


def made(numbers: Sequence[int], metrics: int) -> np.ndarray:
    """Results `(samples, systems, metrics)` that are no measurements: from 0 to 1, no two alike, by the numbers of the
    samples.
    """
    place = np.asarray(numbers, np.uint64)[:, None, None] * np.uint64(len(SYSTEMS))
    place = (place + np.arange(len(SYSTEMS), dtype=np.uint64)[:, None]) * np.uint64(metrics)
    place = place + np.arange(metrics, dtype=np.uint64)
    return (place * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)) / 2.0**53  # the factor is odd


def source_of(samples: int) -> Source:
    """A data set of so many samples, whose files nobody reads."""
    source = Source("made", [Sample(f"u{number:08d}", f"{number}.wav") for number in range(samples)])
    source.fingerprint = "made"
    return source


def write(folder: Path, source: Source, metrics: Sequence[str] = METRICS) -> None:
    """Writes the finished record of a data set or of one shard, with made results."""
    fingerprint = {"data": "made", **({"shard": str(source.shard)} if source.shard else {})}
    facts = {name: {"protocol": name, "kind": "pair", "unit": "", "higher_is_better": True} for name in metrics}
    with closing(RunWriter(folder, fingerprint)) as writer:
        writer.begin({key: {} for key in SYSTEMS}, facts, source, source.numbers, ())
        for start in range(0, len(source), _AT_ONCE):
            chosen = slice(start, start + _AT_ONCE)
            numbers = source.numbers[chosen]
            records: list[tuple[int, ItemRecord]] = []
            for number, values, sample in zip(
                numbers, made(numbers, len(metrics)), source.samples[chosen], strict=True
            ):
                for system, of_system in zip(SYSTEMS, values):
                    scores = {name: Score(float(value), "ok", None, name) for name, value in zip(metrics, of_system)}
                    item = ItemRecord(system, sample.id, "ok", None, scores, bits=12_000.0, duration_s=0.3, sample_rate_hz=16_000, channels=1)  # fmt: skip
                    records.append((number, item))
            writer.write(records)
        writer.set_meta(state="finished", config={}, data={"name": "made"})
    with closing(Run(folder)) as run:
        mark_part(run)


def compare(merged: Path, whole: Path) -> int:
    """Stops if the two records do not hold the same rows with the checksums of their runs.

    Returns how many rows there are.
    """
    rows = 0
    with closing(sqlite3.connect(whole / "run.sqlite")) as db:
        db.execute("ATTACH ? AS merged", (str(merged / "run.sqlite"),))
        identities = identity_of(db) ^ identity_of(db, "merged")
        for table in TABLES:
            columns = ", ".join(layout_of(db, table).columns)
            ((count,),) = db.execute(f"SELECT COUNT(*) FROM main.{table}")
            ((held,),) = db.execute(f"SELECT COUNT(*) FROM merged.{table}")
            other = db.execute(
                f"SELECT {columns}, checksum FROM main.{table} EXCEPT "
                f"SELECT {columns}, {checksum_of(identities)} FROM merged.{table} LIMIT 1"
            ).fetchall()
            if count != held or other or not count:
                raise SystemExit(
                    f"{table}: {held} rows where one machine has {count}, of which these are missing: {other}"
                )
            rows += count
    return rows


@bench(samples=500_000, parts=100, turns=3)
def main(options: Options) -> Cases:
    """Writes the records, merges them, and compares."""
    items = options.samples * len(SYSTEMS)
    found: list[tuple[float, float]] = []
    floors: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = source_of(options.samples)
        write(folder / "whole", source)
        parts = [folder / f"part{k}" for k in range(1, options.parts + 1)]
        for k, part in enumerate(parts, 1):
            write(part, part_of(source, Shard(k, options.parts)))
        megabytes = sum((part / "run.sqlite").stat().st_size for part in parts) / 1e6
        for turn in range(options.turns):
            found.append(in_own_process(MERGE, folder / f"merged{turn}", *parts))
            start = time.perf_counter()
            for part in parts:  # the least that merging must do
                shutil.copyfile(part / "run.sqlite", folder / f"{part.name}.copied")
            floors.append(time.perf_counter() - start)
            rows = compare(folder / f"merged{turn}", folder / "whole")
    note = f"{rows} rows, {megabytes:.0f} MB; peak {max(peak for _, peak in found):.0f} MiB"
    seconds = {"merge": np.asarray([one for one, _ in found]), "floor: copying the parts": np.asarray(floors)}
    said = {"merge": "every row as of one machine"}
    yield ranked(f"{items} items in {options.parts} parts", seconds, n=items, note=note, agreement=said)
