"""The cheap checks of a run: short pieces, coded alone, again, and in batches.

Pieces of unequal lengths come from the loudest parts; one is silence. `validate` and `profile` do the rest: very short
input, further rates and channels, digital silence, and many batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.codecs.adapt import fault_of, ready
from codec_bench.codecs.checks import finding
from codec_bench.codecs.checks.batching import one_by_one
from codec_bench.codecs.checks.behaviour import compare_repeats_and_batches
from codec_bench.codecs.checks.labels import LabelChecks
from codec_bench.codecs.checks.serialised_codes import CannotSend, SerialisedCodes, pack
from codec_bench.codecs.checks.signals import SignalChecks, loudest
from codec_bench.messages import Diagnostic, of_error
from codec_bench.types import Audio

CLIPS = 4
"""The number of clips with pieces."""

_PIECES_S = (0.9031, 0.2537, 0.4517, 0.6043)  # no whole number of frames of any codec
_SILENCE_S = 0.3
_BATCHES = ((0, 1, 4, 2, 3), (4, 2))  # the longest, the shortest, silence, ...
_SENT = (0, 1)


def quick_check(codec: Any, clips: Sequence[Audio]) -> tuple[list[dict[str, Any]], SerialisedCodes | Diagnostic]:
    """Check a codec with a few short segments, and serialise two items' codes.

    Args:
        clips: audio of the run, at least one; at most `CLIPS` are used.

    Returns:
        The findings, and the serialised codes for decoding in another process, or the reason why there are none.
    """
    pieces = _pieces(codec, clips)
    try:
        alone = one_by_one(codec, pieces)
    except MemoryError:
        raise
    except Exception as error:  # own code may raise anything; that is the finding
        return [finding("contract", "failed", fault_of(error))], Diagnostic("codec_failed")
    signals, labels = SignalChecks(), LabelChecks()
    for index, (codes, wave) in enumerate(alone):
        labels.add(codes)
        if index < len(_PIECES_S):
            signals.add(f"piece {index + 1}", pieces[index], wave)
    findings = signals.findings(pieces[0].sample_rate_hz) + labels.findings(codec.info)
    findings += compare_repeats_and_batches(codec, pieces, alone, _BATCHES)
    try:
        return findings, pack([alone[k][0] for k in _SENT], [alone[k][1] for k in _SENT])
    except CannotSend as reason:
        return findings, of_error(reason)


def _pieces(codec: Any, clips: Sequence[Audio]) -> list[Audio]:
    loud = [loudest(clips[k % len(clips)], seconds) for k, seconds in enumerate(_PIECES_S)]
    quiet = Audio(np.zeros((clips[0].channels, round(_SILENCE_S * clips[0].sample_rate_hz))), clips[0].sample_rate_hz)
    return [ready(clip, codec.info)[0] for clip in (*loud, quiet)]
