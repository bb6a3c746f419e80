"""Ctrl-C: messages name what is kept and the command that continues, without a traceback, at any
moment and however often.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND

from codec_bench import Audio
from codec_bench.audio.encode import write_flac
from codec_bench.data import open_source
from codec_bench.engine import pool

CUSTOM_CODE = Path(__file__).parents[1] / "engine" / "assets" / "custom_code.py"
INTERRUPTING = '''

import signal


def press(times):
    """Presses Ctrl-C for the main process, the first time that this is called in the folder."""
    marker = Path("pressed")
    if not marker.exists():
        marker.touch()
        worker = Path("/proc/self/comm").read_text().split()  # that of a fork is "of" its main process
        for _ in range(times):
            os.kill(int(worker[1]) if worker[0] == "of" else os.getppid(), signal.SIGINT)
        time.sleep(60)  # as of a model that loads, or of a long batch


class WhileLoading(Quantiser):
    def __init__(self):
        press(1)


class Twice(Quantiser):
    def __init__(self):
        press(2)


class WhileRunning(Quantiser):
    def encode(self, batch):
        press(1)
        return super().encode(batch)


class ScoresSlowly(Loudness):
    def compute(self, inputs):
        press(2)
        return super().compute(inputs)
'''


@pytest.fixture
def stopped(tmp_path):
    """Runs a command that is stopped; returns its last lines on stderr."""
    (tmp_path / "mine.py").write_text(CUSTOM_CODE.read_text() + INTERRUPTING)

    def run(*args, forks=True):
        heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
        settings = {"capture_output": True, "text": True, "cwd": tmp_path, "timeout": 300}
        if forks:
            done = pool.subprocess.run([*COMMAND, *args], **settings)
        else:
            done = subprocess.run([*COMMAND, *args], preexec_fn=heed, **settings)
        assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
        assert done.returncode == 130, done.stderr
        lines = done.stderr.splitlines()
        assert lines[0].startswith("run folder: "), "the folder is named before anything is loaded"
        return lines[-2:]

    return run


def continued(line, tmp_path):
    """Runs the printed command that continues; returns its messages."""
    program, *args = shlex.split(line.removeprefix("continue with: "))
    assert program.endswith("codec-bench") or program == sys.argv[0]
    done = pool.subprocess.run([*COMMAND, *args], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("codec", ["WhileLoading", "Twice"])
def test_eval_while_a_codec_loads(stopped, codec):
    text, again = stopped(
        "eval", "--codec", f"./mine.py:{codec}", "--data", "embedded", "--metrics", "si_sdr", "--limit", "3",
        forks=False,
    )  # fmt: skip
    folder = text.removeprefix("stopped; nothing in ").removesuffix(" is finished yet")
    assert folder.startswith("runs/evaluate-") and again.endswith(f"--limit 3 --out {folder}")


def test_eval_keeps_what_is_finished_and_the_command_that_it_says_continues(stopped, tmp_path):
    requests = [
        "eval",
        "--codec",
        "g711-ulaw,./mine.py:WhileRunning",
        "--data",
        "embedded",
        "--metrics",
        "si_sdr",
        "--no-cache",
    ]
    text, again = stopped(*requests)
    assert text.startswith("stopped; ")
    details = continued(again, tmp_path)
    assert "64 of 64 items" in details
    (folder,) = (tmp_path / "runs").iterdir()
    assert json.loads((folder / "run.json").read_text())["state"] == "finished"


def test_score_and_its_own_folder_is_recovered(stopped, tmp_path):
    for folder, gain in (("reference", 1.0), ("generated", 0.5)):
        (tmp_path / folder).mkdir()
        for sample in list(open_source("embedded"))[:3]:
            audio = Audio.read(sample.audio)
            write_flac(tmp_path / folder / f"{sample.id}.flac", Audio(gain * audio.samples, audio.sample_rate_hz))
    requests = ["score", "--generated", "generated", "--data", "reference", "--metrics", "./mine.py:ScoresSlowly"]
    text, again = stopped(*requests)
    folder = again.rpartition(" ")[2]
    assert text == f"stopped; nothing in {folder} is finished yet"
    done = pool.subprocess.run([*COMMAND, *requests], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"run folder: {folder} (continues the unfinished run of ")
    done = pool.subprocess.run([*COMMAND, *requests], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert f"(new; the same run in {folder} is finished)" in done.stderr


def test_profile_keeps_the_codecs_that_are_measured(stopped, tmp_path):
    requests = [
        "profile",
        "--codec",
        "g711-ulaw,./mine.py:WhileRunning",
        "--data",
        "embedded",
        "--metrics",
        "none",
        "--limit",
        "2",
        "--clip-s",
        "0.5",
        "--skip",
        "stability,loss,bit_errors,transformer",
    ]
    text, again = stopped(*requests)
    (folder,) = (tmp_path / "runs").iterdir()
    assert text == f"stopped; 1 of 2 codecs are measured and stored in runs/{folder.name}"
    before = json.loads((folder / "measured.json").read_text())["codecs"]
    assert list(before) == ["g711-ulaw"]
    continued(again, tmp_path)
    facts = json.loads((folder / "profile.json").read_text())
    assert list(facts["codecs"]) == ["g711-ulaw", "./mine.py:WhileRunning"]
    assert facts["codecs"]["g711-ulaw"]["speed"] == before["g711-ulaw"]["speed"], "it is not measured again"
    assert not (folder / "measured.json").exists()
