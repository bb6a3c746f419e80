"""STFT distance: how far the estimate's magnitude spectrogram lies from the reference's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score

WINDOWS = (2048, 512)
FLOOR = 1e-5


class SpectralDistance(Metric):
    """What the STFT distance and the mel distance share: two spectrograms at each window, and how they are compared.

    The mean absolute difference of magnitudes, plus that of log10 powers (magnitudes floored at 1e-5), summed over the
    windows. A hop is a quarter of a window.
    """

    kind = "pair"
    rate_hz = 16_000
    higher_is_better = False
    range = (0.0, None)

    @abstractmethod
    def _filters(self, rate_hz: int) -> Sequence[np.ndarray | None]:
        """For each window, the mel filters that its spectrogram passes through, or None for no filters."""

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item; undefined for signals of half a window or less."""
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        from codec_bench.kernels.spectrum.ref import distance

        reference, estimate = item.pair
        if reference.size <= max(WINDOWS) // 2:
            return Score.undefined(
                f"{reference.size} samples are too few: a window of {max(WINDOWS)} needs more than half its length",
                self.protocol,
            )
        value = distance(reference, estimate, windows=WINDOWS, filters=self._filters(item.rate_hz), floor=FLOOR)
        return Score.ok(value, self.protocol)


class StftDistance(SpectralDistance):
    """Multi-resolution magnitude-spectrogram distance. Lower is better; 0 for a perfect copy, and no unit.

    The definition of descript-audiotools (`MultiScaleSTFTLoss`, its defaults), which the DAC evaluation script and
    Codec-SUPERB call STFT distance: periodic Hann windows of 2048 and 512 samples, a hop of a quarter window; the
    mean absolute difference of magnitudes plus that of log10 powers (magnitudes floored at 1e-5), summed over both.

    It is computed at 16 kHz for every codec and data set, as `mel_distance`. Signals of 1024 samples or fewer (64 ms)
    are undefined, because they cannot be extended by reflection. Silence is floored and never gives NaN.

    Paper: J. Engel et al., "DDSP: Differentiable Digital Signal Processing", ICLR 2020. Reference implementation:
    descript-audiotools 0.7.4 `metrics.spectral.MultiScaleSTFTLoss`, to 1e-5 relative (it is float32).
    """

    name = "stft_distance"
    protocol = "stft_distance/audiotools-0.7-l1-mag+log10-2048-512-16k"
    paper = "Engel, Hantrakul, Gu, Roberts: DDSP: Differentiable Digital Signal Processing, ICLR 2020"
    source = "descript-audiotools 0.7.4 MultiScaleSTFTLoss, to 1e-5 relative"

    def _filters(self, rate_hz: int) -> Sequence[np.ndarray | None]:
        return [None] * len(WINDOWS)
