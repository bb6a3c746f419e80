"""Bitrate and quality of a continuous codec with rounded latents.

Each latent is rounded to 2^b evenly spaced levels over the range of its dimension in the corpus
(`codecs/quantised.py`). `beyond` is the share of latents outside that range, which are clipped. `bps` counts b bits a
latent. Quality is the mean over a few clips, without an interval; `unrounded` is that of exact latents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.apps.profiling.scoring import SectionScorer
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import decode, recode
from codec_bench.codecs.checks.material import Material
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.codecs.quantised import RANGE_CLIPS, Quantised, latent_range
from codec_bench.messages import Diagnostic
from codec_bench.types import Latents


def measure(
    codec: Any,
    material: Material,
    settings: Settings,
    metrics: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Round the latents of a few clips to fewer and fewer bits, and score them.

    Args:
        metrics: the metrics of the profile. texts: transcripts of the clips, by id.

    Raises:
        NotApplicable: it sends no latents.
    """
    if codec.info.latents is None:
        raise NotApplicable(Diagnostic("no_latents"))
    clips = material.first_clips[: settings.robust_clips]
    spoken = [(texts or {}).get(name) for name in material.ids[: len(clips)]]
    sent, waves = recode(codec, clips)
    latents = [item for item in sent if isinstance(item, Latents)]
    scorer = SectionScorer((*settings.robust_metrics, *metrics))
    span = latent_range(codec)
    points = []
    for bits in settings.latent_bits:
        rounding = Quantised(codec, bits, span)
        codes = [rounding.rounded(item) for item in latents]
        bps = sum(item.bits for item in codes) / sum(item.duration_s for item in codes)
        points.append({"bits": bits, "bps": bps, "quality": scorer(clips, decode(rounding, codes, clips), spoken)})
    return {
        "clips": len(clips),
        "range_clips": list(RANGE_CLIPS),
        "beyond": _beyond(latents, span),
        "metrics": scorer.facts,
        "unrounded": scorer(clips, waves, spoken),
        "points": points,
    }


def _beyond(latents: Sequence[Latents], span: tuple[np.ndarray, np.ndarray]) -> float:
    """Compute the share of latents outside the range of their dimension."""
    values = np.concatenate([np.asarray(item.values, np.float64) for item in latents], axis=1)
    return float(((values < span[0]) | (values > span[1])).mean())
