"""BigCodec against the reference's codes and waves for stand-in weights, and batches against items alone."""

from __future__ import annotations

from dataclasses import replace

import deterministic_weights
import numpy as np
import pytest
from glides import glide, golden_glide
from golden_files import golden
from random_codecs import built
from refusals import Containing, refuses

from codec_bench.codecs import load_codec

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("all_together")


def split_names(state):
    """Our tensors under the names of the published file, in which a weight is a gain and a direction."""
    out = {}
    for name, value in state.items():
        if value.ndim >= 2 and name.endswith(".weight") and "_codebook" not in name and "lstm" not in name:
            stem = name.removesuffix("weight")
            out[f"{stem}weight_g"] = value.new_zeros(len(value), *[1] * (value.ndim - 1))
            out[f"{stem}weight_v"] = value
        else:
            out[name] = value
    return out


def stand_in(name, shape, custom_file):
    """The weights that the reference had, as bigcodec_small.json describes them."""
    if name.endswith("filter"):
        return custom_file
    values = deterministic_weights.values_for(name, tuple(shape))
    if "bias" in name:
        values = np.float32(0.1) * values
    if name.endswith("act.alpha"):
        values = values - np.float32(2)
    if name.endswith(".block.3.weight_g"):
        values = np.float32(0.3) * values
    if name.endswith("weight_g") and values.size == 1:
        values = np.float32(200) * values
    return torch.from_numpy(values)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The codec at the small size of the golden file, from a file in the published layout."""
    from codec_bench.networks.bigcodec import BigCodecDecoder, BigCodecEncoder, BigCodecShape

    small = BigCodecShape(filters=4, latent_dim=32)
    path = tmp_path_factory.mktemp("bigcodec") / "bigcodec.pt"
    parts = {
        item: {name: stand_in(name, value.shape, value) for name, value in split_names(net.state_dict()).items()}
        for item, net in (("CodecEnc", BigCodecEncoder(small)), ("generator", BigCodecDecoder(small)))
    }
    torch.save({**parts, "discriminator": {"x": torch.zeros(1)}}, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codec_bench.networks.bigcodec.BigCodecShape", lambda: small)
        return load_codec("bigcodec", weights=str(path))


def test_tensors_have_the_names_and_shapes_of_the_published_file():
    from codec_bench.networks.bigcodec import BigCodecDecoder, BigCodecEncoder, BigCodecShape

    for item, kind in (("CodecEnc", BigCodecEncoder), ("generator", BigCodecDecoder)):
        with torch.device("meta"):
            ours = split_names(kind(BigCodecShape()).state_dict())
        assert {name: list(value.shape) for name, value in ours.items()} == golden("bigcodec_keys")[item]


def test_codes_and_waves_are_the_references(published):
    clips = golden("bigcodec_small")["clips"]
    batch = [golden_glide(clip["samples"]) for clip in clips]
    together = published.encode(batch)
    for clip, audio, codes in zip(clips, batch, together, strict=True):
        frames = audio.num_samples // 200 + 1  # a whole frame more where the length is a multiple of 200
        assert codes.streams[0].values.shape == (1, frames)
        assert clip["smallest_margin_of_the_cosine"] > 1e-6
        assert codes.streams[0].values[0].tolist() == clip["codes"]
    complete = [replace(codes, num_samples=200 * codes.streams[0].values.shape[1] - 1) for codes in together]
    for clip, out in zip(clips, published.decode(complete), strict=True):
        wave, facts = out.samples[0].astype(np.float64), clip["decoded"]
        np.testing.assert_allclose(wave[-15:], facts["last_16"][:-1], rtol=0, atol=1e-5)
        assert np.abs(wave).sum() + abs(facts["last_16"][-1]) == pytest.approx(
            facts["sum_of_absolute_values"], rel=1e-5
        )
        assert np.abs(wave).max() == pytest.approx(facts["abs_max"], rel=1e-4)


def test_latents_are_the_references(published):
    for clip in golden("bigcodec_small")["clips"]:
        wave = torch.from_numpy(golden_glide(clip["samples"]).samples)
        wave = torch.nn.functional.pad(wave, (0, 200 - clip["samples"] % 200))
        with torch.inference_mode():
            latents = published._encoder(wave[None], [wave.shape[1]])[0]
        facts = clip["latents"]
        scale = facts["std_population"]
        np.testing.assert_allclose(latents[:4, 0], facts["first_frame_first_4"], rtol=0, atol=1e-5 * scale)
        assert latents.std(correction=0).item() == pytest.approx(scale, rel=1e-5)


def test_what_lies_beyond_an_item_does_not_reach_it():
    codec = built("bigcodec")
    latents, frames = torch.randn(2, 32, 30), [30, 9]
    with torch.inference_mode():
        first = codec._decoder(latents.clone(), frames)
        latents[1, :, 9:] = 100.0
        assert torch.equal(first[1, :, :1800], codec._decoder(latents.clone(), frames)[1, :, :1800])
        alone = codec._decoder(latents[1:, :, :9].clone(), [9])
    torch.testing.assert_close(first[1:, :, :1800], alone, rtol=0, atol=1e-5)


def test_an_activation_is_interpolation_snake_and_decimation():
    from codec_bench.networks.bigcodec import Activation

    layer = Activation(3).double()
    with torch.no_grad():
        layer.act.alpha.normal_()
        layer.act.beta.normal_()
        x = torch.randn(1, 3, 20, dtype=torch.float64)
        taps = layer.upsample.filter[0, 0]
        # The plain definition: zeros between the samples and a filter, with the ends repeated far enough.
        wide = torch.nn.functional.pad(x, (8, 8), mode="replicate")
        between = torch.zeros(1, 3, 72, dtype=torch.float64)
        between[..., ::2] = 2 * wide
        fine = torch.nn.functional.conv1d(between, taps.flip(0)[None, None].repeat(3, 1, 1), padding=11, groups=3)
        fine = fine[..., 5 + 16 : 5 + 16 + 40]
        alpha, beta = layer.act.alpha.exp()[:, None], layer.act.beta.exp()[:, None]
        fine = fine + torch.sin(alpha * fine) ** 2 / (beta + 1e-9)
        fine = torch.nn.functional.pad(fine, (5, 6), mode="replicate")
        expected = torch.nn.functional.conv1d(fine, taps[None, None].repeat(3, 1, 1), stride=2, groups=3)
        torch.testing.assert_close(layer(x.clone(), [20]), expected, rtol=0, atol=1e-12)


def test_the_bitrate_is_derived_from_the_codes():
    codec = built("bigcodec")
    (codes,) = codec.encode([glide(15999)])
    (stream,) = codes.streams
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape) == (8192, 80.0, (1, 80))
    assert codes.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == codes.bits == 1040


def test_files_and_codes_that_do_not_fit_are_refused(tmp_path):
    (codes,) = built("bigcodec").encode([glide(5000)])
    with refuses("codes_unexpected", samples=5200):
        built("bigcodec").decode([replace(codes, num_samples=5200)])
    torch.save({"CodecEnc": {"a": torch.zeros(1)}}, tmp_path / "a.pt")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("block.0")}):
        load_codec("bigcodec", weights=str(tmp_path / "a.pt"))
    torch.save({"model": {}}, tmp_path / "b.pt")
    with refuses("no_weights_entry", key="CodecEnc"):
        load_codec("bigcodec", weights=str(tmp_path / "b.pt"))
