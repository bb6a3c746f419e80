"""WARP-Q gives its authors' numbers, and what is worse costs more."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.messages import Diagnostic
from codec_bench.metrics import Inputs, build_metric


def score(name, reference, estimate):
    metric = build_metric(name)
    return metric.compute([Inputs("x", metric.rate_hz, estimate, reference)])[0]


@pytest.mark.compares("warpq", weights="none")
def test_it_is_its_authors_and_versas(oracles):
    from codec_bench.audio.resample import resample

    for pair, numbers in oracles:
        assert score("warpq", pair.reference, pair.estimate).value == pytest.approx(numbers["warpq"], abs=2e-3)
        sides = [resample(role, 16_000, 8_000) for role in (pair.reference, pair.estimate)]
        assert score("warpq[versa]", *sides).value == pytest.approx(numbers["warpq[versa]"], abs=2e-3)


def test_noise_costs_more_and_a_copy_is_not_free(embedded):
    from codec_bench.audio.resample import prepare

    signal = prepare(embedded[0][1], 16_000)[:24_000]
    rng = np.random.default_rng(1)
    values = [
        score("warpq", signal, (signal + level * rng.standard_normal(signal.size)).astype(np.float32)).value
        for level in (0.0, 0.003, 0.03)
    ]
    assert values == sorted(values) and 0.5 < values[0] < 0.8 and values[2] > 1.5


def test_signals_shorter_than_a_piece():
    short = (0.1 * np.random.default_rng(1).standard_normal(5_800)).astype(np.float32)
    result = score("warpq", short, short)
    assert (
        result.status == "undefined"
        and Diagnostic("few_frames_for_piece", frames=91, patch=92, hop_ms=4) in result.reason
    )
    assert score("warpq", short[:0], short[:0]).status == "undefined"
    silence = np.zeros(16_000, np.float32)
    assert score("warpq", silence, silence).status == "undefined"


def test_rates_and_variants():
    assert (build_metric("warpq").rate_hz, build_metric("warpq[versa]").rate_hz) == (16_000, 8_000)
    with refuses("no_variant", name="warpq", variant="mos"):
        build_metric("warpq[mos]")
