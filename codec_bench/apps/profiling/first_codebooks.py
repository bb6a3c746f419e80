"""Quality when only the first codebooks are decoded.

A few whole clips are decoded with fewer codebooks by the codec's method `first`, and scored by
`Settings.robust_metrics` and the metrics of the profile. Means have no interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codec_bench.apps.profiling.scoring import SectionScorer
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import decode, encode
from codec_bench.codecs.checks.material import Material
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.errors import UserError
from codec_bench.messages import Diagnostic, of_error
from codec_bench.types import Codes, Sent


def measure(
    codec: Any,
    material: Material,
    settings: Settings,
    metrics: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Decode fewer and fewer codebooks, and score them.

    Args:
        metrics: the metrics of the profile. texts: transcripts of the clips, by id.

    Raises:
        NotApplicable: it has one codebook, or decodes all of them only.
    """
    clips = material.first_clips[: settings.robust_clips]
    spoken = [(texts or {}).get(name) for name in material.ids[: len(clips)]]
    sent = encode(codec, clips)
    count = _codebooks(sent[0])
    first = getattr(codec, "first", None)
    if first is None:
        raise NotApplicable(Diagnostic("no_first"))
    scorer = SectionScorer((*settings.robust_metrics, *metrics))
    points = []
    for codebooks in sweep(count):
        try:
            fewer = first(codebooks) if codebooks < count else codec
        except (UserError, NotImplementedError) as error:
            raise NotApplicable(
                of_error(error, with_type=False) if str(error) else Diagnostic("no_fewer_codebooks")
            ) from error
        cut = [_cut(item, codebooks) for item in sent]
        bps = float(np.mean([item.bits / item.duration_s for item in cut]))
        points.append({"codebooks": codebooks, "bps": bps, "quality": scorer(clips, decode(fewer, cut, clips), spoken)})
    return {"clips": len(clips), "codebooks": count, "metrics": scorer.facts, "points": points}


def sweep(count: int) -> list[int]:
    """List the numbers of codebooks to try: powers of two, and all."""
    return [2**k for k in range(count.bit_length()) if 2**k < count] + [count]


def _codebooks(sent: Sent) -> int:
    """Count the only stream's codebooks; raises NotApplicable."""
    if not sent.streams:
        raise NotApplicable(Diagnostic("no_codebooks"))
    if len(sent.streams) != 1:
        raise NotApplicable(Diagnostic("several_streams", streams=len(sent.streams)))
    count = int(np.shape(sent.streams[0].values)[0])
    if count < 2:
        raise NotApplicable(Diagnostic("one_codebook"))
    return count


def _cut(item: Sent, codebooks: int) -> Codes:
    assert isinstance(item, Codes)
    (stream,) = item.streams
    return replace(item, streams=(replace(stream, values=np.array(stream.values[:codebooks])),))
