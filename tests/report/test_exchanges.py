"""The page of a benchmark in a real browser: an opened sample shows request, answer, transcript and verdict."""

from __future__ import annotations

import numpy as np
import pytest
from page_in_browser import resize, until

from codec_bench.audio.encode import write_flac
from codec_bench.report.page import write_page
from codec_bench.report.page.collect import collect
from codec_bench.report.page.exchanges import CHARACTERS
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Audio, Score

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp;</b>'{{ 7*7 }}"
RATE = 16_000
EXACT = {
    "unit": "",
    "higher_is_better": True,
    "protocol": "accuracy/exact-1",
    "aggregate": "mean",
    "kind": "answer",
    "range": [0, 1],
}
RATING = {**EXACT, "protocol": "rating/voicebench-open-1/judge", "kind": "rating", "range": [1, 5]}
SIM = {**EXACT, "protocol": "sim/ge2e-1", "kind": "pair", "range": [-1, 1]}


def build(folder, name, metrics, rows, benchmark="made up"):
    """A finished run of a benchmark; `rows` are (question, answer, reading, scores)."""
    writer = AnswerWriter(folder, {"asked": {"note": HOSTILE}, "scored": {}})
    writer.begin({name: {"outputs": ["text"]}}, metrics, ())
    writer.write_answers([(question, answer) for question, answer, _, _ in rows])
    items, readings = [], {}
    for question, answer, reading, scores in rows:
        status = "ok" if answer.status == "ok" else "failed"
        item = ItemRecord(
            name, question.id, status, answer.reason, scores, audio=answer.audio, notes=list(answer.notes)
        )
        items.append((question.number, item))
        readings[question.number] = reading
    writer.write_marked(items, readings)
    writer.set_meta(
        config={"command": "run", "benchmark": benchmark, "model": name, "systems": [name], "metrics": list(metrics),
            "seed": 0},
        benchmark={"name": benchmark, "title": HOSTILE, "published": []}, state="finished",
        started="2026-11-20T18:40:00+00:00", finished="2026-11-20T18:41:32+00:00",
        data={"name": benchmark, "samples": len(rows), "fingerprint": None, "unmatched": []},
    )  # fmt: skip
    writer.close()
    return Run(folder)


def sound(folder, name, hz, seconds=1.0):
    signal = 0.3 * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    write_flac(folder / name, Audio(signal.astype(np.float32), RATE))
    return name


@pytest.fixture(scope="module")
def text_answers(tmp_path_factory):
    """Questions that are answered in text: one hostile throughout, one unparsed, one failed, one very long."""
    fields = {"question": f"Which town? {HOSTILE}", "choices": ["Rome", "Paris"], "subject": "towns"}

    def question(number, **more):
        options = {
            "fields": fields,
            "expected": ("Paris", "Lutetia"),
            "subsets": {"subject": "towns"},
            "prompt": "user: <audio>",
            **more,
        }
        return QuestionRecord(number, f"q/{number}", language="en", **options)

    def scores(exact, *replies):
        rated = Score.ok(5.0, RATING["protocol"], detail={"replies": list(replies), "verdicts": [5.0] * len(replies)})
        return {"accuracy[exact]": exact, "rating[voicebench-open]": rated}

    right, dropped = Score.ok(1.0, EXACT["protocol"]), Score.failed("it was cut off", EXACT["protocol"])
    unparsed = Score(None, "unparsed", f"there is no option in {HOSTILE}", EXACT["protocol"])
    folder = tmp_path_factory.mktemp("runs") / "asked"
    rows = [
        (
            question(0, prompt=f"user: <audio> {HOSTILE}", expected=(HOSTILE,), fields={"question": HOSTILE}),
            AnswerRecord("ok", text=f"{HOSTILE} said", latency_s=1.5, finish="stop", cut_s=2.0, notes=(HOSTILE,)),
            Reading(HOSTILE, "as read"),
            scores(right, HOSTILE, "[[5]]"),
        ),
        (question(1), AnswerRecord("ok", text="I cannot say"), Reading(None, None, unparsed.reason),
            scores(unparsed, "4")),
        (question(2), AnswerRecord("failed", "it was cut off"), Reading(None, None, "it was cut off"), scores(dropped)),
        (question(3), AnswerRecord("ok", text="x" * 100_000, cached=True), Reading(None, "x" * 100_000),
            scores(right, "5")),
    ]  # fmt: skip
    return build(folder, f"model {HOSTILE}", {"accuracy[exact]": EXACT, "rating[voicebench-open]": RATING}, rows)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A cloned voice: the sound of the prompt and of the answer, and no text at all."""
    folder = tmp_path_factory.mktemp("runs") / "spoken"
    retained = sound(folder, "audio/questions/0000000.flac", 220)
    answer = AnswerRecord("ok", audio=sound(folder, "audio/answers/0000000.flac", 330), latency_s=0.5)
    fields = {"text": "say this please", "prompt_text": "as I said"}
    prompt = "text: say this please\n\nprompt_audio: <audio>\n\nprompt_text: as I said"
    question = QuestionRecord(
        0,
        "s/0",
        fields,
        ("say this please",),
        prompt=prompt,
        audio=retained,
        duration_s=1.0,
        sample_rate_hz=RATE,
        channels=1,
    )
    scores = {"sim[ge2e]": Score.ok(0.7, SIM["protocol"])}
    return build(
        folder, "voice", {"sim[ge2e]": SIM}, [(question, answer, Reading(None, None, "the model gave no text"), scores)]
    )


def answered(folder, name, message, *, benchmark="made up", aloud=(), number=0, metrics=("accuracy[exact]",)):
    """A run of one model that answers in text; `message` are (answer, its value), `aloud` says whose sound was kept."""
    protocol, rows = EXACT["protocol"], []
    for n, (text, value) in enumerate(message, number):
        retained = sound(folder, f"audio/questions/{n:07d}.flac", 220) if n in aloud else None
        about = {"audio": retained, "duration_s": 1.0, "sample_rate_hz": RATE, "channels": 1} if retained else {}
        question = QuestionRecord(n, f"test/{n}", {}, ("Paris",), prompt="user: <audio>", **about)
        if text is None:
            answer, score = AnswerRecord("failed", "it was cut off"), Score.failed("it was cut off", protocol)
        else:
            answer, score = AnswerRecord("ok", text=text), Score.ok(value, protocol)
        rows.append((question, answer, Reading(None, text), dict.fromkeys(metrics, score)))
    return build(folder, name, dict.fromkeys(metrics, EXACT), rows, benchmark)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models on one benchmark, and one of them on another whose questions have the same ids and answers."""
    folder = tmp_path_factory.mktemp("several")
    towns = {"benchmark": "towns", "aloud": (1,)}
    return [
        answered(
            folder / "towns" / "ear", "ear", [("Rome says ear", 0.0), ("Paris says ear", 1.0), (None, None)], **towns
        ),
        answered(
            folder / "towns" / "mouth",
            "mouth",
            [("Paris says mouth", 1.0), ("Oslo says mouth", 0.0), (None, None)],
            **towns,
        ),
        answered(
            folder / "rivers" / "ear",
            "ear",
            [("Seine says ear", 0.75), (None, None), (None, None)],
            benchmark="rivers",
            metrics=("accuracy[exact]", "accuracy[contains]"),
        ),
    ]


@pytest.fixture(scope="module")
def pages(text_answers, spoken, runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_page(runs[:1], folder / "one.html")
    write_page(runs[:2], folder / "models.html")
    write_page(runs, folder / "benchmarks.html")
    write_page([text_answers], folder / "asked.html")
    write_page([spoken], folder / "spoken.html")
    return folder


def opened(browser, path, id, rows=1, column=0):
    """Opens one sample of a page, the first of so many rows of a column; returns what is told there as [(label, text)],
    by block.
    """
    browser.get_log("browser")
    browser.get(path.as_uri())
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    for index, event, value in (("by-metric", "change", column), ("by-text", "input", id)):
        browser.execute_script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[2]; e.dispatchEvent(new "
            "Event(arguments[1]))",
            index, event, value,
        )  # fmt: skip
    until(lambda: len(browser.find_elements("css selector", "#sample-table .open")) == rows)
    browser.execute_script("document.querySelector('#sample-table .open').click()")
    until(lambda: browser.execute_script("return document.getElementById('detail').open"))
    details = browser.execute_script(
        "return [...document.querySelectorAll('#detail .exchange')].map((block) => "
        "[...block.querySelectorAll('.labelled')].map((e) => [e.children[0].textContent, e.children[1].textContent]))"
    )
    assert browser.get_log("browser") == []
    return details


def heading(browser):
    return browser.execute_script("return document.querySelector('#detail .exchange h4').textContent")


def test_everything_hostile_is_reported_as_text(browser, pages):
    question, answer = opened(browser, pages / "asked.html", "q/0")
    assert question == [["prompt", f"user: <audio> {HOSTILE}"], ["expected", HOSTILE]]
    assert answer == [
        ["answered", f"{HOSTILE} said"],
        ["transcript", HOSTILE],
        ["read as", "as read"],
        ["verdict", f"rating[voicebench-open]: {HOSTILE}\nrating[voicebench-open]: [[5]]"],
    ]
    assert heading(browser) == f"model {HOSTILE} 1.50 s, ended: stop, 2.0 s of the sound were cut off"
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert browser.title != "owned"


def test_a_spoken_question_is_reported_by_its_columns_and_an_answer_that_was_not_read_by_the_reason(browser, pages):
    question, answer = opened(browser, pages / "asked.html", "q/1")
    details = dict(question)
    # Only columns that are shown nowhere else: the subset has its own line.
    assert details["about it"] == f'question: Which town? {HOSTILE}\nchoices: ["Rome", "Paris"]'
    assert details["expected"] == "Paris\nLutetia"
    assert answer == [
        ["answered", "I cannot say"],
        ["unparsed", f"there is no option in {HOSTILE}"],
        ["verdict", "rating[voicebench-open]: 4"],
    ]
    subsets = browser.execute_script("return document.querySelector('#detail .exchange small').textContent")
    assert subsets == "subject: towns"


def test_a_failure_is_reported_once(browser, pages):
    _, answer = opened(browser, pages / "asked.html", "q/2")
    assert answer == [["failed", "it was cut off"]]


def test_a_very_long_answer_is_cut_and_says_so(browser, pages):
    _, answer = opened(browser, pages / "asked.html", "q/3")
    details = dict(answer)
    assert details["answered"] == f"{'x' * CHARACTERS} … ({100_000 - CHARACTERS:,} more characters are in the record)"
    assert "read as" not in details
    assert heading(browser).endswith("from the cache")
    assert (pages / "asked.html").stat().st_size < 400_000


def test_a_spoken_answer_is_recognised_next_to_its_prompt_and_owes_no_text(browser, pages):
    question, answer = opened(browser, pages / "spoken.html", "s/0")
    assert dict(question)["prompt"].startswith("text: say this please")
    assert answer == []
    names = browser.execute_script(
        "return [...document.querySelectorAll('#detail .choice, #detail .track')].map((e) => e.textContent)"
    )
    assert any("question" in name for name in names) and any("voice" in name for name in names), names
    assert texts(browser, "#detail .ab button") == ["Aquestion", "Bvoice"]
    assert texts(browser, "#detail [data-mode]") == []


def texts(browser, selector):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.trim())", selector
    )


def test_a_question_that_was_answered_in_text_is_recognised_with_nothing_to_compare(browser, pages):
    opened(browser, pages / "one.html", "test/1")
    until(lambda: browser.execute_script("return document.getElementById('detail').dataset.ready"))
    assert texts(browser, "#detail .track strong") == ["question"]  # and none of the model, which answers in text
    assert not browser.execute_script("return document.getElementById('play').disabled")
    assert texts(browser, "#detail .ab, #detail [data-mode]") == []
    browser.find_element("id", "play").click()  # browsers play sound only after a click
    until(lambda: texts(browser, "#play") == ["Pause"])
    browser.find_element("css selector", ".listen").send_keys("x")  # the key that changes between two sounds
    assert "question of 1.00 s" in texts(browser, "#detail .detail-title small")[0]
    assert browser.get_log("browser") == []
    assert len(texts(browser, "#sample-table .speaker-icon")) == 1
    # The other question had no sound: the page reports no missing audio, of it or of the answer.
    opened(browser, pages / "one.html", "test/0")
    assert texts(browser, "#detail .track, #detail .silent, #play") == []


def test_two_models_of_one_benchmark_answer_side_by_side(browser, pages):
    for id, text in (
        ("test/0", {"Rome says ear", "Paris says mouth"}),
        ("test/1", {"Paris says ear", "Oslo says mouth"}),
    ):
        _, *answers = opened(browser, pages / "models.html", id, rows=2)
        assert {dict(answer)["answered"] for answer in answers} == text
    resize(browser, 1400, 900)
    tops = browser.execute_script(
        "return [...document.querySelectorAll('#detail .answers > *')].map((e) => e.getBoundingClientRect().top)"
    )
    assert len(tops) == 2 and tops[0] == tops[1]


def test_two_benchmarks_on_a_page_are_separated(browser, pages):
    _, *answers = opened(browser, pages / "benchmarks.html", "rivers: test/0", column=1)
    assert [dict(answer)["answered"] for answer in answers] == ["Seine says ear"]
    assert texts(browser, "#detail-title") == ["rivers: test/0"]
    assert texts(browser, "#detail .grid tbody th") == ["rivers/ear"]
    _, *answers = opened(browser, pages / "benchmarks.html", "towns: test/0", rows=2)
    assert {dict(answer)["answered"] for answer in answers} == {"Rome says ear", "Paris says mouth"}
    # An example of a failure opens the sample of its own run.
    browser.execute_script("document.getElementById('detail').close()")
    browser.execute_script("document.querySelector('[data-example] button').click()")
    assert texts(browser, "#detail-title") == texts(browser, "[data-example]")[:1] == ["towns: test/2"]
    # The page does not list metrics of another benchmark as missing for a failed item.
    opened(browser, pages / "benchmarks.html", "towns: test/2", rows=2)
    assert texts(browser, "#detail .grid tbody td") == ["failed", "failed"]
    # Two questions tell no models apart.
    assert texts(browser, "#summary-table td > span") and "≈" not in " ".join(texts(browser, "#summary-table td"))


def test_models_compete_within_one_benchmark(tmp_path):
    """The better value on another benchmark does not compete, and two models that cannot be told apart are both the
    best.
    """
    text = lambda right: [("said", float(n < right)) for n in range(30)]  # noqa: E731
    results = [
        answered(tmp_path / benchmark / name, name, text(right), benchmark=benchmark)
        for benchmark, name, right in (("towns", "a", 20), ("towns", "b", 19), ("towns", "c", 2), ("rivers", "d", 30))
    ]
    page = collect(results, None, audio_bytes=0, max_rows=100, folder=tmp_path).page
    assert {row["label"] for row in page["table"] if any(c and c["best"] for c in row["cells"])} == {"a"}


def test_a_page_of_answers_does_not_speak_of_codecs(browser, pages):
    for name in ("asked", "one", "models", "benchmarks"):
        browser.get((pages / f"{name}.html").as_uri())
        until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
        words = browser.execute_script("return document.body.innerText").lower()
        assert "unprocessed" not in words and "bitrate" not in words
        lengths = texts(browser, '[data-sort="length"]')
        assert lengths == ([] if name == "asked" else ["Question’s length"])


def test_a_run_that_was_stopped_has_its_values_in_their_places(tmp_path):
    run = answered(tmp_path / "part", "ear", [("Rome", 0.25), ("Paris", 0.75)], number=5)
    data = collect([run], None, audio_bytes=0, max_rows=100, folder=tmp_path).data
    assert [sample[0] for sample in data["samples"]] == ["test/5", "test/6"]
    assert data["values"] == [[[0.25, 0.75]]]
