"""Metrics of one item compute what they have in common once, with the numbers that each has alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from codec_bench import Audio, load_metric
from codec_bench.engine.stage import MetricStage, MetricWork, StageSpec
from codec_bench.metrics import base, build_metric
from codec_bench.metrics.base import Inputs, SharedResults

RATE = 16_000
TOGETHER = (
    *("cbak", "cd", "covl", "csig", "csii_high", "csii_low", "csii_mid", "estoi", "fwsegsnr", "llr", "lsd"),
    *("lsd[floored]", "mel_distance", "ncm", "pesq_wb", "snr_seg", "stft_distance", "stoi", "wss"),
)
PARTS = {
    "pesq:pesq": 1,
    "codec_bench.metrics.loizou:_Frames": 2,
    "codec_bench.metrics.loizou:log_likelihood_ratios": 1,
    "codec_bench.metrics.loizou:spectral_slope_distance": 1,
    "codec_bench.kernels.spectrum.ref:pairs": 3,
    "codec_bench.kernels.stoi.cpu:envelopes": 1,
}
"""Calls of one item: two sides have frames, and windows of 2048, 512 and 742 samples have spectra."""


def pair(seed):
    """A modulated noise with pauses, which PESQ takes for speech, and a noisy copy."""
    rng, seconds = np.random.default_rng(seed), np.arange(2 * RATE) / RATE
    speech = (rng.standard_normal(seconds.size) * np.clip(np.sin(6 * seconds), 0.0, 1.0) / 8).astype(np.float32)
    return speech, speech + rng.standard_normal(seconds.size).astype(np.float32) / 200


@pytest.fixture
def calls(monkeypatch):
    counts = Counter()
    for path in PARTS:
        module, _, name = path.partition(":")
        function = getattr(__import__(module, fromlist=[name]), name)

        def counting(*arguments, path=path, function=function, **more):
            counts[path] += 1
            return function(*arguments, **more)

        monkeypatch.setattr(f"{module}.{name}", counting)
    return counts


class Memory:
    """Signals in place of an arena's regions."""

    def view(self, region):
        return region


def score_in_stage(names, pairs):
    works = [MetricWork({RATE: y}, {RATE: x}, RATE, {"id": str(k)}) for k, (x, y) in enumerate(pairs)]
    scores, seconds = MetricStage(StageSpec("signal metrics", "metrics", names), "cpu").run(works, Memory())
    assert list(seconds) == list(names)
    return scores


def score_loaded(names, pairs):
    references, estimates = zip(*([Audio(x, RATE), Audio(y, RATE)] for x, y in pairs))
    return load_metric(",".join(names))(reference=list(references), estimate=list(estimates))


@pytest.mark.parametrize("score", [score_in_stage, score_loaded])
def test_each_part_is_computed_once_for_an_item(score, calls):
    pairs = [pair(1), pair(2)]
    together = score(TOGETHER, pairs)
    assert calls == {path: 2 * count for path, count in PARTS.items()}
    assert [list(row) for row in together] == [list(TOGETHER)] * 2
    for name in TOGETHER:
        (metric,) = score((name,), pairs[:1])
        assert metric[name] == together[0][name], name
        assert metric[name].status == "ok"


def test_the_reasons_are_those_of_each_metric():
    silent, speech = np.zeros(RATE, np.float32), pair(1)[0][:RATE]
    for x, y in ((silent, speech), (speech, silent), (speech[:300], speech[:300]), (speech, 2 * speech)):
        (together,) = score_in_stage(TOGETHER, [(x, y)])
        for name in TOGETHER:
            (metric,) = score_in_stage((name,), [(x, y)])
            assert repr(metric[name]) == repr(together[name])


def test_spectra_of_long_signals_are_not_held(calls, monkeypatch):
    expected = score_in_stage(TOGETHER, [pair(1)])
    calls.clear()
    monkeypatch.setattr(base, "SHARED_SAMPLES", RATE)
    assert score_in_stage(TOGETHER, [pair(1)]) == expected
    assert calls["pesq:pesq"] == calls["codec_bench.metrics.loizou:spectral_slope_distance"] == 1
    assert calls["codec_bench.metrics.loizou:_Frames"] > 2


def test_metrics_with_other_signals_share_nothing():
    class Foreign(type(build_metric("pesq_wb"))):
        """A metric of the caller."""

    shared = SharedResults()
    signals = [shared.of(metric, RATE) for metric in (build_metric("pesq_wb"), build_metric("si_sdr"), Foreign())]
    assert len({id(one) for one in [*signals, shared.of(build_metric("pesq_wb"), 8_000)]}) == 4
    assert shared.of(build_metric("csig"), RATE) is signals[0]
    assert Inputs("a", RATE).shared is not Inputs("b", RATE).shared
