"""Measure the CPU time of each test and of its setup, by file.

    python scripts/time_tests.py [--out build/test_times] [--processes 1] [arguments of pytest]

A test's time includes the processes that it starts; with several processes of tests, forked workers count for the one
that started their server. `tests.csv` has a row for each test, `files.csv` one for each file,
the costliest first, with the most memory that the process of tests had taken when the file ended. Times are seconds of
a processor, so other work on the machine hardly changes them.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "CODEC_BENCH_TEST_TIMES"
TICKS = os.sysconf("SC_CLK_TCK")
PHASES = ("setup", "call", "teardown")
COLUMNS = ("file", "tests", "user_s", "system_s", "setup_s", "longest_s", "longest_setup_s", "wall_s", "peak_mb")


def cpu_times() -> tuple[float, float]:
    """User and system seconds of this process and all its descendants."""
    user = system = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        user, system = user + usage.ru_utime, system + usage.ru_stime
    waiting = child_ids(os.getpid())
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            user += (int(fields[11]) + int(fields[13])) / TICKS
            system += (int(fields[12]) + int(fields[14])) / TICKS
            waiting += child_ids(pid)
    return user, system


def child_ids(pid: int) -> list[int]:
    """The processes that a process has started and not waited for."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return children


class Timer:
    """Writes a row for each phase of a test, as soon as the phase ends."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", encoding="utf-8", newline="", buffering=1)
        self._writer = csv.writer(self._file)
        self._last = (*cpu_times(), time.monotonic())

    def note(self, file: str, test: str, phase: str) -> None:
        """Writes the time since the last phase ended."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        now = (*cpu_times(), time.monotonic())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        spent = (f"{b - a:.4f}" for a, b in zip(self._last, now, strict=True))
        self._writer.writerow([file, test, phase, *spent, peak])
        # What looking at the other processes took is no test's time.
        after = resource.getrusage(resource.RUSAGE_SELF)
        self._last = (
            now[0] + after.ru_utime - before.ru_utime,
            now[1] + after.ru_stime - before.ru_stime,
            time.monotonic(),
        )


def pytest_configure(config) -> None:
    """Times the tests of this process, unless other processes run them."""
    if FOLDER in os.environ and not getattr(config.option, "numprocesses", None):
        name = os.environ.get("PYTEST_XDIST_WORKER", "main")
        config.pluginmanager.register(Timed(Timer(Path(os.environ[FOLDER], f"{name}.phases.csv"))), "timed tests")


class Timed:
    """The hooks of pytest by which each phase is timed."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer

    def pytest_collection_finish(self, session) -> None:
        """Starting and collecting have a separate row."""
        self._timer.note("(collection)", "", "setup")

    def pytest_runtest_logreport(self, report) -> None:
        """A phase ends with its report."""
        self._timer.note(report.nodeid.partition("::")[0], report.nodeid, report.when)

    def pytest_sessionfinish(self, session) -> None:
        """The end of the session has a separate row."""
        self._timer.note("(end)", "", "teardown")


def summarise(folder: Path) -> list[dict[str, object]]:
    """Write `tests.csv` and `files.csv` from all processes; return the files' rows."""
    tests: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    peaks: dict[str, int] = defaultdict(int)
    for path in sorted(folder.glob("*.phases.csv")):
        with path.open(encoding="utf-8", newline="") as lines:
            for file, test, phase, user, system, wall, peak in csv.reader(lines):
                row = tests[file, test]
                for name, value in (("user", user), ("system", system), ("wall", wall)):
                    row[name] += float(value)
                row[phase] += float(user) + float(system)
                peaks[file] = max(peaks[file], int(peak))
    with (folder / "tests.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["test", "user_s", "system_s", *(f"{phase}_s" for phase in PHASES), "wall_s"])
        for (file, test), row in sorted(tests.items(), key=lambda one: -one[1]["user"] - one[1]["system"]):
            names = ("user", "system", *PHASES, "wall")
            writer.writerow([test or file, *(f"{row[name]:.3f}" for name in names)])
    files: dict[str, list[dict[str, float]]] = defaultdict(list)
    for (file, _), row in tests.items():
        files[file].append(row)
    table = [
        dict(
            zip(
                COLUMNS,
                (
                    file,
                    len(rows),
                    *(round(sum(row[name] for row in rows), 2) for name in ("user", "system", "setup")),
                    round(max(row["user"] + row["system"] for row in rows), 2),
                    round(max(row["setup"] for row in rows), 2),
                    round(sum(row["wall"] for row in rows), 2),
                    peaks[file],
                ),
                strict=True,
            )
        )
        for file, rows in files.items()
    ]
    table.sort(key=lambda row: -row["user_s"] - row["system_s"])
    with (folder / "files.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(table)
    return table


def main() -> int:
    """Runs pytest and prints the sums; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "test_times")
    parser.add_argument("--processes", type=int, default=1)
    options, others = parser.parse_known_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for old in options.out.glob("*.phases.csv"):
        old.unlink()
    environment = {**os.environ, FOLDER: str(options.out.resolve())}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT / "scripts"), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "pytest", "-p", "time_tests", "-n", str(options.processes), *others]
    code = subprocess.call([*command, "--dist", "loadfile", "--no-loadscope-reorder"], cwd=ROOT, env=environment)
    summarise(options.out)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(f"user {usage.ru_utime:.0f} s, system {usage.ru_stime:.0f} s: {options.out / 'files.csv'}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
