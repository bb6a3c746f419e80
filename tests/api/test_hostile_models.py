"""A model of one's own that changes its process changes nothing of the run: other models' rows and its own marks."""

from __future__ import annotations

import json
import os
from contextlib import closing

import numpy as np
import pytest
import yaml

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.benchmark.run_request import run_folder
from codec_bench.report.open_run import open_run

MODEL = """
import json, locale, os, sys, warnings
import numpy as np
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Right(Model):
    def __init__(self):
        self.info = ModelInfo(type(self).__name__.lower(), inputs=("text",))

    @property
    def identity(self):
        return {"version": 1}

    async def ask(self, request):
        self.harm()
        return Response(text=request.messages[-1].content[-1].rpartition("|")[2].strip())

    def harm(self):
        pass

class Forks(Right):
    def harm(self):
        os.fork()

class Patches(Right):
    def harm(self):
        np.mean = np.sum = json.dumps = json.loads = None
        sys.path.clear()
        os.environ.clear()
        os.chdir("/")
        warnings.simplefilter("error")
        np.seterr(all="raise")
        locale.setlocale(locale.LC_ALL, "C")

class Closes(Right):
    def harm(self):
        os.closerange(3, 4096)

class Ends(Right):
    def harm(self):
        os._exit(5)

class EndsOnce(Right):
    async def ask(self, request):
        if request.id == "a2":
            os._exit(5)
        return await super().ask(request)

class Exits(Right):
    def harm(self):
        sys.exit(5)

class StaysDown(Ends):
    async def start(self):
        with open(__file__ + ".starts", "a") as file:
            file.write("x")
        if os.path.getsize(__file__ + ".starts") > 1:
            os._exit(5)
"""
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["accuracy[exact]"],
    "primary": "accuracy[exact]",
}  # fmt: skip
RIGHT = ("Forks", "Patches")
FAILS = {"Closes": "its pipe", "Ends": "exit code 5", "Exits": "SystemExit"}


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """Asks models in one run; returns (status, reason, value) of each answer, by model."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models.py").write_text(MODEL)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(DEFINITION))
    rows = [{"id": f"a{n}", "q": f"say | it is {n}", "right": f"it is {n}"} for n in range(6)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(*models):
        names = [f"{tmp_path / 'models.py'}:{model}" for model in models]
        outcome = run_benchmark(benchmark=str(folder), model=names, out=tmp_path / "out", page=False, workers=1)
        for done in outcome.runs.values():
            done.close()
        by_name = {}
        for model in models:
            with closing(open_run(run_folder(tmp_path / "out", "mine", model.lower()))) as record:
                by_name[model] = [(row.status, row.reason, row.value) for row in record.rows()]
        return by_name

    return run


def test_models_that_change_their_process_change_no_other_row(marks):
    before = os.getcwd(), dict(os.environ), np.mean, json.dumps
    result = marks(*RIGHT, *FAILS, "EndsOnce", "Right")
    assert (os.getcwd(), dict(os.environ), np.mean, json.dumps) == before
    right = [("ok", None, 1.0)] * 6
    for name in (*RIGHT, "Right"):
        assert result[name] == right, name
    for name, says in FAILS.items():
        assert {status for status, _, _ in result[name]} == {"failed"}, name
        assert all(says in reason for _, reason, _ in result[name]), result[name]
    ended = [row for row in result["EndsOnce"] if row[0] == "failed"]
    assert len(ended) == 1 and "exit code 5" in ended[0][1] and result["EndsOnce"].count(right[0]) == 5


def test_a_model_that_cannot_be_started_again_is_abandoned(marks, tmp_path):
    result = marks("StaysDown")["StaysDown"]
    assert [status for status, _, _ in result] == ["failed"] * 6
    assert (tmp_path / "models.py.starts").read_text() == "x" * 3
