"""Shards of a benchmark's run, merged: the run of one machine, also by metrics that need all answers at once."""

from __future__ import annotations

import json

import pytest
import yaml
from refusals import Containing, refuses

from codec_bench import merge, run_benchmark
from codec_bench.benchmark.run_request import run_folder
from codec_bench.store.answers import exchanges

MODEL = '''
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Teller(Model):
    """Says what it is asked to say, and leaves out a word now and then."""

    info = ModelInfo("teller")
    identity = {"teller": 1}

    async def ask(self, request):
        words = request.messages[-1].content[-1].partition("|")[2].split()
        return Response(text=" ".join(words[len(request.id) % 2:]) if len(words) > 2 else None)
'''
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Sentences of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"text": "t", "reference": "t", "level": "level"}},
    "prompt": {"messages": [{"content": [{"wordings": ["Say |{{ text }}", "The words are |{{ text }}"]}]}]},
    "metrics": ["cider", "wer[answer]", "bleu[13a]"], "primary": "cider", "subsets": {"level": "level"},
}  # fmt: skip
WORDS = "a dog barks while two cars pass by and rain falls on the roof of an old house".split()


@pytest.fixture
def ask(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models.py").write_text(MODEL)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(DEFINITION))
    rows = [{"id": f"a{n * n}", "t": " ".join(WORDS[n % 7 : n % 7 + 2 + n % 5]), "level": n % 2} for n in range(24)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(out, **settings):
        outcome = run_benchmark(
            benchmark=str(folder), model=f"{tmp_path / 'models.py'}:Teller", out=tmp_path / out, workers=1, page=False,
            **settings
        )  # fmt: skip
        (done,) = outcome.runs.values()
        return done

    return run


def answers(run):
    return [(e.question, e.answer.text, e.answer.status, e.reading) for e in exchanges(run)]


@pytest.mark.parametrize("options", [{}, {"prompts": "each"}, {"limit": 15, "seed": 2}])
def test_the_merged_run_is_the_run_of_one_machine(ask, tmp_path, options):
    complete = ask("whole", **options)
    for k in (1, 2, 3):
        item = ask(f"parts/{k}", shard=f"{k}/3", **options)
        assert 0 < item.counts()["samples"] < complete.counts()["samples"]
    outcome = merge(parts=tmp_path / "parts", out=tmp_path / "merged", page=False)
    (merged,) = outcome.runs.values()
    assert merged.folder == run_folder(tmp_path / "merged", "mine", "teller")
    assert [row._asdict() for row in merged.rows()] == [row._asdict() for row in complete.rows()]
    assert answers(merged) == answers(complete)
    one, other = ({k: v for k, v in run.summary().items() if k != "answers"} for run in (merged, complete))
    assert one == other
    assert one["systems"]["teller"]["metrics"]["cider"]["value"] > 0
    assert merged.meta["fingerprint"] == complete.meta["fingerprint"]
    overview = json.loads((tmp_path / "merged" / "summary.json").read_text())
    assert [row["benchmark"] for row in overview["benchmarks"]] == ["mine"]


def test_asking_and_scoring_may_be_apart_and_the_scores_keep_the_shard(ask, tmp_path):
    for k in (1, 2):
        ask(f"parts/{k}", shard=(k, 2), phase="answers")
    with refuses("shards_incomplete", causes=Containing("is not finished")):
        merge(parts=tmp_path / "parts", out=tmp_path / "merged", page=False)
    ask("parts/1", phase="scores")
    ask("parts/2", phase="scores", shard="2/2")
    with refuses("other_settings", differences="shard was 1/2, now 2/2"):
        ask("parts/1", shard="2/2", rescore=True, phase="scores")
    complete = ask("whole")
    (merged,) = merge(
        parts=[tmp_path / "parts" / "1", tmp_path / "parts" / "2"], out=tmp_path / "merged", page=False
    ).runs.values()
    assert [row._asdict() for row in merged.rows()] == [row._asdict() for row in complete.rows()]


def test_on_the_command_line(ask, tmp_path, command):
    for k in (1, 2):
        typed = [
            "run",
            tmp_path / "mine",
            "--model",
            f"{tmp_path / 'models.py'}:Teller",
            "--out",
            tmp_path / "p" / str(k),
        ]
        code, _, text = command(*typed, "--shard", f"{k}/2", "--json")
        assert code == 3, text  # some questions have no answer
    code, printed, text = command("merge", tmp_path / "p", "--out", tmp_path / "m", "--json")
    assert code == 3 and "cider need" in text, text
    assert json.loads(printed)["benchmarks"][0]["model"] == "teller"
