"""Loizou's measures, SRMR and SDR equal the numbers of pysepm, SRMRpy and mir_eval, and have the values that follow."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.metrics import Inputs, build_metric

RATE = 16_000
SPECTRAL = ("fwsegsnr", "llr", "wss", "cd")
COMPOSITE = ("csig", "cbak", "covl")
INTELLIGIBILITY = ("csii_high", "csii_mid", "csii_low", "ncm")
BEST = {"fwsegsnr": 35.0, "llr": 0.0, "wss": 0.0, "cd": 0.0} | dict.fromkeys(INTELLIGIBILITY, 1.0)


def score(name, reference, estimate):
    return build_metric(name).compute([Inputs("x", RATE, estimate, reference)])[0]


def noise(seed, samples=RATE):
    envelope = 1.0 + 0.9 * np.sin(np.arange(samples) / 700.0)
    return (0.1 * envelope * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


@pytest.mark.compares("fwsegsnr", "llr", "wss", "cd", "csig", "cbak", "covl", weights="none")
@pytest.mark.compares("csii_*", "ncm", "sdr", "srmr", weights="none")
@pytest.mark.parametrize("name", [*SPECTRAL, *COMPOSITE, *INTELLIGIBILITY, "sdr", "srmr"])
def test_equals_the_other_programs(name, oracles):
    for pair, numbers in oracles:
        expected = pytest.approx(numbers[name], rel=1e-6, abs=2e-6)
        assert score(name, pair.reference, pair.estimate).value == expected, pair.inputs.id


@pytest.mark.parametrize("name", BEST)
def test_a_copy_has_the_best_value(name):
    assert score(name, noise(1), noise(1)).value == pytest.approx(BEST[name], abs=1e-9)


@pytest.mark.parametrize("name", ["fwsegsnr", "llr", "cd", *INTELLIGIBILITY, "sdr", "srmr"])
def test_a_gain_does_not_matter(name):
    reference, estimate = noise(1), noise(1) + noise(2) / 4
    expected = pytest.approx(score(name, reference, estimate).value, rel=1e-3)
    assert score(name, reference, estimate / 2).value == expected


def test_a_filter_is_no_distortion_for_sdr():
    reference = noise(1).astype(np.float64)
    filtered = np.convolve(reference, [0.5, 0.0, -0.3, 0.2])[:RATE]
    added = 1e-2 * np.random.default_rng(7).standard_normal(RATE)
    ratio_db = 10 * np.log10((filtered**2).sum() / (added**2).sum())
    assert score("sdr", reference, filtered + added).value == pytest.approx(ratio_db, abs=0.3)
    assert score("sdr", reference, 0.5 * reference).code == "scaled_copy_rounded"


def test_slower_changes_raise_srmr():
    time_s = np.arange(2 * RATE) / RATE
    carrier = np.random.default_rng(1).standard_normal(time_s.size)
    slow, fast = ((1.0 + np.sin(2 * np.pi * rate * time_s)) * carrier for rate in (4.0, 40.0))
    assert score("srmr", None, slow).value > 2 * score("srmr", None, fast).value
    assert score("srmr", None, slow[:4592]).status == "ok"
    assert score("srmr", None, slow[:4591]).code == "srmr_too_short"


@pytest.mark.parametrize("name", [*SPECTRAL, *COMPOSITE, *INTELLIGIBILITY, "sdr"])
def test_without_a_value_the_code_says_why(name):
    silence = np.zeros(RATE, np.float32)
    assert score(name, silence, noise(1)).code == "reference_silent"
    assert score(name, noise(1), silence).code == "estimate_is_silent"
    if name != "sdr":
        assert score(name, noise(1, 599), noise(2, 599)).code == "few_samples_for_frames"


@pytest.mark.parametrize("name", [*SPECTRAL, "csii_low", "ncm"])
def test_digital_silence_within_a_clip_gives_a_number(name):
    reference, estimate = noise(1), noise(1) + noise(2) / 4
    reference[4000:8000] = estimate[6000:9000] = 0.0
    assert np.isfinite(score(name, reference, estimate).value)


def test_a_frame_that_the_estimate_drops_counts_nothing():
    reference = noise(1)
    expected = score("csii_mid", reference, reference).value
    dropped = np.where(np.arange(RATE) < RATE // 2, reference, 0.0).astype(np.float32)
    assert expected == pytest.approx(1.0, abs=1e-9) and score("csii_mid", reference, dropped).value < 0.7


def test_no_quiet_frames_have_no_index_of_quiet_frames():
    steady = np.random.default_rng(1).standard_normal(RATE).astype(np.float32) / 10
    assert score("csii_low", steady, steady).code == "no_frames_at_level"
