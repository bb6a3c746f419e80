"""Mel distance follows its published definition, written down here a second time with librosa's spectrograms."""

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


def noise(seed, samples=16_000):
    return (0.1 * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


@pytest.mark.parametrize("source", ["real_pairs", "embedded_pairs"])
def test_equals_librosas_on_every_clip(request, source):
    pairs = request.getfixturevalue(source)(16_000)[:: 2 if source == "real_pairs" else 1]
    assert len(pairs) > 30
    for pair in pairs:
        found = build_metric("mel_distance").compute([pair.inputs])[0]
        assert found.value == pytest.approx(by_librosa(pair.reference, pair.estimate), rel=1e-6), pair.inputs.id


def test_a_score_does_not_depend_on_the_batch(real_pairs):
    items = [pair.inputs for pair in real_pairs(16_000)][::2]
    metric = build_metric("mel_distance")
    alone = [metric.compute([item])[0].value for item in items]
    assert alone == [found.value for found in metric.compute(items)]
    assert alone == [found.value for found in metric.compute(items[::-1])][::-1]


def test_a_copy_is_best_and_the_sides_are_alike(real_pairs):
    for pair in real_pairs(16_000)[::5]:
        assert score(pair.reference, pair.reference).value == 0.0
        there, back = score(pair.reference, pair.estimate), score(pair.estimate, pair.reference)
        assert there.value == pytest.approx(back.value, rel=1e-12) and there.value > 0


def test_more_noise_is_worse():
    reference, other = noise(1), noise(2)
    values = [score(reference, reference + np.float32(level) * other).value for level in (0.01, 0.1, 0.3, 1.0, 3.0)]
    assert values == sorted(values)


def test_silence_is_no_trouble():
    silence = np.zeros(16_000, np.float32)
    assert score(silence, silence).value == 0.0
    assert np.isfinite(score(silence, noise(4)).value) and np.isfinite(score(noise(4), silence).value)


@pytest.mark.filterwarnings("ignore:n_fft=2048 is too large")  # librosa's, of the shortest clip
@pytest.mark.parametrize(
    ("samples", "status"), [(1, "undefined"), (800, "undefined"), (1_024, "undefined"), (1_025, "ok")]
)
def test_clips_too_short_to_reflect_are_undefined(samples, status):
    found = score(noise(5, samples), noise(6, samples))
    assert found.status == status
    if status == "ok":
        assert found.value == pytest.approx(by_librosa(noise(5, samples), noise(6, samples)), rel=1e-6)
    else:
        assert str(samples) in found.reason
