from __future__ import annotations

import io

import numpy as np
import pytest
from refusals import refuses

from codec_bench.codecs.adapt import reconstruct
from codec_bench.codecs.classical.aptx import DELAY_SAMPLES, RATES_HZ, Aptx
from codec_bench.codecs.classical.bitstream import decode_packets
from codec_bench.types import Audio

CASES = [(rate_hz, hd) for rate_hz in RATES_HZ for hd in (False, True)]


def noise(rng, length, level=0.1):
    return (level * rng.standard_normal((2, length))).astype(np.float32)


def lag(reference, estimate):
    size = 1 << (2 * len(estimate)).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(estimate, size) * np.conj(np.fft.rfft(reference, size)), size)
    return (int(np.argmax(correlation)) + size // 2) % size - size // 2


@pytest.mark.parametrize(("rate_hz", "hd"), CASES)
def test_four_samples_become_one_word_and_none_is_sent_in_vain(rate_hz, hd, rng):
    codec, word = Aptx(rate_hz, hd), 6 if hd else 4
    assert codec.info.nominal_bitrate_bps == rate_hz * 2 * (24 if hd else 16) / 4
    for length in (1, 2, 3, 4, 933, 934, 935, 1024, 5000):
        packets = codec.encode_one(noise(rng, length), rate_hz)
        assert sum(map(len, packets)) == word * -(-(length + DELAY_SAMPLES) // 4)
        assert length <= codec.decode_one(packets, length, rate_hz, 2).shape[1] < length + 4


@pytest.mark.parametrize(("rate_hz", "hd"), CASES)
def test_the_delay_is_what_noise_says(rate_hz, hd, rng):
    wave, name = noise(rng, 12000), "aptx_hd" if hd else "aptx"
    codec = Aptx(rate_hz, hd)
    packets = codec.encode_one(wave, rate_hz)
    late = decode_packets(name, packets, rate_hz=rate_hz, channels=2)
    aligned = codec.decode_one(packets, 12000, rate_hz, 2)
    for channel in range(2):
        assert lag(wave[channel], late[channel]) == DELAY_SAMPLES
        assert lag(wave[channel], aligned[channel]) == 0


@pytest.mark.parametrize("hd", [False, True])
def test_packets_decode_to_what_ffmpeg_reads_from_a_file_of_them(hd, rng):
    import av

    packets = Aptx(48000, hd).encode_one(noise(rng, 10000), 48000)
    name = "aptx_hd" if hd else "aptx"
    with av.open(io.BytesIO(b"".join(packets)), format=name, options={"sample_rate": "48000"}) as container:
        complete = np.concatenate([f.to_ndarray() for f in container.decode(audio=0)], axis=1)
    ours = Aptx(48000, hd).decode_one(packets, 10000, 48000, 2)
    np.testing.assert_array_equal(ours.astype(np.float64) * 2**31, complete[:, DELAY_SAMPLES:])


def test_hd_is_finer(rng):
    for level in (0.3, 1e-4):  # the second level is three steps of 16 bits, but 24 bits are coded
        wave = noise(rng, 9600, level)
        error = {}
        for hd in (False, True):
            codec = Aptx(48000, hd)
            out = codec.decode_one(codec.encode_one(wave, 48000), 9600, 48000, 2)[:, :9600]
            error[hd] = np.sum((out - wave) ** 2)
        assert 4 * error[True] < error[False] < 0.1 * np.sum(wave**2)


def test_full_scale_does_not_wrap():
    wave = np.ones((2, 4800), np.float32)
    codec = Aptx(48000)
    out = codec.decode_one(codec.encode_one(wave, 48000), 4800, 48000, 2)
    assert out[:, 1000:4000].min() > 0.9


def test_one_channel_is_doubled_and_comes_back_alone(embedded):
    audio = embedded[0][1]
    (item,) = reconstruct(Aptx(48000), [Audio(audio.samples[:, :8000], audio.sample_rate_hz)]).items
    assert item.estimate.samples.shape == (1, 24000)
    assert item.bits == 8 * 4 * -(-(24000 + DELAY_SAMPLES) // 4)


def test_other_rates_are_refused():
    with refuses("codec_rate", hint="44100 or 48000 Hz"):
        Aptx(16000)
