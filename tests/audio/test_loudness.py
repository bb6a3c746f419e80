"""Loudness against the coefficients of BS.1770, the synthetic signals of EBU Tech 3341, and FFmpeg's meter."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from codec_bench.audio.loudness import _k_weighting, loudness_lufs
from codec_bench.types import Audio

# ITU-R BS.1770-4, annex 1, tables 1 and 2, for 48 kHz: b0 b1 b2 1 a1 a2.
SHELF = [1.53512485958697, -2.69169618940638, 1.19839281085285, 1.0, -1.69065929318241, 0.73248077421585]
HIGH_PASS = [1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621]


def tone(*parts, rate_hz=48_000, channels=2):
    """A sine of 1 kHz: parts of (peak level in dBFS, seconds)."""
    levels = np.concatenate([np.full(round(s * rate_hz), 10 ** (db / 20)) for db, s in parts])
    sine = levels * np.sin(2 * np.pi * 1000 * np.arange(levels.size) / rate_hz)
    return Audio(np.tile(sine.astype(np.float32), (channels, 1)), rate_hz)


def test_the_filters_are_the_published_ones():
    np.testing.assert_allclose(_k_weighting(48_000), [SHELF, HIGH_PASS], atol=1e-11)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(-23, 20)], -23.0),
        ([(-33, 20)], -33.0),
        ([(-36, 10), (-23, 60), (-36, 10)], -23.0),
        ([(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)], -23.0),
        ([(-26, 20), (-20, 20.1), (-26, 20)], -23.0),
    ],
    ids=["case 1", "case 2", "case 3", "case 4", "case 5"],
)
def test_the_synthetic_signals_of_ebu_tech_3341(parts, expected):
    assert loudness_lufs(tone(*parts)) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(("rate_hz", "channels"), [(11_025, 2), (16_000, 1), (44_100, 2)])
def test_ffmpeg_agrees(rate_hz, channels, tmp_path):
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    import soundfile

    rng = np.random.default_rng(rate_hz + channels)
    # Not a whole number of blocks: at 11.025 kHz a block has no whole number of samples, and FFmpeg rounds it in
    # another way.
    envelope = np.repeat(10 ** rng.uniform(-3, -0.5, 41), rate_hz * 3 // 20)
    audio = Audio(rng.uniform(-1, 1, (channels, envelope.size)) * envelope, rate_hz)
    soundfile.write(tmp_path / "a.wav", audio.samples.T, rate_hz, subtype="FLOAT")
    assert loudness_lufs(audio) == pytest.approx(ffmpeg_lufs(tmp_path / "a.wav"), abs=0.1)


def ffmpeg_lufs(path) -> float:
    """The integrated loudness of a file by FFmpeg's meter."""
    command = ["ffmpeg", "-hide_banner", "-nostats", "-i", str(path), "-filter_complex", "ebur128", "-f", "null", "-"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return float(re.findall(r"I:\s+(-?[\d.]+) LUFS", output)[-1])


def test_a_gain_changes_the_loudness_by_as_much():
    quiet = tone((-40, 2), channels=1)
    assert loudness_lufs(Audio(quiet.samples * 10, 48_000)) - loudness_lufs(quiet) == pytest.approx(20.0, abs=1e-4)


@pytest.mark.parametrize(
    "audio",
    [
        Audio(np.zeros((1, 0)), 16_000),
        Audio(np.ones((1, 6399)), 16_000),
        Audio(np.zeros((2, 48_000)), 48_000),
        tone((-80, 2)),
    ],
    ids=["nothing", "shorter than a block", "silence", "below the absolute gate"],
)
def test_what_has_no_loudness(audio):
    assert loudness_lufs(audio) is None


def test_a_sound_of_exactly_one_block_has_a_loudness():
    assert loudness_lufs(tone((-23, 0.4), channels=1)) == pytest.approx(-26, abs=0.5)


def test_more_than_two_channels_are_refused():
    with pytest.raises(ValueError, match="3 channels"):
        loudness_lufs(Audio(np.zeros((3, 48_000)), 48_000))
