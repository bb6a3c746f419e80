"""Mel distance follows its published definition, written down here a second time with librosa's spectrograms.

test_stft_distance.py tests the properties that it shares with the STFT distance.
"""

from __future__ import annotations

import librosa
import numpy as np
import pytest
from refusals import refuses

from codec_bench.metrics import Inputs, build_metric

DEFAULTS = ((2048, 150), (512, 80))
DACS = ((32, 5), (64, 10), (128, 20), (256, 40), (512, 80), (1024, 160), (2048, 320))


def by_librosa(reference, estimate, windows=DEFAULTS, linear=1.0, power=2.0):
    """The definition of descript-audiotools' MelSpectrogramLoss with its defaults, or others."""
    total = 0.0
    for window, mels in windows:
        x, y = (
            librosa.feature.melspectrogram(
                y=role.astype(np.float64), sr=16_000, n_fft=window, hop_length=window // 4, n_mels=mels, power=1.0,
                center=True, pad_mode="reflect",
            )
            for role in (estimate, reference)
        )  # fmt: skip
        total += linear * np.abs(x - y).mean()
        x, y = (np.log10(np.clip(role, 1e-5, None) ** power) for role in (x, y))
        total += np.abs(x - y).mean()
    return total


def score(reference, estimate, name="mel_distance"):
    return build_metric(name).compute([Inputs("x", 16_000, estimate, reference)])[0]


@pytest.mark.compares("mel_distance", weights="none")
def test_equals_librosas_on_every_clip(spoken_pairs):
    pairs = spoken_pairs(16_000)[::2]
    assert len(pairs) > 30
    for pair in pairs:
        result = score(pair.reference, pair.estimate)
        assert result.value == pytest.approx(by_librosa(pair.reference, pair.estimate), rel=1e-6), pair.inputs.id


@pytest.mark.filterwarnings("ignore:n_fft=2048 is too large")  # librosa's, of the shortest clip
def test_equals_librosas_on_the_shortest_signal():
    short = (0.1 * np.random.default_rng(5).standard_normal((2, 1_025))).astype(np.float32)
    assert score(*short).value == pytest.approx(by_librosa(*short), rel=1e-6)


def test_dacs_seven_windows_equal_librosas(spoken_pairs):
    for pair in spoken_pairs(16_000)[::12]:
        expected = by_librosa(pair.reference, pair.estimate, DACS, linear=0.0, power=1.0)
        result = score(pair.reference, pair.estimate, "mel_distance[dac]")
        assert result.value == pytest.approx(expected, rel=1e-6), pair.inputs.id
    assert result.protocol != build_metric("mel_distance").protocol


def test_whose_definition_is_named():
    with refuses("no_variant", variant="encodec") as caught:
        build_metric("mel_distance[encodec]")
    assert "mel_distance[dac]" in caught.value.hint
