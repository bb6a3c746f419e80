"""Speaker similarity is the cosine of Resemblyzer's embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec_bench.errors import UserError
from codec_bench.features import load_feature
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

directions = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).random(256, dtype=np.float32))


def score(reference, estimate):
    sides = {"reference_features": reference, "estimate_features": estimate}
    return build_metric("sim[ge2e]").compute(
        [Inputs("a", 16_000, **{side: {"ge2e": {"embedding": value}} for side, value in sides.items()})]
    )[0]


@given(reference=directions, estimate=directions)
def test_is_the_cosine_and_takes_no_side(reference, estimate):
    value = score(reference, estimate).value
    assert value == pytest.approx(np.corrcoef(np.r_[reference, -reference], np.r_[estimate, -estimate])[0, 1], abs=1e-6)
    assert value == pytest.approx(score(estimate, reference).value, abs=1e-12)
    assert value == pytest.approx(score(3 * reference, estimate).value, abs=1e-6)
    assert -1 <= value <= 1


@given(reference=directions)
def test_a_voice_is_like_itself(reference):
    assert score(reference, reference).value == pytest.approx(1, abs=1e-9)
    assert score(reference, -reference).value == pytest.approx(-1, abs=1e-9)


def test_more_noise_is_less_alike(recordings, rng):
    import torch

    from codec_bench.audio.resample import prepare

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        audio = next(audio for row, audio in recordings if row["id"].startswith("librispeech"))
        clean = prepare(audio, 16_000)
        noise = rng.normal(0, clean.std(), clean.size).astype(np.float32)
        results = load_feature("ge2e").compute([clean, *(clean + g * noise for g in (0.03, 0.3, 3.0))])
    finally:
        torch.set_num_threads(threads)
    reference, *estimates = (result["embedding"] for result in results)
    values = [score(reference, estimate).value for estimate in estimates]
    assert 1 > values[0] > values[1] > values[2]


def test_one_score_per_item_in_order():
    metric = build_metric("sim[ge2e]")
    one, two = np.eye(256, dtype=np.float32)[:2]
    item = lambda estimate: Inputs(  # noqa: E731
        "a",
        16_000,
        reference_features={"ge2e": {"embedding": one}},
        estimate_features={"ge2e": {"embedding": estimate}},
    )
    scores = metric.compute([item(one), item(two), item(one + two)])
    assert [s.value for s in scores] == pytest.approx([1, 0, 2**-0.5], abs=1e-6)
    assert {s.protocol for s in scores} == {"sim/ge2e/resemblyzer-0.1/no-vad"}


def test_reads_the_embedding_of_both_sides():
    metric = build_metric("sim[ge2e]")
    assert metric.name == "sim[ge2e]"
    assert metric.reference_features == metric.estimate_features == ("ge2e",)
    assert not metric.signals


def test_a_bare_sim_says_what_there_is():
    with pytest.raises(UserError, match=r"WavLM-large.*sim\[ge2e\]"):
        build_metric("sim")
    with pytest.raises(UserError, match=r"'wavlm'.*sim\[ge2e\]"):
        build_metric("sim[wavlm]")
