"""The x-vector is that of transformers' WavLMForXVector one by one, and a batch changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusals import Containing, refuses
from tiny_speech import saved

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from codec_bench.features import Unavailable  # noqa: E402
from codec_bench.features import padded as padded_batches  # noqa: E402
from codec_bench.features.speakers.wavlm_base_sv import WavlmBasePlusSv  # noqa: E402
from codec_bench.messages import Diagnostic  # noqa: E402

GOLDEN = Path(__file__).parents[2] / "golden"
LENGTHS = (9001, 5200, 16_000, 5201, 24_017, 5519)


@pytest.fixture(autouse=True)
def _one_batch(monkeypatch):
    """Puts all signals into one padded batch, as on a GPU, however different their lengths are."""
    monkeypatch.setattr(padded_batches, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])


def noises(rng, lengths=LENGTHS):
    """Noise of different colours, which must lead to different embeddings."""
    white = [rng.normal(0.02, 0.1, n) for n in lengths]
    return [np.convolve(x, rng.normal(0, 1, 9))[: x.size].astype(np.float32) for x in white]


@pytest.mark.compares("wavlm-base-plus-sv", weights="stand-in")
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"mixes": False},
        {"normalises": True, "safetensors": True},
        {"feat_extract_norm": "layer", "conv_bias": True},
    ],
    ids=["published", "last-state", "normalised-safetensors", "layer-norm"],
)
def test_embeddings_of_a_batch_are_those_of_transformers_one_by_one(kind, tmp_path, rng):
    net, front = saved(tmp_path, **kind)
    feature = WavlmBasePlusSv(weights=str(tmp_path))
    assert feature.min_samples == 5200
    items = noises(rng)
    expected = []
    with torch.inference_mode():
        for item in items:
            options = front(item, sampling_rate=16_000, return_tensors="pt")
            expected.append(net(**options).embeddings[0].numpy())
    for result, reference in zip(feature.compute(items), expected, strict=True):
        actual = result["embedding"]
        assert actual.dtype == np.float32
        assert np.abs(actual - reference).max() < 1e-5 * np.abs(reference).max()
    apart = np.abs(expected[0] - expected[2]).max() / np.abs(expected[0]).max()
    assert apart > 1e-2  # the comparison above can fail


def test_an_embedding_does_not_depend_on_the_batch(tmp_path, rng):
    saved(tmp_path)
    feature = WavlmBasePlusSv(weights=str(tmp_path))
    items = noises(rng, [5200, *rng.integers(5200, 30_000, 7).tolist()])
    alone = [feature.compute([item])[0]["embedding"] for item in items]
    order = rng.permutation(len(items))
    for k, result in zip(order, feature.compute([items[k] for k in order]), strict=True):
        assert np.abs(result["embedding"] - alone[k]).max() < 1e-5 * np.abs(alone[k]).max()


def test_what_has_no_embedding_says_why(tmp_path, rng):
    saved(tmp_path)
    (item,) = noises(rng, (6000,))
    results = WavlmBasePlusSv(weights=str(tmp_path)).compute([item[:5199], item, np.zeros(6000, np.float32)])
    assert [isinstance(r, Unavailable) for r in results] == [True, False, True]
    assert results[0].args[0].as_dict() == {
        "code": "signal_short",
        "samples": 5199,
        "model": "the encoder",
        "needed": 5200,
    }
    assert str(results[2]) == Diagnostic("signal_silent")


def test_precisions_are_protocols_of_their_own(tmp_path, rng):
    saved(tmp_path)
    exact, rough = (WavlmBasePlusSv(weights=str(tmp_path), point=point) for point in (None, "bfloat16"))
    assert exact.protocol == "wavlm-base-plus-sv/transformers"
    assert rough.protocol == "wavlm-base-plus-sv/transformers/bfloat16-weights"
    items = noises(rng, (12_000, 9000))
    for one, two in zip(exact.compute(items), rough.compute(items), strict=True):
        assert 0 < np.linalg.norm(one["embedding"] - two["embedding"]) < 0.1 * np.linalg.norm(one["embedding"])
    with refuses("no_point_of_metric", point="int8"):
        WavlmBasePlusSv(weights=str(tmp_path), point="int8")


def test_the_published_architecture(tmp_path):
    """The names and shapes of transformers' own network with the published configuration's values, which are its
    defaults.
    """
    config = transformers.WavLMConfig(use_weighted_layer_sum=True)
    with torch.device("meta"):
        theirs = transformers.WavLMForXVector(config)
    config.save_pretrained(tmp_path)
    from codec_bench.features.speakers.wavlm_base_sv import PREFIX, TRAINING, architectures
    from codec_bench.networks.speech_config import WAVLM_BASE
    from codec_bench.networks.speech_encoder import fairseq_name
    from codec_bench.networks.xvector import XVectorConfig, XVectorNet

    encoder, head = architectures(json.loads((tmp_path / "config.json").read_text("utf-8")), tmp_path)
    assert (encoder, head) == (WAVLM_BASE, XVectorConfig())
    with torch.device("meta"):
        ours = {name: value.shape for name, value in XVectorNet(encoder, head).state_dict().items()}
    expected = {}
    for name, value in theirs.state_dict().items():
        inner = name.removeprefix(PREFIX)
        expected[PREFIX + fairseq_name(inner, "group_norm") if inner != name else name] = value.shape
    assert ours == {name: shape for name, shape in expected.items() if name not in TRAINING}


def test_other_weights_are_refused_by_name(tmp_path):
    saved(tmp_path)
    state = torch.load(tmp_path / "pytorch_model.bin", weights_only=True)
    del state["projector.bias"]
    torch.save(state, tmp_path / "pytorch_model.bin")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("projector.bias")}):
        WavlmBasePlusSv(weights=str(tmp_path)).load()
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    for change, message in (
        (
            {"do_stable_layer_norm": True},
            {"code": "weights_of_another_model", "difference": Containing("do_stable_layer_norm True")},
        ),
        ({"hidden_act": "relu"}, {"code": "weights_of_another_model", "difference": Containing("hidden_act relu")}),
        (
            {"feat_extract_norm": "none"},
            {"code": "weights_of_another_model", "difference": {"code": "no_fitting_value", "name": "none"}},
        ),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **change}), "utf-8")
        with refuses(**message):
            WavlmBasePlusSv(weights=str(tmp_path)).load()
    (tmp_path / "config.json").write_text("{", "utf-8")
    with refuses("file_not_readable"):
        WavlmBasePlusSv(weights=str(tmp_path))
    (tmp_path / "preprocessor_config.json").unlink()
    with refuses("weights_folder_lacks", names=Containing("preprocessor_config")):
        WavlmBasePlusSv(weights=str(tmp_path))
