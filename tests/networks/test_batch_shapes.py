"""The ladder of shapes: few lengths, little padding, and numbers of items whose product with the length is about
constant.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from codec_bench.networks.batch_shapes import filled, in_shape, items_of, rows_of, rung_s, rung_steps


def test_lengths_are_few_and_none_is_filled_up_by_more_than_a_fourth():
    lengths = np.linspace(1.03, 40.96, 4000)
    rungs = [rung_s(length) for length in lengths]
    assert len({round(rung, 6) for rung in rungs}) == 21 and rungs == sorted(rungs)
    assert all(length <= rung + 1e-5 and rung <= 1.2501 * length for length, rung in zip(lengths, rungs))
    assert rung_s(0.01) == rung_s(1.28) == pytest.approx(1.28)
    assert [rung_s(rung) for rung in rungs] == pytest.approx(rungs), "a rung lies on itself"


def test_items_times_length_is_about_constant_and_full_batches_are_filled_up_no_further():
    for room_s in (120.0, 240.0, 960.0):
        for length in np.linspace(0.5, room_s, 300):
            items = items_of(length, room_s)
            assert rows_of(items) == items and (items == 1 or 0.5 * room_s < items * rung_s(length) <= room_s + 1e-4)
    assert items_of(100.0, 10.0) == 1


def test_steps_reach_the_rung_and_are_whole_units():
    for rate, unit in ((16_000, 2560), (75.0, 1), (12.5, 1), (86.1328125, 1), (44_100, 2048)):
        for seconds in (0.3, 1.7, 5.0, 29.9):
            steps = round(seconds * rate)
            filled = rung_steps(steps, rate, unit)
            assert filled % unit == 0 and steps <= filled and filled >= rung_s(steps / rate) * rate - 1e-3
            assert filled < rung_s(steps / rate) * rate + unit + 1
    assert rung_steps(80_000, 16_000, 2560) == 81_920, "WavLM's frames come in eights"


@pytest.mark.parametrize(
    "mean, spread, shortest, longest, average_s", [(1.78, 0.70, 1.29, 34.96, 7.42), (1.5, 0.35, 1.5, 12.0, 4.7)]
)
def test_lengths_as_of_two_test_sets_are_filled_up_by_a_tenth(mean, spread, shortest, longest, average_s):
    drawn = np.clip(np.random.default_rng(0).lognormal(mean, spread, 5000), shortest, longest)
    drawn *= average_s / drawn.mean()
    assert sum(map(rung_s, drawn)) / drawn.sum() < 1.12


def test_a_batch_is_filled_up_with_zeros_and_its_last_item():
    waves, features = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]]), torch.ones(2, 4, 6)
    levels = torch.tensor([7.0, 8.0])
    (wave, feature, level), lengths = filled([waves, features], [3, 2], [levels], 3, 5)
    assert wave.tolist() == [[1, 2, 3, 0, 0], [4, 5, 0, 0, 0], [4, 5, 0, 0, 0]] and level.tolist() == [7, 8, 8]
    assert feature.shape == (3, 4, 10) and feature[..., :6].all() and not feature[..., 6:].any(), (
        "two of its steps are one"
    )
    assert list(lengths) == [5, 5, 5] and lengths.there.tolist() == [3, 2, 2]


def test_on_the_cpu_a_batch_stays_as_it_is():
    waves = torch.ones(3, 7)
    assert in_shape(lambda *arguments: arguments, [waves], [7, 5, 6]) == (waves, [7, 5, 6])
