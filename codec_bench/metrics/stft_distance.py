"""STFT distance between the magnitude spectrograms of estimate and reference."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric, variant_name
from codec_bench.types import Score

if TYPE_CHECKING:
    from codec_bench.kernels.spectrum.ref import Frames, Pairs

WINDOWS = (2048, 512)
PARALLEL_WAVEGAN = "parallel-wavegan"
CONVERGENCE_FLOOR = 1e-7**0.5
"""Parallel WaveGAN raises the power of every bin to 1e-7."""


def _spectra(item: Inputs, frames: Frames) -> Pairs:
    from codec_bench.kernels.spectrum.ref import pairs

    return list(pairs(*item.pair, frames))


def spectra_of(item: Inputs, frames: Frames) -> Pairs:
    """Return both signals' magnitude spectrograms in blocks; short ones are shared."""
    from codec_bench.kernels.spectrum.ref import pairs

    return pairs(*item.pair, frames) if item.is_long else item.once(_spectra, frames)


class SpectralDistance(ItemMetric):
    """Base class of the distances between spectrograms at 16 kHz."""

    kind = "pair"
    rate_hz = 16_000
    higher_is_better = False
    range = (0.0, None)
    variants: ClassVar[dict[str | None, tuple[str, str, str]]]
    """By variant: the protocol, the paper and the reference implementation."""

    def __init__(self, variant: str | None = None) -> None:
        self._variant = variant
        self.name = variant_name(type(self).name, variant, self.variants)
        self.protocol, self.paper, self.source = self.variants[variant]

    def _score(self, item: Inputs) -> Score:
        """Compute the distance; undefined for signals too short to be mirrored."""
        reference, _ = item.pair
        if reference.size <= max(WINDOWS) // 2:
            return Score.undefined(
                Diagnostic("few_samples_for_window", samples=reference.size, window=max(WINDOWS)), self.protocol
            )
        return Score.ok(self._distance(item), self.protocol)

    @abstractmethod
    def _distance(self, item: Inputs) -> float:
        pass


class StftDistance(SpectralDistance):
    """Multi-resolution spectrogram distance. Lower is better; a copy has 0.

    * None: descript-audiotools' `MultiScaleSTFTLoss` with its defaults, the STFT distance of DAC's evaluation script
    and Codec-SUPERB: periodic Hann windows of 2048 and 512 samples, a hop of a quarter window; the mean absolute
      difference of magnitudes plus that of log10 powers (magnitudes floored at 1e-5), summed over both.
    * `parallel-wavegan`: Parallel WaveGAN's multi-resolution STFT loss, the "STFT loss" of many vocoders and codecs:
      transforms of 1024, 2048 and 512 samples, windows of 600, 1200 and 240, hops of 120, 240 and 50; the spectral
      convergence plus the mean absolute difference of natural log magnitudes (powers floored at 1e-7), averaged over
      three.

    Computed at 16 kHz for every codec and data set. Signals of at most 1024 samples (64 ms) are undefined, because they
    cannot be extended by reflection. Silence is floored and never gives NaN.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("stft_distance")(reference=[clip], estimate=[coarse])[0]["stft_distance"].value, 2)
        3.67
    """

    name = "stft_distance"
    variants: ClassVar[dict[str | None, tuple[str, str, str]]] = {
        None: (
            "stft_distance/audiotools-0.7-l1-mag+log10-2048-512-16k",
            "Engel, Hantrakul, Gu, Roberts: DDSP: Differentiable Digital Signal Processing, ICLR 2020",
            "descript-audiotools 0.7.4 MultiScaleSTFTLoss, to 1e-5 relative",
        ),
        PARALLEL_WAVEGAN: (
            "stft_distance/parallel-wavegan-sc+log-1024-2048-512-16k",
            "Yamamoto, Song, Kim: Parallel WaveGAN, ICASSP 2020",
            "kan-bayashi/ParallelWaveGAN MultiResolutionSTFTLoss, to 1e-5 relative",
        ),
    }

    def _distance(self, item: Inputs) -> float:
        """Sum or average the spectral distances over all windows."""
        from codec_bench.kernels.spectrum.ref import Frames, SpectrumWeights, convergence_distance, distance

        if self._variant == PARALLEL_WAVEGAN:
            resolutions = [Frames(600, 120, 1024), Frames(1200, 240, 2048), Frames(240, 50, 512)]
            return convergence_distance(partial(spectra_of, item), resolutions, CONVERGENCE_FLOOR)
        weights = SpectrumWeights(linear=1.0, log=2.0)
        return distance(partial(spectra_of, item), windows=WINDOWS, filters=[None] * len(WINDOWS), weights=weights)
