from __future__ import annotations

import io

import numpy as np
from refusals import refuses

from codec_bench.codecs.classical.bitstream import decode_packets
from codec_bench.codecs.classical.g723_1 import DELAY_SAMPLES, G7231


def lag(reference, estimate):
    size = 1 << (2 * len(estimate)).bit_length()
    spectrum = np.fft.rfft(estimate, size) * np.conj(np.fft.rfft(reference, size))
    correlation = np.fft.irfft(spectrum, size)
    return (int(np.argmax(correlation)) + size // 2) % size - size // 2


def test_a_frame_is_24_bytes_and_says_the_higher_rate(rng):
    packets = G7231().encode_one((0.1 * rng.standard_normal((1, 8000))).astype(np.float32), 8000)
    assert len(packets) == -(-(8000 + DELAY_SAMPLES) // 240)
    assert {len(packet) for packet in packets} == {24}
    assert {packet[0] & 3 for packet in packets} == {0}  # the two bits of the rate: 0 is 6.3 kbps


def test_the_delay_is_what_noise_says(rng):
    wave = (0.1 * rng.standard_normal((1, 16000))).astype(np.float32)
    codec = G7231()
    packets = codec.encode_one(wave, 8000)
    assert lag(wave[0], decode_packets("g723_1", packets, rate_hz=8000, channels=1)[0]) == DELAY_SAMPLES
    assert lag(wave[0], codec.decode_one(packets, 16000, 8000, 1)[0]) == 0


def test_packets_decode_to_what_ffmpeg_reads_from_a_file_of_them(rng):
    import av

    wave = (0.1 * rng.standard_normal((1, 8000))).astype(np.float32)
    packets = G7231().encode_one(wave, 8000)
    with av.open(io.BytesIO(b"".join(packets)), format="g723_1") as container:
        complete = np.concatenate([f.to_ndarray().reshape(-1) for f in container.decode(audio=0)])
    ours = G7231().decode_one(packets, 8000, 8000, 1)[0]
    assert len(ours) >= 8000
    np.testing.assert_array_equal(ours * 32768, complete[DELAY_SAMPLES:])


def test_a_frame_of_the_other_rate_is_refused():
    packets = G7231().encode_one(np.zeros((1, 8000), np.float32), 8000)
    with refuses("packet_size", packet=2, packets=34, bytes=20, expected=24):
        G7231().decode_one([packets[0], packets[1][:20], *packets[2:]], 8000, 8000, 1)
