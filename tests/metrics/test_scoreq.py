"""The metrics give the feature's score, and the distance of two embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs


def test_the_score_is_the_features():
    metric = build_metric("scoreq[synthetic]@float16")
    assert metric.estimate_features == ("scoreq[synthetic]@float16",)
    assert metric.protocol == "scoreq/scoreq-synthetic-nr/1/float16-weights"
    (score,) = metric.compute([Inputs("a", 16_000, estimate_features={metric.estimate_features[0]: {"scoreq": 3.5}})])
    assert (score.status, score.value) == ("ok", 3.5)


def test_the_distance_is_euclidean_and_its_own_zero():
    metric = build_metric("scoreq_ref")
    here, there = np.eye(4, dtype=np.float32)[:2]

    def score(reference, estimate):
        of_estimate, of_reference = ({"scoreq-embedding": {"embedding": role}} for role in (estimate, reference))
        item = Inputs("a", 16_000, estimate_features=of_estimate, reference_features=of_reference)
        return metric.compute([item])[0].value

    assert score(here, here) == 0
    assert score(here, there) == score(there, here) == pytest.approx(np.sqrt(2))
    assert score(here, -here) == 2
    assert metric.worst(text=None, language=None).value == 2
    assert not metric.higher_is_better


def test_other_domains_are_one_sentence():
    with refuses("no_variant", variant="music", name="SCOREQ"):
        build_metric("scoreq_ref[music]")
