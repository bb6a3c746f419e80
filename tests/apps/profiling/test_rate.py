"""Bitrates and codebook use of codes with a known distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest

from codec_bench import CodecInfo, Codes, CodeStream
from codec_bench.apps.profiling.codebook_use import RateCounter
from codec_bench.codecs.adapt import CodecFault, fault_of
from codec_bench.codecs.checks.steps import OneShape


def codes(values, cardinality=32, rate=200.0, **more):
    frames = values.shape[1]
    return Codes((CodeStream(values, cardinality, rate),), round(frames * 16000 / rate), 16000, **more)


def counted(items, **info):
    counter = RateCounter(CodecInfo("x", (16000,), **info))
    for item in items:
        counter.add(item)
    return counter.result()


def test_equally_frequent_codes_have_the_full_entropy():
    every = np.stack([np.arange(32 * 32) % 32, np.arange(32 * 32) // 32])
    result = counted([codes(every)] * 4, nominal_bitrate_bps=2000.0)
    (stream,) = result["streams"]
    assert result["nominal_bps"] == result["measured_bps"] == result["declared_bps"] == 2000.0
    assert result["entropy_coded_bps"] == pytest.approx(2000.0)  # the correction may not exceed the nominal rate
    assert result["joint_bps"] == pytest.approx(2000.0, rel=0.01)
    assert stream["utilisation"] == 1.0 and stream["dead"] == 0 and stream["perplexity"] == pytest.approx(32.0)
    assert result["tokens"] == 4 * 2 * 1024 and result["tokens_per_s"] == 400.0
    assert stream["per_codebook"][0]["histogram"] == [128] * 32


def test_half_of_a_codebook_dead_costs_one_bit_less():
    values = np.stack([np.arange(3200) % 32, np.arange(3200) // 32 % 16])
    result = counted([codes(values)])
    first, second = result["streams"][0]["per_codebook"]
    assert (first["used"], second["used"], second["dead"]) == (32, 16, 16)
    assert first["entropy_bits"] == pytest.approx(5.0) and second["perplexity"] == pytest.approx(16.0, rel=0.01)
    plain = 200 * (first["entropy_bits"] + second["entropy_bits"])
    # Miller and Madow add (entries seen - 1) / (2 tokens) nats to each, here to the second alone: the first is at its
    # limit.
    corrected = plain + 200 * 15 / (2 * 3200 * math.log(2))
    assert result["entropy_coded_bps"] == pytest.approx(corrected)


def test_a_second_codebook_that_repeats_the_first_costs_nothing_jointly():
    row = np.arange(3200) % 32
    result = counted([codes(np.stack([row, row]))])
    assert result["joint_bps"] == pytest.approx(1000.0, rel=0.01)
    assert result["entropy_coded_bps"] == pytest.approx(2000.0)


def test_few_tokens_have_no_joint_rate_and_a_reason(rng):
    result = counted([codes(rng.integers(0, 1024, (2, 50)), cardinality=1024)])
    assert result["joint_bps"] is None and result["joint_reason"].as_dict() == {
        "code": "pairs_unseen",
        "frames": 50,
        "coverage": 0.0,
        "needed": 0.95,
    }


def test_parts_in_any_batches_equal_the_whole(rng):
    values = rng.integers(0, 32, (3, 3000))
    parts = counted([codes(item) for item in np.split(values, 5, axis=1)])
    assert parts == {**counted([codes(values)]), "items": 5}


def test_packets_and_side_information_count_and_have_no_codebooks():
    packets = Codes((), 16000, 16000, packets=(b"1234567890",) * 50, side_bits=400.0)
    result = counted([packets], frame_rate_hz=50.0)
    assert result["measured_bps"] == result["packets_and_side_bps"] == 4400.0
    assert result["entropy_coded_bps"] is None and "packets" in result["entropy_coded_reason"]
    assert result["packets"] == {
        "packets": 50, "packets_per_s": 50.0, "bytes_lowest": 10, "bytes_median": 10.0, "bytes_highest": 10,
    }  # fmt: skip
    extra = counted([codes(np.zeros((1, 200), int), side_bits=100.0)])
    assert extra["entropy_coded_bps"] == pytest.approx(100.0)


def test_codes_sent_once_are_spread_over_the_seconds(rng):
    item = Codes(
        (CodeStream(rng.integers(0, 16, (1, 400)), 16, 200.0, "sound"),
            CodeStream(rng.integers(0, 256, (8, 1)), 256, 0.0, "voice")),
        32000, 16000,
    )  # fmt: skip
    result = counted([item])
    assert result["measured_bps"] == pytest.approx(200 * 4 + 8 * 8 / 2)
    assert result["tokens_per_s"] == 200.0 and result["tokens_per_item"] == 8
    assert result["streams"][1]["nominal_bps"] == pytest.approx(8 * 8 / 2)


def test_an_operating_point_that_changes_its_codebooks_is_a_fault():
    shapes = OneShape("two-faced")
    shapes.add(codes(np.zeros((2, 10), int)))
    with pytest.raises(CodecFault) as caught:
        shapes.add(codes(np.zeros((1, 10), int)))
    assert fault_of(caught.value).code == "streams_differ"
