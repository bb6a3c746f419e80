"""EnCodec 24 kHz piece by piece against the whole signal, in both directions."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from refusals import refuses

torch = pytest.importorskip("torch")

from random_codecs import networks_once  # noqa: E402

from codec_bench.codecs import load_codec  # noqa: E402
from codec_bench.codecs.neural import encodec  # noqa: E402
from codec_bench.types import Audio  # noqa: E402

HOP = 320
START = 7 * HOP


@pytest.fixture(scope="module", autouse=True)
def _networks_once():
    with networks_once(encodec):
        yield


@lru_cache(maxsize=1)
def built(model="24khz", kbps=6):
    return load_codec(f"encodec-{model}@{kbps}", weights="random")


def sound(length, seed=0, rate_hz=24000, channels=1):
    """A tone that glides, with noise."""
    rng = np.random.default_rng([seed, length])
    time = np.arange(length) / rate_hz
    wave = 0.2 * np.sin(2 * np.pi * (200 * time + 150 * time**2)) + 0.05 * rng.standard_normal(length)
    return Audio(np.stack([wave] * channels), rate_hz)


def pieces(audio, step):
    """The pieces that a microphone delivers. If a short signal ends with a whole step, an empty piece tells the end."""
    out = [Audio(audio.samples[:, at : at + step], 24000) for at in range(0, audio.num_samples, step)]
    if audio.num_samples % HOP == 0 and audio.num_samples < START:
        out.append(Audio(np.zeros((1, 0)), 24000))
    return out


@torch.inference_mode()
def unequal_frames(codec, audio, a, b):
    """Frames whose codes differ although the two codewords are not equally far, to 1e-5 of the distance."""
    assert a.shape == b.shape
    wrong = []
    latents = codec._net.encoder(torch.from_numpy(audio.samples)[None])
    for frame in np.flatnonzero((a != b).any(axis=0)):
        book = int(np.flatnonzero(a[:, frame] != b[:, frame])[0])
        layers = codec._net.quantizer.layers
        residual = latents[0, :, frame] - sum(layers[k].codebook.embed[a[k, frame]] for k in range(book))
        words = layers[book].codebook.embed[[int(a[book, frame]), int(b[book, frame])]]
        near, far = sorted((residual - words).norm(dim=1).tolist())
        if far > near * (1 + 1e-5):
            wrong.append(int(frame))
    return wrong


# Below, at and above the seven frames that the start needs; multiples of a frame and others.
@pytest.mark.parametrize("length", [1, 319, 320, 321, 1919, 1920, 2239, 2240, 2241, 2560, 9001])
@pytest.mark.parametrize("step", [320, 960, 2240, 24000])
def test_pieces_equal_the_whole_signal_in_both_directions(length, step):
    codec, audio = built(), sound(length)
    (complete,) = codec.encode([audio])
    (wave,) = codec.decode([complete])
    values, decoded, at = complete.streams[0].values, [], 0
    with codec.streaming() as stream:
        assert stream.step_samples == HOP
        coded = [stream.encode(segment) for segment in pieces(audio, step)]
        streamed = np.concatenate([item.streams[0].values for item in coded], axis=1)
        assert not unequal_frames(codec, audio, streamed, values)
        assert sum(item.num_samples for item in coded) == length
        for item in coded:  # both decode the codes of the whole signal, so that a tie makes no difference
            (actual,) = item.streams
            decoded.append(
                stream.decode(
                    replace(item, streams=(replace(actual, values=values[:, at : at + actual.values.shape[1]]),))
                )
            )
            at += actual.values.shape[1]
    assert [segment.num_samples for segment in decoded] == [item.num_samples for item in coded]
    joined = np.concatenate([segment.samples for segment in decoded], axis=1)
    np.testing.assert_allclose(joined, wave.samples, rtol=0, atol=1e-4)  # float32 noise of other sums: 1e-5


@pytest.mark.parametrize("kbps", [1.5, 24])
def test_every_bitrate_streams_as_many_codebooks_as_it_has(kbps):
    codec, audio = built(kbps=kbps), sound(9000)
    (complete,) = codec.encode([audio])
    with codec.streaming() as stream:
        coded = [stream.encode(segment) for segment in pieces(audio, HOP)]
    streamed = np.concatenate([item.streams[0].values for item in coded], axis=1)
    assert len(streamed) == round(kbps / 0.75)
    assert not unequal_frames(codec, audio, streamed, complete.streams[0].values)


def test_the_start_is_held_back_until_it_can_be_reflected():
    audio = sound(10 * HOP)
    with built().streaming() as stream:
        coded = [stream.encode(segment) for segment in pieces(audio, HOP)]
        assert [item.num_samples for item in coded] == [0] * 6 + [START] + [HOP] * 3
        assert [item.streams[0].values.shape[1] for item in coded] == [0] * 6 + [7, 1, 1, 1]
        assert stream.decode(coded[0]).samples.shape == (1, 0)
        assert stream.encode(Audio(np.zeros((1, 0)), 24000)).num_samples == 0  # the end; nothing was held back
        with refuses("stream_ended"):
            stream.encode(sound(HOP))


def test_without_the_carried_state_frames_would_differ():
    # These differences show that the tests above can fail.
    codec, audio = built(), sound(30 * HOP)
    (complete,) = codec.encode([audio])
    apart = codec.encode([Audio(audio.samples[:, at : at + START], 24000) for at in range(0, 30 * HOP, START)])
    joined = np.concatenate([item.streams[0].values for item in apart], axis=1)
    assert (joined != complete.streams[0].values).any(axis=0)[7:].sum() > 10
    waves = np.concatenate([wave.samples for wave in codec.decode(apart)], axis=1)
    assert np.abs(waves - codec.decode([complete])[0].samples).max() > 0.01


def test_two_streams_do_not_meet():
    codec, first, second = built(), sound(5000, 1), sound(5000, 2)
    with codec.streaming() as one, codec.streaming() as other:
        coded = [(one.encode(a), other.encode(b)) for a, b in zip(pieces(first, HOP), pieces(second, HOP), strict=True)]
    for audio, streamed in zip((first, second), zip(*coded, strict=True), strict=True):
        values = np.concatenate([item.streams[0].values for item in streamed], axis=1)
        assert not unequal_frames(codec, audio, values, codec.encode([audio])[0].streams[0].values)


def test_the_profile_streams_it(tmp_path):
    import soundfile

    from codec_bench.apps.profiling.latency import measure_streaming
    from codec_bench.apps.profiling.settings import Settings
    from codec_bench.codecs.checks.material import ProfileClips

    codec, path = built(), tmp_path / "a.wav"
    soundfile.write(path, sound(48000).samples[0], 24000)
    measured = measure_streaming(codec, ProfileClips([("a", str(path))], codec), Settings(stream_s=1.0))
    assert measured["equals_offline"] and measured["missing_samples"] == 0
    assert measured["step_samples"] == HOP and measured["wave_difference"] < 1e-4


def test_what_does_not_fit_a_stream_is_refused():
    with built().streaming() as stream:
        with refuses("codec_rate", rate_hz=16000):
            stream.encode(Audio(np.zeros(HOP), 16000))
        with refuses("codec_without_samples"):
            stream.encode(Audio(np.zeros((1, 0)), 24000))
        codes = stream.encode(sound(2500))
        with refuses("stream_ended"):
            stream.encode(sound(HOP))
        with refuses("codes_unexpected", shapes="(8, 8)", samples=4000, expected="(8, 13)"):
            stream.decode(replace(codes, num_samples=4000))
        stream.decode(codes)
        with refuses("stream_ended"):
            stream.decode(codes)


def test_the_48_khz_model_says_why_it_cannot():
    with refuses("chunks_not_streamed"):
        built("48khz").streaming()
