"""Weights that are missing, broken or hostile, with a small model of the same kind as the real ones."""

from __future__ import annotations

import pickle
import sys

import pytest
import torch
from hostile import Hostile
from refusals import Containing, refuses

from codec_bench.messages.errors import WeightsError
from codec_bench.weights.pretrained import class_of, load_pretrained

FACTS = {"sampling_rate": 8000, "num_filters": 2}


@pytest.fixture
def folder(tmp_path):
    """A tiny EnCodec as a folder with a .bin file, which is the riskier of the two formats."""
    from transformers import EncodecConfig, EncodecModel

    config = EncodecConfig(hidden_size=4, target_bandwidths=[0.25], **FACTS)
    net = EncodecModel(config)
    config.save_pretrained(tmp_path)
    torch.save(net.state_dict(), tmp_path / "pytorch_model.bin")
    return tmp_path


def load(folder, facts=FACTS):
    from transformers import EncodecModel

    return load_pretrained(EncodecModel, str(folder), facts)


def change(folder, edit):
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    edit(state)
    torch.save(state, folder / "pytorch_model.bin")


def test_what_fits_is_loaded(folder):
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    net = load(folder)
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize(
    ("edit", "code", "example"),
    [
        (lambda s: s.pop("encoder.layers.0.conv.bias"), "tensors_missing", "encoder.layers.0.conv.bias"),
        (lambda s: s.update(extra=torch.zeros(3)), "tensors_extra", "extra"),
        (
            lambda s: s.update({"encoder.layers.0.conv.bias": torch.zeros(7)}),
            "tensors_reshaped",
            Containing("encoder.layers.0.conv.bias"),
        ),
    ],
)
def test_what_does_not_fit_is_named(folder, edit, code, example):
    change(folder, edit)
    with refuses("tensors_wrong", path=str(folder), difference={"code": code, "tensors": 1, "example": example}):
        load(folder)


def test_another_configuration_is_named(folder):
    with refuses("weights_of_another_model", difference="num_filters 2 (expected 32)"):
        load(folder, {**FACTS, "num_filters": 32})


def test_a_broken_file_is_named(folder):
    (folder / "pytorch_model.bin").write_bytes(b"not weights")
    with refuses("weights_not_loaded"):
        load(folder)
    (folder / "config.json").write_text("{")
    with refuses("weights_not_loaded"):
        load(folder)


def test_nothing_in_a_pickle_is_run(folder):
    target = folder / "made"
    torch.save({"encoder": Hostile(target)}, folder / "pytorch_model.bin")
    with pytest.raises(WeightsError):
        load(folder)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Hostile(target)))
    with pytest.raises(WeightsError):
        load(folder)
    assert not target.exists()


@pytest.mark.parametrize("codec", ["pocket-tts", "xcodec2", "neucodec", "vibevoice", "higgs-audio-v2-8cb"])
def test_a_class_that_an_older_release_lacks_is_one_sentence(monkeypatch, codec):
    import transformers

    from codec_bench.codecs import load_codec

    assert class_of("MimiModel") is transformers.MimiModel

    class Older:
        __version__ = "5.6.0"

    monkeypatch.setitem(sys.modules, "transformers", Older())
    with refuses("transformers_lacks", version="5.6.0", hint="--upgrade transformers"):
        load_codec(codec, weights="random")
