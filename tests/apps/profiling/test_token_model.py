"""What a small transformer needs for sources of which the entropy is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from refusals import refuses

from codec_bench.apps.profiling.token_model import CONTEXT, TokenStream, _windows, fit
from codec_bench.codecs.checks.steps import NotApplicable


def stream(clips, entries, rate_hz=50.0):
    return TokenStream("codes", len(clips[0]), entries, rate_hz, [(f"clip {n}", c) for n, c in enumerate(clips)])


def white(entries, clips=10, frames=200, books=1):
    rng = np.random.default_rng(0)
    return stream([rng.integers(0, entries, (books, frames)) for _ in range(clips)], entries)


def test_white_codes_cost_all_their_bits():
    result = fit(white(32), steps=25, seed=0)
    assert result.bits_per_token == pytest.approx(5.0, abs=0.02) and result.uniform_bits == 5.0


def test_a_source_that_repeats_costs_little_and_the_seed_decides():
    rng = np.random.default_rng(1)
    clips = [(np.arange(200)[None] * 3 + rng.integers(16)) % 16 for _ in range(10)]
    result = fit(stream(clips, 16), steps=50, seed=0)
    assert result.bits_per_token < 0.5 and result.best_step > 0  # only a clip's first code is news
    first, again, other = (fit(stream(clips, 16), steps=10, seed=seed) for seed in (0, 0, 1))
    assert first == again and first.bits_per_token != other.bits_per_token


def test_a_codebook_that_copies_another_one_costs_nothing():
    """Half of the codes are white, and the other half say the same: log2(8) / 2 bits a code."""
    rng = np.random.default_rng(2)
    clips = [np.repeat(rng.integers(0, 8, (1, 200)), 2, axis=0) for _ in range(10)]
    result = fit(stream(clips, 8), steps=75, seed=0)
    assert result.bits_per_token == pytest.approx(1.5, abs=0.15)


def test_steps_that_are_not_requested_leave_equally_likely_codes():
    assert fit(white(16), steps=0, seed=0).bits_per_token == pytest.approx(math.log2(16), abs=1e-5)


def test_what_is_too_little_or_too_large_is_reported():
    with refuses("too_few_clips", clips=5, error=NotApplicable):
        fit(white(16, clips=4, frames=1000), steps=1, seed=0)
    with refuses("too_few_codes", codes=60, needed=1000, error=NotApplicable):
        fit(white(16, clips=5, frames=20), steps=1, seed=0)
    with refuses("too_many_entries", codebooks=1, entries=65536, error=NotApplicable):
        fit(white(65536), steps=1, seed=0)


@pytest.mark.parametrize("books", [1, 32, 300])
@pytest.mark.parametrize("length", [1, 7, 8, 9, 256, 257, 700])
def test_every_frame_is_measured_once(books, length):
    clip = np.arange(length)[:, None]
    frames = max(1, CONTEXT // books)
    measured = np.concatenate([window[known:, 0] for window, known in _windows([clip], frames)])
    assert measured.tolist() == list(range(length))
    assert all(len(window) <= frames for window, _ in _windows([clip], frames))
