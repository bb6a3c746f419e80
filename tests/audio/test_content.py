"""What recordings hold: planted silence and bands are found, and real recordings hold what their rates say."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench import Audio
from codec_bench.audio.content import content_of
from codec_bench.audio.level_checks import channel_peaks, loudest_levels
from codec_bench.audio.resample import mono, to_rate
from codec_bench.data import open_source
from codec_bench.engine.reading import content_notes


def content(audio):
    return content_of(mono(audio.samples), audio.sample_rate_hz, loudest_levels(audio, channel_peaks(audio.samples)))


def notes_of(audio):
    peaks = channel_peaks(audio.samples)
    return content_notes(audio, loudest_levels(audio, peaks), peaks)


@pytest.fixture(scope="module")
def clips():
    return [Audio.read(sample.audio) for sample in open_source("embedded")]


def with_silence(audio, before_s, after_s, level=0.0):
    rate = audio.sample_rate_hz
    sides = [
        np.random.default_rng(n).standard_normal((1, round(s * rate))) * level
        for n, s in enumerate((before_s, after_s))
    ]
    return Audio(np.concatenate([sides[0], audio.samples, sides[1]], axis=1), rate)


@pytest.mark.parametrize("level", [0.0, 0.0005], ids=["zeros", "quiet noise"])
def test_silence_around_is_detected_to_a_frame(clips, level):
    for clip in clips[-4:]:
        actual = content(clip)
        longer = with_silence(clip, 2, 5, level)
        measured = content(longer)
        assert measured.around_s == pytest.approx(actual.around_s + 7, abs=0.05)
        assert measured.sound_s == pytest.approx(actual.sound_s, abs=0.05)


@pytest.mark.parametrize(("held_hz", "stored_hz"), [(8_000, 16_000), (8_000, 48_000), (16_000, 48_000)])
def test_the_band_of_a_recording_is_detected_in_a_file_of_a_higher_rate(clips, held_hz, stored_hz):
    for clip in clips[:4]:
        sound = to_rate(to_rate(clip, held_hz), stored_hz)
        stored = Audio(np.round(sound.samples * 32768) / 32768, stored_hz)  # 16 bits: noise up to the top
        measured = content(stored)
        assert 0.85 * held_hz / 2 < measured.top_hz < 1.02 * held_hz / 2
        (note,) = notes_of(stored)
        assert note.startswith("it holds nothing above") and note.endswith(f"at a rate of {stored_hz / 1000:g} kHz")


def test_speech_as_it_is_has_no_notes(clips):
    assert [notes_of(clip) for clip in clips] == [()] * len(clips)


def test_what_has_no_content_has_none():
    assert content(Audio(np.zeros(16_000, np.float32), 16_000)) is None
    assert content(Audio(np.ones(300, np.float32), 16_000)) is None
    for constant in (0.3, 1.0, 1e30):
        assert content(Audio(np.full(16_000, constant, np.float32), 16_000)) is None
    turning = np.random.default_rng(0).standard_normal(16_000).astype(np.float32) / 8
    assert notes_of(Audio(np.stack([turning, -turning]), 16_000)) == (), "two channels that cancel each other"
    short = content(Audio(np.random.default_rng(0).standard_normal(900).astype(np.float32), 8_000))
    assert short.top_hz > 3_000


@pytest.mark.parametrize("gain, bits", [(8, 16), (8, 24), (1, 16)])
def test_clipped_peaks_are_detected_and_loud_speech_has_none(clips, gain, bits):
    for clip in clips[:4]:
        loud = clip.samples / np.abs(clip.samples).max()
        steps = 2 ** (bits - 1)
        samples = np.round(np.clip(gain * loud, -1, 1 - 1 / steps) * steps) / steps
        flat = [
            note
            for note in notes_of(Audio(samples.astype(np.float32), clip.sample_rate_hz))
            if note.code == "flat_peaks"
        ]
        assert len(flat) == (gain > 1)
