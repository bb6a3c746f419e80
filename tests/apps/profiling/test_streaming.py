"""Streams compared with the whole signal: with carried state they are equal, without it they are not."""

from __future__ import annotations

import numpy as np
from refusals import refuses

from codec_bench.apps.profiling import latency
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.types import Audio


def test_carried_state_equals_offline(measured):
    result = measured(latency.measure_streaming, "Averaging")
    assert result["equals_offline"] and result["codes_equal"] == 1.0 and result["wave_difference"] == 0.0
    assert result["step_ms"] == 5.0 and result["missing_samples"] == 0
    for role in ("encode_ms", "decode_ms"):
        assert 0 < result[role]["p50"] <= result[role]["p95"]


def test_the_first_output_waits_for_its_step(measured):
    result = measured(latency.measure_streaming, "Averaging")
    assert result["first_output_ms"] > result["step_ms"] and result["real_time_factor"] > 0
    assert result["largest_lag_ms"] >= max(result[role]["p50"] for role in ("encode_ms", "decode_ms"))


def test_a_lag_adds_up_only_while_steps_take_longer_than_they_last():
    assert latency.largest_lag_ms([3.0, 3.0, 3.0], 10.0) == 3.0
    assert latency.largest_lag_ms([15.0, 15.0, 15.0], 10.0) == 25.0
    assert latency.largest_lag_ms([25.0, 1.0, 1.0, 1.0], 10.0) == 25.0
    assert latency.largest_lag_ms([1.0, 25.0, 1.0], 10.0) == 25.0


def test_forgotten_state_is_seen(measured):
    result = measured(latency.measure_streaming, "Forgetting")
    assert not result["equals_offline"]
    assert result["wave_difference"] > 1e-3 and result["codes_equal"] < 0.99


def test_frames_stream_to_the_last_incomplete_one(measured):
    result = measured(latency.measure_streaming, "Framed", stream_s=0.5031)
    assert result["equals_offline"] and result["missing_samples"] == 0


def test_a_codec_without_streams_says_so(measured):
    with refuses("no_streaming", error=NotApplicable):
        measured(latency.measure_streaming, "Pcm")


SMALL = "examples/small_codec.py:Small16"


def streamed(codec, files):
    return latency.measure_streaming(codec, ProfileClips(files, codec), Settings(stream_s=0.8))


def test_a_late_decoder_equals_offline_once_silence_has_brought_out_the_rest(files):
    result = streamed(load_codec(SMALL), files)
    assert result["missing_samples"] == result["step_samples"] == 256  # a lapped transform is one hop late
    assert result["equals_offline"] and result["codes_equal"] == 1.0 and result["wave_difference"] == 0.0


def test_samples_that_never_come_are_not_lateness(files, monkeypatch):
    codec = load_codec(SMALL)
    with codec.streaming() as stream:
        decode, options = type(stream).decode, []

    def stops(stream, codes):
        options.append(codes)
        return decode(stream, codes) if len(options) < 40 else Audio(np.zeros((1, 0)), 16000)

    monkeypatch.setattr(type(stream), "decode", stops)
    result = streamed(codec, files)
    assert not result["equals_offline"] and result["missing_samples"] > 256
