"""Wordings and orders of options in words and rows: what stands out is seen, and what is not known is not said."""

from __future__ import annotations

import pytest

from codec_bench.report.answers import answer_notes
from codec_bench.report.robustness.rows import WAYS, choice_notes, place_rows, robustness_of
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import Answers, MetricSummary
from codec_bench.store.rows import NO_ANSWER
from codec_bench.text.degenerate_answers import WAYS as NAMED


def over(values, worst, best, **more):
    known = [value for value in values if value is not None]
    number = lambda value: {"value": value, "ci95": [value - 0.01, value + 0.01]}  # noqa: E731
    return {
        "n": len(known), "without_value": [f"{n:02d}" for n, value in enumerate(values, 1) if value is None],
        "same_questions": True, "mean": number(sum(known) / len(known)), "sd": number(0.25), "range": number(0.5),
        "units": 10, "note": None, "sd_by_chance": 0.0125, "wordings": {
            f"{n:02d}": {"value": v, "ci95": None if v is None else [v - 0.02, v + 0.02], "note": None, "n": 10,
                "failed": 5 * (v is None)}
            for n, v in enumerate(values, 1)
        }, "worst": {"wording": worst, **number(0.25)}, "best": {"wording": best, **number(0.75)}, **more,
    }  # fmt: skip


def entry(values, higher=True, **more):
    return {
        "value": 0.5, "ci95": None, "unit": "", "higher_is_better": higher,
        "robustness": over(values, "02", "01", **more),
    }  # fmt: skip


def wordings(*none, text="Say it."):
    return {
        "wordings": {
            f"{n:02d}": {"text": text, "n": 20, "no_answer": count, "ways": {"phonemes": count} if count else {}}
            for n, count in enumerate(none, 1)
        }
    }


def test_every_way_has_its_words():
    assert list(WAYS) == list(NO_ANSWER) and set(NAMED) < set(WAYS)


@pytest.mark.parametrize("higher", [True, False])
def test_what_stands_out(higher):
    values = [0.5, 0.2, 0.5, 0.8, None]
    result = robustness_of(
        {name: MetricSummary.from_dict(held) for name, held in {"accuracy": entry(values, higher)}.items()},
        Answers.from_dict(wordings(0, 0, 3, 1, 0)),
    )
    marks = {row.name: [cell.stands_out for cell in row.cells] for row in result.rows}
    worse = "02" if higher else "04"
    assert [name for name, cells in marks.items() if cells[0]] == [worse, "05"], "05 has no value at all"
    assert [row.name for row in result.rows if row.stands_out] == sorted({worse, "03", "05"})
    assert result.rows[2].none == "3 of 20 (phonemes 3)" and result.rows[3].none == "1 of 20 (phonemes 1)"
    assert result.rows[4].cells[0].value == "–" and result.rows[1].cells[0].filled == pytest.approx(25)
    (sentence, none) = result.sentences
    assert "worst 0.250" in sentence and "in wording 02" in sentence and "by chance alone 0.013" in sentence
    assert sentence.endswith("no value in wording 05") and "over 4 wordings, failures as wrong:" in sentence
    assert none == "answers that are none: in wording 03 3 of 20 (phonemes 3)"


def test_without_wordings_there_is_nothing():
    assert (
        robustness_of(
            {name: MetricSummary.from_dict(held) for name, held in {"accuracy": {"value": 1}}.items()},
            Answers.from_dict(wordings(0, 0)),
        )
        is None
    )
    assert (
        robustness_of(
            {name: MetricSummary.from_dict(held) for name, held in {"accuracy": entry([0.5, 0.2])}.items()}, UNSET
        )
        is None
    )


def test_hostile_wordings_are_plain():
    result = robustness_of(
        {name: MetricSummary.from_dict(held) for name, held in {"accuracy": entry([0.5, 0.2])}.items()},
        Answers.from_dict(wordings(0, 0, text="a\x1b[31m\u202eb")),
    )
    assert result.rows[0].text == "a�[31m�b"


CHOICES = {
    "how": "all-rotations", "questions": 10, "kept": 2, "unnamed": {"n": 3, "share": 0.1},
    "consistent": {"value": 0.4, "ci95": [0.2, 0.6], "n": 9, "failed": 1},
    "places": {
        "A": {"named": {"value": 0.75, "ci95": [0.7, 0.8]}, "expected": 0.5,
            "right": {"value": 1.0, "ci95": None, "n": 4}},
        "B": {"named": {"value": 0.25, "ci95": [0.2, 0.3]}, "expected": 0.5,
            "right": {"value": None, "ci95": None, "n": 0}},
    },
}  # fmt: skip


def test_orders_in_words_and_rows():
    details = choice_notes(CHOICES)
    assert (
        details[0]
        == "the same option is named in all rotations of 0.400 ±0.200 of 9 questions, without 1 that lack an answer"
    )
    assert "A 75.0 % (without a preference 50.0 %), B 25.0 %" in details[1] and details[2].endswith("A 1.000")
    assert details[3].startswith("3 answers (10 %)") and details[4].startswith("2 questions have no new order")
    assert [row["right"] for row in place_rows(CHOICES)] == ["100.0", "–"] and place_rows(CHOICES)[0][
        "named_spread"
    ] == "±5.0"
    assert len(choice_notes(CHOICES, places=False)) == 3
    assert choice_notes(None) == [] and len(choice_notes({**CHOICES, "consistent": None})) == 4


def test_the_share_that_was_not_recognised_and_answers_that_are_none_stand_below_the_score():
    answers = {
        "asked": 40, "failed": {"failed": 10}, "cut": {"n": 5, "share": 0.125, "s": 9.0, "unheard": 0.25},
        "no_answer": 3,
        "ways": {"empty": 1, "language": 2},
    }  # fmt: skip
    assert answer_notes(Answers.from_dict(answers)) == [
        "the audio of 5 questions (12.5 %) was cut, because it is longer than the model takes; 25 % of all sound was "
        "cut",
        "3 of 30 answers are none (in another language or script 2, empty 1)",
    ]
    assert len(answer_notes(Answers.from_dict({**answers, "no_answer": 1, "ways": {"empty": 1}}))) == 1
