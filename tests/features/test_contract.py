"""Promises of every registered feature: it describes itself, names what is missing, and takes any signal."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from refusals import refuses

from codec_bench import features
from codec_bench.features import Unavailable, load_feature
from codec_bench.features.scorers import SCORERS
from codec_bench.messages.errors import UserError
from codec_bench.weights import checkpoint, checkpoint_names

NAMES = sorted(features.TABLE)
ARGUMENTS = {"s3prl": "s3prl[fbank]", "s3prl-frames": "s3prl-frames[fbank]"}
WITH_WEIGHTS = {used for entry in checkpoint_names() for used in (entry, *checkpoint(entry).used_by)}
EMBEDDED = [name for name in NAMES if name not in WITH_WEIGHTS and name not in ARGUMENTS]  # they run with no checkpoint
RATE_HZ = 16_000
RATES_HZ = {
    **{row.feature: row.rate_hz for row in SCORERS}, "clap-htsat-unfused": 48_000, "ttsds2-pitch": 22_050,
    "vibevoice-asr": 24_000,
    "kyutai-stt-2.6b-en": 24_000, "kyutai-stt-1b-en-fr": 24_000,
}  # fmt: skip
"""Of the features that do not read `RATE_HZ`; those of learned scorers as their rows say."""


@pytest.fixture
def nothing_here(monkeypatch, tmp_path):
    """A machine without any checkpoint."""
    for name in ("CODEC_BENCH_WEIGHTS", "HF_HUB_CACHE", "MODELSCOPE_CACHE", "CODEC_BENCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setattr("codec_bench.weights.from_packages._installed", dict)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is(name):
    feature = features.REGISTRY.resolve(name)
    assert issubclass(feature, features.Feature)
    assert feature.where in ("device", "cpu")
    assert feature.rate_hz == RATES_HZ.get(name, RATE_HZ)
    for word in ("Result:", "Args:"):
        assert word in feature.__doc__, word
    assert "eference implementation" in feature.__doc__ or "Reference" in feature.__doc__


@pytest.mark.parametrize("name", [name for name in NAMES if name in WITH_WEIGHTS])
def test_without_weights_it_names_the_command(name, nothing_here):
    with refuses("weights_missing", hint="codec-bench weights fetch"):
        load_feature(name)
    entries = [checkpoint(n) for n in checkpoint_names() if n == name or name in checkpoint(n).used_by]
    assert entries and all(entry.licence for entry in entries)


@pytest.mark.parametrize("name", NAMES)
def test_a_point_that_does_not_exist_is_one_sentence(name, nothing_here):
    with pytest.raises(UserError) as caught:
        load_feature(f"{ARGUMENTS.get(name, name)}@never")
    assert "\n" not in str(caught.value)


@cache
def loaded(name):
    return load_feature(name)


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("samples", [0, 1, 159, 160, 400, 5_000])
def test_any_signal_has_a_result_or_a_reason(name, samples):
    rng = np.random.default_rng(samples)
    noise = (0.1 * rng.standard_normal(samples)).astype(np.float32)
    feature = loaded(name)
    for signal in (noise, np.zeros(samples, np.float32), np.ones(samples, np.float32)):
        (result,) = feature.compute([signal])
        if isinstance(result, Unavailable):
            assert str(result) and "\n" not in str(result)
            continue
        for value in result.values():
            if not isinstance(value, str):
                assert np.isfinite(np.asarray(value, np.float64)).all()


# The batches of the three that take longest have tests of their own.
@pytest.mark.parametrize("name", [n for n in EMBEDDED if n not in ("dnsmos", "mel_cepstrum", "pocketsphinx")])
def test_a_batch_is_its_items(name):
    from codec_bench.api.verify_batching import verify_batching

    assert verify_batching(name=name, data="embedded", limit=2, device="cpu").exact
