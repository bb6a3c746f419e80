"""Bitrate and quality of a continuous codec with rounded latents.

Each latent is rounded to one of 2^b evenly spaced levels between the lowest and the highest value of its dimension over
stated clips (`codecs/quantised.py`); `beyond` is the share of the latents of the measured clips that lie beyond and are
cut. `bps` is the rate of the rounded latents, b bits for each. Quality is by the metrics of the robustness measurements
and those that the profile was asked for, of a few whole clips against what was encoded; `unrounded` is that of the
latents as they are. The means stand without an interval.
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
    """Rounds the latents of a few clips to fewer and fewer bits.

    Args:
        metrics: that the profile was asked for. texts: what is said in the clips, by their ids.

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
    """The share of latents that lie beyond the range of their dimension."""
    values = np.concatenate([np.asarray(item.values, np.float64) for item in latents], axis=1)
    return float(((values < span[0]) | (values > span[1])).mean())
