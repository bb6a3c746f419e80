"""MCD: the distance of the spectral envelopes of estimate and reference."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from codec_bench.metrics.base import Inputs, ItemMetric, check_frame_counts, variant_name
from codec_bench.types import Score

LOUD_DB = -20.0
DECIBELS = 10.0 * math.sqrt(2.0) / math.log(10.0)
DTW = "dtw"
_FEATURE = "mel_cepstrum"
_FRONT = "versa-world-cheaptrick/order-39-with-c0/alpha-0.466/5ms-16k"


class Mcd(ItemMetric):
    """Mel-cepstral distortion in dB. Lower is better; a copy has 0.

    `10 sqrt(2) / ln 10` times the Euclidean distance of 40 mel-cepstral coefficients of WORLD's envelope, as in VERSA.
    The first coefficient counts, and so does the level. Other implementations omit it or take fewer coefficients:
    compare numbers of one protocol only.

    * None: frame by frame, over all frames (VERSA's default). Signals must be aligned, and their lengths may differ by
    0.1 s.
    * `dtw`: over the frames within 20 dB of the mean power, aligned by FastDTW with a radius of 1. For the same words
    at another speed, such as text-to-speech against a recording.

    Undefined for digital silence. The feature needs `pip install 'codec-bench[pitch]'`.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("mcd")(reference=[clip], estimate=[coarse])[0]["mcd"].value)
        30
    """

    name = "mcd"
    kind = "pair"
    rate_hz = 16_000
    signals = False
    higher_is_better = False
    unit = "dB"
    range = (0.0, None)
    paper = "Kubichek: Mel-cepstral distance measure for objective speech quality assessment, IEEE PacRim 1993"
    source = "VERSA at c398480a mcd_f0, to 1e-4 relative"
    estimate_features = reference_features = (_FEATURE,)
    variants: ClassVar[dict[str | None, str]] = {
        None: f"mcd/{_FRONT}/all-frames",
        DTW: f"mcd/{_FRONT}/loud-20db/fastdtw-1",
    }

    def __init__(self, variant: str | None = None) -> None:
        self.name = variant_name("mcd", variant, self.variants)
        self.protocol = self.variants[variant]
        self._compare = _warp_frames if variant == DTW else _pair_frames

    def _score(self, item: Inputs) -> Score:
        """Average the cepstral distance over paired frames, in dB."""
        sides = item.features(_FEATURE)
        if self._compare is _pair_frames:
            off = len(sides[1]["cepstra"]) - len(sides[0]["cepstra"])
            mismatch = check_frame_counts(off * sides[0]["hop_s"], f"mcd[{DTW}]")
            if mismatch is not None:
                return Score.refused(mismatch, self.protocol)
        reference, estimate = self._compare(*sides)
        each = DECIBELS * np.sqrt(((reference - estimate) ** 2).sum(axis=1))
        return Score.ok(float(each.mean()), self.protocol, detail={"frames": len(each)})


def _pair_frames(reference: dict[str, np.ndarray], estimate: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the cepstra of common frames, float64 `(frames, coefficients)` each."""
    frames = min(len(features["cepstra"]) for features in (reference, estimate))
    return reference["cepstra"][:frames].astype(np.float64), estimate["cepstra"][:frames].astype(np.float64)


def _warp_frames(reference: dict[str, np.ndarray], estimate: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Align both cepstra of loud frames by DTW.

    Returns:
        The cepstra of reference and estimate along the path, of equal shape.
    """
    from codec_bench.kernels.dtw.cpu import fast_path

    x, y = (result["cepstra"][result["power_db"] > LOUD_DB].astype(np.float64) for result in (estimate, reference))
    path = fast_path(x, y)
    return y[path[:, 1]], x[path[:, 0]]
