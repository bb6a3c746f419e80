"""Fixtures that tests of neural codecs share."""

from __future__ import annotations

import pytest

from codec_bench.audio.resample import resample
from codec_bench.types import Audio


@pytest.fixture(scope="module", autouse=True)
def no_converted_weights():
    """Stand-in weights of full size stay out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codec_bench.weights.converted.MAX_BYTES", 0)
        yield


@pytest.fixture
def all_together(monkeypatch):
    """Makes the whole batch one padded pass, as on a GPU, however different the lengths are."""
    for module in ("base", "bicodec", "snac"):
        monkeypatch.setattr(
            f"codec_bench.codecs.neural.{module}.passes", lambda lengths, device, **_: [list(range(len(lengths)))]
        )


@pytest.fixture
def ragged_speech(spoken):
    """A function that gives the beginnings of some clips at a rate, each of another length."""

    def cut(rate_hz, *, every, shortest_s, step_s):
        batch = []
        for k, (_, audio) in enumerate(spoken[::every]):
            length = int(audio.sample_rate_hz * (shortest_s + step_s * ((k * 7) % 11)))
            batch.append(Audio(resample(audio.samples[:1, :length], audio.sample_rate_hz, rate_hz), rate_hz))
        return batch

    return cut
