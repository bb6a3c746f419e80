"""Runs in temporary folders, and how to compare them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codec_bench.api.evaluate import evaluate
from codec_bench.engine import pool

CUSTOM_CODE = Path(__file__).parent / "assets" / "custom_code.py"


@pytest.fixture
def custom_file():
    """The name of one of the codecs or metrics of the assets."""
    return lambda name: f"{CUSTOM_CODE}:{name}"


@pytest.fixture
def run_it(tmp_path):
    """Evaluates without page, cache or kept audio into a folder of its own."""

    def run(*, out="run", **kwargs):
        settings = {"page": False, "cache": False, "check": False, "save_audio": "none", "workers": 1, **kwargs}
        return evaluate(out=tmp_path / out, **settings)

    return run


@pytest.fixture
def fresh(monkeypatch):
    """Workers are started as the product starts them, and not forked."""
    monkeypatch.setattr(pool, "subprocess", subprocess)


def numbers(run):
    """Every score of a run by (system, id, metric)."""
    return {(s.system, s.id, s.metric): (s.value, s.status, s.reason) for s in run.scores()}


@pytest.fixture
def same():
    """Asserts that two runs hold the same scores, to the last bit by default."""

    def check(a, b, relative=0.0):
        left, right = numbers(a), numbers(b)
        assert left.keys() == right.keys()
        for key, (value, status, reason) in left.items():
            assert right[key][1:] == (status, reason), key
            other = right[key][0]
            if value is None or other is None or not relative:
                assert value == other, key
            else:
                assert value == pytest.approx(other, rel=relative), key

    return check
