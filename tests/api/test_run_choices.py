"""`--choices`: options in other orders, from the definition to the record, the summary, the page and the terminal."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
import yaml
from refusals import Containing, refuses

from codec_bench.messages.errors import UserError
from codec_bench.report.open_run import open_run
from codec_bench.report.robustness.rows import choice_notes
from codec_bench.store.answers import exchanges
from codec_bench.store.draws import ORDER

MODEL = '''
from scripted_models import Logged

from codec_bench.models.base import ModelInfo
from codec_bench.types import Response


class Chooser(Logged):
    """Knows the answer, or likes the first place, as told."""

    info = ModelInfo("chooser")

    def __init__(self, log, likes="right", stop_after=0):
        super().__init__(log, stop_after)
        self.likes = likes

    @property
    def identity(self):
        return {"chooser": self.likes}

    async def ask(self, request):
        asked = self.output(request)
        lines = [line for line in asked.splitlines() if line[1:2] == "."]
        if self.likes == "first" or not lines:
            return Response(text="A")
        return Response(text=next(line for line in lines if "right" in line)[0])
'''
REQUESTS = "{{ question }}\n{% for choice in choices %}{{ 'ABCD'[loop.index0] }}. {{ choice }}\n{% endfor %}"
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "Options of the test.", "category": "QA", "kind": "qa", "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "choices": "c", "reference": "r"}},
    "prompt": {"messages": [{"content": [REQUESTS]}]}, "postprocess": ["option-letter"],
    "metrics": ["accuracy[choice]"],
    "primary": "accuracy[choice]",
}  # fmt: skip
THREE = [{"id": f"t{n}", "q": "Which?", "c": ["this", "the right one", "that"], "r": "B"} for n in range(6)]
TWO = [{"id": f"d{n}", "q": "Which?", "c": ["the right one", "that"], "r": "the right one"} for n in range(2)]
FIXED = [{"id": "f0", "q": "Which?", "c": ["the right one", "all of the above"], "r": "A"}]


@pytest.fixture
def ask(own_benchmark):
    """Runs with the test's model; returns the run's folder and the requests of this call."""

    def run(out="out", rows=(*THREE, *TWO, *FIXED), definition=(), options=(), **settings):
        (own_benchmark.folder / "benchmark.yaml").write_text(yaml.safe_dump({**DEFINITION, **dict(definition)}))
        (own_benchmark.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return own_benchmark.run("Chooser", out, options, **{"choices": "all-rotations", **settings})

    return run


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def entry(folder):
    return summary(folder)["systems"]["chooser"]["metrics"]["accuracy[choice]"]


def test_every_question_in_every_rotation(ask):
    folder, requests = ask(page=True)
    assert len(requests) == 6 * 3 + 2 * 2 + 1
    result, chosen = entry(folder), summary(folder)["answers"]["choices"]
    assert (result["value"], result["n"], result["units"]) == (1, 23, 9)
    assert (result["draws"]["n"], result["draws"]["fewest"], result["draws"]["questions"]) == (3, 1, 9)
    assert result["draws"]["passes"]["all"]["n"] == 9, "a question of two options has two draws and is whole"
    places = result["subsets"]["right_answer_at"]
    assert {name: one["n"] for name, one in places.items()} == {"A": 8, "B": 8, "C": 6}
    assert (chosen["how"], chosen["questions"], chosen["kept"]) == ("all-rotations", 8, 1)
    assert chosen["consistent"]["value"] == 1 and chosen["consistent"]["n"] == 8
    assert "Order of the options" in (folder / "report.html").read_text("utf-8")
    with closing(open_run(folder)) as run:
        assert run.meta["fingerprint"]["asked"]["choices"] == run.meta["config"]["choices"] == "all-rotations"
        messages = [(e.question.fields.get(ORDER), e.question.expected[0], e.question.draw) for e in exchanges(run)][:3]
    assert messages == [("ABC", "B", 0), ("BCA", "A", 1), ("CAB", "C", 2)]


def test_a_model_that_likes_the_first_place_is_seen(ask):
    folder, _ = ask(options={"likes": "first"})
    chosen = summary(folder)["answers"]["choices"]
    assert chosen["consistent"]["value"] == 0 and chosen["places"]["A"]["named"]["value"] == 1
    assert entry(folder)["subsets"]["right_answer_at"]["B"]["value"] == 0
    text = " ".join(choice_notes(chosen))
    assert (
        "the same option is named in all rotations of 0.000" in text
        and "A 100.0 %" in text
        and "1 question has no new order" in text
    )


def test_shuffled_options_are_shuffled_by_seed_and_continue_so(ask):
    with pytest.raises(UserError, match="the power is off"):
        ask(choices="shuffled", options={"stop_after": 4}, cache=False)
    folder, rest = ask(choices="shuffled", cache=False)
    _, complete = ask("other", choices="shuffled", cache=False)
    assert len(complete) == 9 and complete[4:] == rest and entry(folder)["value"] == 1
    assert len({one for one in complete if "this" in one}) > 1
    assert summary(folder)["answers"]["choices"]["consistent"] is None
    assert "draws" not in entry(folder)


def test_rotations_that_were_stopped_are_continued(ask):
    with pytest.raises(UserError, match="the power is off"):
        ask(options={"stop_after": 10}, cache=False)
    folder, rest = ask(cache=False)
    assert (
        len(rest) == 13 and entry(folder)["n"] == 23 and summary(folder)["answers"]["choices"]["consistent"]["n"] == 8
    )
    for other in ("given", "shuffled"):
        with refuses("other_settings", differences=Containing("choices")):
            ask(choices=other)


def test_what_cannot_be_requested_is_reported(ask):
    with refuses("option_order", known="given, shuffled, all-rotations"):
        ask(choices="sorted")
    with refuses("repeats_in_rotations"):
        ask(repeats=2, definition={"parameters": {"temperature": 1}})
    with refuses("no_options_to_order"):
        ask(definition={"prompt": {"messages": [{"content": ["{{ question }}"]}]}, "data": {
            "path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "r"}}})  # fmt: skip


def test_options_as_passed_leave_no_trace(ask):
    folder, requests = ask(choices="given")
    assert len(requests) == 9 and summary(folder)["answers"]["choices"] is None
    with closing(open_run(folder)) as run:
        assert "choices" not in run.meta["fingerprint"]["asked"] and "choices" not in run.meta["config"]
