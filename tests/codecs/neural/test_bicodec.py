"""BiCodec against numbers of the Spark-TTS code with the same stand-in weights, one item at a time, and in batches."""

from __future__ import annotations

from dataclasses import replace

import deterministic_weights
import numpy as np
import pytest
import torch
from glides import glide
from golden_files import golden
from random_codecs import built
from refusals import refuses
from safetensors.torch import save_file

from codec_bench.codecs import load_codec
from codec_bench.codecs.neural.bicodec import prepared, reference_clip
from codec_bench.networks import bicodec as bicodec_net
from codec_bench.networks.bicodec_config import PUBLISHED, SMALL
from codec_bench.networks.speech_encoder import SpeechEncoder
from codec_bench.types import Audio, CodeStream

FACTS = golden("spark_bicodec")
EXPECTED, TOLERANCE = FACTS["expected"], FACTS["tolerance"]
EMBEDDED = golden("embedded_speech")["spark_bicodec"]
SMALL_FACTS = golden("spark_bicodec_small")
CODEC_FILE, SPEECH_FILE = "BiCodec/model.safetensors", "wav2vec2-large-xlsr-53/pytorch_model.bin"


def not_a_number(shape):
    """A tensor of NaN, which spoils every result that depends on it and takes no space in a file."""
    return torch.full((), torch.nan).expand(shape)


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """The codec with stand-in weights, loaded from files in the published layout.

    What the codec does not need is not a number in the files.
    """
    values_for = deterministic_weights.values_for
    folder = tmp_path_factory.mktemp("spark")
    for file in (CODEC_FILE, SPEECH_FILE):
        (folder / file).parent.mkdir()
    shapes = golden("spark_bicodec_keys")
    state = {
        name: not_a_number(shape).contiguous()
        if name.startswith("postnet.")
        else torch.from_numpy(values_for(name, tuple(shape)))
        for name, shape in shapes.items()
    }
    save_file(state, folder / CODEC_FILE)
    speech = {}
    for name, shape in golden("spark_bicodec_speech_keys").items():
        later = name.startswith("wav2vec2.encoder.layers.") and int(name.split(".")[3]) >= 16
        speech[name] = not_a_number(shape) if later else torch.from_numpy(values_for(name, tuple(shape)))
    speech["project_q.weight"] = not_a_number((256, 256))  # of the pretraining, which the published file also holds
    torch.save(speech, folder / SPEECH_FILE)
    (folder / "config.yaml").write_text(
        "sample_rate: 16000\nref_segment_duration: 6\nvolume_normalize: true\n", "utf-8"
    )
    codec = load_codec("spark-bicodec", weights=str(folder))
    (folder / CODEC_FILE).unlink()
    (folder / SPEECH_FILE).unlink()
    return codec


@pytest.mark.long
def test_the_reference_s_codes_decode_to_its_wave(full):
    streams = [np.array([EXPECTED[f"{kind}_tokens"]["all"]]) for kind in ("semantic", "global")]
    blank = built("spark-bicodec").encode([Audio(np.zeros(FACTS["input"]["samples"]), 16000)])[0]
    codes = replace(blank, streams=tuple(replace(s, values=v) for s, v in zip(blank.streams, streams)))
    (audio,) = full.decode([codes])
    decoded, wave = EXPECTED["decoded"], audio.samples[0].astype(np.float64)
    actual = wave[: decoded["samples"]]
    assert wave.size == FACTS["input"]["samples"] and not wave[decoded["samples"] :].any()
    assert np.abs(actual[1000:1032] - decoded["first_32_at_1000"]).max() < TOLERANCE["decoded_absolute"]
    assert abs(np.sqrt(np.mean(actual**2)) / decoded["rms"] - 1) < TOLERANCE["decoded_rms_relative"]
    assert abs(np.abs(actual).max() - decoded["abs_max"]) < TOLERANCE["decoded_absolute"]
    assert abs(actual.sum() - decoded["sum"]) < TOLERANCE["decoded_absolute"] * np.sqrt(actual.size)


@pytest.mark.long
def test_speech_gets_the_reference_s_codes(full, speech_set, spoken):
    facts = FACTS if speech_set == "recordings" else EMBEDDED
    name = facts["input"]["file"].removesuffix(".wav") if speech_set == "recordings" else facts["input"]["id"]
    (audio,) = [audio for row, audio in spoken if row["id"] == name]
    originals = facts["expected"]
    assert (audio.num_samples, audio.sample_rate_hz) == (facts["input"]["samples"], 16000)
    wave = prepared(audio.samples[0])
    for name, got in {"sum": wave.sum(), "sum_of_squares": wave @ wave, "abs_max": np.abs(wave).max()}.items():
        assert got == pytest.approx(originals["volume_normalized"][name], rel=1e-8), name
    with torch.inference_mode():
        features = bicodec_net.speech_features(full._speech, torch.from_numpy(wave[None]).float(), [wave.size])
        mel = full._net.mels(torch.from_numpy(reference_clip(wave)[None]).float())
        latents = full._net.encoder(features.transpose(1, 2), None)
        text = full._net.quantizer.search(latents)[0].tolist()
        speaker = full._net.speaker_encoder.search(mel)[0].tolist()
    for name, tensor, frame_10, tolerance in (
        ("wav2vec2_features", features[0], features[0, 10, :4], {"abs": TOLERANCE["wav2vec2_features_absolute"]}),
        ("encoder_output", latents[0], latents[0, :4, 10], {"abs": TOLERANCE["encoder_output_absolute"]}),
        ("reference_mel", mel[0], mel[0, :4, 10], {"rel": TOLERANCE["reference_mel_relative"]}),
    ):
        expected = originals[name]
        assert list(tensor.shape) == expected["shape"], name
        assert frame_10.tolist() == pytest.approx(expected["frame_10_first_4"], **tolerance), name
        assert tensor.double().mean().item() == pytest.approx(expected["mean"], abs=1e-4), name
        assert tensor.double().std(correction=0).item() == pytest.approx(expected["std_population"], rel=1e-4), name
    assert originals["semantic_margin"]["smallest"] > 1e-4 and originals["global_margin"]["smallest"] > 1e-3
    assert text == originals["semantic_tokens"]["all"]
    assert speaker == originals["global_tokens"]["all"]
    (codes,) = full.encode([audio])
    assert [stream.values[0].tolist() for stream in codes.streams] == [text, speaker]


def test_the_published_files_hold_every_tensor_of_the_networks(monkeypatch):
    """By name and shape; the two tests above also load them, at their full size."""
    # torchaudio looks at the numbers of the filters, to warn of empty ones; on this device there are none.
    monkeypatch.setattr("torchaudio.functional.melscale_fbanks", lambda rows, *_, **__: torch.zeros(rows, 1))
    with torch.device("meta"):
        speech, net = SpeechEncoder(PUBLISHED.speech), bicodec_net.BiCodecNet(PUBLISHED)
        states = [
            {name: torch.zeros(shape) for name, shape in golden(keys).items()}
            for keys in ("spark_bicodec_speech_keys", "spark_bicodec_keys")
        ]
        result = bicodec_net.renamed_speech(states[0], PUBLISHED.speech.layers), bicodec_net.renamed(states[1])
    for network, state in zip((speech, net), result, strict=True):
        assert {name: value.shape for name, value in network.state_dict().items()} == {
            name: value.shape for name, value in state.items()
        }


@pytest.mark.parametrize("case", FACTS["volume"]["cases"], ids=lambda case: f"{case['scale']}")
def test_the_volume_is_the_reference_s(case):
    noise = np.random.RandomState(case["seed"]).standard_normal(case["samples"])
    samples = (case["scale"] * noise).astype(np.float32)
    wave = prepared(samples)[: case["samples"]]
    assert wave.dtype == np.float64
    assert wave @ wave == pytest.approx(case["sum_of_squares"], rel=1e-9)
    assert (wave[0], np.abs(wave).max()) == pytest.approx((case["first"], case["abs_max"]), rel=1e-9)


def test_the_volume_never_clips_and_silence_stays():
    spike = 0.02 * np.random.default_rng(0).standard_normal(4000)
    spike[1000] = 0.9
    assert np.abs(prepared(spike)).max() == 1.0
    assert not prepared(np.zeros(10)).any()


def test_the_speaker_depends_on_six_seconds_of_the_wave_itself():
    short, long = np.arange(50000.0), np.arange(100000.0)
    assert np.array_equal(reference_clip(short), np.concatenate([short, short[:46000]]))
    assert np.array_equal(reference_clip(long), long[:96000])


def transformers_speech():
    """transformers' wav2vec 2.0 in the small size with stand-in weights."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    small = SMALL.speech
    channels, kernels, strides = zip(*small.conv_layers)
    config = Wav2Vec2Config(
        hidden_size=small.width,
        num_hidden_layers=20,
        num_attention_heads=small.heads,
        intermediate_size=small.feed_forward,
        conv_dim=channels,
        conv_kernel=kernels,
        conv_stride=strides,
        conv_bias=True,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        num_conv_pos_embeddings=small.conv_pos,
        num_conv_pos_embedding_groups=small.conv_pos_groups,
        layer_norm_eps=1e-5,
    )
    net = Wav2Vec2Model(config).eval()
    net.load_state_dict(deterministic_weights.stand_in(net))
    return net


def speech_of(theirs):
    """Our encoder with transformers' weights."""
    ours = SpeechEncoder(SMALL.speech).eval()
    state = {f"wav2vec2.{name}": value for name, value in theirs.state_dict().items()}
    ours.load_state_dict(bicodec_net.renamed_speech(state, SMALL.speech.layers))
    return ours


def test_the_speech_encoder_is_that_of_transformers():
    theirs = transformers_speech()
    wave = torch.from_numpy(glide(9000).samples)
    with torch.inference_mode():
        normalised = (wave - wave.mean()) / (wave.var(correction=0) + 1e-7).sqrt()
        hidden = theirs(normalised, output_hidden_states=True).hidden_states
        expected = (hidden[11] + hidden[14] + hidden[16]) / 3
        got = bicodec_net.speech_features(speech_of(theirs), wave, [9000])
    assert got.shape == expected.shape and got.std() > 0.1
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())


def test_codes_and_waves_of_any_length_are_the_reference_s(all_together):
    config = replace(SMALL, speaker_channels=512, speaker_context=1536, heads=8, head_dim=64)
    net = bicodec_net.BiCodecNet(config).eval()
    state = deterministic_weights.stand_in(net)
    for name, value in state.items():
        if name.startswith("decoder.") and name.endswith(".block.3.weight"):
            value *= 0.3
    state["decoder.model.6.weight"] *= 0.1
    net.load_state_dict(state)
    codec = load_codec("spark-bicodec", weights="random")
    codec._net, codec._speech = net, speech_of(transformers_speech())
    batch = []
    for item in SMALL_FACTS["items"]:
        walk = (0.1 * np.random.RandomState(item["seed"]).standard_normal(item["samples"])).cumsum()
        batch.append(Audio((0.2 * walk / np.abs(walk).max()).astype(np.float32), 16000))
    together = codec.encode(batch)
    for item, codes, audio in zip(SMALL_FACTS["items"], together, codec.decode(together)):
        text, speaker = (stream.values[0].tolist() for stream in codes.streams)
        assert text == item["semantic"] and speaker == item["speaker"], item["samples"]
        wave = audio.samples[0, : item["decoded_samples"]].astype(np.float64)
        assert not audio.samples[0, item["decoded_samples"] :].any()
        step = item["decoded_samples"] // 37
        assert wave[::step][:37].tolist() == pytest.approx(item["decoded_37"], abs=1e-4)
        assert np.sqrt(np.mean(wave**2)) == pytest.approx(item["decoded_rms"], rel=1e-4)


def test_a_padded_pass_equals_one_item_at_a_time_to_float32_before_it_is_rounded(all_together):
    codec = built("spark-bicodec")
    lengths = [6000, 16001, 2500]
    waves = torch.zeros(3, 16001)
    for row, length in zip(waves, lengths):
        row[:length] = torch.from_numpy(glide(length).samples[0])
    frames = torch.tensor([(length - 400) // 320 + 1 for length in lengths])
    with torch.inference_mode():
        features = bicodec_net.speech_features(codec._speech, waves, lengths)
        latents = codec._net.encoder(features.transpose(1, 2), frames)
        for k, (length, count) in enumerate(zip(lengths, frames)):
            actual = bicodec_net.speech_features(codec._speech, waves[k : k + 1, :length], [length])
            expected = codec._net.encoder(actual.transpose(1, 2), None)[0]
            torch.testing.assert_close(
                latents[k, :, :count], expected, rtol=1e-5, atol=1e-5 * expected.abs().max().item()
            )


def test_random_codes_carry_what_they_receive():
    noise = Audio(0.1 * np.random.default_rng(0).standard_normal(32000), 16000)
    first, second = built("spark-bicodec").encode([glide(32000), noise])
    assert len(np.unique(first.streams[0].values)) > 25
    assert np.mean(first.streams[0].values != second.streams[0].values) > 0.5
    assert not np.array_equal(first.streams[1].values, second.streams[1].values)
    (wave,) = built("spark-bicodec").decode([first])
    (other,) = built("spark-bicodec").decode([replace(first, streams=(first.streams[0], second.streams[1]))])
    assert np.abs(wave.samples - other.samples).max() > 1e-3  # a different speaker changes the output
    assert np.abs(wave.samples).max() < 0.99  # not clipped, so that differences show


def test_a_short_item_is_coded_as_if_silence_followed_it():
    audio = glide(150)
    longer = Audio(np.pad(audio.samples, ((0, 0), (0, 250))), 16000)
    short, long = built("spark-bicodec").encode([audio, longer])
    for mine, theirs in zip(short.streams, long.streams):
        assert np.array_equal(mine.values, theirs.values)
    wave, longer_wave = built("spark-bicodec").decode([short, long])
    assert np.array_equal(wave.samples, longer_wave.samples[:, :150])


def test_the_speaker_s_codes_are_paid_once():
    for seconds in (1, 3):
        (codes,) = built("spark-bicodec").encode([glide(16000 * seconds)])
        frames = codes.streams[0].values.shape[1]
        assert codes.bits == 13 * frames + 12 * 32
        assert codes.nominal_bitrate_bps == built("spark-bicodec").info.nominal_bitrate_bps == 650
        assert abs(frames - 50 * seconds) <= 1


def test_codes_that_do_not_fit_are_refused():
    (codes,) = built("spark-bicodec").encode([glide(5000)])
    text, speaker = codes.streams
    with refuses("codes_unexpected", samples=5000):
        built("spark-bicodec").decode([replace(codes, streams=(text,))])
    with refuses("codes_beyond", highest=4095):
        built("spark-bicodec").decode([replace(codes, streams=(text, CodeStream(speaker.values + 4096, 8192, 0.0)))])


def test_weights_of_another_model_are_refused(tmp_path):
    with refuses("weights_folder_lacks", names="BiCodec/model.safetensors"):
        load_codec("spark-bicodec", weights=str(tmp_path))
    for file in (CODEC_FILE, SPEECH_FILE):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_bytes(b"")
    with refuses("weights_are_one_file"):
        load_codec("spark-bicodec", weights=str(tmp_path / CODEC_FILE))
    (tmp_path / "config.yaml").write_text("sample_rate: 16000\nref_segment_duration: 3\n", "utf-8")
    with refuses("weights_of_another_model", difference="ref_segment_duration 3 (expected 6)"):
        load_codec("spark-bicodec", weights=str(tmp_path))
