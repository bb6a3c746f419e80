"""STFT distance follows its published definition, written down here a second time with torch's spectrograms."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.metrics import Inputs, build_metric


def by_torch(reference, estimate):
    """The definition of descript-audiotools' MultiScaleSTFTLoss with its defaults, in double precision."""
    import torch

    total = 0.0
    for window in (2048, 512):
        x, y = (
            torch.stft(
                torch.from_numpy(np.array(side, np.float64)), window, window // 4,
                window=torch.hann_window(window, dtype=torch.float64), center=True, return_complex=True,
            ).abs()
            for side in (estimate, reference)
        )  # fmt: skip
        total += torch.nn.functional.l1_loss(x, y)
        total += torch.nn.functional.l1_loss(x.clamp(1e-5).pow(2).log10(), y.clamp(1e-5).pow(2).log10())
    return float(total)


def score(reference, estimate):
    return build_metric("stft_distance").compute([Inputs("x", 16_000, estimate, reference)])[0]


def noise(seed, samples=16_000):
    return (0.1 * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


@pytest.mark.parametrize("source", ["real_pairs", "embedded_pairs"])
def test_equals_torchs_on_every_clip(request, source):
    pairs = request.getfixturevalue(source)(16_000)[:: 2 if source == "real_pairs" else 1]
    assert len(pairs) > 30
    for pair in pairs:
        found = build_metric("stft_distance").compute([pair.inputs])[0]
        assert found.value == pytest.approx(by_torch(pair.reference, pair.estimate), rel=1e-6), pair.inputs.id


def test_a_score_does_not_depend_on_the_batch(real_pairs):
    items = [pair.inputs for pair in real_pairs(16_000)][::2]
    metric = build_metric("stft_distance")
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


def test_the_phase_does_not_matter():
    reference = noise(3)
    assert score(reference, -reference).value == 0.0


def test_silence_is_no_trouble():
    silence = np.zeros(16_000, np.float32)
    assert score(silence, silence).value == 0.0
    assert score(silence, noise(4)).value == pytest.approx(by_torch(silence, noise(4)), rel=1e-6)


@pytest.mark.parametrize(
    ("samples", "status"), [(1, "undefined"), (800, "undefined"), (1_024, "undefined"), (1_025, "ok")]
)
def test_clips_too_short_to_reflect_are_undefined(samples, status):
    found = score(noise(5, samples), noise(6, samples))
    assert found.status == status
    if status == "ok":
        assert found.value == pytest.approx(by_torch(noise(5, samples), noise(6, samples)), rel=1e-6)
    else:
        assert str(samples) in found.reason
