"""The embeddings of CAM++ and ERes2Net are those of 3D-Speaker, WeSpeaker's ResNet34 and ReDimNet are their own, and a
batch changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest
from refusals import Containing, refuses
from tiny_speech import SmallCamPlusPlus, SmallERes2Net, SmallReDimNet, SmallWespeaker, bare, write_redimnet

torch = pytest.importorskip("torch")

from codec_bench.audio.resample import prepare  # noqa: E402
from codec_bench.features import Unavailable, load_feature  # noqa: E402
from codec_bench.features import padded as padded_batches  # noqa: E402
from codec_bench.features.speakers.three_d_speaker import CamPlusPlusSpeaker, ERes2NetSpeaker  # noqa: E402
from codec_bench.features.speakers.wespeaker import WespeakerResnet34  # noqa: E402
from codec_bench.messages import Diagnostic  # noqa: E402
from codec_bench.metrics.sim import Sim  # noqa: E402

GOLDEN = Path(__file__).parents[2] / "golden"
FILES = {
    "campplus": "campplus_cn_common.bin",
    "eres2net": "pretrained_eres2net.ckpt",
    "wespeaker-resnet34": "avg_model.pt",
    "redimnet-b5": "b5-vox2-ft_lm.pt",
}
LEAST = {"campplus": 720, "eres2net": 1680, "wespeaker-resnet34": 1680, "redimnet-b5": 257}
SMALL = {
    "campplus": SmallCamPlusPlus,
    "eres2net": SmallERes2Net,
    "wespeaker-resnet34": SmallWespeaker,
    "redimnet-b5": SmallReDimNet,
}
ODD = (1681, 1839, 1840, 3119, 16_400, 17_999, 31_000, 33_333)
"""Around one frame more or less, and around the end of a segment of a hundred frames at half the rate."""


@pytest.fixture(autouse=True)
def _one_batch(monkeypatch):
    """Puts all signals into one padded batch, as on a GPU, however different their lengths are."""
    monkeypatch.setattr(padded_batches, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])


@pytest.fixture(params=SMALL)
def name(request):
    return request.param


@pytest.fixture
def small(name, tmp_path):
    return SMALL[name](weights=written(SMALL[name], tmp_path))


def written(feature, folder):
    """Stand-in weights for a feature in the layout of its published file."""
    if issubclass(feature, SmallReDimNet):
        return write_redimnet(folder)
    return bare(feature, folder / FILES[feature.name])


def voices(lengths):
    """Noise of changing level and colour."""
    rng = np.random.default_rng(8)
    out = []
    for length in lengths:
        knots = rng.random(length // 800 + 2)
        level = np.interp(np.arange(length) / 800, np.arange(knots.size), knots)
        noise = np.convolve(rng.normal(0, 1, length + 8), rng.normal(0, 1, 9), "valid")
        out.append((10 ** rng.uniform(-3, -1) * noise * level).astype(np.float32))
    return out


@pytest.mark.compares("campplus", "eres2net", "redimnet-b5", "wespeaker-resnet34", weights="stand-in")
@pytest.mark.parametrize(
    ("published", "golden"),
    [
        (CamPlusPlusSpeaker, "three_d_speaker"),
        (ERes2NetSpeaker, "three_d_speaker"),
        (WespeakerResnet34, "wespeaker"),
        (SmallReDimNet, "redimnet_small"),
    ],
)
def test_embeddings_of_a_batch_and_their_cosine_are_those_of_the_reference(published, golden, embedded, tmp_path):
    facts = json.loads((GOLDEN / f"{golden}.json").read_text("utf-8"))
    requested = facts["networks"][published.name]
    by_id = {sample.id: audio for sample, audio in embedded}
    signals = [prepare(by_id[clip["id"]], 16_000)[: clip["samples"]] for clip in facts["clips"]]
    for signal, clip in zip(signals, facts["clips"], strict=True):
        assert float((signal.astype(np.float64) ** 2).sum()) == pytest.approx(clip["sum_of_squares"], rel=1e-6)
    feature = published(weights=written(published, tmp_path))
    results = [result["embedding"] for result in feature.compute(signals)]
    shapes = {key: list(value.shape) for key, value in sorted(feature._net.state_dict().items())}
    assert hashlib.sha256(json.dumps(shapes, sort_keys=True).encode()).hexdigest() == requested["names"]
    for one, expected in zip(results, requested["embeddings"], strict=True):
        np.testing.assert_allclose(one, expected, atol=1e-5 * np.abs(expected).max())
    one, two = (single_result.astype(np.float64) for single_result in results)
    assert one @ two / np.linalg.norm(one) / np.linalg.norm(two) == pytest.approx(requested["cosine"], abs=1e-6)


def test_an_embedding_does_not_depend_on_the_batch(small, name):
    signals = voices([LEAST[name], *ODD])
    alone = [small.compute([signal])[0]["embedding"] for signal in signals]
    together = small.compute(signals[::-1])[::-1]
    for one, result in zip(alone, together, strict=True):
        assert result["embedding"].dtype == np.float32 and result["embedding"].shape == (12,)
        assert np.abs(result["embedding"] - one).max() < 1e-5 * np.abs(one).max()
    apart = [np.abs(one - alone[-1]).max() / np.abs(alone[-1]).max() for one in alone[:-1]]
    assert min(apart) > 1e-3  # otherwise equality would prove little


def test_zeros_appended_to_a_signal_change_its_embedding(small):
    (signal,) = voices([12_000])
    one, two = (small.compute([x])[0]["embedding"] for x in (signal, np.pad(signal, (0, 12_000))))
    assert np.abs(one - two).max() > 1e-3 * np.abs(one).max()


def test_what_has_no_embedding_says_why_and_harms_nobody(small, name):
    least = LEAST[name]
    (fine,) = voices([5000])
    bad = [fine[: least - 1], np.zeros(9000, np.float32), np.full(9000, np.nan, np.float32)]
    short, silent, wild, result = small.compute([*bad, fine])
    assert short.args[0].as_dict() == {
        "code": "signal_short",
        "samples": least - 1,
        "model": "the encoder",
        "needed": least,
    }
    assert str(silent) == Diagnostic("signal_silent")
    assert str(wild) == Diagnostic("encoder_not_finite")
    assert all(isinstance(one, Unavailable) for one in (short, silent, wild))
    alone = small.compute([fine])[0]["embedding"]
    assert np.abs(result["embedding"] - alone).max() < 1e-5 * np.abs(alone).max()
    assert small.compute([]) == []


def test_precisions_are_protocols_of_their_own(small, name):
    rough = SMALL[name](weights=small.weights, point="bfloat16")
    assert rough.protocol == f"{small.protocol}/bfloat16-weights"
    signals = voices([12_000, 8_000])
    for one, two in zip(small.compute(signals), rough.compute(signals), strict=True):
        a, b = one["embedding"], two["embedding"]
        assert b.dtype == np.float32
        assert 0 < np.linalg.norm(a - b) / np.linalg.norm(a) < 0.1
    with refuses("no_point_of_metric", point="int8"):
        SMALL[name](weights=small.weights, point="int8")


def test_the_metric_names_the_encoder_and_its_protocol(name):
    metric = Sim(name)
    assert metric.name == f"sim[{name}]" and metric.reference_features == (name,)
    assert metric.protocol == f"sim/{SMALL[name].protocol}"
    assert Sim(name, "bfloat16").estimate_features == (f"{name}@bfloat16",)


def test_other_and_missing_weights_are_refused_by_name(name, tmp_path, monkeypatch):
    state = deterministic_weights.stand_in(SMALL[name]._architecture(None))
    first = next(iter(state))
    lacking = {key: value for key, value in state.items() if key != first}
    torch.save({"state_dict": lacking} if name == "redimnet-b5" else lacking, tmp_path / "lacking.pt")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing(first)}):
        SMALL[name](weights=str(tmp_path / "lacking.pt")).load()
    for variable in ("CODEC_BENCH_WEIGHTS", "CODEC_BENCH_CACHE", "MODELSCOPE_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    with refuses("weights_missing", hint=f"codec-bench weights fetch {name}"):
        load_feature(name)


def test_the_classifier_over_the_training_speakers_is_omitted(tmp_path):
    state = deterministic_weights.stand_in(SmallWespeaker._architecture(None))
    torch.save({**state, "projection.weight": torch.zeros(5, 12)}, tmp_path / "with_classifier.pt")
    SmallWespeaker(weights=str(tmp_path / "with_classifier.pt")).load()


def test_redimnet_has_the_tensors_of_the_published_file():
    """1,052 tensors with 7,709,351 numbers, as a public converter of this file states.

    The front end's have 18,906 of them.
    """
    from codec_bench.features.speakers.redimnet import FRONT_END, ReDimNetB5

    state = ReDimNetB5._architecture(None).state_dict()
    assert len(state) + len(FRONT_END) == 1_052
    assert sum(value.numel() for value in state.values()) + 257 * 72 + 400 + 2 == 7_709_351
