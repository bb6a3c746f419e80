import asyncio
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from refusals import refuses

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.models.base import ModelInfo
from codec_bench.models.batching import BatchModel
from codec_bench.models.windows import WindowedRequest, join, join_texts, merge_texts, split_windows, window_of, windows
from codec_bench.types import Audio, Message, Request, Response, Windows

RATE = 8_000


def info(**facts):
    return ModelInfo("m", **facts)


def noise(rng, seconds, rate=RATE):
    return Audio(rng.uniform(-0.5, 0.5, int(seconds * rate)).astype(np.float32), rate)


def sounds(output):
    return [c.read() for r in output.requests for m in r.messages for c in m.content if isinstance(c, Clip)]


def send(*audio):
    return Request("q", (Message("user", (*map(Clip, audio), "what?")),))


def test_short_audio_is_read_as_one(rng):
    audio = noise(rng, 2)
    for facts in ({}, {"limit_s": 2.0}, {"limit_s": 2.0, "window_s": 1.0}, {"window_s": 2.0}):
        windowed = split_windows(send(audio), info(**facts), RATE)
        assert (
            len(windowed.requests) == 1
            and windowed.cut_s == 0
            and np.array_equal(sounds(windowed)[0].samples, audio.samples)
        )


def test_long_audio_is_cut_and_reported(rng):
    windowed = split_windows(send(noise(rng, 3), noise(rng, 2)), info(limit_s=1.5), RATE)
    assert [a.duration_s for a in sounds(windowed)] == [1.5, 1.5] and windowed.cut_s == pytest.approx(2.0)


def test_windows_hold_everything_in_order(rng):
    audio = noise(rng, 10)
    windowed = split_windows(send(audio), info(limit_s=3.0, window_s=3.0), RATE)
    parts = sounds(windowed)
    assert np.array_equal(np.concatenate([p.samples for p in parts], axis=1), audio.samples) and windowed.cut_s == 0
    assert all(2.4 <= p.duration_s <= 3.0 for p in parts[:-1])
    assert all(r.messages[0].content[1] == "what?" and r.id == "q" for r in windowed.requests)


def test_a_window_ends_in_the_pause(rng):
    audio = noise(rng, 6)
    audio.samples[0, int(2.55 * RATE) : int(2.8 * RATE)] = 0
    ((_, end), *_) = windows(audio, 3.0)
    assert 2.55 <= end / RATE <= 2.8


def test_silence_gives_the_longest_windows():
    lengths = [b - a for a, b in windows(Audio(np.zeros(10 * RATE, np.float32), RATE), 3.0)]
    assert all(length > 0.97 * 3 * RATE for length in lengths[:-1])


def test_two_sounds_are_not_split_and_a_voice_is_never_cut(rng):
    windowed = split_windows(send(noise(rng, 3), noise(rng, 3)), info(limit_s=1.0, window_s=1.0), RATE)
    assert len(windowed.requests) == 1 and windowed.cut_s == pytest.approx(4.0)
    request = Request("q", fields={"audio": Clip(noise(rng, 3)), "prompt_audio": Clip(noise(rng, 5)), "text": "a"})
    windowed = split_windows(request, info(limit_s=1.0), RATE)
    (one,) = windowed.requests
    assert (
        one.fields["prompt_audio"].read().duration_s == 5
        and one.fields["audio"].read().duration_s == 1
        and windowed.cut_s == 2
    )
    windowed = split_windows(request, info(window_s=1.0), RATE)
    assert len(windowed.requests) >= 3 and all(
        r.fields["prompt_audio"].read().duration_s == 5 for r in windowed.requests
    )


def test_sounds_come_at_the_rate_of_the_adapter_on_one_channel(rng):
    stereo = Audio(rng.uniform(-0.5, 0.5, (2, 16_000)).astype(np.float32), 16_000)
    (audio,) = sounds(split_windows(send(stereo), info(), RATE))
    assert audio.channels == 1 and audio.sample_rate_hz == RATE and audio.num_samples == 8_000


def test_texts_are_joined_as_their_script_is_written():
    assert join_texts([" one two ", "", "three"]) == "one two three"
    assert join_texts(["你好", "世界"]) == "你好世界" and join_texts(["ภาษา", "ไทย"]) == "ภาษาไทย"
    assert join_texts(["你好", "OK", "世界。", "再见"]) == "你好 OK 世界。再见"
    assert join_texts(["안녕", "하세요"]) == "안녕 하세요" and join_texts([]) == ""


@pytest.mark.parametrize(
    ("first", "last"),
    [(0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x9FFF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF)],
)
def test_scripts_without_spaces_are_those_of_their_unicode_blocks(first, last):
    """Thai and Lao, Myanmar, Khmer, the radicals to the unified ideographs, and the forms for compatibility."""
    for code in (first, last):
        assert join_texts([chr(code), chr(code)]) == chr(code) * 2
    for code in (first - 1, last + 1):
        assert join_texts([chr(code), chr(code)]) == f"{chr(code)} {chr(code)}"


def test_joined_answers_add_up():
    windowed = WindowedRequest((send(),) * 2)
    one = Response(text="a", usage={"output_tokens": 2.0}, latency_s=1.0, first_s=0.1, finish="length", notes=("n",))
    two = Response(
        text="b", usage={"output_tokens": 3.0}, latency_s=2.0, first_s=0.2, finish="stop", attempts=2, notes=("n",)
    )
    both = join([one, two], windowed)
    assert (both.text, both.latency_s, both.first_s, both.finish, both.attempts) == ("a b", 3.0, 0.1, "length", 3)
    assert both.usage == {"output_tokens": 5.0} and both.notes == (Diagnostic("sent_in_windows", windows=2), "n")


def test_a_failed_window_fails_the_whole_and_is_named():
    windowed = WindowedRequest((send(),) * 3, cut_s=1.0)
    both = join([Response(text="a"), Response.failed("no room")], windowed)
    assert (
        both.status == "failed" and both.reason == "window 2 of 3: no room" and both.text is None and both.cut_s == 1.0
    )


def test_spoken_windows_follow_each_other(rng):
    a, b = noise(rng, 1), noise(rng, 2)
    both = join([Response(audio=a), Response(audio=b)], WindowedRequest((send(),) * 2))
    assert np.array_equal(both.audio.samples, np.concatenate([a.samples, b.samples], axis=1)) and both.text is None


def details(texts, options):
    windowed = WindowedRequest((Request("q"),) * len(texts), 0.0, 10.0, options)
    return join([Response(text=text) for text in texts], windowed)


def test_a_model_that_cuts_is_queried_in_windows_if_the_request_says_so(rng):
    audio = noise(rng, 10)
    cut = split_windows(send(audio), info(limit_s=3.0), RATE)
    assert (len(cut.requests), cut.cut_s, cut.sound_s) == (1, pytest.approx(7), pytest.approx(10))
    request = replace(send(audio), windows=Windows())
    complete = split_windows(request, info(limit_s=3.0), RATE)
    assert np.array_equal(np.concatenate([p.samples for p in sounds(complete)], axis=1), audio.samples)
    assert (complete.cut_s, complete.sound_s) == (0, pytest.approx(10))
    shorter = split_windows(replace(request, windows=Windows(length_s=1.0)), info(limit_s=3.0), RATE)
    assert max(p.duration_s for p in sounds(shorter)) <= 1.0 and len(shorter.requests) > len(complete.requests)
    assert len(split_windows(replace(request, windows=Windows(length_s=4.0)), info(), RATE).requests) == 3
    assert len(split_windows(request, info(), RATE).requests) == 1, "a model without a limit is given all"


def test_windows_overlap_as_much_as_they_declare(rng):
    audio = noise(rng, 10)
    places = windows(audio, 3.0, 0.5)
    assert places[0][0] == 0 and places[-1][1] == audio.num_samples
    assert all(before - after == RATE // 2 for (_, before), (after, _) in pairwise(places))
    with refuses("window_overlap"):
        window_of(Windows(overlap_s=1.5), info(limit_s=3.0))


@pytest.mark.parametrize(
    ("texts", "one"),
    [
        (["B", "A.", "b", "a"], "B"),
        (["the dog", "The cat", "the cat."], "The cat"),
        (["", "C"], "C"),
        (["", " "], ""),
    ],
)
def test_windows_vote(texts, one):
    assert details(texts, Windows(join="vote")).text == one


def test_windows_on_lines_and_their_sound():
    joined = details(["a dog barks ", "", "a door"], Windows(join="lines"))
    assert joined.text == "a dog barks\na door" and joined.sound_s == 10.0


@pytest.mark.parametrize(
    ("before", "after", "one"),
    [
        ("she had your dark suit", "Dark suit, in greasy wash", "she had your dark suit in greasy wash"),
        ("she had your dark soot", "your dark suit in wash", "she had your dark suit in wash"),
        ("and then the", "The cat", "and then the cat"),
        ("the cat in a house", "on the roof", "the cat in a house on the roof"),
        ("one two", "three four", "one two three four"),
        ("", "three four", "three four"),
        ("one two", "", "one two"),
        ("今天天气很", "天气很好", "今天天气很好"),
        ("we saw a, b", "a b, c", "we saw a, b c"),
    ],
)
def test_what_two_windows_share_appears_once(before, after, one):
    assert merge_texts(before, after, 8) == one


def test_texts_further_apart_than_the_overlap_are_not_merged():
    assert merge_texts("a b c d e f g", "a b x", 3) == "a b c d e f g a b x"


class _Marks(BatchModel):
    """Says the marks that it hears: a sample of the value n / 100 is the mark n, as a word."""

    info = info(limit_s=30.0)
    rate_hz = RATE

    @property
    def identity(self):
        return {}

    def answer(self, batch):
        output = [next(c for m in r.messages for c in m.content if isinstance(c, Clip)).read() for r in batch]
        assert all(audio.duration_s <= 30.0 for audio in output)
        return [
            Response(text=" ".join(f"w{round(float(v) * 1e4)}" for v in a.samples[0][a.samples[0] > 0.001]))
            for a in output
        ]


@pytest.mark.parametrize("overlap_s", [0.0, 2.0])
def test_every_second_of_twenty_minutes_is_read_in_order(overlap_s):
    signal = np.zeros(20 * 60 * RATE, np.float32)
    marks = np.arange(RATE // 2, len(signal), RATE)
    signal[marks] = (np.arange(len(marks)) + 100) / 1e4

    async def ask():
        model = _Marks()
        request = replace(send(Audio(signal, RATE)), windows=Windows(overlap_s=overlap_s))
        answer = await model.ask(request)
        await model.close()
        return answer

    answer = asyncio.run(ask())
    assert answer.text.split() == [f"w{n + 100}" for n in range(len(marks))]
    assert (answer.cut_s, answer.sound_s) == (0, pytest.approx(1200)) and answer.notes[0].startswith("sent in ")
