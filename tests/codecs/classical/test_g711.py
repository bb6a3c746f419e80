"""G.711 packet by packet against the whole signal."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.codecs import load_codec
from codec_bench.types import Audio


@pytest.mark.parametrize("name", ["g711-ulaw", "g711-alaw"])
@pytest.mark.parametrize(("length", "step"), [(1, 160), (160, 160), (1601, 160), (4800, 480), (8000, 8000)])
def test_pieces_give_the_packets_and_samples_of_the_whole_signal(name, length, step):
    codec = load_codec(name)
    audio = Audio(0.3 * np.random.default_rng(length).standard_normal(length), 8000)
    (complete,) = codec.encode([audio])
    with codec.streaming() as stream:
        assert stream.step_samples == 160
        coded = [stream.encode(Audio(audio.samples[:, at : at + step], 8000)) for at in range(0, length, step)]
        decoded = [stream.decode(codes) for codes in coded]
    assert tuple(packet for codes in coded for packet in codes.packets) == complete.packets
    joined = np.concatenate([segment.samples for segment in decoded], axis=1)
    assert np.array_equal(joined, codec.decode([complete])[0].samples)
