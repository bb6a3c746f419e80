"""Mel distance: how far the estimate's mel spectrogram lies from the reference's."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score

WINDOWS = (2048, 512)
NUM_MELS = (150, 80)
FLOOR = 1e-5


class MelDistance(Metric):
    """Multi-resolution mel-spectrogram distance. Lower is better; 0 for a perfect copy, and no unit.

    The definition of descript-audiotools (`MelSpectrogramLoss`, its defaults), which the DAC evaluation script and
    Codec-SUPERB call mel distance: windows of 2048 and 512 samples with 150 and 80 Slaney mel bands up to half the
    rate, a hop of a quarter window; the mean absolute difference of magnitudes plus that of log10 powers (magnitudes
    floored at 1e-5), summed over both windows.

    It is computed at 16 kHz for every codec and data set, whatever their rates: above 8 kHz most speech corpora are
    empty or at the floor, and there the logarithm would weigh inaudible residue as much as speech. Signals that
    reflection cannot extend (1024 samples or fewer, 64 ms) are undefined. Silence is floored and never NaN.

    Paper: R. Kumar et al., "High-Fidelity Audio Compression with Improved RVQGAN", NeurIPS 2023. Reference
    implementation: descript-audiotools 0.7.4 `metrics.spectral.MelSpectrogramLoss`, to 1e-5 relative (it is float32).
    """

    name = "mel_distance"
    kind = "pair"
    rate_hz = 16_000
    higher_is_better = False
    range = (0.0, None)
    protocol = "mel_distance/audiotools-0.7-l1-mag+log10-2048x150-512x80-16k"
    paper = (
        "Kumar, Seetharaman, Luebs, Kumar, Kumar: High-Fidelity Audio Compression with Improved RVQGAN, NeurIPS 2023"
    )
    source = "descript-audiotools 0.7.4 MelSpectrogramLoss, to 1e-5 relative"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        from codec_bench.kernels.spectrum.ref import distance, mel_filters

        if item.reference.size <= max(WINDOWS) // 2:
            return Score.undefined(
                f"{item.reference.size} samples are too few: a window of {max(WINDOWS)} needs more than half its length",
                self.protocol,
            )
        filters = [mel_filters(item.rate_hz, window, mels) for window, mels in zip(WINDOWS, NUM_MELS)]
        value = distance(item.reference, item.estimate, windows=WINDOWS, filters=filters, floor=FLOOR)
        return Score.ok(value, self.protocol)
