"""Sounds that are longer than a model takes, where a benchmark says that they are not to be cut."""

from __future__ import annotations

from codec_bench.errors import AudioError, UserError
from codec_bench.models.info import ModelInfo
from codec_bench.models.sound import clips_of
from codec_bench.types import Request


class TooLong(UserError):
    """The sound of a question is longer than the model takes, and the benchmark says that it is not to be cut."""


def check_length(request: Request, info: ModelInfo) -> Request:
    """The request, if the model takes its sounds whole.

    Args:
        request: its sounds are decoded, where the model has a limit. A sound that cannot be read is left to the model to tell.
        info: the facts of the model. One that reads long sounds in windows takes sounds of any length.

    Raises:
        TooLong: a sound is longer than the model takes.
    """
    if info.limit_s is None or info.window_s is not None:
        return request
    for clip in clips_of(request):
        try:
            seconds = clip.read().duration_s
        except AudioError:
            continue
        if seconds > info.limit_s:
            raise TooLong(
                f"its sound is {seconds:.1f} s long, '{info.name}' takes {info.limit_s:g} s, and the benchmark says not to cut it"
            )
    return request


__all__ = ["TooLong", "check_length"]
