"""Networks are in memory once: nothing is drawn before the checkpoint fills them, and nothing of them stays without a
value.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path

import deterministic_weights
import pytest
import tiny_funasr
import tiny_speech
import torch
from refusals import Containing, refuses
from torch.overrides import TorchFunctionMode

from codec_bench.config.registry import load_attribute
from codec_bench.features.scorers import SCORERS
from codec_bench.weights import load_into, unfilled

PRODUCT = Path(__file__).parents[2] / "codec_bench"
OPTIONS = {"codecs/neural/dac_original.py"}
"""Files that fill a network that others build."""


class Poisoned(TorchFunctionMode):
    """What a constructor leaves open, or draws, is not a number."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        built = func(*args, **(kwargs or {}))
        return built.fill_(torch.nan) if func in (torch.empty, torch.rand, torch.randn) else built


def clap(half):
    import transformers

    audio = {
        "patch_embeds_hidden_size": 16,
        "hidden_size": 128,
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 4, 8],
    }
    text = {
        "vocab_size": 20,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    config = transformers.ClapConfig(audio_config=audio, text_config=text, projection_dim=24)
    return getattr(transformers, f"Clap{half.title()}ModelWithProjection")(getattr(config, f"{half}_config"))


def bicodec():
    from codec_bench.networks.bicodec import BiCodecNet
    from codec_bench.networks.bicodec_config import SMALL

    return BiCodecNet(SMALL)


def chattts(item):
    from codec_bench.networks import chattts

    return getattr(chattts, item)(chattts.SMALL)


def dac():
    from codec_bench.codecs.neural import dac

    return dac._empty_net(dac._MODELS["44khz-16kbps"], **dac._REDUCED)


def dnsmos_pro():
    from codec_bench.networks.dnsmos_pro import DnsmosProNet

    return DnsmosProNet()


def funcodec():
    from codec_bench.networks.funcodec import FunCodecNet, FunCodecShape

    return FunCodecNet(FunCodecShape((8, 5, 4, 2), filters=4, dimension=32))


def nisqa(name, *scores):
    from codec_bench.networks import nisqa

    return getattr(nisqa, name)(*scores)


def snac(model):
    from codec_bench.codecs.neural import snac

    pytest.importorskip("snac")
    return snac._built({**snac._MODELS[model], **snac._SMALL})


# By name: what builds a network as the product does, at a size for tests.
BUILDS = {
    "CLAP, sounds": partial(clap, "audio"),
    "CLAP, texts": partial(clap, "text"),
    "BiCodec": bicodec,
    "ChatTTS, DVAE": partial(chattts, "Dvae"),
    "ChatTTS, Vocos": partial(chattts, "Vocos"),
    "DAC": dac,
    "DNSMOS Pro": dnsmos_pro,
    "FunCodec": funcodec,
    "NISQA": partial(nisqa, "NisqaNet", 5),
    "NISQA, one score": partial(nisqa, "NisqaNet", 1),
    "NISQA-TTS": partial(nisqa, "NisqaTtsNet"),
    "SNAC 24 kHz": partial(snac, "24khz"),
    "SNAC 44 kHz": partial(snac, "44khz"),
    **{
        name: partial(getattr(tiny_speech, name)._architecture, None)
        for name in ("SmallReDimNet", "SmallCamPlusPlus", "SmallWespeaker", "SmallERes2Net")
    },
    **{
        row.feature: load_attribute(row.network.path)
        for row in SCORERS
        if row.network is not None and not hasattr(load_attribute(row.network.path), "translated")
    },
}  # fmt: skip


def held(net):
    """Every tensor of a module by name, those too that are no parameters and no buffers."""
    return {
        f"{index}.{name}": value
        for index, module in net.named_modules()
        for name, value in {**vars(module), **module._parameters, **module._buffers}.items()
        if isinstance(value, torch.Tensor)
    }


@pytest.mark.parametrize("name", BUILDS)
def test_a_network_without_memory_becomes_the_one_that_is_built_with_it(name, tmp_path):
    expected, seed = poisoned(BUILDS[name]), torch.random.get_rng_state()
    net = unfilled(BUILDS[name])
    assert torch.equal(torch.random.get_rng_state(), seed), "something was drawn"
    weights = list(net.parameters())
    assert sum(w.numel() for w in weights if w.is_meta) > 0.9 * sum(w.numel() for w in weights)
    numbers = {name: value for name, value in expected.state_dict().items() if not value.is_floating_point()}
    state = {**deterministic_weights.stand_in(net), **numbers}
    for one in (net, expected):
        load_into(one, state, path=tmp_path)
    result, expected = held(net), held(expected)
    assert result.keys() == expected.keys()
    for tensor, value in expected.items():
        assert not result[tensor].is_meta and torch.equal(result[tensor], value), tensor  # NaN equals nothing
    dropped = next(iter(state))
    del state[dropped]
    for one in (net, unfilled(BUILDS[name])):
        with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing(dropped)}):
            load_into(one, state, path=tmp_path)


def poisoned(build):
    """In place of `unfilled`: the network with memory, in which what is not filled is not a number."""
    with torch.random.fork_rng(devices=[]), Poisoned():
        return build().eval()


@pytest.mark.skipif(importlib.util.find_spec("funasr") is None, reason="FunASR is not installed")
@pytest.mark.parametrize("model", ["Paraformer", "BiCifParaformer", "SeacoParaformer", "SenseVoiceSmall"])
def test_a_network_of_funasr_becomes_the_one_that_is_built_with_memory(model, tmp_path, monkeypatch):
    from codec_bench.features.recognisers import funasr, paraformer, sensevoice
    from codec_bench.weights import LocalCheckpoint

    if model == "SenseVoiceSmall":
        kind, folder = sensevoice.SenseVoice, tiny_funasr.write_sensevoice(tmp_path)
    else:
        predictor = "CifPredictorV2" if model == "Paraformer" else "CifPredictorV3"
        kind, folder = paraformer.Paraformer, tiny_funasr.write_paraformer(tmp_path, model, predictor)
    result = kind(weights=str(folder))._checkpoint
    assert isinstance(result, LocalCheckpoint)
    outputs = []
    for build in (unfilled, poisoned):
        monkeypatch.setattr("codec_bench.weights.unfilled", build)
        outputs.append(held(funasr.FunAsrRecogniser(result, kind.allowed, kind.vocabulary, "cpu").net))
    assert outputs[0].keys() == outputs[1].keys()
    for tensor, value in outputs[1].items():
        assert not outputs[0][tensor].is_meta and torch.equal(outputs[0][tensor], value), tensor


def test_every_network_that_a_checkpoint_fills_is_built_without_memory():
    fills = [path for path in PRODUCT.rglob("*.py") if "load_into(" in path.read_text("utf-8")]
    twice = {str(path.relative_to(PRODUCT)) for path in fills if "unfilled(" not in path.read_text("utf-8")}
    assert len(fills) > 20 and twice == OPTIONS
