"""The progress of a run: its words, when the time left is estimated, and a line every 30 seconds off a terminal."""

from __future__ import annotations

import re

import pytest

from codec_bench.terminal.progress import Progress, ProgressLines, _format_span


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def details(progress, clock, second, stage, done, total=400, failed=0, audio_s=0.0):
    clock.now = 1000.0 + second
    progress.update(stage, done, total, failed, audio_s)
    return progress.words()


def test_loading_and_the_first_batch_have_words_and_no_estimate(clock):
    progress = Progress(clock)
    assert details(progress, clock, 24, "loading the recogniser whisper-large-v3", 0) == "0 of 400 items, 24 s so far"
    assert progress.stage == "loading the recogniser whisper-large-v3"
    assert "left" not in details(progress, clock, 60, "first batch", 0)


def steadily(progress, clock, first_s, last_s, done, each_s=1.0, **more):
    """Reports one more item every `each_s` seconds; the text of the last report, and how many items are done."""
    words, second = "", first_s
    while second <= last_s:
        words = details(progress, clock, second, "running", done, **more)
        second, done = second + each_s, done + 1
    return words, done


def test_the_time_left_is_reported_once_a_tenth_is_done_and_loading_does_not_count(clock):
    progress = Progress(clock)
    details(progress, clock, 300, "first batch", 0)
    assert "left" not in steadily(progress, clock, 300, 309, 1)[0], "9 s are too few"
    assert "left" not in steadily(progress, clock, 310, 339, 11)[0], "39 of 399 are less than a tenth"
    # An item a second, and 358 are left.
    assert steadily(progress, clock, 340, 341, 41)[0].endswith("400 items, about 6 min left")


def test_a_long_run_has_an_estimate_after_two_minutes(clock):
    progress = Progress(clock)
    words, done = steadily(progress, clock, 10, 129, 1, total=100_000)
    assert "left" not in words
    assert "about 27 h 45 min left" in details(progress, clock, 130, "running", done, total=100_000)


def test_a_stall_or_a_slow_start_gives_no_estimate_until_it_is_known_within_a_factor_of_two(clock):
    progress = Progress(clock)
    text = [details(progress, clock, 0, "running", 1, total=1000)]
    text += [details(progress, clock, second, "running", 2, total=1000) for second in range(10, 135)]
    assert not any("left" in words for words in text), "one item in two minutes would be 36 hours"
    # Then eight items a second: the run ends after another two minutes.
    fast = [details(progress, clock, 135 + k / 8, "running", 2 + k, total=1000) for k in range(998)]
    left = [words.rpartition(", ")[2] for words in fast if "left" in words]
    assert not any(" h " in words for words in left)
    # Half of the run at that pace, then nothing more: the estimate goes away while nothing is finished.
    progress = Progress(clock)
    for k in range(400):
        words = details(progress, clock, 300 + k / 8, "running", 1 + k, total=800)
    assert words.endswith("about 50 s left")
    assert "left" not in details(progress, clock, 300 + 50 + 60, "running", 400, total=800)


@pytest.mark.parametrize(("burst", "until_s"), [(18, 300), (60, 200), (4, 30), (100, 150)])
def test_what_comes_at_once_after_a_stall_is_no_speed(clock, burst, until_s):
    """Some items come quickly, then nothing for minutes, then two a second to the end: the range holds the truth within
    a factor of two.
    """
    progress, total, done, wrong = Progress(clock), 247, 0.0, []
    end_s = until_s + (total - burst) / 2
    for second in range(1, int(end_s)):
        done += 1 if done < burst else 2 if second > until_s else 0
        details(progress, clock, second, "x", int(min(done, total - 1)), total)
        left = progress._left_s(clock())
        if left is not None and second > until_s and not left[0] / 2 <= end_s - second + 2 <= 2 * left[1]:
            wrong.append((second, left, end_s - second))
    assert not wrong


def test_speeds_that_differ_give_a_range(clock):
    progress = Progress(clock)
    _, done = steadily(progress, clock, 0, 99, 1, total=1000)
    _, done = steadily(progress, clock, 100, 159, done, each_s=2 / 3, total=1000)
    words = details(progress, clock, 160, "running", done, total=1000)
    # 190 items in 160 s, and three every two seconds of late: 810 are left.
    assert words.endswith("9 to 11 min left")


def test_both_ends_of_a_range_have_their_unit():
    assert _format_span(65 * 60, 125 * 60) == "1 h 05 min to 2 h 05 min"
    assert _format_span(120, 180) == "2 to 3 min" and _format_span(50, 90) == "50 s to 2 min"


def test_items_of_an_earlier_command_do_not_count_for_the_time_left(clock):
    progress = Progress(clock)
    assert "about 3 min left" in steadily(progress, clock, 5, 25, 200)[0]


def test_failures_and_speed_are_counted_in_it(clock):
    progress = Progress(clock)
    details(progress, clock, 5, "running", 1, audio_s=4.0)
    words = details(progress, clock, 15, "running", 20, failed=1234, audio_s=604.0)
    assert words.startswith("20 of 400 items, 1,234 failed, 0.17 h of audio, 60.0x real time, 15 s so far")


def test_steps_of_different_length_have_no_estimate(clock):
    progress = Progress(clock, "steps", estimates=False)
    details(progress, clock, 1, "opus-12k: speed", 1, total=20)
    assert details(progress, clock, 600, "opus-12k: speed", 19, total=20) == "19 of 20 steps, 10 min so far"


def test_off_a_terminal_a_line_is_reported_every_30_seconds(clock):
    messages = []
    progress = Progress(clock)
    lines = ProgressLines(progress, clock, messages.append)
    for second in range(1, 101):
        clock.now = 1000.0 + second
        if second > 40:
            progress.update("running", second, 400, 2, 0.0)
        lines.tick()
    assert [re.split(": |, ", line)[0] for line in messages] == ["starting", "running", "running"]
    assert messages[1] == "running: 60 of 400 items, 2 failed, 1 min so far"
