"""Streams compared with the whole signal: with carried state they are equal, without it they are not."""

from __future__ import annotations

import pytest

from codec_bench.apps.profiling import streaming
from codec_bench.codecs.checks.steps import NotApplicable


def test_carried_state_equals_offline(measured):
    found = measured(streaming, "Averaging")
    assert found["equals_offline"] and found["codes_equal"] == 1.0 and found["wave_difference"] == 0.0
    assert found["step_ms"] == 5.0 and found["missing_samples"] == 0
    for side in ("encode_ms", "decode_ms"):
        assert 0 < found[side]["p50"] <= found[side]["p95"]


def test_forgotten_state_is_seen(measured):
    found = measured(streaming, "Forgetting")
    assert not found["equals_offline"]
    assert found["wave_difference"] > 1e-3 and found["codes_equal"] < 0.99


def test_frames_stream_to_the_last_incomplete_one(measured):
    found = measured(streaming, "Framed", stream_s=0.5031)
    assert found["equals_offline"] and found["missing_samples"] == 0


def test_a_codec_without_streams_says_so(measured):
    with pytest.raises(NotApplicable, match="cannot stream"):
        measured(streaming, "Pcm")
