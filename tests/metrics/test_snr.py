"""SNR equals torchmetrics', the segmental SNR its definition and pysepm's numbers, and known noise gives the known
ratio.
"""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.messages import Diagnostic
from codec_bench.metrics import Inputs, build_metric

RATE = 16_000


GOLDEN = {1: -0.33702846, 2: 9.11984526, 3: 9.51328255}
"""torch-log-wmse 1.1.0's LogWMSE(sample_rate=44100) in float64, the reference unprocessed, by seed."""


@pytest.mark.compares("log_wmse", weights="none")
@pytest.mark.parametrize("seed", GOLDEN)
def test_log_wmse_equals_torch_log_wmse(seed):
    rng = np.random.default_rng(seed)
    reference = (0.1 * rng.standard_normal(44_100)).astype(np.float32)
    filtered = np.convolve(reference, [0.6, 0.3])[:44_100]
    estimate = (filtered + 10.0**-seed * rng.standard_normal(44_100)).astype(np.float32)
    assert score("log_wmse", reference, estimate, 44_100).value == pytest.approx(GOLDEN[seed], abs=1e-7)


def test_log_wmse_of_a_copy_and_of_silence():
    assert score("log_wmse", noise(1), noise(1)).value == pytest.approx(build_metric("log_wmse").range[1])
    assert score("log_wmse", noise(1), 0 * noise(1)).value == pytest.approx(0.0, abs=1e-6)
    assert score("log_wmse", 0 * noise(1), noise(1)).code == "reference_silent"


def score(name, reference, estimate, rate_hz=RATE):
    return build_metric(name).compute([Inputs("x", rate_hz, estimate, reference)])[0]


def noise(seed, samples=RATE):
    return (0.1 * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


def by_frames(reference, estimate, rate_hz):
    """Loizou's definition as a loop over frames."""
    window, hop = round(0.03 * rate_hz), int(0.25 * 0.03 * rate_hz)
    weights = np.hanning(window + 2)[1:-1]
    frames = []
    for first in range(0, reference.size - window + 1, hop):
        r, e = (role[first : first + window].astype(np.float64) * weights for role in (reference, estimate))
        ratio = 10 * np.log10((r @ r) / ((r - e) @ (r - e) + 2.0**-52) + 2.0**-52)
        frames.append(min(35.0, max(-10.0, ratio)))
    return np.mean(frames[:-1])


@pytest.mark.compares("snr", weights="none")
def test_snr_equals_torchmetrics(spoken_pairs):
    import torch
    from torchmetrics.functional.audio import signal_noise_ratio

    for pair in spoken_pairs(None)[::6]:
        sides = [torch.from_numpy(np.array(role, np.float64)) for role in (pair.estimate, pair.reference)]
        result = score("snr", pair.reference, pair.estimate)
        assert result.value == pytest.approx(float(signal_noise_ratio(*sides)), abs=1e-4), pair.inputs.id


@pytest.mark.parametrize("ratio_db", [-20.0, 0.0, 35.0, 100.0])
def test_known_noise_gives_the_known_ratio(ratio_db):
    reference, other = noise(3).astype(np.float64), noise(4).astype(np.float64)
    other *= np.linalg.norm(reference) / np.linalg.norm(other) * 10 ** (-ratio_db / 20)
    assert score("snr", reference, reference + other).value == pytest.approx(ratio_db, abs=1e-6)


def test_half_the_level_is_six_decibels():
    assert score("snr", noise(1), noise(1) / 2).value == pytest.approx(20 * np.log10(2), abs=1e-9)
    assert score("snr_seg", noise(1), noise(1) / 2).value == pytest.approx(20 * np.log10(2), abs=1e-6)


def test_snr_without_a_value_says_why():
    silence = np.zeros(RATE, np.float32)
    for words, pair in {"reference is silent": (silence, noise(1)), "exact copy": (noise(1), noise(1))}.items():
        result = score("snr", *pair)
        assert result.status == "undefined" and words in result.reason
    assert score("snr", noise(1), silence).value == 0.0


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 44_100])
def test_segmental_snr_is_its_definition(rate_hz):
    reference = noise(1, rate_hz) * np.sin(np.linspace(0, 9, rate_hz)).astype(np.float32)
    estimate = reference + np.float32(0.1) * noise(2, rate_hz)
    reference[: rate_hz // 4] = 0
    result = score("snr_seg", reference, estimate, rate_hz)
    assert result.value == pytest.approx(by_frames(reference, estimate, rate_hz), abs=1e-9)
    assert -10 < result.value < 35


@pytest.mark.compares("snr_seg", weights="none")
def test_segmental_snr_is_pysepms(oracles):
    for pair, numbers in oracles:
        assert score("snr_seg", pair.reference, pair.estimate).value == pytest.approx(numbers["snr_seg"], abs=1e-6)


def test_segmental_snr_has_limits():
    assert score("snr_seg", noise(1), noise(1)).value == 35.0
    assert score("snr_seg", noise(1), 100 * noise(2)).value == -10.0
    assert score("snr_seg", np.zeros(RATE, np.float32), noise(1)).status == "undefined"
    assert score("snr_seg", noise(1, 599), noise(2, 599)).reason == Diagnostic(
        "few_samples_for_frames", samples=599, rate_hz=16000, needed=600
    )
    assert score("snr_seg", noise(1, 600), noise(2, 600)).detail == {"frames": 1}


@pytest.mark.parametrize("name", ["snr", "snr_seg", "lsd", "lsd[floored]", "warpq"])
def test_a_score_does_not_depend_on_the_batch(name, spoken_pairs):
    items = [pair.inputs for pair in spoken_pairs(RATE)][::19]
    metric = build_metric(name)
    alone = [metric.compute([item])[0].value for item in items]
    assert alone == [results.value for results in metric.compute(items)]
    assert alone == [results.value for results in metric.compute(items[::-1])][::-1]
