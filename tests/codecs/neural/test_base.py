"""Padded passes of the codecs that this project built: a batch equals its items alone."""

from __future__ import annotations

import numpy as np
import pytest
from glides import glide
from random_codecs import built

# Around each codec's hop and the shortest length that its convolutions can reflect or mirror.
LENGTHS = {
    "bigcodec": (1, 2, 5, 199, 200, 201, 399, 400, 1000, 3333, 8000),
    "chattts-dvae": (1, 300, 512, 513, 767, 768, 1023, 1024, 1279, 1280, 5003, 24001),
    "funcodec-zh-en-ds320@16": (1, 2, 5, 319, 320, 321, 641, 1000, 3333, 8000),
    "funcodec-zh-en-ds640@8": (1, 2, 5, 639, 640, 641, 1000, 3333, 8000),
    "spark-bicodec": (1, 100, 399, 400, 401, 719, 720, 1040, 2500, 6000, 16001),
    "speechtokenizer@4": (1, 2, 5, 319, 320, 321, 641, 1000, 3333, 8000),
    "wavtokenizer-large-speech-75token": (1, 2, 100, 319, 320, 321, 2399, 4801, 9600, 12345),
    "wavtokenizer-large-unify-40token": (1, 2, 100, 599, 600, 601, 2399, 4801, 9600, 12345),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_batch_equals_its_items_alone(name, all_together):
    codec = built(name)
    batch = [glide(length, seed, codec.info.sample_rates_hz[0]) for seed, length in enumerate(LENGTHS[name])]
    together = codec.encode(batch)
    alone = [codec.encode([audio])[0] for audio in batch]
    for one, many in zip(alone, together, strict=True):
        for mine, theirs in zip(one.streams, many.streams, strict=True):
            assert np.array_equal(mine.values, theirs.values), f"{mine.name} of {one.num_samples} samples"
        assert one.side == many.side
    waves = codec.decode(together)
    for one, wave in zip(alone, waves, strict=True):
        (single,) = codec.decode([one])
        np.testing.assert_allclose(wave.samples, single.samples, rtol=0, atol=1e-5)
    assert max(np.abs(wave.samples).max() for wave in waves) > 0.05
