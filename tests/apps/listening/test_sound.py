"""The sounds of an item are alike in all but their content, and the files that hold them play."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench.apps.listening.sound import equalise_sizes, match_sounds, pad_flac, scramble
from codec_bench.types import Audio


def written(path, samples, rate):
    soundfile.write(path, samples, rate, subtype="PCM_16")
    return path


def test_rate_channels_and_length_become_one(tmp_path, rng):
    first = written(tmp_path / "a.wav", 0.1 * rng.standard_normal((8_000, 2)), 16_000)
    second = written(tmp_path / "b.wav", 0.1 * rng.standard_normal(11_900), 24_000)
    built = match_sounds({"a": first, "b": second})
    assert {sound.samples.shape for sound in built.values()} == {(2, 12_000)}
    assert {sound.sample_rate_hz for sound in built.values()} == {24_000}
    assert np.array_equal(built["b"].samples[0], built["b"].samples[1]) and not built["b"].samples[:, 11_900:].any()


def test_lengths_that_belong_to_what_is_spoken_stay(tmp_path, rng):
    paths = {n: written(tmp_path / f"{n}.wav", 0.1 * rng.standard_normal(n * 16_000), 16_000) for n in (1, 2)}
    assert [sound.num_samples for sound in match_sounds(paths).values()] == [16_000, 32_000]


def test_other_numbers_of_channels_are_refused(tmp_path, rng):
    paths = {n: written(tmp_path / f"{n}.wav", 0.1 * rng.standard_normal((1_000, n)), 16_000) for n in (2, 3)}
    with refuses("channels_differ", channels=2, other_channels=3):
        match_sounds(paths)


def test_files_are_equally_large_and_hold_the_same_samples(rng):
    noise = (0.2 * rng.standard_normal(9_000)).astype(np.float32)
    sounds = {"noise": Audio(noise, 16_000), "silence": Audio(np.zeros(9_000, np.float32), 16_000)}
    files = equalise_sizes(sounds)
    assert len({len(held) for held in files.values()}) == 1
    for name, held in files.items():
        read, rate = soundfile.read(io.BytesIO(held), dtype="float32")
        assert rate == 16_000 and np.abs(read - sounds[name].samples[0]).max() <= 1 / 65536


@pytest.mark.parametrize("more", [4, 5, 4_000, (1 << 24) + 1, (1 << 24) + 4, (1 << 24) + 9])
def test_any_amount_of_padding_can_be_added(rng, more):
    plain = next(iter(equalise_sizes({"a": Audio(np.zeros(500, np.float32), 16_000)}).values()))
    held = pad_flac(plain, len(plain) + more)
    assert len(held) == len(plain) + more
    assert len(soundfile.read(io.BytesIO(held))[0]) == 500


def test_scrambling_twice_gives_the_bytes_and_equal_sounds_look_different(rng):
    content = rng.bytes(10_000)
    assert scramble(scramble(content, 3), 3) == content
    once, other = (np.frombuffer(scramble(content, clip), np.uint8) for clip in (3, 4))
    assert (once == other).mean() < 0.01  # 1 of 256 by chance
