"""Run a script of this folder on the GPU of `tests/gpu/pretended.py`, without writing rows.

    python bench/gpu_pretended.py [--cpu] SCRIPT [WORD ...]

It finds calls that a real device would refuse or a library no longer has. Processes of the script and CTranslate2 are
not pretended; with `--cpu` nothing is.
"""

from __future__ import annotations

import os
import runpy
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
_ANSWERS = {
    "synchronize": None, "get_device_name": "a GPU that is not there", "mem_get_info": (100 << 30, 139 << 30),
    "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "reset_peak_memory_stats": None,
}  # fmt: skip
"""What `torch.cuda` answers, beside what the tests' device answers."""


def tried(script: str, words: list[str], *, cpu: bool) -> None:
    """Run a script with these words."""
    sys.path[:0] = [str(Path(script).resolve().parent), str(ROOT / "tests" / "gpu")]
    import common

    with ExitStack() as stack:

        def instead(where: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(where, name, value))

        instead(sys, "argv", [script, *words])
        instead(common, "append_rows", lambda stem, *_, **__: common.DATA / f"{stem}.csv")
        if not cpu:
            import torch
            from pretended import pretended

            for name, answer in _ANSWERS.items():
                instead(torch.cuda, name, lambda *_, answer=answer: answer)
            instead(common, "product_rate", lambda *_: 1e9)  # a large product would take a CPU minutes
            stack.enter_context(pretended())
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("PYTORCH_JIT", "0")  # what torch has compiled cannot be pretended
    arguments = [word for word in sys.argv[1:2] if word != "--cpu"] + sys.argv[2:]
    tried(arguments[0], arguments[1:], cpu=sys.argv[1] == "--cpu")
