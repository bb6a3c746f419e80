"""SNAC against its package, one item at a time, with the same weights and the same noise; and batches."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from glides import glide
from refusals import Containing, refuses

from codec_bench.codecs import load_codec
from codec_bench.codecs.neural import snac as adapter

torch = pytest.importorskip("torch")
package = pytest.importorskip("snac.snac")

MODELS = {"24khz": 24000, "32khz": 32000, "44khz": 44100}
pytestmark = pytest.mark.usefixtures("all_together")


@pytest.fixture(scope="module", params=["24khz", "44khz"])
def pair(request, tmp_path_factory):
    """The codec from a folder in the published layout, at a reduced size, and the package's own network from it."""
    folder = tmp_path_factory.mktemp("snac")
    small = {**adapter._MODELS[request.param], **adapter._SMALL}
    torch.manual_seed(0)
    net = package.SNAC(**small)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if "alpha" in name:
                parameter.mul_(1 + 0.3 * torch.rand_like(parameter))
    torch.save(net.state_dict(), folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(small))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(adapter._MODELS, request.param, small)
        codec = load_codec(f"snac-{request.param}", weights=str(folder))
    return codec, package.SNAC.from_pretrained(str(folder))


@cache
def built(model):
    return load_codec(f"snac-{model}", weights="random")


def test_a_batch_is_what_the_package_gives_for_each_item(pair, monkeypatch):
    codec, net = pair
    rate_hz = codec.info.sample_rates_hz[0]
    batch = [glide(n, seed, rate_hz) for seed, n in enumerate((1, 2047, 2048, 2049, 14112, 14113, 30000))]
    together = codec.encode(batch)
    waves = codec.decode(together)
    real = torch.randn
    for audio, codes, wave in zip(batch, together, waves, strict=True):
        with torch.inference_mode():
            theirs = net.encode(torch.from_numpy(audio.samples)[None])
            for stream, level in zip(codes.streams, theirs, strict=True):
                assert np.array_equal(stream.values, level.numpy())
            generator = codec._noise_of(codes)
            monkeypatch.setattr(torch, "randn", lambda *size, g=generator, **_: real(*size, generator=g))
            expected = net.decode(theirs)[0, :, : audio.num_samples].numpy()
            monkeypatch.setattr(torch, "randn", real)
        np.testing.assert_allclose(wave.samples, expected, rtol=0, atol=1e-5)
        assert np.abs(expected).max() > 1e-4


@pytest.mark.parametrize("model", MODELS)
def test_noise_follows_the_codes_and_the_seed_alone(model):
    codec, other = built(model), load_codec(f"snac-{model}", weights="random", seed=1)
    batch = [glide(n, seed, MODELS[model]) for seed, n in enumerate((9000, 30000, 20000))]
    codes = codec.encode(batch)
    first = codec.decode(codes)
    torch.manual_seed(7)
    for wave, again in zip(first, codec.decode(codes[::-1])[::-1], strict=True):
        np.testing.assert_allclose(wave.samples, again.samples, rtol=0, atol=1e-4)
    for item, wave in zip(codes, first, strict=True):
        np.testing.assert_allclose(codec.decode([item])[0].samples, wave.samples, rtol=0, atol=1e-4)
        assert np.abs(other.decode([item])[0].samples - wave.samples).max() > 1e-3
    (stream, *rest) = codes[0].streams
    changed = replace(stream, values=(stream.values + 1) % 4096)
    assert codec._noise_of(codes[0]).initial_seed() == codec._noise_of(replace(codes[0])).initial_seed()
    assert (
        codec._noise_of(replace(codes[0], streams=(changed, *rest))).initial_seed()
        != codec._noise_of(codes[0]).initial_seed()
    )


@pytest.mark.parametrize(
    ("model", "bitrate_bps", "frames"),
    # Tokens a second as published: 12, 23, 47; 10, 21, 42, 83; 14, 29, 57, 115. One second is padded to whole blocks.
    [("24khz", 984.375, (12, 24, 48)), ("32khz", 1875.0, (12, 24, 48, 96)), ("44khz", 2583.984375, (16, 32, 64, 128))],
)
def test_the_bitrate_is_derived_from_the_codes(model, bitrate_bps, frames):
    codec = built(model)
    (codes,) = codec.encode([glide(MODELS[model], rate_hz=MODELS[model])])
    assert tuple(stream.values.shape for stream in codes.streams) == tuple((1, n) for n in frames)
    assert codes.nominal_bitrate_bps == pytest.approx(codec.info.nominal_bitrate_bps) == bitrate_bps
    assert codes.bits == 12 * sum(frames)
    assert len(np.unique(codes.streams[-1].values)) > 10


def test_what_does_not_fit_is_refused(tmp_path, monkeypatch):
    codec = built("24khz")
    (codes,) = codec.encode([glide(5000, rate_hz=24000)])
    for broken, says in (
        (replace(codes, num_samples=9999), {"code": "codes_unexpected", "samples": 9999}),
        (replace(codes, streams=codes.streams[:2]), {"code": "codes_unexpected", "samples": 5000}),
        (
            replace(
                codes, streams=(*codes.streams[:2], replace(codes.streams[2], values=codes.streams[2].values + 4096))
            ),
            {"code": "codes_beyond", "highest": 4095},
        ),
    ):
        with refuses(**says):
            codec.decode([broken])
    with refuses("no_variant", variant="16khz"):
        adapter.Snac.describe("16khz")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps(adapter._MODELS["32khz"]))
    with refuses("weights_of_another_model", difference="sampling_rate 32000 (expected 44100)"):
        load_codec("snac-44khz", weights=str(tmp_path))
    (tmp_path / "config.json").write_text("[")
    with refuses("file_not_readable"):
        load_codec("snac-44khz", weights=str(tmp_path))
    monkeypatch.setitem(sys.modules, "snac.snac", None)
    with refuses("package_not_installed", package="snac", name=Containing("snac")):
        load_codec("snac-24khz", weights="random")
