"""After a kill or a full disk, a run continues where it was. Nothing is lost or doubled, and the numbers are equal."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import forked
import pytest
from command_line import COMMAND

from codec_bench.engine import pool
from codec_bench.report.open_run import open_run
from codec_bench.store.record import Run

REQUESTS = ["--codec", "unprocessed,opus-12k", "--data", "embedded", "--no-cache", "--no-check"]
METRICS = "stoi,pesq_wb,si_sdr,bitrate"
SMALL = ("--limit", "4", "--metrics", METRICS)
WAITING = Path(__file__).parent / "assets" / "custom_code.py:WaitsForEach"
LASTING = ("--limit", "10", "--metrics", f"{METRICS},{WAITING}")
"""A run of 20 items that takes three seconds on a fast machine too: there is a middle to stop it in."""


def arguments(out, *more):
    return [*COMMAND, "eval", *REQUESTS, "--out", str(out), "--save-audio", "none", *more]


def run(out, *more):
    """A run that nobody kills, in a fork: its exit code and what it wrote to stderr."""
    done = pool.subprocess.run(arguments(out, *more), cwd=out.parent, timeout=300, capture_output=True, text=True)
    return done.returncode, done.stderr


def start(out, *more, forks=True):
    return forked.start(arguments(out, *more), cwd=out.parent, forks=forks)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[dict, float]:
    """The scores of a run that nothing disturbs, and how many seconds it took from its first
    finished item to its end.
    """
    folder = tmp_path_factory.mktemp("calm") / "run"
    process = start(folder, *LASTING)
    while process.poll() is None and not finished(folder):
        time.sleep(0.05)
    started = time.monotonic()
    _out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return complete(open_run(folder)), time.monotonic() - started


@pytest.fixture(scope="module")
def calm(undisturbed) -> dict:
    """The scores of a run that nothing disturbs."""
    return undisturbed[0]


def finished(folder) -> int:
    try:
        return open_run(folder).counts()["finished"]
    except Exception:  # not started, or in the middle of being made: nothing is finished
        return 0


def complete(run: Run, metrics: int = 5) -> dict:
    db = sqlite3.connect(run.folder / "run.sqlite")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    rows = [(s.system, s.id, s.metric, s.value, s.status) for s in run.scores()]
    keys = [r[:3] for r in rows]
    assert len(keys) == len(set(keys)), "a row is doubled"
    counts = run.counts()
    assert counts["finished"] == counts["items"]
    assert len(rows) == counts["items"] * metrics, "a row is lost"
    return {r[:3]: r[3:] for r in rows}


def workers_of(pid: int) -> list[int]:
    out = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            product = int(fields[1]) == pid and b"codec_bench.engine.worker" in (entry / "cmdline").read_bytes()
            if product or (entry / "comm").read_text().strip() == forked.WORKER_OF.format(pid):
                out.append(int(entry.name))
        except OSError:
            continue
    return out


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.long)])
def test_killed_several_times_a_run_ends_with_the_same_numbers(tmp_path, undisturbed, kills):
    calm, takes_s = undisturbed
    rng = random.Random(11)
    folder = tmp_path / "killed"
    seen, grew = 0, 0
    for attempt in range(kills):
        # Alternately the whole run and one of its workers is killed, at a moment nobody chose.
        process = start(folder, *LASTING, "--workers", "2")
        started = time.monotonic()
        pause = rng.uniform(0.0, min(0.8, takes_s / 5))  # there is something left to do
        while process.poll() is None and finished(folder) <= seen and time.monotonic() - started < 300:
            time.sleep(0.05)
        time.sleep(pause)
        if attempt % 3 == 2:
            for worker in workers_of(process.pid)[:1]:
                os.kill(worker, signal.SIGKILL)
            time.sleep(pause)
        process.kill()
        process.communicate()
        now = finished(folder)
        assert now >= seen
        grew += now > seen
        seen = now
    code, err = run(folder, *LASTING)
    assert code == 0, err
    assert complete(open_run(folder)) == calm
    assert grew >= 2, "the run was never killed in its middle, so nothing was shown"


def _tmpfs(folder: Path, size: str) -> None:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"a small disk cannot be made here: {done.stderr.strip()}")


def test_a_full_disk_stops_the_run_and_room_continues_it(tmp_path):
    disk = tmp_path / "disk"
    _tmpfs(disk, "100k")
    try:
        code, err = run(disk / "run", *SMALL)
        assert code == 2
        assert "cannot be written" in err and "run the same command again" in err, err
        assert "Traceback" not in err
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        code, err = run(disk / "run", *SMALL)
        assert code == 0, err
        complete(open_run(disk / "run"), metrics=4)
        assert (disk / "run" / "report.html").is_file()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_two_processes_on_one_folder(tmp_path):
    first = start(tmp_path / "run", *SMALL)
    deadline = time.monotonic() + 300
    while not (tmp_path / "run" / "run.sqlite").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    first.send_signal(signal.SIGSTOP)  # so that it has not ended before the other begins
    code, err = run(tmp_path / "run", *SMALL)
    first.send_signal(signal.SIGCONT)
    _out, waiting = first.communicate(timeout=300)
    assert first.returncode == 0, waiting
    assert code == 2
    assert "is being written by another process" in err
    complete(open_run(tmp_path / "run"), metrics=4)


def test_nothing_is_left_behind_when_the_main_process_is_killed(tmp_path):
    process = start(tmp_path / "run", *LASTING, forks=False)  # as the product starts both
    deadline = time.monotonic() + 300
    while not finished(tmp_path / "run") and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = workers_of(process.pid)
    assert workers
    process.kill()
    process.wait()
    deadline = time.monotonic() + 300
    while any(Path(f"/proc/{w}").exists() for w in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [w for w in workers if Path(f"/proc/{w}").exists()]


def test_an_interrupt_keeps_what_is_finished(tmp_path, calm):
    process = start(tmp_path / "run", *LASTING)
    deadline = time.monotonic() + 300
    while not finished(tmp_path / "run") and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in err
    retained = finished(tmp_path / "run")
    assert retained > 0 and f"stopped; {retained} of 20 items are finished and recorded in {tmp_path / 'run'}" in err
    assert "continue with: codec-bench eval --codec unprocessed,opus-12k" in err
    code, err = run(tmp_path / "run", *LASTING)
    assert code == 0, err
    assert complete(open_run(tmp_path / "run")) == calm
