"""The run record: what is written is read back, a transaction is all or nothing, and statistics see it by id."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing

import pytest
from refusals import Containing, refuses

from codec_bench.report.open_run import open_run
from codec_bench.store.export import COLUMNS, export_run
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FACTS = {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}


def fill(folder, samples=("b", "a", "c ü")):
    rows = [Sample(id, f"/data/{id}.wav", "text", f"speaker {k % 2}") for k, id in enumerate(samples)]
    writer = RunWriter(folder, {"seed": 0})
    assert writer.begin({"x": {}, "y": {"rate": 1}}, {"m": FACTS, "w": {**FACTS, "protocol": "w/1"}}, rows) == set()
    for number, id in enumerate(samples):
        scores = {
            "m": Score.ok(number / 2, "m/1"),
            "w": Score.undefined("no words", "w/1")
            if number == 1
            else Score.ok(0.5, "w/1", numerator=2, denominator=4, detail={"hits": 3, "hypothesis": "é"}),
        }
        writer.write(
            [
                (
                    number,
                    ItemRecord(
                        "x",
                        id,
                        "ok",
                        None,
                        scores,
                        bits=100.0,
                        duration_s=1.5,
                        sample_rate_hz=16000,
                        channels=1,
                        notes=("n",),
                    ),
                )
            ]
        )
    return writer


def test_what_is_written_is_read_back(tmp_path):
    fill(tmp_path / "run").close()
    run = open_run(tmp_path / "run")
    assert [s.id for s in run.samples()] == ["b", "a", "c ü"]
    assert list(run.systems) == ["x", "y"] and run.systems["y"] == {"rate": 1}
    rows = list(run.scores())
    assert [(r.id, r.metric, r.value, r.status) for r in rows] == [
        ("b", "m", 0.0, "ok"), ("a", "m", 0.5, "ok"), ("c ü", "m", 1.0, "ok"),
        ("b", "w", 0.5, "ok"), ("a", "w", None, "undefined"), ("c ü", "w", 0.5, "ok"),
    ]  # fmt: skip
    assert rows[3].detail == {"hits": 3, "hypothesis": "é"} and (rows[3].numerator, rows[3].denominator) == (2, 4)
    assert rows[4].reason == "no words" and rows[4].protocol == "w/1"
    item = next(run.items("x"))
    assert (item.id, item.bits, item.notes, item.audio) == ("b", 100.0, ["n"], None)
    assert run.counts() == {"samples": 3, "items": 6, "finished": 3, "failed_items": 0, "failed_scores": 0}


def test_scores_of_some_samples_are_those_of_all_that_are_theirs(tmp_path):
    fill(tmp_path / "run").close()
    run = open_run(tmp_path / "run")
    rows = list(run.scores())
    for requests in ([], ["a"], ["c ü", "b"], ["no such"]):
        assert list(run.scores(samples=requests)) == [row for row in rows if row.id in requests]
    system = rows[0].system
    chosen = [row for row in rows if row.id == "a" and row.system == system]
    assert chosen and list(run.scores(system, samples=["a"])) == chosen


def test_columns_come_by_id_with_what_is_missing(tmp_path):
    fill(tmp_path / "run").close()
    numbers, numerators, denominators, speakers, missing = Run(tmp_path / "run").columns("x", "w")
    assert (numbers, numerators, denominators) == ([0, 2], [2, 2], [4, 4])
    assert speakers == ["speaker 0", "speaker 0"] and missing == {"undefined": 1}
    assert Run(tmp_path / "run").columns("x", "m")[0] == [1, 0, 2], "ordered by id: a, b, c"
    with refuses("unknown_name", kind="metric", name="z"):
        Run(tmp_path / "run").columns("x", "z")


def test_an_item_cannot_be_doubled_and_a_batch_is_all_or_nothing(tmp_path):
    writer = fill(tmp_path / "run")
    scores = {"m": Score.ok(9, "m/1"), "w": Score.ok(9, "w/1")}
    new, old = ItemRecord("y", "b", "ok", None, scores), ItemRecord("x", "b", "ok", None, scores)
    with pytest.raises(sqlite3.IntegrityError):
        writer.write([(0, new), (0, old)])
    assert open_run(tmp_path / "run").counts()["finished"] == 3, "the new one was rolled back with the old one"
    writer.close()


def test_a_continued_run_knows_what_is_finished(tmp_path):
    fill(tmp_path / "run").close()
    again = RunWriter(tmp_path / "run", {"seed": 0})
    assert again.begin({"x": {}, "y": {}}, {"m": FACTS, "w": FACTS}, []) == {(0, 0), (0, 1), (0, 2)}
    again.close()
    with refuses("other_settings", differences="seed was 0, now 1; extra was absent, now 2"):
        RunWriter(tmp_path / "run", {"seed": 1, "extra": 2})


def test_samples_in_another_order_are_refused(tmp_path):
    # The fingerprint of the data does not depend on their order, and items are known by their numbers.
    fill(tmp_path / "run").close()
    writer = RunWriter(tmp_path / "run", {"seed": 0})
    with refuses("samples_reordered", number=1, id="b", now="a"):
        writer.begin({"x": {}, "y": {}}, {"m": FACTS}, [Sample(id, None) for id in ("a", "b", "c ü")])
    writer.close()
    assert [s.id for s in open_run(tmp_path / "run").samples()] == ["b", "a", "c ü"]


def test_items_of_one_sample_are_of_one_sound(tmp_path):
    """A file whose content changed between two starts of a run: the other systems' items are of the earlier one."""

    def item(system, sound):
        scores = {"m": Score.ok(0.5, "m/1")}
        return ItemRecord(
            system, "a", "ok", None, scores, duration_s=1.0, sample_rate_hz=16_000, channels=1, sound=sound
        )

    for sound in ("one", "one", "two"):
        with closing(RunWriter(tmp_path, {})) as writer:
            writer.begin({"x": {}, "y": {}, "z": {}}, {"m": FACTS}, [Sample("a", None)])
            name = "xyz"[writer.count("items")]
            if sound != "two":
                writer.write([(0, item(name, sound))])
                continue
            with refuses("sample_changed", sample="a"):
                writer.write([(0, item(name, sound))])
            assert writer.count("items") == 2


def test_readers_need_no_lock_and_no_room_to_write(tmp_path):
    writer = fill(tmp_path / "run")
    reader = open_run(tmp_path / "run")
    assert len(list(reader.scores())) == 6
    reader.close()
    writer.close()
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["run.lock", "run.seal", "run.sqlite"]


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda p: None, {"code": "not_a_run_folder"}),
        (lambda p: p.write_bytes(b""), {"code": "record_empty"}),
        (
            lambda p: p.write_bytes(b"x" * 5000),
            {"code": "record_damaged", "fault": "record_begins_otherwise"},
        ),
        (
            lambda p: sqlite3.connect(p).execute("CREATE TABLE other (x)"),
            {"code": "not_a_record", "cause": "it has the tables other"},
        ),
    ],
)
def test_what_is_no_run_is_reported(tmp_path, make, says):
    make(tmp_path / "run.sqlite")
    with refuses(**says):
        open_run(tmp_path)


def test_every_export_has_the_same_rows(tmp_path, capsys):
    fill(tmp_path / "run").close()
    run = open_run(tmp_path / "run")
    expected = [tuple(row) for row in run.rows()]
    scores = [
        (r.system, r.id, r.metric, r.value, r.status, r.reason and r.reason.code, r.reason, r.protocol)
        for r in run.scores()
    ]
    assert [row[:8] for row in expected] == scores and len(scores) == 6
    export_run(run, "csv", None)
    table = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert tuple(table[0]) == COLUMNS
    as_text = lambda row: ["" if v is None else str(v) for v in row]  # noqa: E731
    assert table[1:] == [as_text(r) for r in expected]
    export_run(run, "jsonl", tmp_path / "x.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()]
    assert [tuple(line.values()) for line in lines] == expected
    export_run(run, "parquet", tmp_path / "x.parquet")
    import pyarrow.parquet

    assert [tuple(r.values()) for r in pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()] == expected
    with refuses("no_export_format", format="xml"):
        export_run(run, "xml", None)
    with refuses("parquet_to_output"):
        export_run(run, "parquet", None)


@pytest.mark.parametrize("path", ["../secret.flac", "audio/../../secret.flac", "{folder}/secret.flac"])
def test_a_record_names_no_sound_outside_of_its_folder(tmp_path, path):
    """It may be somebody else's, and its page would hold that sound."""
    (tmp_path / "secret.flac").write_bytes(b"x")
    with closing(RunWriter(tmp_path / "run", {})) as writer:
        writer.begin({"x": {}}, {}, [Sample("a", None), Sample("b", None)])
        writer.write([(0, ItemRecord("x", "a", "ok", None, {}, audio="audio/x/a.flac"))])
        writer.write([(1, ItemRecord("x", "b", "ok", None, {}, audio=path.format(folder=tmp_path)))])
    with closing(Run(tmp_path / "run")) as run:
        items = run.items()
        assert next(items).audio == tmp_path / "run" / "audio/x/a.flac"
        with refuses("record_damaged", fault=Containing("secret.flac")):
            list(items)
