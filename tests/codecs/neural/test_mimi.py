"""Mimi against transformers' own class, one item at a time, and frame by frame against the whole signal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from glides import glide
from random_codecs import built
from refusals import refuses

from codec_bench.codecs import load_codec
from codec_bench.networks.mimi import MimiParts
from codec_bench.types import Audio

FRAME = 1920
# Around the frame, and beyond the transformers' window of 125 frames.
LENGTHS = (1, 7, 959, 960, 1919, 1920, 1921, 2880, 5000, 9601, 24000, 140 * FRAME + 77)
sound = partial(glide, rate_hz=24000)


def filled(audio):
    """The samples followed by zeros to a multiple of the frame, as a tensor `(1, 1, samples)`."""
    return torch.from_numpy(np.pad(audio.samples, ((0, 0), (0, -audio.num_samples % FRAME))))[None]


@torch.inference_mode()
def their_codes(codec, audio, codebooks=32):
    return codec._net.encode(filled(audio), num_quantizers=codebooks).audio_codes[0].numpy()


@torch.inference_mode()
def their_wave(codec, values):
    return codec._net.decode(torch.from_numpy(values)[None]).audio_values[0].numpy()


@torch.inference_mode()
def unequal_frames(codec, audio, a, b):
    """Frames whose codes differ although the two codewords are not equally far, to 1e-5 of the distance."""
    assert a.shape == b.shape
    wrong = []
    latents = MimiParts(codec._net).latents(filled(audio))
    quantizer = codec._net.quantizer
    for frame in np.flatnonzero((a != b).any(axis=0)):
        book = int(np.flatnonzero(a[:, frame] != b[:, frame])[0])
        half, first = (
            (quantizer.semantic_residual_vector_quantizer, 0)
            if book == 0
            else (quantizer.acoustic_residual_vector_quantizer, 1)
        )
        residual = half.input_proj(latents)[0, :, frame]
        for k in range(first, book):
            residual = residual - half.layers[k - first].codebook.embed[a[k, frame]]
        words = half.layers[book - first].codebook.embed[[int(a[book, frame]), int(b[book, frame])]]
        near, far = sorted((residual - words).norm(dim=1).tolist())
        if far > near * (1 + 1e-5):
            wrong.append(int(frame))
    return wrong


@pytest.mark.parametrize("name", ["mimi-32cb", "mimi-8cb"])
def test_a_padded_batch_gives_what_transformers_gives_one_by_one(name, all_together):
    codec = built(name)
    batch = [sound(length) for length in (LENGTHS[-3:] if name == "mimi-32cb" else LENGTHS[:-1])]
    codes = codec.encode(batch)
    for audio, item in zip(batch, codes, strict=True):
        values = item.streams[0].values
        assert not unequal_frames(codec, audio, values, their_codes(codec, audio, len(values)))
    for wave, item in zip(codec.decode(codes), codes, strict=True):
        theirs = their_wave(codec, item.streams[0].values)[:, : item.num_samples]
        assert np.abs(theirs).max() > 0.01
        np.testing.assert_allclose(wave.samples, theirs, rtol=0, atol=1e-5)


def test_only_the_last_frame_of_an_incomplete_signal_differs_from_transformers_without_filling():
    codec, audio = built("mimi-32cb"), sound(10 * FRAME + 500)
    (codes,) = codec.encode([audio])
    with torch.inference_mode():
        bare = codec._net.encode(torch.from_numpy(audio.samples)[None]).audio_codes[0].numpy()
    assert np.flatnonzero((bare != codes.streams[0].values).any(axis=0)).tolist() == [10]


def test_groups_of_similar_lengths_change_nothing():
    codec = built("mimi-8cb")
    batch = [sound(length, seed) for seed, length in enumerate((24000, 1, 23000, 5000, 5100, 1919))]
    codes = codec.encode(batch)
    for audio, item, wave in zip(batch, codes, codec.decode(codes), strict=True):
        (alone,) = codec.encode([audio])
        assert not unequal_frames(codec, audio, item.streams[0].values, alone.streams[0].values)
        np.testing.assert_allclose(wave.samples, codec.decode([item])[0].samples, rtol=0, atol=1e-5)


def test_a_batch_of_speech_equals_one_by_one(ragged_speech, all_together):
    codec = built("mimi-8cb")
    batch = ragged_speech(24000, every=3, shortest_s=0.3, step_s=0.2)
    codes = codec.encode(batch)
    for audio, item, wave in zip(batch, codes, codec.decode(codes), strict=True):
        assert not unequal_frames(codec, audio, item.streams[0].values, their_codes(codec, audio, 8))
        np.testing.assert_allclose(wave.samples, codec.decode([item])[0].samples, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [1, 1919, 1920, 5000, 140 * FRAME + 77])
def test_frame_by_frame_equals_the_whole_signal_in_both_directions(length):
    codec, audio = built("mimi-32cb"), sound(length)
    (complete,) = codec.encode([audio])
    (wave,) = codec.decode([complete])
    values, pieces = complete.streams[0].values, []
    with codec.streaming() as stream:
        coded = [
            stream.encode(Audio(audio.samples[:, at : at + stream.step_samples], 24000))
            for at in range(0, length, stream.step_samples)
        ]
        assert all(item.streams[0].values.shape == (32, 1) for item in coded)
        streamed = np.concatenate([item.streams[0].values for item in coded], axis=1)
        assert not unequal_frames(codec, audio, streamed, values)
        for frame, item in enumerate(coded):  # the codes of the whole signal, so that a tie does not matter
            (actual,) = item.streams
            pieces.append(stream.decode(replace(item, streams=(replace(actual, values=values[:, [frame]]),))))
    assert [segment.num_samples for segment in pieces] == [item.num_samples for item in coded]
    joined = np.concatenate([segment.samples for segment in pieces], axis=1)
    np.testing.assert_allclose(joined, wave.samples, rtol=0, atol=1e-5)


def test_pieces_of_several_frames_equal_single_ones():
    codec, audio = built("mimi-8cb"), sound(20 * FRAME)
    (complete,) = codec.encode([audio])
    with codec.streaming() as stream:
        coded = [stream.encode(Audio(audio.samples[:, at * FRAME : to * FRAME], 24000)) for at, to in ((0, 3), (3, 20))]
        decoded = [stream.decode(item) for item in coded]
    streamed = np.concatenate([item.streams[0].values for item in coded], axis=1)
    assert not unequal_frames(codec, audio, streamed, complete.streams[0].values)
    joined = np.concatenate([segment.samples for segment in decoded], axis=1)
    np.testing.assert_allclose(joined, codec.decode([complete])[0].samples, rtol=0, atol=1e-5)


def test_without_the_carried_state_frames_would_differ():
    # These differences show that the tests above can fail.
    codec, audio = built("mimi-8cb"), sound(10 * FRAME)
    (complete,) = codec.encode([audio])
    apart = codec.encode([Audio(audio.samples[:, at : at + FRAME], 24000) for at in range(0, 10 * FRAME, FRAME)])
    joined = np.concatenate([item.streams[0].values for item in apart], axis=1)
    assert (joined != complete.streams[0].values).any(axis=0).sum() > 5
    waves = np.concatenate([wave.samples for wave in codec.decode(apart)], axis=1)
    assert np.abs(waves - codec.decode([complete])[0].samples).max() > 0.05


@pytest.mark.parametrize("codebooks", [8, 32])
def test_the_streaming_variant_equals_the_other(codebooks, all_together):
    codec, streamed = built(f"mimi-{codebooks}cb"), built(f"mimi-{codebooks}cb-streaming")
    batch = [sound(length) for length in (1, 1921, 30 * FRAME)]
    codes = codec.encode(batch)
    for audio, ours, theirs in zip(batch, streamed.encode(batch), codes, strict=True):
        assert not unequal_frames(codec, audio, ours.streams[0].values, theirs.streams[0].values)
    for ours, theirs in zip(streamed.decode(codes), codec.decode(codes), strict=True):
        np.testing.assert_allclose(ours.samples, theirs.samples, rtol=0, atol=1e-5)
    assert streamed.info.name == f"mimi-{codebooks}cb-streaming"


@torch.inference_mode()
def test_transformers_own_stream_is_right_in_its_encoder_and_wrong_in_its_decoder():
    # Why the state is carried here: the pinned version's decoder has no cache for its convolutions.
    codec, audio = built("mimi-32cb"), sound(40 * FRAME)
    net, (complete,) = codec._net, codec.encode([audio])
    values = complete.streams[0].values
    past, ends, codes = None, None, []
    for segment in torch.from_numpy(audio.samples)[None].split(FRAME, dim=-1):
        out = net.encode(segment, encoder_past_key_values=past, padding_cache=ends, use_streaming=True)
        past, ends = out.encoder_past_key_values, out.padding_cache
        codes.append(out.audio_codes[0].numpy())
    assert not unequal_frames(codec, audio, np.concatenate(codes, axis=1), values)
    past, waves = None, []
    for segment in torch.from_numpy(values)[None].split(1, dim=-1):
        out = net.decode(segment, decoder_past_key_values=past, use_cache=True)
        past = out.decoder_past_key_values
        waves.append(out.audio_values[0].numpy())
    (right,) = codec.decode([complete])
    error = np.concatenate(waves, axis=1) - right.samples
    assert error.std() > 0.3 * right.samples.std()


def test_what_does_not_fit_a_stream_is_refused():
    codec = built("mimi-8cb")
    with codec.streaming() as stream:
        codes = stream.encode(sound(FRAME))
        with refuses("codec_rate", rate_hz=16000):
            stream.encode(Audio(np.zeros(FRAME), 16000))
        stream.encode(sound(100))
        with refuses("stream_ended"):
            stream.encode(sound(FRAME))
        with refuses("codes_unexpected", shapes="(8, 1)", samples=4000, expected="(8, 3)"):
            stream.decode(replace(codes, num_samples=4000))


@pytest.mark.parametrize(("codebooks", "bits"), [(32, 4400.0), (8, 1100.0)])
def test_facts_are_the_published_ones(codebooks, bits):
    codec = built(f"mimi-{codebooks}cb")
    (codes,) = codec.encode([sound(24000)])
    (stream,) = codes.streams
    assert (stream.cardinality, stream.frame_rate_hz, stream.values.shape) == (2048, 12.5, (codebooks, 13))
    assert stream.nominal_bitrate_bps == codec.info.nominal_bitrate_bps == bits
    assert codes.bits == codebooks * 13 * 11
    assert codec.info.causal and codec.info.lookahead_s == 0


def test_the_published_size_is_what_transformers_makes_of_its_defaults():
    from transformers import MimiConfig, MimiModel

    from codec_bench.codecs.neural.mimi import _FACTS

    with torch.device("meta"):
        ours, theirs = MimiModel(MimiConfig(**_FACTS)), MimiModel(MimiConfig())
    assert {k: v.shape for k, v in ours.state_dict().items()} == {k: v.shape for k, v in theirs.state_dict().items()}
    for fact, value in _FACTS.items():
        assert getattr(MimiConfig(), fact) == value


def test_codebooks_it_does_not_have_are_refused():
    for count in (0, 33):
        with refuses("codebook_count", codec="mimi", codebooks=count, hint="it has 1 to 32"):
            load_codec("mimi-8cb", weights="random", codebooks=count)


def test_a_saved_network_has_the_names_of_the_published_file(tmp_path):
    from safetensors import safe_open

    built("mimi-8cb")._net.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        names = set(file.keys())
    # The published file has these names, because the halves of its quantiser are not modules of their own.
    assert {
        "encoder.layers.0.conv.weight",
        "encoder_transformer.layers.0.mlp.fc1.weight",
        "downsample.conv.weight",
        "upsample.conv.weight",
        "decoder_transformer.layers.0.mlp.fc2.weight",
        "decoder.layers.0.conv.bias",
    } < names


def test_vectors_are_those_that_the_decoder_receives():
    codec = built("mimi-8cb")
    values = codec.encode([sound(9601)])[0].streams[0].values
    with torch.inference_mode():
        theirs = codec._net.quantizer.decode(torch.from_numpy(values)[None])[0].T.numpy()
    result = codec.vectors(values)
    assert result.dtype == np.float32 and result.shape[0] == values.shape[1]
    np.testing.assert_allclose(result, theirs, atol=1e-5)
    with refuses("vectors_unsupported"):
        built("chattts-dvae").vectors(values)
