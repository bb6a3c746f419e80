"""Mistakes that a run would meet later, one by one; each is found by `validate`, at its file and line, and nothing else
is.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from codec_bench.benchmark.definition.validate import validate_benchmark
from codec_bench.benchmark.judge.metric import check_rating

DEFINITION = {
    "version": 1, "name": "mine", "title": "Mine", "summary": "A set of my own.", "category": "QA",
    "kind": "understanding",
    "language": "en", "licence": None,
    "data": {"path": "rows.jsonl", "columns": {"audio": "audio", "question": "question", "choices": "choices",
        "reference": "answer"}},
    "prompt": {"messages": [{"role": "user", "content": [{"audio": "audio"}, "{{ question }}"]}]},
    "postprocess": ["option-letter"], "metrics": ["accuracy[choice]"], "primary": "accuracy[choice]",
}  # fmt: skip
ROW = {"audio": "a.wav", "question": "What is it?", "choices": ["dog", "cat"], "answer": "cat"}
LABELS = ("happy", "sad")
RUBRIC = {
    "version": 1, "summary": "Marks answers.", "prompt": "Rate {{ answer }} from 1 to 5 as [[3]].", "reply": "rating",
    "range": [1, 5],
}  # fmt: skip


def build(folder: Path, change=None, rows=None, text=None, rubric=None) -> str:
    definition = json.loads(json.dumps(DEFINITION))
    rows = [dict(ROW) for _ in range(6)] if rows is None else rows
    if change is not None:
        change(definition, rows)
    if rubric is not None:
        (folder / "mark.yaml").write_text(yaml.safe_dump({**RUBRIC, **rubric}))
        definition |= {"metrics": ["rating[./mark.yaml]"], "primary": "rating[./mark.yaml]", "postprocess": []}
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(definition, sort_keys=False))
    (folder / "README.md").write_text("# mine\n")
    soundfile.write(folder / "a.wav", np.zeros(1600), 16_000)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n" if text is None else text)
    return str(folder)


def label_set(definition, rows):
    """Turns the benchmark into one of labels."""
    del definition["data"]["columns"]["choices"]
    definition |= {
        "fields": {"labels": list(LABELS)},
        "postprocess": ["label"],
        "metrics": ["accuracy[label]"],
        "primary": "accuracy[label]",
    }
    for number, row in enumerate(rows):
        del row["choices"]
        row["answer"] = LABELS[number % 2]


def labelled(act):
    def change(definition, rows):
        label_set(definition, rows)
        act(definition, rows)

    return change


def put(target, *path, value):
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value


def row(number, **cells):
    return lambda definition, rows: rows[number].update(cells)


def defined(*path, value):
    return lambda definition, rows: put(definition, *path, value=value)


# (mistake, what makes it, the file, its line: None for any)
PLANTED = [
    ("a prompt without the sound", defined("prompt", "messages",
        value=[{"role": "user", "content": ["{{ question }}"]}]), "benchmark.yaml", None),
    ("a prompt without the sound in a variant",
        defined("prompt", "variants", value={"a": {"messages": [{"role": "user", "content": ["{{ question }}"]}]}}),
        "benchmark.yaml", None),
    ("a named prompt without the sound", defined("prompt", value="spoken-question-text"), "benchmark.yaml", None),
    ("labels as one text", labelled(defined("fields", "labels", value="happy, sad")), "benchmark.yaml", None),
    ("labels that lack one", labelled(row(3, answer="angry")), "rows.jsonl", 4),
    ("labels that lack one in the last row", labelled(row(5, answer="Happy")), "rows.jsonl", 6),
    ("a label that never occurs", labelled(defined("fields", "labels", value=["happy", "sad", "angry"])),
        "benchmark.yaml", None),
    ("a label that is misspelled", labelled(defined("fields", "labels", value=["happy", "sda"])), "rows.jsonl", 2),
    ("a missing sound", row(2, audio="b.wav"), "rows.jsonl", 3),
    ("an empty sound", row(0, audio=""), "rows.jsonl", 1),
    ("no sound", row(4, audio=None), "rows.jsonl", 5),
    ("no question", row(4, question=None), "rows.jsonl", 5),
    ("an empty question", row(1, question="  "), "rows.jsonl", 2),
    ("no choices", row(1, choices=None), "rows.jsonl", 2),
    ("an empty list of choices", row(1, choices=[]), "rows.jsonl", 2),
    ("an empty choice", row(1, choices=["dog", ""]), "rows.jsonl", 2),
    ("an empty first choice", row(5, choices=["", "cat"]), "rows.jsonl", 6),
    ("an answer that is no choice", row(3, answer="bird"), "rows.jsonl", 4),
    ("an answer that is no letter of a choice", row(3, answer="C"), "rows.jsonl", 4),
    ("a broken line", lambda d, rows: rows.__setitem__(2, '{"audio": "a.wav", "question'), "rows.jsonl", 3),
    ("a line that is no object", lambda d, rows: rows.__setitem__(2, "[1, 2]"), "rows.jsonl", 3),
    ("a line that is a text", lambda d, rows: rows.__setitem__(0, "hello"), "rows.jsonl", 1),
    ("a column that is nowhere", defined("data", "columns", "question", value="quest"), "benchmark.yaml", None),
    ("a missing file", defined("data", "path", value="nowhere.jsonl"), "benchmark.yaml", None),
    ("a step that is none", defined("postprocess", value=["opton-letter"]), "benchmark.yaml", None),
    ("a rule that is none", defined("metrics", value=["accuracy[chioce]"]), "benchmark.yaml", None),
    ("a primary metric that is none", defined("primary", value="accuracy[exact]"), "benchmark.yaml", None),
    ("a name that the prompt reads", defined("prompt", "messages",
        value=[{"role": "user", "content": [{"audio": "audio"}, "{{ questoin }}"]}]), "benchmark.yaml", None),
    ("a prompt that calls", defined("prompt", "messages",
        value=[{"role": "user", "content": [{"audio": "audio"}, "{{ question.upper() }}"]}]), "benchmark.yaml", None),
    ("a sound that is no column", defined("prompt", "messages",
        value=[{"role": "user", "content": [{"audio": "sound"}]}]), "benchmark.yaml", None),
    ("a subset that is no column", defined("subsets", value={"kind": "sort"}), "benchmark.yaml", None),
    ("a field that is none", defined("metrcs", value=[]), "benchmark.yaml", None),
    ("a metric of sound", defined("metrics", value=["utmos"]), "benchmark.yaml", None),
    ("no labels", labelled(defined("fields", "labels", value=[])), "benchmark.yaml", None),
    ("no expected answer", row(1, answer=None), "rows.jsonl", 2),
    ("a choice twice", row(1, choices=["cat", "Cat"]), "rows.jsonl", 2),
    ("steps that read no expected answer", defined("postprocess", value=["number"]), "rows.jsonl", 1),
    ("letters for a rule of labels", labelled(defined("postprocess", value=["option-letter"])), "rows.jsonl", 1),
]  # fmt: skip


@pytest.mark.parametrize(("change", "file", "line"), [one[1:] for one in PLANTED], ids=[one[0] for one in PLANTED])
def test_a_planted_mistake_is_reported(tmp_path, change, file, line):
    result = validate_benchmark(build(tmp_path, change), check_rating)
    assert result
    places = {(Path(one.file).name, one.line) for one in result}
    if line is not None:
        assert (file, line) in places, [str(one) for one in result]
    else:
        assert file in {name for name, _ in places} and all(name == file for name, _ in places), [
            str(one) for one in result
        ]


@pytest.mark.parametrize(
    "rubric",
    [{"range": [10, 20]}, {"range": [0.1, 0.9]}, {"reply": "yes-no", "range": [1, 5]},
        {"reply": "letter", "range": [0, 4]},
     {"reply": "preferred", "range": [1, 5], "compares": True, "prompt": "{{ first }} {{ second }}"}, {"range": [5, 1]},
     {"prompt": "Rate it from 1 to 5.", "range": [1, 5]}],
)  # fmt: skip
def test_a_rubric_that_no_reply_can_meet_is_reported(tmp_path, rubric):
    assert validate_benchmark(build(tmp_path, rubric=rubric), check_rating)


@pytest.mark.parametrize("change", [None, label_set, row(1, answer="B"), row(2, choices=["(A) dog", "(B) cat"])])
def test_a_sound_definition_has_no_mistake(tmp_path, change):
    assert [str(one) for one in validate_benchmark(build(tmp_path, change), check_rating)] == []


def test_a_sound_rubric_has_no_mistake(tmp_path):
    assert [str(one) for one in validate_benchmark(build(tmp_path, rubric={}), check_rating)] == []


def test_all_rows_come_at_once_and_no_kind_hides_another(tmp_path):
    def change(definition, rows):
        rows += [{**ROW, "audio": "b.wav"} for _ in range(30)]
        rows[1]["answer"] = "bird"

    result = validate_benchmark(build(tmp_path, change), check_rating)
    assert len(result) == 20 + 1 + 1 and [
        one.message.parameters["count"] for one in result if one.message.code == "more_rows"
    ] == [10]
    assert {one.line for one in result} >= {2, *range(7, 27)}
