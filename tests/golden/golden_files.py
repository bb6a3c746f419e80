"""Reading the golden files beside this module."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def golden(name: str) -> Any:
    """The contents of `<name>.json`."""
    return json.loads((Path(__file__).parent / f"{name}.json").read_text("utf-8"))
