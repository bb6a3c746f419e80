"""Rows of a data set of 100,000 (target: the first row within 5 s, and memory that does not grow with the rows).

python bench/bench_table.py [--rows 100000]

The data set is Parquet as `datasets` writes it (a struct of bytes and path, shards of 10,000 rows in row groups of 1,000) with
clips of a fifth of a second. Every case runs in a process of its own; the other side is the `datasets` library, streaming,
with nothing decoded.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from common import PEAK_MIB, append_rows, row

SHARD, GROUP, RATE, LENGTHS = 10_000, 1_000, 16_000, 64

OURS = """
from codec_bench.data.table import open_table
table = open_table(FOLDER, split="test", limit=LIMIT, seed=SEED)
for at, (key, cells) in enumerate(table):
    note(cells["id"])
    if SOUND and cells["audio"].read().num_samples != 3200 + int(cells["id"][1:]) % 64:
        raise SystemExit(f"{key} is another sound")
"""
THEIRS = """
import datasets
stream = datasets.load_dataset(FOLDER, split="test", streaming=True).decode(False)
for at, cells in enumerate(stream):
    note(cells["id"])
    if at + 1 == LIMIT:
        break
"""
PROGRAM = """
import json, sys, time
FOLDER, LIMIT, SEED, SOUND = json.loads(sys.argv[1])
start = time.perf_counter()
first, count, seen = None, 0, bytearray(1 << 20)

def note(id):
    global first, count
    first = first or time.perf_counter() - start
    count += 1
    seen[int(id[1:])] = 1

BODY
took = time.perf_counter() - start
front = seen.rindex(1) + 1 == sum(seen) if count else False
print(json.dumps([first, took, count, sum(seen), front, PEAK_MIB]))
"""


def write(folder: Path, rows: int) -> None:
    """Writes the data set."""
    rng = np.random.default_rng(1)

    def clip(at: int) -> bytes:
        """Noise that no other row has, so that nothing is stored once for many rows."""
        file = io.BytesIO()
        soundfile.write(file, rng.integers(-3000, 3000, 3200 + at % LENGTHS, np.int16), RATE, format="WAV")
        return file.getvalue()

    features = {"id": {"dtype": "string", "_type": "Value"}, "audio": {"_type": "Audio"}}
    features |= {name: {"dtype": "string", "_type": "Value"} for name in ("text", "speaker")}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    shards = -(-rows // SHARD)
    (folder / "data").mkdir()
    for shard in range(shards):
        places = range(shard * SHARD, min(rows, (shard + 1) * SHARD))
        table = pa.table(
            {
                "id": [f"u{at:07d}" for at in places],
                "audio": [{"bytes": clip(at), "path": f"u{at:07d}.wav"} for at in places],
                "text": [f"sentence {at} " + "of a dozen words or so, as they are read aloud " * 2 for at in places],
                "speaker": [f"s{at % 100}" for at in places],
            }
        )
        path = folder / "data" / f"test-{shard:05d}-of-{shards:05d}.parquet"
        pq.write_table(table.replace_schema_metadata(about), path, row_group_size=GROUP)


def measure(body: str, folder: Path, limit: int | None, seed: int | None = None, sound: bool = False) -> list[float]:
    """(seconds to the first row, to the last, rows, different rows, whether they are the first, peak MiB) of one process."""
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            PROGRAM.replace("BODY", body).replace("PEAK_MIB", PEAK_MIB),
            json.dumps([str(folder), limit, seed, sound]),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def compare(what: str, runs: list[list[float]], limit: int, seed: int | None) -> None:
    """Stops where a process did not get as many rows as it wanted, each once, and without a seed from the front."""
    for _, _, count, different, front, _ in runs:
        if not (count == different == limit and (front or seed is not None)):
            raise SystemExit(f"{what}: {count} rows, {different} different ones, from the front: {bool(front)}")


def main() -> None:
    """Times the cases in turn, three times each, and checks that every row came once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    cases = {
        ("all rows", "open_table"): (OURS, rows, None, False),
        ("all rows", "datasets streaming"): (THEIRS, rows, None, False),
        ("a tenth from the front", "open_table"): (OURS, rows // 10, None, False),
        ("a random tenth", "open_table"): (OURS, rows // 10, 1, False),
        ("all rows and their sound", "open_table"): (OURS, rows, None, True),
        ("half the rows and their sound", "open_table"): (OURS, rows // 2, None, True),
    }
    found: dict[tuple[str, str], list[list[float]]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write(folder, rows)
        megabytes = sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 1e6
        for _ in range(3):
            for case, (body, limit, seed, sound) in cases.items():
                found[case].append(measure(body, folder, limit, seed, sound))
    lines = []
    for (case, variant), runs in found.items():
        _, limit, seed, _ = cases[case, variant]
        compare(f"{case}, {variant}", runs, limit, seed)
        first, last, _, _, _, peaks = map(np.asarray, zip(*runs))
        note = f"peak {np.median(peaks):.0f} MiB; data {megabytes:.0f} MB"
        sys.stdout.write(
            f"{case:30s} {variant:20s} first {np.median(first):6.2f} s  all {np.median(last):7.2f} s  {note}\n"
        )
        agreement = "every row once" if seed is None else f"{limit} rows"
        lines.append(row(f"{case}: to the first row", variant, first, n=rows, agreement=agreement, note=note))
        lines.append(row(f"{case}: to the last row", variant, last, n=rows, agreement=agreement, note=note))
    path = append_rows("table", lines, ("pyarrow", "datasets"))
    sys.stdout.write(f"rows appended to {path}\n")


if __name__ == "__main__":
    main()
