"""Rows of a benchmark that are one question under several ids: said, and one unit of the interval."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from codec_bench import open_run
from codec_bench.stats.summary import summarise

DEFINITION = """
version: 1
title: T
summary: S.
category: QA
kind: qa
language: en
licence: null
data: {path: rows.jsonl, id: id, size: 40, columns: {question: q, reference: right}}
prompt: {messages: [{content: ["{{ question }}"]}]}
metrics: ["accuracy[exact]"]
primary: accuracy[exact]
"""
MODEL = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Odd(Model):
    info = ModelInfo("odd")
    identity = {"odd": 1}

    async def ask(self, request):
        return Response(text=str(int(request.messages[-1].content[-1]) % 2))
"""


@pytest.fixture
def asked(command, tmp_path):
    """Runs forty rows, and gives what the terminal says and the summary."""

    def ask(rows):
        folder = tmp_path / "mine"
        folder.mkdir()
        lines = [json.dumps({"id": f"r{n}", "q": q, "right": right}) for n, (q, right) in enumerate(rows)]
        (folder / "rows.jsonl").write_text("\n".join(lines))
        (folder / "benchmark.yaml").write_text(DEFINITION)
        (folder / "README.md").write_text("Numbers.")
        (tmp_path / "odd.py").write_text(MODEL)
        code, out, err = command("run", "./mine", "--model", "./odd.py:Odd", "--out", "out")
        assert code == 0, err
        with closing(open_run(tmp_path / "out" / "mine" / "odd")) as run:
            return " ".join(out.split()), summarise(run).systems["odd"].metrics["accuracy[exact]"]

    return ask


def test_five_questions_under_forty_ids_are_five_units(asked):
    out, entry = asked([(str(n % 5), "1") for n in range(40)])
    assert (entry.n, entry.value, entry.units) == (40, 0.4, 5)
    assert "all 40 items ask what another one asks" in out and "(different questions: 5)" in out


def test_the_same_question_with_another_answer_is_another_one(asked):
    out, entry = asked([(str(n), "1") for n in range(20)] + [(str(n), "0") for n in range(20)])
    assert (entry.n, entry.units) == (40, 40) and "another one asks" not in out
