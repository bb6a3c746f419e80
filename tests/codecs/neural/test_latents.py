"""Continuous codecs against transformers' own classes, one item at a time, and what is sent beside latents."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from glides import glide
from random_codecs import built
from refusals import Containing, refuses

from codec_bench.codecs import load_codec
from codec_bench.types import Audio

HOPS = {"pocket-tts": 1920, "vibevoice": 3200}
sound = partial(glide, rate_hz=24000)


def filled(samples, hop):
    return torch.from_numpy(np.pad(samples, ((0, 0), (0, -samples.shape[1] % hop))))[None]


def prepared(name, audio):
    """What transformers' own extractor gives the model."""
    from transformers import VibeVoiceAcousticTokenizerFeatureExtractor as Extractor

    if name == "pocket-tts":
        return filled(audio.samples, HOPS[name])
    return Extractor()(audio.samples[0].copy(), sampling_rate=24000).input_values


@torch.inference_mode()
def theirs(name, net, audio):
    options = prepared(name, audio)
    if name == "pocket-tts":
        latents = net.encode(options).latents
        return latents[0].T.numpy(), net.decode(latents).audio_values[0].numpy()
    latents = net.encode(options, sample=False).latents
    return latents[0].T.numpy(), net.decode(latents).audio[0].numpy()


@pytest.mark.parametrize("name", HOPS)
def test_a_padded_batch_gives_what_transformers_gives_one_by_one(name, all_together):
    codec, hop = built(name), HOPS[name]
    batch = [sound(length) for length in (1, 7, hop - 1, hop, hop + 1, 3 * hop + 5, 24000)]
    outputs = codec.encode(batch)
    for audio, item, wave in zip(batch, outputs, codec.decode(outputs), strict=True):
        latents, out = theirs(name, codec._net, audio)
        assert item.values.shape == latents.shape == (codec.info.latents, -(-audio.num_samples // hop))
        assert np.abs(latents).max() > 0.01
        np.testing.assert_allclose(item.values, latents, rtol=0, atol=2e-5 * np.abs(latents).max())
        out = out[:, : audio.num_samples] / item.side.get("factor", 1.0)
        np.testing.assert_allclose(wave.samples, out, rtol=0, atol=2e-5 * max(1.0, np.abs(out).max()))


@pytest.mark.parametrize("name", HOPS)
def test_rounded_latents_have_the_rate_of_their_bits_and_near_the_same_sound(name):
    codec = load_codec(f"{name}-8bit", weights="random")
    assert codec.info.nominal_bitrate_bps == 8 * built(name).info.latents * 24000 / HOPS[name]
    (codes,), audio = codec.encode([sound(24000)]), sound(24000)
    assert codes.side_bits == (32 if name == "vibevoice" else 0)
    (latents,) = built(name).encode([audio])
    low, step = codec._range
    inside = (latents.values >= low) & (latents.values <= low + 255 * step)
    error = np.abs(codec.vectors(codes.streams[0].values).T - latents.values)
    assert (error <= step / 2 + 1e-5)[inside].all()


def test_the_level_of_a_clip_does_not_matter_to_vibevoice():
    codec, audio = built("vibevoice"), sound(9600)
    quiet = Audio(audio.samples / 16, 24000)
    (loud, soft), waves = codec.encode([audio, quiet]), codec.decode(codec.encode([audio, quiet]))
    np.testing.assert_allclose(loud.values, soft.values, atol=1e-3 * np.abs(loud.values).max())
    np.testing.assert_allclose(waves[0].samples, 16 * waves[1].samples, atol=1e-3 * np.abs(waves[0].samples).max())


def test_bad_input_is_one_sentence():
    with refuses(
        "latents_without_point",
        point="12",
        cause=Containing("it is not discrete: its 32 real numbers 12.5 times a second"),
    ):
        load_codec("pocket-tts@12", weights="random")
    (item,) = built("pocket-tts").encode([sound(4000)])
    with refuses("latents_unexpected", shape=[32, 3], samples=9000, expected=[32, 5]):
        built("pocket-tts").decode([type(item)(item.values, 12.5, 9000, 24000)])
