"""The command for a machine with a GPU: steps that need a GPU are named, and no step holds up the others."""

from __future__ import annotations

import argparse
import os
import sys

import common
import gpu
import gpu_pretended
import gpu_stages
import numpy as np
import pytest
import whisper_folder
from pretended import Mixed

STEP = gpu.Step("a", 30, ("-c", "print('first'); print('last')"))


@pytest.mark.parametrize("item", [gpu.FIRST, gpu.SECOND])
def test_the_steps_of_a_part_leave_time_of_ten_minutes_for_what_surrounds_them(item):
    assert sum(step.limit_s for step in item) <= gpu.PART_S <= 540


@pytest.mark.parametrize(
    ("step", "count", "state", "message"),
    [
        (STEP, 1, "done", "last"),
        (STEP, 0, "skipped", "there is no GPU"),
        (gpu.Step("a", 30, ("-c", "print('on a CPU')"), anywhere=True), 0, "done", "on a CPU"),
        (gpu.Step("a", 30, ("-c", ""), ("no_such_module", "os")), 1, "skipped", "without no_such_module"),
        (gpu.Step("a", 30, ("-c", "print('why'); raise SystemExit(4)")), 1, "failed (4)", "why"),
    ],
)
def test_what_becomes_of_a_step(step, count, state, message):
    outcome = gpu.run(step, dict(os.environ), count)
    assert (outcome.state, outcome.output) == (state, message)


def test_a_step_is_tried_on_the_cpu_in_its_reduced_size_where_it_has_one():
    reduced = gpu.Step("a", 30, ("-c", "raise SystemExit(4)"), reduced=("-c", "print('small')"))
    assert gpu.run(reduced, dict(os.environ), 0, pretend=True).output == "small"
    assert gpu.run(STEP, dict(os.environ), 0, pretend=True).output == "it has no reduced size"
    assert [step.name for step in gpu.STEPS if not step.reduced] == ["tests"], "pytest has its own way to try a test"


@pytest.mark.long
@pytest.mark.parametrize("step", [step for step in gpu.STEPS if step.reduced], ids=lambda step: step.name)
def test_every_step_works_where_its_device_is_not_there(step):
    rows = {path: path.read_bytes() for path in common.DATA.glob("*.csv")}
    outcome = gpu.run(step, {**os.environ, "PYTHONPATH": str(gpu.ROOT)}, 0, pretend=True)
    assert outcome.state in ("done", "skipped"), outcome
    assert rows == {path: path.read_bytes() for path in common.DATA.glob("*.csv")}, "a trial writes no rows"


def test_a_script_is_tried_on_a_device_that_refuses_what_a_real_one_would(tmp_path, monkeypatch, capsys):
    script = tmp_path / "script.py"
    begins = (
        "import sys, torch; from common import append_rows; append_rows('none', []); a = torch.ones(2, device='cuda:0')"
    )
    script.write_text(f"{begins}; torch.cuda.synchronize(); print(sys.argv[1], (a + a).cpu().tolist())")
    monkeypatch.setattr(sys, "path", sys.path[:])
    gpu_pretended.tried(str(script), ["word"], cpu=False)
    assert capsys.readouterr().out == "word [2.0, 2.0]\n" and not (common.DATA / "none.csv").exists()
    script.write_text(f"{begins}; a + torch.ones(2)")
    with pytest.raises(Mixed, match="both places"):
        gpu_pretended.tried(str(script), [], cpu=False)


def test_a_step_that_hangs_is_ended_with_what_it_started_and_keeps_what_it_reported():
    hanging = (
        "import subprocess, sys; print('so far', flush=True); subprocess.run([sys.executable, '-c', 'import time; "
        "time.sleep(60)'])"
    )
    outcome = gpu.run(gpu.Step("a", 1, ("-c", hanging)), dict(os.environ), 1)
    assert (outcome.state, outcome.output) == ("ended after 1 s", "so far") and outcome.seconds < 20


def test_what_is_left_of_the_ten_minutes_bounds_a_step():
    assert gpu.run(STEP, dict(os.environ), 1, left_s=4.0).output == "no time is left"
    hanging = gpu.Step("a", 30, ("-c", "import time; time.sleep(60)"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "LEAST_S", 0)
        assert gpu.run(hanging, dict(os.environ), 1, left_s=1.0).state == "ended after 1 s"


def test_a_step_takes_what_no_later_one_needs():
    hanging = gpu.Step("a", 1, ("-c", "import time; time.sleep(60)"))
    assert gpu.run(hanging, dict(os.environ), 1, left_s=42.0, reserved_s=40.0).state == "ended after 2 s"
    assert gpu.run(hanging, dict(os.environ), 1, left_s=42.0, reserved_s=60.0).state == "ended after 1 s"


def test_the_step_of_tests_asks_for_the_files_that_have_tests_for_a_gpu():
    (step,) = [step for step in gpu.STEPS if step.name == "tests"]
    files = {os.path.basename(word) for word in step.words if word.endswith(".py")}
    assert {"test_first_launch.py", "test_whisper.py"} <= files and "test_gpu.py" not in files and len(files) < 20


def options(**inputs):
    return argparse.Namespace(**{"device": "cpu", "repeats": 1, "reduced": True} | inputs)


@pytest.mark.parametrize("name", [pytest.param("utmos", marks=pytest.mark.long), "log-mel"])
def test_a_stage_is_timed_next_to_its_floor_and_the_items_one_by_one(name, monkeypatch, one_thread):
    monkeypatch.setattr(gpu_stages, "rates", lambda device, precision: (1e9, 1e9))
    rows = gpu_stages.measure(name, gpu_stages.STAGES[name]("cpu", True), options())
    by_variant = {row["variant"]: row for row in rows}
    assert by_variant.keys() >= {"batch", "floor"} and all(float(row["p50"]) > 0 for row in rows)
    assert "share" in by_variant["batch"]["note"]


@pytest.mark.long
@pytest.mark.parametrize("name", gpu_stages.STAGES)
def test_every_stage_runs_on_a_cpu(name, monkeypatch, capsys, one_thread):
    monkeypatch.setattr(sys, "argv", ["gpu_stages", "--stages", name, "--device", "cpu", "--reduced", "--repeats", "1"])
    gpu_stages.main()
    assert f"{name}: " in capsys.readouterr().out


def test_a_stage_that_cannot_be_measured_fails_the_bench_and_holds_up_no_other(monkeypatch, capsys):
    def broken(device, reduced):
        raise ValueError("no such size")

    stage = gpu_stages.Stage(lambda: [0.0], None, 1.0, 1, 1.0, 1.0)
    monkeypatch.setattr(gpu_stages, "STAGES", {"broken": broken, "good": lambda device, reduced: stage})
    monkeypatch.setattr(gpu_stages, "rates", lambda device, precision: (1e9, 1e9))
    monkeypatch.setattr(sys, "argv", ["gpu_stages", "--stages", "broken", "good", "--device", "cpu", "--reduced"])
    with pytest.raises(SystemExit, match="broken: ValueError: no such size"):
        gpu_stages.main()
    assert "good:" in capsys.readouterr().out


def test_a_whisper_written_straight_ends_its_texts_where_it_should(tmp_path, one_thread):
    from codec_bench.features.recognisers.whisper import Whisper

    size = whisper_folder.SIZES["reduced"]
    folder = whisper_folder.write(tmp_path / "whisper", size, tokens=7, words=1000)
    time = np.arange(16_000, dtype=np.float32) / 16_000
    sounds = [
        0.3 * np.sin(2 * np.pi * 220 * time),
        0.3 * np.sign(np.sin(2 * np.pi * 3 * time)) * np.sin(9000 * time**2),
    ]
    usable = Whisper("cpu", str(folder), model="whisper-tiny").compute(sounds, ["en"] * 2)
    assert [result["tokens"].size for result in usable] == [7, 7]
    assert usable[0]["tokens"].tolist() != usable[1]["tokens"].tolist(), "what is heard decides"
