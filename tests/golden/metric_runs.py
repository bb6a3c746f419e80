"""Runs whose scores are given, for tests of what is computed of them."""

from __future__ import annotations

import numpy as np

from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

BETTER = {"mos": True, "mos_too": True, "distance": False, "noise": True, "count": None}
SYSTEMS = ("a", "b", "c", "d")


def write_run(folder, columns, protocols=None, systems=SYSTEMS, of_speaker=3):
    """A run of metrics: by name an array `(systems, samples)`; NaN where a score failed,
    infinity for an item that did.
    """
    facts = {
        name: {"protocol": (protocols or {}).get(name, f"{name}/1"), "higher_is_better": BETTER[name], "unit": "",
            "aggregate": "mean"}
        for name in columns
    }  # fmt: skip
    count = next(iter(columns.values())).shape[1]
    samples = [Sample(f"s{n:03d}", None, speaker=f"p{n // of_speaker}") for n in range(count)]
    writer = RunWriter(folder, {"of": "a test"})
    writer.begin({name: {} for name in systems}, facts, samples)
    writer.set_meta(config={"seed": 0}, data={"name": "speech"})
    rows = []
    for row, system in enumerate(systems):
        for n, sample in enumerate(samples):
            values = {name: column[row, n] for name, column in columns.items()}
            if np.isinf(list(values.values())).any():
                rows.append((n, ItemRecord(system, sample.id, "failed", "no sound", {})))
                continue
            scores = {
                name: Score.failed("no voice", facts[name]["protocol"]) if np.isnan(value)
                else Score.ok(value, facts[name]["protocol"])
                for name, value in values.items()
            }  # fmt: skip
            rows.append((n, ItemRecord(system, sample.id, "ok", None, scores)))
    writer.write(rows)
    writer.close()
    return folder
