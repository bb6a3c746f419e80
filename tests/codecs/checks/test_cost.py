"""What `validate` of one codec costs beside the codec's own coding: at most three seconds of CPU, the start of its
processes included.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from codec_bench.api.check_codec import _APART, CLIPS
from codec_bench.codecs.checks import steps
from codec_bench.codecs.checks.alignment import quick_size
from codec_bench.config.limits import Limits
from codec_bench.data import open_source

MOST_S = 3.0
STARTS = 2
"""A process for the codec, and one that decodes what it has sent."""


@pytest.mark.parametrize("codec", ["opus-24k"])
def test_a_codec_is_checked_in_three_seconds_of_cpu_next_to_its_own(codec, monkeypatch):
    own_s = 0.0

    def timed(call):
        def run(self, batch):
            nonlocal own_s
            began = time.process_time()
            try:
                return call(self, batch)
            finally:
                own_s += time.process_time() - began

        return run

    for name in ("encode", "decode"):
        monkeypatch.setattr(steps.Watched, name, timed(getattr(steps.Watched, name)))
    files = tuple((s.id, s.audio) for s in list(open_source("embedded"))[::_APART][:CLIPS])
    requested = tuple(steps.CheckJob.SECTIONS)
    began = time.process_time()
    checking = steps.Checking(steps.CheckJob(codec, files, "cpu", Limits(), requested), lambda: None)
    for step in requested:
        assert {section["state"] for section in checking.sections(step).values()} == {"ok"}
    extra_s = time.process_time() - began - own_s
    assert own_s > 0.1, "the codec was timed"
    before = os.times()
    imports = "import codec_bench.engine.worker, codec_bench.codecs.checks.steps, av"
    subprocess.run([sys.executable, "-c", imports], check=True)
    after = os.times()
    start_s = after.children_user + after.children_system - before.children_user - before.children_system
    assert extra_s + STARTS * start_s < MOST_S


def test_transforms_are_of_lengths_that_are_quick_and_not_much_longer():
    for least in (1, 2, 3, 7, 1000, 44_101, 405_001):
        size = left = quick_size(least)
        for factor in (2, 3, 5):
            while left % factor == 0:
                left //= factor
        assert left == 1 and size % 2 == 0 and least <= size <= max(2, 1.1 * least + 2)
