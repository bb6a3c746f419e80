"""What a model of one's own prints stands beside the results, and not in them."""

import json

MODEL = """\
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Talks(Model):
    info = ModelInfo("talks", inputs=("text",))
    identity = property(lambda self: {"version": 1})

    async def ask(self, request):
        print("loading shards")
        return Response(text="four")
"""
BENCHMARK = """\
version: 1
title: Sums
summary: What a sum is.
category: Sums
kind: qa
language: en
data: {path: rows.jsonl, columns: {question: q, reference: a}}
prompt: {messages: [{content: ["{{ question }}"]}]}
metrics: ["accuracy[exact]"]
primary: accuracy[exact]
"""


def test_what_a_model_prints_is_not_in_the_json(cli, tmp_path):
    folder = tmp_path / "sums"
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(BENCHMARK)
    (folder / "README.md").write_text("Sums.\n")
    (folder / "rows.jsonl").write_text('{"q": "Two and two?", "a": "four"}\n')
    (tmp_path / "talks.py").write_text(MODEL)
    code, out, err = cli("run", "./sums", "--model", "./talks.py:Talks", "--out", "r", "--json")
    assert code == 0 and "loading shards" in err
    assert json.loads(out)["benchmarks"][0]["metrics"]["accuracy[exact]"]["value"] == 1.0
