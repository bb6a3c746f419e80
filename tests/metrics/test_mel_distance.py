"""Mel distance follows its published definition, written down here a second time with librosa's spectrograms.

test_stft_distance.py tests the properties that it shares with the STFT distance.
"""

from __future__ import annotations

import librosa
import numpy as np
import pytest

from codec_bench.metrics import Inputs, build_metric


def by_librosa(reference, estimate):
    """The definition of descript-audiotools' MelSpectrogramLoss with its defaults."""
    total = 0.0
    for window, mels in ((2048, 150), (512, 80)):
        x, y = (
            librosa.feature.melspectrogram(
                y=side.astype(np.float64), sr=16_000, n_fft=window, hop_length=window // 4, n_mels=mels, power=1.0,
                center=True, pad_mode="reflect",
            )
            for side in (estimate, reference)
        )  # fmt: skip
        total += np.abs(x - y).mean()
        total += np.abs(np.log10(np.clip(x, 1e-5, None) ** 2) - np.log10(np.clip(y, 1e-5, None) ** 2)).mean()
    return total


def score(reference, estimate):
    return build_metric("mel_distance").compute([Inputs("x", 16_000, estimate, reference)])[0]


def test_equals_librosas_on_every_clip(spoken_pairs):
    pairs = spoken_pairs(16_000)[::2]
    assert len(pairs) > 30
    for pair in pairs:
        found = score(pair.reference, pair.estimate)
        assert found.value == pytest.approx(by_librosa(pair.reference, pair.estimate), rel=1e-6), pair.inputs.id


@pytest.mark.filterwarnings("ignore:n_fft=2048 is too large")  # librosa's, of the shortest clip
def test_equals_librosas_on_the_shortest_signal():
    short = (0.1 * np.random.default_rng(5).standard_normal((2, 1_025))).astype(np.float32)
    assert score(*short).value == pytest.approx(by_librosa(*short), rel=1e-6)
