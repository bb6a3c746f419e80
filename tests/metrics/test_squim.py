"""SQUIM, AASIST and the emotion network equal the authors' classes on stand-in weights, in any batch."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
import torch
from deterministic_weights import values_for

from codec_bench.features import Unavailable, load_feature
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs
from codec_bench.networks import emo_vad
from codec_bench.networks.aasist import AasistNet


def filled(net):
    net.load_state_dict(
        {name: torch.from_numpy(values_for(name, tuple(v.shape))) for name, v in net.state_dict().items()}
    )
    return net.eval()


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(3)
    return [(0.1 * rng.standard_normal(size)).astype(np.float32) for size in (8_000, 5_321, 8_000)]


@pytest.mark.compares("squim", "squim_*", weights="stand-in")
def test_squim_is_torchaudios(tmp_path, signals):
    from torchaudio.models import squim_objective_base

    theirs = filled(squim_objective_base())
    torch.save(theirs.state_dict(), tmp_path / "squim.pth")
    results = load_feature("squim", weights=str(tmp_path / "squim.pth")).compute(signals)
    for signal, result in zip(signals, results, strict=True):
        with torch.inference_mode():
            expected = [float(one) for one in theirs(torch.from_numpy(signal)[None])]
        assert [result[key] for key in ("stoi", "pesq", "si_sdr")] == pytest.approx(expected, rel=1e-5)
    item = Inputs("x", 16_000, estimate_features={"squim": results[0]})
    assert build_metric("squim_pesq").compute([item])[0].value == results[0]["pesq"]
    (silent,) = load_feature("squim", weights=str(tmp_path / "squim.pth")).compute([signals[0] * 0])
    assert isinstance(silent, Unavailable)


@pytest.mark.compares("emo-vad", "emo_*", weights="stand-in")
def test_emotions_are_those_of_the_model_card(tmp_path, signals):
    """The card: `Wav2Vec2Model`, the mean over time, a linear layer, a tanh and another linear layer."""
    from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2Model

    config = Wav2Vec2Config(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, conv_dim=(32,) * 7,
        conv_bias=True,
        feat_extract_norm="layer", do_stable_layer_norm=True, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )  # fmt: skip
    card = torch.nn.ModuleDict({
        "wav2vec2": Wav2Vec2Model(config),
        "classifier": torch.nn.ModuleDict({"dense": torch.nn.Linear(48, 48), "out_proj": torch.nn.Linear(48, 3)}),
    })  # fmt: skip
    torch.save(filled(card).state_dict(), tmp_path / "pytorch_model.bin")
    results = tiny_speech.SmallEmoVad(weights=str(tmp_path / "pytorch_model.bin")).compute(signals)
    processor = Wav2Vec2FeatureExtractor(do_normalize=True)
    for signal, result in zip(signals, results, strict=True):
        wave = torch.from_numpy(processor(signal, sampling_rate=16_000)["input_values"][0])[None]
        with torch.inference_mode():
            mean = card["wav2vec2"](wave)[0].mean(1)
            expected = card["classifier"]["out_proj"](torch.tanh(card["classifier"]["dense"](mean)))[0].tolist()
        assert [result[key] for key in ("arousal", "dominance", "valence")] == pytest.approx(
            expected, rel=1e-4, abs=1e-5
        )
    item = Inputs("x", 16_000, estimate_features={"emo-vad": results[1]})
    assert build_metric("emo_valence").compute([item])[0].value == results[1]["valence"]


def test_the_published_sizes_of_the_emotion_network():
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(
        hidden_size=1024, num_hidden_layers=12, num_attention_heads=16, intermediate_size=4096, conv_bias=True,
        feat_extract_norm="layer", do_stable_layer_norm=True,
    )  # fmt: skip
    with torch.device("meta"):
        theirs = {f"wav2vec2.{name}": value for name, value in Wav2Vec2Model(config).state_dict().items()}
        ours = emo_vad.EmoVadNet().state_dict()
    translated = {name: tuple(value.shape) for name, value in emo_vad.EmoVadNet.translated(theirs).items()}
    assert translated == {name: tuple(v.shape) for name, v in ours.items() if name.startswith("pooled")}


GENUINE = {(1, 32_000): 0.87641758, (2, 2_315): 0.90263027, (3, 50_001): 0.90072548, (4, 7_000): 0.95151156}
"""By seed and length: softmax of the authors' `Model` at a04c986 in eval mode, with these stand-in weights."""


@pytest.mark.compares("aasist", "asvspoof", weights="stand-in")
def test_aasist_is_the_authors(tmp_path):
    state = filled(AasistNet()).state_dict()
    torch.save(state, tmp_path / "AASIST.pth")
    feature = load_feature("aasist", weights=str(tmp_path / "AASIST.pth"))
    signals = []
    for seed, size in GENUINE:
        swell = 1.0 + 0.9 * np.sin(np.arange(size) / (300 * seed))
        signals.append((0.1 * np.random.default_rng(seed).standard_normal(size) * swell).astype(np.float32))
    results = feature.compute([*signals, signals[1][:-1]])
    assert [result["genuine"] for result in results[:-1]] == pytest.approx(list(GENUINE.values()), abs=2e-6)
    assert isinstance(results[-1], Unavailable)
    item = Inputs("x", 16_000, estimate_features={"aasist": results[0]})
    assert build_metric("asvspoof").compute([item])[0].value == results[0]["genuine"]


@pytest.mark.compares("squim-frames", "squim_mos", weights="stand-in")
def test_the_score_with_a_reference_is_torchaudios(tmp_path, signals):
    theirs = filled(tiny_speech.small_squim_subjective())
    torch.save(theirs.state_dict(), tmp_path / "squim.pth")
    results = tiny_speech.SmallSquimFrames(weights=str(tmp_path / "squim.pth")).compute(signals)
    metric = build_metric("squim_mos")

    def score(reference, estimate):
        sides = [{"squim-frames": results[number]} for number in (reference, estimate)]
        return metric.compute([Inputs("x", 16_000, reference_features=sides[0], estimate_features=sides[1])])[0]

    for reference, estimate in ((0, 2), (2, 0), (1, 1)):
        with torch.inference_mode():
            expected = theirs(*(torch.from_numpy(signals[one])[None] for one in (estimate, reference))).item()
        assert score(reference, estimate).value == pytest.approx(expected, abs=1e-5)
    assert score(0, 2).value != pytest.approx(score(2, 0).value, abs=1e-6)
    assert score(0, 1).status == "refused"


NORESQA = {
    (1, 2, 8_000): 2.387018681,
    (2, 1, 8_000): 2.574125528,
    (3, 4, 5_321): 2.541267633,
    (5, 5, 16_001): 2.807024240,
}
"""By the seeds of reference and estimate and the length: 5 less the output of the authors' class at 8d56b95."""


@pytest.mark.compares("noresqa-frames", "noresqa_mos", weights="stand-in")
def test_noresqa_is_the_authors(tmp_path):
    """Over s3prl's wav2vec 2.0 in place of fairseq's, which has the same layers."""
    feature = tiny_speech.SmallNoresqaFrames(weights=tiny_speech.write_noresqa(tmp_path))
    metric = build_metric("noresqa_mos")
    for (reference, estimate, size), expected in NORESQA.items():
        pair = [
            (0.1 * np.random.default_rng(s).standard_normal(size)).astype(np.float32) for s in (reference, estimate)
        ]
        frames = [{"noresqa-frames": result} for result in feature.compute(pair)]
        (score,) = metric.compute([Inputs("x", 16_000, reference_features=frames[0], estimate_features=frames[1])])
        assert score.value == pytest.approx(expected, abs=1e-5)
