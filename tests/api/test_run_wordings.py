"""Prompts with several wordings: each question in one of them, in a given one, or in all."""

from __future__ import annotations

import json
import statistics
from contextlib import closing

import pytest
import yaml

from codec_bench.cli.run import print_wordings
from codec_bench.errors import RunMismatch, UserError
from codec_bench.report.open_run import open_run
from codec_bench.stats.summary_types import Summary
from codec_bench.store.answers import exchanges

MODEL = '''
from scripted_models import Logged

from codec_bench.models.base import ModelInfo
from codec_bench.types import Response


class Picky(Logged):
    """Repeats what it is told, unless it is asked in the wording that it does not like. It stops after some answers if told."""

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
    "prompt": {"messages": [{"content": [{"wordings": WORDINGS}]}]}, "metrics": ["accuracy[exact]"], "primary": "accuracy[exact]",
}  # fmt: skip


@pytest.fixture
def ask(own):
    """Runs with the test's model; returns the run's folder and what the model was asked in this call."""
    rows = "".join(json.dumps({"id": f"a{n}", "w": f"word {n}"}) + "\n" for n in range(20))
    (own.folder / "benchmark.yaml").write_text(yaml.safe_dump(DEFINITION))
    (own.folder / "rows.jsonl").write_text(rows)

    def run(out="out", stop_after=0, options=(), **settings):
        return own.run("Picky", out, {"stop_after": stop_after, **dict(options)}, **settings)

    return run


def entry(folder):
    return json.loads((folder / "summary.json").read_text())["systems"]["picky"]["metrics"]["accuracy[exact]"]


def beginnings(asked):
    return [one.partition(" | ")[0] for one in asked]


def test_each_question_is_asked_in_a_wording_of_its_own(ask):
    folder, asked = ask()
    counts = {number: beginnings(asked).count(text.partition(" | ")[0]) for number, text in enumerate(WORDINGS, 1)}
    assert sum(counts.values()) == 20 and all(counts.values())
    subsets = entry(folder)["subsets"]["wording"]
    assert {name: subset["n"] for name, subset in subsets.items()} == {f"0{k}": n for k, n in counts.items()}
    assert [subsets[name]["value"] for name in ("01", "02", "03")] == [1, 0, 1], "the bad wording is seen at a glance"
    _, differently = ask("other", seed=1)
    assert sorted(asked) != sorted(differently)


def test_stopping_does_not_change_who_is_asked_how(ask):
    _, asked = ask()
    with pytest.raises(UserError, match="the power is off"):
        ask("stopped", stop_after=7, cache=False)
    _, rest = ask("stopped", cache=False)
    assert len(rest) == 13 and set(rest) < set(asked)


def test_every_question_in_all_wordings(ask):
    folder, asked = ask(prompts="each")
    assert len(asked) == len(set(asked)) == 60
    found = entry(folder)
    assert found["n"] == 60 and found["value"] == pytest.approx(2 / 3)
    assert found["draws"]["values"] == [1, 0, 1] and found["draws"]["spread"] == pytest.approx(
        statistics.stdev([1, 0, 1])
    )
    passes = found["draws"]["passes"]
    assert (passes["all"]["value"], passes["any"]["value"], passes["majority"]["value"]) == (0, 1, 1)
    assert {name: (one["value"], one["n"]) for name, one in found["subsets"]["wording"].items()} == {
        "01": (1, 20), "02": (0, 20), "03": (1, 20),
    }  # fmt: skip
    assert found["units"] == 20, "the question is the unit, not the wording"
    with closing(open_run(folder)) as run:
        prompts = [e.question.prompt for e in exchanges(run)][:3]
    assert [WORDINGS[k].partition(" | ")[0] in str(prompts[k]) for k in range(3)] == [True] * 3


def test_a_wording_under_which_a_model_collapses_is_told_with_how(ask, capsys):
    folder, _ = ask(prompts="each", options={"says": "这是什么"}, page=True)
    found, answers = entry(folder)["robustness"], json.loads((folder / "summary.json").read_text())["answers"]
    assert (found["n"], found["worst"]["wording"], found["worst"]["value"]) == (3, "02", 0)
    assert found["mean"]["value"] == pytest.approx(2 / 3) and found["sd"]["value"] == pytest.approx(
        statistics.stdev([1, 0, 1])
    )
    assert found["sd"]["value"] > 3 * found["sd_by_chance"] and found["same_questions"] and found["units"] == 20
    assert answers["wordings"]["02"] == {"text": WORDINGS[1], "n": 20, "no_answer": 20, "ways": {"language": 20}}
    assert [one["no_answer"] for one in answers["wordings"].values()] == [0, 20, 0] and answers["no_answer"] == 20
    summary = Summary.from_dict(json.loads((folder / "summary.json").read_text()))
    print_wordings("mine", summary.systems["picky"].metrics, summary.answers)
    said = capsys.readouterr().out
    (row,) = [line for line in said.splitlines() if line.strip().startswith("02")]
    assert " ! " in row and "0.00 " in row and "20 of 20 (in another language or script 20)" in row and "Kindly" in row
    assert "worst 0.0" in said and "in wording 02 20 of 20" in said
    page = (folder / "report.html").read_text("utf-8")
    assert page.count('<tr class="stands-out">') == 1 and "Kindly say | {{ word }}" in page


def test_wordings_over_questions_of_their_own_say_so(ask, capsys):
    folder, _ = ask()
    summary = Summary.from_dict(json.loads((folder / "summary.json").read_text()))
    assert entry(folder)["robustness"]["same_questions"] is False
    print_wordings("mine", summary.systems["picky"].metrics, summary.answers)
    said = capsys.readouterr().out
    assert "each over questions of its own" in said and "by wording" not in said


@pytest.mark.parametrize(("prompts", "number"), [("first", 0), ("2", 1), ("3", 2)])
def test_one_wording_for_all(ask, prompts, number):
    folder, asked = ask(prompts=prompts)
    assert set(beginnings(asked)) == {WORDINGS[number].partition(" | ")[0]}
    assert entry(folder)["value"] == (0 if number == 1 else 1)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"prompts": "4"}, "has no wording '4'"),
        ({"prompts": "some"}, "expected seeded, first, each or a number from 1"),
        ({"prompts": "each", "repeats": 2}, "each wording is asked once"),
    ],
)
def test_what_cannot_be_asked_is_told(ask, settings, says):
    with pytest.raises(UserError, match=says):
        ask(**settings)


def test_a_run_is_continued_in_the_same_wordings_only(ask):
    ask(prompts="first")
    with pytest.raises(RunMismatch, match="wording"):
        ask(prompts="2")


def test_asking_in_each_wording_says_how_many_there_are(ask):
    stages = []
    ask(prompts="each", progress=lambda stage, *more: stages.append(stage))
    ask(out="one", progress=lambda stage, *more: stages.append(stage))
    asking = {stage for stage in stages if "asking" in stage and ";" not in stage}
    assert len(asking) == 2 and any(stage.endswith(": asking each question in 3 wordings") for stage in asking)


@pytest.mark.parametrize("wordings", [3, 1])
def test_the_number_of_wordings_stands_in_the_terminal_and_on_the_page_of_every_such_run(own, command, wordings):
    """Also where the prompt has one wording only, so that nothing else would say that there was no choice."""
    text = {"wordings": WORDINGS} if wordings > 1 else {"text": WORDINGS[0]}
    (own.folder / "benchmark.yaml").write_text(
        yaml.safe_dump(DEFINITION | {"prompt": {"messages": [{"content": [text]}]}})
    )
    (own.folder / "rows.jsonl").write_text(
        "".join(json.dumps({"id": f"a{n}", "w": f"word {n}"}) + "\n" for n in range(4))
    )
    model = f"{own.place / 'models.py'}:Picky"
    given = ("run", own.folder, "--model", model, "--set", f"{model}.log={own.log}", "--no-cache", "--out")
    code, shown, err = command(*given, own.place / "each", "--prompts", "each")
    told = "each question was asked in 3 wordings" if wordings > 1 else "each question was asked in its only wording"
    assert code == 0 and told in " ".join((shown + err).split()), shown + err
    (page,) = (own.place / "each").rglob("report.html")
    assert told in page.read_text("utf-8")
    code, shown, err = command(*given, own.place / "seeded")
    assert code == 0 and "each question was asked in" not in " ".join((shown + err).split())
