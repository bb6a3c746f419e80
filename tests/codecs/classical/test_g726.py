from __future__ import annotations

import io

import numpy as np
import pytest
from refusals import refuses

from codec_bench.codecs.classical.g726 import BITRATES_BPS, G726


@pytest.fixture
def voice(embedded):
    from codec_bench.audio.resample import resample

    audio = embedded[0][1]
    return resample(audio.samples[:1, : 2 * audio.sample_rate_hz], audio.sample_rate_hz, 8000)


def decoded(codec, wave):
    return codec.decode_one(codec.encode_one(wave, 8000), wave.shape[1], 8000, 1)[:, : wave.shape[1]]


@pytest.mark.parametrize("bps", BITRATES_BPS)
def test_a_packet_is_20_ms_and_the_last_one_is_cut_after_the_last_code(bps):
    codec, bits = G726(bps), bps // 8000
    for length in (1, 2, 7, 8, 159, 160, 161, 4097):
        packets = codec.encode_one(np.zeros((1, length), np.float32), 8000)
        assert sum(map(len, packets)) == -(-length * bits // 8)
        assert {len(packet) for packet in packets[:-1]} <= {20 * bits}
        assert length <= codec.decode_one(packets, length, 8000, 1).shape[1] < length + 8


@pytest.mark.parametrize("bps", BITRATES_BPS)
def test_packets_decode_to_what_ffmpeg_reads_from_the_joined_stream(bps, voice):
    import av

    codec = G726(bps)
    packets = codec.encode_one(voice, 8000)
    options = {"code_size": str(bps // 8000), "sample_rate": "8000"}
    with av.open(io.BytesIO(b"".join(packets)), format="g726", options=options) as container:
        complete = np.concatenate([f.to_ndarray().reshape(-1) for f in container.decode(audio=0)])
    ours = codec.decode_one(packets, voice.shape[1], 8000, 1)[0]
    length = min(len(complete), len(ours))
    assert length >= voice.shape[1] - 8
    np.testing.assert_array_equal(ours[:length] * 32768, complete[:length])


@pytest.mark.parametrize("bps", BITRATES_BPS)
def test_nothing_is_early_or_late(bps, voice, rng):
    noise = (0.1 * rng.standard_normal((1, 8000))).astype(np.float32)
    for wave in (voice, noise):
        out = decoded(G726(bps), wave)
        error = np.sum((out - wave) ** 2)
        assert error < 0.2 * np.sum(wave**2)
        assert np.sum((out[:, 1:] - wave[:, :-1]) ** 2) > error
        assert np.sum((out[:, :-1] - wave[:, 1:]) ** 2) > error


def test_every_bit_of_a_code_makes_noise_better(rng):
    # A Gaussian signal's quantiser gains 5 to 6 dB a bit (Max, 1960: 9.3, 14.6, 20.2, 26.0 dB); an adaptive one loses
    # some.
    wave, best = (0.1 * rng.standard_normal((1, 16000))).astype(np.float32), (9.3, 14.62, 20.22, 26.01)
    for bps, limit_db in zip(BITRATES_BPS, best, strict=True):
        error = decoded(G726(bps), wave) - wave
        assert limit_db - 3 < 10 * np.log10(np.sum(wave**2) / np.sum(error**2)) < limit_db


def test_other_bitrates_are_refused():
    for bps in (8000, 20000, 48000):
        with refuses("codec_bitrate", hint="16, 24, 32, 40 kbps"):
            G726(bps)
