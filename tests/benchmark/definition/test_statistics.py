"""The numbers of a data set's table, and everything that is wrong in it, against a data set that was made wrong on
purpose.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile

from codec_bench.benchmark import load_benchmark
from codec_bench.benchmark.definition.statistics import data_statistics
from codec_bench.messages import read

ROWS = [
    {"audio": "1s.wav", "answer": "one"},
    {"audio": "3s.wav", "answer": "two", "choices": ["two", "one", " Two."]},
    {"audio": "empty.wav", "answer": "one"},
    {"audio": "nothing.wav", "answer": "one"},
    {"audio": "gone.wav", "answer": "three"},
    {"audio": "1s.wav", "answer": None},
]
DEFINITION = """
version: 1
name: mine
title: Mine
summary: Questions of the test.
category: QA
kind: understanding
data: {path: rows.jsonl, columns: {audio: audio, choices: choices, reference: answer}, size: 7}
prompt: {messages: [{content: [{audio: audio}, "Which is it?"]}]}
metrics: ["accuracy[choice]"]
primary: accuracy[choice]
"""


@pytest.fixture
def mine(tmp_path):
    for seconds in (1, 3):
        soundfile.write(tmp_path / f"{seconds}s.wav", np.zeros(seconds * 8000), 8000)
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 8000)
    (tmp_path / "nothing.wav").write_bytes(b"")
    lines = [json.dumps({"choices": ["one", "two"], **row}) for row in ROWS]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "benchmark.yaml").write_text(DEFINITION)
    return tmp_path


def test_lengths_are_counted_and_so_is_what_is_wrong(mine):
    result = data_statistics(load_benchmark(str(mine)))
    assert (result.questions, result.sounds, result.renamed) == (6, 3, 0)
    assert (result.mean_s, result.least_s, result.most_s) == (pytest.approx(5 / 3), 1.0, 3.0)
    assert result.hours == pytest.approx(5 / 3600)
    assert {one["code"]: one["questions"] for one in result.problems} == {
        "sound_without_samples": 1,
        "sound_empty": 1,
        "no_file": 1,
        "choice_repeated": 1,
        "answer_not_among_choices": 1,
        "answer_missing": 1,
    }
    assert all(one["message"] == str(read({"code": one["code"], **one["parameters"]})) for one in result.problems)


def test_a_data_set_without_a_sound_that_can_be_read(mine):
    (mine / "rows.jsonl").write_text(json.dumps({"audio": "gone.wav", "answer": "one", "choices": ["one"]}) + "\n")
    result = data_statistics(load_benchmark(str(mine)))
    assert (result.questions, result.sounds, result.hours, result.mean_s, result.most_s) == (1, 0, 0.0, None, None)
