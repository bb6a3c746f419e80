"""The second phase: every answer gets every score or a reason, and a counted failure adds what a wrong answer adds."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refuses

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import AnswerMetric
from codec_bench.benchmark.reading import Chain, Parsed, Unparsed
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.benchmark.scoring.scoring import AnswerScorer, score_all, score_answers, score_sets
from codec_bench.messages import Diagnostic
from codec_bench.report.open_run import open_run
from codec_bench.store.answers import (
    UNUSABLE_ROW,
    AnswerRecord,
    AnswerWriter,
    Exchange,
    QuestionRecord,
    Reading,
    exchanges,
)
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Score

TRANSCRIPT = "transcript[pocketsphinx]"


class Length(AnswerMetric):
    """The number of characters of an answer; the answer `boom` makes it fail."""

    name, protocol, range = "length", "length/1", (0.0, None)

    def compute(self, answers):
        if any(a.text == "boom" for a in answers):
            raise RuntimeError("boom")
        return [Score.ok(len(a.text), self.protocol) for a in answers]


class Share(Length):
    """An aggregate over the characters of all answers."""

    name, protocol, whole_set = "share", "share/1", True

    def compute(self, answers):
        lengths = [score.value for score in super().compute(answers)]
        return [Score.ok(n / max(1, sum(lengths)), self.protocol) for n in lengths]


class Chosen(Length):
    """A metric that needs choices."""

    name, protocol, needs = "chosen", "chosen/1", ("choices", "hint")


def shout(text, fields):
    return Parsed(text.upper()) if "?" not in text else Unparsed(f"'{text[:20]}' is a question" + "!" * 1000)


def half(text, fields):
    return Parsed(text[: len(text) // 2])


PLAIN, SHOUT, HALF = Chain((), ()), Chain(("shout",), (shout,)), Chain(("half",), (half,))
OUTPUT = Chain((TRANSCRIPT, "shout"), (shout,), "pocketsphinx")


def scheme(alone=(), sets=(), chain=PLAIN, chains=None, spoken=None, judged=None):
    names = [m.name for m in (*alone, *sets)] + list(spoken or {}) + list(judged or {})
    by_name = lambda metrics: {m.name: m for m in metrics}  # noqa: E731
    return Scheme(chain, chains or {}, by_name(alone), by_name(sets), judged or {}, spoken or {}, tuple(names))


def exchange(number, text="yes", status="ok", reason=None, expected=("yes",), fields=None, **more):
    question = QuestionRecord(number, f"q{number}", fields or {}, expected)
    return Exchange(question, AnswerRecord(status, reason, text, **more), None, None, None)


FAILED = {"text": None, "status": "failed", "reason": "down"}


def test_an_answer_is_parsed_and_scored():
    items, readings = AnswerScorer("m", scheme([Length()], chain=HALF)).score([exchange(0, "abcd")], {})
    ((number, item),) = items
    assert (number, item.system, item.sample, item.status, item.reason) == (0, "m", "q0", "ok", None)
    assert item.scores["length"].value == 2 and readings == {0: Reading(None, "ab")}


def test_what_cannot_be_read_is_unparsed_and_what_failed_is_failed():
    requests = [exchange(0, "a?"), exchange(1, **FAILED), exchange(2, None, "refused", "too long"), exchange(3, None)]
    items, readings = AnswerScorer("m", scheme([Length()], chain=SHOUT)).score(requests, {})
    scores = [item.scores["length"] for _, item in items]
    assert [s.status for s in scores] == ["unparsed", "failed", "refused", "unparsed"]
    assert [s.reason for s in scores][1:] == ["down", "too long", Diagnostic("no_text")]
    assert scores[0].reason.startswith("'a?' is a question") and len(scores[0].reason) == 300
    assert all(s.value is None and s.detail["wrong"] == [0.0, 1.0] for s in scores)
    assert [item.status for _, item in items] == ["ok", "failed", "refused", "ok"]
    assert all(reading.parsed is None and reading.reason for reading in readings.values())


def test_every_answer_has_every_score():
    requests = [exchange(n, text) for n, text in enumerate(["", "x" * 100_000, "boom", "a\0b", "🎈", "1", "?"])]
    requests += [exchange(7, **FAILED)]
    items, _ = AnswerScorer("m", scheme([Length(), Chosen()], chain=SHOUT)).score(requests, {})
    assert [n for n, _ in items] == list(range(8))
    assert all(set(item.scores) == {"length", "chosen"} for _, item in items)
    assert [item.scores["length"].value for _, item in items] == [0, 100_000, 4, 3, 1, 1, None, None]
    assert all(i.scores["chosen"].reason == Diagnostic("no_fields", fields="choices, hint") for _, i in items)


@pytest.mark.parametrize(
    "name", ["accuracy[exact]", "accuracy[choice]", "wer[answer]", "bleu[13a]", "rouge_l", "refusal_rate"]
)
def test_our_metrics_take_any_answer(name):
    fields = {"choices": ["cat", "dog"], "question": "Which?"}
    texts = ["", "x" * 100_000, "a\0b", "🎈", "\ud83d", "[[5]]", "<script>alert(1)</script>", "A", " \n"]
    requests = [exchange(n, text, expected=("cat",), fields=fields) for n, text in enumerate(texts)] + [
        exchange(99, **FAILED, expected=("cat",), fields=fields)
    ]
    built = Scheme.of([], {name: None})
    items, _ = AnswerScorer("m", built).score(requests, {})
    scores = [item.scores[name] for _, item in items]
    assert len(scores) == len(texts) + 1 and scores[-1].status == "failed"
    assert not [s.reason for s in scores if s.reason and "broke" in s.reason]
    assert all(s.status == "ok" or s.detail["wrong"] for s in scores if s.status != "undefined")


def test_an_unusable_row_is_a_failure_and_not_undefined():
    """Any answer to a row without a reference would be undefined, or refused for its fields."""
    reason = Diagnostic("row_not_json", cause="Expecting value")
    row = {"text": None, "status": "failed", "reason": reason, "expected": ()}
    built = Scheme.of([], {name: None for name in ("accuracy[exact]", "wer[answer]", "ifeval")})
    built = replace(built, alone={**built.alone, "chosen": Chosen()})
    requests = [exchange(0, finish=UNUSABLE_ROW, **row), exchange(1, **row)]
    unusable, unanswered = (item.scores for _, item in AnswerScorer("m", built).score(requests, {})[0])
    assert {name: (score.status, score.reason) for name, score in unusable.items()} == dict.fromkeys(
        built.alone, ("failed", reason)
    )
    assert unusable["accuracy[exact]"].detail["wrong"] == [0.0, 1.0] and "wrong" not in unusable["wer[answer]"].detail
    assert {name: score.status for name, score in unanswered.items()} == {
        "accuracy[exact]": "undefined", "wer[answer]": "undefined", "ifeval": "refused", "chosen": "refused",
    }  # fmt: skip


def test_a_row_that_lacks_a_text_of_the_prompt_is_a_failure_of_each_metric():
    lacks = lambda field: {"text": None, "status": "failed", "finish": UNUSABLE_ROW, "reason": field}  # noqa: E731
    choices = exchange(0, **lacks(Diagnostic("row_without_value", field="choices")))
    sound = exchange(1, **lacks(Diagnostic("row_without_sound", field="audio", path="")))
    scores = score_answers(Chosen(), [choices, sound], {n: Reading(None, None, "no") for n in (0, 1)})
    assert [scores[n].status for n in (0, 1)] == ["failed", "refused"], "a missing sound hides no field of the row"


def test_one_answer_that_breaks_a_metric_fails_alone():
    requests = [exchange(n, text) for n, text in enumerate(["a", "boom", "ccc"])]
    items, _ = AnswerScorer("m", scheme([Length()])).score(requests, {})
    scores = [item.scores["length"] for _, item in items]
    assert [s.value for s in scores] == [1, None, 3]
    assert (scores[1].status, scores[1].reason) == ("failed", "length broke: RuntimeError: boom")


def test_a_worst_that_breaks_does_not_break_the_others():
    class Fragile(Length):
        def worst(self, answer):
            raise KeyError("no")

    items, _ = AnswerScorer("m", scheme([Fragile()])).score([exchange(0, **FAILED), exchange(1)], {})
    assert [item.scores["length"].status for _, item in items] == ["failed", "ok"]
    assert items[0][1].scores["length"].detail == {}


def test_a_metric_that_answers_for_too_few_is_reported():
    class Lazy(Length):
        def compute(self, answers):
            return super().compute(answers)[:-1]

    items, _ = AnswerScorer("m", scheme([Lazy()])).score([exchange(0), exchange(1)], {})
    assert [item.scores["length"].status for _, item in items] == ["failed", "failed"]
    assert items[0][1].scores["length"].reason.as_dict() == {
        "code": "metric_broke",
        "metric": "length",
        "type": "ValueError",
        "message": "it gave 0 scores for 1 answers",
    }


def test_a_metric_may_read_answers_in_a_way_of_its_own():
    halves, complete = Length(), Length()
    halves.name = "halves"
    built = scheme([complete, halves], chain=SHOUT, chains={"halves": HALF})
    items, readings = AnswerScorer("m", built).score([exchange(0, "abcd"), exchange(1, "abc?")], {})
    assert [i.scores["halves"].value for _, i in items] == [2, 2], "its own chain starts from the raw answer"
    assert [i.scores["length"].status for _, i in items] == ["ok", "unparsed"]
    assert readings[0] == Reading(None, "ABCD") and readings[1].parsed is None


def test_cut_audio_and_notes_are_on_the_item():
    items, _ = AnswerScorer("m", scheme([Length()])).score(
        [exchange(0, cut_s=3.25, notes=("slow",), audio="audio/a.flac")], {}
    )
    item = items[0][1]
    assert item.notes == ["slow", "the model did not get 3.2 s of its audio"] and item.audio == "audio/a.flac"


def spoken(words):
    return Score.ok(len(words.split()), "t/1", detail={"transcript": words})


def test_spoken_answers_are_read_through_their_transcript():
    requests = [
        exchange(0, "TEXT"),
        exchange(1, None),
        exchange(2, None),
        exchange(3, "text"),
        exchange(4, **FAILED),
        exchange(5),
    ]
    output = {
        0: {TRANSCRIPT: spoken("hello you")}, 1: {TRANSCRIPT: spoken("")},
        2: {TRANSCRIPT: Score.failed("no ears", "t/1")},
        3: {}, 5: {TRANSCRIPT: spoken("what?")},
    }  # fmt: skip
    items, readings = AnswerScorer("m", scheme([Length()], chain=OUTPUT)).score(requests, output)
    assert [item.scores["length"].value for _, item in items] == [9, 0, None, None, None, None]
    assert [item.scores["length"].status for _, item in items][2:] == ["unparsed", "unparsed", "failed", "unparsed"]
    assert readings[0] == Reading("hello you", "HELLO YOU") and readings[1] == Reading("", "")
    assert readings[2].reason == "no ears" and readings[3].reason == Diagnostic("no_sound_to_transcribe")
    assert readings[4].reason == "down"
    assert readings[5].transcript == "what?" and readings[5].parsed is None


class Quality:
    """Scores in the manner of a metric of sound: 5 is good, 1 is bad."""

    name, protocol, kind = "quality", "q/1", "single"

    def worst(self, text=None, language=None):
        return Score.ok(1.0, "q/1") if text != "unknown" else None


def test_sound_that_is_missing_or_failed_says_what_it_would_add():
    requests = [exchange(0), exchange(1), exchange(2, **FAILED), exchange(3, expected=("unknown",))]
    output = {0: {"quality": Score.ok(4.0, "q/1")}, 1: {"quality": Score.undefined("too short", "q/1")}}
    items, _ = AnswerScorer("m", scheme(spoken={"quality": Quality()})).score(requests, output)
    scores = [item.scores["quality"] for _, item in items]
    assert [(s.value, s.status) for s in scores] == [
        (4.0, "ok"),
        (None, "undefined"),
        (None, "failed"),
        (None, "failed"),
    ]
    assert [s.reason for s in scores] == [None, "too short", "down", Diagnostic("no_audio_to_score")]
    assert [s.detail.get("wrong") for s in scores] == [None, [1.0, 1.0], [1.0, 1.0], None]


def test_a_metric_of_sound_whose_worst_breaks_does_not_break_the_others():
    class Fragile(Quality):
        def worst(self, text=None, language=None):
            raise KeyError("no")

    built = scheme([Length()], spoken={"quality": Fragile()})
    ((_, item), (_, other)) = AnswerScorer("m", built).score([exchange(0, **FAILED), exchange(1)], {})[0]
    assert (item.scores["quality"].reason, item.scores["quality"].detail) == ("down", {})
    assert other.scores["length"].value == 3


def test_the_worst_of_a_corpus_metric_is_its_counts():
    bad, worst = Score.failed("x", "p"), Score.ok(0.0, "p", detail={"counts": [0, 3]})
    assert bad.counting_wrong(worst).detail == {"wrong": [0.0, 3.0]}
    assert bad.counting_wrong(None) is bad and bad.counting_wrong(Score.undefined("y", "p")) is bad


def test_missing_fields_are_refused_and_not_counted_as_wrong():
    requests = [
        exchange(0, fields={"choices": ["a"], "hint": "b"}),
        exchange(1, fields={"choices": ["a"], "hint": None}),
    ]
    readings = {0: Reading(None, "yes"), 1: Reading(None, None, "unread")}
    scores = score_answers(Chosen(), requests, readings)
    assert scores[0].value == 3
    assert (scores[1].status, scores[1].reason, scores[1].detail) == (
        "refused",
        Diagnostic("no_fields", fields="hint"),
        {},
    )


NOBODY_KNOWS = [
    "accuracy[exact]", "accuracy[choice]", "accuracy[official/ultraeval-audio/prefix-match]", "wer[answer]",
    "cer[answer]",
    "bleu[13a]", "coco_bleu[4]", "cider", "rouge_l", "rouge_l[coco]", "meteor[exact-stem]", "ifeval[strict]",
]  # fmt: skip


@pytest.mark.parametrize("name", NOBODY_KNOWS)
def test_a_question_without_a_reference_says_the_same_of_every_answer_and_counts_as_nothing(name):
    metric = load_answer_metric(name)
    fields = {"choices": ["cat", "dog"], "instruction_id_list": [], "kwargs": []}
    known = {
        "fields": {**fields, "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
        "expected": ("cat",),
    }
    unknown = {"fields": fields, "expected": ()}
    requests = [exchange(0, "cat", **known), exchange(1, "cat", **unknown), exchange(2, None, **known),
             exchange(3, None, **unknown), exchange(4, None, "failed", "down", **unknown)]  # fmt: skip
    readings = {n: Reading(None, "cat" if n < 2 else None, "unread") for n in range(5)}
    scores = score_answers(metric, requests, readings)
    assert scores[0].status == "ok" and scores[1].status in ("undefined", "refused") and not scores[1].detail
    assert scores[2].status == "unparsed" and len(scores[2].detail["wrong"]) >= 2
    for n in (3, 4):
        other = scores[1].reason.replace("q1", f"q{n}")
        assert (scores[n].status, scores[n].reason, scores[n].detail) == (scores[1].status, other, {})


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("refusal_rate", {}),
        ("refusal_rate[official/ultraeval-audio/harm]", {}),
        ("ifeval[strict]", {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}),
        ("ifeval[official/audiobench]", {"rule": "Use All Capitals", "rule_target": ""}),
        ("ifeval[official/mmau-pro]", {"task_identifier": "No Commas", "kwargs": {}, "question": "What plays?"}),
    ],
)
def test_what_needs_no_reference_counts_unread_answers_as_wrong(name, fields):
    requests = [exchange(0, None, expected=(), fields=fields), exchange(1, **FAILED, expected=(), fields=fields)]
    readings = {n: Reading(None, None, "unread") for n in range(2)}
    scores = score_answers(load_answer_metric(name), requests, readings)
    assert [scores[n].status for n in range(2)] == ["unparsed", "failed"]
    assert all(score.detail["wrong"] == [0.0, 1.0] for score in scores.values())


def test_what_a_published_rule_cannot_use_is_the_questions_fault_though_it_reads_no_blank_answer():
    metric = load_answer_metric("accuracy[official/air-bench/foundation]")
    requests = [exchange(0, None, expected=("cow",), fields={"choices": ["cat", "dog"]}),
             exchange(1, None, expected=("dog",), fields={"choices": ["cat", "dog"]})]  # fmt: skip
    scores = score_answers(metric, requests, {n: Reading(None, None, "unread") for n in range(2)})
    assert (scores[0].status, scores[0].detail) == ("undefined", {})
    assert scores[0].reason == Diagnostic("reference_outside_choices", reference="cow")
    assert (scores[1].status, scores[1].detail) == ("unparsed", {"wrong": [0.0, 1.0]})


def test_an_answer_that_a_published_rule_cannot_read_counts_as_wrong_like_one_that_the_steps_cannot_read():
    """Of eight answers five are read and one of them is right: 0.2 with failures excluded, and
    1/8 with them as wrong.
    """
    metric = load_answer_metric("accuracy[official/air-bench/foundation]")
    fields = {"choices": ["a dog", "a cat"]}
    texts = ["A. a dog", *["B. a cat"] * 4, *["I hear it"] * 3]
    requests = [exchange(n, text, expected=("a dog",), fields=fields) for n, text in enumerate(texts)]
    scores = score_answers(metric, requests, {n: Reading(None, text, None) for n, text in enumerate(texts)})
    assert [scores[n].value for n in range(8)] == [1, 0, 0, 0, 0, None, None, None]
    assert [scores[n].detail.get("wrong") for n in range(5, 8)] == [[0.0, 1.0]] * 3


def test_a_metric_of_the_complete_set_is_computed_with_the_others():
    class Several(Share):
        def compute(self, answers):
            if len(answers) < 2:
                return [Score.undefined("one answer is no set", self.protocol)] * len(answers)
            return super().compute(answers)

        def worst(self, answer):
            return Score.ok(0.0, self.protocol)

    scores = score_answers(Several(), [exchange(n) for n in range(3)], {
        0: Reading(None, "aa"), 1: Reading(None, None, "unread"), 2: Reading(None, "bb")
    })  # fmt: skip
    assert [scores[n].value for n in (0, 2)] == [0.5, 0.5]
    assert (scores[1].status, scores[1].detail) == ("unparsed", {"wrong": [0.0, 1.0]})


def test_unknown_names_are_reported_before_anything_is_scored():
    with refuses("unknown_name", name="accuracys"):
        Scheme.of([], {"accuracys": None})
    with refuses("unknown_name", name="option-leter"):
        Scheme.of(["option-leter"], {"accuracy[exact]": None})


def test_what_changes_a_score_changes_the_identity():
    base = {"accuracy[exact]": None}
    built = [
        Scheme.of([], base), Scheme.of(["first-line"], base), Scheme.of([], {"accuracy[exact]": ("number",)}),
        Scheme.of([], {"accuracy[contains]": None}), Scheme.of(["transcript[pocketsphinx]"], base),
    ]  # fmt: skip
    identities = [str(one.identity()) for one in built]
    assert len(set(identities)) == len(built)
    assert str(Scheme.of([], base).identity()) == identities[0]
    assert list(Scheme.of([], {"wer[answer]": None, "accuracy[exact]": None}).facts()) == [
        "wer[answer]",
        "accuracy[exact]",
    ]


# ---- with a record ----


def recorded(folder, texts, built):
    """A record of answers; None stands for an answer that failed."""
    writer = AnswerWriter(folder, {"asked": {}, "scored": {}})
    writer.begin({"model": {}}, built.facts(), ())
    pairs = []
    for n, text in enumerate(texts):
        answer = AnswerRecord("ok", None, text) if text is not None else AnswerRecord("failed", "down")
        pairs.append((QuestionRecord(n, f"q{n}", {}, ("yes",)), answer))
    writer.write_answers(pairs)
    return writer


def no_engine(plan):
    raise AssertionError("texts need no engine")


def scored(folder):
    with closing(open_run(folder)) as run:
        return {(s.id, s.metric): (s.value, s.status) for s in run.scores()}


def test_answers_of_a_record_are_scored_in_chunks_and_only_once(tmp_path, monkeypatch):
    from codec_bench.benchmark.scoring import scoring as marking

    monkeypatch.setattr(marking, "CHUNK", 3)
    built, messages = scheme([Length()], chain=SHOUT), []
    writer = recorded(tmp_path, ["a", "bb", None, "d?", "eeeee", "ffffff", "ggggggg"], built)
    with closing(writer), closing(open_run(tmp_path)) as run:
        assert score_all(run, writer, built, [0, 1, 2, 3], {}, no_engine, lambda *a: messages.append(a)) == {}
        finished = {n for _, n in writer.begin({"model": {}}, built.facts(), ())}
        assert finished == {0, 1, 2, 3} and messages == [("scoring", 3, 1, 0.0), ("scoring", 4, 1, 0.0)]
        score_all(run, writer, built, [4, 5, 6], {}, no_engine, lambda *a: None)
        score_all(run, writer, built, [], {}, no_engine, lambda *a: None)
        assert [e.reading.parsed for e in exchanges(run)] == ["A", "BB", None, None, "EEEEE", "FFFFFF", "GGGGGGG"]
    assert [scored(tmp_path)[f"q{n}", "length"] for n in range(7)] == [
        (1, "ok"), (2, "ok"), (None, "failed"), (None, "unparsed"), (5, "ok"), (6, "ok"), (7, "ok"),
    ]  # fmt: skip


def test_a_metric_of_the_complete_set_is_recomputed_when_an_answer_is_added(tmp_path):
    other = Share()
    other.name = "share of halves"
    built = scheme([Length()], [Share(), other], chain=SHOUT, chains={"share of halves": HALF})
    with closing(recorded(tmp_path, ["aa", None, "b?", "cc"], built)) as writer, closing(open_run(tmp_path)) as run:
        score_all(run, writer, built, [0, 1, 2, 3], {}, no_engine, lambda *a: None)
        score_sets(run, writer, built)
        assert [scored(tmp_path)[f"q{n}", "share"] for n in range(4)] == [
            (0.5, "ok"), (None, "failed"), (None, "unparsed"), (0.5, "ok"),
        ]  # fmt: skip
        assert scored(tmp_path)["q2", "share of halves"] == (pytest.approx(1 / 3), "ok")
        writer.write_answers([(QuestionRecord(4, "q4", {}, ("yes",)), AnswerRecord("ok", None, "dddd"))])
        score_all(run, writer, built, [4], {}, no_engine, lambda *a: None)
        score_sets(run, writer, built)
    assert [scored(tmp_path)[f"q{n}", "share"][0] for n in range(5)] == [0.25, None, None, 0.25, 0.5]


def test_a_whole_set_that_breaks_fails_for_everyone_and_says_so(tmp_path):
    built = scheme(sets=[Share()])
    with closing(recorded(tmp_path, ["a", "boom", None], built)) as writer, closing(open_run(tmp_path)) as run:
        score_all(run, writer, built, [0, 1, 2], {}, no_engine, lambda *a: None)
        score_sets(run, writer, built)
    assert [status for _, status in scored(tmp_path).values()] == ["failed"] * 3


def test_spoken_answers_go_through_the_engine_and_come_back_to_their_numbers(tmp_path):
    """The engine gets the spoken answers only, with numbers of its own. Here it gives its results in another order."""
    built = scheme([Length()], chain=OUTPUT)
    (tmp_path / "audio" / "answers").mkdir(parents=True)
    writer = AnswerWriter(tmp_path, {"asked": {}, "scored": {}})
    writer.begin({"model": {}}, built.facts(), ())
    pairs = []
    for n in range(5):
        question = QuestionRecord(n, f"q{n}", {"text": f"say {n}"}, ("yes",), language="en", source=f"/data/{n}.wav")
        answer = AnswerRecord("ok", audio=f"audio/answers/{n}.flac") if n % 2 == 0 else AnswerRecord("failed", "down")
        pairs.append((question, answer))
    writer.write_answers(pairs)
    options = []

    def run_engine(samples, taker, finished, progress):
        options.extend(samples)
        for index in (2, 0, 1):
            sample = samples[index]
            scores = {TRANSCRIPT: spoken(f"heard {sample.id}")}
            taker.write([(index, ItemRecord("generated", sample.id, "ok", None, scores, notes=("from the engine",)))])
        return {"wall_s": 1.0}

    @contextmanager
    def opened(plan):
        assert TRANSCRIPT in str(plan)
        yield SimpleNamespace(load_codecs=lambda: None, run=run_engine), 1

    with closing(writer), closing(open_run(tmp_path)) as run:
        assert score_all(run, writer, built, range(5), {}, opened, lambda *a: None) == {"wall_s": 1.0}
        by_name = {e.question.number: e.reading for e in exchanges(run)}
        assert [by_name[n].transcript for n in range(5)] == ["heard q0", None, "heard q2", None, "heard q4"]
        assert {item.id: list(item.notes) for item in run.items()}["q4"] == ["from the engine"]
    assert [s.id for s in options] == ["q0", "q2", "q4"]
    assert (options[1].text, options[1].language, options[1].audio) == ("say 2", "en", "/data/2.wav")
    assert options[1].estimate == str(tmp_path / "audio/answers/2.flac")
    assert scored(tmp_path)["q2", "length"] == (8, "ok") and scored(tmp_path)["q1", "length"] == (None, "failed")


def test_a_change_of_a_custom_metric_is_a_change_of_the_scores(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from codec_bench.benchmark.metrics.base import AnswerMetric\n"
        "from codec_bench.types import Score\n"
        "class Mine(AnswerMetric):\n"
        "    name, protocol = 'mine', 'mine/1'\n"
        "    def compute(self, answers):\n"
        "        return [Score.ok(1.0, self.protocol) for _ in answers]\n"
    )
    scored = {f"{file}:Mine": None, "wer[answer]": None}
    first = Scheme.of([], scored).identity()
    assert list(first["code"]) == [f"{file}:Mine"] and first == Scheme.of([], scored).identity()
    file.write_text(file.read_text().replace("1.0", "2.0"))
    assert Scheme.of([], scored).identity() != first
    assert "code" not in Scheme.of([], {"wer[answer]": None}).identity()


def test_a_detail_that_no_record_holds_fails_its_answer():
    class Odd(Length):
        def compute(self, answers):
            held = {"a": np.float32(2), "b": object()}
            return [Score.ok(1.0, self.protocol, detail={"it": held[a.text]}) for a in answers]

    items, _ = AnswerScorer("m", scheme([Odd()])).score([exchange(0, "a"), exchange(1, "b")], {})
    scores = [item.scores["length"] for _, item in items]
    assert [s.status for s in scores] == ["ok", "failed"] and scores[0].detail == {"it": 2.0}
