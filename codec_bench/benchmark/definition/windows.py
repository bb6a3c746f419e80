"""The field `windows` of definitions: long sounds in parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class WindowsSpec(BaseModel):
    """How `too_long: windows` splits audio that is longer than the model's limit.

    Args:
        join: how the answers are joined: `words` in a row, by `vote`, or on `lines` (see `types.Windows`).
        overlap_s: seconds that a window shares with the one before it.
        length_s: the longest window; null for the longest that the model takes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    join: Literal["words", "vote", "lines"] = "words"
    overlap_s: Annotated[float, Field(ge=0)] = 0.0
    length_s: Annotated[float | None, Field(gt=0)] = None
