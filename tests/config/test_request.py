"""Requests in files: the same options as on the command line, mistakes with line and column, and `run.json` again."""

from __future__ import annotations

import json
from typing import get_args, get_type_hints

import pytest
from typer.main import get_command

from codec_bench import read_arguments
from codec_bench.cli.app import app
from codec_bench.cli.evaluate import evaluate, score
from codec_bench.cli.profile import profile
from codec_bench.cli.request import settings_of
from codec_bench.cli.run import run
from codec_bench.config.request import REQUESTS, read_request
from codec_bench.errors import UserError


@pytest.fixture
def file(tmp_path):
    def write(text, name="run.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("function", [evaluate, score, run, profile])
def test_a_file_has_the_options_of_the_command_line(function):
    command = {"evaluate": "eval"}.get(function.__name__, function.__name__)
    hints = get_type_hints(function)
    named = {
        p.name: max(p.opts, key=len).lstrip("-").replace("-", "_") for p in get_command(app).commands[command].params
    }
    options = {option: hints[name] for name, option in named.items() if name not in ("help", "config")}
    fields = {field.alias or name: field.description for name, field in REQUESTS[command].model_fields.items()}
    fields.pop("command")
    assert set(fields) == set(options)
    words = {int: "a whole number", float: "a number", bool: "true or false"}
    for name, kind in options.items():
        typed = next(one for one in (get_args(kind) or (kind,)) if one is not type(None))
        assert fields[name] == words[typed] if typed in words else fields[name] not in words.values(), name


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
        "codec": {"ours": "./mine.py:Codec", "opus": "opus-12k"}, "data": "my/folder", "metrics": ["stoi", "wer[pocketsphinx]"],
        "limit": 5, "batch_s": 30, "cache": False, "save_audio": 3, "by": "speaker", "json": True,
        "set": {"dnsmos": {"weights": "DIR", "batch": 2}},
    }  # fmt: skip
    arguments = read_arguments(file(text))
    assert arguments["options"] == {"dnsmos": {"weights": "DIR", "batch": 2}} and "json" not in arguments


def test_the_arguments_of_a_profile_hold_how_thorough_it_is(file):
    arguments = read_arguments(file("codec: opus-12k\nmetrics: none\nclip_s: 2\ntime_limit: 7\nseed: 3\n"), "profile")
    settings = arguments.pop("settings")
    assert (settings.clip_s, settings.time_limit_s, settings.seed) == (2, 7, 3)
    assert arguments == {"codec": "opus-12k", "metrics": (), "seed": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("codec: a\nlimt: 3\n", r"line 2, column 1: 'limt' is no option of eval.*did you mean limit"),
        ("codec: a\nlimit: '3'\n", "line 2, column 8: 'limit' is the text '3'; expected a whole number"),
        ("codec: a\nlimit: 3.5\n", "line 2, column 8: 'limit' is 3.5; expected a whole number"),
        ("limit: true\n", "line 1, column 8: 'limit' is true; expected a whole number"),
        ("cache: 'no'\n", "line 1, column 8: 'cache' is the text 'no'; expected true or false"),
        ("batch_s: fast\n", "line 1, column 10: 'batch_s' is the text 'fast'; expected a number"),
        ("out: [a]\n", r"line 1, column 6: 'out' is \[\"a\"\]; expected a text"),
        ("metrics:\n  - stoi\n  - 3\n", "line 3, column 5: 'metrics' holds 3; expected a text, or a list of texts"),
        ("codec: {a: opus-6k, b: [x]}\n", "line 1, column 24: 'codec' holds .*; expected a text, a list of texts, or a mapping"),
        ("set: {dnsmos: 3}\n", "line 1, column 15: 'set' holds 3; expected a mapping of names to options"),
        ("data: 2026-01-02\n", "line 1, column 7: 'data' is \"2026-01-02\"; expected a text"),
        ("- a\n", "line 1, column 1: expected a mapping of options to values"),
        ("codec: a\n codec: b\n", "line 2, column 7: mapping values are not allowed here"),
        ("codec: a\ncodec: b\n", "line 2, column 1: the key 'codec' is given twice"),
        ("codec: !!python/object/apply:os.system [x]\n", "line 1, column 8: the tag"),
        ("command: score\ngenerated: x\n", r"line 1, column 10: this is a request for 'score', and the command is 'eval'"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_line_and_column(file, text, message):
    with pytest.raises(UserError, match=message) as raised:
        try:
            read_request(file(text), "eval")
        except UserError as error:
            raise UserError(str(error)) from error
    assert "run.yaml" in str(raised.value)


def test_json_is_read_as_json_and_its_mistakes_have_a_place_too(file):
    _, options = read_request(file('{"set": {"x": {"threshold": 1e-05}}, "codec": "a"}', "a.json"), "eval")
    assert options["set"] == {"x": {"threshold": 1e-05}}, "YAML would read a text"
    with pytest.raises(UserError, match=r"line 2, column 11: 'limit' is the text 'x'"):
        read_request(file('{\n "limit": "x"}', "a.json"), "eval")
    with pytest.raises(UserError, match=r"line 2, column 1"):
        read_request(file('{"limit":\n}', "a.json"), "eval")


def test_a_file_of_no_command_needs_one(file):
    with pytest.raises(UserError, match="'command' is null; expected one of eval, score, run, profile"):
        read_request(file("codec: a\n"))
    assert read_request(file("codec: a\n"), "profile") == ("profile", {"codec": "a"})


def test_a_record_is_a_request(file):
    config = {
        "command": "score", "data": "d.jsonl", "generated": {"a": "x", "b": "y"}, "seed": 3, "limit": None, "metrics": ["stoi"],
        "systems": ["a", "b"], "options": {},
    }  # fmt: skip
    how = {"device": "auto", "workers": 8, "batch_s": None, "time_limit_s": 9.0, "cache": True, "save_audio": None}
    record = {"config": config, "how": how, "by": ["speaker"], "fingerprint": {}, "timings": {"x": 1e-05}}
    command, options = read_request(file(json.dumps(record), "run.json"))
    assert command == "score"
    assert options == {
        "generated": {"a": "x", "b": "y"}, "data": "d.jsonl", "seed": 3, "metrics": ["stoi"], "device": "auto",
        "time_limit_s": 9.0, "cache": True, "by": ["speaker"],
    }  # fmt: skip
    record["config"] |= {"command": "evaluate", "data": "samples"}
    with pytest.raises(UserError, match="was given its samples in Python"):
        read_request(file(json.dumps(record), "run.json"))


def test_settings_are_typed_as_they_were_meant(tmp_path):
    from codec_bench.cli.options import parse_settings

    given = {
        "m": {"a": "6", "b": 6, "c": 1e-05, "d": True, "e": None, "f": "true", "g": {"x": [1], "y": "z: 1"}, "h": "a, b",
              "i": "Größe\n2"},
        "./mine.py:X": {"parameters.temperature": 0},
    }  # fmt: skip
    found = parse_settings(settings_of(given, tmp_path))
    nested = found.pop("./mine.py:X.parameters")
    assert found == {"m": given["m"]} and nested == {"temperature": 0}
    with pytest.raises(UserError, match=r"the value of m.a is list; expected a text"):
        settings_of({"m": {"a": [1]}}, tmp_path)
