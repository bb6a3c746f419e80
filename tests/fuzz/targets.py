"""What is fuzzed: for each reader of bytes that others wrote, whole files to begin with and what must hold of every
case.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import lzma
import math
import os
import random
import shutil
import tarfile
import types
import zipfile
from collections.abc import Sequence
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import soundfile
from mutate import mutate

from codec_bench.decoding.decode import HIGHEST_HZ, LOUDEST, LOWEST_HZ, decode_bytes, read_file
from codec_bench.decoding.table import Locator, read_located
from codec_bench.messages.errors import MissingResource, UserError
from codec_bench.types import Audio

ROOT = Path(__file__).resolve().parents[2]
RATE = 16_000


def tone(seconds: float = 0.08) -> np.ndarray:
    """A tone with some noise, float32 `(samples,)`."""
    rng = np.random.default_rng(3)
    time = np.arange(round(seconds * RATE)) / RATE
    return (0.3 * np.sin(2 * np.pi * 300 * time) + 0.05 * rng.standard_normal(len(time))).astype(np.float32)


def encoded(kind: str, **options: Any) -> bytes:
    """The tone as a file that libsndfile writes."""
    file = io.BytesIO()
    soundfile.write(file, np.stack([tone(), -tone()], 1), RATE, format=kind, **options)
    return file.getvalue()


def is_sound(audio: Audio) -> None:
    """Audio that was read may be any sound, but must be one."""
    assert LOWEST_HZ <= audio.sample_rate_hz <= HIGHEST_HZ and audio.samples.size
    assert np.isfinite(audio.samples).all() and np.abs(audio.samples).max() <= LOUDEST


class Target:
    """One reader. `seeds` are whole files; `run` takes a changed one, and may raise what is in `allowed`."""

    seeds: Sequence[bytes] = ()
    allowed: tuple[type[Exception], ...] = (UserError,)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def changed(self, rng: random.Random) -> bytes:
        """One of the files with a few changes."""
        return mutate(rng.choice(self.seeds), rng, self.seeds)

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads a changed file. An AssertionError says that garbage became a result."""
        raise NotImplementedError

    def written(self, name: str, data: bytes) -> Path:
        """The file with these bytes."""
        path = self.folder / name
        path.write_bytes(data)
        return path


class Sounds(Target):
    """Sound files of every kind, as bytes and on the disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.seeds = [
            encoded("WAV", subtype="PCM_16"), encoded("WAV", subtype="FLOAT"), encoded("WAV", subtype="ULAW"),
            encoded("WAVEX"),
            encoded("FLAC"), encoded("OGG", subtype="VORBIS"), encoded("OGG", subtype="OPUS"), encoded("MP3"),
            encoded("AIFF"),
            encoded("AU"), encoded("CAF"), encoded("W64"), *map(self._through_ffmpeg, ("mp4", "mka", "adts")),
            encoded("FLAC") * 2, b"ffconcat version 1.0\nfile 0.wav\n", b"#EXTM3U\n#EXTINF:1,\n0.wav\n#EXT-X-ENDLIST\n",
            b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 18098 RTP/AVP 0\n",
        ]  # fmt: skip

    def _through_ffmpeg(self, kind: str) -> bytes:
        import av

        file = io.BytesIO()
        with av.open(file, "w", format={"mka": "matroska"}.get(kind, kind)) as container:
            stream = container.add_stream("aac", rate=RATE, layout="mono")
            frame = av.AudioFrame.from_ndarray(tone(0.3)[None], format="fltp", layout="mono")
            frame.rate = RATE
            for packet in [*stream.encode(frame), *stream.encode(None)]:
                container.mux(packet)
        return file.getvalue()

    def run(self, data: bytes, rng: random.Random) -> None:
        """Decodes the file."""
        if rng.random() < 0.5:
            is_sound(decode_bytes(data, "fuzzed"))
        else:
            is_sound(read_file(str(self.written("fuzzed.wav", data))))


class Tars(Target):
    """Tar files of samples, whose members have names that lead to another file of this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.inner = folder / "inner"
        self.inner.mkdir()
        self.foreign = np.ones(4321, np.float32)
        soundfile.write(folder / "foreign.wav", self.foreign / 2, RATE)
        outside = str(folder / "foreign.wav")
        self.seeds = [
            self._tar([("a.wav", encoded("WAV")), ("a.json", b'{"text": "x", "speaker": 3}'),
                ("b.flac", encoded("FLAC")), ("b.txt", b"y")]),
            self._tar([("../foreign.wav", encoded("WAV")), (outside, encoded("WAV")), ("c/../d.wav", encoded("WAV"))]),
            self._tar([("e.json", json.dumps({"audio": outside, "estimate": outside}).encode()),
                ("e.wav", encoded("WAV"))]),
            self._tar([("f.wav", b"ffconcat version 1.0\nfile ../foreign.wav\n"), ("g.wav", encoded("WAV") * 2)]),
        ]  # fmt: skip

    @staticmethod
    def _tar(members: Sequence[tuple[str, bytes]]) -> bytes:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            for name, content in members:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return file.getvalue()

    def run(self, data: bytes, rng: random.Random) -> None:
        """Opens the file as data and reads its sounds: none of them is the file outside."""
        from codec_bench.data import open_source

        path = self.written("inner/fuzzed.tar", data)
        os.utime(path, ns=(0, rng.randrange(2**60)))  # another file for whoever remembers the last one
        for sample in open_source(str(path)):
            assert sample.estimate is None
            if sample.audio is not None:
                with suppress(UserError):
                    audio = Audio.read(sample.audio)
                    is_sound(audio)
                    assert audio.num_samples != len(self.foreign)


class DeclaredSizes(Target):
    """Sound files that end early, or whose header declares another size: all samples, or an error with their name.

    What must come out is known from how the file was made and changed, and from where FFmpeg's demuxer or the header of
    an Ogg page says that a frame or page ends.
    """

    STREAMED = (0, 0x7FFFF000, 0x7FFFFFFF, 2_000_000_000, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
    FIELDS: ClassVar = {
        "WAV": ((b"data", 4, 4, "little"), (b"RIFF", 4, 4, "little")), "RF64": ((b"ds64", 16, 8, "little"),),
        "W64": ((b"data\xf3\xac\xd3\x11", 16, 8, "little"), (b"riff", 16, 8, "little")),
        "AIFF": ((b"SSND", 4, 4, "big"), (b"COMM", 10, 4, "big"), (b"FORM", 4, 4, "big")),
        "AU": ((b".snd", 8, 4, "big"),),
        "CAF": ((b"data", 4, 8, "big"),), "NIST": (), "FLAC": ((b"fLaC", 22, 4, "big"),), "VORBIS": (), "OPUS": (),
        "MP3": ((b"Xing", 8, 4, "big"), (b"Xing", 12, 4, "big"), (b"Info", 8, 4, "big"), (b"Info", 12, 4, "big")),
        "bare MP3": (), "adts": (), "mp4": ((b"mdat", -4, 4, "big"),), "webm": ((b"\x18\x53\x80\x67", 5, 7, "big"),),
        "live webm": (),
    }  # fmt: skip
    """Of every container where its declared sizes stand: behind which bytes, how far, how many bytes, in which order.
    The first is that of the sound."""
    PCM: ClassVar = {"WAV": 0, "RF64": 0, "W64": 24, "AIFF": 8, "AU": 0, "CAF": 4, "NIST": 0}
    """How many bytes beside the sound a declared size counts."""
    PAGES = ("VORBIS", "OPUS")
    PADDING_BYTES = 7

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tone = tone(0.7)
        self.tone[:800] = self.tone[5000:7000] = 0
        self.files = {kind: self._encoded(kind) for kind in self.FIELDS}
        mp3 = self.files["MP3"]
        self.files["bare MP3"] = mp3[mp3.index(b"\xff\xf3", max(mp3.find(b"Xing"), mp3.find(b"Info"))) :]
        self.complete = {kind: decode_bytes(data, kind).samples for kind, data in self.files.items()}
        self.ends = {kind: self._ends(kind, data) for kind, data in self.files.items()}
        self.kind, self.cut_bytes = "", 0
        self.field: tuple[bytes, int] | None = None
        """Of the changed field the bytes in front of it, and its value; None if no size was changed."""

    def _encoded(self, kind: str) -> bytes:
        file, samples = io.BytesIO(), self.tone
        if kind in ("mp4", "adts", "webm", "live webm"):
            import av

            container, codec = kind.split()[-1], {"mp4": "aac", "adts": "aac"}.get(kind, "libopus")
            path = self.folder / f"whole.{container}"
            options = {"mp4": {"movflags": "faststart"}, "live webm": {"live": "1"}}.get(kind, {})
            with av.open(str(path), "w", format=container, options=options) as out:
                stream = out.add_stream(codec, rate=RATE, layout="mono")
                stream.codec_context.open()
                size = stream.codec_context.frame_size
                for at in range(0, samples.size - size, size):
                    pcm = np.rint(samples[None, at : at + size] * 32767).astype(np.int16)
                    frame = av.AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
                    frame.rate, frame.pts = RATE, at
                    out.mux(stream.encode(frame))
                out.mux(stream.encode(None))
            return path.read_bytes()
        settings = {"format": "OGG", "subtype": kind} if kind in self.PAGES else {"format": kind.split()[-1]}
        soundfile.write(file, samples, RATE, **settings)
        return file.getvalue()

    def _ends(self, kind: str, data: bytes) -> dict[int, int | None]:
        """Where a file without a declared size may end and be whole, and how many samples it then has, if known."""
        ends: dict[int, int | None] = {}
        if kind in self.PAGES:
            at = 0
            skipped = int.from_bytes(data[data.index(b"OpusHead") + 10 :][:2], "little") if kind == "OPUS" else 0
            while at < len(data):
                granule, count = int.from_bytes(data[at + 6 : at + 14], "little"), data[at + 26]
                at += 27 + count + sum(data[at + 27 : at + 27 + count])
                ends[at] = (granule - skipped) * RATE // (48_000 if kind == "OPUS" else RATE)
        elif kind in ("FLAC", "bare MP3", "adts", "live webm"):
            import av

            with av.open(io.BytesIO(data)) as container:
                packets = [packet for packet in container.demux() if packet.size]
            for number, packet in enumerate(packets):
                ends[packet.pos + packet.size] = 4096 * (number + 1) if kind == "FLAC" else None
            if kind == "live webm":  # a position is that of the cluster or block in front of the packet
                ends = {data.index(bytes(packet)) + packet.size: None for packet in packets}
        return ends

    def changed(self, rng: random.Random) -> bytes:
        """One of the files with another declared size, without its end, or both."""
        self.kind = rng.choice(tuple(self.files))
        data = bytearray(self.files[self.kind])
        fields = [field for field in self.FIELDS[self.kind] if field[0] in data]
        is_cut = not fields or rng.random() < 0.4
        self.field = None
        if fields and (not is_cut or rng.random() < 0.3):
            mark, skip, size, order = rng.choice(fields)
            at = data.index(mark) + skip
            declared = int.from_bytes(data[at : at + size], order)
            value = rng.choice((*self.STREAMED, declared // 2, 2 * declared, declared + rng.randrange(-2000, 2000)))
            value = min(max(0, value), (1 << 8 * size) - 1)
            data[at : at + size] = value.to_bytes(size, order)
            self.field = (mark, value) if value != declared else None
        ends = [end for end in self.ends[self.kind] if end < len(data)]
        self.cut_bytes = rng.choice((1, 2, 3, 100, rng.randrange(1, len(data)))) if is_cut else 0
        if is_cut and ends and rng.random() < 0.3:
            self.cut_bytes = len(data) - rng.choice(ends)
        if is_cut:
            del data[-self.cut_bytes :]
        return bytes(data)

    def run(self, data: bytes, rng: random.Random) -> None:
        """Decodes the file."""
        lengths, must_read = self._allowed(data)
        case = (self.kind, self.field, self.cut_bytes, lengths)
        try:
            result = decode_bytes(data, "fuzzed").samples
        except UserError as error:
            assert "'fuzzed'" in str(error), error
            assert not must_read, (case, error)
            return
        complete = self.complete[self.kind]
        assert lengths is None or result.shape[1] in lengths, (case, result.shape, complete.shape)
        if self.kind in (*self.PCM, "FLAC"):
            assert np.array_equal(result, complete[:, : result.shape[1]]), case
        elif not self.cut_bytes:
            assert (
                result.shape[1] >= complete.shape[1] and np.abs(result[:, : complete.shape[1]] - complete).max() < 1e-3
            ), case

    def _allowed(self, data: bytes) -> tuple[set[int] | None, bool]:
        """How many samples may come out of a file, None for any number, and whether any must."""
        size, total = len(data), self.complete[self.kind].shape[1]
        if self.kind in self.PCM:
            begin = len(self.files[self.kind]) - 2 * total
            rest, declared = max(0, size - begin), 2 * total
            if self.field is not None and self.field[0] == self.FIELDS[self.kind][0][0]:
                declared = self.field[1] - self.PCM[self.kind]
            is_streamed = declared >= 2 * max(rest, 1) and declared + self.PCM[self.kind] >= 2_000_000_000
            is_streamed |= self.kind == "WAV" and declared == 0
            if rest < declared and not is_streamed:
                return set(), False
            lengths = {rest // 2}
            if rest - declared <= self.PADDING_BYTES or not any(data[begin + declared :]):  # padding
                lengths.add(declared // 2)
            return lengths, bool(rest > 1 and is_streamed and self.kind == "WAV")
        if not self.cut_bytes:
            is_read = self.field is None or (self.kind == "FLAC" and self.field[1] == 0)
            return {total} if self.kind == "FLAC" else None, is_read
        end = self.ends[self.kind].get(size, 0)
        if end == 0 or (self.kind == "FLAC" and (self.field is None or self.field[1] > end)):
            return set(), False
        return None if end is None else {end}, False


class Archives(Target):
    """Archives with flipped bits, or without their end: all of their sounds, or an error with their name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.environ["CODEC_BENCH_CACHE"] = str(folder / "cache")
        self.sounds = {f"{n}.flac": encoded("FLAC") for n in range(4)}
        plain = Tars._tar([*self.sounds.items()])
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.sounds.items():
                archive.writestr(name, content)
        self.files = {
            ".tar": plain, ".tar.gz": gzip.compress(plain, mtime=0), ".tar.xz": lzma.compress(plain),
            ".zip": zipped.getvalue()
        }  # fmt: skip
        self.kind = ""

    def changed(self, rng: random.Random) -> bytes:
        """One of the archives with one to eight bits flipped, or cut."""
        self.kind = rng.choice(tuple(self.files))
        data = bytearray(self.files[self.kind])
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(rng.choice((len(data), min(1024, len(data)))))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        return bytes(data)

    def run(self, data: bytes, rng: random.Random) -> None:
        """Unpacks the archive."""
        from codec_bench.data.archives import unpacked

        path = self.written(f"fuzzed{self.kind}", data)
        os.utime(path, ns=(0, rng.randrange(2**60)))  # another file for whoever remembers the last one
        try:
            files = unpacked(str(path))
        except UserError as error:
            assert path.name in str(error), error
            return
        held = {str(file.relative_to(files)): file.read_bytes() for file in files.rglob("*") if file.is_file()}
        shutil.rmtree(files)
        if self.kind == ".tar":  # it has no checksum of its contents
            assert {name: len(content) for name, content in held.items()} == {
                name: len(content) for name, content in self.sounds.items()
            }
        else:
            assert held == self.sounds, (self.kind, sorted(held))


class Tables(Target):
    """Parquet files with sound: as data, and cell by cell."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = []
        sounds = [{"bytes": encoded("WAV"), "path": f"{n}.wav"} for n in range(4)]
        arrays = pa.array([tone(0.02)] * 4, pa.list_(pa.float32()))
        paths = [{"bytes": None, "path": "0.wav"}] * 4
        for audio, more in ((sounds, {}), (paths, {}), (arrays, {"sampling_rate": [RATE] * 4}), (["a.wav"] * 4, {})):
            table = pa.table({"audio": audio, "text": ["a b"] * 4, "speaker": ["x", "y"] * 2, **more})
            for compression in ("none", "snappy"):
                file = io.BytesIO()
                pq.write_table(table, file, compression=compression, row_group_size=2)
                files.append(file.getvalue())
        self.seeds = files

    def run(self, data: bytes, rng: random.Random) -> None:
        """Opens the table as data, and reads a sound of it."""
        from codec_bench.data import open_source

        path = self.written("fuzzed.parquet", data)
        os.utime(path, ns=(0, rng.randrange(2**60)))  # another file for whoever remembers the last one
        try:
            for sample in list(open_source(str(path)))[:4]:
                if sample.audio is not None:
                    is_sound(Audio.read(sample.audio))
        except UserError:
            pass
        is_sound(read_located(Locator(str(path), "audio", rng.randrange(5))))


class Manifests(Target):
    """Lists of samples as JSON lines, CSV and TSV."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        rows = [{"id": f"é{n}", "audio": f"{n}.wav", "text": 'a, b "c"', "speaker": "x", "age": n} for n in range(5)]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        table = "id,audio,text,speaker\n" + "".join(f'{n},{n}.wav,"a, ""b""",x\n' for n in range(5))
        self.seeds = [lines.encode(), table.encode(), table.replace(",", "\t").encode()]
        self.written("0.wav", encoded("WAV"))

    def run(self, data: bytes, rng: random.Random) -> None:
        """Opens the manifest as data."""
        from codec_bench.data import broken_down, open_source

        path = self.written(f"fuzzed.{rng.choice(('jsonl', 'csv', 'tsv'))}", data)
        source = open_source(str(path))
        ids = [sample.id for sample in source]
        assert len(set(ids)) == len(ids) and all(isinstance(id, str) and id for id in ids)
        assert len(source.fingerprint) == 40 and all(isinstance(reason, str) for reason in source.problems.values())
        broken_down("speaker", source.samples, source.name)


class Ratings(Target):
    """CSV files of ratings by people."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        plain = "id,rater,score,subset\n" + "".join(f"q{n},ann,{n % 6},a\n" for n in range(6))
        pairs = "id,rater,system,other,score\n" + "".join(f"q{n},ann,x,y,{'A' if n % 2 else 'tie'}\n" for n in range(6))
        options = "id;rater;score;choice\n" + "".join(f'q{n};ann;B;"a ""b"";"\n' for n in range(6))
        self.seeds = [plain.encode(), pairs.encode(), options.encode(), plain.replace(",", "\t").encode()]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the ratings; every line is a rating or a problem, and no rating is outside of the scale."""
        from codec_bench.apps.agreement.ratings import read_ratings

        result = read_ratings(self.written("ratings.csv", data), scale=(0, 5))
        assert all(row.id and row.rater in result.raters for row in result.rows)
        assert all(problem.count > 0 and problem.what for problem in result.problems.all())
        values = [row.value for row in result.rows]
        if result.kind == "rating":
            assert all(value is not None and 0 <= value <= 5 for value in values)
        elif result.kind == "preference":
            assert set(values) <= {1.0, 0.0, -1.0}


class Configs(Target):
    """YAML files of every kind that a person writes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        kinds = (
            "configs/model",
            "configs/codec",
            "configs/preset",
            "configs/leaderboard",
            "configs/suite",
            "configs/judge",
        )
        files = [sorted((ROOT / kind).glob("*.yaml"))[:3] for kind in kinds]
        files.append(sorted((ROOT / "benchmarks").glob("*/*/benchmark.yaml"))[:6])
        self.seeds = [file.read_bytes() for some in files for file in some if file.stat().st_size < 20_000]
        shared = "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12))
        self.seeds += [f"a: &a [x, x]\n{shared}{seed.decode()}".encode() for seed in self.seeds[:2]]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the file, and takes it for a model, a codec or a benchmark."""
        from codec_bench.benchmark import load_benchmark
        from codec_bench.benchmark.definition.validate import validate_benchmark
        from codec_bench.codecs import load_codec
        from codec_bench.config import load_yaml, parse_value
        from codec_bench.models import load_model

        parse_value(data[:300].decode("utf-8", "replace"))
        built = self.folder / "mine"
        built.mkdir(exist_ok=True)
        path = built / "benchmark.yaml"
        path.write_bytes(data)
        json.dumps(load_yaml(path), default=str)
        for read in (load_model, load_codec, validate_benchmark, load_benchmark):
            try:
                read(str(built if read is load_benchmark else path))
            except UserError:
                continue


class Records(Target):
    """Run records, with their seal and without it: they read as before, or are refused, and what is saved of them is
    right.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading
        from codec_bench.store.rows import ItemRecord
        from codec_bench.types import Score

        facts = {"protocol": "m/1", "kind": "answer", "unit": "", "higher_is_better": True, "aggregate": "mean"}
        with closing(AnswerWriter(folder / "whole", {"asked": {}, "scored": {}})) as writer:
            writer.begin({"model": {}}, {"m": facts, "n": facts}, ())
            for n in range(24):
                question = QuestionRecord(n, f"q{n}", {"a": n}, ("yes",), {"part": "xy"[n % 2]}, "en", "prompt " * 10)
                writer.write_answers(
                    [(question, AnswerRecord("ok", text=f"answer {n} " * 8, usage={"output_tokens": n}))]
                )
                scores = {"m": Score.ok(n / 7, "m/1", detail={"counts": [1.0, n]}), "n": Score.undefined("no", "m/1")}
                writer.write_marked([(n, ItemRecord("model", f"q{n}", "ok", None, scores))], {n: Reading(None, str(n))})
        self.seeds = [(folder / "whole" / "run.sqlite").read_bytes()]
        self.expected = self._read(folder / "whole")

    def _read(self, folder: Path) -> tuple[Any, ...]:
        from codec_bench.stats.summary import summarise
        from codec_bench.store.answers import exchanges
        from codec_bench.store.record import Run

        with closing(Run(folder)) as run:
            held = [(e.question, e.answer, e.reading) for e in exchanges(run)]
            return list(run.rows()), held, json.dumps(summarise(run).as_dict())

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads, verifies, continues and rescues the record."""
        from codec_bench.store import integrity
        from codec_bench.store.answers import AnswerWriter
        from codec_bench.store.rescue import rescue, verify_record

        folder, saved = self.folder / "fuzzed", self.folder / "saved"
        for old in (folder, saved):
            shutil.rmtree(old, ignore_errors=True)
        folder.mkdir()
        (folder / "run.sqlite").write_bytes(data)
        if rng.random() < 0.3:
            shutil.copy(self.folder / "whole" / integrity.SEAL, folder)
        refused = False
        try:
            assert self._read(folder) == self.expected, "other numbers"
        except UserError:
            refused = True
        try:
            checks = verify_record(folder)
            assert refused or all(check.is_intact for check in checks), "whole and damaged at once"
        except UserError:
            pass
        if rng.random() < 0.3 and data:
            try:
                AnswerWriter(folder, {"asked": {}, "scored": {}}).close()
                assert not refused, "a record that is refused was continued"
                return
            except UserError:
                assert refused
        if rng.random() < 0.5:
            return
        rescue(folder, saved)
        complete = {row[:3]: row for row in self.expected[0]}
        requests = {held[0].number: held for held in self.expected[1]}
        rows, held, _ = self._read(saved)
        assert all(row == complete[row[:3]] for row in rows if row.status != "not_scored"), "a wrong row was saved"
        assert all(one[:2] == requests[one[0].number][:2] for one in held), "a wrong answer was saved"


class Bitstreams(Target):
    """Packets of every classical codec that this machine can encode."""

    NAMES = ("opus-12k", "mp3-32k", "aac-32k", "g722", "g711-ulaw", "g726-32k", "sbc", "aptx", "g723_1", "amr-nb-12.2")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.audio.resample import to_rate
        from codec_bench.codecs import codec_names, load_codec
        from codec_bench.codecs.adapt import split_channels

        known = [name for name in codec_names() if any(name.startswith(stem.partition("-")[0]) for stem in self.NAMES)]
        self.codecs, seeds = {}, []
        for name in known[:40]:
            codec = load_codec(name)
            audio = Audio(tone(0.2), RATE)
            ready = split_channels(to_rate(audio, codec.info.sample_rates_hz[0]), codec.info.channels)[:1]
            try:
                (codes,) = codec.encode(ready)
            except MissingResource:  # its library is not on this machine
                continue
            if codes.packets:
                self.codecs[len(seeds)] = (codec, codes)
                sizes = b"".join(len(packet).to_bytes(2, "little") for packet in codes.packets)
                seeds.append(
                    bytes([len(seeds)]) + len(codes.packets).to_bytes(2, "little") + sizes + b"".join(codes.packets)
                )
        assert len(seeds) >= 5
        self.seeds = seeds

    def run(self, data: bytes, rng: random.Random) -> None:
        """Decodes the packets."""
        from dataclasses import replace

        codec, codes = self.codecs[data[0] % len(self.codecs) if data else 0]
        count = int.from_bytes(data[1:3], "little") % 64
        position, packets = 3 + 2 * count, []
        for n in range(count):
            size = int.from_bytes(data[3 + 2 * n : 5 + 2 * n], "little")
            packets.append(data[position : position + size])
            position += size
        (audio,) = codec.decode([replace(codes, packets=tuple(packets))])
        assert audio.num_samples == codes.num_samples and audio.sample_rate_hz == codes.sample_rate_hz


class Weights(Target):
    """Checkpoints of torch, old and new, and safetensors."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import torch
        from safetensors.torch import save_file

        tensors = {"a.weight": torch.arange(12.0).reshape(3, 4), "b": torch.zeros(5, dtype=torch.int64)}
        torch.save({"model": tensors, "step": 3}, folder / "new.pt")
        torch.save(tensors, folder / "old.pt", _use_new_zipfile_serialization=False)
        save_file(tensors, folder / "x.safetensors")
        self.seeds = [(folder / name).read_bytes() for name in ("new.pt", "old.pt", "x.safetensors")]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the tensors."""
        import torch

        from codec_bench.weights.state import load_into, load_state

        suffix = ".safetensors" if data[8:9] == b"{" else ".pt"
        state = load_state(self.written(f"fuzzed{suffix}", data))
        assert all(isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in state.items())
        load_into(torch.nn.Linear(4, 3), state, path=self.folder)


class Clusters(Target):
    """Clusters of a k-means as joblib writes them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import joblib
        from sklearn.cluster import KMeans

        means = KMeans(6)
        means.cluster_centers_ = np.arange(24, dtype=np.float32).reshape(6, 4)
        joblib.dump(means, folder / "km.bin", protocol=3)
        self.seeds = [(folder / "km.bin").read_bytes()]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the centres."""
        from codec_bench.weights.kmeans import load_centres

        centres = load_centres(self.written("fuzzed.bin", data))
        assert centres.dtype == np.float32 and centres.ndim == 2 and centres.size and np.isfinite(centres).all()


class Alignments(Target):
    """Times of phones: TextGrid files, CTM and JSON."""

    seeds = (
        b'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 0.5\ntiers? <exists>\nsize = 1\n'
        b"item []:\n"
        b'    item [1]:\n        class = "IntervalTier"\n        name = "phones"\n        xmin = 0\n'
        b"        xmax = 0.5\n"
        b"        intervals: size = 2\n        intervals [1]:\n            xmin = 0\n            xmax = 0.2\n"
        b'            text = "AH0"\n'
        b'        intervals [2]:\n            xmin = 0.2\n            xmax = 0.5\n            text = "B"\n',
        b"a 1 0.0 0.2 AH0 0.9\na 1 0.2 0.3 B 1.0\n",
        b'{"a": [[0.0, 0.2, "AH0"], [0.2, 0.5, "B"]], "b": []}',
    )

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the phones and their times."""
        from codec_bench.data.alignments import read_alignments

        suffix = ".json" if data[:1] == b"{" else ".TextGrid" if b"ooText" in data else ".ctm"
        for alignment in read_alignments(self.written(f"a{suffix}", data)).values():
            assert all(alignment.phones) and (alignment.starts_s < alignment.ends_s).all()
            assert np.isfinite(alignment.ends_s).all() and (np.diff(alignment.starts_s) >= 0).all()
            assert set(alignment.at(np.linspace(0, 1, 9)).tolist()) <= {-1, *range(len(alignment.phones))}


class Replies(Target):
    """What judges say, read by every reader."""

    SEEDS = (
        "Rating: 4", "[[3]]", '{"score": 4, "why": "x"}', "```json\n{\"score\": 2}\n```", "4 5", "Yes.", "No, because",
        "Score: 4/5",
        "[{'model': 'model_1', 'rank': 1}]", "1:2:3", '{"一致性": true}', "The answer is good.\nRating: 5\n", "评分：4",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.seeds = [text.encode() for text in self.SEEDS]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the reply."""
        from codec_bench.benchmark.judge import published, replies

        text = data.decode("utf-8", "replace")
        answer = rng.choice(("", "5", "Rating: 4", "a long answer that says nothing"))
        results = [
            replies.read_rating(text, low=1, high=5, answer=answer),
            replies.read_pair(text, low=1, high=5, answer=answer),
            replies.read_yes_no(text, answer=answer),
            replies.read_preferred(text, answer=answer),
        ]
        for verdict in results:
            assert all(0 <= value <= 5 for value in verdict.values.values()), verdict
            assert bool(verdict.values) != bool(verdict.reason), verdict
        for name in published.READERS:
            texts = [text] * 3 if name in published.SEVERAL_REPLIES else [text]
            verdict = replies.read_official(name, texts)
            assert verdict.values or verdict.reason


class Answers(Target):
    """What models say, read by every step of reading."""

    SEEDS = (
        "The answer is B.", "(C) 12 apples", '{"content": "A"}', "<think>no</think>Yes, 3.5 %", "ANSWER: happy",
        "```json\n{}\n```",
        "答案是：C", "First line\nsecond, A or B", "three hundred and five", "<b>x</b> <answer>D</answer>",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.benchmark.reading import TRANSCRIPT, WITH_ARGUMENT, load_steps, step_names

        self.seeds = [text.encode() for text in self.SEEDS]
        self.chains = {}
        for name in step_names():
            if name != TRANSCRIPT:
                named = f"{name}[content]" if name in WITH_ARGUMENT else name
                self.chains[named] = load_steps([named])
        self.fields = {
            "options": ["apple", "pear", "fig"],
            "choices": ["happy", "sad"],
            "answer": "A",
            "question": "Which?",
        }

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the answer."""
        from codec_bench.benchmark.reading import Parsed, Unparsed

        text = data.decode("utf-8", "replace")
        for chain in self.chains.values():
            result = chain(text, self.fields)
            assert (isinstance(result, Unparsed) and result.reason) or (
                isinstance(result, Parsed) and isinstance(result.text, str)
            )


class Services(Target):
    """What services of every kind reply, with every status."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.models import load_model

        sound = __import__("base64").b64encode(encoded("WAV")).decode()
        usage = {"prompt_tokens": 3, "completion_tokens": 5, "prompt_tokens_details": {"audio_tokens": 1}}
        message = {
            "role": "assistant",
            "content": "x",
            "audio": {"data": sound, "transcript": "x"},
            "reasoning_content": "y",
        }
        chat = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        delta = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
        google = {
            "candidates": [{"content": {"parts": [{"text": "x"},
                {"inlineData": {"mimeType": "audio/wav", "data": sound}}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5},
        }  # fmt: skip
        error = {"error": {"message": "no", "code": 400, "details": [{"reason": "x"}]}}
        actual = {"result": {"text": "x", "audio": sound, "rate": RATE}}
        events = "".join(f"data: {json.dumps(item)}\n\n" for item in (delta, delta)) + "data: [DONE]\n\n"
        self.seeds = [
            *(json.dumps(body).encode() for body in (chat, google, error, actual)),
            events.encode(),
            encoded("WAV"),
        ]
        base = {"base_url": "http://localhost:1", "model": "m", "attempts": 1}
        json_options = {
            "body": {"q": "{{ text }}"},
            "text_path": "result.text",
            "audio_path": "result.audio",
            "rate_path": "result.rate",
        }
        self.models = [
            load_model("openai-chat", base), load_model("openai-chat", {**base, "stream": True}),
            load_model("gemini-2.5-flash", {"base_url": "http://localhost:1"}),
            _custom(folder, {**base, **json_options}), _custom(folder, {**base, **json_options, "reply": "pieces"}),
        ]  # fmt: skip

    def run(self, data: bytes, rng: random.Random) -> None:
        """Takes the bytes for a service's reply."""
        from codec_bench.benchmark.asking.sending import send_requests
        from codec_bench.models.endpoints.retries import Denied, Reply, RequestFailed, Retryable
        from codec_bench.types import Message, Request

        model, status = rng.choice(self.models), rng.choice((200, 200, 200, 400, 404, 429, 500))
        kind = rng.choice(("application/json", "text/event-stream", "text/html", ""))
        response = types.SimpleNamespace(
            status_code=status, headers={"content-type": kind, "retry-after": data[:9].decode("latin-1")}
        )

        async def pieces() -> Any:
            yield data

        response.aiter_bytes = pieces

        async def send(method: str, path: str, read: Any, **body: Any) -> Any:
            try:
                if status != 200:
                    raise model.client.error(status, data.decode("utf-8", "replace"), response.headers)
                return Reply(await read(response, 0.0), 0.1, 1)
            except (Retryable, Denied) as trouble:
                raise RequestFailed(trouble.reason) from None

        model.client.send = send

        async def query() -> Any:
            request = Request("a", (Message("user", ("?",)),), {"text": "?"})
            async with aclosing(send_requests(model, [request])) as pairs:
                return (await anext(pairs))[1]

        answer = asyncio.run(query())
        assert answer.status in ("ok", "failed", "refused") and (answer.status == "ok") != bool(answer.reason)
        assert "the model raised" not in (answer.reason or ""), answer.reason
        assert answer.text is None or isinstance(answer.text, str)
        assert all(math.isfinite(count) and 0 <= count < 2**63 for count in answer.usage.values())
        if answer.audio is not None:
            is_sound(answer.audio)


def _custom(folder: Path, options: dict[str, Any]) -> Any:
    from codec_bench.models import load_model

    path = folder / f"endpoint{len(list(folder.glob('endpoint*')))}.yaml"
    config = {"version": 1, "summary": "x", "kind": "json-endpoint", "outputs": ["text"], "options": options}
    path.write_text(json.dumps(config), encoding="utf-8")
    return load_model(str(path))


class Frames(Target):
    """What a worker sends over its pipe, and the answers in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.workers import wire

        self.allowed = (UserError, wire.WireError)
        self.memory = wire.Memory(wire.new_memory_file())
        sound = {"samples": np.ascontiguousarray(tone()[None]), "sample_rate_hz": RATE}
        packed = [wire.pack(item) for item in ({"text": "x", "usage": {"n": 3}}, {"audio": sound, "notes": ["n"]})]
        body = wire.batch_body(7, packed, self.memory)
        self.seeds = [
            wire.frame(wire.REPLY, body),
            wire.frame(wire.BROKEN, b'{"reason":"x"}'),
            wire.frame(wire.HELLO, b'{"protocol":1}'),
        ]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads frames as the host does."""
        from codec_bench.models import isolated
        from codec_bench.workers import wire
        from codec_bench.workers.pool import WorkerReply

        while len(data) >= wire.START.size:
            kind, size = wire.length(data[: wire.START.size])
            body, data = data[wire.START.size : wire.START.size + size], data[wire.START.size + size :]
            message = wire.read_body(body)
            if kind != wire.REPLY:
                continue
            try:
                items = wire.unpack(message["items"], message["sounds"], self.memory)
            except (LookupError, TypeError, ValueError):  # as the host does
                return
            for item in items if isinstance(items, list) else ():
                response = isolated._build_response(WorkerReply(item, None, 1), rng.choice(("text", "audio")), {})
                assert (response.status == "ok") != bool(response.reason)
                if response.audio is not None:
                    is_sound(response.audio)


class Caches(Target):
    """Entries of the two caches: as they were put, or missing."""

    allowed = (UserError, ValueError)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.engine import cache as features
        from codec_bench.models import cache as responses
        from codec_bench.types import Response

        feature = {"embedding": tone(), "value": 1.5, "text": "x"}
        answer = Response(text="an answer", audio=Audio(np.round(tone() * 32768) / 32768, RATE), usage={"n": 3.0})
        head, sound = responses.pack(answer)
        self.feature, self.answer = repr(feature), repr(responses.unpack(head, sound))
        self.seeds = [b"f" + features.pack(feature), b"r" + head.encode() + b"\0" + sound]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Unpacks the entry."""
        from codec_bench.engine import cache as features
        from codec_bench.models import cache as responses

        if data[:1] == b"f":
            assert repr(features.unpack(data[1:])) == self.feature
        else:
            head, _, sound = data[1:].partition(b"\0")
            result = responses._unpack_row(head.decode("utf-8", "replace"), sound)
            assert result is None or repr(result) == self.answer


class Listening(Target):
    """What comes back from a listening test: a file of the page, its key, and results of webMUSHRA."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.apps.listening.answers import FORMAT, checksum
        from codec_bench.apps.listening.key import REFERENCE, Key, Stimulus, Trial, read_key, write_key

        stimuli = (
            Stimulus("s1", "reference", REFERENCE),
            Stimulus("s2", "system", "opus"),
            Stimulus("s3", "system", "g722"),
        )
        trials = tuple(Trial(f"t{n}", f"item {n}", None, stimuli, n == 0) for n in range(3))
        systems = ("opus", "g722")
        write_key(Key("abc", "mushra", (0, 100), True, False, systems, ("runs/x",), 0, trials), folder / "whole.json")
        self.key = read_key(folder / "whole.json")
        rows = [{"trial": t.id, "stimulus": one.id, "value": 90, "ms": 1200} for t in trials for one in stimuli]
        held = {
            "format": FORMAT,
            "sheet": "abc",
            "kind": "mushra",
            "rater": "Ann",
            "saved": "2026",
            "complete": True,
            "answers": rows,
        }
        table = "session_test_id,rater,session_uuid,trial_id,rating_stimulus,rating_score,rating_time,rating_comment\n"
        table += "".join(f"abc,Bob,u,{row['trial']},{row['stimulus']},70,900,\n" for row in rows)
        self.complete = {"given": rows, "rater": "Ann"}
        self.seeds = [
            b"j" + json.dumps({**held, "crc32": checksum(held)}).encode(), b"c" + table.encode(),
            b"k" + (folder / "whole.json").read_bytes(),
        ]  # fmt: skip

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the file as what its first byte says."""
        from codec_bench.apps.listening.answers import read_files
        from codec_bench.apps.listening.key import read_key
        from codec_bench.apps.listening.ratings import unblind

        kind = {b"c": "csv", b"k": "key"}.get(data[:1], "json")
        path = self.folder / f"case.{kind}"
        path.write_bytes(data[1:])
        if kind == "key":
            assert read_key(path) == self.key
            return
        files, problems = read_files([path], self.key)
        rows, _ = unblind(files, self.key)
        assert files or problems
        for file in files:
            if kind == "json" and not file.edited:
                options = [(one.trial, one.stimulus, one.value) for one in file.answers]
                assert (
                    options == [(row["trial"], row["stimulus"], row["value"]) for row in self.complete["given"]]
                    and file.rater == "Ann"
                )
        for row in rows:
            assert (row.score is None) == (row.status != "used")
            assert row.score is None or 0 <= row.score <= 100


class Sites(Target):
    """The data files of another person's site, which are taken over."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.apps.site.api import site
        from codec_bench.apps.site.folder import SiteFolder
        from codec_bench.store.rows import ItemRecord
        from codec_bench.store.writer import RunWriter
        from codec_bench.types import Sample, Score

        writer = RunWriter(folder / "run", {})
        writer.begin({"g722": {}}, {"stoi": {"protocol": "s", "higher_is_better": True}}, [Sample("a", None, "words")])
        writer.write([(0, ItemRecord("g722", "a", "ok", None, {"stoi": Score.ok(0.9, "s")}))])
        writer.set_meta(state="finished", data={"name": "made"})
        writer.close()
        site([folder / "run"], out=folder / "theirs")
        (self.key,) = SiteFolder(folder / "theirs").keys()
        self.files = sorted((folder / "theirs" / "data" / "runs" / self.key).glob("*.js"))
        self.complete = [path.read_bytes() for path in self.files]
        self.seeds = [bytes([n]) + held for n, held in enumerate(self.complete)]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Takes the site over with one file changed: what is not as it was written is refused."""
        from codec_bench.apps.site.api import copy_runs
        from codec_bench.apps.site.folder import SiteFolder

        position = data[0] % len(self.files) if data else 0
        self.files[position].write_bytes(data[1:])
        mine = SiteFolder(self.folder / "mine")
        try:
            copy_runs(mine, SiteFolder(self.folder / "theirs"))
            assert data[1:] == self.complete[position]
        finally:
            self.files[position].write_bytes(self.complete[position])
            shutil.rmtree(mine.path)


TARGETS: dict[str, type[Target]] = {
    "alignments": Alignments, "archives": Archives, "declared sizes": DeclaredSizes, "answers": Answers,
    "bitstreams": Bitstreams, "caches": Caches, "clusters": Clusters, "frames": Frames, "listening": Listening,
    "manifests": Manifests,
    "ratings": Ratings, "records": Records,
    "replies": Replies, "services": Services, "sites": Sites, "sounds": Sounds, "tables": Tables, "tars": Tars,
    "weights": Weights, "yaml": Configs,
}  # fmt: skip
