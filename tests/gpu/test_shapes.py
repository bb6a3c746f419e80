"""The batches that the real scheduler makes, on a GPU that is not there: shapes level off at those of the ladder."""

from __future__ import annotations

import math
from functools import cache

import deterministic_weights
import numpy as np
import pytest
import simulated_device
import tiny_speech
from pretended import pretended

from codec_bench.engine.arena import Arena
from codec_bench.features import load_feature
from codec_bench.machine import memory
from codec_bench.networks import batch_shapes

RATE_HZ = 16_000
BATCHES, FREQUENT = 100, 6
SMALLER = 24
"""By what factor sounds are shorter here than the scheduler takes them to be, and the lengths of the ladder with them.
"""


@pytest.fixture(scope="module")
def batches():
    """The lengths in seconds of the first hundred batches of a stage in a simulated run."""
    outputs = []
    longest = np.zeros(60 * 16_000, np.float32)
    outcome = simulated_device.VirtualPool._outcome

    def noted(pool, worker, batch, payload):
        if batch.key.endswith(":Speaker"):
            outputs.append([work.length_s for work in batch.works])
        return outcome(pool, worker, batch, payload)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arena, "view", lambda _, region: longest[: math.prod(region.shape)].reshape(region.shape))
        patch.setattr(simulated_device.VirtualPool, "_outcome", noted)
        patch.setattr("codec_bench.engine.batch.GPU_BATCH_S", 0.0)  # they are not doubled, and so are more
        patch.setattr(simulated_device.VirtualPool, "memory_bytes", lambda _: 0)  # nor larger from the first one on
        simulated_device.simulate(simulated_device.Run(700, "half"))
    assert len(outputs) >= BATCHES and sum(map(len, outputs)) == 1400
    return outputs[:BATCHES]


@pytest.fixture
def there(monkeypatch):
    """The pretended device, while a test runs."""
    monkeypatch.setattr(memory, "_shares", {})
    with pretended() as seen:
        yield seen


@pytest.fixture(autouse=True)
def _smaller(monkeypatch):
    monkeypatch.setattr(batch_shapes, "_UNIT_S", batch_shapes._UNIT_S / SMALLER)


@cache
def sound(samples):
    return np.random.default_rng(samples).normal(0, 0.1, samples).astype(np.float32)


def similarity(folder):
    state = deterministic_weights.stand_in(tiny_speech.SmallWavlmSv._architecture(None))
    feature = tiny_speech.SmallWavlmSv("cuda:0", tiny_speech.published(state, folder / "wavlm_large_finetune.pth"))
    return lambda lengths: feature.compute([*map(sound, lengths)])


def opinion(folder):
    feature = load_feature("dnsmos-pro", device="cuda:0", weights=tiny_speech.write_dnsmos_pro(folder))
    return lambda lengths: feature.compute([*map(sound, lengths)])


def by_shape(batches):
    """The samples of each item of the batches, by the shape of the ladder."""
    by_name = {}
    for batch in batches:
        lengths = [round(length / SMALLER * RATE_HZ) for length in batch]
        shape = batch_shapes.rung_s(max(lengths) / RATE_HZ), batch_shapes.rows_of(len(lengths))
        by_name.setdefault(shape, []).append(lengths)
    return by_name


def compare(batches, compute, there):
    """Of the most frequent shapes of the ladder, two batches must reach the same shapes in attention, convolutions and
    products.
    """
    result = sorted(by_shape(batches).items(), key=lambda pair: -len(pair[1]))
    for shape, (first, *_, last) in result[:FREQUENT]:
        reached = []
        for lengths in (first, last):
            there.reset()
            compute(lengths)
            reached.append(set(there.shapes))
        assert reached[0] == reached[1] != set(), f"the batches of {shape} had not the same shapes"


def test_a_hundred_batches_have_few_shapes_and_hardly_a_new_one_in_the_end(batches):
    shapes, before = by_shape(batches), by_shape(batches[: BATCHES // 2])
    assert len({*map(tuple, batches)}) > 0.9 * BATCHES and len(shapes) <= 30
    assert len(shapes.keys() - before.keys()) <= len(before) / 3


@pytest.mark.parametrize("stage", [similarity, opinion])
def test_batches_of_one_shape_of_the_ladder_reach_the_same_shapes(stage, batches, tmp_path, there):
    compute = stage(tmp_path)
    compute([RATE_HZ])  # tables that are made once
    compare(batches, compute, there)


def test_a_pass_that_is_not_filled_up_is_detected(batches, tmp_path, there, monkeypatch):
    def in_shape(forward, moving, lengths, still=(), **more):  # the fault: every batch has a shape of its own
        return forward(*moving, *still, lengths)

    monkeypatch.setattr("codec_bench.features.encoder_feature.in_shape", in_shape)
    with pytest.raises(AssertionError, match="had not the same shapes"):
        compare(batches, similarity(tmp_path), there)
