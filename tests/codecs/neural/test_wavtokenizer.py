"""WavTokenizer against the reference's codes and waves for stand-in weights, and batches against items alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest
from glides import glide
from golden_files import golden
from random_codecs import built
from refusals import Containing, refuses

from codec_bench.audio.resample import resample
from codec_bench.codecs import load_codec
from codec_bench.codecs.neural.wavtokenizer import WavTokenizer
from codec_bench.types import Audio

torch = pytest.importorskip("torch")

GOLDEN = Path(__file__).parents[2] / "golden"
FULL = "wavtokenizer_large_speech_75token"
NAMES = {75: "wavtokenizer-large-speech-75token", 40: "wavtokenizer-large-unify-40token"}
sound = partial(glide, rate_hz=24000)
pytestmark = pytest.mark.usefixtures("all_together")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The codec at its full size, from a file in the published layout with stand-in weights."""
    path = tmp_path_factory.mktemp("wavtokenizer") / "wavtokenizer_large_speech_320_v2.ckpt"
    state = deterministic_weights.state_dict_from(GOLDEN / f"{FULL}_keys.json")
    tensors = {name: torch.from_numpy(value) for name, value in state.items()}
    other = {"multiperioddisc.discriminators.0.convs.0.bias": torch.zeros(32)}  # used in training only; ignored
    torch.save(
        {"epoch": 3, "global_step": 7, "state_dict": {**tensors, **other}, "hyper_parameters": {"x": 1e-4}}, path
    )
    tensors.clear()
    deterministic_weights.release(state)  # half a gigabyte, which the codec reads again
    codec = load_codec(NAMES[75], weights=str(path))
    path.unlink()
    return codec


def flips(a, b):
    assert a.shape == b.shape
    return np.flatnonzero(a != b).tolist()


@pytest.mark.parametrize(("name", "rate"), [(FULL, 75), ("wavtokenizer_large_unify_40token", 40)])
def test_tensors_have_the_names_and_shapes_of_the_published_file(name, rate):
    from codec_bench.networks.wavtokenizer import WavTokenizerNet, WavTokenizerShape
    from codec_bench.networks.weight_norm import fold_weight_norm

    keys = golden(f"{name}_keys")
    with torch.device("meta"):
        net = WavTokenizerNet(WavTokenizerShape({75: (8, 5, 4, 2), 40: (6, 5, 5, 4)}[rate], {75: 1280, 40: 2400}[rate]))
        folded = fold_weight_norm({key: torch.zeros(shape) for key, shape in keys.items()})
    extra = {k for k in folded if ".decoder." in k or k.endswith(("inited", "cluster_size", "embed_avg"))}
    expected = {key: tuple(value.shape) for key, value in folded.items() if key not in extra}
    assert {key: tuple(value.shape) for key, value in net.state_dict().items()} == expected
    assert len(extra) == 3 + 44


def test_waves_of_passed_codes_are_the_references(published):
    expected = golden(FULL)["clip"]["expected"]
    codes = np.array(expected["codes"]["all"])[None]
    (template,) = published.encode([sound(320 * codes.shape[1])])
    item = replace(template, streams=(replace(template.streams[0], values=codes),))
    (out,) = published.decode([item])
    wave, facts = out.samples[0].astype(np.float64), expected["decoded"]
    assert wave.shape == (facts["samples"],)
    np.testing.assert_allclose(wave[1000:1032], facts["first_32_at_1000"], rtol=0, atol=1e-4 * facts["abs_max"])
    assert np.sqrt(np.mean(wave**2)) == pytest.approx(facts["rms"], rel=1e-5)
    assert np.abs(wave).max() == pytest.approx(facts["abs_max"], rel=1e-4)
    assert np.abs(wave).sum() == pytest.approx(facts["sum_of_absolute_values"], rel=1e-5)
    assert wave.sum() == pytest.approx(facts["sum"], abs=1e-5 * facts["sum_of_absolute_values"])


def test_codes_of_speech_are_the_references(published, speech_set, spoken):
    clip = golden(FULL)["clip"] if speech_set == "recordings" else golden("embedded_speech")[FULL]
    (audio,) = [audio for row, audio in spoken if row["id"] == clip["input"]["id"]]
    wave = resample(audio.samples, audio.sample_rate_hz, 24000)
    assert wave.shape == (1, clip["input"]["samples"])
    assert np.square(wave, dtype=np.float64).sum() == pytest.approx(clip["input"]["sum_of_squares"], rel=1e-6)
    expected = clip["expected"]
    with torch.inference_mode():
        latents = published._net.latents(torch.from_numpy(wave)[None], [wave.shape[1]])[0]
    np.testing.assert_allclose(latents[:4, 0], expected["encoder_output"]["first_frame_first_4"], rtol=0, atol=1e-4)
    assert latents.std(correction=0).item() == pytest.approx(expected["encoder_output"]["std_population"], abs=1e-5)
    (codes,) = published.encode([Audio(wave, 24000)])
    different = flips(codes.streams[0].values[0], np.array(expected["codes"]["all"]))
    assert set(different) <= set(expected["code_margin"]["unsafe_frames"])


def test_what_lies_beyond_an_item_does_not_reach_it():
    net = built(NAMES[75])._net
    codes, frames = torch.randint(0, 4096, (2, 50)), [50, 13]
    waves = torch.randn(2, 1, 16000)
    with torch.inference_mode():
        latents, decoded = net.latents(waves, [16000, 4007]), net.waves(codes, frames)
        waves[1, :, 4007:], codes[1, 13:] = 100.0, 7
        again, redecoded = net.latents(waves, [16000, 4007]), net.waves(codes, frames)
    assert torch.equal(latents[1, :, :13], again[1, :, :13])
    assert torch.equal(decoded, redecoded) and not decoded[1, 13 * 320 :].any()


def test_masked_group_norm_is_the_group_norm_of_each_item():
    from codec_bench.networks.wavtokenizer import GroupNorm

    norm = GroupNorm(768)  # groups of 24 channels, as published: the variance of only a few values may be almost zero
    torch.manual_seed(0)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
        batch, mask = 5 + 3 * torch.randn(3, 768, 20), torch.ones(3, 1, 20)
        for row, length in enumerate((20, 1, 7)):
            mask[row, :, length:] = 0
            batch[row, :, length:] = 1e3
            expected = torch.nn.functional.group_norm(batch[row, None, :, :length], 32, norm.weight, norm.bias, 1e-6)
            ours = norm(batch, mask)[row]
            torch.testing.assert_close(ours[:, :length], expected[0], rtol=0, atol=2e-5)
            assert not ours[:, length:].any()


@pytest.mark.parametrize("rate", [75, 40])
def test_the_bitrate_is_derived_from_the_codes(rate):
    codec = built(NAMES[rate])
    (codes,) = codec.encode([sound(24000)])
    (stream,) = codes.streams
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape) == (4096, rate, (1, rate))
    assert codes.bits == codes.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == rate * 12


def test_codes_that_do_not_fit_are_refused():
    codec = built(NAMES[75])
    (codes,) = codec.encode([sound(5000)])
    (stream,) = codes.streams
    for broken, says in (
        (replace(codes, num_samples=9999), {"code": "codes_unexpected", "samples": 9999}),
        (replace(codes, streams=()), {"code": "codes_unexpected", "shapes": "0 streams"}),
        (
            replace(codes, streams=(replace(stream, values=stream.values + 4096),)),
            {"code": "codes_beyond", "highest": 4095},
        ),
    ):
        with refuses(**says):
            codec.decode([broken])


def test_another_frame_rate_is_refused():
    with refuses("codec_frame_rate", frame_rate_hz=50):
        WavTokenizer.describe(50, "x")


def test_weights_of_the_other_variant_are_recognised_by_their_shapes(tmp_path, monkeypatch):
    from codec_bench.codecs.neural import wavtokenizer
    from codec_bench.networks.wavtokenizer import WavTokenizerShape

    state = built(NAMES[75])._net.state_dict()
    # At the small size, so that the files are small: only the strides and the window tell the variants apart.
    monkeypatch.setattr(
        "codec_bench.networks.wavtokenizer.WavTokenizerShape",
        lambda ratios, window: WavTokenizerShape(ratios, window, **wavtokenizer._SMALL),
    )
    torch.save({"state_dict": state}, tmp_path / "a.ckpt")
    again = load_codec(NAMES[75], weights=str(tmp_path / "a.ckpt"))
    audio = sound(5000)
    assert (
        flips(again.encode([audio])[0].streams[0].values, built(NAMES[75]).encode([audio])[0].streams[0].values) == []
    )
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "reshaped": Containing("(expected")}):
        load_codec(NAMES[40], weights=str(tmp_path / "a.ckpt"))
    torch.save({"state_dict": {k: v for k, v in state.items() if "pos_net" not in k}}, tmp_path / "b.ckpt")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("backbone.pos_net")}):
        load_codec(NAMES[75], weights=str(tmp_path / "b.ckpt"))
    torch.save(state, tmp_path / "c.ckpt")
    with refuses("no_weights_entry", key="state_dict"):
        load_codec(NAMES[75], weights=str(tmp_path / "c.ckpt"))
