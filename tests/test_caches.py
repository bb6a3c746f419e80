"""Every cache knows content: files whose contents are exchanged at the same path, size and time give the right numbers.

A new cache is added to `CACHES`, with a test, or a test here finds it.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import yaml
from refusals import refuses

from codec_bench import evaluate, run_benchmark, score
from codec_bench.audio.clip import Clip
from codec_bench.config import file_content
from codec_bench.config.file_content import file_hash, file_state, path_hash
from codec_bench.config.registry import load_attribute
from codec_bench.data import open_source
from codec_bench.data.archives import unpacked
from codec_bench.decoding.table import Locator, read_located
from codec_bench.engine import recorded_sounds
from codec_bench.engine.plan import build_plan
from codec_bench.messages.errors import RunMismatch
from codec_bench.models.cache import ResponseCache
from codec_bench.types import Audio, Message, Request, Response
from codec_bench.weights.find import LocalCheckpoint

RATE = 16_000
WEIGHTS = "utmos22_strong_step7459_v1.pt"
PACKAGE = Path(file_content.__file__).parents[1]
CACHES = {
    "models/cache.py": "answers of models and replies of judges, by the content of the sounds that they were asked "
    "about",
    "data/tars.py": "where the members of tar files are",
    "data/archives.py": "unpacked archives",
    "decoding/table.py": "footers and decoded rows of Parquet files, in a process",
    "decoding/span.py": "the sounds that segments were cut from last, in a process",
    "engine/running.py": "features (engine/cache.py), by the content of the audio and of the weights (engine/plan.py)",
    "weights/find.py": "the folder of fetched weights, whose identity is their content",
    "weights/converted.py": "converted tensors, by the content of the weights and the code: "
    "tests/weights/test_converted.py",
    "models/isolated.py": "what tells models in their own environments apart: the content of the files that they load",
    "config/file_content.py": "hashes of files",
    "config/custom_code.py": "what files import, by their content, in a process: tests/engine/test_changed_code.py",
    "config/registry.py": "modules of own code, in a process",
    "kernels/compilation/cpu.py": "compiled kernels: tests/kernels/test_compilation.py",
    "data/remote.py": "fetched manifests, named by their content: tests/data/test_remote.py",
    "workers/environment.py": "environments, named by the content of their lists: tests/workers/test_environment.py",
    "store/judge_tests.py": "tests of judges, named by the content of a judge's own file: "
    "tests/benchmark/judge/test_tested.py",
    "store/judge_successions.py": "comparisons of judges, as above",
    "engine/recorded_sounds.py": "the finished items of a run",
    "audio/clip.py": "the answers of a run, and the sessions of conversations",
    "data/source.py": "the codecs of a profile that was stopped and the items of a build, by the content of the data",
}
"""Where each cache is, and what it holds."""
NO_CACHE = {"config/paths.py", "api/doctor.py"}
"""What names the folder of caches and keeps nothing in it."""


def test_every_cache_is_in_the_list():
    """Whoever writes to the folder of caches, or remembers the state of a file, is in the table."""
    results = set()
    for path in [*PACKAGE.rglob("*.py"), *(PACKAGE / "kernels").rglob("*.py")]:
        text = path.read_text("utf-8")
        if re.search(r"cache_folder\(\)|file_state\(|_mtime|(file|files|path)_hash\(", text):
            results.add(path.relative_to(PACKAGE).as_posix())
    users = {"engine/plan.py", "models/recogniser.py", "apps/building/joined.py", "workers/programs.py"}
    assert results - users <= CACHES.keys() | NO_CACHE, "a cache without a test here"


@pytest.fixture(autouse=True)
def settled(tmp_path, monkeypatch):
    """A cache folder of the test's own, and files that count as old at once, so that their states are remembered."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(file_content, "TICK_NS", 0)


def written_over(one: Path, other: Path) -> None:
    """Writes the contents of two files over each other."""
    contents = other.read_bytes(), one.read_bytes()
    for path, content in zip((one, other), contents):
        with path.open("r+b") as file:
            file.write(content)


def renamed(one: Path, other: Path) -> None:
    """Gives two files each other's name."""
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


@pytest.fixture(params=[written_over, renamed])
def exchange(request):
    """Exchanges the contents of two files of one size. Their paths, sizes and times of modification stay."""

    def exchanged(one: Path, other: Path) -> None:
        before = [one.stat(), other.stat()]
        assert before[0].st_size == before[1].st_size and before[0].st_mtime_ns == before[1].st_mtime_ns
        request.param(one, other)
        for path, old in zip((one, other), before):
            while path.stat().st_ctime_ns == old.st_ctime_ns:  # the clock of the file system has ticks of milliseconds
                os.utime(path, ns=(old.st_mtime_ns, old.st_mtime_ns))
            os.utime(path, ns=(old.st_mtime_ns, old.st_mtime_ns))
            now = path.stat()
            assert (now.st_size, now.st_mtime_ns) == (old.st_size, old.st_mtime_ns)

    return exchanged


def old(*paths: Path) -> None:
    for path in paths:
        os.utime(path, ns=(10**18, 10**18))


def sound(path: Path, hz: float) -> Path:
    path.parent.mkdir(exist_ok=True)
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * hz * np.arange(RATE) / RATE), RATE, subtype="PCM_16")
    old(path)
    return path


def wav(hz: float) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, 0.3 * np.sin(2 * np.pi * hz * np.arange(RATE) / RATE), RATE, format="WAV", subtype="PCM_16")
    return file.getvalue()


def pitch(audio: Audio) -> int:
    return int(np.argmax(np.abs(np.fft.rfft(audio.samples[0]))) * audio.sample_rate_hz / audio.num_samples)


def test_a_hash_is_that_of_the_content(tmp_path, exchange):
    one, other = tmp_path / "a", tmp_path / "b"
    one.write_bytes(b"1" * 99)
    other.write_bytes(b"2" * 99)
    old(one, other)
    before = file_hash(one), file_hash(other)
    assert len(set(before)) == 2 and path_hash(tmp_path / "a") != path_hash(tmp_path / "b")
    exchange(one, other)
    assert (file_hash(one), file_hash(other)) == before[::-1]


def test_a_hash_is_not_computed_again_while_the_file_is_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 99)
    first = file_hash(path)
    monkeypatch.setattr(file_content.hashlib, "sha256", lambda: pytest.fail("it is read again"))
    assert file_hash(path) == first
    file_content._hashes.cache_clear()  # as in another process
    assert file_hash(path) == first


def test_a_hash_of_another_machine_does_not_count(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    before = file_state(path)
    monkeypatch.setattr(file_content, "_machine", lambda: "another")
    assert file_state(path) != before


def test_a_file_that_was_changed_a_moment_ago_has_no_state(tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a"
    for content in (b"1", b"2"):  # within one tick of the clock
        path.write_bytes(content)
        os.utime(path, ns=(0, 0))
        assert file_state(path) is None
        assert file_hash(path) == file_content.hashlib.sha256(content).hexdigest()


def test_a_cache_of_hashes_that_is_damaged_gives_none(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    first = file_hash(path)
    file_content._hashes.cache_clear()
    for name in ("hashes.sqlite", "hashes.sqlite-wal"):
        (tmp_path / "cache" / name).write_bytes(b"no database" * 999)
    assert file_hash(path) == first


@pytest.mark.parametrize("role", ["user", "judge"])
def test_answers_and_judges_replies(tmp_path, exchange, role):
    """A model's answer to one sound, or a judge's verdict on it, is not reused for another one."""
    one, other = sound(tmp_path / "a.wav", 300), sound(tmp_path / "b.wav", 700)
    identity = {"model": "m", "as": role}
    requests = [Request(str(path), (Message("user", (Clip(str(path)), "What is it?")),)) for path in (one, other)]

    def answers() -> list[str | None]:
        cache = ResponseCache.of_user()
        try:
            result = cache.look_up(identity, requests)
            for (key, held), path in zip(result, (one, other)):
                if held is None:
                    cache.put(key, Response(text=str(pitch(Audio.read(str(path))))), "m")
            return [None if held is None else held.text for _, held in result]
        finally:
            cache.close()

    assert answers() == [None, None] and answers() == ["300", "700"]
    exchange(one, other)
    assert answers() == ["700", "300"]


def packed(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    old(path)
    return path


def test_indices_of_tar_files(tmp_path, exchange):
    one = packed(tmp_path / "a.tar", [("x.wav", wav(300)), ("x.txt", b"one"), ("y.txt", b"1")])
    other = packed(tmp_path / "b.tar", [("x.txt", b"two"), ("x.wav", wav(700)), ("y.txt", b"2")])

    def read(path: Path) -> tuple:
        first = open_source(str(path)).samples[0]
        return first.text, pitch(Audio.read(first.audio))

    before = read(one), read(other)
    assert before == (("one", 300), ("two", 700)) and (read(one), read(other)) == before
    exchange(one, other)
    assert (read(one), read(other)) == before[::-1]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_unpacked_archives(tmp_path, exchange, kind):
    paths = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for path, hz in zip(paths, (300, 700)):
        if kind == "tar":
            packed(path, [("x.wav", wav(hz))])
        else:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(zipfile.ZipInfo("x.wav"), wav(hz))
            old(path)

    def read() -> list[int]:
        return [pitch(Audio.read(str(unpacked(str(path)) / "x.wav"))) for path in paths]

    assert read() == [300, 700] == read()
    exchange(*paths)
    assert read() == [700, 300]
    assert len(list((tmp_path / "cache" / "unpacked").iterdir())) == 2, "each content is unpacked once"


def test_tables(tmp_path, exchange):
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    for path, hz in zip(paths, (300, 700)):
        sounds = [{"bytes": wav(hz), "path": "x.wav"}]
        pq.write_table(pa.table({"audio": sounds, "text": [f"{hz}"]}), path, compression="none")
        old(path)

    def read() -> list[tuple]:
        results = [open_source(str(path)).samples[0].text for path in paths]
        return list(zip(results, (pitch(Audio(*read_located(Locator(str(path), "audio", 0)))) for path in paths)))

    assert read() == [("300", 300), ("700", 700)] == read()
    exchange(*paths)
    assert read() == [("700", 700), ("300", 300)]


def test_segments(tmp_path, exchange):
    low, high = sound(tmp_path / "low.wav", 300), sound(tmp_path / "high.wav", 900)
    assert [pitch(Audio.read(f"{path}#t=0,0.5")) for path in (low, high)] == [300, 900]
    exchange(low, high)
    assert [pitch(Audio.read(f"{path}#t=0,0.5")) for path in (low, high)] == [900, 300]


def test_codecs_of_an_unfinished_profile(tmp_path, exchange):
    from codec_bench.apps.profiling.settings import Settings
    from codec_bench.apps.profiling.several_codecs import ProfileRun, _marks, _measured_before
    from codec_bench.engine.systems import read_systems

    one, other = sound(tmp_path / "data" / "a.wav", 310), sound(tmp_path / "data" / "b.wav", 900)
    old(one, other)

    def request():
        return ProfileRun(
            systems, str(tmp_path / "data"), open_source(str(tmp_path / "data")), (), None, tmp_path,
            "cpu", None, 0, {}, Settings(), print,
        )  # fmt: skip

    systems = build_plan(read_systems("g711-ulaw"), ["bitrate"], {}, {None}, gpu=False).systems
    held = {"g711-ulaw": {"load": {"state": "ok"}}}
    (tmp_path / "measured.json").write_text(json.dumps({**_marks(request()), "codecs": held}))
    assert _measured_before(request()) == held
    exchange(one, other)
    assert _measured_before(request()) == {}


def test_features(tmp_path, exchange):
    """The second run finds features in the cache, and they are those of the sounds that the files hold now."""
    from codec_bench import evaluate

    data = tmp_path / "data"
    data.mkdir()
    clips = [Audio.read(sample.audio) for sample in list(open_source("embedded"))[:2]]
    length = min(clip.num_samples for clip in clips)
    paths = [data / "a.wav", data / "b.wav"]
    for path, clip in zip(paths, clips):
        soundfile.write(path, clip.samples[0, :length], clip.sample_rate_hz, subtype="PCM_16")
        old(path)

    def values(name: str) -> list[float]:
        run = evaluate(
            codec="g711-ulaw",
            data=data,
            metrics="sim[ge2e],stoi",
            out=tmp_path / name,
            workers=1,
            check=False,
            page=False,
        )
        by_name = {(row.id, row.metric): row.value for row in run.rows()}
        run.close()
        return [by_name[id, metric] for metric in ("sim[ge2e]", "stoi") for id in "ab"]

    a_sim, b_sim, a_stoi, b_stoi = values("first")
    assert a_sim != b_sim and a_stoi != b_stoi
    exchange(*paths)
    assert values("second") == [b_sim, a_sim, b_stoi, a_stoi]


def test_plans_whose_weights_have_changed(tmp_path, exchange, monkeypatch):
    """The key of a feature in the cache holds the content of the weights that compute it."""
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    folders = [tmp_path / "utmos22-strong", tmp_path / "other"]
    for folder, content in zip(folders, (b"one", b"two")):
        folder.mkdir()
        (folder / WEIGHTS).write_bytes(content)
        old(folder / WEIGHTS)

    def keys() -> list[str]:
        plans = [
            build_plan(["unprocessed"], ["utmos"], options) for options in ({}, {"utmos": {"weights": str(folders[1])}})
        ]
        return [plan.features["utmos"].cache_id for plan in plans]

    before = keys()
    assert len(set(before)) == 2 and keys() == before
    exchange(*(folder / WEIGHTS for folder in folders))
    assert keys() == before[::-1]
    moved = shutil.copytree(folders[1], tmp_path / "moved" / "utmos")
    assert (
        build_plan(["unprocessed"], ["utmos"], {"utmos": {"weights": str(moved)}}).features["utmos"].cache_id
        == before[0]
    )


def test_identities_of_weights_and_models(tmp_path, exchange):
    paths = [tmp_path / "a.bin", tmp_path / "b.bin"]
    for path, content in zip(paths, (b"one", b"two")):
        path.write_bytes(content)
        old(path)
    (tmp_path / "code.py").write_text("def load(weights): pass\ndef answer(state, batch): return []\n")
    (tmp_path / "env.yaml").write_text("version: 1\nsummary: Nothing.\nrequirements: []\n")

    def identities() -> list[tuple]:
        return [
            (
                LocalCheckpoint(tmp_path, str(path), (path.name,)).identity,
                json.dumps(isolated(path).identity["files"]).rpartition(":")[2],
            )
            for path in paths
        ]

    def isolated(path: Path):
        options = {"env": str(tmp_path / "env.yaml"), "code": str(tmp_path / "code.py"), "load": {"weights": str(path)}}
        from codec_bench.models.base import ModelInfo
        from codec_bench.models.isolated import Isolated

        return Isolated(ModelInfo("mine"), **options)

    before = identities()
    assert len(set(before)) == 2
    exchange(*paths)
    assert identities() == before[::-1]


def test_own_code(tmp_path, exchange):
    """Python itself takes compiled code of a file with the same size and second of change."""
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path, number in zip(paths, (1, 2)):
        path.write_text(f"class Mine:\n    number = {number}\n")
        old(path)
    program = "import sys\nfrom codec_bench.config.registry import load_attribute\n"
    program += "print(*(load_attribute(f'{path}:Mine').number for path in sys.argv[1:]))"

    def read() -> list[list[int]]:
        here = [load_attribute(f"{path}:Mine").number for path in paths]
        there = subprocess.run(
            [sys.executable, "-c", program, *map(str, paths)], capture_output=True, text=True, check=True
        )
        return [here, list(map(int, there.stdout.split()))]

    assert read() == [[1, 2]] * 2
    exchange(*paths)
    assert read() == [[2, 1]] * 2


def test_a_run_is_not_continued_with_other_estimates_of_the_same_size(tmp_path, exchange):
    reference = sound(tmp_path / "reference" / "a.wav", 300)
    built, other = sound(tmp_path / "made" / "a.wav", 310), sound(tmp_path / "other" / "a.wav", 900)
    requested = {
        "data": str(reference.parent),
        "metrics": "si_sdr",
        "out": tmp_path / "run",
        "page": False,
        "workers": 1,
    }
    before = {s.id: s.value for s in score(generated=built.parent, **requested).scores()}
    again = {s.id: s.value for s in score(generated=built.parent, **requested).scores()}
    exchange(built, other)
    with refuses("sound_changed", sample="a"):
        score(generated=built.parent, **requested)
    exchange(built, other)  # other states of the same contents
    assert before == again == {s.id: s.value for s in score(generated=built.parent, **requested).scores()}
    shutil.copytree(tmp_path / "made", tmp_path / "copy")
    assert before == {s.id: s.value for s in score(generated=tmp_path / "copy", **requested).scores()}
    old(*(tmp_path / "reference").iterdir())
    exchange(reference, other)
    with refuses("sound_changed", sample="a"):
        score(generated=built.parent, **requested)


def test_a_run_whose_files_are_as_they_were_reads_none_again(tmp_path, monkeypatch):
    reference = sound(tmp_path / "reference" / "a.wav", 300)
    requested = {
        "codec": "g711-ulaw",
        "data": str(reference.parent),
        "metrics": "snr",
        "out": tmp_path / "run",
        "page": False,
    }
    evaluate(**requested, workers=1)
    monkeypatch.setattr(recorded_sounds, "_sound", lambda entry: pytest.fail("it is read again"))
    evaluate(**requested, workers=1)


EAR = """
import numpy as np
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Ear(Model):
    info = ModelInfo("ear", inputs=("text", "audio"), outputs=("text",))
    identity = {"ear": "1"}

    async def ask(self, request):
        heard = next(part for part in request.messages[-1].content if not isinstance(part, str)).read()
        return Response(text="low" if np.argmax(abs(np.fft.rfft(heard.samples[0]))) < 600 else "high")
"""
TONES = {
    "version": 1, "title": "Tones", "summary": "Low or high.", "category": "QA", "kind": "qa", "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"audio": "audio", "reference": "right"}},
    "prompt": {"messages": [{"content": [{"audio": "audio"}, "low or high?"]}]},
    "metrics": ["accuracy[exact]"], "primary": "accuracy[exact]",
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_a_run_is_not_continued_with_other_sounds_of_its_questions(tmp_path, exchange, packed):
    folder = tmp_path / "tones"
    low, high = sound(folder / "low.wav", 300), sound(folder / "high.wav", 900)
    rows = [{"id": name, "audio": f"{name}.wav", "right": name} for name in ("low", "high")]
    if packed:
        for name in ("a", "b"):
            cells = [{"bytes": (low if name == "a" else high).read_bytes(), "path": None}]
            pq.write_table(pa.table({"id": ["low"], "audio": cells, "right": ["low"]}), folder / f"{name}.parquet")
        low, high = folder / "a.parquet", folder / "b.parquet"
        old(low, high)
    else:
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    held = {**TONES, "data": {**TONES["data"], "path": "a.parquet" if packed else "rows.jsonl"}}
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(held))
    (tmp_path / "ear.py").write_text(EAR)
    requested = {
        "benchmark": str(folder),
        "model": f"{tmp_path / 'ear.py'}:Ear",
        "out": tmp_path / "run",
        "page": False,
    }

    def values():
        (run,) = run_benchmark(**requested).runs.values()
        return {s.value for s in run.scores()}

    assert values() == {1.0} and values() == {1.0}
    exchange(low, high)
    with pytest.raises(RunMismatch):
        values()
    exchange(low, high)
    assert values() == {1.0}
