"""The x-vector is that of transformers' WavLMForXVector one by one, and a batch changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import deterministic_weights
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from codec_bench.errors import UserError, WeightsError  # noqa: E402
from codec_bench.features import Unavailable  # noqa: E402
from codec_bench.features.speakers import wavlm_sv  # noqa: E402
from codec_bench.features.speakers.wavlm_base_sv import WavlmBasePlusSv  # noqa: E402

GOLDEN = Path(__file__).parents[2] / "golden"
FACTS = dict(
    hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96, conv_dim=(32,) * 7, num_labels=7,
    num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=3, tdnn_dim=(32, 32, 32, 32, 60), xvector_output_dim=24,
)  # fmt: skip
LENGTHS = (9001, 5200, 16_000, 5201, 24_017, 5519)


@pytest.fixture(autouse=True)
def _one_batch(monkeypatch):
    """Puts all signals into one padded batch, as on a GPU, however different their lengths are."""
    monkeypatch.setattr(wavlm_sv, "passes", lambda lengths, device, **_: [list(range(len(lengths)))])


def standing_in(net):
    """The module with stand-in weights, of the size of trained ones, so that every part counts."""
    net.load_state_dict(deterministic_weights.stand_in(net))
    return net.eval()


def saved(folder, *, mixes=True, normalises=False, safetensors=False, **others):
    """A published folder with a small network, and the network."""
    config = transformers.WavLMConfig(**{**FACTS, "use_weighted_layer_sum": mixes, **others})
    net = standing_in(transformers.WavLMForXVector(config))
    front = transformers.Wav2Vec2FeatureExtractor(do_normalize=normalises, return_attention_mask=True)
    front.save_pretrained(folder)
    net.save_pretrained(folder)
    if not safetensors:  # the published file is older than these tensors, and older than torch's parametrisations
        (folder / "model.safetensors").unlink()
        state = net.state_dict()
        for ours, theirs in (("original0", "weight_g"), ("original1", "weight_v")):
            value = state.pop(f"wavlm.encoder.pos_conv_embed.conv.parametrizations.weight.{ours}")
            state[f"wavlm.encoder.pos_conv_embed.conv.{theirs}"] = value
        torch.save(state, folder / "pytorch_model.bin")
    return net, front


def noises(rng, lengths=LENGTHS):
    """Noise of different colours, which must lead to different embeddings."""
    white = [rng.normal(0.02, 0.1, n) for n in lengths]
    return [np.convolve(x, rng.normal(0, 1, 9))[: x.size].astype(np.float32) for x in white]


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
            given = front(item, sampling_rate=16_000, return_tensors="pt")
            expected.append(net(**given).embeddings[0].numpy())
    for result, reference in zip(feature.compute(items), expected, strict=True):
        found = result["embedding"]
        assert found.dtype == np.float32
        assert np.abs(found - reference).max() < 1e-5 * np.abs(reference).max()
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
    assert str(results[0]) == "the signal has 5199 samples; the encoder needs 5200 at 16 kHz"
    assert str(results[2]) == "the signal is silent"


def test_precisions_are_protocols_of_their_own(tmp_path, rng):
    saved(tmp_path)
    exact, rough = (WavlmBasePlusSv(weights=str(tmp_path), point=point) for point in (None, "bfloat16"))
    assert exact.protocol == "wavlm-base-plus-sv/transformers"
    assert rough.protocol == "wavlm-base-plus-sv/transformers/bfloat16"
    items = noises(rng, (12_000, 9000))
    for one, two in zip(exact.compute(items), rough.compute(items), strict=True):
        assert 0 < np.linalg.norm(one["embedding"] - two["embedding"]) < 0.1 * np.linalg.norm(one["embedding"])
    with pytest.raises(UserError, match="no '@float16'"):
        WavlmBasePlusSv(weights=str(tmp_path), point="float16")


def test_the_published_architecture(tmp_path):
    """The names and shapes of transformers' own network with the published configuration's values, which are its defaults."""
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
    with pytest.raises(WeightsError, match=r"lack projector\.bias"):
        WavlmBasePlusSv(weights=str(tmp_path)).load()
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    for change, message in (
        ({"do_stable_layer_norm": True}, "do_stable_layer_norm True"),
        ({"hidden_act": "relu"}, "hidden_act relu"),
        ({"feat_extract_norm": "none"}, "no value 'none' that fits"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **change}), "utf-8")
        with pytest.raises(WeightsError, match=message):
            WavlmBasePlusSv(weights=str(tmp_path)).load()
    (tmp_path / "config.json").write_text("{", "utf-8")
    with pytest.raises(WeightsError, match="cannot be read"):
        WavlmBasePlusSv(weights=str(tmp_path))
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(WeightsError, match="preprocessor_config"):
        WavlmBasePlusSv(weights=str(tmp_path))
