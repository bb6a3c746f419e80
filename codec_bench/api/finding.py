"""The result of a check of `doctor` and `validate`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from codec_bench.messages import Diagnostic, to_json

State = Literal["ok", "note", "suspect", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check.

    Args:
        what: the checked thing.
        state: `ok`, `note` (worth knowing), `suspect` (mostly a mistake) or `wrong`.
        found: the result.
        do: what to do, if anything.
    """

    what: str
    state: State
    found: Diagnostic
    do: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, with the code of the result if there is one."""
        held: dict[str, Any] = to_json(asdict(self))
        return held
