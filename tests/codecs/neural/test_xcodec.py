"""X-codec against transformers' own class, one item at a time, with the same seeded weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from glides import glide
from random_codecs import built
from refusals import refuses

from codec_bench.codecs import load_codec

LENGTHS = (1, 7, 319, 320, 321, 640, 1000, 2000, 5003, 16000)


@pytest.mark.parametrize("name", ["xcodec-hubert-librispeech", "xcodec-wavlm-mls", "xcodec-hubert-librispeech-2cb"])
def test_a_batch_gives_what_transformers_gives_one_by_one(name, all_together):
    codec = built(name)
    net, kbps = codec._net, codec.info.nominal_bitrate_bps / 1000
    batch = [glide(length, seed) for seed, length in enumerate(LENGTHS)]
    codes = codec.encode(batch)
    waves = codec.decode(codes)
    wrong = 0
    for audio, item, wave in zip(batch, codes, waves, strict=True):
        values = item.streams[0].values
        filled = np.pad(audio.samples, ((0, 0), (0, -audio.num_samples % 320)))
        with torch.inference_mode():
            theirs = net.encode(torch.from_numpy(filled)[None], bandwidth=kbps).audio_codes[0].numpy()
            their_wave = net.decode(torch.from_numpy(values)[None]).audio_values[0].numpy()
        assert values.shape == theirs.shape
        wrong += int((values != theirs).any(axis=0).sum())
        assert their_wave.shape == filled.shape
        assert np.abs(their_wave).max() > 0.01
        np.testing.assert_allclose(wave.samples, their_wave[:, : audio.num_samples], rtol=0, atol=1e-5)
    assert wrong <= 1e-4 * sum(item.streams[0].values.size for item in codes)


def test_in_one_padded_batch_transformers_would_give_other_codes():
    # Why only equal lengths share a pass of the encoder.
    net, short, long = built("xcodec-hubert-librispeech")._net, glide(3200), glide(9600)
    padded = np.zeros((2, 1, 9600), np.float32)
    padded[0, :, :3200], padded[1] = short.samples, long.samples
    with torch.inference_mode():
        naive = net.encode(torch.from_numpy(padded)).audio_codes[0, :, :10]
        alone = net.encode(torch.from_numpy(short.samples)[None]).audio_codes[0]
    assert (naive != alone).any()


@pytest.mark.parametrize(("suffix", "codebooks", "bits"), [("", 8, 4000), ("-4cb", 4, 2000), ("-1cb", 1, 500)])
def test_facts_are_the_published_ones(suffix, codebooks, bits):
    codec = built(f"xcodec-hubert-librispeech{suffix}")
    (codes,) = codec.encode([glide(16000)])
    (stream,) = codes.streams
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape) == (1024, 50, (codebooks, 50))
    assert stream.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == bits == codes.bits


def test_the_published_size_is_what_transformers_makes_of_its_defaults():
    from transformers import XcodecConfig

    from codec_bench.codecs.neural.xcodec import _FACTS

    config = XcodecConfig()
    for fact, value in _FACTS.items():
        assert np.array_equal(getattr(config, fact), value), fact
    assert (config.hop_length, config.frame_rate, config.num_quantizers) == (320, 50, 8)


def test_codebooks_and_models_it_does_not_have_are_refused():
    for count in (0, 5, 9, True):
        with refuses("codebook_count", hint="it runs with 1, 2, 3, 4, 8"):
            load_codec("xcodec-wavlm-mls", weights="random", codebooks=count)


def test_codes_that_do_not_fit_are_refused():
    codec = built("xcodec-wavlm-mls")
    (codes,) = codec.encode([glide(5000)])
    with refuses("codes_unexpected", shapes="(8, 16)", samples=9999, expected="(8, 32)"):
        codec.decode([replace(codes, num_samples=9999)])
