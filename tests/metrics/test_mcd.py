"""MCD gives VERSA's numbers, with and without warping, and follows its definition on known cepstra."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.metrics import Inputs, build_metric
from codec_bench.metrics.base import inputs_or_score


def score(name, reference, estimate):
    sides = [{"mel_cepstrum": role} for role in (reference, estimate)]
    metric = build_metric(name)
    item = inputs_or_score(metric, id="x", rate_hz=16_000, reference_features=sides[0], estimate_features=sides[1])
    assert isinstance(item, Inputs)
    return metric.compute([item])[0]


def cepstra(values, power_db=None):
    values = np.asarray(values, np.float32)
    power = np.zeros(len(values)) if power_db is None else np.asarray(power_db)
    return {"cepstra": values, "power_db": power.astype(np.float32), "hop_s": 0.005}


@pytest.mark.compares("mcd", "mel_cepstrum", weights="none")
def test_it_is_versas(oracles):
    pytest.importorskip("pyworld", reason="WORLD's envelope")
    from codec_bench.features.mel_cepstrum import MelCepstrum

    feature = MelCepstrum()
    for pair, numbers in oracles[:1]:  # Harvest takes half a second a pair
        sides = feature.compute([pair.reference, pair.estimate])
        assert score("mcd", *sides).value == pytest.approx(numbers["mcd"], rel=1e-4), pair.inputs.id
        assert score("mcd[dtw]", *sides).value == pytest.approx(numbers["mcd[dtw]"], rel=1e-4), pair.inputs.id


def test_a_known_distance():
    reference = np.zeros((4, 40))
    estimate = reference.copy()
    estimate[:, 7] = [0.0, 0.1, 0.2, 0.3]
    result = score("mcd", cepstra(reference), cepstra(estimate))
    assert result.value == pytest.approx(10 / np.log(10) * np.sqrt(2) * 0.15, rel=1e-6)
    assert result.detail == {"frames": 4} and build_metric("mcd").unit == "dB"
    assert score("mcd", cepstra(reference), cepstra(reference)).value == 0


def test_the_level_counts():
    """The first coefficient is half of the mean log power: a factor of 10 in power is 10 dB times sqrt(2) / 2."""
    reference = np.zeros((5, 40))
    louder = reference.copy()
    louder[:, 0] += np.log(10) / 2
    assert score("mcd", cepstra(reference), cepstra(louder)).value == pytest.approx(10 * np.sqrt(2) / 2, rel=1e-6)


def test_warping_forgives_speed_and_leaves_quiet_frames_out():
    rng = np.random.default_rng(1)
    frames = np.cumsum(rng.standard_normal((60, 40)), axis=0)
    slow = np.repeat(frames, 2, axis=0)
    assert score("mcd[dtw]", cepstra(frames), cepstra(slow)).value == 0
    quiet = np.concatenate([slow, 99 + rng.standard_normal((30, 40))])
    power = np.concatenate([np.zeros(120), np.full(30, -25.0)])
    assert score("mcd[dtw]", cepstra(frames), cepstra(quiet, power)).value == 0
    result = score("mcd", cepstra(frames), cepstra(slow))
    assert result.status == "refused" and result.code == "frames_apart"
    assert (
        result.reason.parameters["longer_s"] == pytest.approx(0.3) and result.reason.parameters["other"] == "mcd[dtw]"
    )


def test_there_is_one_variant():
    with refuses("no_variant", name="mcd", variant="sl"):
        build_metric("mcd[sl]")
