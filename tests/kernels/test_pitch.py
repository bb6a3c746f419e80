"""The tracker finds known pitches and agrees with its specification and with Praat."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from codec_bench.audio.resample import prepare
from codec_bench.kernels.pitch import cpu, ref

RATE = ref.RATE_HZ


def voice(pitch_hz, harmonics=12):
    """A buzz with falling harmonics (none above 4 kHz) whose pitch, in Hz, is given for every sample."""
    phase = 2 * np.pi * np.cumsum(np.asarray(pitch_hz, np.float64)) / RATE
    audible = [h for h in range(1, harmonics + 1) if h * np.max(pitch_hz) < 4000]
    return (0.2 * sum(np.sin(h * phase + h) / h for h in audible)).astype(np.float32)


@pytest.fixture(scope="module")
def speech(embedded):
    return [prepare(audio, RATE)[: 3 * RATE] for _, audio in embedded[::8]]


@pytest.mark.parametrize("track", [ref.track, cpu.track], ids=["ref", "cpu"])
@pytest.mark.parametrize("pitch_hz", [65.0, 101.3, 219.99, 440.0, 587.0])
def test_a_steady_pitch_is_detected(track, pitch_hz):
    result = track(voice(np.full(RATE // 2, pitch_hz)))[4:-4]
    assert np.all(result > 0)
    assert np.abs(result / pitch_hz - 1).max() < 5e-4


def test_a_pure_tone_and_a_missing_fundamental(rng):
    t = np.arange(RATE) / RATE
    pure = np.sin(2 * np.pi * 200 * t)
    telephone = sum(np.sin(2 * np.pi * 120 * h * t + h) for h in range(3, 20)) / 20
    noisy = pure + 0.1 * rng.standard_normal(t.size)
    for signal, pitch_hz, within in ((pure, 200, 1e-4), (telephone, 120, 1e-3), (noisy, 200, 1e-2)):
        assert np.abs(cpu.track(signal.astype(np.float32))[4:-4] / pitch_hz - 1).max() < within


def test_a_gliding_pitch_is_followed():
    pitch_hz = 110 * 2 ** (1.5 * np.arange(2 * RATE) / (2 * RATE))
    result = cpu.track(voice(pitch_hz, 6))
    assert np.abs(result[4:-4] / pitch_hz[:: ref.HOP][4:-4] - 1).max() < 3e-3


def test_voiced_and_unvoiced(rng):
    buzz = voice(np.full(RATE, 130.0))
    noise = (0.1 * rng.standard_normal(RATE)).astype(np.float32)
    result = cpu.track(np.concatenate([buzz, noise, np.zeros(RATE, np.float32), buzz])) > 0
    assert result[5:95].all() and result[305:395].all()
    assert result[105:195].mean() < 0.05
    assert not result[205:295].any()


def test_the_numba_tracker_is_its_specification(speech, rng):
    signals = [*speech, (0.1 * rng.standard_normal(RATE)).astype(np.float32)]
    for signal in signals:
        assert cpu.track(signal).shape == ref.track(signal).shape == (ref.num_frames(signal.size),)
    result, expected = (np.concatenate([track(signal) for signal in signals]) for track in (cpu.track, ref.track))
    both = (result > 0) & (expected > 0)
    assert both.sum() > 200
    # float32 may choose the other one of two paths that are almost equally good.
    assert np.mean((result > 0) == (expected > 0)) > 0.999
    assert np.mean(np.abs(result[both] / expected[both] - 1) < 1e-4) > 0.999


@pytest.mark.parametrize("peaks", [10, 40])
def test_the_candidates_are_the_specified_also_where_there_are_too_many(peaks):
    lags = np.arange(ref.LAGS)
    actual = 0.6 + (0.2 + 0.1 * np.sin(lags / 17)) * np.cos(2 * np.pi * lags * peaks / ref.LAGS)
    actual = np.append(1.0, actual[1:]).astype(np.float32)
    pitches, strengths = np.empty((1, ref.CANDIDATES)), np.empty((1, ref.CANDIDATES))
    counts = np.empty(1, np.int64)
    cpu._candidates(actual[None], np.ones(ref.LAGS, np.float32), 0, pitches, strengths, counts)
    expected, heights = ref.candidates(actual.astype(np.float64))
    assert counts[0] == expected.size + 1
    assert (counts[0] == ref.CANDIDATES) == (peaks == 40)
    np.testing.assert_allclose(pitches[0, 1 : counts[0]], expected, rtol=1e-5)
    np.testing.assert_allclose(strengths[0, 1 : counts[0]], ref.worth(expected, heights), atol=1e-5)


def test_the_path_is_the_best_of_all(rng):
    choices = []
    for _ in range(4):
        pitches = np.append(0.0, rng.uniform(60, 600, 2))
        choices.append((pitches, rng.uniform(0, 1, 3)))

    def strength(path):
        chosen = [(p[k], s[k]) for (p, s), k in zip(choices, path, strict=True)]
        costs = [ref._transition(a, b) for (a, _), (b, _) in pairwise(chosen)]
        return sum(s for _, s in chosen) - sum(costs)

    best = max(np.ndindex(3, 3, 3, 3), key=strength)
    expected = np.array([p[k] for (p, _), k in zip(choices, best, strict=True)])
    np.testing.assert_array_equal(ref.best_path(choices), expected)


def praats(parselmouth, signal):
    """Praat's pitches, and the number of our frame to which the first of them belongs."""
    size = signal.size // ref.HOP * ref.HOP - 2 * ref.HOP
    for start in range(0, 2 * ref.HOP, ref.HOP // 2):  # Praat centres its frames: shift until they match
        item = signal[start : start + size].astype(np.float64)
        pitch = parselmouth.Sound(item, RATE).to_pitch_ac(0.01, ref.FLOOR_HZ, pitch_ceiling=ref.CEILING_HZ)
        first = (pitch.t1 * RATE + start) / ref.HOP
        if abs(first - round(first)) < 1e-6:
            return pitch.selected_array["frequency"], round(first)
    raise AssertionError("Praat's frames do not meet ours")


def assert_praats(parselmouth, signals):
    voiced, ratios = [], []
    for signal in signals:
        expected, first = praats(parselmouth, signal)
        result = cpu.track(signal)[first : first + expected.size]
        both = (result > 0) & (expected > 0)
        voiced.append((result > 0) == (expected > 0))
        ratios.append(result[both] / expected[both])
    assert np.mean(np.concatenate(voiced)) > 0.99
    assert np.mean(np.abs(np.concatenate(ratios) - 1) < 2e-3) > 0.99


@pytest.mark.compares("pitch", weights="none")
def test_it_is_praats_on_every_clip(spoken):
    parselmouth = pytest.importorskip("parselmouth", reason="the oracle")
    signals = [prepare(audio, RATE) for _, audio in spoken]
    assert_praats(parselmouth, [signal for signal in signals if signal.size > RATE // 2])


def test_it_agrees_with_world_on_clear_speech(spoken):
    pyworld = pytest.importorskip("pyworld", reason="the oracle")
    noisy = ("vox", "encodec", "german", "aishell")  # interviews, music, telephone
    apart, voiced = [], []
    for row, audio in spoken:
        if not row["id"].startswith(noisy):
            signal = prepare(audio, RATE)
            exact = signal.astype(np.float64)
            coarse, times = pyworld.dio(exact, RATE, f0_floor=ref.FLOOR_HZ, f0_ceil=ref.CEILING_HZ, frame_period=10.0)
            expected = pyworld.stonemask(exact, coarse, times, RATE)
            result = cpu.track(signal)
            frames = min(result.size, expected.size)
            result, expected = result[:frames], expected[:frames]
            both = (result > 0) & (expected > 0)
            voiced.append((result > 0) == (expected > 0))
            apart.append(np.abs(1200 * np.log2(result[both] / expected[both])))
    apart = np.concatenate(apart)
    assert np.median(apart) < 10 and np.mean(apart > 300) < 0.01
    assert np.mean(np.concatenate(voiced)) > 0.88


@pytest.mark.parametrize("track", [ref.track, cpu.track], ids=["ref", "cpu"])
def test_short_and_silent_signals(track):
    for samples in (1, 2, 159, 160, 161, 1000):
        assert track(np.full(samples, 0.25, np.float32)).tolist() == [0.0] * (-(-samples // 160))
        assert track(np.eye(1, samples, samples // 2, dtype=np.float32)[0]).shape == (-(-samples // 160),)
    assert track(np.zeros(0, np.float32)).shape == (0,)
    assert not track(np.zeros(3000, np.float32)).any()


def test_the_level_changes_nothing(speech):
    loud = cpu.track(speech[0])
    np.testing.assert_array_equal(cpu.track(speech[0] * np.float32(2.0**-9)), loud)
