"""Speaker similarity is the cosine of the embeddings of the encoder that the name says."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from codec_bench.config.registry import Spec
from codec_bench.features import load_feature
from codec_bench.features.speakers.wavlm_sv import WavlmLargeSv
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs, inputs_or_score

ENCODERS = {
    "sim": ("wavlm-large-sv", "sim/wavlm-large-sv/seed-tts-eval"),
    "sim[wavlm-large-sv]": ("wavlm-large-sv", "sim/wavlm-large-sv/seed-tts-eval"),
    "sim@bfloat16": ("wavlm-large-sv@bfloat16", "sim/wavlm-large-sv/seed-tts-eval/bfloat16-weights"),
    "sim[wavlm-base-plus-sv]": ("wavlm-base-plus-sv", "sim/wavlm-base-plus-sv/transformers"),
    "sim[wavlm-base-plus-sv]@tf32": ("wavlm-base-plus-sv@tf32", "sim/wavlm-base-plus-sv/transformers/tf32"),
    "sim[eres2net]": ("eres2net", "sim/eres2net-voxceleb/cv3-eval"),
    "sim[campplus]": ("campplus", "sim/campplus-zh-cn-common/3d-speaker"),
    "sim[wespeaker-resnet34]": ("wespeaker-resnet34", "sim/wespeaker-voxceleb-resnet34-lm/wespeaker"),
    "sim[redimnet-b5]": ("redimnet-b5", "sim/redimnet-b5-vox2-ft-lm/redimnet"),
    "sim[ge2e]": ("ge2e", "sim/ge2e/resemblyzer-0.1/no-vad"),
    "sim[ge2e-vad]": ("ge2e-vad", "sim/ge2e/resemblyzer-0.1/webrtcvad-2.0"),
}
directions = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).random(256, dtype=np.float32))


def score(reference, estimate):
    sides = {"reference_features": reference, "estimate_features": estimate}
    return build_metric("sim[ge2e]").compute(
        [Inputs("a", 16_000, **{role: {"ge2e": {"embedding": value}} for role, value in sides.items()})]
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


def test_more_noise_is_less_alike(spoken, rng):
    import torch

    from codec_bench.audio.resample import prepare

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        audio = max((audio for row, audio in spoken if row.get("language") == "en"), key=lambda audio: audio.duration_s)
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


@pytest.mark.parametrize("name", ENCODERS)
def test_the_name_says_the_encoder(name):
    feature, protocol = ENCODERS[name]
    metric = build_metric(name)
    assert metric.name == name
    assert metric.reference_features == metric.estimate_features == (feature,)
    assert metric.protocol == protocol
    assert not metric.signals
    assert Spec.parse(feature).name in (
        "wavlm-large-sv",
        "wavlm-base-plus-sv",
        "eres2net",
        "campplus",
        "wespeaker-resnet34",
        "redimnet-b5",
        "ge2e",
        "ge2e-vad",
    )  # a name that a feature can have


def test_any_upstream_of_s3prl():
    pytest.importorskip("s3prl")
    metric = build_metric("sim[s3prl/hubert_base]@bfloat16")
    (feature,) = metric.estimate_features
    assert feature == "s3prl[hubert_base]@bfloat16"
    assert Spec.parse(feature) == Spec(feature, "s3prl", "hubert_base", "bfloat16")
    assert metric.protocol == f"sim/s3prl-{version('s3prl')}/hubert_base/mean-of-last/bfloat16"


def test_protocols_are_those_of_the_features(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({}, tmp_path / "wavlm_large_finetune.pth")
    for point in (None, "tf32", "bfloat16"):
        feature = WavlmLargeSv(weights=str(tmp_path), point=point)
        assert build_metric("sim" + (f"@{point}" if point else "")).protocol == f"sim/{feature.protocol}"


@pytest.mark.compares("sim", weights="none")
@given(reference=directions, estimate=directions, scale=st.sampled_from([1.0, 1e-3, 1e-9, 0.0]))
def test_is_torchs_cosine_similarity_with_its_floor(reference, estimate, scale):
    torch = pytest.importorskip("torch")
    sides = reference - 0.5, np.float32(scale) * (estimate - 0.5)
    expected = torch.nn.functional.cosine_similarity(*(torch.from_numpy(x).double()[None] for x in sides))
    assert score(*sides).value == pytest.approx(float(expected), abs=1e-9)


def test_an_encoder_that_read_nothing_is_not_a_number():
    metric = build_metric("sim")
    (name,) = metric.estimate_features
    silent = Unheard("the signal is silent")
    result = inputs_or_score(
        metric,
        id="a",
        rate_hz=16_000,
        reference_features={name: {"embedding": np.ones(256, np.float32)}},
        estimate_features={name: silent},
    )
    assert (result.value, result.status) == (None, "undefined")
    assert result.reason == "wavlm-large-sv of the estimate: the signal is silent"


class Unheard:
    """The value that the engine gives to a metric instead of a feature that could not be computed."""

    status = "undefined"

    def __init__(self, reason: str) -> None:
        self.reason = reason


def test_there_is_no_other_encoder():
    with refuses("no_variant", name="sim", variant="wavlm", hint="sim[wavlm-large-sv]"):
        build_metric("sim[wavlm]")
    with refuses("no_precision", name="sim[ge2e]", point="bfloat16"):
        build_metric("sim[ge2e]@bfloat16")
    with refuses("no_point_of_metric", name="sim", point="int8"):
        build_metric("sim@int8")
    with refuses("no_variant", variant="s3prl/"):
        build_metric("sim[s3prl/]")
