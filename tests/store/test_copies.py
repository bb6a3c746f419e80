"""Copies of a run folder whose files are of different moments: the numbers are the sealed ones, or one sentence."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import pytest
import yaml

from codec_bench.messages.errors import DamagedRecord, UserError
from codec_bench.report.results import results_stand, write_results
from codec_bench.store import integrity
from codec_bench.store.record import Run
from codec_bench.store.rescue import RecordCheck, rescue, verify_record
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FACTS = {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}
SAMPLES = [Sample(f"s{n}", None, "words") for n in range(80)]
FILES = ("run.sqlite", "run.sqlite-wal", "run.seal", "run.json", "summary.json", "report.html")
"""The files of a run folder that are read, in the order of the tests' choices."""

MODEL = """
import shutil
from pathlib import Path
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Paid(Model):
    info = ModelInfo("paid", inputs=("text",), outputs=("text",))
    identity = {"version": 1}
    charges = True

    def __init__(self, log, copied="", copy=""):
        self.log, self.copied, self.copy = Path(log), copied, copy

    async def ask(self, request):
        with self.log.open("a") as log:
            log.write(request.id + "\\n")
        if self.copied and len(self.log.read_text().split()) == 25:
            shutil.copytree(self.copied, self.copy)
        return Response(text=request.messages[-1].content[-1].rpartition("|")[2].strip())
"""
BENCHMARK = {
    "version": 1, "title": "Words", "summary": "Words that are repeated.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["accuracy[exact]"],
    "primary": "accuracy[exact]",
}  # fmt: skip


def begin(folder: Path, count: int) -> RunWriter:
    writer = RunWriter(folder, {"seed": 0, "limit": count})
    writer.begin({"x": {}}, {"m": FACTS}, SAMPLES[:count])
    writer.set_meta(state="running", config={"command": "eval"})
    return writer


def write(writer: RunWriter, numbers: range, plus: float = 0.0) -> None:
    for n in numbers:
        writer.write([(n, ItemRecord("x", f"s{n}", "ok", None, {"m": Score.ok(n / 7 + plus, "m/1")}))])


def finish(writer: RunWriter) -> None:
    writer.set_meta(state="finished")
    writer.close()
    with closing(Run(writer.folder)) as run:
        write_results(run)


def rows(folder: Path) -> list:
    with closing(Run(folder)) as run:
        return list(run.rows())


@pytest.fixture(scope="module")
def moments(tmp_path_factory) -> dict[str, Path]:
    """One run at four moments: in its middle, finished, while it is continued with a larger
    limit, and finished again.
    """
    path, retained = tmp_path_factory.mktemp("moments"), {}
    run = path / "run"

    def keep(name: str) -> None:
        retained[name] = Path(shutil.copytree(run, path / name))

    writer = begin(run, 40)
    with closing(Run(run)) as start:
        (run / "run.json").write_text(json.dumps(start.meta))
    write(writer, range(15))
    keep("middle")
    write(writer, range(15, 40))
    finish(writer)
    keep("finished")
    writer = RunWriter(run, {"seed": 0, "limit": 40})
    writer.set_meta(fingerprint={"seed": 0, "limit": 80}, state="running")
    writer.begin({"x": {}}, {"m": FACTS}, SAMPLES)
    with closing(Run(run)) as start:
        (run / "run.json").write_text(json.dumps(start.meta))
    write(writer, range(40, 60))
    keep("continued")
    write(writer, range(60, 80))
    finish(writer)
    keep("larger")
    return retained


def mixed(moments: dict[str, Path], names: dict[str, str], folder: Path) -> Path:
    """A folder with each file as it was at a moment."""
    folder.mkdir()
    for file, moment in names.items():
        if (moments[moment] / file).exists():
            shutil.copy2(moments[moment] / file, folder / file)
    return folder


def stripped(folder: Path) -> dict[str, bytes]:
    """The files that hold what was measured."""
    held = {name: (folder / name).read_bytes() for name in FILES[:2] if (folder / name).exists()}
    return {name: content for name, content in held.items() if content}  # SQLite makes an empty log to read


def checks_of(folder: Path) -> list[RecordCheck]:
    try:
        return verify_record(folder)
    except UserError as error:  # no run record at all
        return [RecordCheck("record", False, error.message)]


def tables(folder: Path) -> int:
    """How many tables SQLite finds in the file and its log."""
    with tempfile.TemporaryDirectory() as target, suppress(sqlite3.Error):
        copy = Path(shutil.copytree(folder, Path(target) / "copy"))
        with closing(sqlite3.connect(copy / "run.sqlite")) as db:
            return db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
    return -1


PAIRS = [
    ("middle", "finished"), ("finished", "larger"), *(pytest.param(pair, marks=pytest.mark.long)
    for pair in (("continued", "larger"), ("middle", "larger"))),
]  # fmt: skip
CHOICES = list(itertools.product((0, 1), repeat=len(FILES)))


@pytest.mark.parametrize("choice", CHOICES, ids=["".join(map(str, one)) for one in CHOICES])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_files_of_two_moments_give_the_sealed_numbers_or_one_sentence(moments, tmp_path, pair, choice):
    names = {file: pair[position] for file, position in zip(FILES, choice)}
    folder = mixed(moments, names, tmp_path / "mixed")
    finished = {moment: rows(moments[moment]) for moment in ("finished", "larger")}
    results = [name for name in integrity.RESULTS if (folder / name).exists()]
    consisting_of = [integrity.state_in(folder / name) for name in results]
    ended = [one for one in consisting_of if one["state"] == "finished"]
    before = stripped(folder)
    try:
        result = rows(folder)
    except UserError:
        result = None
    complete = all(check.is_intact for check in checks_of(folder))
    assert complete == (result is not None), "verify says what the readers do"
    if result is None and not tables(folder) and not ended:
        assert names["run.sqlite"] == "middle"  # SQLite had written nothing into the file itself yet
        return
    if result is None:
        for limit in (40, 80):
            with pytest.raises(DamagedRecord) as caught:
                begin(folder, limit)
            assert caught.value.hint
        assert stripped(folder) == before, "nothing is written to what is refused"
        return
    if result not in finished.values():
        # An unfinished run: nothing in the folder says that there was more.
        assert names["run.sqlite"] in ("middle", "continued") and not (folder / "run.seal").exists()
        with closing(Run(folder)) as run:
            assert run.meta["state"] == "running"
            assert all(one["generation"] < run.meta["generation"] for one in ended)
        return
    moment = "larger" if len(result) == 80 else "finished"
    limit = len(result)
    assert result == finished[moment]
    with closing(Run(folder)) as run:
        if not results_stand(run):
            write_results(run)
        assert all(integrity.state_in(folder / name)["identity"] == run.meta["identity"] for name in integrity.RESULTS)
        assert f"{len(result)} samples<" in (folder / "report.html").read_text()
        assert json.loads((folder / "summary.json").read_text())["systems"]["x"]["metrics"]["m"]["n"] == len(result)
    writer = RunWriter(folder, {"seed": 0, "limit": limit})
    assert len(writer.begin({"x": {}}, {"m": FACTS}, SAMPLES[:limit])) == len(result), "nothing is measured again"
    writer.close()
    assert rows(folder) == result


def test_a_planted_journal_changes_nothing(moments, tmp_path):
    """A log of SQLite's that holds other scores, and a rollback journal, next to a finished record."""
    other = tmp_path / "other"
    shutil.copytree(moments["finished"], other)
    writer = RunWriter(other, {"seed": 0, "limit": 40})
    write_all = [(0, 0, n, 0.123) for n in range(40)]
    with writer._transaction() as changed:
        changed.change("scores", ("value",), write_all)
    log = (other / "run.sqlite-wal").read_bytes()
    writer.close()
    assert all(row.value == 0.123 for row in rows(other)) and len(log) > 4096
    for suffix in ("-wal", "-journal"):
        for sealed in (True, False):
            folder = Path(shutil.copytree(moments["finished"], tmp_path / f"{suffix}{sealed}"))
            (folder / f"run.sqlite{suffix}").write_bytes(log)
            if not sealed:
                (folder / integrity.SEAL).unlink()
            before = (folder / "run.sqlite").read_bytes()
            if suffix == "-journal" and not sealed:  # what is no journal of SQLite's is none
                assert rows(folder) == rows(moments["finished"])
                continue
            for attempt in (rows, lambda path: begin(path, 40), lambda path: rescue(path, tmp_path / "new")):
                with pytest.raises(DamagedRecord) as caught:
                    attempt(folder)
                assert f"run.sqlite{suffix}" in caught.value.hint
            assert not all(check.is_intact for check in verify_record(folder))
            assert (folder / "run.sqlite").read_bytes() == before
            (folder / f"run.sqlite{suffix}").unlink()
            assert rows(folder) == rows(moments["finished"]), "the hint says what to do"


def test_a_journal_next_to_the_file_that_a_link_leads_to_counts(moments, tmp_path):
    stored = Path(shutil.copytree(moments["finished"], tmp_path / "stored"))
    shutil.copy(moments["middle"] / "run.sqlite-wal", stored)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.sqlite").symlink_to(stored / "run.sqlite")
    shutil.copy(stored / integrity.SEAL, folder)
    with pytest.raises(DamagedRecord):
        rows(folder)


@pytest.mark.parametrize("held", [b"", b"{", b"[]", b'{"bytes": 3}', b"\xff"])
def test_a_seal_that_cannot_be_read_is_no_missing_one(moments, tmp_path, held):
    folder = Path(shutil.copytree(moments["finished"], tmp_path / "run"))
    (folder / integrity.SEAL).write_bytes(held)
    with pytest.raises(DamagedRecord):
        rows(folder)
    with pytest.raises(DamagedRecord):
        begin(folder, 40)
    assert not all(check.is_intact for check in verify_record(folder))


def test_an_empty_or_missing_record_next_to_finished_results_is_not_started_anew(moments, tmp_path):
    for name, held in (("empty", b""), ("missing", None)):
        folder = Path(shutil.copytree(moments["finished"], tmp_path / name))
        (folder / integrity.SEAL).unlink()
        (folder / "run.sqlite").unlink()
        if held is not None:
            (folder / "run.sqlite").write_bytes(held)
        with pytest.raises(DamagedRecord):
            begin(folder, 40)
        for result in integrity.RESULTS:
            (folder / result).unlink()
        begin(folder, 40).close()


def test_a_file_of_many_pages_without_a_table_is_damaged_and_not_started_anew(moments, tmp_path):
    """The number of entries on SQLite's first page, which lists the tables, is set to none."""
    folder = Path(shutil.copytree(moments["finished"], tmp_path / "run"))
    for name in (integrity.SEAL, *integrity.RESULTS):
        (folder / name).unlink()
    data = bytearray((folder / "run.sqlite").read_bytes())
    data[103:105] = b"\0\0"
    (folder / "run.sqlite").write_bytes(data)
    assert tables(folder) == 0
    for attempt in (rows, lambda position: begin(position, 40)):
        with pytest.raises(DamagedRecord):
            attempt(folder)
    assert (folder / "run.sqlite").read_bytes() == data and not all(check.is_intact for check in checks_of(folder))


def main(monkeypatch, capsys, *typed) -> tuple[int, str, str]:
    from codec_bench.cli import main

    monkeypatch.setattr(sys, "argv", ["codec-bench", *map(str, typed)])
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    return code, *capsys.readouterr()


def test_a_finished_folder_that_is_copied_over_an_unfinished_copy(tmp_path, monkeypatch, capsys):
    """As `cp -r` and `rsync -a` do it: what the unfinished copy had and the finished folder has not, stays."""
    mine = tmp_path / "words"
    mine.mkdir()
    (mine / "benchmark.yaml").write_text(yaml.safe_dump(BENCHMARK))
    (mine / "README.md").write_text("# words\n")
    (mine / "rows.jsonl").write_text("".join(f'{{"id": "r{n}", "q": "|w{n}", "right": "w{n}"}}\n' for n in range(50)))
    (tmp_path / "paid.py").write_text(MODEL)
    out, copy, log = tmp_path / "out", tmp_path / "copy", tmp_path / "asked"
    options = {"log": log, "copied": out, "copy": copy}

    def ask(folder: Path) -> tuple[int, str, str]:
        inputs = [word for name, value in options.items() for word in ("--set", f"./paid.py:Paid.{name}={value}")]
        return main(
            monkeypatch, capsys, "run", "./words", "--model", "./paid.py:Paid", *inputs, "--no-cache", "--out", folder
        )

    monkeypatch.chdir(tmp_path)
    assert ask(out)[0] == 0
    (database,) = out.rglob("run.sqlite")
    run, copied = database.parent, copy / database.parent.relative_to(out)
    assert (copied / "run.sqlite-wal").stat().st_size > 0, "the copy is of a run in its middle"
    subprocess.run(["cp", "-r", f"{out}/.", f"{copy}/"], check=True)
    held, requested = (copied / "run.sqlite").read_bytes(), log.read_text()
    assert len(requested.split()) == 50
    commands = ("export", "report", "verify", "compare", "export --summary", "show", "validate")
    for command in commands:
        code, _, err = main(monkeypatch, capsys, *command.split(), copied)
        assert code == 2 and "Traceback" not in err and err.count("error: ") <= 1, command
    assert ask(copy)[0] == 2
    assert log.read_text() == requested and (copied / "run.sqlite").read_bytes() == held
    (copied / "run.sqlite-wal").unlink()  # as the hint says
    for command in ("export", "export --summary --format csv"):
        here, there = (main(monkeypatch, capsys, *command.split(), one) for one in (copied, run))
        assert here[0] == 0 and here[1] == there[1]
    assert main(monkeypatch, capsys, "verify", copied)[0] == 0
    assert ask(copy)[0] == 0 and log.read_text() == requested, "no answer is bought again"
