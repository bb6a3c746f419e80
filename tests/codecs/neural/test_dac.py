"""DAC against transformers' own class, one item at a time, with the same seeded weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from glides import glide
from random_codecs import built
from refusals import Containing, refuses

from codec_bench.codecs import load_codec
from codec_bench.codecs.neural.dac import Dac
from codec_bench.codecs.neural.dac_original import load_original

# From the original repository's configurations: rate, hop, codebooks, bits a second.
PUBLISHED = {
    "dac-16khz": (16000, 320, 12, 6000.0),
    "dac-24khz": (24000, 320, 32, 24000.0),
    "dac-44khz": (44100, 512, 9, 7751.953125),
    "dac-44khz-16kbps": (44100, 512, 18, 15503.90625),
}
# Around the hops of 320 and 512 and the 8 samples that an odd stride loses.
LENGTHS = (1, 7, 312, 313, 319, 320, 321, 511, 512, 513, 1000, 3200, 5003, 9000)


def their_codes(codec, audio):
    """transformers' codes of one item, followed by zeros to a multiple of the hop as its feature extractor does."""
    wave = torch.from_numpy(np.pad(audio.samples, ((0, 0), (0, -audio.num_samples % codec._net.config.hop_length))))
    with torch.inference_mode():
        return codec._net.encode(wave[None]).audio_codes[0].numpy()


def their_wave(codec, values):
    """transformers' decoding of one item's codes."""
    with torch.inference_mode():
        return codec._net.decode(audio_codes=torch.from_numpy(values)[None]).audio_values.numpy()


def frames_that_differ(a, b):
    assert a.shape == b.shape
    return int((a != b).any(axis=0).sum())


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_padded_batch_gives_what_transformers_gives_one_by_one(name, all_together):
    codec = built(name)
    batch = [glide(length, rate_hz=codec.info.sample_rates_hz[0]) for length in LENGTHS]
    codes = codec.encode(batch)
    wrong = sum(
        frames_that_differ(ours.streams[0].values, their_codes(codec, audio))
        for ours, audio in zip(codes, batch, strict=True)
    )
    assert wrong <= 1e-4 * sum(item.streams[0].values.size for item in codes)
    for ours, item in zip(codec.decode(codes), codes, strict=True):
        theirs = their_wave(codec, item.streams[0].values)
        length = min(theirs.shape[1], item.num_samples)
        assert np.abs(theirs).max() > 0.01
        np.testing.assert_allclose(ours.samples[:, :length], theirs[:, :length], rtol=0, atol=1e-5)


def test_without_the_zeroing_the_padding_would_reach_the_codes():
    # This shows that the test above can fail: transformers' own batch of the same two items differs.
    codec = built("dac-16khz")
    short, long = glide(3200), glide(9600)
    padded = np.zeros((2, 1, 9600), np.float32)
    padded[0, :, :3200], padded[1] = short.samples, long.samples
    with torch.inference_mode():
        naive = codec._net.encode(torch.from_numpy(padded)).audio_codes[0, :, :10].numpy()
    assert frames_that_differ(naive, their_codes(codec, short)) > 0


@pytest.mark.parametrize("name", ["dac-16khz", "dac-44khz"])
def test_groups_of_similar_lengths_change_nothing(name):
    codec = built(name)
    rate_hz = codec.info.sample_rates_hz[0]
    batch = [glide(length, seed, rate_hz) for seed, length in enumerate((9000, 500, 9100, 8800, 501, 499, 1))]
    codes = codec.encode(batch)
    waves = codec.decode(codes)
    for audio, item, wave in zip(batch, codes, waves, strict=True):
        (alone,) = codec.encode([audio])
        assert np.array_equal(alone.streams[0].values, item.streams[0].values)
        np.testing.assert_allclose(wave.samples, codec.decode([item])[0].samples, rtol=0, atol=1e-5)


def test_a_batch_of_speech_equals_one_by_one(ragged_speech, all_together):
    codec = built("dac-24khz-8cb")
    batch = ragged_speech(24000, every=6, shortest_s=0.3, step_s=0.07)
    together = codec.encode(batch)
    wrong = sum(
        frames_that_differ(item.streams[0].values, their_codes(codec, audio)[:8])
        for item, audio in zip(together, batch, strict=True)
    )
    assert wrong <= 1e-4 * sum(item.streams[0].values.size for item in together)
    for wave, item in zip(codec.decode(together), together, strict=True):
        np.testing.assert_allclose(wave.samples, codec.decode([item])[0].samples, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("name", "dropped"), [("dac-16khz", 8), ("dac-24khz", 8), ("dac-44khz", 0)])
def test_what_the_decoder_does_not_make_is_silent(name, dropped):
    codec = built(name)
    audio = glide(10 * codec._net.config.hop_length, rate_hz=codec.info.sample_rates_hz[0])
    (codes,) = codec.encode([audio])
    assert their_wave(codec, codes.streams[0].values).shape[1] == audio.num_samples - dropped
    (out,) = codec.decode([codes])
    assert out.num_samples == audio.num_samples
    assert not out.samples[:, out.num_samples - dropped :].any()
    assert out.samples[:, out.num_samples - dropped - 20 : out.num_samples - dropped].all()


@pytest.mark.parametrize("name", PUBLISHED)
def test_facts_are_those_of_the_published_configurations(name):
    rate_hz, hop, codebooks, bits = PUBLISHED[name]
    codec = built(name)
    assert codec.info.sample_rates_hz == (rate_hz,)
    assert codec.info.frame_rate_hz == rate_hz / hop
    (codes,) = codec.encode([glide(100 * hop - 5, rate_hz=rate_hz)])
    (stream,) = codes.streams
    assert stream.values.shape == (codebooks, 100) and stream.cardinality == 1024
    assert stream.nominal_bitrate_bps == pytest.approx(bits, rel=1e-12) == codec.info.nominal_bitrate_bps
    assert codes.bits == codebooks * 100 * 10


def test_the_published_size_has_the_published_shapes():
    from transformers import DacConfig, DacModel

    from codec_bench.codecs.neural.dac import _MODELS, _empty_net

    with torch.device("meta"):
        net = _empty_net(_MODELS["44khz"])
        assert {k: v.shape for k, v in net.state_dict().items()} == {
            k: v.shape for k, v in DacModel(DacConfig(sampling_rate=44100)).state_dict().items()
        }  # transformers' defaults are the 44.1 kHz model's, except for the rate
        wide = _empty_net(_MODELS["44khz-16kbps"])
    assert tuple(wide.encoder.conv2.weight.shape) == (128, 1024, 3)
    assert tuple(wide.decoder.conv1.weight.shape) == (1536, 128, 7)


def test_fewer_codebooks_are_the_first_ones():
    audio = glide(9000, rate_hz=24000)
    (some,) = built("dac-24khz-8cb").encode([audio])
    (every,) = built("dac-24khz").encode([audio])
    assert np.array_equal(some.streams[0].values, every.streams[0].values[:8])
    theirs = their_wave(built("dac-24khz"), some.streams[0].values)[:, :9000]
    np.testing.assert_allclose(built("dac-24khz-8cb").decode([some])[0].samples, theirs, rtol=0, atol=1e-5)


def test_codebooks_and_models_it_does_not_have_are_refused():
    for count in (0, 13, True):
        with refuses("codebook_count", codec="dac-16khz", codebooks=count, hint="it has 1 to 12"):
            load_codec("dac-16khz", weights="random", codebooks=count)
    with refuses("no_variant", variant="8khz", hint="16khz, 24khz, 44khz"):
        Dac("8khz", weights="random")


def test_codes_that_do_not_fit_are_refused():
    codec = built("dac-16khz")
    (codes,) = codec.encode([glide(5000)])
    (stream,) = codes.streams
    for broken, says in (
        (
            replace(codes, num_samples=9999),
            {"code": "codes_unexpected", "shapes": "(12, 16)", "samples": 9999, "expected": "(12, 32)"},
        ),
        (replace(codes, streams=()), {"code": "codes_unexpected", "shapes": "0 streams"}),
        (replace(codes, streams=(replace(stream, values=stream.values[:2]),)), {"code": "codes_unexpected"}),
        (
            replace(codes, streams=(replace(stream, values=stream.values + 1024),)),
            {"code": "codes_beyond", "highest": 1023},
        ),
    ):
        with refuses(**says):
            codec.decode([broken])


def original_layout(net):
    """A network's tensors as the original package stores them: its sequences, and every convolution as direction and
    gain.
    """
    places = {
        "encoder.conv1": "encoder.block.0",
        "encoder.snake1": "encoder.block.5",
        "encoder.conv2": "encoder.block.6",
    }
    places |= {
        "decoder.conv1": "decoder.model.0",
        "decoder.snake1": "decoder.model.5",
        "decoder.conv2": "decoder.model.6",
    }
    unit = ("snake1", "conv1", "snake2", "conv2")
    encoder = ("res_unit1", "res_unit2", "res_unit3", "snake1", "conv1")
    decoder = ("snake1", "conv_t1", "res_unit1", "res_unit2", "res_unit3")
    for role, parts, sequence in (("encoder", encoder, "encoder.block"), ("decoder", decoder, "decoder.model")):
        for block in range(4):
            for k, item in enumerate(parts):
                here, there = f"{role}.block.{block}.{item}", f"{sequence}.{block + 1}.block.{k}"
                places |= (
                    {f"{here}.{x}": f"{there}.block.{j}" for j, x in enumerate(unit)}
                    if "unit" in item
                    else {here: there}
                )
    out = {}
    for name, tensor in net.state_dict().items():
        module, leaf = name.rsplit(".", 1)
        module = places.get(module, module)
        if leaf == "weight" and not module.endswith("codebook"):
            gain = tensor.flatten(1).norm(dim=1).view(-1, *[1] * (tensor.ndim - 1))
            out[f"{module}.weight_g"], out[f"{module}.weight_v"] = 3 * gain, 0.7 * tensor / gain
        else:
            out[f"{module}.{leaf}"] = tensor
    return out


def test_a_checkpoint_of_the_original_package_is_read(tmp_path):
    net = built("dac-44khz-16kbps")._net
    state = original_layout(net)
    for name in (
        "encoder.block.1.block.0.block.1.weight_v",
        "decoder.model.4.block.1.weight_g",
        "encoder.block.5.alpha",
    ):
        assert name in state
    path = tmp_path / "weights_44khz_16kbps.pth"
    torch.save({"state_dict": state, "metadata": {"kwargs": {"sample_rate": 44100}}}, path)
    other = load_codec("dac-44khz-16kbps", weights="random")._net
    for parameter in other.parameters():
        torch.nn.init.zeros_(parameter.data)
    load_original(other, path)
    for (name, tensor), theirs in zip(net.state_dict().items(), other.state_dict().values(), strict=True):
        factor = 1 if "codebook" in name or not name.endswith("weight") else 3
        torch.testing.assert_close(theirs, factor * tensor, rtol=1e-5, atol=1e-7)
    torch.save({"state_dict": {k: v for k, v in state.items() if "encoder.block.6" not in k}}, path)
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("encoder.conv2")}):
        load_original(other, path)
