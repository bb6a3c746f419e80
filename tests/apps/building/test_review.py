"""The check by people: sheets of what was kept, and what becomes of a question that is accepted, edited or dropped."""

from __future__ import annotations

import json

import pytest
from page_in_browser import complaints, open_page, texts
from refusals import refuses

from codec_bench import build
from codec_bench.apps.building import review
from codec_bench.apps.listening.answers import FORMAT, checksum
from codec_bench.apps.listening.key import read_key
from codec_bench.messages import Diagnostic

from .conftest import rows_of

LOUDER = {"louder": {"wordings": ["Which is louder, {{ first }} or {{ second }}?"], "least": 1}}


def by_id(folder):
    return {row["id"]: row for row in rows_of(folder)}


def save(folder, path, rater, text, edited=False):
    """What the page saves for a reviewer.

    `text` has, by item, the decision or the decision and texts by their heading.
    """
    (key,) = [read_key(one) for one in (folder / ".build" / "review").glob("*.key.json")]
    trials = {trial.item: trial.id for trial in key.trials}
    answers = []
    for item, (decision, words) in text.items():
        answers.append(
            {
                "trial": trials[item],
                "stimulus": "",
                "value": decision,
                "ms": 1000,
                **({"texts": words} if words else {}),
            }
        )
    held = {
        "format": FORMAT,
        "sheet": key.sheet,
        "kind": "review",
        "rater": rater,
        "saved": "2026-01-01T00:00:00Z",
        "complete": True,
        "answers": answers,
    }
    path.write_text(json.dumps({**held, "crc32": checksum(held) if not edited else "00000000"}))
    return path


@pytest.fixture
def sheets(mixing, sounds):
    """Five mixtures and their sheet."""
    requests = {"recipe": mixing(count=5, retries=20, questions=LOUDER), "out": sounds / "out"}
    built = build(**requests, review=True)
    assert built.sheets == (sounds / "out" / "review" / "sheet-001.html",) and built.funnel.usable == 5
    return requests


def test_decisions_are_applied_counted_and_stored(sheets, sounds):
    before = by_id(sounds / "out")
    a, b, c, d, _ = before
    options = "\n".join(f"{text}, I think" for text in before[c]["choices"])
    files = [
        save(sounds / "out", sounds / "anna.json", "Anna", {
            a: ("accept", {}), b: ("edit", {"Question": "Which one is\nlouder?"}), c: ("edit", {"Options": options}),
            d: ("accept", {}),
        }),
        save(sounds / "out", sounds / "bert.json", "Bert", {
            b: ("edit", {"Question": "Another wording?"}), d: ("drop", {"Why it is dropped": "Both are alike."}),
        }),
    ]  # fmt: skip
    built = build(**sheets, reviewed=files)
    rows = by_id(sounds / "out")
    assert built.num_new == 0 and list(rows) == [key for key in before if key != d]
    assert rows[a] == {**before[a], "review": "accepted"}
    assert rows[b] == {**before[b], "review": "edited", "question": "Which one is louder?"}, "Anna comes before Bert"
    right = f"{before[c]['answer_text']}, I think"
    assert (
        rows[c]["choices"] == options.splitlines()
        and rows[c]["answer_text"] == right
        and rows[c]["answer"] == before[c]["answer"]
    )
    assert built.funnel.dropped["review"] == {Diagnostic("reviewer_dropped"): 1}
    assert "Both are alike." in (sounds / "out" / "dropped.jsonl").read_text()
    card = (sounds / "out" / "README.md").read_text()
    assert "People reviewed 4 questions (accepted: 1, edited: 2, dropped: 1) and accepted 75.0 % of them." in card
    assert "nobody reviewed: 1." in card
    decided = (sounds / "out" / "review.jsonl").read_text()
    assert "Anna" not in decided and "Bert" not in decided
    again = build(**sheets)
    assert again.funnel.usable == 4 and by_id(sounds / "out") == rows, "a later build keeps what people decided"
    (sheet,) = build(**sheets, review=True).sheets
    (left,) = [
        read_key(p) for p in (sounds / "out" / ".build" / "review").glob("*.key.json") if len(read_key(p).trials) == 1
    ]
    assert left.trials[0].item == list(before)[4] and sheet.exists(), "the one that nobody has seen yet"


def test_an_edited_answer_is_another_option_or_new_words_of_the_right_one(sheets, sounds):
    before = by_id(sounds / "out")
    a, b, *_ = before
    other = next(text for text in before[a]["choices"] if text != before[a]["answer_text"])
    message = {a: ("edit", {"Expected answer": other}), b: ("edit", {"Expected answer": "neither"})}
    rows = by_id(build(**sheets, reviewed=[save(sounds / "out", sounds / "a.json", "A", message)]).folder)
    assert rows[a]["choices"] == before[a]["choices"] and rows[a]["answer_text"] == other
    assert rows[a]["answer"] != before[a]["answer"] and rows[a]["choices"]["AB".index(rows[a]["answer"])] == other
    assert rows[b]["answer"] == before[b]["answer"] and rows[b]["choices"]["AB".index(rows[b]["answer"])] == "neither"


def test_an_edit_that_leaves_no_question_drops_it(sheets, sounds):
    a, b, *_ = by_id(sounds / "out")
    file = save(
        sounds / "out", sounds / "a.json", "A", {a: ("edit", {"Options": "only one"}), b: ("edit", {"Question": " "})}
    )
    funnel = build(**sheets, reviewed=[file]).funnel
    assert funnel.dropped["review"] == {Diagnostic("edit_unusable"): 2} and funnel.usable == 3


def test_files_that_cannot_be_used_are_reported(sheets, sounds):
    first = next(iter(by_id(sounds / "out")))
    changed = save(sounds / "out", sounds / "changed.json", "A", {first: ("drop", {})}, edited=True)
    with refuses("no_review_answers"):
        build(**sheets, reviewed=[changed])
    messages = []
    good = save(sounds / "out", sounds / "good.json", "B", {first: ("accept", {})})
    build(**sheets, reviewed=[changed, good], notify=messages.append)
    assert any("changed.json: edited file" in line for line in messages) and any(
        "good.json: missing answer" in line for line in messages
    )
    assert by_id(sounds / "out")[first]["review"] == "accepted"
    (sounds / "out" / "review.jsonl").write_text('{"id": "x", "decision": "maybe"}\n')
    with refuses("not_a_decision_file"):
        build(**sheets)


def test_many_questions_are_on_several_sheets(mixing, sounds, monkeypatch):
    monkeypatch.setattr(review, "EACH", 2)
    built = build(mixing(count=5, retries=20, questions=LOUDER), out=sounds / "out", review=True)
    assert [page.name for page in built.sheets] == ["sheet-001.html", "sheet-002.html", "sheet-003.html"]
    keys = [read_key(path) for path in (sounds / "out" / ".build" / "review").glob("*.key.json")]
    assert sorted(trial.item for key in keys for trial in key.trials) == sorted(by_id(sounds / "out"))


def test_a_sheet_plays_the_sound_and_holds_no_id(sheets, sounds, browser):
    page = sounds / "out" / "review" / "sheet-001.html"
    assert "mixture-0000" not in page.read_text()
    open_page(browser, page)
    assert not complaints(browser) and texts(browser, "h1") == ["Mixtures"]
