"""Several answers to each question, and runs that grow: more draws or a larger limit in the folder of a run."""

from __future__ import annotations

import json
import statistics
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from refusals import Containing, refuses

from codec_bench.api.compare import compare
from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.benchmark.run_request import run_folder
from codec_bench.messages.errors import UserError
from codec_bench.report.numbers import draw_notes
from codec_bench.report.open_run import open_run
from codec_bench.report.paper import summary_markdown
from codec_bench.stats.intervals import interval
from codec_bench.stats.paired import paired_test
from codec_bench.stats.summary_types import MetricSummary, Summary
from codec_bench.store.answers import exchanges

MODEL = '''
import numpy as np
from codec_bench.messages.errors import UserError
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response
from codec_bench.stats.summary_types import Summary


class Drawn(Model):
    """Answers as the request's seed says: right in three of five seeds."""

    def __init__(self, log, stop_after=0, outputs=("text",)):
        self.info = ModelInfo("drawn", outputs=tuple(outputs))
        self.log, self.left = log, stop_after or 10**9

    @property
    def identity(self):
        return {"drawn": 1}

    async def ask(self, request):
        if self.left == 0:
            raise UserError("the power is off")
        self.left -= 1
        seed = request.parameters.get("seed", 0)
        with open(self.log, "a") as file:
            file.write(f"{request.id}={seed}\\n")
        if "audio" in self.info.outputs:
            return Response(audio=Audio(np.full(160, seed / 2**32, np.float32), 16000))
        right = request.messages[-1].content[-1].rpartition("|")[2].strip()
        return Response(text=right if seed % 5 < 3 else "no idea")
'''
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right", "level": "level"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "parameters": {"temperature": 0.7},
    "metrics": ["accuracy[exact]", "bleu[13a]", "cider"], "primary": "accuracy[exact]", "subsets": {"level": "level"},
}  # fmt: skip
ROWS = [
    {"id": f"a{n}", "q": f"the number is | it is number {n}", "right": f"it is number {n}", "level": "ab"[n % 2]}
    for n in range(12)
]


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Runs with the test's model; returns the run's folder and (question, seed) of each request of this call."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models.py").write_text(MODEL)

    def run(out="out", rows=ROWS, model_options=(), definition=(), **settings):
        folder, log = tmp_path / "mine", tmp_path / "log"
        folder.mkdir(exist_ok=True)
        (folder / "benchmark.yaml").write_text(yaml.safe_dump({**DEFINITION, **dict(definition)}))
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        log.write_text("")
        model = f"{tmp_path / 'models.py'}:Drawn"
        options = {model: {"log": str(log), **dict(model_options)}}
        settings = {"page": False, "workers": 1, **settings}
        outcome = run_benchmark(benchmark=str(folder), model=model, out=tmp_path / out, options=options, **settings)
        for done in outcome.runs.values():
            done.close()
        requests = [tuple(line.rsplit("=", 1)) for line in log.read_text().splitlines()]
        return run_folder(Path(tmp_path / out), "mine", "drawn"), requests

    return run


def complete(folder):
    """Everything in a record that another run of the same request must have too."""
    with closing(open_run(folder)) as run:
        answers = [(e.question, e.answer.text, e.answer.status, e.reading) for e in exchanges(run)]
        return list(run.rows()), answers, run.summary()["systems"], run.meta["fingerprint"]


def entry(folder, metric="accuracy[exact]"):
    return json.loads((folder / "summary.json").read_text())["systems"]["drawn"]["metrics"][metric]


def test_each_draw_is_recorded_scored_and_summarised(ask):
    folder, requests = ask(repeats=3, page=True)
    assert [id for id, _ in requests[:4]] == ["a0", "a0 (draw 2)", "a0 (draw 3)", "a1"] and len(requests) == 36
    assert len({seed for _, seed in requests}) == 36, "each draw has a seed of its own"
    right = {id: int(seed) % 5 < 3 for id, seed in requests}
    by_question = [[right[id] for id, _ in requests[n : n + 3]] for n in range(0, 36, 3)]
    result = entry(folder)
    assert result["n"] == 36 and result["value"] == pytest.approx(statistics.fmean(right.values()))
    draws = result["draws"]
    values = [statistics.fmean(draw) for draw in zip(*by_question)]
    assert draws["values"] == pytest.approx(values) and draws["spread"] == pytest.approx(statistics.stdev(values))
    assert (draws["n"], draws["questions"]) == (3, 12)
    expected = {
        "all": [all(one) for one in by_question],
        "any": [any(one) for one in by_question],
        "majority": [sum(one) > 1 for one in by_question],
    }
    for rule, passed in expected.items():
        assert draws["passes"][rule]["value"] == pytest.approx(statistics.fmean(passed)), rule
        assert draws["passes"][rule]["ci95"] == pytest.approx(interval(passed).ends), "a share of questions"
    clusters = [n // 3 for n in range(36)]
    assert result["ci95"] == pytest.approx(interval(list(right.values()), clusters=clusters).ends)
    assert result["units"] == 12 and result["subsets"]["level"]["a"]["n"] == 18
    with closing(open_run(folder)) as run:
        rows = [row for row in run.rows() if row.metric == "accuracy[exact]"]
        summary = run.summary()
    assert [json.loads(row.extra) for row in rows[:2]] == [
        {"level": "a", "question": "a0", "draw": 0}, {"level": "a", "question": "a0", "draw": 1},
    ]  # fmt: skip
    (note,) = draw_notes([("drawn", "accuracy[exact]", MetricSummary.from_dict(result))])
    assert "over 3 answers to each of 12 questions" in note and "in most answers" in note
    assert "over 3 answers to each of 12 questions" in summary_markdown(Summary.from_dict(summary))
    assert note in (folder / "report.html").read_text("utf-8")


def test_runs_are_compared_over_questions(ask):
    """The draws of two runs are paired one by one, and a question is one unit, however many draws it has."""
    first, _ = ask(repeats=3)
    second, _ = ask(repeats=3, seed=1, out="second")
    (pair,) = compare(runs=[first, second], metrics="accuracy[exact]")
    (result,) = pair.comparisons
    assert (result.pairs, result.test.units) == (36, 12)
    values = []
    for folder in (first, second):
        with closing(open_run(folder)) as run:
            values.append([s.value for s in run.scores(metric="accuracy[exact]")])
    clusters = [n // 3 for n in range(36)]
    expected = paired_test(*values, clusters=clusters, bounds=(0, 1))
    assert (result.test.low, result.test.high) == pytest.approx((expected.low, expected.high))


def test_a_draw_is_a_set_of_its_own_for_metrics_of_whole_sets(ask, tmp_path):
    """CIDEr weighs words by the questions whose references have them: the first draw scores as
    a run without repeats.
    """
    drawn, first = ask(repeats=3)
    once, plain = ask(out="once")
    assert plain == [requests for requests in first if "draw" not in requests[0]]
    scores = []
    for folder in (drawn, once):
        with closing(open_run(folder)) as run:
            scores.append({s.id: s.value for s in run.scores() if s.metric == "cider" and "draw" not in s.id})
    assert scores[0] == scores[1] and len(set(scores[0].values())) > 1
    assert entry(drawn, "bleu[13a]")["draws"]["values"][0] == entry(once, "bleu[13a]")["value"]
    assert entry(drawn, "bleu[13a]")["draws"]["passes"] == {} and "draws" not in entry(once)


def test_the_benchmark_says_by_which_rules_and_from_which_value_an_answer_passes(ask):
    folder, _ = ask(repeats=2, definition={"passing": {"rules": "majority,all"}})
    assert list(entry(folder)["draws"]["passes"]) == ["majority", "all"]
    rated = {"primary": "bleu[13a]", "metrics": ["cider", "accuracy[exact]"], "passing": {"at": 1.0}}
    folder, _ = ask(out="rated", repeats=2, definition={**rated, "primary": "cider"})
    draws, right = entry(folder, "cider")["draws"], entry(folder)["draws"]
    assert {rule: one["value"] for rule, one in draws["passes"].items()} == {
        rule: one["value"] for rule, one in right["passes"].items()
    }


def test_a_run_that_was_stopped_goes_on_and_more_draws_ask_only_what_is_missing(ask, tmp_path):
    with pytest.raises(UserError, match="the power is off"):
        ask(repeats=2, model_options={"stop_after": 7})
    _, requests = ask(repeats=2)
    assert len(requests) == 24 - 7 and requests[0][0] == "a3 (draw 2)"
    folder, requests = ask(repeats=5)
    assert len(requests) == 36 and all("draw" in id for id, _ in requests) and requests[0][0] == "a0 (draw 3)"
    straight, _ = ask(repeats=5, out="straight")
    assert complete(folder) == complete(straight)
    with refuses("repeats_lowered", repeats=5, hint="--repeats 5"):
        ask(repeats=4)
    assert ask(repeats=5)[1] == []


@pytest.mark.parametrize("stop", [False, True])
def test_a_limit_can_be_raised_and_not_lowered(ask, stop):
    if stop:
        with pytest.raises(UserError, match="the power is off"):
            ask(limit=4, model_options={"stop_after": 2})
    _, first = ask(limit=4)
    folder, second = ask(limit=9, repeats=2)
    assert len(first) == 2 * (2 - stop) and len(second) == 18 - 4
    straight, _ = ask(limit=9, repeats=2, out="straight")
    assert complete(folder) == complete(straight)
    with refuses("limit_lowered", before=9, unit="question", limit=5, hint="--limit 9 or more"):
        ask(limit=5, repeats=2)
    with refuses("other_settings", differences="asked.seed was 0, now 1"):
        ask(limit=10, repeats=2, seed=1)
    folder, third = ask(repeats=2)
    assert len(third) == 24 - 18, "all questions hold every part"
    straight, _ = ask(repeats=2, out="all")
    assert complete(folder) == complete(straight)
    with refuses("limit_lowered", before=None, limit=11):
        ask(limit=11, repeats=2)
    assert complete(folder) == complete(straight), "what was refused left the run as it was"


def test_a_choice_that_holds_another_question_under_the_same_id_is_refused(ask):
    """Of two rows with one id the second is renamed, but a part that holds only the second
    does not know of the first.
    """
    rows = [{**row, "id": f"b{n // 2}"} for n, row in enumerate(ROWS)]
    folder, _ = ask(rows=rows, limit=2)
    before = complete(folder)
    with refuses("choice_cannot_grow", cause="choice_changes_question"):
        for limit in range(3, 13):
            ask(rows=rows, limit=limit)
            before = complete(folder)
    assert complete(folder) == before


def test_sounds_keep_their_files_when_a_run_grows(ask):
    spoken = {
        "wants": "audio",
        "kind": "generation",
        "metrics": ["dnsmos_ovrl"],
        "primary": "dnsmos_ovrl",
        "parameters": {},
    }
    more = {"definition": spoken, "model_options": {"outputs": ["audio"]}, "phase": "answers"}
    ask(limit=3, repeats=2, **more)
    folder, _ = ask(limit=6, repeats=3, **more)
    straight, seeds = ask(limit=6, repeats=3, out="straight", **more)
    received = []
    for index in (folder, straight):
        with closing(open_run(index)) as run:
            received.append({e.question.id: e.answer_path.read_bytes() for e in exchanges(run)})
    assert received[0] == received[1] and len(set(received[0].values())) > 6 and len(seeds) == 18


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"repeats": 3, "definition": {"parameters": {}}},
            {"code": "repeats_of_greedy", "repeats": 3, "name": "drawn"}),
        ({"repeats": 0}, {"code": "repeats_form", "repeats": 0, "most": 1000}),
        ({"repeats": 2.5}, {"code": "repeats_form", "repeats": 2.5}),
        ({"repeats": 3, "definition": {"passing": {"rules": "most"}}}, {"code": "at_line", "cause": Containing("all")}),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_reported(ask, settings, says):
    with refuses(**says):
        ask(**settings)
