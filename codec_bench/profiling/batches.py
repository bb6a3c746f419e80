"""Whether the batches of a codec are exact, over some clips: what `verify-batching` runs in the process of the codec.

The clips are cut to lengths that were drawn. To them come pieces that fit together badly: the shortest and the longest, whole
frames, one sample more and one less, and silence (`codecs/checks/batching.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codec_bench.codecs.adapt import ready
from codec_bench.codecs.checks.batching import batches_of, disagreeing, one_by_one, try_batches
from codec_bench.profiling.steps import Watched
from codec_bench.types import Audio

_PIECES_OF = 3


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """What is checked.

    Args:
        codec: its name. options: further arguments of its class. device: `cpu` or `cuda:N`.
        clips: (id, path, the part of it that is kept) of every clip.
    """

    codec: str
    clips: tuple[tuple[str, str, float], ...]
    device: str
    options: Mapping[str, Any] = field(default_factory=dict)


def read_clips(clips: tuple[tuple[str, str, float], ...]) -> list[Audio]:
    """The clips, each cut to the part that is kept."""
    found = []
    for _, path, part in clips:
        audio = Audio.read(path)
        found.append(Audio(audio.samples[:, : max(1, int(audio.num_samples * part))], audio.sample_rate_hz))
    return found


def compare_batches(request: BatchRequest, announce: Callable[[], None]) -> dict[str, Any]:
    """How far batches differ from one by one; `announce` is called before every call of the codec.

    Raises:
        UserError: the codec cannot be loaded.
        Exception: the codec raised it.
    """
    from codec_bench.codecs import load_codec

    codec = Watched(load_codec(request.codec, device=request.device, **request.options), announce)
    pieces = [ready(clip, codec.info)[0] for clip in read_clips(request.clips)]
    names = [name for name, _, _ in request.clips]
    odd = disagreeing(pieces[:_PIECES_OF], codec.info.frame_rate_hz)
    names += [f"{piece.num_samples} samples of {names[0]} or silence" for piece in odd]
    pieces += odd
    alone = one_by_one(codec, pieces)
    found = try_batches(codec, pieces, alone, batches_of([piece.num_samples for piece in pieces]))
    lengths = [piece.duration_s for piece in pieces]
    return {
        "items": len(pieces), "shortest_s": min(lengths), "longest_s": max(lengths), "relative": None, "wave": found.wave,
        "frames": found.frames or None, "flips": found.flips if found.frames else None,
        "worst": names[found.worst or 0], "exact": found.exact,
    }  # fmt: skip
