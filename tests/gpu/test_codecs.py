"""Every neural codec on a GPU that is not there: the CPU's codes and waves, and a fixed number of waits and uploads a
batch.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import partial

import numpy as np
import pytest
from glides import glide
from random_codecs import NAMES, built

from codec_bench.codecs import TABLE, catalogue, load_codec, neural
from codec_bench.codecs.neural.base import NeuralCodec, PublishedCodec
from codec_bench.codecs.neural.latents import CausalLatents
from codec_bench.config.registry import load_attribute
from codec_bench.networks import batch_shapes
from codec_bench.types import Latents

SECONDS = (0.1, 0.16, 0.1, 0.13, 0.16)
OTHERS = (0.14, 0.15, 0.09, 0.12, 0.11, 0.15)
"""As many items and as long ones as fill a batch to the same shape."""
OF_LENGTHS = ("encodec-48khz", "higgs-audio-v2", "neucodec", "xcodec")
"""Codecs with encoders that take items of one exact length only. Each length is a shape, so two of them do."""
WAVE = 1e-4  # of the largest sample


def sounds(codec, seconds=SECONDS):
    rate_hz, channels = codec.info.sample_rates_hz[0], codec.info.channels[0]
    make = partial(glide, rate_hz=rate_hz)
    batch = [make(int(length * rate_hz)) for length in seconds]
    return [type(audio)(np.repeat(audio.samples, channels, 0), rate_hz) for audio in batch]


def assert_same_codes(theirs, ours):
    for there, here in zip(theirs, ours, strict=True):
        for a, b in zip(there.streams, here.streams, strict=True):
            np.testing.assert_array_equal(a.values, b.values)
        if isinstance(here, Latents):
            assert np.abs(there.values - here.values).max() <= WAVE * np.abs(here.values).max()


def assert_same_waves(theirs, ours):
    for there, here in zip(theirs, ours, strict=True):
        assert np.abs(there.samples - here.samples).max() <= WAVE * np.abs(here.samples).max()


def test_every_class_of_neural_codecs_is_tried():
    classes = set()
    for module in pkgutil.iter_modules(neural.__path__, f"{neural.__name__}."):
        members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        classes |= {c for _, c in members if issubclass(c, PublishedCodec) and not inspect.isabstract(c)}
    classes -= {NeuralCodec, CausalLatents}  # what several of them share
    assert {load_attribute(TABLE[catalogue.find(name).family.adapter]) for name in NAMES} == classes


@pytest.fixture(params=NAMES)
def case(request):
    """A codec: its name, sounds, and the CPU's codes and waves."""
    here = built(request.param)
    seconds = SECONDS[:3] if request.param.startswith(OF_LENGTHS) else SECONDS
    # The decoder of 48 kHz EnCodec fills up whole chunks of a second only.
    batch = sounds(here, (1.2, *seconds) if request.param.startswith("encodec-48khz") else seconds)
    codes = here.encode(batch)
    yield request.param, batch, codes, here.decode(codes)
    built.cache_clear()  # together these networks are most of what a process of tests holds


@pytest.fixture(autouse=True)
def _short_rungs(monkeypatch):
    """The first rung is a little longer than the sounds, so that all of them are filled up, and by little."""
    monkeypatch.setattr(batch_shapes, "_UNIT_S", 0.18 / (2 * batch_shapes.PER_DOUBLING))


def test_a_batch_is_the_cpus_and_waits_a_fixed_number_of_times(case, there, within_limits):
    name, batch, codes, waves = case
    codec = load_codec(name, device="cuda:0", weights="random")
    there.reset()
    result, encoding = codec.encode(batch), set(there.shapes)
    within_limits()
    assert_same_codes(result, codes)
    decoded, decoding = codec.decode(codes), set(there.shapes)
    within_limits()
    assert_same_waves(decoded, waves)
    if not name.startswith(OF_LENGTHS):
        codes = codec.encode(sounds(codec, OTHERS))
        assert set(there.shapes) == encoding
        there.reset()
        codec.decode(codes)
        assert set(there.shapes) == decoding


@pytest.mark.parametrize("name", ["encodec-24khz@6", "mimi-8cb"])
def test_a_stream_is_the_cpus_and_waits_once_a_step(name, there, within_limits):
    here = built(name)
    (sound,) = sounds(here, (0.45,))
    codec = load_codec(name, device="cuda:0", weights="random")
    there.reset()
    with here.streaming() as ours, codec.streaming() as theirs:
        for first in range(0, sound.num_samples, 2 * 1920):
            segment = type(sound)(sound.samples[:, first : first + 2 * 1920], sound.sample_rate_hz)
            expected, result = ours.encode(segment), theirs.encode(segment)
            once = (
                2 if name == "mimi-8cb" and first == 0 else 0
            )  # transformers' cache sends its sizes when it is first used
            assert sum(there.waits.values()) <= 1 + once, there.waits
            assert_same_codes([result], [expected])
            there.reset()
            assert_same_waves([theirs.decode(expected)], [ours.decode(expected)])
            assert sum(there.waits.values()) <= 1 + once, there.waits
            within_limits(blocking=once)
