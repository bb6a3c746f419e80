"""Mel distance: how far the estimate's mel spectrogram lies from the reference's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.metrics.stft_distance import WINDOWS, SpectralDistance

NUM_MELS = (150, 80)


class MelDistance(SpectralDistance):
    """Multi-resolution mel-spectrogram distance. Lower is better; 0 for a perfect copy, and no unit.

    The definition of descript-audiotools (`MelSpectrogramLoss`, its defaults), which the DAC evaluation script and
    Codec-SUPERB call mel distance: windows of 2048 and 512 samples with 150 and 80 Slaney mel bands up to half the
    rate, a hop of a quarter window; the mean absolute difference of magnitudes plus that of log10 powers (magnitudes
    floored at 1e-5), summed over both windows.

    It is computed at 16 kHz for every codec and data set, whatever their rates. Above 8 kHz most speech corpora hold
    nothing, or values at the floor, where the logarithm would give an inaudible residue as much weight as speech.
    Signals of 1024 samples or fewer (64 ms) are undefined, because they cannot be extended by reflection. Silence is
    floored and never gives NaN.

    Paper: R. Kumar et al., "High-Fidelity Audio Compression with Improved RVQGAN", NeurIPS 2023. Reference
    implementation: descript-audiotools 0.7.4 `metrics.spectral.MelSpectrogramLoss`, to 1e-5 relative (it is float32).
    """

    name = "mel_distance"
    protocol = "mel_distance/audiotools-0.7-l1-mag+log10-2048x150-512x80-16k"
    paper = (
        "Kumar, Seetharaman, Luebs, Kumar, Kumar: High-Fidelity Audio Compression with Improved RVQGAN, NeurIPS 2023"
    )
    source = "descript-audiotools 0.7.4 MelSpectrogramLoss, to 1e-5 relative"

    def _filters(self, rate_hz: int) -> Sequence[np.ndarray | None]:
        from codec_bench.kernels.spectrum.ref import mel_filters

        return [mel_filters(rate_hz, window, mels) for window, mels in zip(WINDOWS, NUM_MELS)]
