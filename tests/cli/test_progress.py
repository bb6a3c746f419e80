"""The progress of a run: its words, when the time left is estimated, and a line every 30 seconds off a terminal."""

from __future__ import annotations

import re

import pytest

from codec_bench.cli.progress import Lines, Progress


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def told(progress, clock, second, stage, done, total=400, failed=0, audio_s=0.0):
    clock.now = 1000.0 + second
    progress.tell(stage, done, total, failed, audio_s)
    return progress.words()


def test_loading_and_the_first_batch_have_words_and_no_estimate(clock):
    progress = Progress(clock)
    assert told(progress, clock, 24, "loading the recogniser whisper-large-v3", 0) == "0 of 400 items, 24 s so far"
    assert progress.stage == "loading the recogniser whisper-large-v3"
    assert "left" not in told(progress, clock, 60, "first batch", 0)


def test_the_time_left_is_said_once_a_tenth_is_done_and_loading_does_not_count(clock):
    progress = Progress(clock)
    told(progress, clock, 300, "first batch", 0)
    told(progress, clock, 300, "running", 1, audio_s=5.0)
    assert "left" not in told(progress, clock, 309, "running", 60, audio_s=300.0), "9 s are too few"
    assert "left" not in told(progress, clock, 330, "running", 40), "39 of 399 are less than a tenth"
    # 41 more in 41 s: a second each, and 358 are left.
    assert told(progress, clock, 341, "running", 42).endswith("so far, about 6 min left")


def test_a_long_run_has_an_estimate_after_two_minutes(clock):
    progress = Progress(clock)
    told(progress, clock, 10, "running", 1, total=100_000)
    assert "left" not in told(progress, clock, 129, "running", 120, total=100_000)
    assert "about 27 h 45 min left" in told(progress, clock, 130, "running", 121, total=100_000)


def test_items_of_an_earlier_command_do_not_count_for_the_time_left(clock):
    progress = Progress(clock)
    told(progress, clock, 5, "running", 200)
    assert "about 3 min left" in told(progress, clock, 25, "running", 220)


def test_failures_and_speed_are_counted_in_it(clock):
    progress = Progress(clock)
    told(progress, clock, 5, "running", 1, audio_s=4.0)
    words = told(progress, clock, 15, "running", 20, failed=1234, audio_s=604.0)
    assert words.startswith("20 of 400 items, 1,234 failed, 0.17 h of audio, 60.0x real time, 15 s so far")


def test_steps_of_different_length_have_no_estimate(clock):
    progress = Progress(clock, "steps", estimates=False)
    told(progress, clock, 1, "opus-12k: speed", 1, total=20)
    assert told(progress, clock, 600, "opus-12k: speed", 19, total=20) == "19 of 20 steps, 10 min so far"


def test_off_a_terminal_a_line_is_said_every_30_seconds(clock):
    said = []
    progress = Progress(clock)
    lines = Lines(progress, clock, said.append)
    for second in range(1, 101):
        clock.now = 1000.0 + second
        if second > 40:
            progress.tell("running", second, 400, 2, 0.0)
        lines.tick()
    assert [re.split(": |, ", line)[0] for line in said] == ["starting", "running", "running"]
    assert said[1] == "running: 60 of 400 items, 2 failed, 1 min so far"


def test_through_a_pipe_the_folder_is_named_first_and_nothing_is_drawn(cli, tmp_path):
    code, _, err = cli(
        "eval", "--codec", "g711-ulaw", "--data", "embedded", "--metrics", "si_sdr", "--limit", 2, "--no-cache"
    )
    assert code == 0 and err.splitlines()[0].startswith("run folder: runs/evaluate-") and "(new)" in err.splitlines()[0]
    assert "\x1b" not in err and "\r" not in err
