"""Reads a command's options from a file, or from the `run.json` of a run.

A key is an option's long name, with `_` for `-`; a value has the option's type. Several names are a list or one text
with commas. `set` is a mapping of names to options. Paths are relative to the working folder. `run.json` is recognised
by its `config`.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from codec_bench.config import Mark, load_yaml_with_marks
from codec_bench.config.option import names, options_of
from codec_bench.config.request import COMMANDS, REQUESTS, Command, CommandOptions
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

_VERBS = {"evaluate": "eval"}
"""Recorded names of commands, where they differ from the typed ones."""


def read_request(path: str | os.PathLike[str], command: Command | None = None) -> tuple[Command, dict[str, Any]]:
    """Read a command's options from a file.

    Args:
        path: a YAML or JSON file with options, or the `run.json` of a run.
        command: the command that the file is for; None reads it from the file.

    Returns:
        The command, and its options by name, without those that are null.

    Raises:
        UserError: the file is unreadable, for another command, or has an unknown or wrong option; the message names
            file, line and column, and the expected value.
    """
    file = Path(path)
    document = _read_document(file)
    if isinstance(document.get("config"), dict):
        document = _of_record(document, file)
    named = document.get("command")
    if command is None and named not in COMMANDS:
        raise _error_at(file, ("command",), _unknown_command(named))
    if command is not None and named in COMMANDS and named != command:
        hint = f"codec-bench {named} --config {file}"
        raise _error_at(file, ("command",), Diagnostic("other_command", requested=named, command=command), hint)
    chosen = next(name for name in COMMANDS if name == (command or named))
    return chosen, _validate(file, document, chosen)


def _validate(file: Path, document: Mapping[str, Any], command: Command) -> dict[str, Any]:
    """Return the options of a request file; raises UserError for a wrong one."""
    from pydantic import ConfigDict, Field, ValidationError, create_model

    known = options_of(REQUESTS[command])
    expected = {"command": ""} | {name: one.kind.expected for name, one in known.items()}
    types: dict[str, Any] = {"command": Command} | {name: one.type for name, one in known.items()}
    values = {name: value for name, value in document.items() if value is not None or name not in types}
    # The names of options are aliases, because some of them name methods of a model.
    fields: dict[str, Any] = {f"{name}_": (kind, Field(None, alias=name)) for name, kind in types.items()}
    model = create_model(command, __config__=ConfigDict(extra="forbid", strict=True), **fields)
    try:
        model.model_validate(values)
    except ValidationError as error:
        raise _validation_error(file, document, expected, command, error.errors()) from error
    return {name: value for name, value in values.items() if name != "command"}


def _read_document(file: Path) -> dict[str, Any]:
    """Parse a request file, JSON or YAML; raises UserError for another form."""
    if file.suffix == ".json" and file.is_file():
        try:
            document = json.loads(file.read_bytes())
        except json.JSONDecodeError as error:
            raise UserError("at_position", path=file, line=error.lineno, column=error.colno, cause=error.msg) from error
        except (OSError, ValueError, RecursionError) as error:
            raise UserError("file_not_readable", path=file, cause=error) from error
    else:
        document, _ = load_yaml_with_marks(file)
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise UserError("options_expected", path=file)
    return document


def _validation_error(
    file: Path, document: Any, expected: Mapping[str, str], command: str, errors: Sequence[Any]
) -> UserError:
    """Build the error of a wrong option from those of pydantic."""
    name = str(errors[0]["loc"][0])
    if errors[0]["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, sorted(expected), n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"{command} has {', '.join(sorted(expected))}"
        return _error_at(file, (name,), Diagnostic("not_an_option", option=name, command=command), hint, of="key")
    # A value with several possible types has an error for each; the deepest names the wrong item.
    location = max((_within(document, error["loc"]) for error in errors if error["loc"][0] == name), key=len)
    value = document
    for step in location:
        value = value[step]
    if name == "command":
        return _error_at(file, location, _unknown_command(value))
    code = "option_holds" if len(location) > 1 else "option_value"
    cause = Diagnostic(code, option=name, value=_brief(value), expected=expected[name])
    return _error_at(file, location, cause)


def _unknown_command(value: Any) -> Diagnostic:
    return Diagnostic("option_choice", option="command", value=value, known=list(COMMANDS))


def _within(document: Any, location: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the document's path for pydantic's location, which also names types."""
    path: list[Any] = []
    for step in location:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            continue
        path.append(step)
    return tuple(path)


def _error_at(
    file: Path,
    location: tuple[Any, ...],
    cause: Diagnostic,
    hint: str | None = None,
    *,
    of: Literal["key", "value"] = "value",
) -> UserError:
    """Build an error with line and column of a key or value."""
    mark = Mark((1, 1), (1, 1))
    with suppress(UserError):  # a record may be larger than a YAML file may be
        # JSON is YAML for positions.
        mark = load_yaml_with_marks(file)[1].get(location, mark)
    line, column = mark.key if of == "key" else mark.value
    return UserError("at_position", path=file, line=line, column=column, cause=cause, hint=hint)


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _of_record(record: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the request of a run from its `run.json`, or raise UserError."""
    config, execution, arguments = record["config"], record.get("how") or {}, record.get("arguments") or {}
    typed = config.get("codecs") or {}
    systems = [f"{name}={typed[name]}" if name in typed else name for name in config.get("systems") or []]
    command = _VERBS.get(config.get("command", ""), config.get("command"))
    if config.get("data") == "samples" and command != "run":
        raise UserError("samples_of_python", path=file)
    pick = lambda *keys: {key: config.get(key) for key in keys}  # noqa: E731
    request: dict[str, Any] = {"command": command, "set": config.get("options") or None}
    request |= pick("data", "seed", "limit", "shard")
    request |= {key: execution.get(key) for key in ("device", "batch_s", "time_limit_s", "cache", "save_audio")}
    if command == "run":
        # A user's own model or benchmark has the typed path, which the name does not contain.
        single = {key: only for key in ("benchmark", "model") if len(only := names(arguments.get(key) or "")) == 1}
        request |= {"benchmark": single.get("benchmark", [config.get("benchmark")])[0], "data": config.get("mirror")}
        request |= {"by": record.get("by"), **pick("judge", "repeats", "prompts", "choices")}
        model = single.get("model", [config.get("asked", config.get("model"))])[0]
        request |= {"model": model} if "model" in config else {"codec": systems}
    elif command == "score":
        request |= {"by": record.get("by"), **pick("generated", "allow_same", "metrics", "trials")}
    elif command == "profile":
        settings = execution.get("settings") or {}
        request |= {"codec": systems, "metrics": config.get("metrics") or "none", **pick("anchor", "alignments")}
        request |= {key: settings.get(key) for key in ("clip_s", "reencodings", "threads")}
        request |= {"time_limit": settings.get("time_limit_s")}
    else:
        request |= {"codec": systems, "by": record.get("by"), "check": execution.get("check")}
        request |= pick("metrics", "trials")
    # The other options, as typed; `metrics` includes those of the preset.
    schema = next((request_type for name, request_type in REQUESTS.items() if name == command), CommandOptions)
    others = {
        name: arguments.get(name)
        for name, one in options_of(schema).items()
        if one.of in ("verb", "terms", "settings") and name != "preset"
    }
    request = {**others, **{key: value for key, value in request.items() if value is not None}}
    return {key: value for key, value in request.items() if value is not None}
