"""Mel distance between the mel spectrograms of estimate and reference."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from codec_bench.metrics.base import Inputs
from codec_bench.metrics.stft_distance import WINDOWS, SpectralDistance, spectra_of

NUM_MELS = (150, 80)
DAC = "dac"
DAC_WINDOWS = (32, 64, 128, 256, 512, 1024, 2048)
DAC_NUM_MELS = (5, 10, 20, 40, 80, 160, 320)
_PAPER = "Kumar, Seetharaman, Luebs, Kumar, Kumar: High-Fidelity Audio Compression with Improved RVQGAN, NeurIPS 2023"


class MelDistance(SpectralDistance):
    """Multi-resolution mel-spectrogram distance. Lower is better; a copy has 0.

    * None: descript-audiotools' `MelSpectrogramLoss` with its defaults, the mel distance of DAC's evaluation script and
      Codec-SUPERB: windows of 2048 and 512 samples with 150 and 80 Slaney mel bands up to half the rate, a hop of a
      quarter window; the mean absolute difference of magnitudes plus that of log10 powers (magnitudes floored at 1e-5),
      summed over both windows.
    * `dac`: DAC's training loss (`conf/base.yml`): seven windows from 32 to 2048 samples with 5 to 320 bands; the mean
      absolute difference of log10 magnitudes alone, summed over all.

    Computed at 16 kHz for every codec and data set. Above 8 kHz most speech corpora hold nothing, and the logarithm
    would weigh an inaudible residue like speech. Limits are those of `stft_distance`.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("mel_distance")(reference=[clip], estimate=[coarse])[0]["mel_distance"].value, 2)
        2.09
    """

    name = "mel_distance"
    variants: ClassVar[dict[str | None, tuple[str, str, str]]] = {
        None: (
            "mel_distance/audiotools-0.7-l1-mag+log10-2048x150-512x80-16k",
            _PAPER,
            "descript-audiotools 0.7.4 MelSpectrogramLoss, to 1e-5 relative",
        ),
        DAC: (
            "mel_distance/dac-l1-log10-7-windows-32x5-2048x320-16k",
            _PAPER,
            "descript-audiotools 0.7.4 MelSpectrogramLoss with the settings of DAC's conf/base.yml, to 1e-5 relative",
        ),
    }

    def _distance(self, item: Inputs) -> float:
        """Sum the distances of mel spectrograms over all windows."""
        from codec_bench.kernels.spectrum.ref import SpectrumWeights, distance, mel_filters

        windows, mels = (DAC_WINDOWS, DAC_NUM_MELS) if self._variant == DAC else (WINDOWS, NUM_MELS)
        weights = SpectrumWeights(linear=0.0, log=1.0) if self._variant == DAC else SpectrumWeights(linear=1.0, log=2.0)
        filters = [mel_filters(item.rate_hz, window, bands) for window, bands in zip(windows, mels, strict=True)]
        return distance(partial(spectra_of, item), windows=windows, filters=filters, weights=weights)
