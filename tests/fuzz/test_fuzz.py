"""Some cases of every target; `make fuzz` runs thousands."""

from __future__ import annotations

import pytest
from fuzz import cases_of
from targets import TARGETS

CASES = 100
FEWER = {"records": 40}
"""Of a target whose cases take longest, because each is read, verified, continued and rescued on the disk."""


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_reader_ends_in_a_traceback_or_takes_garbage_for_a_number(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    count = FEWER.get(name, CASES)
    faults = [case for case in cases_of(name, 0, count, 0, tmp_path) if case.fault is not None]
    assert not faults, (
        f"{len(faults)} of {count}, the first is case {faults[0].number} ({faults[0].fault}):\n{faults[0].said}"
    )
