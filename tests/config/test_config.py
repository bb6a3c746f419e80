from __future__ import annotations

import math
import random
from importlib.resources import files as files_of
from typing import Annotated

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field
from refusals import refuses

from codec_bench.config import config_names, fit, load_yaml, parse_value, read_config
from codec_bench.config.loading import parse_yaml
from codec_bench.messages.errors import UnknownName, UserError


def written(tmp_path, text, name="file.yaml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_document_is_plain_values(tmp_path):
    path = written(tmp_path, "a: 1\nb: [x, 2.5, null, true]\nc: {d: 'é'}\n")
    assert load_yaml(path) == {"a": 1, "b": ["x", 2.5, None, True], "c": {"d": "é"}}
    assert load_yaml(str(path)) == load_yaml(path)


def test_an_empty_file_is_none(tmp_path):
    assert load_yaml(written(tmp_path, "")) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: 1\nb: 2\n\tc: 3\n", 3),
        ("a: 1\nb: 2\na: 3\n", 3),
        ("a:\n  x: 1\n  y: 2\n  x: 3\n", 4),
        ("a: 1\nb: !!python/object/apply:os.system ['echo hello']\n", 2),
        ("a: *nowhere\n", 1),
    ],
)
def test_broken_yaml_names_file_and_line(tmp_path, text, line):
    path = written(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_yaml(path)
    assert str(path) in str(caught.value)
    assert f"line {line}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: !!bool x\n", "line 1, column 4: the tag"),
        ("a: 1\nb: !!timestamp x\n", "line 2, column 4: the tag"),
        ("a: !!int ''\n", "the tag"),
        ("a: !mine {b: 1}\n", "the tag"),
        ("a: ! x\n", "the tag"),
        ("a: " + "[" * 2000, "more than 100 deep"),
        ("[" * 2000 + "]" * 2000, "more than 100 deep"),
        ("- " * 2000 + "x\n", "more than 100 deep"),
        ("a: 2026-13-01\n", "line 1, column 4: '2026-13-01' is no value"),
        ("a: 0x_\n", "column 4"),
        ("a: " + "9" * 5000 + "\n", "column 4"),
        ("a: &a [*a]\n", "holds itself"),
        ("a: 1\nb: x\x07y\n", "line 2, column 5: the character U+0007"),
        ("x: &x [a,a,a,a,a,a,a,a,a,a]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n"
            for a, b in zip("xabcdef", "abcdefg")),
         "more than 100,000 values"),
        ("? [a]\n: 1\n", "unhashable"),
        ("<<: 5\n", "expected a mapping"),
        ("a" * (1 << 20) + "b: 1\n", "a YAML file may have"),
    ],
)  # fmt: skip
def test_hostile_yaml_is_refused_in_one_sentence(tmp_path, text, says):
    with pytest.raises(UserError) as caught:
        load_yaml(written(tmp_path, text))
    assert says in caught.value.message and len(caught.value.message) < 600


@pytest.mark.parametrize(
    "text", ["!!bool y", "!!timestamp x", "!!int ''", "[" * 2000, "&a [*a]", "9" * 5000, "\x00", "2026-13-01"]
)
def test_hostile_values_on_the_command_line_stay_text(text):
    assert parse_value(text) == text


def test_nothing_in_a_file_is_run(tmp_path):
    target = tmp_path / "made"
    path = written(
        tmp_path, f"!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{target}']]"
    )
    with pytest.raises(UserError):
        load_yaml(path)
    assert not target.exists()


def test_a_merged_key_may_be_overridden(tmp_path):
    path = written(tmp_path, "base: &base {a: 1, b: 2}\nmine: {<<: *base, a: 3}\n")
    assert load_yaml(path)["mine"] == {"a": 3, "b": 2}


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"a: \x07\n", b"a: 2026-13-45\n"])
def test_what_is_not_yaml_names_the_file(tmp_path, text):
    path = written(tmp_path, text)
    with refuses("at_position|line_not_utf8_text|yaml_character", path="file.yaml"):
        load_yaml(path)


def test_a_missing_file_is_named(tmp_path):
    with refuses("no_file", path="nope.yaml"):
        load_yaml(tmp_path / "nope.yaml")


def test_every_config_in_the_package_can_be_read():
    assert "opus" in config_names("codec")
    for kind in ("codec", "preset"):
        for name in config_names(kind):
            assert read_config(kind, name)["version"] == 1, f"{kind}/{name}"


def test_an_unknown_config_suggests_the_nearest():
    with refuses("unknown_name", hint="did you mean opus"):
        read_config("codec", "opuss")
    with pytest.raises(UnknownName):
        read_config("codec", "../codec/opus")
    assert config_names("no-such-kind") == []


class Schema(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    sizes: list[int]


def test_a_document_that_does_not_fit_names_file_and_field():
    assert fit({"name": "x", "sizes": [1]}, Schema, source="here.yaml").sizes == [1]
    with pytest.raises(UserError) as caught:
        fit({"name": "x", "sizes": [1, "two"], "nmae": 3}, Schema, source="here.yaml")
    for item in ("here.yaml", "sizes.1", "nmae"):
        assert item in str(caught.value)


def test_a_list_of_wrong_entries_is_not_called_too_short():
    class Column(BaseModel):
        name: str

    class Table(BaseModel):
        columns: Annotated[tuple[Column, ...], Field(min_length=1)]

    with pytest.raises(UserError) as caught:
        fit({"columns": [{}]}, Table, source="here.yaml")
    assert str(caught.value).split("\n")[0] == "'here.yaml' does not fit: the field 'columns.0.name' is missing"
    with refuses("does_not_fit", mistakes={"code": "wrong_field", "name": "columns"}):
        fit({"columns": []}, Table, source="here.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6", 6), ("1.5", 1.5), ("true", True), ("null", None), ("./a.pt", "./a.pt"), ("12e", "12e"), ("", None),
        ("[1, 2]", [1, 2]), ('["a[b]", c]', ["a[b]", "c"]), ("[2026-01-01]", "[2026-01-01]"), ("a: b", "a: b"),
        ("C:\\x: y", "C:\\x: y"), ("2026-01-01", "2026-01-01"), ("@x", "@x"), ("[", "["),
        ("{temperature: 0, stop: [a, b]}", {"temperature": 0, "stop": ["a", "b"]}), ("{}", {}),
        ('{"a": {"b": null}}', {"a": {"b": None}}),
        ("{2: 3}", "{2: 3}"), ("{a: 2026-01-01}", "{a: 2026-01-01}"), ("{{ text }}", "{{ text }}"), ("{a", "{a"),
        ("{a: 1, a: 2}", "{a: 1, a: 2}"),
    ],
)  # fmt: skip
def test_a_value_from_the_command_line(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_infinity_is_a_number():
    assert math.isinf(parse_value(".inf"))


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without its parser in C")
def test_both_parsers_read_a_file_alike(monkeypatch):
    files = [file for file in (files_of("codec_bench") / "configs" / "weights").iterdir() if file.suffix == ".yaml"]
    texts = [file.read_text("utf-8") for file in files[:25]] + [
        "a: [1, .5, 1e3, 0x1f, yes, ~]",
        "a: &x {b: 1}\nc: {<<: *x}",
        "é: “x”\n#\nb: |\n  1\n",
    ]
    rng = random.Random(0)
    for text in texts[:25]:
        position, more = rng.randrange(len(text)), rng.choice(":-?{}[],#&*!|>'\"%@ \n9~")
        texts.append(text[:position] + more + text[position + rng.randint(0, 3) :])

    def read():
        for text in texts:
            try:
                yield load(text)
            except UserError:
                yield None

    def load(text):
        document, node = parse_yaml(text, "x")
        return document, node.start_mark.line, [(key.start_mark.line, key.start_mark.column) for key, _ in node.value]

    fast = list(read())
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    slow = list(read())
    assert sum(one is not None for one in slow) > 30
    assert all(one == other for one, other in zip(fast, slow) if other is not None)
