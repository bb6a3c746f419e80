"""Prompts with several wordings: each question in one of them, in a given one, or in all."""

from __future__ import annotations

import json
import statistics
from contextlib import closing

import pytest
import yaml
from refusals import Containing, refuses

from codec_bench.cli.run import print_wordings
from codec_bench.messages.errors import UserError
from codec_bench.report.open_run import open_run
from codec_bench.stats.summary_types import Summary
from codec_bench.store.answers import exchanges

MODEL = '''
from scripted_models import Logged

from codec_bench.models.base import ModelInfo
from codec_bench.types import Response


class Picky(Logged):
    """Repeats its prompt, except in one wording. An option stops it after some answers."""

    info = ModelInfo("picky")
    identity = {"picky": 1}

    def __init__(self, log, stop_after=0, says="what?"):
        super().__init__(log, stop_after)
        self.says = says

    async def ask(self, request):
        asked = self.output(request)
        return Response(text=self.says if asked.startswith("Kindly") else asked.rpartition("|")[2].strip())
'''
WORDINGS = ["Say | {{ word }}", "Kindly say | {{ word }}", "The word is | {{ word }}"]
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Words of the test.", "category": "QA", "kind": "qa", "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"word": "w", "reference": "w"}},
    "prompt": {"messages": [{"content": [{"wordings": WORDINGS}]}]}, "metrics": ["accuracy[exact]"],
    "primary": "accuracy[exact]",
}  # fmt: skip


@pytest.fixture
def ask(own_benchmark):
    """Runs with the test's model; returns the run's folder and the requests of this call."""
    rows = "".join(json.dumps({"id": f"a{n}", "w": f"word {n}"}) + "\n" for n in range(20))
    (own_benchmark.folder / "benchmark.yaml").write_text(yaml.safe_dump(DEFINITION))
    (own_benchmark.folder / "rows.jsonl").write_text(rows)

    def run(out="out", stop_after=0, options=(), **settings):
        return own_benchmark.run("Picky", out, {"stop_after": stop_after, **dict(options)}, **settings)

    return run


def entry(folder):
    return json.loads((folder / "summary.json").read_text())["systems"]["picky"]["metrics"]["accuracy[exact]"]


def beginnings(requests):
    return [one.partition(" | ")[0] for one in requests]


def test_each_question_is_sent_in_its_own_wording(ask):
    folder, requests = ask()
    counts = {number: beginnings(requests).count(text.partition(" | ")[0]) for number, text in enumerate(WORDINGS, 1)}
    assert sum(counts.values()) == 20 and all(counts.values())
    subsets = entry(folder)["subsets"]["wording"]
    assert {name: subset["n"] for name, subset in subsets.items()} == {f"0{k}": n for k, n in counts.items()}
    assert [subsets[name]["value"] for name in ("01", "02", "03")] == [1, 0, 1], "the bad wording is seen at a glance"
    _, differently = ask("other", seed=1)
    assert sorted(requests) != sorted(differently)


def test_stopping_does_not_change_which_wording_is_sent(ask):
    _, requests = ask()
    with pytest.raises(UserError, match="the power is off"):
        ask("stopped", stop_after=7, cache=False)
    _, rest = ask("stopped", cache=False)
    assert len(rest) == 13 and set(rest) < set(requests)


def test_every_question_in_all_wordings(ask):
    folder, requests = ask(prompts="each")
    assert len(requests) == len(set(requests)) == 60
    result = entry(folder)
    assert result["n"] == 60 and result["value"] == pytest.approx(2 / 3)
    assert result["draws"]["values"] == [1, 0, 1] and result["draws"]["spread"] == pytest.approx(
        statistics.stdev([1, 0, 1])
    )
    passes = result["draws"]["passes"]
    assert (passes["all"]["value"], passes["any"]["value"], passes["majority"]["value"]) == (0, 1, 1)
    assert {name: (one["value"], one["n"]) for name, one in result["subsets"]["wording"].items()} == {
        "01": (1, 20), "02": (0, 20), "03": (1, 20),
    }  # fmt: skip
    assert result["units"] == 20, "the question is the unit, not the wording"
    with closing(open_run(folder)) as run:
        prompts = [e.question.prompt for e in exchanges(run)][:3]
    assert [WORDINGS[k].partition(" | ")[0] in str(prompts[k]) for k in range(3)] == [True] * 3


def test_a_wording_under_which_a_model_collapses_is_reported(ask, capsys):
    folder, _ = ask(prompts="each", options={"says": "这是什么"}, page=True)
    document, answers = entry(folder)["robustness"], json.loads((folder / "summary.json").read_text())["answers"]
    assert (document["n"], document["worst"]["wording"], document["worst"]["value"]) == (3, "02", 0)
    assert document["mean"]["value"] == pytest.approx(2 / 3) and document["sd"]["value"] == pytest.approx(
        statistics.stdev([1, 0, 1])
    )
    assert (
        document["sd"]["value"] > 3 * document["sd_by_chance"]
        and document["same_questions"]
        and document["units"] == 20
    )
    assert answers["wordings"]["02"] == {"text": WORDINGS[1], "n": 20, "no_answer": 20, "ways": {"language": 20}}
    assert [one["no_answer"] for one in answers["wordings"].values()] == [0, 20, 0] and answers["no_answer"] == 20
    summary = Summary.from_dict(json.loads((folder / "summary.json").read_text()))
    print_wordings("mine", summary.systems["picky"].metrics, summary.answers)
    text = capsys.readouterr().out
    (row,) = [line for line in text.splitlines() if line.strip().startswith("02")]
    assert " ! " in row and "0.00 " in row and "20 of 20 (in another language or script 20)" in row and "Kindly" in row
    assert "worst 0.0" in text and "in wording 02 20 of 20" in text
    page = (folder / "report.html").read_text("utf-8")
    assert page.count('<tr class="stands-out">') == 1 and "Kindly say | {{ word }}" in page


def test_wordings_over_different_questions_report_it(ask, capsys):
    folder, _ = ask()
    summary = Summary.from_dict(json.loads((folder / "summary.json").read_text()))
    assert entry(folder)["robustness"]["same_questions"] is False
    print_wordings("mine", summary.systems["picky"].metrics, summary.answers)
    text = capsys.readouterr().out
    assert "each over different questions" in text and "by wording" not in text


@pytest.mark.parametrize(("prompts", "number"), [("first", 0), ("2", 1), ("3", 2)])
def test_one_wording_for_all(ask, prompts, number):
    folder, requests = ask(prompts=prompts)
    assert set(beginnings(requests)) == {WORDINGS[number].partition(" | ")[0]}
    assert entry(folder)["value"] == (0 if number == 1 else 1)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"prompts": "4"}, {"code": "no_wording", "wording": "4"}),
        ({"prompts": "some"}, {"code": "wording_form", "seeded": "seeded", "first": "first", "each": "each"}),
        ({"prompts": "each", "repeats": 2}, {"code": "repeats_with_wordings"}),
    ],
)
def test_what_cannot_be_requested_is_reported(ask, settings, says):
    with refuses(**says):
        ask(**settings)


def test_a_run_is_continued_in_the_same_wordings_only(ask):
    ask(prompts="first")
    with refuses("other_settings", differences=Containing("wording")):
        ask(prompts="2")


def test_asking_in_each_wording_says_how_many_there_are(ask):
    stages = []
    ask(prompts="each", progress=lambda stage, *more: stages.append(stage))
    ask(out="one", progress=lambda stage, *more: stages.append(stage))
    asking = {stage for stage in stages if "asking" in stage and ";" not in stage}
    assert len(asking) == 2 and any(stage.endswith(": asking each question in 3 wordings") for stage in asking)


@pytest.mark.parametrize("wordings", [3, 1])
def test_the_number_of_wordings_stands_in_the_terminal_and_on_the_page_of_every_such_run(
    own_benchmark, command, wordings
):
    """Also where the prompt has one wording only, so that nothing else would say that there was no choice."""
    text = {"wordings": WORDINGS} if wordings > 1 else {"text": WORDINGS[0]}
    (own_benchmark.folder / "benchmark.yaml").write_text(
        yaml.safe_dump(DEFINITION | {"prompt": {"messages": [{"content": [text]}]}})
    )
    (own_benchmark.folder / "rows.jsonl").write_text(
        "".join(json.dumps({"id": f"a{n}", "w": f"word {n}"}) + "\n" for n in range(4))
    )
    model = f"{own_benchmark.root / 'models.py'}:Picky"
    options = (
        "run",
        own_benchmark.folder,
        "--model",
        model,
        "--set",
        f"{model}.log={own_benchmark.log}",
        "--no-cache",
        "--out",
    )
    code, shown, err = command(*options, own_benchmark.root / "each", "--prompts", "each")
    messages = "each question was sent in 3 wordings" if wordings > 1 else "each question was sent in its only wording"
    assert code == 0 and messages in " ".join((shown + err).split()), shown + err
    (page,) = (own_benchmark.root / "each").rglob("report.html")
    assert messages in page.read_text("utf-8")
    code, shown, err = command(*options, own_benchmark.root / "seeded")
    assert code == 0 and "each question was sent in" not in " ".join((shown + err).split())
