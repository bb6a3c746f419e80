"""Some cases of every target; `make fuzz` runs thousands."""

from __future__ import annotations

import pytest
from fuzz import cases_of, targets

from codec_bench.store import survey

CASES = 200
COSTLY = {"bombs", "exchanged_contents", "journals", "parquet_parts", "records", "stray_journals", "answers"}
"""Their cases each write a record or a large file: a third of the number is tried."""
ENTRIES = 60
"""More than a table of the fuzzed record has rows.

Where a table is damaged, so many are looked for one by one, which takes longest.
"""


@pytest.mark.parametrize("name", sorted(targets()))
def test_no_reader_ends_in_a_traceback_or_takes_garbage_for_a_number(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(survey, "MOST_ENTRIES", ENTRIES)
    count = CASES // 3 if name in COSTLY else CASES
    faults = [case for case in cases_of(name, 0, count, 0, tmp_path) if case.fault is not None]
    assert not faults, (
        f"{len(faults)} of {count}, the first is case {faults[0].number} ({faults[0].fault}):\n{faults[0].text}"
    )
