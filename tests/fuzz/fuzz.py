"""Fuzzes every reader of bytes that others wrote: `python tests/fuzz/fuzz.py --cases 3000` (or `make fuzz`).

Each target runs in a process of its own, so that a crash or a hang is counted and the next case goes on. A case is a
fault if it ends in an exception that is no `UserError`, takes more than 10 s of CPU, needs more than 1 GiB, ends the
process, or gives what it must not give (`wrong`). The last line of a fault says how to repeat it. The exit code is 1 if
there was any.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 10.0
STUCK_S, START_S = 60.0, 600.0
"""A process that says nothing while it computes for so long, or while it does not compute at all, is ended: it may only
be waiting for a busy machine. At its start, kernels may have to be compiled."""
MOST_BYTES = 1 << 30
KINDS = ("traceback", "wrong", "slow", "memory", "hang", "crash")


@dataclass(frozen=True, slots=True)
class Case:
    """One case: what went wrong, or None, and in words."""

    number: int
    fault: str | None = None
    text: str = ""


def targets() -> dict[str, Any]:
    """The targets by name."""
    from copies import COPIES
    from targets import TARGETS
    from traps import TRAPS

    return {**TARGETS, **TRAPS, **COPIES}


def cases_of(name: str, first: int, count: int, seed: int, folder: Path) -> Iterator[Case]:
    """Runs cases of one target in this process."""
    target = targets()[name](folder)
    peak = _peak()
    for number in range(first, first + count):
        rng = random.Random(f"{name}:{seed}:{number}")
        data = target.changed(rng)
        start = time.process_time()
        fault, text = None, ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                target.run(data, rng)
        except target.allowed:
            pass
        except AssertionError:
            fault, text = "wrong", traceback.format_exc()
        except Exception:
            fault, text = "traceback", traceback.format_exc()
        took, grown = time.process_time() - start, _peak() - peak
        if fault is None and took > LIMIT_S:
            fault, text = "slow", f"{took:.1f} s"
        if fault is None and grown > MOST_BYTES:
            fault, text = "memory", f"{grown / 2**30:.1f} GiB"
            peak = _peak()
        yield Case(number, fault, text)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fuzz(name: str, first: int, count: int, seed: int, notify: Callable[[str], None]) -> Counter[str]:
    """Runs cases of one target in processes of its own; gives how many there were of each kind of fault, and in all."""
    counts: Counter[str] = Counter()
    end = first + count
    while first < end:
        command = [sys.executable, "-X", "faulthandler", __file__, "--child", name, "--first", str(first)]
        command += ["--cases", str(end - first), "--seed", str(seed)]
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            case, fault = _follow(child, name, seed, counts, notify, first)
            errors.seek(0)
            text = errors.read()[-2000:]
        first = case + 1
        if fault is not None:
            counts["cases"] += 1
            counts[fault] += 1
            notify(f"{name} {fault}: {text}\n  repeat: {_repeat(name, case, seed)}")
        elif first < end and counts["cases"] == 0:
            raise SystemExit(f"{name} cannot be started:\n{text}")
    return counts


def _follow(
    child: subprocess.Popen[str], name: str, seed: int, counts: Counter[str], notify: Callable[[str], None], first: int
) -> tuple[int, str | None]:
    """Reads what a process says of its cases.

    Gives the last case that it began, and how that ended the process, if it did.
    """
    lines: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=lambda: [lines.put(line) for line in (*child.stdout, "")], daemon=True)
    reader.start()
    done, details, seen = first - 1, 0.0, 0.0  # seconds of CPU at the last line, and when it was last looked at
    while True:
        try:
            line = lines.get(timeout=STUCK_S if done >= first else START_S)
        except queue.Empty:
            before, seen = seen, _cpu_s(child.pid)
            if before < seen < details + (STUCK_S if done >= first else START_S):
                continue
            child.kill()
            child.wait()
            return done + 1, "hang"
        if not line:
            return (done, None) if child.wait() == 0 else (done + 1, "crash")
        number, fault, text = json.loads(line)
        details = seen = _cpu_s(child.pid)
        done = number
        counts["cases"] += 1
        if fault is not None:
            counts[fault] += 1
            notify(f"{name} {fault}: {text}\n  repeat: {_repeat(name, number, seed)}")


def _cpu_s(pid: int) -> float:
    """How many seconds of CPU a process has had."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:  # it has just ended
        return 0.0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def _repeat(name: str, number: int, seed: int) -> str:
    return f"python tests/fuzz/fuzz.py --target {name} --first {number} --cases 1 --seed {seed}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", action="append", choices=sorted(targets()), help="only this; may be given again")
    parser.add_argument("--cases", type=int, default=3000, help="of each target")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", choices=sorted(targets()), help=argparse.SUPPRESS)
    requested = parser.parse_args()
    if requested.child:
        with tempfile.TemporaryDirectory() as folder:
            for case in cases_of(requested.child, requested.first, requested.cases, requested.seed, Path(folder)):
                print(json.dumps((case.number, case.fault, case.text)), flush=True)
        return 0
    bad = 0
    for name in requested.target or sorted(targets()):
        start = time.monotonic()
        counts = fuzz(name, requested.first, requested.cases, requested.seed, lambda text: print(text, file=sys.stderr))
        faults = {kind: counts[kind] for kind in KINDS if counts[kind]}
        bad += sum(faults.values())
        shown = ", ".join(f"{count} {kind}" for kind, count in faults.items()) or "no fault"
        print(f"{name}: {counts['cases']} cases, {shown} ({time.monotonic() - start:.0f} s)", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
