"""LSD: the distance of the log power spectra of estimate and reference."""

from __future__ import annotations

from typing import ClassVar

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric, variant_name
from codec_bench.metrics.stft_distance import spectra_of
from codec_bench.types import Score

FLOOR = 1e-12
WINDOW_AT_44100 = 2048
FRAMES_PER_S = 100
FLOORED = "floored"


class Lsd(ItemMetric):
    """Log-spectral distance: RMS difference of log10 powers. Lower is better.

    At the reference's own rate, so that losses above 8 kHz count, with a window of 46 ms (2048 samples at 44.1 kHz) and
    100 frames a second, as in papers on bandwidth extension and full-band codecs. A unit is a factor of 10 in power.

    * None: ssr_eval's formula, which adds 1e-12 to the estimate's magnitude and to the ratio of the powers. Bins that
    are silent on both sides count 12, so a copy of a clip with silence is not 0.
    * `floored`: powers are floored at 1e-12 on both sides. A copy has 0.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("lsd")(reference=[clip], estimate=[coarse])[0]["lsd"].value, 1)
        3.7
    """

    name = "lsd"
    kind = "pair"
    higher_is_better = False
    range = (0.0, None)
    paper = "Gray, Markel: Distance measures for speech processing, IEEE TASSP 24(5), 1976"
    source = "ssr_eval at 7129ee83 AudioMetrics.lsd, to 1e-4 relative (lsd)"
    variants: ClassVar[dict[str | None, str]] = {
        None: "lsd/ssr-eval-46ms-10ms/1e-12-added",
        FLOORED: "lsd/46ms-10ms/1e-12-floored",
    }

    def __init__(self, variant: str | None = None) -> None:
        self.name = variant_name("lsd", variant, self.variants)
        self.protocol = self.variants[variant]
        self._added = variant is None

    def _score(self, item: Inputs) -> Score:
        """Compute the distance of both power spectrograms at the reference's rate.

        The windows are scaled to the rate.
        """
        from codec_bench.kernels.spectrum.ref import Frames, log_spectral_distance

        reference, _ = item.pair
        window = int(WINDOW_AT_44100 / (44_100 / item.rate_hz))
        frames = Frames(window, item.rate_hz // FRAMES_PER_S, edges="constant")
        if not reference.size:
            return Score.undefined(Diagnostic("no_signal_samples"), self.protocol)
        value = log_spectral_distance(spectra_of(item, frames), floor=FLOOR, added=self._added)
        return Score.ok(value, self.protocol)
