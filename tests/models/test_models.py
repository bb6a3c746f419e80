import asyncio
import json
import os
import subprocess
import sys

import pytest
from refusals import refuses

from codec_bench.config import read_config
from codec_bench.config.registry import load_attribute
from codec_bench.models import KINDS, list_models, load_model, model_info, model_names
from codec_bench.models.base import ModelInfo

REMOTE = {kind for kind, path in KINDS.items() if ".endpoints." in path}
ROWS = [row for row in list_models() if row.kind in REMOTE]
# What a person must say: which model a service has, or where an endpoint is.
LACKS = {row.name: "base_url" if row.kind == "json-endpoint" else "model" for row in ROWS}
GENERIC = {name for name, lacks in LACKS.items() if lacks not in read_config("model", name)["options"]}


def makes(row):
    """What makes the body of a request: one method for HTTP, one for a WebSocket, and none where a model only
    converses.
    """
    built = load_attribute(KINDS[row.kind])
    return next((name for name in ("content", "_events") if hasattr(built, name)), None)


CUSTOM_CODE = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Parrot(Model):
    def __init__(self, info: ModelInfo, word: str = "hi", times: int = 1):
        self.info, self.word, self.times = info, word, times

    @property
    def identity(self):
        return {"word": self.word}

    async def ask(self, request):
        return Response(text=self.word * self.times)

class Lame(Model):
    info = ModelInfo("lame")

class Stranger:
    pass
"""


@pytest.fixture
def custom_file(tmp_path):
    (tmp_path / "my.py").write_text(CUSTOM_CODE)
    return tmp_path / "my.py"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_model_over_a_network_can_be_built(row, kit):
    options = {"model": "m", "base_url": "http://localhost:1/v1"} if row.name in GENERIC else {}
    model = load_model(row.name, options)
    assert model.info == row.info and model.info.name == row.name and row.summary and model.concurrency >= 1
    json.dumps(dict(model.identity))
    if row.kind != "json-endpoint":  # its own body says what it reads
        refused = model.check(kit.question("What?", None, wants=row.info.outputs[-1])) or ""
        assert (row.info.reads == "fields") == bool(refused and "converses in time" not in refused), refused
    assert "audio" in row.info.outputs or row.kind != "openai-speech"


@pytest.mark.parametrize("row", [r for r in ROWS if r.info.reads == "messages" and makes(r)], ids=lambda row: row.name)
def test_every_body_can_be_built(row, kit):
    model = load_model(
        row.name,
        {"model": "m"}
        if row.name in GENERIC - {"json-endpoint"}
        else {"base_url": "http://localhost:1"}
        if row.name == "json-endpoint"
        else {},
    )
    audio = kit.tone(0.1, model.rate_hz) if "audio" in row.info.inputs else None
    for text in ("What?", ""):
        request = kit.question(text, audio, wants=row.info.outputs[-1])
        make = getattr(model, makes(row))
        json.dumps(make(request))


def test_the_models_of_the_published_tables_are_there():
    known = set(model_names())
    table = {"gpt-4o-realtime", "gemini-1.5-flash", "gemini-1.5-pro", "gemini-2.5-flash", "gemini-2.5-pro",
        "kimi-audio",
             "minicpm-o-2.6", "midashenglm-7b", "glm-4-voice", "moshi", "mini-omni", "llama-omni", "speechgpt",
        "qwen-audio",
             "salmonn-7b", "salmonn-13b", "wavllm", "qwen-audio-7b", "qwen-audio-chat", "meralion-audiollm",
        "meralion-2-3b", "meralion-2-10b",
             "seallms-audio-7b", "seallms-audio-7b-vllm", "blsp", "pandagpt", "next-gpt", "macaw-llm", "gemma-2-9b-it",
        "gemma2-9b-sea-lion-v3",
             "whisper-large-v3+llama-3-8b", "whisper-large-v2+gemma2-9b-sea-lion-v3",
        "whisper-large-v3+gemma-2-9b-it"}  # fmt: skip
    assert table <= known


def test_unknown_names_are_answered_with_the_nearest():
    with refuses("unknown_name", hint="did you mean gemini-2.5-flash", kind="model"):
        load_model("gemini-2.5-flahs")
    with refuses("unknown_name", hint="openai-chat"):
        model_info("openai_chat")


def test_what_is_missing_and_what_is_too_much():
    with refuses("model_option_missing", model="openai-chat", option="model"):
        load_model("openai-chat")
    with refuses("model_option_unknown", option="api_key", hint="key_env") as caught:
        load_model("openai-chat", {"model": "m", "api_key": "sk-very-secret-0123456789"})
    assert "very-secret" not in str(caught.value)
    with refuses("model_option_out_of_range", option="concurrency"):
        load_model("openai-chat", {"model": "m", "concurrency": 0})
    with refuses("does_not_fit", mistakes={"code": "wrong_field", "name": "limit_s"}):
        load_model("openai-chat", {"model": "m", "limit_s": -1})


def test_facts_and_nested_options_can_be_replaced():
    options = {"model": "m", "limit_s": 30, "inputs": "text", "parameters.temperature": 0.5, "parameters.top_p": 1}
    model = load_model("openai-chat", options)
    assert model.info.limit_s == 30 and model.info.inputs == ("text",)
    assert model.parameters == {"temperature": 0.5, "top_p": 1}
    assert model_info("openai-chat").inputs == ("text", "audio")
    speech = load_model("openai-speech", {"model": "m", "fields.prompt_audio": "ref"})
    assert speech.fields == {"text": "input", "instruction": "instructions", "prompt_audio": "ref"}


def test_a_config_of_ones_own(tmp_path):
    file = tmp_path / "my_model.yaml"
    file.write_text(
        "version: 1\nsummary: mine\nkind: openai-chat\nlanguages: [en]\noptions: {model: m, base_url: 'http://h/v1'}\n"
    )
    model = load_model(str(file), {"model": "n"})
    assert model.info == ModelInfo("my_model", languages=("en",)) == model_info(str(file)) and model.model == "n"


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "version: 1\nsummary: s\nkind: openai-chats\n",
            {
                "code": "does_not_fit",
                "mistakes": {"code": "wrong_field", "message": {"code": "model_kind_unknown", "kind": "openai-chats"}},
            },
        ),
        (
            "version: 1\nsummary: s\nkind: gemini\nlimits: 3\n",
            {"code": "does_not_fit", "mistakes": {"code": "unknown_field", "name": "limits"}},
        ),
        (
            "version: 2\nsummary: s\nkind: gemini\n",
            {"code": "does_not_fit", "mistakes": {"code": "wrong_field", "name": "version"}},
        ),
        ("- 1\n", {"code": "mapping_expected"}),
        ("version: 1\nversion: 1\n", {"code": "at_position", "line": 2}),
    ],
)
def test_a_broken_config_is_recognised_by_file_and_field(tmp_path, text, message):
    (tmp_path / "m.yaml").write_text(text)
    with refuses(**message) as caught:
        load_model(str(tmp_path / "m.yaml"))
    assert "m.yaml" in str(caught.value)


def test_code_of_ones_own(custom_file, kit):
    model = load_model(f"{custom_file}:Parrot", {"times": 2})
    assert asyncio.run(model.ask(kit.question())).text == "hihi" and model.info.name == f"{custom_file}:Parrot"
    with refuses("model_lacks", lacking="ask and identity"):
        load_model(f"{custom_file}:Lame")
    with refuses("not_a_model", type="Stranger"):
        load_model(f"{custom_file}:Stranger")
    with refuses("file_without_attribute", name="Parot"):
        load_model(f"{custom_file}:Parot")
    with refuses("model_option_unknown", option="words"):
        load_model(f"{custom_file}:Parrot", {"words": "x"})


def test_every_kind_is_a_kind_of_model_and_nothing_heavy_is_imported():
    code = (
        "import sys, codec_bench.models, codec_bench.benchmark.asking.sending; print(*sorted({'aiohttp', 'websockets', "
        "'torch', 'transformers'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert out.returncode == 0 and out.stdout.strip() == "", out.stderr
    assert "transformers" not in REMOTE


def test_a_device_reaches_models_that_run_here():
    assert load_model("pocketsphinx", device="cuda:1,cuda:2").device == "cuda:1"
    assert load_model("pocketsphinx", {"device": "cpu"}, device="cuda:1").device == "cpu"
    assert load_model("openai-chat", {"base_url": "http://localhost:1/v1", "model": "m"}, device="cuda:1").info


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key_env": 1.5}, {"code": "key_env_form"}),
        ({"headers": 5}, {"code": "model_option_not_a_mapping", "option": "headers"}),
        ({"parameters": [1]}, {"code": "model_option_not_a_mapping", "option": "parameters"}),
        ({"base_url": "http://[x"}, {"code": "address_damaged", "url": "http://[x"}),
        ({"timeout_s": float("nan")}, {"code": "model_option_out_of_range", "option": "timeout_s"}),
        ({"concurrency": 1e300}, {"code": "model_option_out_of_range", "option": "concurrency"}),
        ({"rename": 7}, {"code": "model_option_not_a_mapping", "option": "rename"}),
    ],
)
def test_an_option_of_another_type_is_reported(options, message):
    with refuses(**message):
        load_model("openai-chat", {"model": "m", "base_url": "http://localhost:1/v1", **options})
