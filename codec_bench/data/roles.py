"""The role of the data's audio: prompt of the voice, target, or none."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import get_args

from codec_bench.data.layouts import Role
from codec_bench.data.layouts.lists import TARGET
from codec_bench.data.source import Source, problem_of
from codec_bench.messages.errors import Note, UserError
from codec_bench.types import Sample

_PROMPT_COLUMN = "prompt_text"


def with_role(source: Source, role: str | None) -> tuple[Source, Role]:
    """Select the audio of each sample by its role, and return the role.

    Args:
        role: `target` for recordings of the texts, `prompt` for recordings of the voice that speak other words, `none`
            to remove the audio. None selects `prompt` if the data name prompts, with a warning, or else `target`.

    Returns:
        The source, whose samples' `audio` is the `target_audio` column for `target` if it exists, and the role.

    Raises:
        UserError: the role is unknown.
    """
    known: tuple[Role, ...] = get_args(Role)
    if role is not None and role not in known:
        raise UserError("reference_role", role=role, known=", ".join(known))
    chosen: Role = next((one for one in known if one == role), "target")
    if role is None and _has_prompts(source):
        chosen = "prompt"
        column = None if source.report is not None else _PROMPT_COLUMN
        warnings.warn(Note("audio_is_prompt", data=source.name, column=column), stacklevel=3)
    has_targets = chosen == "target" and any(TARGET in sample.extra for sample in source)
    if chosen == "none" or has_targets:
        samples = [_with_audio(sample, sample.extra.get(TARGET) if has_targets else None) for sample in source]
        source = Source(source.name, samples, source.unmatched, source.complete)
    return source, chosen


def _has_prompts(source: Source) -> bool:
    if source.report is not None and source.report.role == "prompt":
        return True
    return any(_PROMPT_COLUMN in sample.extra and sample.audio is not None for sample in source)


def _with_audio(sample: Sample, audio: str | None) -> Sample:
    return sample if problem_of(sample) is not None else replace(sample, audio=audio)
