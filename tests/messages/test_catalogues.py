"""Diagnostics: every code is in one catalogue, what is written is read back, and no text is compared."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
import re
import string
from pathlib import Path

import numpy as np
import pytest
import reworded_runs

import codec_bench
from codec_bench import messages
from codec_bench.messages import (
    VARIES,
    Diagnostic,
    as_reason,
    as_remark,
    catalogue,
    in_common,
    of_error,
    read,
    register,
    together,
)
from codec_bench.messages.errors import UserError

PACKAGE = Path(codec_bench.__file__).parent
SOURCES = "".join(path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py")))
MAKERS = {
    **{name: set() for name in re.findall(r"^class (\w+)\((?:User|Audio|Weights)Error\)", SOURCES, re.MULTILINE)},
    **{name: set() for name in ("UserError", "Diagnostic", "Note", "invalid_value")},
    "on_disk": {"cause"},
}
for own_constructor in ("UnknownName", "MissingExtra", "DeviceFull", "WeightsMissing", "BadItem", "NoReward"):
    MAKERS.pop(own_constructor, None)
EXCEPTION_ARGUMENTS = {"hint", "wait"}
"""Arguments of exceptions that are no parameters of the code."""
NESTED = Diagnostic(
    "feature_failed", feature="dnsmos", side="estimate", cause=Diagnostic("worker_died", stage="a", cause="9", times=2)
)


def uses():
    """Every place where a diagnostic is made: file, line, code, names of its parameters."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if any(f"{name}(" in text for name in MAKERS) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS and node.args:
                first = node.args[0]
                codes = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
                for code in codes:
                    if isinstance(code, ast.Constant):
                        yield path.name, node.lineno, code.value, {k.arg for k in node.keywords} | MAKERS[node.func.id]


def fields(sentence):
    """The parameters that a sentence shows, and those that it may leave out; not those of older records (`**`)."""
    if callable(sentence):
        fields_of = [p for p in inspect.signature(sentence).parameters.values() if p.kind is not p.VAR_KEYWORD]
        return {p.name for p in fields_of if p.default is p.empty}, {p.name for p in fields_of}
    shown = {name for _, name, _, _ in string.Formatter().parse(sentence) if name}
    return shown, shown


def test_every_code_that_is_used_is_in_a_catalogue_with_its_parameters():
    known, wrong = catalogue(), []
    for file, line, code, names in uses():
        if code not in known:
            wrong.append(f"{file}:{line}: {code}")
        elif None not in names:  # no `**`
            needed, accepted = fields(known[code].sentence)
            if not needed <= names - EXCEPTION_ARGUMENTS <= accepted:
                wrong.append(f"{file}:{line}: {code} takes {sorted(accepted)}, got {sorted(names)}")
    assert not wrong


def texts_of(value):
    """The literal texts of an expression, with `{}` for what an f-string fills in."""
    if isinstance(value, ast.IfExp):
        return [*texts_of(value.body), *texts_of(value.orelse)]
    if isinstance(value, ast.JoinedStr):
        return ["".join(one.value if isinstance(one, ast.Constant) else "{}" for one in value.values)]
    return [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) else []


def phrases_in(source):
    """Parameters of diagnostics and kinds of names that are English phrases: two words in lower case."""
    for node in ast.walk(ast.parse(source)):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        values = [k.value for k in node.keywords if k.arg not in EXCEPTION_ARGUMENTS] if name in MAKERS else []
        if name in ("UnknownName", "MissingExtra", "damaged"):
            values += [*node.args[: 1 + (name == "damaged")], *(k.value for k in node.keywords)]
        for text in (text for value in values for text in texts_of(value)):
            if re.search("[a-z]{2,} [a-z]{2,}", text):
                yield node.lineno, text


def test_no_parameter_is_an_english_phrase():
    phrases = [
        (path.name, *one) for path in sorted(PACKAGE.rglob("*.py")) for one in phrases_in(path.read_text("utf-8"))
    ]
    assert not phrases


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("UserError('a', kind='family of codecs', hint='leave it out')", ["family of codecs"]),
        ("Diagnostic('a', cause=f'the file {x} is cut' if x else 'c')", ["the file {} is cut"]),
        ("UnknownName('kind of rating', name, known)", ["kind of rating"]),
        ("damaged(path, 'it has no tables')", ["it has no tables"]),
        ("UserError('a', name='DNSMOS Pro', known=['x'])", []),
    ],
)
def test_a_phrase_is_recognised(source, texts):
    assert [text for _, text in phrases_in(source)] == texts


def test_every_module_is_a_catalogue_and_the_reworded_runs_change_each(monkeypatch):
    """Of sentences that `test_reworded` changes none is forgotten, of a new module neither."""
    rooms = {path.stem for path in (PACKAGE / "messages").glob("*.py")} - {"__init__", "errors"}
    before = catalogue()
    assert {entry.room for entry in before.values()} == rooms
    monkeypatch.setattr(messages, "_ENTRIES", dict(before))
    exec(reworded_runs.REWORDED, {})
    unchanged = {code for code, entry in catalogue().items() if entry.sentence is before[code].sentence}
    assert unchanged == {"error", "remark"}, "these two hold the messages of others"


def test_a_code_is_in_one_catalogue():
    with pytest.raises(ValueError, match="'clipped'"):
        register("elsewhere", {"info": {"clipped": "x"}})
    assert {entry.severity for entry in catalogue().values()} == {"info", "warning", "error"}


@pytest.mark.parametrize(
    "original", [Diagnostic("silent"), NESTED, together(Diagnostic("silent"), Diagnostic("clipped", samples=3))]
)
def test_what_is_written_is_read_back(original):
    for again in (
        read(json.loads(json.dumps(original.as_dict()))),
        pickle.loads(pickle.dumps(original)),
        copy.deepcopy(original),
    ):
        assert again == original and again.as_dict() == original.as_dict() and type(again) is Diagnostic
    assert type(str(original)) is str


def test_parameters_are_json_values():
    held = Diagnostic("empty_channels", heard=np.int64(1), channels=np.float32(2)).as_dict()
    assert json.loads(json.dumps(held)) == {"code": "empty_channels", "heard": 1, "channels": 2.0}
    assert Diagnostic("error", type="", message=Path("/x")).parameters["message"] == "/x"


def test_an_error_has_the_code_of_its_message():
    error = UserError("clipped", samples=3, hint="x")
    assert (error.code, pickle.loads(pickle.dumps(error)).code, UserError("a text").code) == (
        "clipped",
        "clipped",
        None,
    )


def test_names_are_replaced_in_texts_alone():
    renamed = Diagnostic("unreadable_file", path="folder/a", cause=Diagnostic("clipped", samples=3)).rename(
        "folder/a", "b"
    )
    assert renamed.as_dict() == {"code": "unreadable_file", "path": "b", "cause": {"code": "clipped", "samples": 3}}


def test_codes_and_parameters_are_compared_and_not_sentences():
    one, other = Diagnostic("remark", message="x"), Diagnostic("error", type="", message="x")
    assert str(one) == str(other) and one != other and len({one, other}) == 2
    assert Diagnostic("clipped", samples=1) != Diagnostic("clipped", samples=2)


@pytest.mark.parametrize("held", ["text", {}, {"code": 3}, None, ["silent"]])
def test_what_is_no_code_is_refused(held):
    with pytest.raises(ValueError, match="no code"):
        read(held)


@pytest.mark.parametrize(
    "held", [{"code": "from_later", "a": 1}, {"code": "clipped"}, {"code": "clipped", "else": "{x}"}]
)
def test_an_unknown_code_is_shown_as_it_is(held):
    shown = read(held)
    assert shown.code in str(shown) and shown.as_dict() == held and shown.severity in ("info", "warning", "error")


@pytest.mark.parametrize(
    ("held", "says"),
    [
        ({"code": "too_few_units", "units": 2, "needed": 3, "what": "a test"}, "a test needs at least 3"),
        ({"code": "expected_outside_choices", "answer": "cow"}, "'cow' is none of the choices"),
        ({"code": "reference_no_choice", "reference": "cow"}, "'cow' is none of the choices"),
        ({"code": "reference_outside_choices", "reference": "cow", "choices": ["a"]}, "none of the choices ['a']"),
        ({"code": "unexpected_layout", "message": "KeyError: a"}, "the expected layout (KeyError: a)"),
        ({"code": "takes_no_voice", "what": "voice", "cause": "has a voice to imitate"}, "the model takes no voice"),
        ({"code": "worker_died", "stage": "a", "cause": "killed by signal 9", "times": 1}, "(killed by signal 9)"),
    ],
)
def test_codes_of_older_records_have_their_sentences(held, says):
    assert says in str(read(held)) and read(held).as_dict() == held


def test_what_differs_is_left_open():
    originals = [Diagnostic("worker_died", stage="a", cause="9", times=n) for n in (1, 2)]
    common = in_common(originals)
    assert common.parameters == {"stage": "a", "cause": "9", "times": VARIES} and VARIES in str(common)
    assert in_common(originals[:1]) == originals[0]


def test_every_sentence_can_leave_its_numbers_open():
    for code, entry in catalogue().items():
        shown = read({"code": code, **dict.fromkeys(fields(entry.sentence)[1], VARIES)})
        assert code == "several" or not str(shown).startswith(f"{code} ("), code


def test_texts_of_others_keep_their_words():
    assert as_reason("the line is down").as_dict() == {"code": "error", "type": "", "message": "the line is down"}
    assert as_remark("odd").as_dict() == {"code": "remark", "message": "odd"} and as_reason(None) is None
    assert of_error(ValueError("a\n b")).as_dict() == {"code": "error", "type": "ValueError", "message": "a b"}
    assert of_error(UserError("silent")) == Diagnostic("silent")
