"""LSD is ssr_eval's numbers and its definition on librosa's spectrograms, and the floored variant treats both sides
alike.
"""

from __future__ import annotations

import librosa
import numpy as np
import pytest
from refusals import refuses

from codec_bench.metrics import Inputs, build_metric


def score(name, reference, estimate, rate_hz=16_000):
    return build_metric(name).compute([Inputs("x", rate_hz, estimate, reference)])[0]


def noise(seed, samples=16_000):
    return (0.1 * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


def by_librosa(reference, estimate, rate_hz):
    """ssr_eval's formula, in double precision."""
    x, y = (
        np.abs(librosa.stft(role.astype(np.float64), hop_length=rate_hz // 100, n_fft=int(2048 / (44_100 / rate_hz))))
        for role in (reference, estimate)
    )
    return np.sqrt((np.log10(x**2 / (y + 1e-12) ** 2 + 1e-12) ** 2).mean(axis=0)).mean()


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 44_100, 48_000])
def test_it_is_its_definition_at_every_rate(rate_hz):
    reference, estimate = noise(1, rate_hz), noise(2, rate_hz)
    assert score("lsd", reference, estimate, rate_hz).value == pytest.approx(
        by_librosa(reference, estimate, rate_hz), rel=1e-9
    )


@pytest.mark.compares("lsd", weights="none")
def test_it_is_ssr_evals(oracles):
    for pair, numbers in oracles:
        assert score("lsd", pair.reference, pair.estimate).value == pytest.approx(numbers["lsd"], rel=1e-4)


def test_ten_times_the_power_is_one():
    louder = noise(1) * np.float32(np.sqrt(10))
    for name in ("lsd", "lsd[floored]"):
        assert score(name, noise(1), louder).value == pytest.approx(1, abs=1e-3)
        assert score(name, louder, noise(1)).value == pytest.approx(1, abs=1e-3)


def test_a_copy_is_best_but_for_silence():
    item = noise(1)
    item[8_000:] = 0
    assert score("lsd[floored]", item, item).value == 0
    assert score("lsd", noise(1), noise(1)).value == pytest.approx(0, abs=1e-4)
    assert 12 * 46 / 101 < score("lsd", item, item).value < 12 * 49 / 101  # every silent frame counts 12
    silence = np.zeros(16_000, np.float32)
    assert score("lsd[floored]", silence, silence).value == 0
    there, back = (score("lsd[floored]", *pair).value for pair in ((item, noise(2)), (noise(2), item)))
    assert there == pytest.approx(back, rel=1e-12) and there > 1


def test_a_dropped_band_shows_at_the_references_own_rate():
    from scipy.signal import butter, sosfilt

    narrow = sosfilt(butter(8, 8_000, fs=48_000, output="sos"), noise(1, 48_000)).astype(np.float32)
    assert build_metric("lsd").rate_hz is None
    assert score("lsd", noise(1, 48_000), narrow, 48_000).value > 1


def test_short_signals():
    assert score("lsd", noise(1, 1), noise(2, 1)).status == "ok"
    assert score("lsd", noise(1, 0), noise(2, 0)).status == "undefined"
    with refuses("no_variant"):
        build_metric("lsd[nu-wave]")
