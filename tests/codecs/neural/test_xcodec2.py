"""X-codec2 and NeuCodec against transformers' own classes, one item at a time, with the same seeded weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from glides import glide
from random_codecs import built
from refusals import refuses

from codec_bench.audio.resample import resample
from codec_bench.codecs.neural.xcodec2 import Xcodec2

LENGTHS = {
    "xcodec2": (1, 7, 319, 320, 321, 640, 1000, 2000, 2001, 5003, 16000),
    "neucodec": (1, 7, 479, 480, 481, 960, 1500, 3000, 3001, 7503, 24000),
}


def transcribe(name, audio):
    """The input of transformers' feature extractor: for NeuCodec at 16 kHz, with zeros to a multiple of the frame."""
    if name == "xcodec2":
        return audio.samples[0]
    wave = resample(audio.samples, 24000, 16000)[0]
    return np.pad(wave, (0, -(-audio.num_samples // 480) * 320 - len(wave)))


@pytest.mark.parametrize("name", ["xcodec2", "neucodec"])
def test_a_batch_gives_what_transformers_gives_one_by_one(name):
    codec = built(name)
    batch = [glide(length, seed, codec.info.sample_rates_hz[0]) for seed, length in enumerate(LENGTHS[name])]
    codes = codec.encode(batch)
    waves = codec.decode(codes)
    wrong = 0
    for audio, item, wave in zip(batch, codes, waves, strict=True):
        values = item.streams[0].values
        inputs = codec._features(transcribe(name, audio), sampling_rate=16000, return_tensors="pt")
        with torch.inference_mode():
            theirs = codec._net.encode(**inputs).audio_codes[0].numpy()
            their_wave = codec._net.decode(torch.from_numpy(values)[None]).audio_values[0].numpy()
        assert values.shape == theirs.shape
        wrong += int((values != theirs).sum())
        assert their_wave.shape[1] >= audio.num_samples
        # Normalising over one frame or a few makes the rounding of noise large.
        np.testing.assert_allclose(wave.samples, their_wave[:, : audio.num_samples], rtol=0, atol=1e-4)
    assert wrong <= 1e-4 * sum(item.streams[0].values.size for item in codes)


@pytest.mark.parametrize("name", ["xcodec2", "neucodec"])
def test_in_one_padded_batch_transformers_would_give_other_codes_in_spite_of_its_masks(name):
    # Why only equal lengths share a pass.
    codec = built(name)
    rng = np.random.default_rng(0)
    short, long = 0.1 * rng.standard_normal((2, 32000)).astype(np.float32)
    short = short[:3200]
    with torch.inference_mode():
        together = codec._net.encode(**codec._features([short, long], sampling_rate=16000, return_tensors="pt"))
        alone = codec._net.encode(**codec._features(short, sampling_rate=16000, return_tensors="pt")).audio_codes[0]
    assert (together.audio_codes[0, :, : alone.shape[1]] != alone).any()


@pytest.mark.parametrize(("name", "frames"), [("xcodec2", 51), ("neucodec", 50)])
def test_facts_are_the_published_ones(name, frames):
    codec = built(name)
    (codes,) = codec.encode([glide(codec.info.sample_rates_hz[0], rate_hz=codec.info.sample_rates_hz[0])])
    (stream,) = codes.streams
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape) == (65536, 50, (1, frames))
    assert stream.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == 800
    assert codes.bits == 16 * frames


def test_the_facts_queried_from_weights_are_those_of_transformers_defaults():
    import transformers

    from codec_bench.codecs.neural.xcodec2 import _MODELS

    for model in _MODELS.values():
        config = getattr(transformers, f"{model.classes}Config")()
        for fact, value in model.facts.items():
            assert np.array_equal(getattr(config, fact), value), fact
        assert config.hop_length == model.hop


def test_codes_that_do_not_fit_are_refused():
    codec = built("xcodec2")
    (codes,) = codec.encode([glide(5000)])
    with refuses("codes_unexpected", shapes="(1, 16)", samples=9999, expected="(1, 32)"):
        codec.decode([replace(codes, num_samples=9999)])
    with refuses("no_variant", variant="xcodec3", hint="xcodec2, neucodec"):
        Xcodec2("xcodec3", weights="random")
