"""What a check has found, as `doctor` and `validate` show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from codec_bench.messages import to_json

State = Literal["ok", "note", "suspect", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Args:
        what: the thing.
        state: `ok`, `note` (worth knowing), `suspect` (mostly a mistake) or `wrong`.
        found: what was found.
        do: what to do; empty if nothing has to be done.
    """

    what: str
    state: State
    found: str
    do: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, with the code of what was found where it has one."""
        held: dict[str, Any] = to_json(asdict(self))
        return held
