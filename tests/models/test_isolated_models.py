"""Models that come with an environment of their own: their worker code, in a worker process, against a stand-in of the
authors' code.

The stand-ins have the methods that the authors' files define, with their parameters, and answer with what they were
told. No published checkpoint is loaded here.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import save_file
from scripted_models import ask

from codec_bench.audio.clip import Clip
from codec_bench.config import read_config
from codec_bench.models import ModelConfig, load_model
from codec_bench.models.isolated import _plain
from codec_bench.types import Audio, Message, Request
from codec_bench.workers.environment import Environment, read_env

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="isolated workers are tested on Linux")


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The environment of a model is this one."""
    environment = Environment(Path(sys.prefix), Path(sys.executable))
    monkeypatch.setattr("codec_bench.models.isolated.make_environment", lambda spec, notify: environment)


def answers(name, options, *requests):
    return ask(load_model(name, options), requests)


def worker_code(env):
    spec = importlib.util.spec_from_file_location(env, read_env(env).code)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_config(name):
    return read_config("model", name, ModelConfig).options


def sound(seconds, rate_hz):
    return Clip(Audio(np.full((1, round(seconds * rate_hz)), 0.25, np.float32), rate_hz))


def user(*content):
    return Message("user", content)


def written(folder, files):
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return str(folder)


MIMO = """
    import json
    import random
    from dataclasses import asdict, dataclass
    import torch
    from flash_attn import flash_attn_varlen_func

    @dataclass
    class MiMoSampler:
        do_sample: bool = None
        temperature: float = None
        top_k: int = None
        top_p: float = None

    def seen(part):
        return [part.ndim, part.shape[-1]] if isinstance(part, torch.Tensor) else part

    class MimoAudio:
        def __init__(self, model_path, mimo_audio_tokenizer_path, device=None):
            assert model_path == "XiaomiMiMo/MiMo-Audio-7B-Instruct"
            assert mimo_audio_tokenizer_path == "XiaomiMiMo/MiMo-Audio-Tokenizer"
            assert flash_attn_varlen_func.__name__ == "attention"

        def get_task_sampler(self, task_name):
            return {"global": MiMoSampler(do_sample=True, temperature=0.6, top_p=0.95),
                    "local": MiMoSampler(do_sample=True)}

        def save_wav(self, path, wav):
            raise AssertionError("a file is written")

        def forward(self, input_ids, return_audio=False, output_audio_path=None, stopping_criteria=None,
                    min_new_tokens=0, max_new_tokens=8192, add_history=False, task_name=None):
            if output_audio_path:
                self.save_wav(output_audio_path, torch.full((1, 1, 480), 0.0 if "silence" in input_ids else 0.5))
            draws = self.get_task_sampler(task_name)
            assert draws["local"] == MiMoSampler(do_sample=True)
            return json.dumps([input_ids, max_new_tokens, asdict(draws["global"]), random.random()])

        def tts_sft(self, text, output_path, instruct=None, read_text_only=True, prompt_speech=None):
            parts = ["tts", text, instruct, seen(prompt_speech)]
            return self.forward(parts, output_audio_path=output_path, task_name="tts")

        def audio_understanding_sft(self, input_speech, input_text, thinking=False):
            parts = ["understand", seen(input_speech), input_text, thinking]
            return self.forward(parts, task_name="audio_understanding")

        def spoken_dialogue_sft_multiturn(self, message_list, output_audio_path=None, system_prompt=None,
                                          prompt_speech=None):
            if prompt_speech:
                assert isinstance(prompt_speech, str)

            def shown(m):
                content = m["content"]
                return seen(content) if m["role"] == "user" else [content["text"], seen(content["audio"])]

            turns = [[m["role"], shown(m)] for m in message_list]
            return self.forward(["spoken", turns, system_prompt, prompt_speech], output_audio_path=output_audio_path)

        def speech2text_dialogue_sft_multiturn(self, message_list, thinking=False):
            return self.forward(["speech", [[m["role"], seen(m["content"])] for m in message_list], thinking])

        def text_dialogue_sft_multiturn(self, message_list, thinking=False):
            turns = [[m["role"], m["content"]] for m in message_list]
            return self.forward(["text", turns, thinking], task_name="text_chat")
"""


def test_mimo_audio_takes_the_method_that_fits(tmp_path):
    clone = written(tmp_path, {"src/mimo_audio/mimo_audio.py": MIMO})
    one, two, system = sound(0.5, 24_000), sound(0.25, 48_000), Message("system", ("Be brief.",))
    greedy = {"max_tokens": 7, "temperature": 0.0, "stop": ["x"]}
    requests = [
        Request("a", messages=(user("What is it?", one),)),
        Request("a", messages=(user("What is it?", one),), parameters=greedy),
        Request("b", messages=(system, user(one)), parameters={"temperature": 0.5, "top_p": 0.8}),
        Request("c", messages=(user(one), Message("assistant", ("Yes.",)), user(two))),
        Request("d", messages=(system, user("Who are you?"))),
        Request("e", messages=(user(one, two, "Which?"),)),
        Request("f", messages=(system, user("Now:", one)), wants="audio"),
        Request("g", messages=(user("silence", one),), wants="audio"),
        Request("h", messages=(user("Who are you?"),), wants="audio"),
        Request("i", fields={"text": "Hello.", "prompt_audio": two, "instruction": "softly"}, wants="audio"),
        Request("j", fields={"text": "Hello."}),
    ]
    got = answers("mimo-audio-7b-instruct", {"load.repository": clone, "load.voice": "me.wav"}, *requests)
    details = [json.loads(response.text) if response.status == "ok" else response.status for response in got]
    drawn = {"do_sample": True, "temperature": 0.6, "top_k": None, "top_p": 0.95}
    assert [item[0] if isinstance(item, list) else item for item in details] == [
        ["understand", [1, 12_000], "What is it?", False],
        ["understand", [1, 12_000], "What is it?", False],
        ["understand", [1, 12_000], "Be brief.", False],
        ["speech", [["user", [1, 12_000]], ["assistant", "Yes."], ["user", [1, 6_000]]], False],
        ["text", [["user", "Be brief.\n\nWho are you?"]], False],
        "refused",
        ["spoken", [["user", [1, 12_000]]], "Be brief.\n\nNow:", "me.wav"],
        "failed",
        "refused",
        ["tts", "Hello.", "softly", [1, 6_000]],
        "refused",
    ]  # fmt: skip
    assert details[0][1:3] == [8192, drawn] and details[0][3] == details[1][3] != details[2][3]  # each id has its seed
    assert details[1][1:3] == [7, {"do_sample": False, "temperature": 1.0, "top_k": None, "top_p": 1.0}]
    assert details[2][2] == {**drawn, "temperature": 0.5, "top_p": 0.8}
    assert got[1].notes == ("MiMo-Audio ignores 'stop'",) and got[0].notes == ()
    assert "no tokens of speech" in got[7].reason
    assert got[6].audio.sample_rate_hz == 24_000 and got[6].audio.samples.tolist() == [[0.5] * 480]


STEP = {
    "stepaudio2.py": """
        import json
        import soundfile
        import torch

        def seen(item):
            if item["type"] == "text":
                return item["text"]
            samples, rate_hz = soundfile.read(item["audio"], dtype="float32")
            return [rate_hz, len(samples), float(samples[0])]

        class StepAudio2:
            def __init__(self, model_path):
                self.model_path = model_path

            def __call__(self, messages, **kwargs):
                assert messages[-1] in (
                    {"role": "assistant", "content": None},
                    {"role": "assistant", "content": "<tts_start>", "eot": False},
                )
                turns = [[m["role"], m["content"] if isinstance(m["content"], str) else [seen(i) for i in m["content"]]]
                         for m in messages[:-1]]
                text = json.dumps([turns, messages[-1]["content"], kwargs, torch.rand(()).item()])
                return [1, 2], text, [] if "hush" in text else [3, 6561, 6563, 4]
    """,
    "token2wav.py": """
        import io
        import numpy as np
        import soundfile

        class Token2wav:
            def __init__(self, model_path, float16=False):
                assert model_path.endswith("/token2wav")

            def __call__(self, generated_speech_tokens, prompt_wav):
                assert prompt_wav.endswith("/assets/default_female.wav")
                output = io.BytesIO()
                soundfile.write(output, np.array(generated_speech_tokens) / 8, 24000, format="WAV")
                return output.getvalue()
    """,
}


def test_step_audio_2_is_queried_as_its_examples_do(tmp_path):
    clone, checkpoint = written(tmp_path / "clone", STEP), tmp_path / "checkpoint"
    (checkpoint / "token2wav").mkdir(parents=True)
    one, system = sound(0.5, 16_000), Message("system", ("Be brief.",))
    requests = [
        Request("a", messages=(system, user("What is it?", one), Message("assistant", ("A bell.",)), user("Sure?"))),
        Request("a", messages=(user(one),), parameters={"max_tokens": 7, "temperature": 0.0, "stop": ["x"]}),
        Request("b", messages=(user(one),), parameters={"temperature": 0.5}, wants="audio"),
        Request("c", messages=(user("hush", one),), wants="audio"),
        Request("d", fields={"text": "Hello."}, wants="audio"),
    ]
    options = {"load.repository": clone, "load.checkpoint": str(checkpoint), "load.trust_remote_code": True}
    got = answers("step-audio-2-mini", options, *requests)
    assert [response.status for response in got] == ["ok", "ok", "ok", "failed", "refused"]
    details = [json.loads(response.text) for response in got[:3]]
    output = [16_000, 8_000, 0.25]
    drawn = {"do_sample": True, "temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.05}
    assert details[0][:3] == [
        [["system", "Be brief."], ["user", ["What is it?", output]], ["assistant", "A bell."], ["user", "Sure?"]], None,
        drawn,
    ]  # fmt: skip
    assert details[1][:3] == [[["user", [output]]], None, {"do_sample": False, "max_new_tokens": 7}]
    assert details[2][:3] == [[["user", [output]]], "<tts_start>", {**drawn, "temperature": 0.5}]
    assert details[0][3] == details[1][3] != details[2][3]  # each id has its seed
    assert got[1].notes == ("Step-Audio 2 ignores 'stop'",) and got[0].notes == ()
    assert got[2].audio.sample_rate_hz == 24_000 and got[2].audio.samples.tolist() == [
        [0.375, 0.5]
    ]  # codes 3 and 4; the others pad
    assert "no codes of speech" in got[3].reason
    (mute,) = worker_code("step-audio-2").answer({"vocoder": None}, [_plain(requests[2])])
    assert "no folder 'token2wav'" in mute["error"]


MINICPM = {
    "config.json": """
        {"model_type": "minicpmo", "auto_map": {"AutoConfig": "configuration_minicpmo.MiniCPMOConfig",
                                                "AutoModel": "modeling_minicpmo.MiniCPMO"}}
    """,
    "configuration_minicpmo.py": """
        from transformers import PretrainedConfig

        class MiniCPMOConfig(PretrainedConfig):
            model_type = "minicpmo"

            def __init__(self, init_vision=True, init_audio=True, init_tts=True, **kwargs):
                super().__init__(**kwargs)
                self.init_vision, self.init_audio, self.init_tts = init_vision, init_audio, init_tts
    """,
    "modeling_minicpmo.py": """
        import json
        import numpy as np
        import soundfile
        import torch
        from transformers import PreTrainedModel
        from .configuration_minicpmo import MiniCPMOConfig

        class MiniCPMO(PreTrainedModel):
            config_class = MiniCPMOConfig
            _supports_sdpa = True
            vocoder = None

            def __init__(self, config):
                super().__init__(config)
                self.weight = torch.nn.Parameter(torch.ones(2))
                self.post_init()

            def init_tts(self, streaming=False, model_dir=None, enable_float16=False, n_timesteps=10):
                self.vocoder = streaming

            @staticmethod
            def get_sys_prompt(ref_audio=None, mode="default", language="en", ref_audio_max_ms=None):
                assert isinstance(ref_audio, np.ndarray)
                return {"role": "system", "content": [mode, ref_audio, language]}

            def chat(self, image=None, msgs=None, vision_hidden_states=None, max_new_tokens=4096, min_new_tokens=0,
                     do_sample=True, max_inp_length=8192, stream=False, stream_input=False, max_slice_nums=None,
                     use_image_id=None, enable_thinking=False, use_tts_template=False, generate_audio=False,
                     output_audio_path=None, **kwargs):
                config = self.config
                turns = [[m["role"], [c if isinstance(c, str) else [str(c.dtype), *c.shape] for c in m["content"]]]
                         for m in msgs]
                if use_tts_template and generate_audio and output_audio_path and "hush" not in str(turns):
                    assert self.vocoder is False
                    soundfile.write(output_audio_path, np.full(3, 0.5), 24000)
                return json.dumps([turns, max_new_tokens, do_sample, kwargs, enable_thinking, torch.rand(()).item(),
                                   [config.init_vision, config.init_audio, config.init_tts, str(self.weight.dtype)]])
    """,
}


def test_minicpm_o_is_queried_by_its_chat(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    checkpoint = written(tmp_path / "checkpoint", MINICPM)
    save_file({"weight": torch.ones(2)}, f"{checkpoint}/model.safetensors", metadata={"format": "pt"})
    soundfile.write(tmp_path / "me.wav", np.zeros((160, 2)), 16_000)
    one, system = sound(0.5, 16_000), Message("system", ("Be brief.",))
    requests = [
        Request("a", messages=(system, user("What is it?", one), Message("assistant", ("A bell.",)), user("Sure?"))),
        Request(
            "a", messages=(user(one),), parameters={"max_tokens": 7, "temperature": 0.0, "top_p": 0.5, "stop": ["x"]}
        ),
        Request("b", messages=(user(one),), parameters={"temperature": 0.5, "top_p": 0.8}, wants="audio"),
        Request("c", messages=(system, user("hush", one)), wants="audio"),
        Request("d", fields={"text": "Hello.", "prompt_audio": one}, wants="audio"),
    ]
    options = {"load.checkpoint": checkpoint, "load.trust_remote_code": True}
    got = answers("minicpm-o-4.5-speech", {**options, "load.voice": str(tmp_path / "me.wav")}, *requests)
    assert [response.status for response in got] == ["ok", "ok", "ok", "failed", "ok"]
    details = {index: json.loads(got[index].text) for index in (0, 1, 2, 4)}
    output, voice, most = ["float32", 8_000], ["float32", 160], 4096
    assert details[0][:5] == [
        [["system", ["Be brief."]], ["user", ["What is it?", output]], ["assistant", ["A bell."]], ["user", ["Sure?"]]],
        most, True, {"num_beams": 1}, False,
    ]  # fmt: skip
    assert details[1][:4] == [[["user", [output]]], 7, False, {"num_beams": 1}]
    spoken = [["system", ["audio_assistant", voice, "en"]], ["user", [output]]]
    assert details[2][:4] == [spoken, most, True, {"num_beams": 1, "temperature": 0.5, "top_p": 0.8}]
    assert details[4][:4] == [
        [["system", ["模仿音频样本的音色并生成新的内容。", output, "请用这种声音风格来为用户提供帮助。 直接作答，不要有冗余内容"]],
         ["user", ["请朗读以下内容。 Hello."]]],
        512, True, {"num_beams": 1, "temperature": 0.1},
    ]  # fmt: skip
    assert details[0][5] == details[1][5] != details[2][5]  # each id has its seed
    assert details[0][6] == [False, True, True, "torch.bfloat16"]
    assert got[1].notes == ("MiniCPM-o ignores 'stop'",) and got[0].notes == ()
    assert got[2].audio.sample_rate_hz == 24_000 and got[2].audio.samples.tolist() == [[0.5] * 3]
    assert "made no sound" in got[3].reason
    without = {"speaks": False, "voice": None, "language": "en"}
    (mute,) = worker_code("minicpm-o-4.5").answer(without, [_plain(requests[2])])
    (voiceless,) = worker_code("minicpm-o-4.5").answer({**without, "speaks": True}, [_plain(requests[2])])
    assert "load.speaks=true" in mute["error"] and "load.voice=FILE" in voiceless["error"]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (
            "mimo-audio-7b-instruct",
            {},
            r"clone github\.com/XiaomiMiMo/MiMo-Audio and name the folder.*load\.repository=FOLDER",
        ),
        ("mimo-audio-7b-instruct", {"load.repository": "nowhere"}, r"'nowhere' has no src/mimo_audio/mimo_audio\.py"),
        (
            "step-audio-2-mini",
            {"load.repository": "clone"},
            r"look at them, and allow that with .*load\.trust_remote_code=true",
        ),
        (
            "step-audio-2-mini",
            {"load.trust_remote_code": True},
            r"clone github\.com/stepfun-ai/Step-Audio2 and name the folder",
        ),
    ],
)
def test_code_of_others_runs_only_where_the_user_says_so(name, options, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "clone", {"stepaudio2.py": "raise SystemExit(9)"})
    code = worker_code(read_env(load_config(name)["env"]).name)
    inputs = load_config(name)["load"] | {key.partition(".")[2]: value for key, value in options.items()}
    with pytest.raises(ValueError, match=says):
        code.load(**inputs)


@pytest.mark.parametrize(("causal", "window"), [(False, (-1, -1)), (False, (2, 1)), (True, (-1, -1)), (True, (3, 5))])
def test_attention_by_torch_is_that_of_packed_sequences(causal, window):
    draw = np.random.default_rng(0)
    query, key, value = draw.normal(size=(3, 9, 2, 4))
    starts, expected = [0, 5, 9], np.empty((9, 2, 4))
    for begin, end in itertools.pairwise(starts):
        for frame in range(begin, end):
            first = begin if window[0] < 0 else max(begin, frame - window[0])
            last = frame if causal else end - 1 if window[1] < 0 else min(end - 1, frame + window[1])
            for head in range(2):
                weights = np.exp(key[first : last + 1, head] @ query[frame, head] / 2)
                expected[frame, head] = weights @ value[first : last + 1, head] / weights.sum()
    parts = [torch.from_numpy(item) for item in (query, key, value)]
    got = worker_code("mimo-audio").attention(
        *parts, torch.tensor(starts), None, 5, 5, causal=causal, window_size=window
    )
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)
