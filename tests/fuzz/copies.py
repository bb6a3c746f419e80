"""What copies leave behind: journals of another moment next to closed records, and files whose contents were exchanged
at equal paths, sizes and times."""

from __future__ import annotations

import io
import os
import random
import shutil
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

from targets import Target, encoded

from codec_bench.messages.errors import UserError
from codec_bench.types import Message, Request, Sample, Score

LONG_AGO_NS = 10**18
FACTS = {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}


class StrayJournals(Target):
    """Logs and journals of SQLite's next to a closed record, of other moments of it and of other records, and changed:
    the record reads as it was closed or is refused, and nobody writes it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.store.rows import ItemRecord
        from codec_bench.store.writer import RunWriter

        samples = [Sample(f"s{n}", None, "words") for n in range(30)]
        logs = []

        def write(writer: RunWriter, numbers: range, value: float) -> None:
            for n in numbers:
                writer.write([(n, ItemRecord("x", f"s{n}", "ok", None, {"m": Score.ok(value * n, "m/1")}))])
            logs.append((writer.folder / "run.sqlite-wal").read_bytes())

        for name, value in (("whole", 0.5), ("other", 0.25)):
            writer = RunWriter(folder / name, {})
            writer.begin({"x": {}}, {"m": FACTS}, samples)
            write(writer, range(10), value)
            write(writer, range(10, 30), value)
            writer.set_meta(state="finished")
            writer.close()
        writer = RunWriter(folder / "other", {})
        with writer._transaction() as rows:
            rows.change("scores", ("value",), [(0, 0, n, 0.123) for n in range(30)])
        logs.append((folder / "other" / "run.sqlite-wal").read_bytes())
        writer.close()
        journals = []
        for name in ("whole", "other"):
            with closing(sqlite3.connect(folder / name / "run.sqlite")) as db:
                db.execute("PRAGMA cache_size = 1")
                db.execute("BEGIN")
                db.execute("UPDATE scores SET value = 99")
                journals.append((folder / name / "run.sqlite-journal").read_bytes())
                db.execute("ROLLBACK")
        self.complete = {name: (folder / "whole" / name).read_bytes() for name in ("run.sqlite", "run.seal")}
        self.rows = self._read(folder / "whole")
        assert len(self.rows) == 30 and all(len(one) > 512 for one in (*logs, *journals))
        self.seeds = [*(b"w" + log for log in logs), *(b"j" + journal for journal in journals), b"w", b"j"]

    @staticmethod
    def _read(folder: Path) -> list[Any]:
        from codec_bench.store.record import Run

        with closing(Run(folder)) as run:
            return list(run.rows())

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads, verifies, continues and rescues the record with the file next to it."""
        from codec_bench.store.rescue import rescue, verify_record
        from codec_bench.store.writer import RunWriter

        folder, saved = self.folder / "fuzzed", self.folder / "saved"
        for old in (folder, saved):
            shutil.rmtree(old, ignore_errors=True)
        folder.mkdir()
        sealed = rng.random() < 0.7
        for name, content in self.complete.items():
            if sealed or name == "run.sqlite":
                (folder / name).write_bytes(content)
        log, stray = data[:1] != b"j", data[1:]
        (folder / f"run.sqlite-{'wal' if log else 'journal'}").write_bytes(stray)
        refused = False
        try:
            assert self._read(folder) == self.rows, "other numbers"
        except UserError:
            refused = True
        if stray and (sealed or log):
            assert refused, "what another copy left was read"
        assert all(check.is_intact for check in verify_record(folder)) == (not refused), "verify says something else"
        try:
            with closing(RunWriter(folder, {})) as writer:
                assert not refused, "a record that is refused was continued"
                assert writer.count("items") == 30
        except UserError:
            assert refused
        if refused:
            assert (folder / "run.sqlite").read_bytes() == self.complete["run.sqlite"], "it was written"
            try:
                rescue(folder, saved)
                assert self._read(saved) == self.rows, "other numbers were saved"
            except UserError:
                pass


class ExchangedContents(Target):
    """Two files of one size exchange their contents, at equal paths and times: what is read of each is what a reader
    finds that has never seen them.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import pyarrow as pa
        import pyarrow.parquet as pq

        os.environ["CODEC_BENCH_CACHE"] = str(folder / "caches")
        tar, archive, table = io.BytesIO(), io.BytesIO(), io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as opened:
            for name, content in (
                ("a.wav", encoded("WAV")),
                ("a.txt", b"one"),
                ("b.flac", encoded("FLAC")),
                ("b.json", b'{"text": "two"}'),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                opened.addfile(info, io.BytesIO(content))
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("a.wav", encoded("WAV"))
            packed.writestr("b.txt", "words")
        sounds = [{"bytes": encoded("WAV"), "path": f"{n}.wav"} for n in range(3)]
        pq.write_table(pa.table({"audio": sounds, "text": ["a", "b", "c"]}), table, compression="none")
        self.readers: list[tuple[str, Callable[[Path], Any]]] = [
            ("x.tar", self._samples), ("x.zip", self._unpacked), ("x.parquet", self._samples), ("x.wav", self._key),
            ("x.bin", self._weights), ("x.py", self._code),
        ]  # fmt: skip
        wholes = [
            tar.getvalue(),
            archive.getvalue(),
            table.getvalue(),
            encoded("WAV"),
            b"weights",
            b"class Mine:\n    number = 1\n",
        ]
        self.seeds = [bytes([n]) + complete for n, complete in enumerate(wholes)]

    @staticmethod
    def _samples(path: Path) -> list[Any]:
        from codec_bench.audio.clip import Clip, clip_digest
        from codec_bench.data import open_source

        results = []
        for sample in open_source(str(path)):
            try:
                sound = None if sample.audio is None else clip_digest(Clip(sample.audio))
            except UserError:
                sound = "unreadable"
            results.append((sample.id, sample.text, sample.extra.get("problem"), sound))
        return results

    @staticmethod
    def _unpacked(path: Path) -> dict[str, bytes]:
        from codec_bench.data.archives import unpacked

        folder = unpacked(str(path))
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    @staticmethod
    def _key(path: Path) -> str | None:
        from codec_bench.audio.clip import Clip
        from codec_bench.models.cache import ResponseCache

        with closing(ResponseCache.of_user()) as cache:
            return cache.key_of({"model": "m"}, Request("q", (Message("user", (Clip(str(path)),)),)))

    @staticmethod
    def _weights(path: Path) -> str:
        from codec_bench.weights.find import LocalCheckpoint

        return LocalCheckpoint(path.parent, str(path), (path.name,)).identity

    @staticmethod
    def _code(path: Path) -> Any:
        from codec_bench.config.registry import load_attribute

        return load_attribute(f"{path}:Mine").number

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads two files, exchanges their contents, and reads them again."""
        kind = data[0] % len(self.readers) if data else 0
        if kind == len(self.readers) - 1:  # what is changed at random would be run
            data = bytes([kind]) + f"class Mine:\n    number = {rng.randrange(100, 1000)}\n".encode()
        name, read = self.readers[kind]
        complete = self.seeds[kind][1:]
        first = data[1:]
        second = bytearray((complete * (1 + len(first) // len(complete)))[: len(first)])
        if rng.random() < 0.5 and second and kind != len(self.readers) - 1:
            second[rng.randrange(len(second))] ^= 1 << rng.randrange(8)
        contents = [first, bytes(second)]
        folders = [self.folder / "files" / str(n) for n in range(2)]
        shutil.rmtree(self.folder / "files", ignore_errors=True)
        for folder, content in zip(folders, contents):
            folder.mkdir(parents=True)
            (folder / name).write_bytes(content)
            os.utime(folder / name, ns=(LONG_AGO_NS, LONG_AGO_NS))
        # What was written a moment ago counts as old, so that it is remembered.
        with patch("codec_bench.config.file_content.TICK_NS", 0):
            self._exchange(read, [folder / name for folder in folders], contents, rng)

    def _exchange(
        self, read: Callable[[Path], Any], paths: list[Path], contents: list[bytes], rng: random.Random
    ) -> None:
        before = [self._result(read, path) for path in paths]
        assert [self._result(read, path) for path in paths] == before, "a second reading differs"
        for path, content in zip(paths, reversed(contents)):
            self._put(path, content, rng)
        after = [self._result(read, path) for path in paths]
        assert after == before[::-1], f"{paths[0].name} is read as it was before"

    @staticmethod
    def _put(path: Path, content: bytes, rng: random.Random) -> None:
        """Another content at the same path, with the same size and time of modification."""
        changed = path.stat().st_ctime_ns
        if rng.random() < 0.5:
            path.write_bytes(content)
        else:
            (path.parent / "new").write_bytes(content)
            (path.parent / "new").replace(path)
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
        while path.stat().st_ctime_ns == changed:  # the clock of the file system has ticks of milliseconds
            os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))

    @staticmethod
    def _result(read: Callable[[Path], Any], path: Path) -> Any:
        """What is read of a file, or the sentence that refuses it, wherever the file is."""
        try:
            return read(path)
        except UserError as error:
            return error.message.replace(str(path.parent), "")


COPIES: dict[str, type[Target]] = {"exchanged_contents": ExchangedContents, "stray_journals": StrayJournals}
