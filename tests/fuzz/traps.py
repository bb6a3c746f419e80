"""Files that somebody made to do harm, as targets: pickles that run commands, templates in data, archives that unpack
to gigabytes, and what lies beside a record and in caches."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import shutil
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from targets import RATE, Target, encoded, is_sound, tone

from codec_bench.config import file_content
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Sample, Score

BOMB_BYTES = 3 << 29
DEEP = b"[" * 100_000


@dataclass(frozen=True, slots=True)
class _Touch:
    """Whoever unpickles it makes a file."""

    location: str

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch '{self.location}'",)


def bomb(suffix: str = "x/data.pkl") -> bytes:
    """A zip archive of a few MB whose one member unpacks to 1.5 GiB of zeros."""
    segment = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = segment.compress(bytes(1 << 26)) + segment.flush(zlib.Z_FULL_FLUSH)
    packed = block * (BOMB_BYTES >> 26) + b"\x03\x00"
    name = suffix.encode()
    sizes = struct.pack("<LLL", 0, len(packed), BOMB_BYTES)
    local = (
        b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sizes + struct.pack("<HH", len(name), 0) + name + packed
    )
    entry = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sizes
    entry += struct.pack("<HHHHHLL", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 1, 1, len(entry), len(local), 0)
    return local + entry + end


class Pickles(Target):
    """Files in the place of weights, clusters and caches that run a command if they are unpickled."""

    allowed = (UserError, ValueError)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import torch  # noqa: F401  # loading it takes longer than a case may

        self.touched = folder / "touched"
        trap = _Touch(str(self.touched))
        held = {"a.weight": trap, "b": [trap]}
        self.seeds = [pickle.dumps(held, protocol) for protocol in range(5)]
        for plain in list(self.seeds[:3]):
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w") as archive:
                for name, content in (
                    ("x/data.pkl", plain),
                    ("x/version", b"3\n"),
                    ("x/byteorder", b"little"),
                    ("x/data/0", bytes(16)),
                ):
                    archive.writestr(name, content)
            self.seeds.append(file.getvalue())
        array = io.BytesIO()
        arrays: dict[str, Any] = {"codes 0": np.array([trap], object), "wave 0": np.array([trap], object)}
        np.savez(array, **arrays, allow_pickle=True)
        entry = io.BytesIO()
        np.lib.format.write_array(entry, np.array([trap], object), allow_pickle=True)
        self.seeds += [array.getvalue(), b"\x02\0\0\0{}" + entry.getvalue()]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the file as everything that it may stand in the place of: no command runs."""
        from codec_bench.codecs.checks.serialised_codes import SerialisedCodes
        from codec_bench.engine.cache import unpack
        from codec_bench.features.dnsmos_pro import tensors_of
        from codec_bench.weights.kmeans import load_centres
        from codec_bench.weights.state import load_state

        path = self.written("fuzzed.pt", data)
        reading: tuple[Callable[[], Any], ...] = (
            lambda: load_state(path), lambda: tensors_of(path), lambda: load_centres(path), lambda: unpack(data),
        )  # fmt: skip
        for read in reading:
            with suppress(*self.allowed):
                read()
        with suppress(Exception):  # a file of this program's own, which may end in any exception but runs nothing
            SerialisedCodes.read(path)
        assert not self.touched.exists(), "a command was run"


class Networks(Target):
    """Headers of safetensors that lie, and ONNX files, some of which name other files of this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import onnx
        import onnxruntime  # noqa: F401  # loading these takes longer than a case may
        import torch  # noqa: F401
        from onnx import TensorProto, helper, numpy_helper

        soundless = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
        heads: list[dict[str, Any]] = [
            {"a": soundless, "__metadata__": {"format": "pt"}},
            {"a": soundless | {"data_offsets": [0, 2**62]}}, {"a": soundless | {"shape": [2**31, 2**31]}},
            {"a": soundless | {"shape": [-2, -3]}}, {"a": soundless | {"dtype": "F8_E4M3"}},
            {"a": soundless, "b": soundless}, {f"t{n}": soundless for n in range(3000)},
        ]  # fmt: skip
        files = [json.dumps(head).encode() for head in heads] + [DEEP, b'{"a":' * 90_000]
        tensors = [b"s" + len(head).to_bytes(8, "little") + head + bytes(24) for head in files]
        tensors += [b"s" + size.to_bytes(8, "little") + files[0] for size in (0, 2**31, 2**63, 2**64 - 1)]
        (folder / "outside.bin").write_bytes(np.full(24, 7.0, np.float32).tobytes())
        graphs = []
        for external in (None, "outside.bin", "../outside.bin", "/etc/passwd"):
            weight = numpy_helper.from_array(np.zeros((1, 1, 3, 3), np.float32), "w")
            if external is not None:
                weight.ClearField("raw_data")
                weight.data_location = TensorProto.EXTERNAL
                for key, value in (("location", external), ("offset", "0"), ("length", "36")):
                    weight.external_data.add(key=key, value=value)
            parameters, options = (
                helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 8, 8]) for name in "xy"
            )
            node = helper.make_node("Conv", ["x", "w"], ["y"])
            graph = helper.make_graph([node], "g", [parameters], [options], [weight])
            graphs.append(
                b"o" + helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
            )
        assert onnx.load_from_string(graphs[0][1:]).graph.node
        self.seeds = tensors + graphs

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the file as weights."""
        import torch

        from codec_bench.features.dnsmos_files import P835, read_network
        from codec_bench.features.sigmos import Sigmos
        from codec_bench.weights.state import load_state

        if data[:1] == b"s":
            state = load_state(self.written("fuzzed.safetensors", data[1:]))
            assert all(isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in state.items())
            return
        path = self.written("model-sigmos_1697718653_41d092e8-epo-200.onnx", data[1:])
        with suppress(UserError):
            read_network(path, P835)
            raise AssertionError("it was taken for the weights of DNSMOS")
        with suppress(UserError):
            Sigmos(weights=str(path)).load()
            raise AssertionError("it was taken for the weights of SIGMOS")


class Bombs(Target):
    """Small files that unpack to gigabytes: archives in the place of weights, and tables."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import pyarrow as pa
        import pyarrow.parquet as pq
        import torch  # noqa: F401  # loading it takes longer than a case may

        self.seeds = [b"z" + bomb(), b"z" + bomb("x/data/0"), b"z" + bomb("codes 0.npy")]
        # As a dictionary, so that only what reads the file could come to hold all of it.
        zeros = pa.DictionaryArray.from_arrays(pa.array([0] * 200, pa.int32()), pa.array([bytes(8 << 20)], pa.binary()))
        sounds = pa.StructArray.from_arrays([zeros, pa.array(["a.wav"] * 200)], ["bytes", "path"])
        file = io.BytesIO()
        pq.write_table(pa.table({"audio": sounds}), file, compression="zstd", store_schema=False)
        self.seeds.append(b"t" + file.getvalue())

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the file as weights, or as data."""
        from codec_bench.data import open_source
        from codec_bench.features.dnsmos_pro import tensors_of
        from codec_bench.weights.state import load_state

        if data[:1] == b"z":
            path = self.written("fuzzed.pt", data[1:])
            for read in (load_state, tensors_of):
                with suppress(UserError):
                    read(path)
            return
        path = self.written("fuzzed.parquet", data[1:])
        os.utime(path, ns=(0, rng.randrange(2**60)))  # another file for whoever remembers the last one
        for sample in list(open_source(str(path)))[:2]:
            if sample.audio is not None:
                with suppress(UserError):
                    is_sound(Audio.read(sample.audio))


class Templates(Target):
    """Templates in data, which are texts, and templates in definitions, which may do nothing but fill in."""

    SEEDS = (
        "{{ question }}", "{% for x in options %}{{ x }} {% endfor %}", "{{ 7 * 191 }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.system('touch TOUCHED') }}", "{{ 'a' * 1000000000 }}",
        "{{ options | join('x') }}",
        "{% for a in options %}{% for b in options %}{{ a }}{% endfor %}{% endfor %}", "{{ range(1000000000) | list }}",
        "{{ question",
        "{% include '/etc/passwd' %}", "{{ lipsum(n=100000) }}", "{{ (question * 9999) * 9999 }}", "{{ 9 ** 9 ** 9 }}",
        "{# #}{% raw %}{{ x }}",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.touched = folder / "touched"
        self.seeds = [text.replace("TOUCHED", str(self.touched)).encode() for text in self.SEEDS]

    def run(self, data: bytes, rng: random.Random) -> None:
        """Fills the text into a prompt, where it stands as it is, and takes it for a prompt and for the body of a
        request.
        """
        from codec_bench.benchmark.definition.prompt import render_text, variables
        from codec_bench.models.endpoints.json_endpoint import _compiled

        text = data.decode("utf-8", "replace")
        values = {"question": text, "options": [text, "b"], "text": "words"}
        assert render_text("{{ question }}", values, "the prompt") == text.strip()
        assert _compiled({"q": "{{ question }}"}, "mine")(values) == {"q": text}
        with suppress(UserError):
            variables(text)
            render_text(text, {**values, "question": "Which?", "options": ["a", "b"]}, "the prompt")
        assert not self.touched.exists(), "a command was run"


class Journals(Target):
    """What SQLite keeps beside a record while it is written: a record with it reads as far as it was written, or is
    refused.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from codec_bench.store.rows import ItemRecord
        from codec_bench.store.writer import RunWriter

        facts = {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}
        samples = [Sample(f"s{n}", None, "words") for n in range(30)]
        writer = RunWriter(folder / "whole", {})
        writer.begin({"x": {}}, {"m": facts}, samples)
        for n in range(30):
            item = ItemRecord("x", f"s{n}", "ok", None, {"m": Score.ok(n / 7, "m/1", detail={"n": [n]})}, notes=("n",))
            writer.write([(n, item)])
        shutil.copytree(folder / "whole", folder / "killed")
        writer.close()
        self.rows = set(map(repr, self._read(folder / "killed")))
        self.files = {name: (folder / "killed" / name).read_bytes() for name in ("run.sqlite", "run.sqlite-wal")}
        self.complete = (folder / "whole" / "run.sqlite").read_bytes()
        with closing(sqlite3.connect(folder / "whole" / "run.sqlite")) as db:
            db.execute("PRAGMA cache_size = 1")
            db.execute("BEGIN")
            db.execute("UPDATE scores SET value = 99")
            self.journal = (folder / "whole" / "run.sqlite-journal").read_bytes()
            db.execute("ROLLBACK")
        assert len(self.rows) == 30 and len(self.files["run.sqlite-wal"]) > 100_000
        self.seeds = [b"w" + self.files["run.sqlite-wal"], b"j" + self.journal, b"d" + self.files["run.sqlite"]]

    @staticmethod
    def _read(folder: Path) -> list[Any]:
        from codec_bench.store.record import Run

        with closing(Run(folder)) as run:
            return list(run.rows())

    def run(self, data: bytes, rng: random.Random) -> None:
        """Reads the record with the file beside it."""
        folder = self.folder / "fuzzed"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        kind, held = data[:1], data[1:]
        files = {"run.sqlite": self.complete, "run.sqlite-journal": held} if kind == b"j" else {
            **self.files, "run.sqlite" if kind == b"d" else "run.sqlite-wal": held
        }  # fmt: skip
        for name, content in files.items():
            (folder / name).write_bytes(content)
        assert {repr(row) for row in self._read(folder)} <= self.rows, "other numbers"


class ParquetParts(Target):
    """Parquet data in several parts, of which one was changed: the sounds of the others are read as they are."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import pyarrow as pa
        import pyarrow.parquet as pq

        parts = []
        for item in range(3):
            names = [f"{item}{n}" for n in range(3)]
            sounds = [{"bytes": encoded("WAV"), "path": f"{name}.wav"} for name in names]
            file = io.BytesIO()
            pq.write_table(pa.table({"id": names, "audio": sounds, "text": ["a b"] * 3}), file)
            parts.append(file.getvalue())
        other = io.BytesIO()
        pq.write_table(pa.table({"id": [1], "audio": [1.5], "text": [None]}), other)
        self.parts = parts
        self.seeds = [*parts, other.getvalue(), b"PAR1" + DEEP + b"PAR1"]
        self.sound = np.stack([tone(), -tone()])

    def run(self, data: bytes, rng: random.Random) -> None:
        """Opens the folder as data."""
        from codec_bench.data import open_source

        folder = self.folder / "parts"
        folder.mkdir(exist_ok=True)
        changed = rng.randrange(3)
        for n, item in enumerate(self.parts):
            path = folder / f"train-{n:05d}-of-00003.parquet"
            path.write_bytes(data if n == changed else item)
            os.utime(path, ns=(0, rng.randrange(2**60)))
        source = open_source(str(folder))
        assert len({sample.id for sample in source}) == len(source)
        for sample in source:
            if sample.audio is not None:
                with suppress(UserError):
                    audio = Audio.read(sample.audio)
                    is_sound(audio)
                    if f"{changed:05d}-of" not in str(sample.audio):
                        assert audio.sample_rate_hz == RATE and np.abs(audio.samples - self.sound).max() < 1e-4


class Extra(Target):
    """The JSON files that commands write beside records and into caches, and read again: as they were, made anew, or
    refused.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import tarfile

        from codec_bench.report.open_run import Run
        from codec_bench.report.results import write_results
        from codec_bench.store.parts import mark_part
        from codec_bench.store.rows import ItemRecord
        from codec_bench.store.writer import RunWriter

        os.environ["CODEC_BENCH_CACHE"] = str(folder / "cache")
        facts = {"protocol": "s", "kind": "answer", "unit": "", "higher_is_better": True, "aggregate": "mean"}
        self.out = folder / "out"
        self.run_folder = self.out / "b" / "g722"
        with closing(RunWriter(self.run_folder, {"shard": "1/2"})) as writer:
            writer.begin({"g722": {}}, {"m": facts}, [Sample("a", None, "words"), Sample("b", None, "words")])
            writer.write([(0, ItemRecord("g722", "a", "ok", None, {"m": Score.ok(0.5, "s")}))])
            writer.write([(1, ItemRecord("g722", "b", "ok", None, {"m": Score.failed("no", "s")}))])
            benchmark = {"name": "b", "category": "c", "primary": "m"}
            writer.set_meta(state="finished", data={"name": "made"}, benchmark=benchmark)
        with closing(Run(self.run_folder)) as run:
            write_results(run, page=False)
            mark_part(run)
        with tarfile.open(folder / "x.tar", "w") as tar:
            info = tarfile.TarInfo("a.wav")
            info.size = len(encoded("WAV"))
            tar.addfile(info, io.BytesIO(encoded("WAV")))
        tick_ns, file_content.TICK_NS = file_content.TICK_NS, 0  # a file of this moment is not trusted otherwise
        self.ids = self._samples()
        file_content.TICK_NS = tick_ns
        (index,) = (folder / "cache" / "tars").glob("*.json")
        (self.out / "parts").mkdir()
        (self.out / "ray.json").write_text('{"shards": 2}')
        (self.out / "slurm").mkdir()
        resources = {"partition": None, "time": "1:00:00", "more": ["--x"]}
        held = {
            "command": ["eval"],
            "program": ["python"],
            "waiting_for": [],
            "parts": 2,
            "rounds": 1,
            "jobs": [3],
            "resources": resources,
        }
        (self.out / "slurm" / "slurm.json").write_text(json.dumps(held))
        (folder / "profile.json").write_text(json.dumps({"codecs": {"g722": {"complexity": {"parameters": 5}}}}))
        (folder / "decisions.jsonl").write_text(
            '{"id": "a", "decision": "edit", "reviewers": 2, "edits": {"question": "x"}, "why": ""}\n'
        )
        self.readers: list[tuple[Path, Callable[[], Any]]] = [
            (self.run_folder / "summary.json", self._overview), (self.run_folder / "run.json", self._results_stand),
            (self.run_folder / "part.json", self._item), (self.run_folder / "run.seal", self._item),
            (index, self._samples),
            (self.out / "ray.json", self._ray), (self.out / "slurm" / "slurm.json", self._slurm),
            (folder / "profile.json", self._parameters), (folder / "decisions.jsonl", self._decisions),
        ]  # fmt: skip
        self.complete = [path.read_bytes() for path, _ in self.readers]
        self.seeds = [bytes([n]) + held for n, held in enumerate(self.complete)]
        self.seeds += [bytes([n]) + DEEP for n in range(len(self.readers))]

    def _samples(self) -> list[str]:
        from codec_bench.data import open_source

        with patch("codec_bench.config.file_content.TICK_NS", 0):  # a file of this moment has no index in the cache
            source = open_source(str(self.folder / "x.tar"))
        assert all(isinstance(sample.id, str) for sample in source)
        for sample in source:
            if sample.audio is not None:
                with suppress(UserError):
                    is_sound(Audio.read(sample.audio))
        return [sample.id for sample in source]

    def _overview(self) -> None:
        from codec_bench.benchmark.runs_overview import RunOutcome, write_overview
        from codec_bench.cli.run import print_outcome

        outcome = RunOutcome(self.out, {})
        write_overview(outcome)
        print_outcome(outcome, False, broken_down=False)

    def _results_stand(self) -> None:
        from codec_bench.report.open_run import Run
        from codec_bench.report.results import results_stand

        with closing(Run(self.run_folder)) as run:
            results_stand(run, page=False)

    def _item(self) -> None:
        from codec_bench.store.parts import read_part

        assert read_part(self.run_folder).shard == "1/2"

    def _ray(self) -> None:
        from codec_bench.apps.cluster.parts import PartFolders

        assert PartFolders(self.out, None, 3).of > 0

    def _slurm(self) -> None:
        from codec_bench.apps.cluster.slurm import read_submission

        read_submission(self.out)

    def _parameters(self) -> None:
        from codec_bench.apps.leaderboards.codecs import _parameters

        assert isinstance(_parameters(self.folder / "x", "g722"), float | None)

    def _decisions(self) -> None:
        from codec_bench.apps.building.review import read_decisions

        read_decisions(self.folder)

    def run(self, data: bytes, rng: random.Random) -> None:
        """Puts the file into its place and runs what reads it."""
        import contextlib

        position = data[0] % len(self.readers) if data else 0
        path, read = self.readers[position]
        path.write_bytes(data[1:])
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                read()
        finally:
            for (held, _), content in zip(self.readers, self.complete):
                held.write_bytes(content)


TRAPS: dict[str, type[Target]] = {
    "beside": Extra, "bombs": Bombs, "journals": Journals, "networks": Networks, "parquet_parts": ParquetParts,
    "pickles": Pickles,
    "templates": Templates,
}  # fmt: skip
