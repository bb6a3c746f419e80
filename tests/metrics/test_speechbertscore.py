"""SpeechBERTScore is its reference implementation's formula over the frames of the network that its name says."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from refusals import refuses

from codec_bench.metrics import Inputs, build_metric

# Not imported here: every process of tests collects this file, and would hold it for good.
pytestmark = pytest.mark.skipif(find_spec("s3prl") is None, reason="s3prl is not installed")
NAME = "speechbertscore[s3prl/wavlm_local]"
FEATURE = "s3prl-frames[wavlm_local]"


def score(reference, estimate):
    sides = [{FEATURE: {"frames": np.asarray(role, np.float32)}} for role in (reference, estimate)]
    item = Inputs("x", 16_000, reference_features=sides[0], estimate_features=sides[1])
    return build_metric(NAME).compute([item])[0]


def by_torch(v_generated, v_reference):
    """The formula of DiscreteSpeechMetrics: precision, recall and the harmonic mean."""
    import torch

    a, b = (torch.from_numpy(np.asarray(role, np.float32)) for role in (v_generated, v_reference))
    cosines = torch.matmul(a, b.T) / (torch.norm(a, dim=1, keepdim=True) * torch.norm(b, dim=1).unsqueeze(0))
    precision, recall = torch.max(cosines, dim=1)[0].mean().item(), torch.max(cosines, dim=0)[0].mean().item()
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.compares("speechbertscore", weights="none")
def test_it_is_the_formula(rng):
    reference, estimate = rng.standard_normal((70, 32)), rng.standard_normal((55, 32))
    result = score(reference, estimate)
    assert (result.value, result.detail["recall"], result.detail["f1"]) == pytest.approx(
        by_torch(estimate, reference), abs=1e-5
    )


def test_laws(rng):
    frames = rng.standard_normal((40, 16))
    assert score(frames, frames).value == pytest.approx(1)
    assert score(frames, frames[::-1]).value == pytest.approx(1)  # order does not matter
    item = score(frames, 3 * frames[:20])
    assert item.value == pytest.approx(1) and item.detail["recall"] < 0.95
    there, back = score(frames, frames[:9] + 0.5), score(frames[:9] + 0.5, frames)
    assert there.value == pytest.approx(back.detail["recall"]) and there.detail["f1"] == pytest.approx(
        back.detail["f1"]
    )


def test_names_and_protocols():
    default = build_metric("speechbertscore")
    assert default.estimate_features == ("s3prl-frames[hubert_base]",) and default.protocol.endswith(
        "/hubert_base/last"
    )
    layer = build_metric("speechbertscore[s3prl/wavlm_large@14]@bfloat16")
    assert layer.estimate_features == ("s3prl-frames[wavlm_large@14]@bfloat16",)
    assert layer.protocol.endswith("/wavlm_large/layer-14/bfloat16")
    for wrong, words in (("wavlm_large", "no_variant"), ("s3prl/", "no_variant"), ("s3prl/wavlm@last", "not_a_layer")):
        with refuses(words):
            build_metric(f"speechbertscore[{wrong}]")
