"""Gives one module of the package another source, in this process and (found on PYTHONPATH) in those that it starts."""

from __future__ import annotations

import json
import os
from importlib.machinery import SourceFileLoader
from pathlib import Path

VARIABLE = "CODEC_BENCH_MUTANT"


def install(location: str) -> None:
    """Replaces the source of the module that the file `location` names."""
    details = json.loads(Path(location).read_text("utf-8"))
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> object:
        # Rooms of the package are links, so a module is known by where it really is.
        if os.path.realpath(self.path) != details["path"]:
            return original(self, fullname)
        return compile(details["source"], self.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code


if os.environ.get(VARIABLE):
    install(os.environ[VARIABLE])
