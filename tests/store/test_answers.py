"""Questions and answers in the record: what is written is read back, and nothing that was answered is ever lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from refusals import Containing, refuses

import codec_bench
from codec_bench.messages.errors import RunMismatch
from codec_bench.report.open_run import open_run
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading, exchanges, has_answers
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FACTS = {"protocol": "m/1", "kind": "answer", "unit": "", "higher_is_better": True, "aggregate": "mean"}
PRINT = {"asked": {"prompt": {"text": "{{ question }}"}, "seed": 0}, "scored": {"process": [], "metrics": {"m": "m/1"}}}
ODD = 'Grüße, 你好 🎈‮ \x00 \t\'; DROP TABLE answers; -- "quoted" \\ \r\n </script>'


def opened(folder, fingerprint=PRINT, **more) -> AnswerWriter:
    writer = AnswerWriter(folder, fingerprint, **more)
    writer.begin({"model": {}}, {"m": FACTS}, ())
    return writer


def pair(number: int, text: str | None = "yes", status: str = "ok", **more):
    question = QuestionRecord(number, f"q{number}", {"question": f"{number}?"}, ("yes",), prompt=f"user: {number}?")
    return question, AnswerRecord(status, None if status == "ok" else "the model broke", text, **more)


def marked(number: int, value: float = 1.0, status: str = "ok"):
    return number, ItemRecord("model", f"q{number}", status, None, {"m": Score.ok(value, "m/1")})


def held(folder):
    with closing(open_run(folder)) as run:
        return list(exchanges(run))


FULL = (
    QuestionRecord(
        3, f"id {ODD}", {"question": ODD, "choices": ["a", "ü"], "n": 1.5, "none": None,
            "deep": {"k": [1, {"x": ODD}]}},
        ("one", ODD, ""), {"level": "A1", "ü": "ß"}, "zh", f"user: {ODD}", "/data/ü.wav",
        "audio/questions/0000003.flac",
        2.5, 16000, 2, f"speaker {ODD}",
    ),
    AnswerRecord(
        "ok", None, ODD, "audio/answers/0000003.flac", {"input_tokens": 10, "cost_usd": 0.001}, 1.25, 0.5, "length",
        3.5, 4,
        True, ("one note", ODD),
    ),
)  # fmt: skip
BARE = (QuestionRecord(0, "bare"), AnswerRecord("failed", "no way to it"))


def test_what_is_written_is_read_back_field_by_field(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([FULL, BARE])
        writer.write_marked([], {})
    first, second = held(tmp_path)
    assert (first.question, first.answer) == BARE and (second.question, second.answer) == FULL
    assert first.reading is None and first.audio_path is None and first.answer_path is None
    with closing(open_run(tmp_path)) as run:
        assert [(s.id, s.text) for s in run.samples()][1] == (FULL[0].id, FULL[0].expected[0])
    assert second.audio_path == tmp_path / "audio/questions/0000003.flac"
    assert second.answer_path == tmp_path / "audio/answers/0000003.flac"


def test_intervals_are_over_the_speakers_of_the_questions(tmp_path):
    values = [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    speakers = ["ann", "ann", "bob", "bob", "cy", "cy", None, None]
    with closing(opened(tmp_path)) as writer:
        for n, speaker in enumerate(speakers):
            question, answer = pair(n)
            writer.write_answers([(replace(question, speaker=speaker), answer)])
        writer.write_marked([marked(n, value) for n, value in enumerate(values)], {n: Reading() for n in range(8)})
    with closing(open_run(tmp_path)) as run:
        assert [sample.speaker for sample in run.samples()] == speakers
        entry = run.summary()["systems"]["model"]["metrics"]["m"]
    expected = codec_bench.interval(values, clusters=speakers)
    assert (entry["units"], expected.units) == (5, 5)
    assert entry["ci95"] == pytest.approx([expected.low, expected.high])
    assert entry["ci95"] != pytest.approx(codec_bench.interval(values).ends)


def test_a_sound_that_was_not_copied_is_where_the_data_named_it(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([(replace(FULL[0], audio=None), FULL[1])])
    assert str(held(tmp_path)[0].audio_path) == "/data/ü.wav"


@pytest.mark.parametrize("text", ["", " ", "x" * 100_000, "🎈" * 50_000, "\x00", "\ufeff", None])
def test_any_answer_comes_back_as_it_was(tmp_path, text):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0, text)])
        writer.write_marked([marked(0)], {0: Reading(text, text, text)})
    (result,) = held(tmp_path)
    assert result.answer.text == text and result.reading == Reading(text, text, text)


def test_half_a_character_does_not_stop_the_record(tmp_path):
    """An answer that was cut in the middle of an emoji holds a lone surrogate, which no UTF-8 can hold."""
    question, answer = pair(0, "fine \ud83d", notes=("\udc00",))
    question = replace(question, fields={"question": "\ud83d?"}, expected=("\ud83d",), prompt="\ud83d", id="q\ud83d")
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([(question, answer)])
        writer.write_marked([], {0: Reading("\ud83d", "\ud83d", "\ud83d")})
    (result,) = held(tmp_path)
    assert (
        result.answer.text == "fine \ufffd"
        and result.question.prompt == "\ufffd"
        and result.answer.notes == ("\ufffd",)
    )


def test_an_answer_takes_the_place_of_the_one_before(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0, "first"), pair(1, None, "failed"), pair(2, "other")])
        assert writer.answered() == {0: "ok", 1: "failed", 2: "ok"}
        writer.write_answers([pair(1, "second try")])
        assert writer.answered() == {0: "ok", 1: "ok", 2: "ok"}
    assert [e.answer.text for e in held(tmp_path)] == ["first", "second try", "other"]
    with closing(open_run(tmp_path)) as run:
        assert [s.id for s in run.samples()] == ["q0", "q1", "q2"], "and its question is there once"


def test_a_question_cannot_push_out_another_of_the_same_name(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0)])
        question, answer = pair(1)
        with pytest.raises(sqlite3.IntegrityError):
            writer.write_answers([(replace(question, id="q0"), answer)])
        assert writer.answered() == {0: "ok"}
    assert [e.question.id for e in held(tmp_path)] == ["q0"]


def test_exchanges_come_in_order_all_or_some(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(n, str(n)) for n in (7, 2, 5, 0)])
    with closing(open_run(tmp_path)) as run:
        assert [e.question.number for e in exchanges(run)] == [0, 2, 5, 7]
        assert [e.answer.text for e in exchanges(run, [7, 2, 99])] == ["2", "7"]
        assert list(exchanges(run, [])) == []


def test_scores_can_be_forgotten_and_created_again(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0), pair(1)])
        writer.write_marked([marked(0), marked(1)], {0: Reading(None, "yes"), 1: Reading(None, None, "no")})
        assert writer.scored("m") == {0, 1}
        writer.delete_scores()
        assert writer.answered() == {0: "ok", 1: "ok"}
        assert writer.begin({"model": {}}, {"other": FACTS}, ()) == set()
        assert writer.scored("other") == set()
    assert [e.reading for e in held(tmp_path)] == [None, None]
    with closing(open_run(tmp_path)) as run:
        assert list(run.scores()) == [] and list(run.items()) == [] and list(run.metrics) == ["other"]


def test_failed_answers_are_forgotten_with_all_derived_from_them(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0), pair(1, None, "failed"), pair(2, None, "refused")])
        items = [marked(0), marked(1, status="failed"), marked(2, status="failed")]
        writer.write_marked(items, {n: Reading(None, str(n)) for n in range(3)})
        assert writer.delete_failed_answers() == 1
        assert writer.answered() == {0: "ok", 2: "refused"}
        assert writer.scored("m") == {0, 2}
        assert writer.delete_failed_answers() == 0
        writer.write_answers([pair(1, "now")])
        writer.write_marked([marked(1)], {1: Reading(None, "now")})
    assert [(e.answer.status, e.reading.parsed) for e in held(tmp_path)] == [
        ("ok", "0"),
        ("ok", "now"),
        ("refused", "2"),
    ]


def test_nothing_of_a_forgotten_answer_stays_with_the_next(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0), pair(1, None, "failed")])
        writer.write_marked([marked(0), marked(1, status="failed")], {n: Reading("heard", "read") for n in range(2)})
        writer.delete_failed_answers()
        writer.write_answers([pair(1, "now")])
    assert [(e.answer.text, e.reading) for e in held(tmp_path)] == [("yes", Reading("heard", "read")), ("now", None)]


def test_failed_scores_of_one_metric_are_forgotten_and_no_others(tmp_path):
    with closing(AnswerWriter(tmp_path, PRINT)) as writer:
        writer.begin({"model": {}}, {"m": FACTS, "other": FACTS}, ())
        writer.write_answers([pair(0), pair(1), pair(2)])
        scores = {0: Score.ok(0.5, "m/1"), 1: Score.failed("no judge", "m/1"), 2: Score.undefined("no", "m/1")}
        writer.write_scores("model", "m", scores)
        writer.write_scores("model", "other", scores)
        writer.delete_failed_scores("m")
        assert (writer.scored("m"), writer.scored("other")) == ({0, 2}, {0, 1, 2})


def test_a_metrics_scores_are_written_over(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0), pair(1)])
        writer.write_scores("model", "m", {0: Score.ok(0.1, "m/1"), 1: Score.failed("no", "m/1")})
        writer.write_scores("model", "m", {0: Score.ok(0.9, "m/1", detail={"replies": ["é"]})})
    with closing(open_run(tmp_path)) as run:
        assert [(s.id, s.value, s.status) for s in run.scores()] == [("q0", 0.9, "ok"), ("q1", None, "failed")]


def test_what_was_requested_must_match_with_the_difference_reported(tmp_path):
    opened(tmp_path).close()
    other = {**PRINT, "asked": {"prompt": {"text": "Say {{ question }}"}, "seed": 0}}
    with refuses("other_settings", differences="asked.prompt.text was {{ question }}, now Say {{ question }}"):
        AnswerWriter(tmp_path, other)
    opened(tmp_path).close()


def test_rules_of_scoring_are_free_until_the_first_score(tmp_path):
    def rules(version):
        return {**PRINT, "scored": {"process": [], "metrics": {"m": f"m/{version}"}}}

    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0)])
    with closing(opened(tmp_path, rules(2))) as writer:
        writer.write_marked([marked(0)], {0: Reading(None, "yes")})
    with refuses("other_settings", differences="scored.metrics.m was m/2, now m/3"):
        AnswerWriter(tmp_path, rules(3))
    with closing(opened(tmp_path, rules(3), replacing=("scored",))) as writer:
        writer.delete_scores()
    with closing(open_run(tmp_path)) as run:
        assert run.meta["fingerprint"] == rules(3)


def test_metrics_that_changed_before_the_first_score_are_the_new_ones(tmp_path):
    """Scores are stored under a metric's number, so an earlier name must not refer to another metric later."""
    with closing(AnswerWriter(tmp_path, PRINT)) as writer:
        writer.begin({"model": {}}, {"old": FACTS, "both": FACTS}, ())
        writer.write_answers([pair(0)])
    with closing(AnswerWriter(tmp_path, {**PRINT, "scored": {"now": "other"}})) as writer:
        writer.begin({"model": {}}, {"both": FACTS, "new": FACTS}, ())
        scores = {"both": Score.ok(1.0, "m/1"), "new": Score.ok(2.0, "m/1")}
        writer.write_marked([(0, ItemRecord("model", "q0", "ok", None, scores))], {})
    with closing(open_run(tmp_path)) as run:
        assert list(run.metrics) == ["both", "new"]
        assert {s.metric: s.value for s in run.scores()} == {"both": 1.0, "new": 2.0}


def test_metrics_that_were_never_used_are_gone_and_used_ones_stay(tmp_path):
    with closing(AnswerWriter(tmp_path, PRINT)) as writer:
        writer.begin({"model": {}}, {"m": FACTS, "second": FACTS, "third": FACTS}, ())
        writer.write_answers([pair(0)])
    with closing(opened(tmp_path)) as writer:
        writer.write_marked([marked(0)], {})
    with closing(open_run(tmp_path)) as run:
        assert list(run.metrics) == ["m"]
    AnswerWriter(tmp_path, PRINT).close()
    with closing(open_run(tmp_path)) as run:
        assert list(run.metrics) == ["m"]
        assert [(s.metric, s.value) for s in run.scores()] == [("m", 1.0)]


def test_what_a_service_reported_of_itself_comes_back(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0, served={"model": "m-2026", "system_fingerprint": ODD}), pair(1)])
    assert [one.answer.served for one in held(tmp_path)] == [{"model": "m-2026", "system_fingerprint": ODD}, {}]


def test_an_answer_is_from_one_attempt_and_not_from_the_cache_unless_it_is_reported(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0), pair(1, attempts=3, cached=True)])
    assert [(one.answer.attempts, one.answer.cached) for one in held(tmp_path)] == [(1, False), (3, True)]
    with closing(open_run(tmp_path)) as run:
        assert run.query("SELECT attempts, cached, cut_s FROM answers ORDER BY number") == [(1, 0, 0.0), (3, 1, 0.0)]


def test_a_writer_repeats_its_messages_and_the_first_written_answers(tmp_path):
    with closing(opened(tmp_path)) as writer:
        writer.set_meta(asked={"limit": [1, "ü"]})
        assert writer.meta("asked") == {"limit": [1, "ü"]} and writer.meta("nothing") is None
        spoken = pair(1, audio="audio/answers/1.flac")
        writer.write_answers(
            [pair(4, "four"), pair(0, ""), spoken, pair(2, "two"), pair(3, "no", "failed"), pair(5, "five")]
        )
        assert writer.first_texts(2) == {2: "two", 4: "four"}


def test_what_is_refused_changes_nothing(tmp_path):
    """Otherwise the next command would add scores of one kind to scores of another."""
    with closing(opened(tmp_path)) as writer:
        writer.write_answers([pair(0)])
        writer.write_marked([marked(0)], {0: Reading(None, "yes")})
    both = {"asked": {"prompt": "another"}, "scored": {"metrics": "others"}}
    with refuses("other_settings", differences=Containing("asked.prompt was")):
        AnswerWriter(tmp_path, both, replacing=("scored",))
    with closing(open_run(tmp_path)) as run:
        assert run.meta["fingerprint"] == PRINT and list(run.metrics) == ["m"]
    unscored = tmp_path / "unscored"
    opened(unscored).close()
    with pytest.raises(RunMismatch):
        AnswerWriter(unscored, both)
    with closing(open_run(unscored)) as run:
        assert run.meta["fingerprint"] == PRINT and list(run.metrics) == ["m"]


def test_one_process_writes_at_a_time(tmp_path):
    with closing(opened(tmp_path)), refuses("run_locked"):
        AnswerWriter(tmp_path, PRINT)


def test_a_run_of_codecs_has_no_answers_and_reads_as_before(tmp_path):
    with closing(RunWriter(tmp_path, {"seed": 0})) as writer:
        writer.begin({"codec": {}}, {"m": FACTS}, [Sample("a", "/data/a.wav")])
        writer.write([(0, ItemRecord("codec", "a", "ok", None, {"m": Score.ok(0.5, "m/1")}))])
    with closing(open_run(tmp_path)) as run:
        assert not has_answers(run)
        assert [(s.id, s.value) for s in run.scores()] == [("a", 0.5)]
        from codec_bench.stats.summary import summarise

        entry = summarise(run).as_dict()["systems"]["codec"]["metrics"]["m"]
        assert entry["value"] == 0.5 and "subsets" not in entry
    opened(tmp_path / "other").close()
    with closing(open_run(tmp_path / "other")) as run:
        assert has_answers(run)


class FullDisk:
    """A connection that has room for so many inserts, each row counted."""

    def __init__(self, db: sqlite3.Connection, room: int) -> None:
        self._db, self._room = db, room

    def executemany(self, sql, rows):
        changed = 0
        for row in rows:
            self._room -= 1
            if self._room < 0:
                full = sqlite3.OperationalError("database or disk is full")
                full.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise full
            changed += self._db.execute(sql, row).rowcount
        return SimpleNamespace(rowcount=changed)

    def __getattr__(self, name):
        return getattr(self._db, name)


@pytest.mark.parametrize("room", range(6))
def test_a_full_disk_is_reported_and_loses_nothing(tmp_path, room):
    writer = opened(tmp_path)
    writer.write_answers([pair(0, "kept")])
    writer.write_marked([marked(0)], {0: Reading(None, "kept")})
    real, writer._db = writer._db, FullDisk(writer._db, room)
    with refuses("record_not_writable", cause=Containing("disk is full")) as caught:
        writer.write_answers([pair(1), pair(2)])
    assert "make room" in caught.value.hint
    writer._db = real
    assert writer.answered() == {0: "ok"}, "two answers are there wholly or not at all"
    writer._db = FullDisk(real, min(room, 2))
    with refuses("record_not_writable", cause=Containing("disk is full")):
        writer.write_marked([marked(1), marked(2)], {1: Reading(None, "x"), 2: Reading(None, "x")})
    writer._db = FullDisk(real, 0)
    with refuses("record_not_writable", cause=Containing("disk is full")):
        writer.delete_scores()
    with refuses("record_not_writable", cause=Containing("disk is full")):
        writer.write_scores("model", "m", {0: Score.ok(0.0, "m/1")})
    writer._db = real
    assert writer.scored("m") == {0}
    writer.write_answers([pair(1), pair(2)])
    writer.write_marked([marked(1), marked(2)], {1: Reading(None, "x"), 2: Reading(None, "x")})
    writer.close()
    assert [(e.answer.text, e.reading.parsed) for e in held(tmp_path)] == [("kept", "kept"), ("yes", "x"), ("yes", "x")]


def test_forgetting_failures_on_a_full_disk_loses_nothing(tmp_path):
    writer = opened(tmp_path)
    writer.write_answers([pair(0), pair(1, None, "failed")])
    writer.write_marked([marked(0), marked(1, status="failed")], {})
    real, writer._db = writer._db, FullDisk(writer._db, 2)
    with refuses("record_not_writable", cause=Containing("disk is full")):
        writer.delete_failed_answers()
    writer._db = real
    assert writer.answered() == {0: "ok", 1: "failed"} and writer.scored("m") == {0, 1}
    writer.write_answers([pair(2)])
    writer.close()
    assert len(held(tmp_path)) == 3


def test_a_killed_writer_leaves_whole_answers(tmp_path):
    """Copies the database file and its log at one moment, as a kill would leave them."""
    import shutil

    folder, copy = tmp_path / "run", tmp_path / "copy"
    with closing(opened(folder)) as writer:
        writer.write_answers([pair(0), pair(1)])
        writer._db.execute("BEGIN IMMEDIATE")
        writer._db.execute("INSERT INTO answers (number, status, cut_s, attempts, cached) VALUES (2, 'ok', 0, 1, 0)")
        shutil.copytree(folder, copy)
        writer._db.execute("ROLLBACK")
    with closing(opened(copy)) as again:
        assert again.answered() == {0: "ok", 1: "ok"}
    assert [e.question.id for e in held(copy)] == ["q0", "q1"]
    assert Run(copy).counts()["samples"] == 2
