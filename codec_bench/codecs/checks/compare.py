"""Whether a codec's batches are exact (`verify-batching`), in its process.

The clips have drawn lengths. Added are pieces that fit together badly (`codecs/checks/batching.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from codec_bench.codecs.adapt import ready
from codec_bench.codecs.checks import steps
from codec_bench.codecs.checks.batching import batches_of, mix_clips, one_by_one, try_batches
from codec_bench.codecs.checks.steps import Checking
from codec_bench.types import Audio

_PIECES_OF = 3


@dataclass(frozen=True, slots=True)
class CompareJob(steps.CheckJob):
    """Request to the process of `verify-batching`: a codec, files and their shares.

    Args:
        parts: the share of each file that is used, from its beginning, 0 to 1.
    """

    PROGRAM: ClassVar[str] = "codec_bench.codecs.checks.compare:Comparing"
    SECTIONS: ClassVar[Mapping[str, tuple[str, ...]]] = {"load": ("info", "load"), "batches": ("batches",)}

    parts: tuple[float, ...] = ()


class Comparing(Checking):
    """Runs the step `batches`: one codec's batches against its single clips."""

    def _batches(self) -> dict[str, dict[str, Any]]:
        return {"batches": compare_batches(self._codec, self._request)}


def read_clips(files: Sequence[tuple[str, str]], parts: Sequence[float]) -> list[Audio]:
    """Read audio files, each cut to a share of its length from the beginning.

    Args:
        files: (id, path) of each file.
        parts: the share of each file, 0 to 1.
    """
    clips = []
    for (_, path), share in zip(files, parts, strict=True):
        audio = Audio.read(path)
        clips.append(Audio(audio.samples[:, : max(1, int(audio.num_samples * share))], audio.sample_rate_hz))
    return clips


def compare_batches(codec: Any, request: CompareJob) -> dict[str, Any]:
    """Code clips in batches and alone, and compare the results.

    Short and odd lengths cut from the first clips are added. Of a clip that the codec takes by channel, only the first
    channel is used.

    Returns:
        The number of differing frames, the largest difference of a sample and other facts, as JSON values.

    Raises:
        Exception: the codec raised it.
    """
    pieces = [ready(clip, codec.info)[0] for clip in read_clips(request.files, request.parts)]
    names = [name for name, _ in request.files]
    odd = mix_clips(pieces[:_PIECES_OF], codec.info.frame_rate_hz)
    names += [f"{segment.num_samples} samples of {names[0]} or silence" for segment in odd]
    pieces += odd
    alone = one_by_one(codec, pieces)
    comparison = try_batches(codec, pieces, alone, batches_of([segment.num_samples for segment in pieces]))
    lengths = [segment.duration_s for segment in pieces]
    return {
        "items": len(pieces), "shortest_s": min(lengths), "longest_s": max(lengths), "relative": None,
        "wave": comparison.wave,
        "frames": comparison.frames or None, "flips": comparison.flips if comparison.frames else None,
        "worst": names[comparison.worst or 0], "exact": comparison.exact,
    }  # fmt: skip
