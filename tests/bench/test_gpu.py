"""The command for a machine with a GPU: what cannot be said here is named, and no step holds up the others."""

from __future__ import annotations

import os

import gpu
import pack_wheels
import pytest

STEP = gpu.Step("a", 30, ("-c", "print('first'); print('last')"))


def test_all_steps_together_take_at_most_ten_minutes():
    assert sum(step.limit_s for step in gpu.STEPS) <= 600


@pytest.mark.parametrize(
    ("step", "count", "state", "said"),
    [
        (STEP, 1, "done", "last"),
        (STEP, 0, "left out", "there is no GPU"),
        (gpu.Step("a", 30, ("-c", "print('on a CPU')"), anywhere=True), 0, "done", "on a CPU"),
        (gpu.Step("a", 30, ("-c", ""), ("no_such_module", "os")), 1, "left out", "without no_such_module"),
        (gpu.Step("a", 30, ("-c", "print('why'); raise SystemExit(4)")), 1, "failed (4)", "why"),
    ],
)
def test_what_becomes_of_a_step(step, count, state, said):
    outcome = gpu.run(step, dict(os.environ), count)
    assert (outcome.state, outcome.said) == (state, said)


def test_a_step_that_hangs_is_ended_with_what_it_started_and_keeps_what_it_said():
    hanging = "import subprocess, sys; print('so far', flush=True); subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    outcome = gpu.run(gpu.Step("a", 1, ("-c", hanging)), dict(os.environ), 1)
    assert (outcome.state, outcome.said) == ("ended after 1 s", "so far") and outcome.seconds < 20


def test_another_cublas_is_linked_only_where_version_12_is_missing(tmp_path, monkeypatch):
    site, links = tmp_path / "site", tmp_path / "links"
    (site / "nvidia" / "cu13" / "lib").mkdir(parents=True)
    links.mkdir()
    (site / "nvidia" / "cu13" / "lib" / "libcublas.so.13").touch()
    monkeypatch.setattr(gpu.sys, "path", [str(site)])
    environment = gpu.with_cublas({}, links)
    assert (links / "libcublas.so.12").resolve().name == "libcublas.so.13"
    assert environment["LD_LIBRARY_PATH"].startswith(str(links))
    (site / "nvidia" / "cublas" / "lib").mkdir(parents=True)
    (site / "nvidia" / "cublas" / "lib" / "libcublas.so.12").touch()
    assert gpu.with_cublas({}, links) == {}


def test_wheels_are_packed_in_order_into_parts_of_a_size():
    sizes = [("a", 30), ("b", 30), ("c", 10), ("d", 70), ("e", 1)]
    assert pack_wheels.parts(sizes, 60) == [["a", "b"], ["c"], ["d"], ["e"]]
    assert pack_wheels.parts([]) == []
