"""ChatTTS's codec against numbers of the original with the same stand-in weights, one item at
a time, and in batches.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest
import torch
from glides import glide
from golden_files import golden
from random_codecs import built
from refusals import Containing, refuses
from safetensors.torch import save_file

from codec_bench.audio.resample import resample
from codec_bench.codecs import load_codec
from codec_bench.codecs.neural.base import stack
from codec_bench.networks import chattts as chattts_net
from codec_bench.networks.gfsq import GroupedResidualFSQ
from codec_bench.types import Audio

GOLDEN = Path(__file__).parents[2] / "golden"
FACTS = golden("chattts_dvae")
EXPECTED, TOLERANCE = FACTS["expected"], FACTS["tolerance"]
EMBEDDED = golden("embedded_speech")["chattts_dvae"]
FSQ = golden("chattts_dvae_gfsq")
DVAE_FILE, VOCOS_FILE = "asset/DVAE_full.pt", "asset/Vocos.pt"
sound = partial(glide, rate_hz=24000)


def published(folder):
    """Stand-in weights in the layout of the published files, with a constant that these also hold."""
    (folder / "asset").mkdir()
    for file, names, constant in (
        (DVAE_FILE, "chattts_dvae_keys.json", "preprocessor_mel.mel_spec.mel_scale.fb"),
        (VOCOS_FILE, "chattts_dvae_vocos_keys.json", "feature_extractor.mel_spec.mel_scale.fb"),
    ):
        state = {n: torch.from_numpy(v) for n, v in deterministic_weights.state_dict_from(GOLDEN / names).items()}
        torch.save(state | {constant: torch.zeros(513, 100)}, folder / file)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return published(tmp_path_factory.mktemp("chattts"))


@pytest.fixture(scope="module")
def full(folder):
    """The codec with stand-in weights, loaded from files in the published layout."""
    return load_codec("chattts-dvae", weights=str(folder))


@pytest.fixture(scope="module")
def clip(speech_set, spoken):
    """A clip of speech at 24 kHz, and what the original makes of it."""
    facts = FACTS if speech_set == "recordings" else EMBEDDED
    name = facts["input"]["file"].removesuffix(".wav") if speech_set == "recordings" else facts["input"]["id"]
    (audio,) = [audio for row, audio in spoken if row["id"] == name]
    wave = resample(audio.samples, audio.sample_rate_hz, 24000)
    assert wave.shape == (1, facts["input"]["samples"])
    assert float(np.sum(wave.astype(np.float64) ** 2)) == pytest.approx(facts["input"]["sum_of_squares"], rel=1e-6)
    return Audio(wave, 24000), facts["expected"]


def test_the_original_s_codes_decode_to_its_wave(full):
    blank = built("chattts-dvae").encode([Audio(np.zeros(FACTS["input"]["samples"]), 24000)])[0]
    values = np.array(EXPECTED["codes"])
    codes = replace(blank, streams=(replace(blank.streams[0], values=values),))
    with torch.inference_mode():
        mel = full._net.decode(torch.from_numpy(values)[None])[0]
    expected = EXPECTED["decoded_mel"]
    assert list(mel.shape) == expected["shape"]
    assert mel[:4, 10].tolist() == pytest.approx(expected["frame_10_first_4"], abs=TOLERANCE["decoded_mel_absolute"])
    assert mel.double().mean().item() == pytest.approx(expected["mean"], abs=1e-5)
    assert mel.double().std(correction=0).item() == pytest.approx(expected["std_population"], abs=1e-5)
    (audio,) = full.decode([codes])
    decoded, wave = EXPECTED["decoded"], audio.samples[0].astype(np.float64)
    actual = wave[: decoded["samples"]]
    tolerance = TOLERANCE["decoded_absolute_relative_to_abs_max"] * decoded["abs_max"]
    assert wave.size == FACTS["input"]["samples"] and not wave[decoded["samples"] :].any()
    assert np.abs(actual[1000:1032] - decoded["first_32_at_1000"]).max() < tolerance
    assert abs(np.abs(actual).max() - decoded["abs_max"]) < tolerance
    assert abs(np.sqrt(np.mean(actual**2)) / decoded["rms"] - 1) < TOLERANCE["decoded_rms_relative"]
    assert abs(np.abs(actual).sum() - decoded["sum_of_absolute_values"]) < 1e-4 * decoded["sum_of_absolute_values"]


def test_speech_gets_the_original_s_codes(full, clip):
    """But for the rounding errors of its resampling.

    The clip has 16 kHz, so of its mel bands above 8 kHz some hold nothing but rounding errors. They are within a few
    times the floor of the logarithm: the last bit of the samples moves the encoder's output by 0.01 and some of the
    codes. The original's own codes on another machine differ as much, so equal codes cannot be asked for; a quantiser
    without its first bounding has other codes in 30 % to 80 % of the frames.
    """
    audio, originals = clip
    with torch.inference_mode():
        mel = full._net.log_mels(torch.from_numpy(audio.samples)[None], [audio.num_samples])[0]
        hidden = full._net.hidden(mel[None])[0]
    for name, tensor, tolerance in (("log_mel", mel, 1e-5), ("encoder_output", hidden, 0.03)):
        expected = originals[name]
        assert list(tensor.shape) == expected["shape"], name
        assert tensor[:4, 10].tolist() == pytest.approx(expected["frame_10_first_4"], abs=tolerance), name
        assert tensor.double().mean().item() == pytest.approx(expected["mean"], abs=TOLERANCE[f"{name}_absolute"])
        assert tensor.double().std(correction=0).item() == pytest.approx(
            expected["std_population"], abs=TOLERANCE[f"{name}_absolute"]
        )
    (codes,) = full.encode([audio])
    got, expected = codes.streams[0].values, np.array(originals["codes"])
    assert got.shape == expected.shape
    equal = (got == expected).mean(axis=1)
    assert (equal[[0, 2]] > 0.98).all() and (equal[[1, 3]] > 0.93).all(), equal
    for row in (0, 2):  # where a first stage differs, it is by one step of one digit
        for mine, theirs in zip(got[row], expected[row]):
            steps = [abs(int(mine) // index % 5 - int(theirs) // index % 5) for index in (1, 5, 25, 125)]
            assert sum(steps) <= 1, (row, mine, theirs)


def test_without_the_first_bounding_the_codes_are_those_of_later_releases(folder, clip):
    codec = load_codec("chattts-dvae", weights=str(folder), bound_first=False)
    audio, originals = clip
    (codes,) = codec.encode([audio])
    facts = originals["codes_without_first_bound"]
    equal = (codes.streams[0].values[:, :16] == np.array(facts["rows_first_16"])).mean(axis=1)
    assert (equal > 0.9).all()
    common = (codes.streams[0].values == np.array(originals["codes"])).mean(axis=1)
    assert common.tolist() == pytest.approx(facts["fraction_equal_per_row"], abs=0.03)


@pytest.mark.parametrize("case", FSQ["cases"], ids=lambda case: "x".join(map(str, case["levels"])))
def test_the_quantiser_is_that_of_vector_quantize_pytorch(case):
    net = GroupedResidualFSQ(
        case["dim"], case["levels"], groups=case["groups"], stages=case["stages"], bound_first=True
    )
    net.load_state_dict(deterministic_weights.stand_in(net))
    noise = 2 * np.random.RandomState(7).standard_normal((1, 40, case["dim"]))
    with torch.inference_mode():
        codes = net.search(torch.from_numpy(noise.astype(np.float32)))
        values = net.lookup(codes)
    assert codes[0].T.tolist() == case["codes"]
    assert values[0, 0, :16].tolist() == pytest.approx(case["values_of_first_frame"], abs=1e-6)


def test_a_padded_pass_equals_one_item_at_a_time_to_float32_before_it_is_rounded():
    net = built("chattts-dvae")._net
    with torch.inference_mode():
        waves, lengths = [sound(length).samples for length in (5003, 24001, 1279)], (5003, 24001, 1279)
        mels = [net.log_mels(torch.from_numpy(wave)[None], [wave.shape[1]])[0] for wave in waves]
        frames = [mel.shape[1] for mel in mels]
        padded = net.log_mels(torch.from_numpy(stack(waves, max(lengths))), lengths)
        for actual, mel, count in zip(padded, mels, frames):
            torch.testing.assert_close(actual[:, :count], mel, rtol=1e-6, atol=1e-6)
            actual[:, count:] = 7.0
        together = net.hidden(padded, torch.tensor(frames))
        for mel, actual, count in zip(mels, together, frames):
            expected = net.hidden(mel[None])[0]
            assert expected.shape[1] == count // 2
            torch.testing.assert_close(
                actual[:, : count // 2], expected, rtol=1e-5, atol=1e-5 * expected.abs().max().item()
            )


def test_a_short_item_is_coded_as_if_silence_followed_it():
    audio = sound(200)
    longer = Audio(np.pad(audio.samples, ((0, 0), (0, 313))), 24000)
    short, long = built("chattts-dvae").encode([audio, longer])
    assert np.array_equal(short.streams[0].values, long.streams[0].values)
    wave, longer_wave = built("chattts-dvae").decode([short, long])
    assert np.array_equal(wave.samples, longer_wave.samples[:, :200])


@pytest.mark.parametrize(
    ("samples", "frames"), [(1, 1), (513, 1), (767, 1), (768, 2), (1279, 2), (1280, 3), (24000, 47)]
)
def test_frames_and_bits_follow_from_the_length(samples, frames):
    (codes,) = built("chattts-dvae").encode([sound(samples)])
    (stream,) = codes.streams
    assert stream.values.shape == (4, frames)
    assert codes.bits == pytest.approx(4 * frames * math.log2(625))
    assert stream.nominal_bitrate_bps == pytest.approx(1741.446) == built("chattts-dvae").info.nominal_bitrate_bps


def test_codes_that_do_not_fit_are_refused():
    (codes,) = built("chattts-dvae").encode([sound(5000)])
    (stream,) = codes.streams
    with refuses("codes_unexpected", samples=5000, expected="(4, 10)"):
        built("chattts-dvae").decode([replace(codes, streams=(replace(stream, values=stream.values[:, :9]),))])
    with refuses("codes_beyond", highest=624):
        built("chattts-dvae").decode([replace(codes, streams=(replace(stream, values=stream.values + 625),))])


def test_the_names_of_the_safetensors_files_are_known(full, folder, tmp_path):
    (tmp_path / "asset").mkdir()
    for file in (DVAE_FILE, VOCOS_FILE):
        state = torch.load(folder / file, weights_only=True)
        renamed = {
            re.sub(r"((decoder_block|convnext)\.\d+)\.gamma", r"\1.weight", name): v for name, v in state.items()
        }
        assert renamed.keys() != state.keys()
        save_file(renamed, (tmp_path / file).with_suffix(".safetensors"))
    (tmp_path / "asset" / "DVAE_full.safetensors").rename(tmp_path / "asset" / "DVAE.safetensors")
    other = load_codec("chattts-dvae", weights=str(tmp_path))
    for mine, theirs in ((full._net, other._net), (full._vocos, other._vocos)):
        for name, value in mine.state_dict().items():
            assert torch.equal(value, theirs.state_dict()[name]), name


def test_weights_of_another_model_are_refused(folder, tmp_path):
    with refuses("weights_are_one_file"):
        load_codec("chattts-dvae", weights=str(folder / DVAE_FILE))
    (tmp_path / "asset").mkdir()
    state = torch.load(folder / DVAE_FILE, weights_only=True)
    del state["decoder.decoder_block.3.gamma"]
    torch.save(state, tmp_path / DVAE_FILE)
    torch.save({}, tmp_path / VOCOS_FILE)
    with refuses(
        "tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("decoder.decoder_block.3.gamma")}
    ):
        load_codec("chattts-dvae", weights=str(tmp_path))


def test_the_network_takes_what_the_published_files_hold_and_no_more():
    for net, file in (
        (chattts_net.Dvae(), "chattts_dvae_keys"),
        (chattts_net.Vocos(), "chattts_dvae_vocos_keys"),
    ):
        shapes = golden(file)
        mine = {name: list(value.shape) for name, value in net.state_dict().items()}
        assert mine == {
            n: s for n, s in shapes.items() if not n.startswith(("preprocessor_mel.", "feature_extractor."))
        }
