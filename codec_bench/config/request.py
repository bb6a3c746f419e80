"""What a command is asked for, read from a file: the options of `eval`, `score`, `run` or `profile`, or the `run.json` of a run.

Conventions
    A key is the long name of an option, with `_` for `-`. A value has the type of the option. What may be several names is
    a list or one text with commas. `set` is a mapping of names to options. Paths are read as on the command line: from the
    folder that the command is typed in.
    `run.json` is told from a file that a person wrote by its `config`.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codec_bench.config import Mark, load_yaml_with_marks
from codec_bench.errors import UserError

Command = Literal["eval", "score", "run", "profile"]
COMMANDS: tuple[Command, ...] = ("eval", "score", "run", "profile")

_Text = Annotated[str | None, Field(description="a text")]
_Whole = Annotated[int | None, Field(description="a whole number")]
_Number = Annotated[float | None, Field(description="a number")]
_Flag = Annotated[bool | None, Field(description="true or false")]
_Texts = Annotated[str | list[str] | None, Field(description="a text, or a list of texts")]
_Rows = Annotated[
    str | list[str] | dict[str, str] | None,
    Field(description="a text, a list of texts, or a mapping of the names of rows to texts"),
]
_Kept = Annotated[str | int | None, Field(description="all, none, or a whole number")]
_Settings = Annotated[
    dict[str, dict[str, Any]] | None, Field(description="a mapping of names to options, such as {dnsmos: {weights: DIR}}")
]  # fmt: skip


class _Request(BaseModel):
    """The options that all of these commands have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    command: Annotated[Command | None, Field(description=f"one of {', '.join(COMMANDS)}")] = None
    out: _Text = None
    device: _Text = None
    limit: _Whole = None
    seed: _Whole = None
    set: _Settings = None
    json_: Annotated[bool | None, Field(alias="json", description="true or false")] = None


class _Scoring(_Request):
    """The options of `eval` and `score`."""

    data: _Text = None
    metrics: _Texts = None
    preset: _Text = None
    shard: _Text = None
    workers: _Whole = None
    per_gpu: _Whole = None
    graphs: _Text = None
    batch_s: _Number = None
    cache: _Flag = None
    save_audio: _Kept = None
    by: _Texts = None
    retry_failed: _Flag = None
    time_limit_s: _Number = None
    timings: _Flag = None
    log: _Text = None
    executor: _Text = None
    ray_address: _Text = None
    shards: _Whole = None
    actors: _Whole = None
    cpus_per_actor: _Whole = None
    cpu_actors: _Whole = None


class EvalRequest(_Scoring):
    """The options of `eval`."""

    codec: _Rows = None
    check: _Flag = None


class ScoreRequest(_Scoring):
    """The options of `score`."""

    generated: _Rows = None
    allow_same: _Flag = None


class RunRequest(_Request):
    """The options of `run`."""

    benchmark: _Texts = None
    model: _Texts = None
    codec: _Rows = None
    suite: _Text = None
    phase: _Text = None
    judge: _Texts = None
    data: _Text = None
    workers: _Whole = None
    cache: _Flag = None
    save_audio: _Kept = None
    by: _Texts = None
    retry_failed: _Flag = None
    repeats: _Whole = None
    shard: _Text = None
    prompts: _Text = None
    choices: _Text = None
    rescore: _Flag = None
    wait: _Flag = None
    anyway: _Flag = None
    reuse_answers: _Flag = None
    max_cost_usd: _Number = None
    max_hours: _Number = None
    batch: _Flag = None
    log: _Text = None


class ProfileRequest(_Request):
    """The options of `profile`."""

    codec: _Rows = None
    data: _Text = None
    metrics: _Texts = None
    anchor: _Text = None
    alignments: _Text = None
    clip_s: _Number = None
    reencodings: _Whole = None
    threads: _Whole = None
    time_limit: _Number = None


REQUESTS: dict[Command, type[_Request]] = {
    "eval": EvalRequest,
    "score": ScoreRequest,
    "run": RunRequest,
    "profile": ProfileRequest,
}
_VERBS = {"evaluate": "eval"}
"""The names of commands in a record, where they differ from what is typed."""


def read_request(path: str | os.PathLike[str], command: Command | None = None) -> tuple[Command, dict[str, Any]]:
    """Reads what a command is asked for.

    Args:
        path: a YAML or JSON file with options, or the `run.json` of a run.
        command: the command that the file is for; None takes it from the file.

    Returns:
        The command, and its options by name, without those that are null.

    Raises:
        UserError: the file cannot be read, is for another command, or has an option that the command does not have or whose
            value has the wrong type; the message names file, line and column, and says what is expected.
    """
    file = Path(path)
    document = _document(file)
    if isinstance(document.get("config"), dict):
        document = _of_record(document, file)
    named = document.get("command")
    if command is None and named not in COMMANDS:
        raise _wrong(file, ("command",), f"'command' is {_brief(named)}; expected one of {', '.join(COMMANDS)}")
    if command is not None and named in COMMANDS and named != command:
        hint = f"codec-bench {named} --config {file}"
        raise _wrong(file, ("command",), f"this is a request for '{named}', and the command is '{command}'", hint)
    asked = next(name for name in COMMANDS if name == (command or named))
    schema = REQUESTS[asked]
    try:
        found = schema.model_validate(document)
    except ValidationError as error:
        raise _misfit(file, document, schema, asked, error.errors()) from error
    return asked, found.model_dump(by_alias=True, exclude_none=True, exclude={"command"})


def _document(file: Path) -> dict[str, Any]:
    if file.suffix == ".json" and file.is_file():
        try:
            document = json.loads(file.read_bytes())
        except json.JSONDecodeError as error:
            raise UserError(f"'{file}', line {error.lineno}, column {error.colno}: {error.msg}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"'{file}' cannot be read: {error}") from error
    else:
        document, _ = load_yaml_with_marks(file)
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise UserError(
            f"'{file}', line 1, column 1: expected a mapping of options to values, such as 'metrics: [stoi]'"
        )
    return document


def _misfit(file: Path, document: Any, schema: type[_Request], command: str, errors: Sequence[Any]) -> UserError:
    """The first thing that is wrong, in words."""
    name = str(errors[0]["loc"][0])
    if errors[0]["type"] == "extra_forbidden":
        known = sorted(_keys(schema))
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"{command} has {', '.join(known)}"
        return _wrong(file, (name,), f"'{name}' is no option of {command}", hint, of="key")
    # A value that may have several types has an error for each of them; the deepest names the item that is wrong.
    place = max((_within(document, error["loc"]) for error in errors if error["loc"][0] == name), key=len)
    value = document
    for part in place:
        value = value[part]
    what = f"'{name}' is {_brief(value)}" if len(place) == 1 else f"'{name}' holds {_brief(value)}"
    return _wrong(file, place, f"{what}; expected {_keys(schema)[name]}")


def _keys(schema: type[_Request]) -> dict[str, str]:
    """The keys that a file may have, each with what is expected."""
    return {field.alias or name: field.description or "" for name, field in schema.model_fields.items()}


def _within(document: Any, location: tuple[Any, ...]) -> tuple[Any, ...]:
    """The place in the document that pydantic's location names; it also names the types that it tried."""
    place: list[Any] = []
    for part in location:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            continue
        place.append(part)
    return tuple(place)


def _wrong(
    file: Path, place: tuple[Any, ...], message: str, hint: str | None = None, *, of: Literal["key", "value"] = "value"
) -> UserError:
    mark = Mark((1, 1), (1, 1))
    with suppress(UserError):  # a record may be larger than a YAML file may be
        # JSON is YAML as far as places are concerned.
        mark = load_yaml_with_marks(file)[1].get(place, mark)
    line, column = mark.key if of == "key" else mark.value
    return UserError(f"'{file}', line {line}, column {column}: {message}", hint=hint)


def _brief(value: Any) -> str:
    text = f"the text '{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _of_record(record: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The request that a run was made by, from its `run.json`.

    Raises:
        UserError: the run was given something that a file cannot name.
    """
    config, how = record["config"], record.get("how") or {}
    typed = config.get("codecs") or {}
    systems = [f"{name}={typed[name]}" if name in typed else name for name in config.get("systems") or []]
    command = _VERBS.get(config.get("command", ""), config.get("command"))
    if config.get("data") == "samples" and command != "run":
        raise UserError(f"the run of '{file}' was given its samples in Python, which a file cannot name")
    kept = {key: config.get(key) for key in ("data", "seed", "limit", "shard")}
    kept |= {key: how.get(key) for key in ("device", "batch_s", "time_limit_s", "cache", "save_audio")}
    request: dict[str, Any] = {**kept, "command": command, "set": config.get("options") or None}
    if command == "run":
        request |= {"data": config.get("mirror"), "benchmark": config.get("benchmark"), "judge": config.get("judge")}
        request |= {
            "repeats": config.get("repeats"),
            "prompts": config.get("prompts"),
            "choices": config.get("choices"),
        }
        request |= {"by": record.get("by")}
        request |= {"model": config.get("asked", config["model"])} if "model" in config else {"codec": systems}
    elif command == "score":
        request |= {
            "generated": config.get("generated"),
            "allow_same": config.get("allow_same"),
            "metrics": config.get("metrics"),
            "by": record.get("by"),
        }
    elif command == "profile":
        settings = how.get("settings") or {}
        request |= {"codec": systems, "metrics": config.get("metrics") or "none", "anchor": config.get("anchor")}
        request |= {"alignments": config.get("alignments")}
        request |= {key: settings.get(key) for key in ("clip_s", "reencodings", "threads")}
        request |= {"time_limit": settings.get("time_limit_s")}
    else:
        request |= {
            "codec": systems,
            "metrics": config.get("metrics"),
            "by": record.get("by"),
            "check": how.get("check"),
        }
    return {key: value for key, value in request.items() if value is not None}
