"""Samples are read by workers: what is read is what the files hold, and a file that cannot be read fails alone."""

from __future__ import annotations

import json
import os
from contextlib import closing

import numpy as np
import pytest
import soundfile
from arena_use import used_bytes

from codec_bench import Audio
from codec_bench.audio.hash import content_hash
from codec_bench.audio.level_checks import measure_levels
from codec_bench.audio.resample import to_signal
from codec_bench.engine import feed, reading
from codec_bench.engine.arena import Arena
from codec_bench.engine.reading import READING, FileRequest, ReadStage, ReadWork
from codec_bench.engine.run import Engine, EngineSettings
from codec_bench.engine.stage import StageSpec
from codec_bench.types import Sample

RATES = {"reference": frozenset({0, 16000}), "estimate": frozenset({16000}), "with_audio": True}


@pytest.fixture
def arena():
    with closing(Arena()) as built:
        yield built


@pytest.fixture
def wave(tmp_path):
    """Writes noise and gives its path."""

    def write(name, seconds=0.5, rate=22050, channels=2, seed=0):
        samples = np.random.default_rng(seed).uniform(-0.5, 0.5, (int(seconds * rate), channels))
        soundfile.write(tmp_path / name, samples, rate, subtype="FLOAT")
        return str(tmp_path / name)

    return write


def read(arena, work):
    return ReadStage(StageSpec(READING, "read", (), RATES), "cpu").run([work], arena)[0][0]


def test_what_is_read_is_what_the_files_hold(arena, wave, tmp_path):
    path, built = wave("a.wav"), wave("b.wav", rate=24000, channels=1, seed=1)
    keep = tmp_path / "kept" / "a.flac"
    work = ReadWork(
        FileRequest(path, str(keep)),
        {"tts": FileRequest(built), "none": FileRequest("no.wav")},
        arena.allocate_bytes(1 << 20),
    )
    result = read(arena, work)
    audio, output = Audio.read(path), result.reference
    assert (output.sample_rate_hz, output.num_samples, output.channels) == (22050, 11025, 2)
    assert output.content_hash == content_hash(audio.samples, 22050)
    assert (arena.view(output.audio) == audio.samples).all()
    for rate in (22050, 16000):
        assert (arena.view(output.rates[rate]) == to_signal(audio, rate)).all()
    assert (arena.view(result.estimates["tts"].rates[16000]) == to_signal(Audio.read(built), 16000)).all()
    assert "no.wav" in result.estimates["none"] and keep.is_file() and result.needs == 0
    arena.shrink(work.room, result.used)
    for region in (*output.rates.values(), output.audio, *result.estimates["tts"].rates.values()):
        arena.free(region)
    assert used_bytes(arena) == 0


@pytest.mark.parametrize(
    ("seconds", "rate", "channels", "gain", "measured"),
    [(0.5, 16000, 1, 1, True), (0.5, 16000, 2, 1, False), (0.5, 22050, 1, 1, False), (0.5, 16000, 1, 3, False),
     (0.01, 16000, 1, 1, False)],
    ids=["mono", "stereo", "resampled", "beyond full scale", "less than a frame"],
)  # fmt: skip
def test_levels_that_reading_passes_on_are_those_of_the_signal(
    arena, tmp_path, seconds, rate, channels, gain, measured
):
    noise = gain * np.random.default_rng(0).uniform(-0.5, 0.5, (int(seconds * rate), channels)) + 0.2
    soundfile.write(tmp_path / "a.wav", noise, rate, subtype="FLOAT")
    work = ReadWork(None, {"tts": FileRequest(str(tmp_path / "a.wav"))}, arena.allocate_bytes(1 << 20))
    signal = read(arena, work).estimates["tts"]
    assert (signal.levels is not None) == measured
    if measured:
        expected = measure_levels(arena.view(signal.rates[16000]), 16000)
        assert signal.levels.frames == pytest.approx(expected.frames, abs=1e-4)
        assert signal.levels.loud == pytest.approx(expected.loud, abs=1e-4)


def test_a_sample_that_does_not_fit_says_what_it_needs(arena, wave):
    work = ReadWork(FileRequest(wave("a.wav")), {}, arena.allocate_bytes(50_000))
    behind = arena.allocate((1000,))
    arena.view(behind)[...] = 7
    needs = read(arena, work).needs
    assert needs >= 4 * (2 * 11025 + 11025 + 8000) and (arena.view(behind) == 7).all()
    again = read(arena, ReadWork(work.reference, {}, arena.allocate_bytes(needs)))
    assert again.needs == 0 and again.used == needs


def test_a_large_file_is_not_decoded_before_there_is_room_for_it(arena, wave, monkeypatch):
    paths, rates = (wave("a.wav"), wave("b.wav", rate=24000, channels=1, seed=1)), []
    decode = Audio.read
    monkeypatch.setattr(Audio, "read", lambda path: rates.append(path) or decode(path))
    monkeypatch.setattr(reading, "SMALL_BYTES", 0)
    small = ReadWork(FileRequest(paths[0]), {"tts": FileRequest(paths[1])}, arena.allocate_bytes(50_000))
    needs = read(arena, small).needs
    assert needs and not rates
    again = read(arena, ReadWork(small.reference, small.estimates, arena.allocate_bytes(needs)))
    assert again.needs == 0 and again.used == needs and rates == list(paths)


def test_samples_that_are_read_twice_have_the_same_numbers(run_it, same, monkeypatch):
    requested = {"codec": "unprocessed,g711-ulaw", "data": "embedded", "metrics": "si_sdr,stoi,bitrate", "limit": 5}
    complete = run_it(out="whole", **requested)
    monkeypatch.setattr(feed, "LEAST_ROOM", 1000)
    monkeypatch.setattr(feed, "MOST_ROOM", 1000)
    same(run_it(out="twice", **requested), complete)


def test_a_file_that_ends_its_reader_fails_alone(run_it, wave, tmp_path, monkeypatch):
    paths = {name: wave(f"{name}.wav", rate=16000, channels=1, seed=k) for k, name in enumerate(("a", "bad", "c"))}
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, soundfile\nbefore = soundfile.SoundFile.__init__\n"
        "def opened(self, file, *a, **k):\n"
        "    if 'bad' in str(getattr(file, 'name', file)):\n        os.abort()\n"
        "    before(self, file, *a, **k)\n"
        "soundfile.SoundFile.__init__ = opened\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({"id": n, "audio": p}) + "\n" for n, p in paths.items()))
    run = run_it(codec="unprocessed", data=str(tmp_path / "data.jsonl"), metrics="si_sdr,stoi")
    scores = {(s.id, s.metric): s for s in run.scores()}
    assert scores["bad", "stoi"].status == "failed"
    assert scores["bad", "stoi"].reason.as_dict() == {
        "code": "unreadable",
        "cause": {
            "code": "worker_died",
            "stage": "decode and resample",
            "cause": {"code": "process_killed", "signal": 6},
            "times": 2,
        },
    }
    assert {scores[name, "stoi"].status for name in ("a", "c")} == {"ok"}


def test_few_samples_are_read_while_nothing_is_known_of_their_size():
    engine = Engine(None, EngineSettings(), None, None, "")
    assert [engine._has_room(reading) for reading in (0, 7, 8, 100)] == [True, True, False, False]
    engine._admitted, engine._mean_bytes = 1, 40 << 20
    assert [engine._has_room(reading) for reading in (0, 3, 4)] == [True, True, False]


def test_large_files_are_read_before_others_but_one_among_many(monkeypatch):
    monkeypatch.setattr(feed, "LOOKED_AT", 10)
    monkeypatch.setattr(feed, "AMONG", 4)
    monkeypatch.setattr(feed, "file_bytes", lambda sample: feed.LARGE_BYTES if sample in large else 5)
    large = {7, 8, 15}
    results = [number for number, _, _ in feed.put_large_first((k, k, []) for k in range(20))]
    assert results == [7, 0, 1, 2, 8, 3, 4, 5, 15, 6, *[k for k in range(9, 20) if k != 15]]
    large.clear()
    assert [number for number, _, _ in feed.put_large_first((k, k, []) for k in range(20))] == list(range(20))
    large.update(range(20))
    assert [number for number, _, _ in feed.put_large_first((k, k, []) for k in range(20))] == list(range(20))


def test_the_size_of_a_sample_is_that_of_its_larger_file(wave):
    short, long = wave("a.wav", seconds=0.1), wave("b.wav")
    assert feed.file_bytes(Sample("x", short, estimate=long)) == os.path.getsize(long) > os.path.getsize(short)
    assert feed.file_bytes(Sample("x", "table.parquet#3")) == feed.file_bytes(Sample("x", None)) == 0
