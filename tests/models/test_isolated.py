"""Models in workers: requests and answers arrive unchanged, in this environment and in two that are really isolated."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from refusals import Containing, refuses
from scripted_models import ask

from codec_bench.audio.clip import Clip
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.models import isolated as isolated_module
from codec_bench.models.base import ModelInfo
from codec_bench.models.isolated import Isolated
from codec_bench.types import Audio, Message, Request
from codec_bench.workers import environment
from codec_bench.workers.environment import Environment, make_environment, read_env

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="isolated workers are tested on Linux")

CODE = """
import json, os
np = type("NumPy", (), {"__getattr__": lambda _, name: getattr(__import__("numpy"), name)})()  # imported when used


def load(**options):
    return {"sizes": [], **options}


def answer(state, batch):
    state["sizes"].append(len(batch))
    return [one(state, item) for item in batch]


def one(state, item):
    do = item["fields"].get("do")
    if do == "die":
        os._exit(3)
    answers = {
        "not text": {"text": 5},
        "NaN": {"text": "x", "audio": {"samples": np.full(10, np.nan), "sample_rate_hz": 8000}},
        "empty audio": {"text": "x", "audio": {"samples": np.zeros((1, 0)), "sample_rate_hz": 8000}},
        "rate 0": {"text": "x", "audio": {"samples": np.zeros(8), "sample_rate_hz": 0}},
        "nothing": {},
        "another key": {"txt": "x"},
        "half a character": {"text": "a\\ud800b"},
        "long text": {"text": "x" * 100_000},
        "empty text": {"text": ""},
        "error": {"error": "too noisy"},
        "refused": {"refused": "not in this language"},
        "usage": {"text": "x", "usage": {"output_tokens": 3}, "finish": "stop", "notes": ["one", "two"]},
        "usage that is none": {"text": "x", "usage": {"output_tokens": float("inf")}},
        "sizes": {"text": json.dumps(state["sizes"])},
    }
    if do in answers:
        return answers[do]
    if do == "shape":
        return {"text": str(item["fields"]["audio"]["samples"].shape)}
    if do == "sound":
        return {"audio": {"samples": item["fields"]["audio"]["samples"] / 2, "sample_rate_hz": 24000}}
    seen = json.loads(json.dumps(item, default=lambda a: [str(a.dtype), list(a.shape)]))
    return {"text": json.dumps(seen, sort_keys=True)}
"""


def prepare_folder(folder, patch):
    """A folder with an environment's file and worker code; the environment is this one."""
    (folder / "own.yaml").write_text("version: 1\nsummary: x\nrequirements: [a==1]\ncode: code.py\n")
    (folder / "code.py").write_text(CODE)
    here = Environment(Path(sys.prefix), Path(sys.executable))
    patch.setattr("codec_bench.models.isolated.make_environment", lambda spec, notify: here)
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return prepare_folder(tmp_path, monkeypatch)


def answers(model, *requests):
    return ask(model, requests)


def custom(folder, **options):
    info = ModelInfo("own", **{k: options.pop(k) for k in ("limit_s", "window_s") if k in options})
    return Isolated(info, env="own.yaml", folder=folder, **options)


def tone(seconds: float, rate: int = 16_000, channels: int = 1) -> Clip:
    t = np.arange(round(seconds * rate)) / rate
    return Clip(Audio(np.tile(0.1 * np.sin(2 * np.pi * 440 * t), (channels, 1)), rate))


def asks(do, **more):
    return Request(do, fields={"do": do, **more}, wants="audio" if do == "sound" else "text")


@pytest.fixture(scope="module")
def responses(tmp_path_factory):
    """The responses of one worker to requests of all kinds, sent at once, by a name of each."""
    with pytest.MonkeyPatch.context() as patch:
        folder = prepare_folder(tmp_path_factory.mktemp("isolated"), patch)
        (folder / "broken.wav").write_bytes(b"RIFF")
        complete = Request(
            "Ünïcode/1",
            messages=(Message("system", ("Be brief.",)), Message("user", ("What is it?", tone(0.5, 8_000, 2), "\n"))),
            fields={"language": "de", "n": 3, "prompt_audio": tone(0.25)},
            parameters={"temperature": 0.0, "stop": ["\n"]},
        )
        requests = {
            "complete": complete,
            "sound": asks("sound", audio=tone(1.0)),
            "first": asks("usage"),
            "object": asks("usage", x=object()),
            "broken": asks("shape", audio=Clip(str(folder / "broken.wav"))),
            **{do: asks(do) for do in ("usage", "half a character", "long text", "empty text")},
        }
        return dict(zip(requests, answers(custom(folder), *requests.values()), strict=True))


def test_a_request_arrives_as_it_is(responses):
    got = responses["complete"]
    assert got.status == "ok"
    assert json.loads(got.text) == {
        "id": "Ünïcode/1",
        "messages": [
            {"role": "system", "content": ["Be brief."]},
            {"role": "user", "content": ["What is it?", {"sample_rate_hz": 16_000, "samples": ["float32", [1, 8_000]]},
                "\n"]},
        ],
        "fields": {"language": "de", "n": 3,
            "prompt_audio": {"sample_rate_hz": 16_000, "samples": ["float32", [1, 4_000]]}},
        "wants": "text",
        "parameters": {"temperature": 0.0, "stop": ["\n"]},
    }  # fmt: skip


def test_sound_comes_back(responses):
    got = responses["sound"]
    assert got.status == "ok" and got.text is None
    assert got.audio.sample_rate_hz == 24_000
    np.testing.assert_array_equal(got.audio.samples, tone(1.0).source.samples / np.float32(2))


def test_what_goes_wrong_is_this_items_status(folder):
    wrong = {
        "error": ("failed", "^too noisy$"),
        "refused": ("refused", "^not in this language$"),
        "not text": ("failed", "its text is int; expected str"),
        "NaN": ("failed", "10 samples that are not finite"),
        "empty audio": ("failed", "no samples"),
        "rate 0": ("failed", "sample rate is 0"),
        "nothing": ("failed", "it holds nothing; expected 'text'"),
        "another key": ("failed", "it holds 'txt'; expected 'text'"),
        "usage that is none": ("failed", "usage"),
        "die": ("failed", "exit status 3"),
    }
    got = answers(custom(folder, batch_items=7), *(asks(do) for bad in wrong for do in ("usage", bad)))
    assert [response.status for response in got[::2]] == ["ok"] * len(wrong)
    for response, (status, says) in zip(got[1::2], wrong.values(), strict=True):
        assert response.status == status and response.text is None and response.audio is None
        assert re.search(says, response.reason)


def test_what_else_an_answer_says(responses):
    usage, half, long, empty = map(responses.get, ("usage", "half a character", "long text", "empty text"))
    assert (dict(usage.usage), usage.finish, usage.notes) == ({"output_tokens": 3.0}, "stop", ("one", "two"))
    assert half.text == "a?b" and "replaced" in half.notes[0]
    assert len(long.text) == 100_000
    assert (empty.status, empty.text) == ("ok", "")
    assert usage.latency_s > 0 and usage.attempts == 1


def test_a_request_that_cannot_be_sent_fails_alone(responses):
    got = [responses[name] for name in ("first", "object", "broken", "usage")]
    assert [r.status for r in got] == ["ok", "failed", "failed", "ok"]
    assert got[1].reason.code == "worker_request" and "broken.wav" in got[2].reason


def test_long_sounds_are_cut_or_read_in_windows(folder):
    (cut,) = answers(custom(folder, limit_s=2.0), asks("shape", audio=tone(2.5)))
    assert cut.text == "(1, 32000)" and cut.cut_s == pytest.approx(0.5)
    (output,) = answers(custom(folder, limit_s=2.0, window_s=2.0), asks("shape", audio=tone(4.5)))
    parts = [int(n) for n in re.findall(r"\(1, (\d+)\)", output.text)]
    assert sum(parts) == 72_000 and max(parts) <= 32_000
    assert output.cut_s == 0 and "windows" in output.notes[0]


def test_requests_that_wait_together_are_one_batch(folder):
    got = answers(custom(folder, batch_items=4), *(asks("usage") for _ in range(10)), asks("sizes"))
    sizes = json.loads(got[-1].text)
    assert sum(sizes) == 11 and max(sizes) == 4 and len(sizes) <= 5


def test_answers_find_their_requests_whatever_the_batch(folder):
    sounds = [tone(0.1 + 0.01 * k) for k in range(40)]
    for size, workers in ((1, 1), (7, 2)):
        model = custom(folder, batch_items=size, workers=workers)
        got = answers(model, *(asks("sound", audio=clip) for clip in sounds))
        assert [r.audio.num_samples for r in got] == [clip.source.num_samples for clip in sounds]


def test_who_asks_just_as_a_worker_runs_out_of_work_is_answered(folder):
    model = custom(folder)

    async def go():
        await model.start()
        item = isolated_module.wire.pack(isolated_module._plain(asks("usage")))

        async def in_a_row():
            # Each request follows the one before in the same step of the event loop, because no sound has to be read.
            return [await model._answer(item, "text") for _ in range(4)]

        try:
            return await asyncio.wait_for(in_a_row(), 10)
        finally:
            await model.close()

    assert [r.status for r in asyncio.run(go())] == ["ok"] * 4


def test_whatever_changes_an_answer_is_in_the_identity(folder):
    first = custom(folder).identity
    assert first == custom(folder, batch_items=3, workers=2).identity
    others = [custom(folder, load={"size": 2}), custom(folder, rate_hz=8_000), custom(folder, limit_s=3.0)]
    (folder / "other.py").write_text(CODE + "# more\n")
    others.append(custom(folder, code="other.py"))
    (folder / "own.yaml").write_text("version: 1\nsummary: x\nrequirements: [a==2]\ncode: code.py\n")
    others.append(custom(folder))
    (folder / "own.yaml").write_text(
        "version: 1\nsummary: x\nrequirements: [a==1]\ncode: code.py\nvariables: {A: '1'}\n"
    )
    others.append(custom(folder))
    identities = [str(first), *(str(model.identity) for model in others)]
    assert len(set(identities)) == 7


def test_a_config_of_ones_own_names_it(folder):
    from codec_bench.models import load_model

    (folder / "mine.yaml").write_text(
        "version: 1\nsummary: x\nkind: isolated\nlimit_s: 30\n"
        f"options: {{env: {folder / 'own.yaml'}, batch_items: 2, load: {{size: 1}}}}\n"
    )
    model = load_model(str(folder / "mine.yaml"), {"load.name": "x"})
    assert model.info.limit_s == 30 and model.identity["load"] == {"size": 1, "name": "x"}
    (got,) = answers(model, asks("usage"))
    assert got.status == "ok"


def test_options_that_do_not_fit_are_refused_before_anything_starts(folder):
    with refuses("batch_items_out_of_range", items=0):
        custom(folder, batch_items=0)
    with refuses("no_model_workers", count=0):
        custom(folder, workers=0)
    with refuses("no_worker_code", model="own", path="nowhere.py"):
        custom(folder, code="nowhere.py")
    with refuses("load_options_not_json"):
        custom(folder, load={"x": object()})
    with pytest.raises(UnknownName):
        Isolated(ModelInfo("own"), env="numpy-2")


def test_code_that_does_not_load_is_the_callers_to_mend(folder):
    (folder / "code.py").write_text("def load(): raise RuntimeError('no weights')\ndef answer(state, batch): pass\n")
    with refuses("model_not_loaded", model="own"):
        answers(custom(folder))


def test_closing_ends_what_waits(folder):
    (folder / "code.py").write_text("import time\ndef load(): pass\ndef answer(state, batch): time.sleep(60)\n")

    async def go():
        model = custom(folder, batch_items=1)
        await model.start()
        requests = [asyncio.create_task(model.ask(asks("usage"))) for _ in range(3)]
        await asyncio.sleep(0.2)
        await model.close()
        return await asyncio.gather(*requests)

    for answer in asyncio.run(go()):
        assert (answer.status, answer.reason.code) == ("failed", "model_closed")


# Really isolated: environments of the project's own, made by uv from the packages that pip would install.


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Makes an environment in a cache of this module's own, or skips where its packages cannot be had."""
    folder = tmp_path_factory.mktemp("cache")

    @cache
    def why_not(name: str) -> str | None:
        try:
            uv = environment._find_uv()
        except UserError as error:
            return str(error)
        variables = environment.foreign_variables()
        result, options = environment.pip_settings(variables)
        quick = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
        try:
            done = subprocess.run(
                [uv, "pip", "compile", "--no-deps", "--quiet", *options, "-"], env={**variables, **result, **quick},
                cwd=folder, input="\n".join(read_env(name).requirements), text=True, capture_output=True, timeout=60,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "the package index does not answer"
        return f"the package index does not have its packages: {done.stderr.strip()}" if done.returncode else None

    def build(name: str) -> None:
        reason = why_not(name)
        if reason is not None:
            pytest.skip(f"the environment '{name}' cannot be made here: {reason}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CODEC_BENCH_CACHE", str(folder))
            make_environment(read_env(name))

    build.folder = folder
    return build


@pytest.fixture
def isolated(installed, monkeypatch):
    def build(env, **options):
        installed(env)
        monkeypatch.setenv("CODEC_BENCH_CACHE", str(installed.folder))
        return Isolated(ModelInfo(env), env=env, **options)

    return build


def test_another_numpy(isolated):
    model = isolated("numpy-1", load={"gain_db": -6.0})
    clip = tone(10.0)
    output, text = answers(
        model,
        Request("a", (Message("user", ("How loud?", clip)),)),
        Request("b", fields={"audio": clip}, wants="audio"),
    )
    assert model.versions["numpy"] == "1.26.4" != np.__version__
    # A sine of amplitude 0.1 has a level of 20 log10(0.1 / sqrt 2) dB and an energy of 0.1**2 / 2 a second.
    assert output.text.startswith("10.000 s, -23.01 dB, energy 0.05") and output.notes == ("numpy 1.26.4",)
    np.testing.assert_allclose(text.audio.samples, clip.source.samples * 10 ** (-6 / 20), rtol=1e-6)
    assert {"numpy"} == set(model.versions) - {"python"}


def test_another_transformers(isolated):
    import transformers

    model = isolated("transformers-4", load={"mel_bins": 128})
    clips = [tone(1.0), tone(10.0)]
    got = answers(model, *(Request("a", fields={"audio": clip}) for clip in clips))
    assert model.versions["transformers"] == "4.57.6" != transformers.__version__
    assert "torch" not in model.versions
    ours = transformers.WhisperFeatureExtractor(feature_size=128)
    for answer, clip in zip(got, clips, strict=True):
        # This version's own features, of the same sound; five decimals are what the worker code writes.
        want = ours(
            clip.source.samples[0], sampling_rate=16_000, padding="longest", return_tensors="np"
        ).input_features[0]
        assert answer.status == "ok", answer.reason
        bins, frames, mean = re.fullmatch(r"(\d+) bins, (\d+) frames, mean (\S+)", answer.text).groups()
        assert (int(bins), int(frames)) == want.shape
        assert float(mean) == pytest.approx(float(want.mean()), abs=2e-5)


def test_a_list_that_leaves_out_what_it_needs(isolated, tmp_path):
    isolated("transformers-4")  # skips where nothing can be installed
    (tmp_path / "own.yaml").write_text("version: 1\nsummary: x\nrequirements: [requests==2.34.2]\n")
    with refuses("environment_incomplete", packages=Containing("urllib3")):
        make_environment(read_env(str(tmp_path / "own.yaml")))


@pytest.mark.parametrize(
    ("requirement", "python", "says"),
    [
        (
            "numpy==0.0.1",
            "",
            {"code": "environment_failed", "environment": "own", "status": 1, "output": Containing("numpy")},
        ),
        (
            f"numpy==1.26.4 --hash=sha256:{'0' * 64}",
            ">=3.11,<3.13",
            {"code": "environment_failed", "environment": "own", "status": 1, "output": Containing("ash")},
        ),
        ("numpy==1.26.4", "3.99", {"code": "environment_python", "python": "3.99"}),
    ],
    ids=["a version that does not exist", "a file with another hash", "a Python that nobody has"],
)
def test_what_cannot_be_built(isolated, tmp_path, requirement, python, says):
    isolated("numpy-1")
    expected = f"version: 1\nsummary: x\nrequirements: ['{requirement}']\n" + (
        f"python: '{python}'\n" if python else ""
    )
    (tmp_path / "own.yaml").write_text(expected)
    with refuses(**says):
        make_environment(read_env(str(tmp_path / "own.yaml")))


@pytest.mark.parametrize("version", ["3.8", "3.10", "3.13"])
def test_the_worker_runs_in_other_pythons_without_numpy(folder, version, monkeypatch):
    # Versions that lie beside this one, as pyenv and uv keep them.
    result = sorted(Path(sys.base_prefix).parent.glob(f"*{version}*/bin/python{version}"))
    if not result:
        pytest.skip(f"there is no Python {version} beside {sys.base_prefix}")
    python = result[0]
    monkeypatch.setattr(
        "codec_bench.models.isolated.make_environment", lambda spec, notify: Environment(python, python)
    )
    (folder / "code.py").write_text(
        "import sys\n"
        "def load(): return '.'.join(map(str, sys.version_info[:2]))\n"
        "def answer(state, batch):\n"
        "    if batch[0]['fields'].get('do') == 'list':\n"
        "        return [{'audio': {'samples': [0.0, 0.5, -0.25], 'sample_rate_hz': 8000}} for _ in batch]\n"
        "    return [{'text': state, 'audio': {'samples': item['fields']['audio']['samples'], 'sample_rate_hz': 8000}} "
        "for item in batch]\n"
    )
    clip = tone(0.5)
    requests = Request("a", fields={"audio": clip}), Request("b", fields={"do": "list"}, wants="audio")
    got, listed = answers(custom(folder, batch_items=1), *requests)
    assert (got.status, got.text) == ("ok", version)
    np.testing.assert_array_equal(got.audio.samples, clip.source.samples)
    assert listed.audio.samples.tolist() == [[0.0, 0.5, -0.25]]
