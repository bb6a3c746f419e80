"""The sounds fit their statements: each is measured by other means than those that made it."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from codec_bench.apps.judging.sounds import KINDS, RATE_HZ, claims, make_sound
from codec_bench.data import open_source
from codec_bench.types import Audio

NUMBERS = range(8)


@cache
def spoken():
    """The embedded utterances by their ids, each with its sample."""
    return {one.id: (Audio.read(str(one.audio)).samples[0], one) for one in open_source("embedded")}


def loud(signal, window=160):
    """The root mean square in windows of 10 ms."""
    cut = signal[: signal.size // window * window].reshape(-1, window).astype(np.float64)
    return np.sqrt((cut**2).mean(axis=1))


def onsets(signal):
    """Where sound begins after silence, in seconds."""
    sounds = loud(signal) > 0.01
    return np.flatnonzero(np.diff(np.concatenate([[False], sounds]).astype(int)) == 1) / 100


def strongest_hz(signal):
    spectrum = np.abs(np.fft.rfft(signal * np.hanning(signal.size)))
    return np.fft.rfftfreq(signal.size, 1 / RATE_HZ)[spectrum.argmax()]


def source_of(signal):
    """Which utterance a signal is a scaled copy of, and the correlation."""
    best = max(spoken(), key=lambda id: abs(matched(spoken()[id][0], signal)))
    return spoken()[best][1], matched(spoken()[best][0], signal)


def matched(one, other):
    size = min(one.size, other.size)
    a, b = one[:size].astype(np.float64), other[:size].astype(np.float64)
    return float(a @ b / max(np.sqrt((a @ a) * (b @ b)), 1e-12))


def is_silent(sound):
    return not sound.samples.any()


def is_noisy(sound):
    """White noise fills the pauses: the softest tenth of the windows is not much softer than the whole."""
    levels = np.sort(loud(sound.samples))
    return levels[: levels.size // 10].mean() > 0.2 * levels.mean()


def stops(sound):
    levels = loud(sound.samples)
    return levels[levels.size * 3 // 4 :].max() < 1e-6


def second_is_faster(sound):
    begins = onsets(sound.samples)
    pause = np.diff(begins).argmax()
    before, after = np.diff(begins[: pause + 1]).mean(), np.diff(begins[pause + 1 :]).mean()
    assert sorted(round(60 / one) for one in (before, after)) == [120, 140]
    return after < before


def rises(sound):
    first, last = strongest_hz(sound.samples[:4000]), strongest_hz(sound.samples[-4000:])
    assert 1.6 < max(first, last) / min(first, last) < 2.1
    return last > first


def second_is_louder(sound):
    half = sound.samples.size // 2
    first, second = loud(sound.samples[:half]).max(), loud(sound.samples[half:]).max()
    assert max(first, second) / min(first, second) == pytest.approx(5.0, rel=0.05)
    return second > first


def is_left(sound):
    left, right = sound.samples
    assert left.any() != right.any()
    return left.any()


def is_a_woman(sound):
    sample, same = source_of(sound.samples)
    assert same == pytest.approx(1.0, abs=1e-4)
    return sample.speaker == "slt"


def is_backwards(sound):
    forwards, backwards = source_of(sound.samples)[1], source_of(sound.samples[::-1])[1]
    assert max(forwards, backwards) == pytest.approx(1.0, abs=1e-4)
    return backwards > forwards


def tone_is_first(sound):
    """A tone has one strong line in its spectrum, and noise has none."""
    first = np.abs(np.fft.rfft(sound.samples[1000:15000]))
    return first.max() > 50 * np.median(first)


def breaks_off(sound):
    sample, same = source_of(sound.samples)
    assert same == pytest.approx(1.0, abs=1e-4)
    return sound.samples.size < 0.6 * spoken()[sample.id][0].size


def is_fast(sound):
    """Shorter than half of the utterances are as they were spoken."""
    durations = [signal.size / RATE_HZ for signal, _ in spoken().values()]
    return sound.samples.size / RATE_HZ < np.median(durations)


EARS = {
    "silence": is_silent, "noise": is_noisy, "tone that stops": stops, "tempo": second_is_faster, "pitch": rises,
    "loudness": second_is_louder, "side": is_left, "voice": is_a_woman, "reversed speech": is_backwards,
    "order": tone_is_first,
    "cut speech": breaks_off, "delivery": is_fast,
}  # fmt: skip
"""By kind, whether a sound holds what even numbers of the kind say."""


@pytest.mark.parametrize("kind", EARS)
def test_a_sound_holds_what_its_true_claim_says(kind):
    messages = [make_sound(kind, number, seed=3) for number in NUMBERS]
    assert [bool(EARS[kind](sound)) for sound in messages] == [number % 2 == 0 for number in NUMBERS]
    assert {sound.true for sound in messages[::2]} == {sound.false for sound in messages[1::2]}


def test_beeps_can_be_counted():
    counts = []
    for number in range(14):
        sound = make_sound("count of beeps", number, seed=3)
        counts.append(onsets(sound.samples).size)
        text, false = (int(re.search(r"\d", claim[0])[0]) for claim in (sound.true, sound.false))
        assert text == counts[-1] and 1 <= false <= 7 and 1 <= abs(false - text) <= 2
    assert set(counts) == set(range(1, 8))


def test_one_word_is_detected_and_the_other_is_not():
    for number in NUMBERS:
        sound = make_sound("word", number, seed=3)
        words = str(source_of(sound.samples)[0].text).lower().strip(".").split()
        text, other = (re.search('"(.+)"', claim[0])[1] for claim in (sound.true, sound.false))
        assert text in words and other not in words


def test_noise_has_the_power_of_the_speech():
    sound = make_sound("noise", 0, seed=3)
    mixed = sound.samples.astype(np.float64)
    for signal, _ in spoken().values():
        if signal.size != mixed.size:
            continue
        scale = mixed @ signal / (signal.astype(np.float64) @ signal)
        noise = mixed - scale * signal
        if matched(signal, mixed) > 0.5:
            assert np.mean((scale * signal) ** 2) / np.mean(noise**2) == pytest.approx(1.0, rel=0.1)
            return
    raise AssertionError("the speech was not found in the mixture")


def test_the_same_seed_gives_the_same_sounds_and_another_seed_others():
    for kind in KINDS:
        again = make_sound(kind, 1, seed=7).samples
        assert np.array_equal(again, make_sound(kind, 1, seed=7).samples) and np.abs(again).max() <= 1.0
    changed = [
        not np.array_equal(make_sound(kind, 1, 7).samples, make_sound(kind, 1, 8).samples)
        for kind in ("pitch", "word", "order")
    ]
    assert any(changed)


def test_no_preference_pays():
    """Yes and no, first and second, longer and shorter are right equally often in every kind, and so is each claim
    where two alternate.
    """
    requests = [one for _, _, held in claims(4, 1, 0) for one in held]
    for kind in KINDS:
        mine = [one for one in requests if one.kind == kind]
        message = [one for one in mine if not one.options]
        chosen = [one for one in mine if one.options]
        assert sum(one.right for one in message) * 2 == len(message) and sum(one.right for one in chosen) * 2 == len(
            chosen
        )
        longer = [(len(one.options[0]) > len(one.options[1])) == one.right for one in chosen]
        assert sum(longer) * 2 == len(longer)
        if kind in EARS:
            texts = {one.text for one in message}
            assert all(
                2 * sum(one.right for one in message if one.text == text) == sum(one.text == text for one in message)
                for text in texts
            )
    assert len({one.id for one in requests}) == len(requests)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Yes", True),
        ("no.", False),
        ("**Yes**, it does.", True),
        ("I cannot listen to audio.", None),
        ("", None),
        ("Yes\nNo", None),
    ],
)
def test_replies_to_claims(reply, verdict):
    claim = next(one for _, _, requests in claims(4, 1, 0) for one in requests if not one.options)
    assert claim.read(reply) is verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [("A", True), ("B.", False), ("Answer: B", False), ("C", None), ("A or B", None), ("neither", None)],
)
def test_replies_to_choices(reply, verdict):
    claim = next(one for _, _, requests in claims(4, 1, 0) for one in requests if one.options)
    assert claim.read(reply) is verdict
