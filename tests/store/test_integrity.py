"""A damaged record is refused with one sentence, `verify` says what can be saved, and `rescue` saves it."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from refusals import refuses

from codec_bench.messages.errors import DamagedRecord, UserError
from codec_bench.stats.recorded import RecordedRun
from codec_bench.store import integrity
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading, exchanges
from codec_bench.store.record import Run
from codec_bench.store.rescue import rescue, verify_record
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FACTS = {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}
REQUESTED = {"seed": 0}
SAMPLES = [Sample(f"sample {k} é", f"/data/{k}.wav", "some text", f"speaker {k % 3}") for k in range(300)]
METRICS = {"m": FACTS, "w": FACTS}


def start(folder: Path) -> tuple[RunWriter, set]:
    writer = RunWriter(folder, REQUESTED)
    return writer, writer.begin({"x": {}, "y": {}}, METRICS, SAMPLES)


def fill(writer: RunWriter, finished: set = frozenset(), numbers=range(300)) -> None:
    for number in numbers:
        for system, name in enumerate("xy"):
            if (system, number) in finished:
                continue
            scores = {"m": Score.ok(number / 7 + system, "m/1"), "w": Score.undefined("no words", "m/1")}
            scores["w"] = Score.ok(number / 3, "m/1", detail={"counts": [1.0, 2.0], "note": "x" * (number % 40)})
            item = ItemRecord(name, SAMPLES[number].id, "ok", None, scores, 8.0, None, ("n",), 1.5, 16000, 1)
            writer.write([(number, item)])


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A closed record and, as a kill leaves it, the same without a seal; with its rows."""
    folder = tmp_path_factory.mktemp("made")
    writer, _ = start(folder / "closed")
    fill(writer)
    shutil.copytree(folder / "closed", folder / "killed")
    writer.close()
    with closing(Run(folder / "closed")) as run:
        return folder, list(run.rows())


def copied(build, tmp_path, which="closed") -> Path:
    return Path(shutil.copytree(build[0] / which, tmp_path / which))


def read(folder: Path) -> list:
    """Everything that commands read of a record."""
    with closing(Run(folder)) as run:
        list(run.samples()), list(run.items()), list(run.scores()), run.counts(), run.meta
        run.columns("x", "m"), RecordedRun(run).scores("x", "w")
        return list(run.rows())


def flip(path: Path, position: int, mask: int = 0x10) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= mask
    path.write_bytes(data)


def edit(folder: Path, sql: str, values=()) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute(sql, values)


def refused(folder: Path) -> None:
    with pytest.raises(DamagedRecord) as caught:
        read(folder)
    assert "rescue" in caught.value.hint
    before = (folder / "run.sqlite").read_bytes()
    with pytest.raises(DamagedRecord) as continuing:
        start(folder)
    assert "make room" not in str(continuing.value)
    assert (folder / "run.sqlite").read_bytes() == before, "a damaged record is not written to"
    assert not all(check.is_intact for check in verify_record(folder))


HALF_DONE = """
import os, sqlite3, sys

db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = DELETE")
db.execute("PRAGMA cache_size = 2")  # what is changed is written into the file at once
db.execute("BEGIN")
db.execute("UPDATE scores SET value = value + 1")
db.execute("CREATE TABLE more AS SELECT * FROM scores")
os._exit(9)
"""


@pytest.mark.parametrize("which", ["closed", "killed"])
def test_what_a_killed_process_has_half_done_is_restored_by_readers(build, tmp_path, which):
    """As where the process is killed while it closes the record:

    SQLite lets no reader do that ("attempt to write a readonly database").
    """
    folder = copied(build, tmp_path, which)
    (folder / integrity.SEAL).unlink(missing_ok=True)  # a writer removes it first and writes it last
    subprocess.run([sys.executable, "-c", HALF_DONE, folder / "run.sqlite"], check=False)
    assert (folder / "run.sqlite-journal").stat().st_size > 0
    assert read(folder) == build[1]
    assert all(check.is_intact for check in verify_record(folder))


def test_a_whole_record_is_verified_and_reads_the_same_without_its_seal(build, tmp_path):
    for which in ("closed", "killed"):
        folder = copied(build, tmp_path, which)
        assert read(folder) == build[1] and len(build[1]) == 1200
        assert all(check.is_intact for check in verify_record(folder)), verify_record(folder)
    assert not (tmp_path / "killed" / integrity.SEAL).exists() and (tmp_path / "killed" / "run.sqlite-wal").exists()


@pytest.mark.parametrize("sealed", [True, False])
def test_a_record_that_was_cut_zeroed_or_grew_is_refused(build, tmp_path, sealed):
    size = (build[0] / "closed" / "run.sqlite").stat().st_size
    retained, half = int(size * 0.977), size // 2
    for number, harm in enumerate(
        (
            lambda data: data[:retained],
            lambda data: data[: retained // 4096 * 4096],
            lambda data: data + b"\0" * 4096,
            lambda data: data[:half] + b"\0" * 4096 + data[half + 4096 :],
            lambda data: b"\0" * size,
            lambda data: data[:50],
        )
    ):
        folder = tmp_path / str(number)
        shutil.copytree(build[0] / "closed", folder)
        if not sealed:
            (folder / integrity.SEAL).unlink()
        (folder / "run.sqlite").write_bytes(harm((folder / "run.sqlite").read_bytes()))
        refused(folder)


def test_no_flipped_bit_gives_another_number(build, tmp_path):
    """With its seal or without it, a record reads the same as before or is refused."""
    rng = random.Random(5)
    folder = copied(build, tmp_path)
    complete = (folder / "run.sqlite").read_bytes()
    for sealed in (True, False):
        if not sealed:
            (folder / integrity.SEAL).unlink()
        seen = 0
        for _ in range(40):
            flip(folder / "run.sqlite", rng.randrange(len(complete)), 1 << rng.randrange(8))
            try:
                assert read(folder) == build[1]
            except UserError:
                seen += 1
            (folder / "run.sqlite").write_bytes(complete)
        # Without a seal, a flip between the rows changes nothing that is read.
        assert seen == 40 if sealed else seen >= 20


@pytest.mark.parametrize("path", [18, 19])
def test_a_header_of_another_form_is_refused_before_anything_is_written(build, tmp_path, path):
    folder = copied(build, tmp_path)
    (folder / integrity.SEAL).unlink()
    flip(folder / "run.sqlite", path)
    refused(folder)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE scores SET value = 99 WHERE sample = 7",
        "DELETE FROM scores WHERE sample = 7",
        "DELETE FROM items WHERE sample = 7",
        "UPDATE samples SET speaker = 'another' WHERE number = 3",
        "UPDATE metrics SET facts = '{}'",
        "UPDATE meta SET value = '{' WHERE key = 'fingerprint'",
        "DELETE FROM meta WHERE key = 'fingerprint'",
        "DROP TABLE scores",
        "ALTER TABLE items RENAME COLUMN status TO other",
        'ALTER TABLE items RENAME COLUMN status TO "sta""tus"',
        'CREATE TABLE "a, b" (number INTEGER PRIMARY KEY)',
    ],
)
def test_what_was_edited_by_hand_is_refused(build, tmp_path, sql):
    folder = copied(build, tmp_path)
    edit(folder, sql)
    refused(folder)
    (folder / integrity.SEAL).unlink()
    refused(folder)


def test_a_row_of_another_run_is_refused(build, tmp_path):
    """The rows that two runs wrote under the same key differ in value, or not even in that."""
    writer, _ = start(tmp_path / "other")
    fill(writer)
    writer.close()
    for table, key in (("scores", "sample = 7"), ("items", "sample = 7"), ("samples", "number = 7"), ("meta", "TRUE")):
        folder = Path(shutil.copytree(build[0] / "closed", tmp_path / table))
        (folder / integrity.SEAL).unlink()
        with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
            db.execute("ATTACH ? AS other", (str(tmp_path / "other" / "run.sqlite"),))
            db.execute(f"REPLACE INTO main.{table} SELECT * FROM other.{table} WHERE {key}")
        refused(folder)
    with refuses("record_damaged", fault={"code": "table_row_changed", "table": "scores", "row": "0, 0, 7"}):
        read(tmp_path / "scores")
    result = rescue(tmp_path / "scores", tmp_path / "new")
    assert result.missing_items == 2 and result.parts["scores"].missing == 4
    writer, finished = start(tmp_path / "new")
    fill(writer, finished)
    writer.close()
    assert read(tmp_path / "new") == build[1]


def of_schema(folder: Path, schema: str) -> Path:
    edit(folder, "UPDATE meta SET value = ? WHERE key = 'schema'", (schema,))
    return folder


@pytest.mark.parametrize("schema", ["0", "3", "9", '"x"', "null"])
def test_a_record_of_another_schema_is_refused(build, tmp_path, schema):
    folder = of_schema(copied(build, tmp_path), schema)
    for attempt in (read, start, verify_record):
        with refuses("record_schema"):
            attempt(folder)
    with refuses("entries_lost"):
        rescue(folder, tmp_path / "new")


@pytest.mark.parametrize("kind", [Run, RunWriter, AnswerWriter])
def test_a_record_with_a_table_of_another_kind_is_refused(tmp_path, kind):
    """A record holds the tables of audio, or also all those of answers, and no others."""
    with closing(AnswerWriter(tmp_path, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"model": {}}, {}, ())
    edit(tmp_path, "DROP TABLE readings")
    (tmp_path / integrity.SEAL).unlink()
    with refuses("record_damaged", fault={"code": "table_missing", "table": "readings"}):
        kind(tmp_path, *() if kind is Run else ({"asked": {}, "scored": {}},))


def test_a_record_that_is_being_written_is_read(tmp_path):
    writer, _ = start(tmp_path)
    fill(writer, numbers=range(10))
    with closing(Run(tmp_path)) as run:
        assert len(list(run.scores())) == 40
        fill(writer, numbers=range(10, 20))
        assert run.counts()["finished"] == 40
    writer.close()
    assert integrity.read_seal(tmp_path) is not None


@pytest.mark.parametrize("sealed", [True, False])
def test_what_is_whole_is_saved_and_the_rest_runs_again(build, tmp_path, sealed):
    folder = copied(build, tmp_path)
    path = folder / "run.sqlite"
    if not sealed:
        (folder / integrity.SEAL).unlink()
    data = bytearray(path.read_bytes())
    # Two pages of rows are zeroed, a value is changed on a third, and the end is cut.
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = bytes(8192)
    data[middle - 4096 + 2000] ^= 1
    path.write_bytes(data[:-4096])
    checks = {check.name: check for check in verify_record(folder)}
    assert not checks["items"].is_intact
    result = rescue(folder, tmp_path / "new")
    assert 100 < len(result.items) < 600 and result.missing_items == 600 - len(result.items)
    assert checks["items"].description == f"{len(result.items)} of 600 are whole"
    expected = {row[:3]: row for row in build[1]}
    saved = read(tmp_path / "new")
    assert len(saved) == 2 * len(result.items) and all(row == expected[row[:3]] for row in saved)
    writer, finished = start(tmp_path / "new")
    assert finished == result.items, "the next run knows which items are lost"
    fill(writer, finished)
    writer.close()
    assert read(tmp_path / "new") == build[1]
    with refuses("folder_not_empty"):
        rescue(folder, tmp_path / "new")


def test_nothing_is_saved_of_what_cannot_be_continued(build, tmp_path):
    folder = copied(build, tmp_path)
    (folder / "run.sqlite").write_bytes(b"\0" * 50000)
    with refuses("nothing_to_save"):
        rescue(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_answers_are_saved_and_the_dropped_ones_are_sent_again(tmp_path):
    writer = AnswerWriter(tmp_path / "run", {"asked": {}, "scored": {}})
    writer.begin({"model": {}}, {"m": FACTS}, ())
    for n in range(200):
        question = QuestionRecord(n, f"q{n}", {"a": 1}, ("yes",), {"split": "x"}, "en", "prompt " * 20)
        writer.write_answers([(question, AnswerRecord("ok", text=f"answer {n} " * 10, usage={"input_tokens": n}))])
        item = ItemRecord("model", f"q{n}", "ok", None, {"m": Score.ok(n, "m/1")})
        writer.write_marked([(n, item)], {n: Reading(None, str(n))})
    writer.close()
    with closing(Run(tmp_path / "run")) as run:
        before = {e.question.number: (e.question, e.answer, e.reading) for e in exchanges(run)}
    edit(tmp_path / "run", "UPDATE answers SET text = 'changed' WHERE number = 11")
    edit(tmp_path / "run", "DELETE FROM questions WHERE number = 12")
    edit(tmp_path / "run", "UPDATE scores SET value = 5 WHERE sample = 13")
    result = rescue(tmp_path / "run", tmp_path / "new")
    assert result.answers == set(range(200)) - {11, 12} and result.missing_answers == 2
    with closing(AnswerWriter(tmp_path / "new", {"asked": {}, "scored": {}})) as again:
        assert set(again.answered()) == result.answers
    with closing(Run(tmp_path / "new")) as run:
        now = {e.question.number: (e.question, e.answer, e.reading) for e in exchanges(run)}
        assert now == {n: held for n, held in before.items() if n in result.answers}
        assert {row.id for row in run.scores()} == {f"q{n}" for n in range(200) if n not in (11, 12, 13)}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE turns SET answers = replace(answers, 'first', 'other') WHERE id = 'q1'",
        "DELETE FROM turns WHERE id = 'q1'",
    ],
)
def test_an_answer_whose_earlier_rounds_are_gone_is_sent_again(tmp_path, damage):
    writer = AnswerWriter(tmp_path / "run", {"asked": {}, "scored": {}})
    writer.begin({"model": {}}, {"m": FACTS}, ())
    for n in range(4):
        prompt = "user: <audio>" if n == 3 else "user: <audio>\n\nassistant: first\n\nuser: <audio>"
        if n != 3:
            writer.write_turns(f"q{n}", [AnswerRecord("ok", text="first")])
        writer.write_answers([(QuestionRecord(n, f"q{n}", prompt=prompt), AnswerRecord("ok", text="last"))])
        writer.write_marked(
            [(n, ItemRecord("model", f"q{n}", "ok", None, {"m": Score.ok(n, "m/1")}))], {n: Reading(None, "last")}
        )
    writer.close()
    edit(tmp_path / "run", damage)
    result = rescue(tmp_path / "run", tmp_path / "new")
    assert (result.answers, result.missing_answers, result.missing_items) == ({0, 2, 3}, 1, 1)
    with closing(Run(tmp_path / "new")) as run:
        assert {e.question.id: [text.text for text, _ in e.turns] for e in exchanges(run)} == {
            "q0": ["first"],
            "q2": ["first"],
            "q3": [],
        }


def test_where_the_record_of_a_benchmark_is_looked_for_is_reported_where_it_was_saved_elsewhere(
    tmp_path, monkeypatch, capsys
):
    from codec_bench.cli import main

    run = tmp_path / "runs" / "capitals" / "m"
    writer = AnswerWriter(run, {"asked": {}, "scored": {}})
    writer.begin({"m": {}}, {"m": FACTS}, ())
    writer.write_answers([(QuestionRecord(0, "q0"), AnswerRecord("ok", text="Paris"))])
    writer.close()
    edit(run, "UPDATE answers SET text = 'Rome'")

    def spoken(*command):
        monkeypatch.setattr(sys, "argv", ["codec-bench", *map(str, command)])
        with suppress(SystemExit):
            main()
        return " ".join(capsys.readouterr().err.split())

    monkeypatch.chdir(tmp_path)
    assert "codec-bench rescue runs/capitals/m --out NEW/capitals/m" in spoken("verify", "runs/capitals/m")
    assert "with --out new, continues it" in spoken("rescue", "runs/capitals/m", "--out", "new/capitals/m")
    elsewhere = spoken("rescue", "runs/capitals/m", "--out", "other")
    assert "move 'other' to NEW/capitals/m; with --out NEW it redoes the rest" in elsewhere


@pytest.mark.parametrize(
    "command",
    ["compare", "report", "export", "show", "validate --json", "verify --json", "leaderboard ultraeval-codec"],
)
def test_every_command_says_one_sentence(build, tmp_path, monkeypatch, capsys, command):
    from codec_bench.cli import main

    folder = copied(build, tmp_path)
    flip(folder / "run.sqlite", 30000)
    monkeypatch.setattr(sys, "argv", ["codec-bench", *command.split(), str(folder)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert end.value.code == 2 and "Traceback" not in err
    assert "damaged" in err or "changed since it was closed" in out or "damaged" in out


OPENING = [
    "compare {run}", "report {run}", "export {run}", "show {run}", "validate {run}", "verify {run}",
    "rescue {run} --out {new}", "merge {run} --out {new}", "site {run} --out {new}",
    "leaderboard ultraeval-codec {run}",
    "leaderboard codecs {run}", "metrics --agree {run}", "agreement {run}",
    "sample-size {run} --metric m --difference 1",
    "listen export {run} --out {new}", "eval --codec g722 --data embedded --metrics stoi --out {run}",
]  # fmt: skip
"""Every command that opens a record; `progress` shows it as a part that cannot be read."""


@pytest.mark.parametrize("command", OPENING, ids=[command.split(" {")[0] for command in OPENING])
def test_every_command_refuses_a_record_of_another_schema_in_one_sentence(
    build, tmp_path, monkeypatch, capsys, command
):
    from codec_bench.cli import main

    folder = of_schema(copied(build, tmp_path), "1")
    (folder / integrity.SEAL).unlink()
    typed = command.format(run=folder, new=tmp_path / "new").split()
    monkeypatch.setattr(sys, "argv", ["codec-bench", *typed])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert end.value.code == 2 and "Traceback" not in err
    assert "schema" in " ".join((out + err).split())
    assert sum(line.startswith("error: ") for line in err.splitlines()) <= 1


def test_details_hold_standard_json(tmp_path):
    writer, _ = start(tmp_path)
    detail = {"ratio": float("nan"), "all": [float("inf"), 1.0]}
    writer.write([(0, ItemRecord("x", SAMPLES[0].id, "ok", None, {"m": Score.ok(1, "m/1", detail=detail)}))])
    writer.close()
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as db:
        assert json.loads(db.execute("SELECT detail FROM scores").fetchone()[0]) == {"ratio": None, "all": [None, 1.0]}


@pytest.mark.parametrize(
    ("sql", "dropped"),
    [
        ("ALTER TABLE readings RENAME COLUMN parsed TO qarsed", None),
        ("ALTER TABLE readings RENAME TO seadings", None),
        ("ALTER TABLE samples RENAME COLUMN sound TO tound", "samples"),
        ("ALTER TABLE answers RENAME TO bnswers", "answers"),
    ],
)
def test_rows_under_a_damaged_definition_are_not_mistaken_for_others(tmp_path, sql, dropped):
    question = lambda n: QuestionRecord(n, f"q{n}", {"a": n}, ("yes",), {}, "en", "p")  # noqa: E731
    with closing(AnswerWriter(tmp_path / "run", {"asked": {}, "scored": {}})) as writer:
        writer.begin({"model": {}}, {"m": FACTS}, ())
        writer.write_answers([(question(n), AnswerRecord("ok", text=f"answer {n}")) for n in range(9)])
        writer.write_marked(
            [(n, ItemRecord("model", f"q{n}", "ok", None, {"m": Score.ok(n, "m/1")})) for n in range(9)],
            {n: Reading(None, str(n)) for n in range(9)},
        )
    edit(tmp_path / "run", sql)
    if dropped:
        with refuses("table_lost", name=dropped):
            rescue(tmp_path / "run", tmp_path / "saved")
        return
    rescue(tmp_path / "run", tmp_path / "saved")
    with closing(Run(tmp_path / "saved")) as run:
        assert [e.answer.text for e in exchanges(run)] == [f"answer {n}" for n in range(9)]
        assert [s.value for s in run.scores()] == list(range(9))
        assert all(e.reading is None for e in exchanges(run)), "the readings are lost, and are made again"
