"""The file that a benchmark's own service scores: complete, in the order of the data, and without a number of ours."""

from __future__ import annotations

import json

import miniature
import pytest
from refusals import Containing, refuses

from codec_bench.api.export import export
from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.benchmark import load_benchmark

MODEL = """
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Speaker(Model):
    info = ModelInfo("speaker", reads="messages")
    identity = {"model": "speaker"}

    def __init__(self, info=None, down=""):
        self.down = down

    async def ask(self, request):
        if request.id == self.down:
            return Response(status="failed", reason="the line was down")
        return Response(text=f"It is Two violins, says {request.id}.", status="ok")
"""


def send(tmp_path, monkeypatch, *, size=6, name="mmau-test", down="", **more):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    mirror = miniature.build(name, tmp_path / "mirror")
    (tmp_path / "model.py").write_text(MODEL)
    model = f"{tmp_path / 'model.py'}:Speaker"
    outcome = run_benchmark(
        benchmark=name, model=model, data=mirror, out=tmp_path / "out", page=False, cache=False, workers=1,
        options={model: {"down": down}, name: {"data.size": size}}, **more,
    )  # fmt: skip
    return outcome.runs[name, "speaker"]


def test_the_file_is_complete_and_in_order(tmp_path, monkeypatch):
    run = send(tmp_path, monkeypatch)
    scores = list(run.scores("speaker", "withheld"))
    assert {(s.value, s.status) for s in scores} <= {(None, "refused"), (None, "failed")}
    assert next(s.reason.code for s in scores if s.status == "refused") == "answers_not_published"
    export(run, form="submission", out=tmp_path / "submission.json")
    entries = json.loads((tmp_path / "submission.json").read_text())
    ids = [question.id for question in load_benchmark("mmau-test").questions(mirror=tmp_path / "mirror")]
    assert [entry["id"] for entry in entries] == ids == [f"row-{index}" for index in range(6)]
    first = entries[0]
    # The miniature has no column `split`; a field without a value is omitted.
    details = "id question choices dataset task category sub-category difficulty audio_id model_prediction"
    assert list(first) == details.split()
    assert first["model_prediction"] == "It is Two violins, says row-0."
    assert first["audio_id"] == "./test-audios/row-0.wav" and first["choices"] == list(miniature.OPTIONS)
    # The fifth row has no sound, so that nothing could be asked: its answer is empty, and the file is complete all the
    # same.
    assert [entry["model_prediction"] == "" for entry in entries] == [index == miniature.NO_SOUND for index in range(6)]


def test_a_part_of_the_questions_and_a_failed_answer_are_no_file(tmp_path, monkeypatch):
    run = send(tmp_path, monkeypatch, size=9000)
    with refuses("submission_incomplete", answered=6, questions=9000):
        export(run, form="submission")
    (tmp_path / "again").mkdir()
    run = send(tmp_path / "again", monkeypatch, down="row-2")
    with refuses("submission_failed", failed=1, questions=6, id="row-2", reason=Containing("the line was down")):
        export(run, form="submission")


def test_a_benchmark_with_published_answers_has_no_such_file(tmp_path, monkeypatch):
    run = send(tmp_path, monkeypatch, name="mmar")
    with refuses("no_submission", benchmark="mmar"):
        export(run, form="submission")
    with refuses("option_of_format"):
        export(run, form="submission", metric="withheld")
