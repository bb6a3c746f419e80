"""Parts of a run that hold no sample: they are not submitted, or they finish, and what is merged is the run of one
machine.
"""

from __future__ import annotations

import json
from pathlib import Path

from codec_bench import evaluate, merge, run_benchmark
from codec_bench.api.run_benchmark import run_codecs
from codec_bench.apps.cluster.slurm import read_submission, resume_submission
from codec_bench.data import open_source
from codec_bench.data.shard import place_of

MODEL = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Parisian(Model):
    info = ModelInfo("parisian")
    identity = {"knows": "Paris"}

    async def ask(self, request):
        return Response(text="Paris")
"""
QUESTIONS = """
version: 1
title: Capitals
summary: Which town it is.
category: QA
kind: qa
language: en
data: {path: rows.jsonl, id: id, columns: {question: q, reference: right}}
prompt: {messages: [{content: ["{{ question }}"]}]}
metrics: ["accuracy[exact]"]
primary: "accuracy[exact]"
"""
SOUNDS = """
version: 1
title: Clips
summary: Some clips.
category: Codec
kind: codec
language: en
data: {path: rows.jsonl, id: id, columns: {audio: sound, reference: text}}
metrics: [si_sdr]
primary: si_sdr
"""


def rows(run):
    return list(run.rows())


def test_a_part_without_a_sample_is_not_submitted(tmp_path, slurm, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed = {"codec": "g711-ulaw", "data": "embedded", "metrics": "si_sdr", "limit": 2}
    words = [f"--{name}={value}" for name, value in typed.items()]
    code, _, text = command("slurm", "eval", *words, "--out", "run", "--parts", "6")
    assert code == 0, text
    ids = [sample.id for sample in open_source("embedded", limit=2, seed=0)]
    held = sorted({place_of(id) % 6 + 1 for id in ids})
    assert f"submitted {len(held)} of 6 parts ({6 - len(held)} hold no sample)" in text
    assert read_submission(Path("run")).needed == held
    for number in held:
        evaluate(**typed, shard=(number, 6), out=f"run/parts/{number}", workers=1).close()
        Path(f"run/parts/{number}/part.ended").touch()
    assert resume_submission(Path("run")) is None
    merged = merge(parts="run/parts", out="run", page=False)
    assert rows(merged) == rows(evaluate(**typed, out="whole", workers=1, page=False))
    code, printed, text = command("progress", "run", "--json")
    assert [row["state"] for row in json.loads(printed)] == ["finished"] * len(held), text


def test_a_part_without_a_question_finishes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("parisian.py").write_text(MODEL)
    Path("capitals").mkdir()
    Path("capitals/benchmark.yaml").write_text(QUESTIONS)
    pairs = [("a", "Of France?", "Paris"), ("b", "Of Italy?", "Rome")]
    Path("capitals/rows.jsonl").write_text(
        "\n".join(json.dumps({"id": id, "q": question, "right": right}) for id, question, right in pairs)
    )
    requests = {"benchmark": "./capitals", "model": "./parisian.py:Parisian", "cache": False}
    for number in range(1, 5):
        run_benchmark(**requests, shard=(number, 4), out=f"run/parts/{number}")
    assert len(list(Path("run/parts").rglob("part.json"))) == 4
    (merged,) = merge(parts="run/parts", out="run", page=False).runs.values()
    (complete,) = run_benchmark(**requests, out="whole").runs.values()
    assert rows(merged) == rows(complete) and len(rows(complete)) == 2
    assert merged.summary()["systems"] == complete.summary()["systems"]


def test_a_part_of_several_benchmarks_may_be_empty_in_one_of_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = open_source("embedded")
    clips = [next(one for one in result if place_of(one.id) % 2 == index) for index in (0, 1)]
    for name, parameters in (("few", clips[:1]), ("more", clips)):
        Path(name).mkdir()
        Path(name, "benchmark.yaml").write_text(SOUNDS)
        Path(name, "rows.jsonl").write_text(
            "\n".join(json.dumps({"id": one.id, "sound": str(one.audio), "text": one.text or ""}) for one in parameters)
        )
    requests = {"benchmark": "./few,./more", "codec": "g711-ulaw", "workers": 1, "page": False}
    for number in (1, 2):
        run_codecs(**requests, shard=(number, 2), out=f"run/parts/{number}")
    assert len(list(Path("run/parts").rglob("part.json"))) == 3
    merged, complete = merge(parts="run/parts", out="run", page=False), run_codecs(**requests, out="whole")
    assert {key: rows(run) for key, run in merged.runs.items()} == {
        key: rows(run) for key, run in complete.runs.items()
    }
    assert len(complete.runs) == 2
