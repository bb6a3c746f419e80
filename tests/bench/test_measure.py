"""What is measured is what no quiet machine has measured yet, and only on a quiet machine."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import measure
import pytest


@pytest.fixture
def ran(monkeypatch):
    """The commands that would have run, with their environments; the load is 0."""
    calls = []

    def run(command, cwd, env):
        calls.append((command, env))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(measure.os, "getloadavg", lambda: (0.0, 5.0, 5.0))
    return calls


def test_only_what_is_missing_is_measured(monkeypatch):
    stems = {"stoi": True, "visqol": False}
    monkeypatch.setattr(measure, "standing", lambda claim: SimpleNamespace(quiet=stems.get(claim.stem, True)))
    assert measure.select_benches(every=False) == ["visqol"]
    on_a_gpu = {name for name, options in measure.CLAIMS["commands"].items() if options.get("gpu")}
    assert on_a_gpu and set(measure.select_benches(every=True)) == set(measure.CLAIMS["commands"]) - on_a_gpu
    monkeypatch.setattr(measure, "standing", lambda claim: None)
    assert {"dnsmos", "stoi", "visqol"} <= set(measure.select_benches(every=False))


def test_a_command_runs_next_to_its_environment(ran):
    assert measure.measure("stoi", 0).startswith("measured")
    ((command, environment),) = ran
    assert command == [sys.executable, "bench/bench_stoi.py"]
    assert environment["PYTHONPATH"] == str(measure.ROOT) and "PYTHONDONTWRITEBYTECODE" not in environment


def test_a_busy_machine_measures_nothing(ran, monkeypatch):
    monkeypatch.setattr(measure.os, "getloadavg", lambda: (0.6, 0.0, 0.0))
    monkeypatch.setattr(measure, "cores", lambda: 2)
    assert measure.measure("stoi", 0) == "skipped: the load stays above 0.4"
    assert ran == []


def test_every_command_is_a_bench_that_there_is():
    for details in measure.CLAIMS["commands"].values():
        assert (measure.BENCH / details["run"].split()[0]).exists()
        assert details.get("gpu") or details["minutes"] >= 1
