"""The compiled PESQ equals the specified one and the package, also where the delay changes."""

from __future__ import annotations

import numpy as np
import pytest
from pesq import pesq
from scipy.signal import sosfilt

from codec_bench.kernels.pesq import cpu, delays, ref
from codec_bench.kernels.pesq.tables import LEVEL, NARROW, WIDE

MODES = pytest.mark.parametrize(("mode", "name"), [(WIDE, "wb"), (NARROW, "nb")], ids=["wb", "nb"])


def syllables(seed, seconds, rate_hz=16_000):
    """Noise in syllables, four in a second."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(int(rate_hz * seconds)) / rate_hz
    return (0.1 * rng.standard_normal(time_s.size) * np.sin(2 * np.pi * 2 * time_s) ** 2).astype(np.float32)


def late(signal, samples):
    return np.concatenate([np.zeros(samples, np.float32), signal])[: signal.size]


def jumping(signal):
    half = signal.size // 2
    return np.concatenate([signal[:half], late(signal, 400)[half:]])


@MODES
@pytest.mark.parametrize("worse", [lambda x: x, lambda x: np.clip(x, -0.1, 0.1), lambda x: late(x, 333), jumping])
def test_compiled_equals_specified_and_the_package(worse, mode, name):
    reference = syllables(1, 2.4, mode.rate_hz)
    estimate = (worse(reference) + 0.002 * np.random.default_rng(2).standard_normal(reference.size)).astype(np.float32)
    found = cpu.pesq(reference, estimate, mode)
    assert found == pytest.approx(ref.pesq(reference, estimate, mode), abs=1e-3)
    assert found == pytest.approx(pesq(mode.rate_hz, reference, estimate, name), abs=1e-3)


@MODES
def test_a_copy_has_the_best_score(mode, name):
    signal = syllables(3, 1.0, mode.rate_hz)
    assert cpu.pesq(signal, signal, mode) == pytest.approx(ref.mapped(4.5, mode), abs=1e-6)


@MODES
def test_the_delay_is_found_to_the_sample(mode, name):
    x = syllables(4, 2.0, mode.rate_hz)
    signals = [ref.aligned(ref.heard(signal, np.abs(x).max(), mode), mode) for signal in (x, late(x, 777))]
    for found in (delays.utterances(*signals, mode), delays.utterances(*signals, mode, cpu.prefixes)):
        assert {utterance.delay for utterance in found} == {777}


@MODES
def test_all_sections_at_once_filter_as_one_after_another(mode, name):
    x, y = np.random.default_rng(5).standard_normal((2, 20_000)).astype(np.float32)
    sections = np.insert(mode.alignment_filter, 3, 1.0, axis=1)
    for ours, signal in zip(cpu._aligned(x, y, mode), (x, y), strict=True):
        np.testing.assert_array_equal(ours, ref.aligned(signal, mode))
        np.testing.assert_allclose(
            ours, sosfilt(sections, ref.without_offset(signal, mode).astype(np.float64)), atol=1e-3
        )


def test_silence_holds_the_packages_rounding():
    """A filter for alignment in double precision leaves less in a stretch of silence; then another delay wins, and the
    score is 0.1 higher.
    """
    reference = syllables(19, 6.0)
    estimate = jumping(reference)
    estimate[42_410:62_817] = 0.0
    assert cpu.pesq(reference, estimate, WIDE) == pytest.approx(pesq(16_000, reference, estimate, "wb"), abs=1e-5)


@MODES
def test_bands_cover_every_bin(mode, name):
    assert mode.bins.sum() == mode.frame // 2


def test_the_last_narrow_band_is_the_wide_one_up_to_4_khz():
    """It lacks one bin; the correction makes up for the number of bins, and the density does not depend on the rate."""
    narrow, wide = NARROW.bands[-1], WIDE.bands[len(NARROW.bands) - 1]
    assert narrow[0] * narrow[3] == pytest.approx(wide[0] * wide[3], rel=1e-6)
    assert NARROW.density_scale == pytest.approx(4 * WIDE.density_scale, rel=2e-6)


def test_a_telephone_lets_through_what_its_curve_says():
    """What it leaves of sines, in dB of what it leaves of one at 1000 Hz."""
    time_s, left = np.arange(16_000) / 8000, {}
    for hz in (100, 250, 1000, 3500):
        left[hz] = np.std(ref.through(np.sin(2 * np.pi * hz * time_s), NARROW.listener, NARROW)[2000:14_000])
    assert left[1000] == pytest.approx(np.sqrt(0.5), rel=1e-3)
    found = {hz: 20 * np.log10(value / left[1000]) for hz, value in left.items()}
    assert found == pytest.approx({100: -32.0, 250: -8.0, 1000: 0.0, 3500: -8.0}, abs=0.05)


def test_a_bad_interval_ends_before_the_last_two_frames():
    """So the package's answers say: with one frame more, every tenth pair with a shift had another score, by up to 0.5."""
    disturbance = np.zeros(30)
    disturbance[20:] = 40.0
    assert ref.bad_intervals(disturbance).tolist() == [[20, 27]]


def test_the_level_is_right_to_the_last_bits():
    """A hundred of them more and the package's rounding in the high-pass is missed, which it hears in narrow
    recordings.
    """
    signal = syllables(6, 0.6)
    length = signal.size + WIDE.padding
    size = 1 << (length - 1).bit_length()
    spectrum = np.fft.fft(signal.astype(np.float64), size)
    gain = ref.gain(LEVEL, WIDE.rate_hz, size)
    band = np.fft.ifft(spectrum * np.concatenate([gain, gain[-2:0:-1]])).real[:length]
    assert ref.level(signal, WIDE) == pytest.approx(np.sqrt(1e7 / np.mean(band**2)), rel=1.2e-7)
