"""`--config`: a file in place of a long command, and the `run.json` of a run that repeats it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.api.recorded_arguments import record_arguments
from codec_bench.config.option import options_of
from codec_bench.config.request import REQUESTS
from codec_bench.config.request_file import read_request
from codec_bench.engine.executor import OnRay
from codec_bench.engine.running import Running

BENCHMARK = """
version: 1
title: Own
summary: Words that are repeated.
category: QA
kind: qa
language: en
data: {path: rows.jsonl, id: id, columns: {question: q, reference: right}}
prompt: {messages: [{content: ["{{ question }}"]}]}
metrics: ["accuracy[exact]"]
primary: "accuracy[exact]"
"""
ECHO = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Echo(Model):
    info = ModelInfo("echo")
    identity = {"echo": 1}

    async def ask(self, request):
        return Response(text=request.messages[-1].content[-1].rpartition("|")[2], usage={"cost_usd": 0})
"""
QUESTIONS = (
    "codec: [unprocessed, mine=g711-ulaw]\ndata: embedded\nmetrics: [si_sdr]\nlimit: 2\ncache: false\nworkers: 1\n"
    "out: a\n"
)


def values(folder):
    systems = json.loads((Path(folder) / "summary.json").read_text())["systems"]
    return {name: {m: entry["value"] for m, entry in held["metrics"].items()} for name, held in systems.items()}


def test_a_run_from_a_file_and_again_from_its_record(command):
    Path("run.yaml").write_text(QUESTIONS)
    assert command("eval", "--config", "run.yaml")[0] == 0
    record = json.loads(Path("a/run.json").read_text())
    assert record["how"]["cache"] is False and record["config"]["limit"] == 2
    code, _, err = command("eval", "--config", "a/run.json", "--out", "b")
    assert code == 0, err
    again = json.loads(Path("b/run.json").read_text())
    assert {**again["config"]} == {**record["config"]} and again["fingerprint"] == record["fingerprint"]
    assert values("a") == values("b") and set(values("a")) == {"unprocessed", "mine"}
    # What is typed wins, and a preset that is typed replaces the metrics of the file.
    code, _, err = command("eval", "--config", "run.yaml", "--limit", "1", "--metrics", "stoi", "--out", "c")
    assert code == 0, err
    assert values("c")["mine"].keys() == {"stoi"} and json.loads(Path("c/run.json").read_text())["config"]["limit"] == 1
    Path("preset.yaml").write_text(QUESTIONS.replace("metrics: [si_sdr]", "preset: embedded"))
    code, _, err = command("eval", "--config", "preset.yaml", "--metrics", "si_sdr", "--out", "d", "--limit", "1")
    assert code == 0 and values("d")["mine"].keys() == {"si_sdr"}, err


def recorded(schema):
    """The options that a record must hold: those of the table, however many there are."""
    return {name for name, one in options_of(schema).items() if one.of != "terminal"} - {"out"}


def test_a_record_holds_every_option_of_its_command(command):
    """An option that is added to the table is in the records from then on, and is repeated from them."""
    assert (
        command(
            "eval",
            "--config",
            _written("run.yaml", QUESTIONS + "save_audio: all\n"),
            "--per-gpu",
            "2",
            "--time-limit-s",
            "99",
        )[0]
        == 0
    )
    typed = (
        "--data a/audio/reference --generated ours=a/audio/mine --metrics si_sdr --allow-same --no-cache --workers 1 "
        "--out s"
    )
    assert command("score", *typed.split())[0] == 0
    assert (
        command("profile", *"--codec g711-ulaw --metrics none --limit 1 --clip-s 0.5 --skip streaming --out p".split())[
            0
        ]
        == 0
    )
    by_name = {}
    for folder, name in (("a", "eval"), ("s", "score"), ("p", "profile")):
        by_name[name] = json.loads(Path(folder, "run.json").read_text())["arguments"]
        assert by_name[name].keys() == recorded(REQUESTS[name]), name
    assert (
        by_name["eval"] | {"per_gpu": 2, "time_limit_s": 99.0, "limit": 2, "cache": False, "executor": "local"}
        == by_name["eval"]
    )
    assert by_name["eval"]["codec"] == "unprocessed,mine=g711-ulaw" and by_name["score"]["allow_same"] is True
    assert by_name["profile"]["clip_s"] == 0.5 and by_name["profile"]["reencodings"] == 3
    for folder, name in (("a", "eval"), ("s", "score"), ("p", "profile")):
        request = read_request(Path(folder, "run.json"))[1]
        verb = [one for one in options_of(REQUESTS[name]).values() if one.of in ("verb", "settings")]
        dropped = [
            one.name for one in verb if by_name[name].get(one.name) is not None and one.name not in {*request, "preset"}
        ]
        assert not dropped, name


def test_a_record_of_a_benchmark_holds_every_option(command):
    Path("own").mkdir()
    Path("own/README.md").write_text("# own")
    Path("own/rows.jsonl").write_text('{"id": "a", "q": "|x", "right": "x"}\n')
    Path("own/benchmark.yaml").write_text(BENCHMARK)
    Path("echo.py").write_text(ECHO)
    typed = "--model ./echo.py:Echo --max-cost-usd 3 --max-hours 2 --repeats 1 --no-cache --out r --limit 1"
    code, _, err = command("run", "./own", *typed.split())
    assert code == 0, err
    (path,) = Path("r").rglob("run.json")
    held = json.loads(path.read_text())["arguments"]
    assert held.keys() == recorded(REQUESTS["run"])
    assert held | {"max_cost_usd": 3.0, "max_hours": 2.0, "limit": 1, "phase": "both", "cache": False} == held
    code, _, err = command("run", "--config", path, "--out", "again")
    assert code == 0, err
    (again,) = Path("again").rglob("run.json")
    assert code == 0 and json.loads(again.read_text())["arguments"]["max_cost_usd"] == 3.0, err


def test_what_a_url_or_an_object_holds_is_not_recorded():
    """A signature in a URL is a secret, and an object has no form in JSON."""
    held = record_arguments(
        REQUESTS["eval"],
        {"codec": object, "data": "https://host/a.jsonl?token=secret", "trials": "https://u:p@host/t?k=secret"},
    )
    assert held["codec"] == "object" and "secret" not in json.dumps(held) and "u:p" not in json.dumps(held)
    assert record_arguments(REQUESTS["eval"], {}, Running(executor=OnRay(shards=5)))["shards"] == 5


def test_mistakes_of_a_file_are_reported_in_one_sentence(command):
    Path("run.yaml").write_text("codec: opus-12k\ndata: embedded\nmetric: stoi\n")
    code, out, err = command("eval", "--config", "run.yaml")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "error: 'run.yaml', line 3, column 1: 'metric' is no option of eval",
        "hint: did you mean metrics?",
    ]
    assert command("eval", "--config", "none.yaml")[0] == 2
    Path("run.yaml").write_text("data: embedded\nmetrics: stoi\n")
    code, _, err = command("eval", "--config", "run.yaml")
    assert code == 2 and "--codec" in err, "what the file lacks must be typed"


def test_settings_of_the_command_line_are_added_to_those_of_the_file(command):
    name = _written("run.yaml", QUESTIONS + "set:\n  ge2e: {first: 1}\n  dnsmos: {weights: nowhere}\n")
    code, _, err = command("eval", "--config", name, "--metrics", "sim[ge2e],dnsmos")
    assert code == 2 and "there is no option of the feature 'ge2e' called 'first'" in err
    name = _written("run.yaml", QUESTIONS + "set:\n  dnsmos: {weights: nowhere}\n")
    code, _, err = command("eval", "--config", name, "--metrics", "dnsmos", "--set", "dnsmos.weights=elsewhere")
    assert code == 2 and "elsewhere" in err and "nowhere" not in err


def test_score_and_profile_take_a_file_and_are_repeated_from_their_records(command):
    assert command("eval", "--config", _written("run.yaml", QUESTIONS + "save_audio: all\n"))[0] == 0
    text = (
        "generated: {ours: a/audio/mine}\ndata: a/audio/reference\nmetrics: si_sdr\ncache: false\nworkers: 1\nout: s\n"
    )
    code, _, err = command("score", "--config", _written("score.yaml", text))
    assert code == 0, err
    code, _, err = command("score", "--config", "s/run.json", "--out", "t")
    assert code == 0 and values("s") == values("t") and set(values("t")) == {"ours"}, err
    text = "codec: g711-ulaw\nmetrics: none\nlimit: 1\nclip_s: 0.5\nreencodings: 0\nout: p\n"
    code, _, err = command("profile", "--config", _written("profile.yaml", text))
    assert code == 0, err
    code, _, err = command("profile", "--config", "p/run.json", "--out", "q")
    assert code == 0, err
    first, second = (json.loads(Path(f"{name}/profile.json").read_text()) for name in "pq")
    assert first["how"] == second["how"] and first["codecs"].keys() == second["codecs"].keys()


def _written(name, text):
    Path(name).write_text(text)
    return name


@pytest.mark.parametrize("typed", [["--suite", "nothing"], ["--codec", "opus-12k"]])
def test_a_suite_that_is_typed_replaces_the_benchmarks_of_the_file_and_codecs_the_models(command, typed):
    Path("run.yaml").write_text("benchmark: librispeech-test-clean\nmodel: openai-chat\n")
    code, _, err = command("run", "--config", "run.yaml", *typed)
    expected = "nothing" if typed[0] == "--suite" else "asks a model, not a codec"
    assert code == 2 and expected in err
