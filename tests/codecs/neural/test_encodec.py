"""EnCodec against the `encodec` package with the same seeded weights, one item at a time, and in batches."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest
import torch
from random_codecs import networks_once
from refusals import refuses

from codec_bench.audio.resample import resample
from codec_bench.codecs import load_codec
from codec_bench.codecs.neural import encodec
from codec_bench.types import Audio

# Around every multiple that matters: the hop of 320, six and seven frames (what the widest padding reflects), and for
# 48 kHz the stride of 47520 and the chunk of 48000.
LENGTHS = {
    "24khz": (1, 2, 7, 100, 319, 320, 321, 641, 1919, 1920, 1921, 2240, 2241, 5003, 9600, 24001),
    "48khz": (1, 100, 320, 2001, 47520, 47521, 47680, 47850, 48000, 48001, 95400),
}


@pytest.fixture(scope="module", autouse=True)
def _networks_once():
    with networks_once(encodec, most=2):
        yield


@lru_cache(maxsize=2)
def built(model, kbps, weights="random"):
    return load_codec(f"encodec-{model}@{kbps}", weights=weights)


def renamed(state):
    """The names of transformers' tensors as those of the `encodec` package."""
    out = {}
    for name, tensor in state.items():
        role = name.split(".")[0]
        name = name.replace("parametrizations.weight.original0", "weight_g").replace(
            "parametrizations.weight.original1", "weight_v"
        )
        if role in ("encoder", "decoder"):
            name = name.replace(f"{role}.layers", f"{role}.model")
            up = role == "decoder" and re.match(r"decoder\.model\.(3|6|9|12)\.", name)
            inner = "convtr.convtr" if up else "conv.conv"
            name = name.replace(".conv.", f".{inner}.")
            name = name.replace(".norm.", f".{inner.split('.')[0]}.norm.")
        else:
            name = name.replace("quantizer.layers", "quantizer.vq.layers").replace(".codebook.", "._codebook.")
        out[name] = tensor
    return out


@lru_cache(maxsize=1)
def reference(model, kbps, weights="random"):
    from encodec import EncodecModel, modules

    ours = built(model, kbps, weights)._net
    sizes = {"n_filters": ours.config.num_filters, "dimension": ours.config.hidden_size}
    with pytest.MonkeyPatch.context() as patch:
        if weights == "random":
            for name in ("SEANetEncoder", "SEANetDecoder"):
                patch.setattr(modules, name, partial(getattr(modules, name), **sizes))
        net = getattr(EncodecModel, f"encodec_model_{model}")(pretrained=False)
    net.load_state_dict(renamed(ours.state_dict()))  # strict: every name and shape must match
    net.set_target_bandwidth(float(kbps))
    return net.eval()


def sound(model, length, seed=0):
    """A tone that glides, with noise; at 48 kHz with two different channels."""
    rate_hz, channels = (24000, 1) if model == "24khz" else (48000, 2)
    rng = np.random.default_rng([seed, length])
    time = np.arange(length) / rate_hz
    wave = 0.2 * np.sin(2 * np.pi * (200 * time + 150 * time**2)) + 0.05 * rng.standard_normal(length)
    return Audio(np.stack([wave, 0.5 * wave + 0.02 * rng.standard_normal(length)])[:channels], rate_hz)


def flips(a, b):
    assert a.shape == b.shape
    return int((a != b).sum())


@pytest.mark.parametrize(
    ("model", "kbps", "weights"),
    [
        ("24khz", 1.5, "random"),
        ("24khz", 24, "random"),
        ("48khz", 6, "random"),
        ("24khz", 6, "random-full"),
        pytest.param("48khz", 6, "random-full", marks=pytest.mark.long),
    ],
)
def test_codes_and_waves_are_those_of_the_encodec_package(model, kbps, weights):
    codec, net = built(model, kbps, weights), reference(model, kbps, weights)
    some = slice(None) if weights == "random" else slice(2, None, 6)
    batch = [sound(model, length) for length in LENGTHS[model][some]]
    ours = codec.encode(batch)
    waves = codec.decode(ours)
    wrong = total = compared = 0
    with torch.inference_mode():
        for audio, codes, wave in zip(batch, ours, waves, strict=True):
            frames = net.encode(torch.from_numpy(audio.samples)[None])
            theirs = torch.cat([chunk[0] for chunk, _ in frames], dim=1).numpy()
            different = flips(codes.streams[0].values, theirs)
            wrong, total = wrong + different, total + theirs.size
            if model == "48khz":
                scales = torch.cat([scale.flatten() for _, scale in frames]).numpy()
                np.testing.assert_allclose(codes.side["scales"], scales, rtol=1e-6)
            if different or (160 < audio.num_samples % 47520 <= 320 and model == "48khz" and len(frames) > 1):
                continue  # the package fails if the last chunk ends before the chunk in front of it
            theirs = net.decode(frames)[0, :, : audio.num_samples].numpy()
            np.testing.assert_allclose(wave.samples, theirs, rtol=0, atol=1e-4 * max(1.0, np.abs(theirs).max()))
            compared += 1
    assert wrong <= 1e-4 * total
    assert compared >= len(batch) - 2


@pytest.mark.parametrize("kbps", [24])
def test_the_padded_passes_of_a_gpu_give_the_same_codes_and_waves(kbps):
    # On a CPU every item goes through the convolutions alone; a GPU takes all of them in one padded pass.
    codec = built("24khz", kbps)
    batch = [sound("24khz", length) for length in LENGTHS["24khz"]]
    alone = codec.encode(batch)
    with torch.inference_mode():
        padded = codec._encode_causal(batch)
        waves = codec._decode_causal(alone)
    wrong = sum(flips(a.streams[0].values, b.streams[0].values) for a, b in zip(alone, padded, strict=True))
    assert wrong <= 1e-4 * sum(item.streams[0].values.size for item in alone)
    for wave, expected in zip(waves, codec.decode(alone), strict=True):
        np.testing.assert_allclose(wave.samples, expected.samples, rtol=0, atol=1e-4)


def test_pieces_of_a_long_item_make_no_difference(monkeypatch):
    codec, net = built("24khz", 6), reference("24khz", 6)
    for frames in (8, 11):
        monkeypatch.setattr("codec_bench.codecs.neural.encodec._PIECE_FRAMES", frames)
        for length in (17 * 320 - 1, 24 * 320, 24001):
            audio = sound("24khz", length)
            (codes,) = codec.encode([audio])
            with torch.inference_mode():
                theirs = net.encode(torch.from_numpy(audio.samples)[None])
                wave = net.decode(theirs)[0, :, :length].numpy()
            assert np.array_equal(codes.streams[0].values, theirs[0][0][0].numpy())
            np.testing.assert_allclose(codec.decode([codes])[0].samples, wave, rtol=0, atol=1e-4)


def test_lengths_where_the_package_fails_are_decoded():
    codec, net = built("48khz", 6), reference("48khz", 6)
    audio = sound("48khz", 47520 + 300)
    with torch.inference_mode(), pytest.raises(RuntimeError):
        net.decode(net.encode(torch.from_numpy(audio.samples)[None]))
    (out,) = codec.decode(codec.encode([audio]))
    assert out.samples.shape == audio.samples.shape
    # Before the second chunk begins, it is the first chunk's own decoding.
    with torch.inference_mode():
        first = net._decode_frame(net._encode_frame(torch.from_numpy(audio.samples[:, :48000])[None]))[0].numpy()
    np.testing.assert_allclose(out.samples[:, :47520], first[:, :47520], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("model", "kbps"), [("24khz", 24), ("48khz", 24)])
def test_a_batch_of_speech_equals_one_by_one(model, kbps, spoken):
    codec = built(model, kbps)
    rate_hz, channels = codec.info.sample_rates_hz[0], codec.info.channels[0]
    keep_s, every = (1.0, 4) if model == "24khz" else (1.2, 8)
    batch = []
    for k, (_, audio) in enumerate(spoken[::every]):
        length = int(audio.sample_rate_hz * keep_s * (0.4 + 0.6 * ((k * 7) % 11) / 10))  # ragged
        wave = resample(audio.samples[:, :length], audio.sample_rate_hz, rate_hz)
        batch.append(Audio(np.concatenate([wave, wave])[:channels], rate_hz))
    alone = [codec.encode([audio])[0] for audio in batch]
    order = np.random.default_rng(1).permutation(len(batch))
    together = codec.encode([batch[k] for k in order])
    wrong = sum(flips(alone[k].streams[0].values, codes.streams[0].values) for k, codes in zip(order, together))
    assert wrong <= 1e-4 * sum(codes.streams[0].values.size for codes in alone)
    waves = codec.decode([alone[k] for k in order])
    for k, wave in zip(order, waves):
        (single,) = codec.decode([alone[k]])
        np.testing.assert_allclose(wave.samples, single.samples, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("model", "kbps", "codebooks"),
    [("24khz", 1.5, 2), ("24khz", 3, 4), ("24khz", 12, 16), ("48khz", 3, 2), ("48khz", 24, 16)],
)
def test_the_bitrate_is_derived_from_the_codes(model, kbps, codebooks):
    codec = built(model, kbps)
    rate_hz = codec.info.sample_rates_hz[0]
    (codes,) = codec.encode([sound(model, rate_hz)])
    (stream,) = codes.streams
    frame_rate_hz = rate_hz / 320
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape[0]) == (1024, frame_rate_hz, codebooks)
    assert stream.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == kbps * 1000
    if model == "24khz":
        assert codes.bits == codebooks * 75 * 10
    else:  # 48000 samples are a chunk of 150 frames and one of the last 480 samples, each with its scale
        assert codes.bits == codebooks * (150 + 2) * 10 + 2 * 32
        assert codes.nominal_bitrate_bps == kbps * 1000 + 64


def test_codes_that_do_not_fit_are_refused():
    codec = built("48khz", 6)
    (codes,) = codec.encode([sound("48khz", 5000)])
    (stream,) = codes.streams
    for broken, says in (
        (replace(codes, num_samples=9999), {"code": "codes_unexpected"}),
        (replace(codes, streams=()), {"code": "codes_unexpected", "shapes": "0 streams"}),
        (replace(codes, streams=(replace(stream, values=stream.values[:2]),)), {"code": "codes_unexpected"}),
        (
            replace(codes, streams=(replace(stream, values=stream.values + 1024),)),
            {"code": "codes_beyond", "highest": 1023},
        ),
        (replace(codes, side={}), {"code": "codes_without_scales"}),
    ):
        with refuses(**says):
            codec.decode([broken])
