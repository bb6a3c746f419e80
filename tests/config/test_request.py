"""Requests in files: the same options as on the command line, mistakes with line and column, and `run.json` again."""

from __future__ import annotations

import dataclasses
import inspect
import json
from datetime import date
from pathlib import Path

import pytest
from refusals import Containing, refuses
from typer.main import get_command

from codec_bench import evaluate, profile, read_arguments, run_benchmark, score
from codec_bench.benchmark.run_request import Terms
from codec_bench.cli.app import app
from codec_bench.config.option import names, options_of
from codec_bench.config.request import COMMANDS, REQUESTS
from codec_bench.config.request_file import read_request
from codec_bench.engine.executor import OnRay
from codec_bench.engine.running import Running
from codec_bench.terminal.request import settings_of


@pytest.fixture
def file(tmp_path):
    def write(text, name="run.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


VERBS = {"eval": evaluate, "score": score, "run": run_benchmark, "profile": profile}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_the_options_of_its_schema(command):
    root = get_command(app)
    context = root.make_context("codec-bench", ["--help"], resilient_parsing=True)
    built = root.get_command(context, command).params
    assert {one.name for one in built} == {*options_of(REQUESTS[command]), "config"}
    for name, one in options_of(REQUESTS[command]).items():
        (parameter,) = (parameter for parameter in built if parameter.name == name)
        assert parameter.help == one.help and parameter.required == (one.default is ...)
        assert one.positional or one.flag.split("/")[0] in parameter.opts
        assert one.default is ... or parameter.default == one.default


@pytest.mark.parametrize("command", COMMANDS)
def test_a_verb_has_the_defaults_of_its_schema_and_describes_every_option(command):
    parameters = inspect.signature(VERBS[command]).parameters
    for one in options_of(REQUESTS[command]).values():
        if one.of == "verb" and one.there in parameters:
            assert f"\n    {one.there}: " in inspect.getdoc(VERBS[command]), one.name
            default = parameters[one.there].default
            plotted = one.name == "metrics" and command == "profile"  # it names its metrics itself
            must = command == "run" and one.name in ("benchmark", "model")  # or a suite, or codecs
            needed = one.default is ... or must or (command, one.name) == ("profile", "data")
            assert plotted or default == (inspect.Parameter.empty if needed else one.default), one.name


@pytest.mark.parametrize(("built", "of"), [(Running, "running"), (OnRay, "cluster"), (Terms, "terms")])
def test_what_options_become_has_a_field_for_each_with_its_default(built, of):
    held = {field.name: field.default for field in dataclasses.fields(built)}
    for schema in REQUESTS.values():
        for one in options_of(schema).values():
            if one.of == of:
                assert held[one.there] == one.default and f"    {one.there}: " in built.__doc__


def test_what_a_file_may_hold(file):
    text = """
command: eval
codec: {ours: ./mine.py:Codec, opus: opus-12k}
data: my/folder
metrics: [stoi, "wer[pocketsphinx]"]
limit: 5
batch_s: 30
cache: false
save_audio: 3
by: speaker
json: true
out:
set:
  dnsmos: {weights: DIR, batch: 2}
"""
    command, options = read_request(file(text))
    assert command == "eval"
    assert options == {
        "codec": {"ours": "./mine.py:Codec", "opus": "opus-12k"},
        "data": "my/folder",
        "metrics": ["stoi", "wer[pocketsphinx]"],
        "limit": 5,
        "batch_s": 30,
        "cache": False,
        "save_audio": 3,
        "by": "speaker",
        "json": True,
        "set": {"dnsmos": {"weights": "DIR", "batch": 2}},
    }
    arguments = read_arguments(file(text))
    assert arguments["options"] == {"dnsmos": {"weights": "DIR", "batch": 2}} and "json" not in arguments


def test_options_of_a_cluster_and_the_terms_of_a_service_arrive_as_what_they_are(file):
    result = read_arguments(file("codec: a\nexecutor: ray\nray_address: 'h:1'\nshards: 4\nworkers: 2\n"), "eval")
    assert result == {"codec": "a", "workers": 2, "executor": OnRay("h:1", shards=4)}
    with refuses("ray_options", options="shards"):
        read_arguments(file("codec: a\nshards: 4\n"), "eval")
    result = read_arguments(file("benchmark: a\nmodel: b\nwait: true\nmax_hours: 2\n"), "run")
    assert result == {"benchmark": "a", "model": "b", "terms": Terms(wait=True, max_hours=2)}


def test_the_arguments_of_a_profile_hold_how_thorough_it_is(file):
    arguments = read_arguments(file("codec: opus-12k\nmetrics: none\nclip_s: 2\ntime_limit: 7\nseed: 3\n"), "profile")
    assert arguments.pop("settings") == {"clip_s": 2, "time_limit_s": 7, "seed": 3}
    assert arguments == {"codec": "opus-12k", "metrics": (), "seed": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "codec: a\nlimt: 3\n",
            {
                "line": 2,
                "column": 1,
                "cause": {"code": "not_an_option", "option": "limt", "command": "eval"},
                "hint": "did you mean limit",
            },
        ),
        (
            "codec: a\nlimit: '3'\n",
            {
                "line": 2,
                "column": 8,
                "cause": {
                    "code": "option_value",
                    "option": "limit",
                    "value": '"3"',
                    "expected": "whole_number",
                },
            },
        ),
        (
            "codec: a\nlimit: 3.5\n",
            {
                "line": 2,
                "column": 8,
                "cause": {
                    "code": "option_value",
                    "option": "limit",
                    "value": "3.5",
                    "expected": "whole_number",
                },
            },
        ),
        (
            "limit: true\n",
            {
                "line": 1,
                "column": 8,
                "cause": {
                    "code": "option_value",
                    "option": "limit",
                    "value": "true",
                    "expected": "whole_number",
                },
            },
        ),
        (
            "cache: 'no'\n",
            {
                "line": 1,
                "column": 8,
                "cause": {
                    "code": "option_value",
                    "option": "cache",
                    "value": '"no"',
                    "expected": "flag",
                },
            },
        ),
        (
            "batch_s: fast\n",
            {
                "line": 1,
                "column": 10,
                "cause": {
                    "code": "option_value",
                    "option": "batch_s",
                    "value": '"fast"',
                    "expected": "number",
                },
            },
        ),
        (
            "out: [a]\n",
            {
                "line": 1,
                "column": 6,
                "cause": {"code": "option_value", "option": "out", "value": '["a"]', "expected": "text"},
            },
        ),
        (
            "metrics:\n  - stoi\n  - 3\n",
            {
                "line": 3,
                "column": 5,
                "cause": {
                    "code": "option_holds",
                    "option": "metrics",
                    "value": "3",
                    "expected": "texts",
                },
            },
        ),
        ("codec: {a: opus-6k, b: [x]}\n", {"line": 1, "column": 24, "cause": "option_holds"}),
        (
            "set: {dnsmos: 3}\n",
            {
                "line": 1,
                "column": 15,
                "cause": {
                    "code": "option_holds",
                    "option": "set",
                    "value": "3",
                    "expected": "settings",
                },
            },
        ),
        (
            "data: 2026-01-02\n",
            {
                "line": 1,
                "column": 7,
                "cause": {
                    "code": "option_value",
                    "option": "data",
                    "value": '"2026-01-02"',
                    "expected": "text",
                },
            },
        ),
        ("- a\n", {"code": "options_expected"}),
        ("codec: a\n codec: b\n", {"line": 2, "column": 7, "cause": Containing("mapping values are not allowed here")}),
        ("codec: a\ncodec: b\n", {"line": 2, "column": 1, "cause": Containing("the key 'codec' appears twice")}),
        ("codec: !!python/object/apply:os.system [x]\n", {"line": 1, "column": 8, "cause": Containing("the tag")}),
        (
            "command: score\ngenerated: x\n",
            {"line": 1, "column": 10, "cause": {"code": "other_command", "requested": "score"}},
        ),
    ],
)
def test_mistakes_are_named_with_line_and_column(file, text, message):
    with refuses(**{"code": "at_position", "path": "run.yaml", **message}):
        read_request(file(text), "eval")


def test_json_is_read_as_json_and_its_mistakes_have_a_place_too(file):
    _, options = read_request(file('{"set": {"x": {"threshold": 1e-05}}, "codec": "a"}', "a.json"), "eval")
    assert options["set"] == {"x": {"threshold": 1e-05}}, "YAML would read a text"
    with refuses("at_position", line=2, column=11, cause=Containing('limit is "x"; expected a whole number')):
        read_request(file('{\n "limit": "x"}', "a.json"), "eval")
    with refuses("at_position", line=2, column=1):
        read_request(file('{"limit":\n}', "a.json"), "eval")


def test_a_file_of_no_command_needs_one(file):
    with refuses("at_position", cause=Containing("command is None; expected eval, score, run or profile")):
        read_request(file("codec: a\n"))
    assert read_request(file("codec: a\n"), "profile") == ("profile", {"codec": "a"})


def test_a_record_is_a_request(file):
    config = {
        "command": "score",
        "data": "d.jsonl",
        "generated": {"a": "x", "b": "y"},
        "seed": 3,
        "limit": None,
        "metrics": ["stoi"],
        "systems": ["a", "b"],
        "options": {},
    }
    settings = {"device": "auto", "workers": 8, "batch_s": None, "time_limit_s": 9.0, "cache": True, "save_audio": None}
    record = {"config": config, "how": settings, "by": ["speaker"], "fingerprint": {}, "timings": {"x": 1e-05}}
    command, options = read_request(file(json.dumps(record), "run.json"))
    assert command == "score"
    assert options == {
        "generated": {"a": "x", "b": "y"},
        "data": "d.jsonl",
        "seed": 3,
        "metrics": ["stoi"],
        "device": "auto",
        "time_limit_s": 9.0,
        "cache": True,
        "by": ["speaker"],
    }
    record["config"] |= {"command": "evaluate", "data": "samples"}
    with refuses("samples_of_python"):
        read_request(file(json.dumps(record), "run.json"))


def test_settings_are_typed_as_they_were_meant(tmp_path):
    from codec_bench.terminal.request import parse_settings

    options = {
        "m": {
            "a": "6",
            "b": 6,
            "c": 1e-05,
            "d": True,
            "e": None,
            "f": "true",
            "g": {"x": [1], "y": "z: 1"},
            "h": "a, b",
            "i": "Größe\n2",
        },
        "./mine.py:X": {"parameters.temperature": 0},
    }
    result = parse_settings(settings_of(options, tmp_path))
    nested = result.pop("./mine.py:X.parameters")
    assert result == {"m": options["m"]} and nested == {"temperature": 0}
    assert parse_settings(settings_of({"m": {"a": [1, "b[c]"]}}, tmp_path)) == {"m": {"a": [1, "b[c]"]}}
    with refuses("setting_type", setting="m.a", type="date"):
        settings_of({"m": {"a": date(2026, 1, 1)}}, tmp_path)


@pytest.mark.parametrize("options", [dict, Path("mine.yaml"), ["a", 3]])
def test_what_is_no_name_is_reported(options):
    with refuses("name_type") as caught:
        names(options)
    assert "./FILE.py:CLASS" in caught.value.hint
    assert names(("a", " b ")) == names("a, b") == ["a", "b"]
