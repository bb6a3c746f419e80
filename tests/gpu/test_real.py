"""Every feature, neural codec and family of models on a real GPU gives the CPU's values; what a package is missing for
is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import test_codecs
import test_features
import test_models
import torch
from random_codecs import NAMES, built

from codec_bench import features
from codec_bench.codecs import load_codec
from codec_bench.features.recognisers import canary, qwen3_asr, whisper_network
from codec_bench.machine.memory import own_device
from codec_bench.messages.errors import MissingExtra
from codec_bench.models.in_process.families.chat import Voxtral
from codec_bench.networks import utmosv2

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU"),
]
VALUES, CODES = 1e-3, 1e-2
"""Sums in another order: the greatest distance relative to the largest value, and the greatest share of codes that
differ.
"""


@pytest.fixture(autouse=True, scope="module")
def _owned():
    own_device("cuda:0")  # as the workers of a run do


@contextmanager
def _packages() -> Iterator[None]:
    try:
        yield
    except (MissingExtra, ImportError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", test_features.CASES)
def test_a_feature(name, tmp_path, monkeypatch):
    for recogniser in (canary, qwen3_asr):
        monkeypatch.setattr(recogniser, "MAX_TOKENS", 6)
    monkeypatch.setattr(whisper_network, "MAX_LENGTH", 12)
    monkeypatch.setattr(utmosv2, "HOP", 256)
    monkeypatch.setattr(utmosv2, "SIZE", 256)
    make, write = test_features.CASES[name]
    at_16_khz = features.REGISTRY.resolve(name).rate_hz == test_features.RATE_HZ
    signals = test_features.voices(test_features.LENGTHS if at_16_khz else test_features.LONGER)
    with _packages():
        weights = None if write is None else write(tmp_path)
        expected = make("cpu", weights).compute(signals)
        feature = make("cuda:0", weights)
        test_features.assert_same(feature.compute(signals), expected, VALUES)
        test_features.assert_same(feature.compute(signals[::-1])[::-1], expected, VALUES)


@pytest.mark.parametrize("name", NAMES)
def test_a_codec(name):
    with _packages():
        here, there = built(name), load_codec(name, device="cuda:0", weights="random")
        seconds = (1.2, *test_codecs.SECONDS) if name.startswith("encodec-48khz") else test_codecs.SECONDS
        batch = test_codecs.sounds(here, seconds)
        codes, result = here.encode(batch), there.encode(batch)
        apart, count = 0, 0
        for a, b in zip(result, codes, strict=True):
            for one, other in zip(a.streams, b.streams, strict=True):
                assert one.values.shape == other.values.shape
                apart, count = apart + int((one.values != other.values).sum()), count + other.values.size
        assert apart <= CODES * count, f"{apart} of {count} codes differ"
        for one, other in zip(there.decode(codes), here.decode(codes), strict=True):
            assert np.abs(one.samples - other.samples).max() <= VALUES * np.abs(other.samples).max()


@pytest.mark.parametrize("name", sorted(test_models.WRITERS))
def test_a_family_of_models(name, tmp_path, monkeypatch):
    monkeypatch.setattr(
        Voxtral, "load_processor", lambda self: test_models.tiny_audio_models.voxtral_processor(self.loading.folder)
    )
    folder = tmp_path / name
    with _packages():
        test_models.WRITERS[name](folder)
        requests = [test_models.question(k, seconds) for k, seconds in enumerate(test_models.SECONDS)]
        expected = test_models.spoken(test_models.model_in(folder, "cpu").answer(requests))
        assert {status for status, *_ in expected} == {"ok"}
        assert test_models.spoken(test_models.model_in(folder, "cuda:0").answer(requests)) == expected
