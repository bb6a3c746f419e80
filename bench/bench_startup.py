"""What it costs to start: `import codec_bench` (target 0.15 s) and `codec-bench --help` (target 0.4 s), as processes.

python bench/bench_startup.py
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from common import append_rows, interleaved, row

CASES = {
    "python alone": [sys.executable, "-P", "-c", "pass"],
    "import codec_bench": [sys.executable, "-P", "-c", "import codec_bench"],
    "codec-bench --help": ["codec-bench", "--help"],
}


def main() -> None:
    """Times each in turn and checks that each exits with 0."""
    calls = {
        name: lambda command=command: subprocess.run(command, check=True, capture_output=True)
        for name, command in CASES.items()
    }
    seconds = interleaved(calls, repeats=15, warmup=2)
    rows = []
    for name, values in seconds.items():
        sys.stdout.write(f"{name:20s} {np.median(values) * 1000:6.0f} ms\n")
        rows.append(row(name, "process", values, n=1, agreement="exit 0", note="floor: python alone"))
    path = append_rows("startup", rows, ("typer", "rich"))
    sys.stdout.write(f"rows appended to {path}\n")


if __name__ == "__main__":
    main()
