"""The codec of the tutorial in its three kinds: codes, packets and latents, and its stream."""

from __future__ import annotations

import numpy as np

from codec_bench import Audio
from codec_bench.codecs import load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.codecs.checks.serialised_codes import from_bytes, to_bytes

FILE = "examples/small_codec.py"


def test_packets_hold_the_same_codes_in_fewer_bits(spoken):
    clips = [audio for _, audio in spoken[:2]]
    small, packed = load_codec(f"{FILE}:Small16"), load_codec(f"{FILE}:Packed")
    plain, sent = (reconstruct(codec, clips).items for codec in (small, packed))
    for one, other in zip(plain, sent, strict=True):
        assert np.array_equal(one.estimate.samples, other.estimate.samples)
    (codes,) = packed.encode([Audio(clips[0].samples[:1], 16000)])
    assert codes.bits == 8 * len(codes.packets[0]) and packed.info.nominal_bitrate_bps is None
    (again,) = packed.decode([from_bytes(to_bytes(codes))])  # nothing but the packet is needed
    assert np.array_equal(again.samples, packed.decode([codes])[0].samples)
    bits = [small.encode([Audio(a.samples[:1], 16000)])[0].bits for a in clips]
    assert codes.bits < 0.9 * bits[0]


def test_latents_lose_what_lies_above_their_band_and_nothing_else(rng):
    codec = load_codec(f"{FILE}:Continuous")
    t = np.arange(16000) / 16000
    low, high = 0.3 * np.sin(2 * np.pi * 440 * t), 0.3 * np.sin(2 * np.pi * 5000 * t)
    (latents,) = codec.encode([Audio(low + high, 16000)])
    assert latents.values.shape == (64, 64) and latents.bits is None  # 62.5 frames a second, and one for the overlap
    (out,) = codec.decode([latents])
    assert np.abs(out.samples[0, 512:-512] - low[512:-512]).max() < 0.005  # 64 bands end at 2 kHz
    finer = [load_codec(f"{FILE}:Continuous", latent_bits=bits) for bits in (4, 8, 12)]
    voice = Audio(0.1 * rng.standard_normal((1, 8000)), 16000)
    (exact,) = codec.decode(codec.encode([voice]))
    errors = [float(np.square(c.decode(c.encode([voice]))[0].samples - exact.samples).mean()) for c in finer]
    assert errors == sorted(errors, reverse=True)
    assert [c.info.nominal_bitrate_bps for c in finer] == [16000.0, 32000.0, 48000.0]


def test_the_stream_gives_what_the_whole_signal_gives(rng):
    codec = load_codec(f"{FILE}:Small16")
    for length in (256, 2560, 2600):
        voice = Audio(0.1 * rng.standard_normal((1, length)), 16000)
        complete = codec.encode([voice])[0].streams[0].values
        with codec.streaming() as stream:
            pieces = [Audio(voice.samples[:, at : at + 256], 16000) for at in range(0, length, 256)]
            sent = [stream.encode(segment) for segment in pieces]
            output = np.concatenate([stream.decode(codes).samples for codes in sent], axis=1)
        assert np.array_equal(np.concatenate([c.streams[0].values for c in sent], axis=1), complete[:, : len(sent)])
        assert np.array_equal(output, codec.decode(codec.encode([voice]))[0].samples[:, : output.shape[1]])
        assert output.shape[1] == 256 * (len(pieces) - 1)
