"""Sounds that several requests share: read, converted and encoded once, by any number of threads, in a bounded room."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from codec_bench import types
from codec_bench.audio.clip import Clip, SharedSounds, clip_digest, wav_bytes
from codec_bench.messages.errors import AudioError
from codec_bench.models.audio_payloads import wav_base64
from codec_bench.types import Audio

RATE = 8_000


@pytest.fixture
def counted(monkeypatch):
    """How often bytes were decoded."""
    calls, real = [], types.decode_bytes

    def decode(source, name, *most_s):
        calls.append(name)
        return real(source, name, *most_s)

    monkeypatch.setattr(types, "decode_bytes", decode)
    return calls


def sound(seed=0, seconds=0.2):
    rng = np.random.default_rng(seed)
    return wav_bytes(Audio(rng.uniform(-0.5, 0.5, (2, int(seconds * RATE))).astype(np.float32), RATE))


def test_a_shared_sound_is_the_same_sound(counted):
    plain, shared = Clip(sound()), SharedSounds().share(Clip(sound()), "a")
    assert isinstance(shared, Clip)
    for one in (plain, shared):
        one.read(), one.signal(4_000), one.fitted(4_000, 0.1), clip_digest(one)
    assert len(counted) == 5, "four times, and once"
    assert np.array_equal(plain.read().samples, shared.read().samples) and clip_digest(plain) == clip_digest(shared)
    ours, theirs = plain.fitted(4_000, 0.1), shared.fitted(4_000, 0.1)
    assert ours[1] == theirs[1] == pytest.approx(0.1) and wav_base64(ours[0]) == wav_base64(theirs[0])


def test_threads_that_ask_at_once_wait_for_one(counted):
    shared, gate = SharedSounds().share(Clip(sound()), "a"), threading.Barrier(8)

    def encoded(_):
        gate.wait(timeout=30)
        return wav_base64(shared.fitted(4_000)[0])

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(encoded, range(8)))
    assert len(counted) == 1 and len({id(answer) for answer in answers}) == 1


def test_sounds_do_not_take_the_place_of_others():
    sounds = SharedSounds()
    one, other = (sounds.share(Clip(sound(seed)), ("q", seed)) for seed in (1, 2))
    assert not np.array_equal(one.read().samples, other.read().samples)
    parts = [one.derive(Audio(one.read().samples[:, a:b], RATE), ("window", a, b)) for a, b in ((0, 400), (400, 800))]
    assert wav_base64(parts[0]) != wav_base64(parts[1])


def test_what_was_used_longest_ago_makes_room(counted):
    size = Clip(sound()).read().samples.nbytes
    counted.clear()
    sounds = SharedSounds(most_bytes=2 * size)
    held = [sounds.share(Clip(sound(n), f"s{n}"), n) for n in range(3)]
    for one in (held[0], held[1], held[0], held[2], held[0], held[1]):
        one.read()
    assert counted == ["s0", "s1", "s2", "s1"]
    large = SharedSounds(most_bytes=0).share(Clip(sound(), "large"), "large")
    large.read(), large.read()
    assert counted.count("large") == 1, "the latest is kept whatever its size"


def test_a_sound_that_cannot_be_read_says_so_each_time():
    shared = SharedSounds().share(Clip(b"no sound"), "a")
    for _ in range(2):
        with pytest.raises(AudioError):
            shared.read()
