"""vLLM and SGLang in this process, against stand-ins that have the parameters of the real ones (see the module's sources)."""

from __future__ import annotations

import asyncio
import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.models import load_model
from codec_bench.models.in_process import engines
from codec_bench.types import Audio, Message, Request

SOUND = Clip(Audio(np.zeros(1600, np.float32), 16_000))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "tiny"}))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def requests():
    turns = (Message("system", ("be brief",)), Message("user", (SOUND, "What is heard?")))
    greedy = Request("a", turns, parameters={"max_tokens": 9, "temperature": 0.0, "reasoning_tokens": 5})
    drawn = Request("b", (Message("user", ("Hello",)),), parameters={"temperature": 0.7, "seed": 3})
    return [greedy, drawn, Request("c", (Message("user", ("Hello",)),), parameters={"nonsense": 1})]


def answers(model, asked):
    async def main():
        await model.start()
        try:
            return await asyncio.gather(*map(model.ask, asked))
        finally:
            await model.close()

    return asyncio.run(main())


class SamplingParams:
    """The parameters of `vllm.SamplingParams` that are used here."""

    def __init__(self, *, max_tokens=16, min_tokens=0, temperature=1.0, top_p=1.0, top_k=0, repetition_penalty=1.0, stop=None, seed=None):  # fmt: skip
        self.given = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed, "stop": stop}


class LLM:
    """The parameters of `vllm.LLM` and `LLM.chat`."""

    def __init__(self, model, *, tensor_parallel_size=1, dtype="auto", seed=None, trust_remote_code=False, max_model_len=None):  # fmt: skip
        if max_model_len == 1:
            raise ValueError("the model's length is more than 1")
        self.given = {
            "model": model,
            "tensor_parallel_size": tensor_parallel_size,
            "trust_remote_code": trust_remote_code,
        }
        LLM.last, self.asked = self, []

    def chat(self, messages, sampling_params=None, use_tqdm=True, lora_request=None, chat_template=None):
        assert use_tqdm is False and len(messages) == len(sampling_params)
        self.asked += zip(messages, sampling_params)
        out = SimpleNamespace(text="hm</think> a tone", finish_reason="stop", token_ids=[1, 2])
        return [SimpleNamespace(outputs=[out], prompt_token_ids=[1, 2, 3]) for _ in messages]


@pytest.fixture
def vllm(monkeypatch):
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, SamplingParams
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setattr(engines, "version", lambda package: "0.25.0")


def test_vllm_gets_conversations_and_parameters(folder, vllm):
    model = load_model("vllm-local", {"weights": str(folder), "gpus": 2, "reasoning_end": "</think>"})
    heard, drawn, refused = answers(model, requests())
    assert (heard.text, heard.finish, heard.usage) == ("a tone", "stop", {"input_tokens": 3.0, "output_tokens": 2.0})
    assert "2 characters of reasoning" in heard.notes[0] and drawn.status == "ok"
    assert refused.status == "refused" and "nonsense" in refused.reason
    assert LLM.last.given == {"model": str(folder), "tensor_parallel_size": 2, "trust_remote_code": False}
    said = {json.dumps(turns): params.given for turns, params in LLM.last.asked}
    turns = next(json.loads(text) for text in said if "audio_url" in text)
    assert turns[0] == {"role": "system", "content": "be brief"}
    assert turns[1]["content"][0]["audio_url"]["url"].startswith("data:audio/wav;base64,UklGR")
    assert said[json.dumps(turns)] == {"max_tokens": 14, "temperature": 0.0, "seed": None, "stop": []}
    assert {params["seed"] for params in said.values()} == {None, 3}


def test_identity_holds_the_engine_and_its_arguments(folder, vllm):
    model = load_model("vllm-local", {"weights": str(folder), "engine": {"max_model_len": 4096}})
    assert model.identity["vllm"] == "0.25.0" and model.identity["engine"] == {"max_model_len": 4096}
    assert model.tells_apart


def test_what_the_engine_cannot_run_is_said_in_words(folder, vllm):
    model = load_model("vllm-local", {"weights": str(folder), "engine": {"max_model_len": 1}})
    with pytest.raises(UserError, match="vllm cannot run the model 'vllm-local': ValueError: the model's length"):
        asyncio.run(model.start())


@pytest.mark.parametrize("name", ["vllm-local", "sglang-local"])
def test_an_engine_that_is_not_installed(folder, name, monkeypatch):
    def missing(package):
        raise engines.PackageNotFoundError(package)

    monkeypatch.setattr(engines, "version", missing)
    with pytest.raises(UserError, match="pip install"):
        asyncio.run(load_model(name, {"weights": str(folder)}).start())


SGLANG = {
    "max_new_tokens", "stop", "stop_token_ids", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
    "repetition_penalty", "min_new_tokens", "sampling_seed",
}  # fmt: skip
"""Fields of `SamplingParams` in `python/sglang/srt/sampling/sampling_params.py`."""


class Engine:
    """The parameters of `sglang.Engine` and `Engine.generate`."""

    def __init__(self, *, model_path, tp_size=1, dtype="auto", random_seed=None, trust_remote_code=False):
        Engine.last, self.given, self.ended = self, (model_path, tp_size), False

    def generate(self, prompt=None, sampling_params=None, input_ids=None, image_data=None, audio_data=None):
        assert all(set(one) <= SGLANG and one["top_k"] != 0 for one in sampling_params)
        self.asked = list(zip(prompt, sampling_params, audio_data or [None] * len(prompt)))
        about = {"prompt_tokens": 3, "completion_tokens": 2, "finish_reason": {"type": "length", "length": 2}}
        return [{"text": f"to {one}", "meta_info": about} for one in prompt]

    def shutdown(self):
        self.ended = True


def test_sglang_gets_prompts_of_the_models_own_template(folder, monkeypatch):
    class Processor:
        @classmethod
        def from_pretrained(cls, folder, trust_remote_code=False):
            return cls()

        def apply_chat_template(self, turns, tokenize, add_generation_prompt):
            assert tokenize is False and add_generation_prompt is True
            return "|".join(t["content"] if isinstance(t["content"], str) else "+".join(p["type"] for p in t["content"]) for t in turns)  # fmt: skip

    module = ModuleType("sglang")
    module.Engine = Engine
    monkeypatch.setitem(sys.modules, "sglang", module)
    transformers = ModuleType("transformers")
    transformers.AutoProcessor = Processor
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    monkeypatch.setattr(engines, "version", lambda package: "0.6.0")
    heard, drawn, _ = answers(load_model("sglang-local", {"weights": str(folder), "gpus": 4}), requests())
    assert (heard.text, heard.finish, drawn.text) == ("to be brief|audio+text", "length", "to Hello")
    assert Engine.last.given == (str(folder), 4) and Engine.last.ended
    asked = {prompt: (params, sounds) for prompt, params, sounds in Engine.last.asked}
    if "be brief|audio+text" in asked:  # the requests may come in one batch or in two
        params, sounds = asked["be brief|audio+text"]
        assert params["max_new_tokens"] == 9 and params["temperature"] == 0.0 and "sampling_seed" not in params
        assert sounds[0].startswith("data:audio/wav;base64,UklGR")
