"""What it costs to start: `import codec_bench` (target 0.15 s) and `codec-bench --help` (target 0.4 s), as processes.

python bench/bench_startup.py
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
from common import append_rows, interleaved, row

CASES = {
    "python alone": [sys.executable, "-P", "-c", "pass"],
    "import codec_bench": [sys.executable, "-P", "-c", "import codec_bench"],
    "codec-bench --help": ["codec-bench", "--help"],
}


def call(name: str, command: list[str]) -> None:
    """Runs a command; stops where it does not do what is timed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or ("Usage" in done.stdout) != ("--help" in command):
        raise SystemExit(f"{name}: ended with {done.returncode} and {done.stdout[-200:]!r}: {done.stderr[-500:]}")


def main() -> None:
    """Times each in turn and checks that each exits with 0."""
    calls = {name: partial(call, name, command) for name, command in CASES.items()}
    seconds = interleaved(calls, repeats=15, warmup=2)
    rows = []
    for name, values in seconds.items():
        sys.stdout.write(f"{name:20s} {np.median(values) * 1000:6.0f} ms\n")
        rows.append(row(name, "process", values, n=1, agreement="exit 0", note="floor: python alone"))
    path = append_rows("startup", rows, ("typer", "rich"))
    sys.stdout.write(f"rows appended to {path}\n")


if __name__ == "__main__":
    main()
