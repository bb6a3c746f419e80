"""The facts that a model declares: its inputs, its outputs and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Modality = Literal["text", "audio"]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The facts a model declares.

    Args:
        name: the name on the command line.
        family: the family whose prompts the model uses if a benchmark has no prompt for the model itself.
        inputs, outputs: the kinds of data that it takes and gives.
        reads: `messages` for a model that takes a conversation, `fields` for a model that takes named inputs (speech
            synthesis, transcription).
        limit_s: the longest audio in one request, in seconds; None for no limit.
        window_s: longer audio is split into windows of at most this many seconds, and the answers are joined. None: longer
            audio is cut at `limit_s`, and the response says how much was cut.
        languages: ISO 639-1 codes of the languages that it knows; empty if that is not stated.
        licence: SPDX name of the licence of the weights; None if unknown. paper: where the model is described.
    """

    name: str
    family: str | None = None
    inputs: tuple[Modality, ...] = ("text", "audio")
    outputs: tuple[Modality, ...] = ("text",)
    reads: Literal["messages", "fields"] = "messages"
    limit_s: float | None = None
    window_s: float | None = None
    languages: tuple[str, ...] = ()
    licence: str | None = None
    paper: str = ""
