"""The tokenizer of Higgs Audio v2 against transformers' own class, one item at a time."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from glides import glide
from random_codecs import built
from refusals import refuses

from codec_bench.codecs import load_codec

HOP = 960
LENGTHS = (1, HOP, HOP + 1, 5 * HOP - 1, 5 * HOP, 12345, 24000)
sound = partial(glide, rate_hz=24000)


def filled(audio):
    return torch.from_numpy(np.pad(audio.samples, ((0, 0), (0, -audio.num_samples % HOP))))[None]


@pytest.mark.parametrize("codebooks", [8, 4])
def test_a_batch_gives_what_transformers_gives_one_by_one(codebooks, all_together):
    codec = built("higgs-audio-v2-8cb") if codebooks == 8 else load_codec("higgs-audio-v2-4cb", weights="random")
    batch = [sound(length) for length in LENGTHS]
    codes = codec.encode(batch)
    with torch.inference_mode():
        for audio, item, wave in zip(batch, codes, codec.decode(codes), strict=True):
            theirs = codec._net.encode(filled(audio), bandwidth=codebooks / 4).audio_codes[0].numpy()
            assert item.streams[0].values.shape == theirs.shape == (codebooks, -(-audio.num_samples // HOP))
            np.testing.assert_array_equal(item.streams[0].values, theirs)
            out = codec._net.decode(torch.from_numpy(theirs)[None]).audio_values[0].numpy()[:, : audio.num_samples]
            assert np.abs(out).max() > 0.01
            np.testing.assert_allclose(wave.samples, out, rtol=0, atol=1e-5)


def test_facts_and_vectors():
    codec = built("higgs-audio-v2-8cb")
    assert (codec.info.nominal_bitrate_bps, codec.info.frame_rate_hz) == (2000.0, 25.0)
    (codes,) = codec.encode([sound(24000)])
    values = codes.streams[0].values
    assert len(np.unique(values)) > 20  # the codes follow the sound
    with torch.inference_mode():
        expected = codec._net.quantizer.decode(torch.from_numpy(values)[:, None])[0].T.numpy()
    np.testing.assert_array_equal(codec.vectors(values), expected)
    with refuses("codebook_count", codec="higgs-audio-v2", codebooks=9):
        codec.describe(9)
