"""Bitrate is the number of bits over the duration, and that of a corpus is all bits over all seconds."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.metrics import Inputs, build_metric
from codec_bench.types import Codes, CodeStream


def score(bits, duration_s):
    return build_metric("bitrate").compute([Inputs("x", 24_000, bits=bits, duration_s=duration_s)])[0]


@pytest.mark.compares("bitrate", weights="none")
def test_codes_of_a_known_codec():
    """EnCodec at 6 kbit/s: 8 codebooks of 1024 entries, 75 frames a second."""
    codes = Codes((CodeStream(np.zeros((8, 150), int), 1024, 75.0),), 48_000, 24_000)
    result = score(codes.bits, codes.duration_s)
    assert result.value == 6_000.0 == codes.nominal_bitrate_bps
    assert (result.numerator, result.denominator) == (12_000.0, 2.0)
    assert result.protocol == "bitrate/payload"


def test_a_corpus_is_a_ratio_of_sums():
    """A second at 1 kbit/s and nine at 2 kbit/s are 1.9 kbit/s together, not the mean of the rates."""
    metric = build_metric("bitrate")
    assert metric.aggregate == "ratio" and not metric.signals and metric.kind == "single"
    assert not metric.higher_is_better and metric.unit == "bit/s"
    scores = [score(1_000, 1.0), score(18_000, 9.0), score(None, 5.0)]
    assert [one.status for one in scores] == ["ok", "ok", "undefined"]
    assert sum(one.numerator for one in scores[:2]) / sum(one.denominator for one in scores[:2]) == pytest.approx(
        1_900.0
    )


def test_nothing_sent_is_not_zero_bits():
    assert score(0, 2.0).value == 0.0
    absent = score(None, 2.0)
    assert absent.status == "undefined" and absent.reason.code == "not_a_codec"


@pytest.mark.parametrize("duration_s", [None, 0.0])
def test_audio_without_length_has_no_rate(duration_s):
    result = score(100, duration_s)
    assert result.status == "undefined" and result.reason.code == "no_length"
