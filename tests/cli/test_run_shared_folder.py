"""A run into a folder with other runs prints its own benchmarks, and one line about the others."""

from codec_bench import run_benchmark
from codec_bench.cli.run import print_outcome

DEFINITION = """\
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
MODEL = """\
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response
class Parisian(Model):
    info = ModelInfo("parisian")
    identity = {"knows": "Paris"}
    async def ask(self, request):
        return Response(text="Paris")
"""


def test_a_second_benchmark_is_printed_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parisian.py").write_text(MODEL)
    for name in ("northern", "southern"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.jsonl").write_text('{"id": "a", "q": "Of France?", "right": "Paris"}\n')
        (tmp_path / name / "benchmark.yaml").write_text(DEFINITION)
        outcome = run_benchmark(benchmark=f"./{name}", model="./parisian.py:Parisian", out="runs")
        capsys.readouterr()
        print_outcome(outcome, False, broken_down=False)
    printed = capsys.readouterr()
    assert "southern" in printed.out and "northern" not in printed.out + printed.err
    assert printed.err.count("1 other run") == 1
    print_outcome(outcome, True, broken_down=False)
    assert "northern" in capsys.readouterr().out  # as JSON, the overview of the folder
