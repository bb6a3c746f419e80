"""What a check has found, as `doctor` and `validate` show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "suspect", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked: its state, what was found, and what to do if it is wrong."""

    what: str
    state: State
    found: str
    do: str = ""
