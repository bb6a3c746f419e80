"""Records of shards, merged: row for row the record of one machine."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from contextlib import closing
from zlib import crc32

import pytest
from refusals import Containing, refuses

from codec_bench.data import Shard, Source, part_of
from codec_bench.report.open_run import Run
from codec_bench.store.merge import join_pieces, merge_records
from codec_bench.store.parts import MARK, mark_part, read_part
from codec_bench.store.rescue import verify_record
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

PROTOCOL = "p/1"
METRICS = {"m": {"protocol": PROTOCOL, "kind": "pair", "unit": "", "higher_is_better": True}}
SYSTEMS = {"one": {}, "two": {}}
SAMPLES = [
    Sample(f"u{n:03d}", f"{n}.wav", text="ä" * (n % 3), speaker=f"s{n % 5}", extra={"room": f"r{n % 4}"})
    for n in range(60)
]
RETAINED = {3, 40}
"""The numbers of the samples whose audio is saved."""


def record(system, number):
    if number % 11 == 0:
        return ItemRecord(
            system, SAMPLES[number].id, "failed", f"broke at {number}", {"m": Score.failed("broke", PROTOCOL)}
        )
    audio = f"audio/{system}/{number:07d}.flac" if number in RETAINED else None
    score = Score(number / 7, "ok", None, PROTOCOL, numerator=number, denominator=7.0, detail={"counts": [number, 7]})
    return ItemRecord(
        system, SAMPLES[number].id, "ok", None, {"m": score}, bits=8.0 * number, audio=audio, notes=("silent",)
        if number == 5 else (),
        duration_s=1.0 + number, sample_rate_hz=16000, channels=1,
    )  # fmt: skip


def write(folder, source, fingerprint, state="finished", leave_out=()):
    fingerprint = {**fingerprint, **({"shard": str(source.shard)} if source.shard else {})}
    with closing(RunWriter(folder, fingerprint)) as writer:
        writer.begin(SYSTEMS, METRICS, source, source.numbers, source.columns)
        for system in SYSTEMS:
            done = [number for number in source.numbers if number not in leave_out]
            writer.write([(number, record(system, number)) for number in done])
            for number in RETAINED & set(source.numbers):
                target = folder / "audio" / system / f"{number:07d}.flac"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(f"{system} {number}".encode())
        timings = {
            "items": len(source) * 2,
            "audio_s": 10.0,
            "systems": {"one": {"encode_s": 1.0, "decode_s": 1.0, "audio_s": 10.0}},
        }
        config = {"command": "evaluate", "seed": 0, **({"shard": str(source.shard)} if source.shard else {})}
        late = {"check": "delay", "state": "suspect", "found": "late", "value": source.numbers[0]}
        findings = [late] if source.shard in (None, Shard(2, 4)) else []
        passed = ["batching"] if source.shard in (None, Shard(3, 4)) else []
        writer.set_meta(
            state=state,
            timings=timings,
            config=config,
            data={"name": "made", "samples": len(source)},
            checks={
                "one": {"ok": ["length"], "findings": findings, "unchecked": []},
                "two": {"ok": passed, "findings": [], "unchecked": []},
            },
        )
    if state == "finished":
        with closing(Run(folder)) as run:
            mark_part(run)
    return folder


@pytest.fixture
def parts(tmp_path):
    source = Source("made", list(SAMPLES))
    return [write(tmp_path / f"part{k}", part_of(source, Shard(k, 4)), {"data": "d"}) for k in range(1, 5)]


def rows(folder):
    """Every row of every table that is about samples. Its checksum is that of its cells in this run."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as db:
        ((identity,),) = db.execute("SELECT value FROM meta WHERE key = 'identity'")
        held = {
            table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("samples", "extras", "items", "scores")
        }
    for *cells, checksum in itertools.chain(*held.values()):
        assert checksum == crc32(ascii(tuple(cells)).encode()) ^ int(identity)
    return {table: [row[:-1] for row in result] for table, result in held.items()}


def test_the_merged_record_is_that_of_one_machine(tmp_path, parts):
    complete = write(tmp_path / "whole", Source("made", list(SAMPLES)), {"data": "d"})
    merged = merge_records(parts[::-1], tmp_path / "merged")
    assert merged.complete and merged.parts == (1, 2, 3, 4) == merged.added
    assert rows(merged.folder) == rows(complete)
    assert all(check.is_intact for check in verify_record(merged.folder))
    with closing(Run(merged.folder)) as run, closing(Run(complete)) as one:
        assert list(run.rows()) == list(one.rows())
        # The check of one part found something of the other system, so that nobody is the best in the merged run.
        options = [{**of.summary()["systems"]["two"]["metrics"]["m"], "standing": None} for of in (run, one)]
        assert options[0] == options[1]
        assert run.meta["fingerprint"] == one.meta["fingerprint"]
        assert run.meta["config"] == one.meta["config"] and run.meta["data"] == one.meta["data"]
        assert run.meta["state"] == "finished"
        assert run.meta["timings"]["systems"]["one"]["times_real_time"] == pytest.approx(5.0)
        assert run.meta["checks"]["one"]["ok"] == ["length"]
        assert [results["check"] for results in run.meta["checks"]["one"]["findings"]] == ["delay"]
        assert run.meta["checks"]["two"]["ok"] == ["batching"]
        retained = {item.id: item.audio.read_bytes() for item in run.items("two") if item.audio}
    assert retained == {SAMPLES[n].id: f"two {n}".encode() for n in RETAINED}
    assert sorted(path.name for path in merged.folder.iterdir()) == ["audio", "run.lock", "run.seal", "run.sqlite"]


def test_parts_can_be_added_later(tmp_path, parts):
    out = tmp_path / "merged"
    first = merge_records(parts[:2], out, partial=True)
    assert first.missing == (3, 4) and not first.complete
    with closing(Run(out)) as run:
        assert run.meta["state"] == "partial" and run.meta["merged"]["missing"] == [3, 4]
    with refuses("shards_incomplete", causes="1 of 4 shards are missing: 4/4"):
        merge_records(parts[2:3], out)
    last = merge_records(parts[1:], out)
    assert last.complete and last.added == (3, 4)
    at_once = merge_records(parts, tmp_path / "at_once")
    assert rows(out) == rows(at_once.folder)
    before = (out / "run.sqlite").stat().st_mtime_ns
    assert merge_records(parts, out).added == ()
    assert (out / "run.sqlite").stat().st_mtime_ns == before  # nothing was left to do
    with closing(RunWriter(parts[0], {"data": "d", "shard": "1/4"})) as writer:  # the command of a finished part, again
        writer.set_meta(finished="later", state="running")
    assert merge_records(parts, out).added == ()
    with closing(RunWriter(parts[0], {"data": "d", "shard": "1/4"})) as writer:
        writer.begin(SYSTEMS, METRICS, part_of(Source("made", list(SAMPLES)), Shard(1, 4)))
        writer.delete_failures()
    with refuses("shard_changed", shard="1/4", folder="part1", out="merged"):
        merge_records(parts, out)


def test_missing_doubled_and_foreign_parts_are_named(tmp_path, parts):
    with refuses("shards_incomplete", causes="2 of 4 shards are missing: 1/4, 3/4") as missing:
        merge_records([parts[1], parts[3]], tmp_path / "out")
    assert "--partial" in missing.value.hint
    twice = shutil.copytree(parts[1], tmp_path / "twice")
    with refuses("parts_wrong", causes=Containing("shard 2/4 is there 2 times")):
        merge_records([*parts, twice], tmp_path / "out")
    other = write(tmp_path / "other", part_of(Source("made", list(SAMPLES)), Shard(3, 4)), {"data": "changed"})
    with refuses("parts_wrong", causes=Containing("data was d, now changed")):
        merge_records([*parts[:2], other, parts[3]], tmp_path / "out")
    eighth = write(tmp_path / "eighth", part_of(Source("made", list(SAMPLES)), Shard(3, 8)), {"data": "d"})
    with refuses("parts_wrong", causes=Containing("shards was 4, now 8")):
        merge_records([*parts, eighth], tmp_path / "out")
    complete = write(tmp_path / "whole", Source("made", list(SAMPLES)), {"data": "d"})
    with refuses("parts_wrong", causes=Containing("a run of all samples")):
        merge_records([*parts, complete], tmp_path / "out")
    with refuses("not_merged"):
        merge_records(parts, complete)
    assert not (tmp_path / "out" / "run.sqlite").exists()


def test_unfinished_and_changed_parts_are_refused_and_damaged_ones_always(tmp_path, parts):
    source = part_of(Source("made", list(SAMPLES)), Shard(2, 4))
    shutil.rmtree(parts[1])
    write(parts[1], source, {"data": "d"}, state="running", leave_out=source.numbers[3:])
    with refuses("shards_incomplete", causes=Containing("the run of shard 2/4")):
        merge_records(parts, tmp_path / "out")
    merged = merge_records(parts, tmp_path / "out", partial=True)
    assert merged.unfinished == (2,)
    with closing(Run(tmp_path / "out")) as run:
        assert run.counts()["finished"] == 2 * (len(SAMPLES) - len(source) + 3) and run.counts()["samples"] == 60
    write(parts[1], source, {"data": "d"}, leave_out=source.numbers[:3])
    again = merge_records(parts, tmp_path / "out")
    assert again.complete and again.parts == (1, 2, 3, 4)
    record = parts[2] / "run.sqlite"
    record.write_bytes(record.read_bytes()[:-4096])
    for partial in (False, True):
        with refuses("parts_wrong", wrong=1, parts=4, causes=Containing("is damaged")):
            merge_records(parts, tmp_path / "fresh", partial=partial)


def test_a_part_that_changed_after_it_was_marked_counts_as_unfinished(tmp_path, parts):
    mark = json.loads((parts[0] / MARK).read_text())
    assert mark["shard"] == "1/4" and mark["counts"]["failed_items"] > 0
    with closing(RunWriter(parts[0], {"data": "d", "shard": "1/4"})) as writer:
        writer.set_meta(note="somebody wrote here")
    with refuses("shards_incomplete", causes=Containing("is not finished")):
        merge_records(parts, tmp_path / "out")


def test_a_merge_that_was_killed_leaves_what_was_there(tmp_path, parts):
    out = tmp_path / "merged"
    merge_records(parts[:3], out, partial=True)
    before = (out / "run.sqlite").read_bytes()
    (out / "merging").mkdir()
    (out / "merging" / "run.sqlite").write_bytes(b"half a record")
    (out / "merging" / "run.sqlite.heap").write_bytes(b"half a heap")
    assert (out / "run.sqlite").read_bytes() == before
    assert merge_records(parts, out).complete
    assert not (out / "merging").exists()


def test_the_pieces_of_a_shard_make_its_run(tmp_path, parts):
    source = Source("made", list(SAMPLES))
    pieces = [
        write(tmp_path / f"piece{k}", part_of(source, one), {"data": "d"})
        for k, one in enumerate(Shard(2, 4).pieces(3))
    ]
    join_pieces(pieces, tmp_path / "joined", "2/4")
    assert rows(tmp_path / "joined") == rows(parts[1])
    assert read_part(tmp_path / "joined").finished
    complete = write(tmp_path / "whole", source, {"data": "d"})
    merge_records([parts[0], tmp_path / "joined", *parts[2:]], tmp_path / "out")
    assert rows(tmp_path / "out") == rows(complete)


def test_shards_without_samples_are_not_missing(tmp_path):
    source = Source("made", list(SAMPLES[:5]))
    shards = [shard for k in range(1, 17) if any((shard := Shard(k, 16)).holds(one.id) for one in source)]
    known = {"data": "d", "samples": 5}
    parts = [write(tmp_path / str(shard.number), part_of(source, shard), known) for shard in shards]
    assert len(parts) < 16 and merge_records(parts, tmp_path / "out").complete
    with refuses("shards_incomplete", causes=Containing("shards are missing")):
        merge_records(parts[1:], tmp_path / "less")


def test_a_part_that_tells_what_another_could_not_takes_the_flag_away(tmp_path, parts):
    rule = {"check": "delay", "metrics": ["m"], "flag": "unknown"}
    for number, folder in enumerate(parts, 1):
        with closing(RunWriter(folder, {"data": "d", "shard": f"{number}/4"})) as writer:
            unchecked = {"ok": [], "findings": [], "unchecked": [{"check": "delay", "reason": "cannot be told"}]}
            options = {**unchecked, "ok": ["delay"], "unchecked": []}
            writer.set_meta(
                flag_unchecked=rule, checks={"one": options if number == 4 else unchecked, "two": unchecked}
            )
        with closing(Run(folder)) as run:
            mark_part(run)
    plain, out = [rows(folder)["scores"] for folder in parts], tmp_path / "merged"
    for text, of in ((parts[:2], {"one", "two"}), (parts, {"two"})):
        merge_records(text, out, partial=True)
        with closing(Run(out)) as run:
            valued = [row for row in run.rows() if row.status == "ok"]
            assert valued and all(
                ('"flag":"unknown"' in row.detail.replace(" ", "")) == (row.system in of) for row in valued
            )
        assert all(check.is_intact for check in verify_record(out))
    ones = [row for row in rows(out)["scores"] if row[0] == 0]
    assert ones == sorted(row for item in plain for row in item if row[0] == 0)
