"""A command that fails under `--json` prints its error as JSON, next to the sentence on standard error."""

from __future__ import annotations

import json

import pytest

from codec_bench.cli import main
from codec_bench.cli.app import build_command, command_table
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError


def commands():
    """Every command of the program by its words, those of groups too."""
    pending = [((name,), build_command(name)) for name in command_table()]
    while pending:
        words, command = pending.pop()
        nested = getattr(command, "commands", None)
        if nested:
            pending += [((*words, name), one) for name, one in nested.items()]
        else:
            yield words, command


WITH_JSON = [(words, one) for words, one in commands() if any("--json" in option.opts for option in one.params)]


def test_most_commands_have_the_option():
    assert len(WITH_JSON) > 30


@pytest.mark.parametrize("command", [one for _, one in WITH_JSON], ids=[" ".join(words) for words, _ in WITH_JSON])
def test_an_error_has_its_code_and_parameters(command, monkeypatch, capsys):
    def fail(**options):
        raise UserError("unknown_name", kind="metric", name="stio", hint="did you mean stoi?")

    context = command.make_context("command", ["--json"], resilient_parsing=True)
    monkeypatch.setattr(command, "callback", fail)
    with pytest.raises(UserError):
        command.invoke(context)
    error = json.loads(capsys.readouterr().out)["error"]
    message = str(Diagnostic("unknown_name", kind="metric", name="stio"))
    assert error.pop("parameters") == {"kind": "metric", "name": "stio"}
    assert error == {"code": "unknown_name", "message": message, "hint": "did you mean stoi?"}
    (option,) = (one.name for one in command.params if "--json" in one.opts)
    context.params[option] = False
    with pytest.raises(UserError):
        command.invoke(context)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "code", "parameters"),
    [
        (["show", "stio", "--json"], "unknown_name", {"kind", "name"}),
        (["eval", "--metrics", "--json"], "value_missing", {"option", "word"}),
        (["compare", "/missing", "/missing", "--json"], None, None),
        (["show", "\udcff", "--json"], "unknown_name", {"kind", "name"}),
    ],
)
def test_the_program_exits_with_2(words, code, parameters, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["codec-bench", *words])
    with pytest.raises(SystemExit) as end:
        main()
    output = capsys.readouterr()
    error = json.loads(output.out)["error"]
    assert end.value.code == 2
    assert output.err.startswith("error: ") and set(error) == {"code", "message", "hint", "parameters"}
    if parameters is not None:
        assert error["code"] == code and set(error["parameters"]) == parameters
