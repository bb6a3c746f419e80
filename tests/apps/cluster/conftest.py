"""Programs of Slurm that are not there: they write down what they were called with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SBATCH = """#!/bin/bash
number=$(($(cat "$SLURM_TOLD/number" 2>/dev/null || echo 100) + 1))
echo $number > "$SLURM_TOLD/number"
printf '%s\\n' "$*" >> "$SLURM_TOLD/sbatch"
echo "$number;cluster"
"""
SQUEUE = """#!/bin/bash
cat "$SLURM_TOLD/queue" 2>/dev/null || true
"""


class Recording:
    """The programs' arguments and answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def submitted(self) -> list[str]:
        """The arguments of each call of sbatch."""
        path = self.folder / "sbatch"
        return path.read_text().splitlines() if path.exists() else []

    def queue(self, text: str) -> None:
        """What squeue shows from now on."""
        (self.folder / "queue").write_text(text)

    def refuses(self, program: str, why: str, call: int = 1) -> None:
        """Lets a program fail from a call on, counted from now."""
        path, before = self.folder / "bin" / program, self.folder / f"{program}.before"
        path.rename(before)
        path.write_text(
            f"#!/bin/bash\ncount=$(($(cat {before}.calls 2>/dev/null || echo 0) + 1)); echo $count > {before}.calls\n"
            f"[ $count -lt {call} ] && exec {before} \"$@\"\necho '{why}' >&2\nexit 1\n"
        )
        path.chmod(0o755)

    def allows(self, program: str) -> None:
        """Lets a program that was made to fail work again."""
        (self.folder / f"{program}.before").rename(self.folder / "bin" / program)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    programs = tmp_path / "told" / "bin"
    programs.mkdir(parents=True)
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_TOLD", str(programs.parent))
    return Recording(programs.parent)
