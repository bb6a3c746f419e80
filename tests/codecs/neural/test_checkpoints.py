"""Weights of the codecs of transformers: those of a folder are used, another model's and missing ones are refused."""

from __future__ import annotations

import pytest
import torch
from random_codecs import built
from refusals import Containing, refuses

from codec_bench.codecs import load_codec
from codec_bench.codecs.neural.encodec import Encodec

# A codec, and another one of its family with its message on the weights of the first.
FAMILIES = {
    "dac-16khz": (
        "dac-24khz",
        {"code": "weights_of_another_model", "difference": Containing("sampling_rate 16000 (expected 24000)")},
    ),
    "encodec-24khz@6": (
        "encodec-48khz@6",
        {"code": "weights_of_another_model", "difference": Containing("sampling_rate 24000 (expected 48000)")},
    ),
    "higgs-audio-v2-8cb": None,
    "mimi-32cb": None,
    "pocket-tts": None,
    "vibevoice": None,
    "neucodec": ("xcodec2", {"code": "tensors_wrong", "difference": {"code": "tensors_reshaped"}}),
    "xcodec-wavlm-mls": (
        "xcodec-hubert-general",
        {
            "code": "weights_of_another_model",
            "difference": {"code": "semantic_model_differs", "kind": "wavlm", "expected": "hubert"},
        },
    ),
}


def save(name, folder):
    """Writes a random network with the tensor names of the published file."""
    from safetensors.torch import load_file, save_file

    built(name)._net.save_pretrained(folder)
    if not name.startswith("encodec"):
        return folder
    state = load_file(folder / "model.safetensors")
    published = {
        name.replace("parametrizations.weight.original0", "weight_g").replace(
            "parametrizations.weight.original1", "weight_v"
        ): tensor
        for name, tensor in state.items()
    }
    assert any(name.endswith("weight_g") for name in published)
    save_file(published, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_from_a_folder_are_those_in_it_and_another_models_are_refused(name, tmp_path, capfd):
    save(name, tmp_path)
    capfd.readouterr()
    codec = load_codec(name, weights=str(tmp_path))
    assert codec.info.weights == str(tmp_path)
    for item, tensor in built(name)._net.state_dict().items():
        assert torch.equal(tensor, codec._net.state_dict()[item]), item
    assert capfd.readouterr().err == ""
    if FAMILIES[name] is not None:
        other, says = FAMILIES[name]
        with refuses(**says):
            load_codec(other, weights=str(tmp_path))


@pytest.fixture
def nothing_cached(tmp_path, monkeypatch):
    """A cache of hub repositories without any, and a cache of this project without any."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "codec-bench"))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("dac-44khz", {"code": "weights_missing", "hint": "hf download descript/dac_44khz"}),
        ("dac-44khz-16kbps", {"code": "weights_missing", "hint": "codec-bench weights fetch dac-44khz-16kbps"}),
        ("encodec-24khz@6", {"code": "weights_missing", "hint": "hf download facebook/encodec_24khz"}),
        ("mimi-8cb", {"code": "weights_missing", "hint": "hf download kyutai/mimi"}),
        (
            "wavtokenizer-large-speech-75token",
            {"code": "weights_missing", "hint": "codec-bench weights fetch wavtokenizer-large-speech-75token"},
        ),
        (
            "xcodec-hubert-general-balanced",
            {"code": "weights_missing", "hint": "hf download hf-audio/xcodec-hubert-general-balanced"},
        ),
        ("xcodec2", {"code": "weights_missing", "hint": "hf download HKUSTAudio/xcodec2-hf"}),
    ],
)
def test_missing_weights_name_the_command_that_gets_them(name, command, nothing_cached):
    with refuses(**command):
        load_codec(name)


def test_published_weights_come_from_the_local_cache(nothing_cached, tmp_path_factory):
    assert Encodec.find_weights(model="24khz") is None
    repo = nothing_cached / "models--facebook--encodec_24khz"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("0123abcd")
    (repo / "snapshots").mkdir()
    (repo / "snapshots" / "0123abcd").symlink_to(save("encodec-24khz@6", tmp_path_factory.mktemp("encodec_24khz")))
    codec = load_codec("encodec-24khz@6")
    assert codec.info.weights == "facebook/encodec_24khz@0123abcd"
    assert codec.info.weights_licence == "MIT"
    assert load_codec("encodec-24khz@6", weights="facebook/encodec_24khz").info.weights == codec.info.weights
    with refuses("weights_not_local", hint="hf download facebook/encodec_24khz --revision other"):
        load_codec("encodec-24khz@6", weights="facebook/encodec_24khz@other")
