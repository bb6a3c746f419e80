"""The compiled PESQ equals the specified one and the package, also where the delay changes."""

from __future__ import annotations

import numpy as np
import pytest
from pesq import pesq
from scipy.signal import sosfilt

from codec_bench.kernels.pesq import cpu, delays, ref
from codec_bench.kernels.pesq.tables import ALIGNMENT_FILTER, BINS


def syllables(seed, seconds):
    """Noise in syllables, four in a second."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(int(16_000 * seconds)) / 16_000
    return (0.1 * rng.standard_normal(time_s.size) * np.sin(2 * np.pi * 2 * time_s) ** 2).astype(np.float32)


def late(signal, samples):
    return np.concatenate([np.zeros(samples, np.float32), signal])[: signal.size]


def jumping(signal):
    half = signal.size // 2
    return np.concatenate([signal[:half], late(signal, 400)[half:]])


@pytest.mark.parametrize("worse", [lambda x: x, lambda x: np.clip(x, -0.1, 0.1), lambda x: late(x, 333), jumping])
def test_compiled_equals_specified_and_the_package(worse):
    reference = syllables(1, 2.4)
    estimate = (worse(reference) + 0.002 * np.random.default_rng(2).standard_normal(reference.size)).astype(np.float32)
    found = cpu.pesq_wb(reference, estimate)
    assert found == pytest.approx(ref.pesq_wb(reference, estimate), abs=1e-3)
    assert found == pytest.approx(pesq(16_000, reference, estimate, "wb"), abs=1e-3)


def test_a_copy_has_the_best_score():
    signal = syllables(3, 1.0)
    assert cpu.pesq_wb(signal, signal) == pytest.approx(ref.mapped(4.5), abs=1e-6)


def test_the_delay_is_found_to_the_sample():
    x = syllables(4, 2.0)
    signals = [ref.aligned(ref.heard(signal, np.abs(x).max())) for signal in (x, late(x, 777))]
    for found in (delays.utterances(*signals), delays.utterances(*signals, cpu.prefixes)):
        assert {utterance.delay for utterance in found} == {777}


def test_all_sections_at_once_filter_as_one_after_another():
    x, y = np.random.default_rng(5).standard_normal((2, 20_000))
    sections = np.insert(ALIGNMENT_FILTER, 3, 1.0, axis=1)
    for ours, signal in zip(cpu._aligned(x, y), (x, y), strict=True):
        np.testing.assert_allclose(ours, sosfilt(sections, ref.without_offset(signal)), atol=1e-5)


def test_bands_cover_every_bin():
    assert BINS.sum() == ref.FRAME // 2


def test_a_bad_interval_ends_before_the_last_two_frames():
    """So the package's answers say: with one frame more, every tenth pair with a shift had another score, by up to 0.5."""
    disturbance = np.zeros(30)
    disturbance[20:] = 40.0
    assert ref.bad_intervals(disturbance).tolist() == [[20, 27]]


def test_the_level_is_right_to_the_last_bits():
    """A hundred of them more and the package's rounding in the high-pass is missed, which it hears in narrow recordings."""
    signal = syllables(6, 0.6)
    size = 1 << (signal.size + delays.PADDING - 1).bit_length()
    spectrum = np.fft.fft(signal.astype(np.float64), size)
    gain = ref.band_gain(size)
    band = np.fft.ifft(spectrum * np.concatenate([gain, gain[-2:0:-1]])).real[: signal.size + delays.PADDING]
    assert ref.level(signal) == pytest.approx(np.sqrt(1e7 / np.mean(band**2)), rel=1.2e-7)
