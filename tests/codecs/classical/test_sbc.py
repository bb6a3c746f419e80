from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.codecs.classical.bitstream import decode_packets
from codec_bench.codecs.classical.sbc import RATES_HZ, Msbc, Sbc, delay_samples, frame_of


def noise(rng, channels, length):
    return (0.1 * rng.standard_normal((channels, length))).astype(np.float32)


def lag(reference, estimate):
    size = 1 << (2 * len(estimate)).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(estimate, size) * np.conj(np.fft.rfft(reference, size)), size)
    return (int(np.argmax(correlation)) + size // 2) % size - size // 2


@pytest.mark.parametrize("kbps", [24, 32, 64, 127, 128, 192, 237, 270, 271, 328, 345, 420, 421, 512])
def test_the_declared_frame_is_the_one_that_comes(kbps, rng):
    codec = Sbc(kbps * 1000)
    for rate_hz in codec.info.sample_rates_hz:
        for channels in (1, 2):
            frame = frame_of(kbps * 1000, rate_hz, channels)
            packets = codec.encode_one(noise(rng, channels, 1000), rate_hz)
            assert len(packets) == -(-(1000 + frame.delay_samples) // frame.samples)
            assert {len(packet) for packet in packets} == {frame.bytes}
            # The header (A2DP, appendix B): sync word; rate 2 bits, blocks 2, mode 2, allocation 1, sub-bands 1; bit
            # pool.
            for packet in packets:
                assert packet[0] == 0x9C and packet[2] == frame.bitpool
                assert packet[1] >> 6 == RATES_HZ.index(rate_hz)
                assert packet[1] >> 4 & 3 == 3 and packet[1] & 1 == (frame.subbands == 8)
                assert (packet[1] >> 2 & 3 == 0) == (channels == 1)
            spent = 8 * frame.bytes * rate_hz / frame.samples
            assert spent == pytest.approx(kbps * 1000, rel=0.05)


def test_every_bitrate_of_the_range_has_a_rate():
    assert all(Sbc(1000 * kbps).info.sample_rates_hz for kbps in range(24, 513))
    assert Sbc(512000).info.sample_rates_hz == (32000, 44100, 48000)
    assert Sbc(24000).info.sample_rates_hz == (16000,)
    for kbps in (4, 10, 1000):
        with refuses("codec_bitrate", hint="24 to 512 kbps"):
            Sbc(1000 * kbps)


@pytest.mark.parametrize(
    ("bps", "channels", "delay"), [(64000, 1, 73), (64000, 2, 73), (345000, 1, 37), (512000, 2, 37)]
)
def test_the_delay_is_that_of_the_filter_banks(bps, channels, delay, rng):
    wave = noise(rng, channels, 6000)
    codec = Sbc(bps)
    rate_hz = codec.info.sample_rates_hz[-1]
    packets = codec.encode_one(wave, rate_hz)
    assert delay == frame_of(bps, rate_hz, channels).delay_samples
    late = decode_packets("sbc", packets, rate_hz=rate_hz, channels=channels)
    aligned = codec.decode_one(packets, 6000, rate_hz, channels)
    for channel in range(channels):
        assert lag(wave[channel], late[channel]) == delay
        assert lag(wave[channel], aligned[channel]) == 0


def test_msbc_has_its_own_frame(rng):
    wave = noise(rng, 1, 16000)
    codec = Msbc()
    packets = codec.encode_one(wave, 16000)
    assert {(len(packet), packet[0]) for packet in packets} == {(57, 0xAD)}
    assert codec.info.nominal_bitrate_bps == 60800
    assert lag(wave[0], decode_packets("sbc", packets, rate_hz=16000, channels=1)[0]) == delay_samples(8)
    assert lag(wave[0], codec.decode_one(packets, 16000, 16000, 1)[0]) == 0


def test_more_bits_make_it_better(embedded):
    audio = embedded[0][1]
    wave, before = audio.samples[:1, :16000], 0.0
    for bps in (32000, 64000, 128000):
        codec = Sbc(bps)
        out = codec.decode_one(codec.encode_one(wave, 16000), 16000, 16000, 1)[:, :16000]
        snr_db = 10 * np.log10(np.sum(wave**2) / np.sum((out - wave) ** 2))
        assert snr_db > before + 5
        before = snr_db


def test_a_frame_of_another_size_is_refused(rng):
    packets = Sbc(64000).encode_one(noise(rng, 1, 2000), 16000)
    with refuses("packet_size", packet=2, packets=17, bytes=63, expected=64):
        Sbc(64000).decode_one([packets[0], packets[1][:-1], *packets[2:]], 2000, 16000, 1)
