"""Rows of a benchmark that are one question under several ids: noted, and one unit of the interval."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
import soundfile

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
def send(command, tmp_path):
    """Runs forty rows, and gives what the terminal says and the summary."""

    def ask(rows, sounds=None):
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        more = sounds or [{}] * len(rows)
        lines = [json.dumps({"id": f"r{n}", "q": q, "right": right, **more[n]}) for n, (q, right) in enumerate(rows)]
        (folder / "rows.jsonl").write_text("\n".join(lines))
        (folder / "benchmark.yaml").write_text(DEFINITION)
        (folder / "README.md").write_text("Numbers.")
        (tmp_path / "odd.py").write_text(MODEL)
        code, out, err = command("run", "./mine", "--model", "./odd.py:Odd", "--out", "out")
        assert code in (0, 3), err  # 3: some questions failed
        with closing(open_run(tmp_path / "out" / "mine" / "odd")) as run:
            return " ".join(out.split()), summarise(run).systems["odd"].metrics["accuracy[exact]"]

    return ask


def test_five_questions_under_forty_ids_are_five_units(send):
    out, entry = send([(str(n % 5), "1") for n in range(40)])
    assert (entry.n, entry.value, entry.units) == (40, 0.4, 5)
    assert "all 40 items repeat a question" in out and "(5 different questions)" in out


def test_the_same_question_with_another_answer_is_another_one(send):
    out, entry = send([(str(n), "1") for n in range(20)] + [(str(n), "0") for n in range(20)])
    assert (entry.n, entry.units) == (40, 40) and "repeat a question" not in out


OUTPUT = """
version: 1
title: T
summary: S.
category: QA
kind: qa
language: en
licence: null
data: {path: rows.jsonl, id: id, size: 40, columns: {audio: heard, other_audio: then, question: q, reference: right}}
prompt: {messages: [{content: [PARTS"{{ question }}"]}]}
metrics: ["accuracy[exact]"]
primary: accuracy[exact]
"""


@pytest.fixture
def output(send, tmp_path, monkeypatch):
    """As `requests`, of rows with the numbers of two sounds, of which the model hears those that `parts` names."""

    def ask(rows, parts):
        folder = tmp_path / "mine"
        folder.mkdir()
        for n in range(3):
            soundfile.write(folder / f"{n}.wav", np.full(4_000, 0.1 * (n + 1)), 16_000)
        named = "".join(f"{{audio: {item}}}, " for item in parts)
        name = lambda number: None if number is None else f"{number}.wav"  # noqa: E731
        monkeypatch.setitem(globals(), "DEFINITION", OUTPUT.replace("PARTS", named))
        return send([("1", "1")] * len(rows), [{"heard": name(one), "then": name(other)} for one, other in rows])

    return ask


def test_a_question_about_the_same_sound_is_one_unit(output):
    out, entry = output([(n % 2, n % 2) for n in range(40)], ["audio"])
    assert (entry.n, entry.units) == (40, 2) and "(2 different questions)" in out


def test_questions_with_the_same_first_sound_of_two_repeat_none(output):
    # They differ by the second sound, which the record does not name.
    out, entry = output([(0, n % 3) for n in range(40)], ["audio", "other_audio"])
    assert (entry.n, entry.units) == (40, 40) and "repeat a question" not in out


def test_questions_without_their_sound_repeat_none(output):
    out, entry = output([(n % 2, 0) for n in range(4)] + [(None, 0)] * 36, ["audio"])
    assert "4 of 40 items repeat a question" in out and "(2 different questions)" in out
    assert (entry.n, entry.units) == (4, 2)


def test_questions_that_lack_a_second_sound_repeat_none(output):
    # Without the second audio no request was sent, and the record names the first.
    out, entry = output([(0, n) for n in range(3)] + [(0, None)] * 37, ["audio", "other_audio"])
    assert "repeat a question" not in out and entry.units == 3
