"""SHEET and SingMOS equal the authors' classes over s3prl on stand-in weights, in any batch."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
import torch

from codec_bench.features import Unavailable
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs
from codec_bench.networks.ssl_mos import SingMosProNet

SIZES = {1: 8_000, 2: 5_321, 3: 16_001, 4: 801}
"""Samples of a signal by its seed."""
AUTHORS = {
    "sheet-ssqa": (2.672206163, 3.094985962, 2.375849009, 2.628793955),
    "sheet-ssqa-wavlm": (2.108196735, 2.209172249, 2.256875515, 1.561342359),
    "singmos-v1": (-0.484669596, -0.815120339, -0.008225071, -0.640120447),
    "singmos-pro": (3.347090483, 3.270649910, 3.310456038, 3.245302916),
}
"""Scores of the signals by `SSLMOS` at 7ea80cc and `MOS_Predictor` at 1554e86, over s3prl 0.4.18 and small encoders."""


@pytest.fixture(scope="module")
def signals():
    return [
        (0.1 * np.random.default_rng(seed).standard_normal(size)).astype(np.float32) for seed, size in SIZES.items()
    ]


@pytest.mark.parametrize("name", AUTHORS)
@pytest.mark.compares("sheet-ssqa*", "singmos-*", "sheet_ssqa*", "singmos_*", weights="stand-in")
def test_scores_are_those_of_the_authors(name, signals, tmp_path):
    feature = tiny_speech.SSL_MOS[name](weights=tiny_speech.write_ssl_mos(tmp_path, name))
    results = feature.compute(signals)
    assert [result["mos"] for result in results] == pytest.approx(AUTHORS[name], abs=1e-5)
    assert [feature.compute([signal])[0]["mos"] for signal in signals] == pytest.approx(AUTHORS[name], abs=1e-5)
    metric = build_metric(name.replace("-", "_"))
    assert metric.compute([Inputs("x", 16_000, estimate_features={name: results[0]})])[0].value == results[0]["mos"]
    assert all(isinstance(one, Unavailable) for one in feature.compute([signals[0][:799], signals[0] * 0]))


def test_the_published_sizes():
    """The names and shapes of s3prl's wav2vec 2.0 of the published configuration, which the checkpoint holds."""
    with torch.device("meta"):
        ours, theirs = SingMosProNet().state_dict(), tiny_speech.s3prl_net(SingMosProNet.published).state_dict()
    prefix = next(iter(SingMosProNet.prefixes))
    translated = SingMosProNet.translated({f"{prefix}{name}": value for name, value in theirs.items()})
    expected = {name: tuple(v.shape) for name, v in ours.items() if name.startswith("encoder.")}
    assert {name: tuple(v.shape) for name, v in translated.items()} == expected
