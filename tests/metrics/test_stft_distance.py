"""STFT distance follows its published definition, written down here a second time with torch's spectrograms.

The properties that it shares with the mel distance are tested here for both.
"""

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
                torch.from_numpy(np.array(role, np.float64)), window, window // 4,
                window=torch.hann_window(window, dtype=torch.float64), center=True, return_complex=True,
            ).abs()
            for role in (estimate, reference)
        )  # fmt: skip
        total += torch.nn.functional.l1_loss(x, y)
        total += torch.nn.functional.l1_loss(x.clamp(1e-5).pow(2).log10(), y.clamp(1e-5).pow(2).log10())
    return float(total)


def by_parallel_wavegan(reference, estimate):
    """The definition of kan-bayashi's MultiResolutionSTFTLoss, in double precision: both losses, averaged and added."""
    import torch

    convergence = magnitude = 0.0
    for fft, hop, window in ((1024, 120, 600), (2048, 240, 1200), (512, 50, 240)):
        x, y = (
            torch.stft(
                torch.from_numpy(np.array(role, np.float64)), fft, hop, window,
                window=torch.hann_window(window, dtype=torch.float64), return_complex=True,
            )
            for role in (estimate, reference)
        )  # fmt: skip
        x, y = (torch.sqrt(torch.clamp(role.real**2 + role.imag**2, min=1e-7)) for role in (x, y))
        convergence += torch.norm(y - x, p="fro") / torch.norm(y, p="fro") / 3
        magnitude += torch.nn.functional.l1_loss(torch.log(y), torch.log(x)) / 3
    return float(convergence + magnitude)


SPECTRAL = ("stft_distance", "mel_distance")
VARIANTS = (*SPECTRAL, "stft_distance[parallel-wavegan]", "mel_distance[dac]")


def score(reference, estimate, name="stft_distance"):
    return build_metric(name).compute([Inputs("x", 16_000, estimate, reference)])[0]


def noise(seed, samples=16_000):
    return (0.1 * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


@pytest.mark.compares("stft_distance", weights="none")
def test_equals_torchs_on_every_clip(spoken_pairs):
    pairs = spoken_pairs(16_000)[::2]
    assert len(pairs) > 30
    for pair in pairs:
        result = build_metric("stft_distance").compute([pair.inputs])[0]
        assert result.value == pytest.approx(by_torch(pair.reference, pair.estimate), rel=1e-6), pair.inputs.id


def test_parallel_wavegans_equals_torchs(spoken_pairs):
    for pair in spoken_pairs(16_000)[::12]:
        result = score(pair.reference, pair.estimate, "stft_distance[parallel-wavegan]")
        assert result.value == pytest.approx(by_parallel_wavegan(pair.reference, pair.estimate), rel=1e-6), (
            pair.inputs.id
        )


def test_equals_torchs_on_silence_and_on_the_shortest_signal():
    silence = np.zeros(16_000, np.float32)
    assert score(silence, noise(4)).value == pytest.approx(by_torch(silence, noise(4)), rel=1e-6)
    short = noise(5, 1_025), noise(6, 1_025)
    assert score(*short).value == pytest.approx(by_torch(*short), rel=1e-6)


def test_the_phase_does_not_matter():
    reference = noise(3)
    assert score(reference, -reference).value == 0.0


@pytest.mark.parametrize("name", SPECTRAL)
def test_a_score_does_not_depend_on_the_batch(name, spoken_pairs):
    items = [pair.inputs for pair in spoken_pairs(16_000)][::2]
    metric = build_metric(name)
    alone = [metric.compute([item])[0].value for item in items]
    assert alone == [results.value for results in metric.compute(items)]
    assert alone == [results.value for results in metric.compute(items[::-1])][::-1]


@pytest.mark.parametrize("name", SPECTRAL)
def test_a_copy_is_best_and_the_sides_are_alike(name, spoken_pairs):
    for pair in spoken_pairs(16_000)[::5]:
        assert score(pair.reference, pair.reference, name).value == 0.0
        there, back = score(pair.reference, pair.estimate, name), score(pair.estimate, pair.reference, name)
        assert there.value == pytest.approx(back.value, rel=1e-12) and there.value > 0


@pytest.mark.parametrize("name", VARIANTS)
def test_more_noise_is_worse(name):
    reference, other = noise(1), noise(2)
    levels = (0.01, 0.1, 0.3, 1.0, 3.0)
    values = [score(reference, reference + np.float32(level) * other, name).value for level in levels]
    assert values == sorted(values)


@pytest.mark.parametrize("name", VARIANTS)
def test_silence_is_no_trouble(name):
    silence = np.zeros(16_000, np.float32)
    assert score(silence, silence, name).value == 0.0
    assert np.isfinite(score(silence, noise(4), name).value) and np.isfinite(score(noise(4), silence, name).value)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize(
    ("samples", "status"), [(1, "undefined"), (800, "undefined"), (1_024, "undefined"), (1_025, "ok")]
)
def test_clips_too_short_to_reflect_are_undefined(name, samples, status):
    result = score(noise(5, samples), noise(6, samples), name)
    assert result.status == status
    if status == "undefined":
        assert str(samples) in result.reason
