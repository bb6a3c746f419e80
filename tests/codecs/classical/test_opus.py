from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.codecs.classical.opus import Opus, delay_samples


def configurations(packets):
    """The configuration number of each packet (RFC 6716, table 2)."""
    return [packet[0] >> 3 for packet in packets]


@pytest.fixture
def voice(speech_set, spoken):
    name = {"embedded": "slt_01", "recordings": "arctic_axb_a0004"}[speech_set]
    (audio,) = [audio for row, audio in spoken if row["id"] == name]
    return audio.samples[:, : 2 * audio.sample_rate_hz]


def test_the_delay_follows_what_the_packets_declare(voice):
    narrow, wide, celt = (Opus(bps).encode_one(voice, 16000) for bps in (6000, 12000, 64000))
    assert set(configurations(narrow)) <= {0, 1, 2, 3}
    assert set(configurations(wide)) <= {8, 9, 10, 11}
    assert set(configurations(celt)) <= set(range(16, 32))
    assert delay_samples(celt, 16000) == 312  # the pre-skip that the format prescribes
    assert delay_samples(wide, 16000) < delay_samples(celt, 16000) < delay_samples(narrow, 16000)


def test_the_most_frequent_mode_counts(voice):
    wide, celt = (Opus(bps).encode_one(voice, 16000) for bps in (12000, 64000))
    assert delay_samples([*wide[:10], *celt[:4]], 16000) == delay_samples(wide, 16000)
    assert delay_samples([*wide[:4], *celt[:10]], 16000) == delay_samples(celt, 16000)


def test_every_mode_at_every_rate_has_a_delay_near_the_prescribed_one():
    for rate_hz in (8000, 12000, 16000, 24000, 48000):
        for configuration in range(32):
            packet = bytes([configuration << 3])
            assert abs(delay_samples([packet], rate_hz) - 312) <= 3
    assert delay_samples([], 48000) == 312


def test_constant_bitrate_means_equal_packets(voice):
    for bps in (6000, 12000, 24000, 96000):
        assert {len(packet) for packet in Opus(bps).encode_one(voice, 16000)} == {bps * 20 // 8000}


def test_mono_stops_where_ffmpeg_stops():
    assert Opus(256000).info.channels == (1, 2)
    assert Opus(256001).info.channels == (2,)
    for bps in (5999, 510001):
        with refuses("codec_bitrate", hint="6 to 510 kbps"):
            Opus(bps)


def test_an_item_keeps_its_length_at_every_rate():
    rng = np.random.default_rng(0)
    for rate_hz in (8000, 12000, 16000, 24000, 48000):
        for length in (1, 2, rate_hz // 50 - 1, rate_hz // 50, rate_hz // 50 + 1, 3001):
            codec = Opus(16000)
            packets = codec.encode_one(rng.uniform(-0.1, 0.1, (1, length)).astype(np.float32), rate_hz)
            assert codec.decode_one(packets, length, rate_hz, 1).shape == (1, length)
