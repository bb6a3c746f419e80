"""Parts of a run that went wrong: what may be merged gives the record of one machine, and what may not is refused in a
sentence.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import closing

import pytest
from refusals import Containing, refuses

from codec_bench import evaluate
from codec_bench.api.merge import merge
from codec_bench.apps.cluster.parts import progress_of
from codec_bench.data import open_source
from codec_bench.engine.running import Running
from codec_bench.messages.errors import UserError
from codec_bench.store.parts import MARK
from codec_bench.store.record import Run

CODEC = """
import numpy as np
from codec_bench import Audio, CodecInfo, Codes, CodeStream


class Quiet:
    def __init__(self, weights=None):
        self.info = CodecInfo("quiet@128", (16000,), frame_rate_hz=16000, nominal_bitrate_bps=128000)
        self.level = float(open(weights).read()) if weights else 0.5

    def encode(self, batch):
        coded = [np.clip(np.round(127 * self.level * audio.samples[0] + 128), 0, 255).astype(int) for audio in batch]
        return [Codes((CodeStream(one[None], 256, 16000),), one.size, 16000) for one in coded]

    def decode(self, codes):
        return [Audio(((one.streams[0].values - 128) / 127).astype(np.float32), 16000) for one in codes]
"""
SHARDS = 2
"""Of eight clips: each holds some."""


@pytest.fixture(scope="module")
def clips():
    return [sample.id for sample in open_source("embedded", limit=8)]


def item(folder, k, *, codec="g711-ulaw", data="embedded", limit=8, **more):
    return evaluate(
        codec=codec, data=data, limit=limit, metrics="si_sdr", shard=(k, SHARDS), out=folder / f"part{k}",
        progress=False,
        running=Running(workers=1, check=False, page=False), **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Both parts, and the run of one machine."""
    folder = tmp_path_factory.mktemp("made")
    for k in (1, 2):
        item(folder, k).close()
    complete = evaluate(
        codec="g711-ulaw", data="embedded", limit=8, metrics="si_sdr", out=folder / "whole", progress=False,
        running=Running(workers=1, check=False, page=False),
    )  # fmt: skip
    with closing(complete):
        return folder, list(complete.rows())


@pytest.fixture
def parts(build, tmp_path):
    """Copies of both parts."""
    return [shutil.copytree(build[0] / f"part{k}", tmp_path / f"part{k}") for k in (1, 2)]


def rows_of(folder):
    with closing(Run(folder)) as run:
        return list(run.rows())


def test_clocks_an_hour_apart_change_nothing(build, parts, tmp_path):
    """A node whose clock is an hour ahead wrote one part, and one whose clock is an hour late the other."""
    for folder, hours in zip(parts, (1, -1)):
        for path in folder.rglob("*"):
            os.utime(path, (time.time() + hours * 3600,) * 2)
    merge(parts=parts, out=tmp_path / "out").close()
    assert rows_of(tmp_path / "out") == build[1]
    assert [one.state for one in progress_of(parts)] == ["finished", "finished"]


def test_half_a_copy_is_refused_whatever_half_it_is(parts, tmp_path):
    (parts[0] / MARK).unlink()
    with refuses("shards_incomplete", causes=Containing("shard 1/2")):
        merge(parts=parts, out=tmp_path / "out")
    halved = parts[1] / "run.sqlite"
    halved.write_bytes(halved.read_bytes()[: halved.stat().st_size // 2])
    with refuses("record_damaged", path=Containing("part2")):
        merge(parts=parts, out=tmp_path / "out", partial=True)
    halved.unlink()
    with refuses("holds_no_run", folder="part2"):
        merge(parts=parts, out=tmp_path / "out")
    assert not (tmp_path / "out" / "run.sqlite").exists()


def test_a_folder_that_filled_up_is_reported_and_the_part_continues(build, tmp_path, monkeypatch):
    """The disk is full when results are to be recorded."""
    import errno

    from codec_bench.store import writer

    real = writer.RunWriter.write

    def full(self, records):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer.RunWriter, "write", full)
    with pytest.raises((UserError, OSError), match=r"[Nn]o space left"):
        item(tmp_path, 1)
    monkeypatch.setattr(writer.RunWriter, "write", real)
    with refuses("shards_incomplete", causes=Containing("shard 1/2")):
        merge(parts=[tmp_path / "part1", build[0] / "part2"], out=tmp_path / "out")
    item(tmp_path, 1).close()
    merge(parts=[tmp_path / "part1", build[0] / "part2"], out=tmp_path / "out").close()
    assert rows_of(tmp_path / "out") == build[1]


def test_a_part_that_two_run_at_once_is_refused_to_the_second(build, parts):
    from codec_bench.store.writer import RunWriter

    with closing(Run(parts[0])) as run:
        fingerprint = run.meta["fingerprint"]
    messages = []

    def second():
        try:
            item(parts[0].parent, 1)
        except UserError as error:
            messages.append(str(error))

    with closing(RunWriter(parts[0], fingerprint)):
        other = threading.Thread(target=second)
        other.start()
        other.join(60)
    assert messages and "part1" in messages[0] and "is being written by another process" in messages[0]


def test_parts_of_other_code_or_other_weights_are_refused_with_the_difference(tmp_path):
    actual = tmp_path / "quiet.py"
    actual.write_text(CODEC)
    levels = {name: tmp_path / f"{name}.txt" for name in ("here", "there")}
    for path, level in zip(levels.values(), ("0.5", "0.25")):
        path.write_text(level)
    codec = f"{actual}:Quiet"
    item(tmp_path, 1, codec=codec).close()
    actual.write_text(CODEC.replace("else 0.5", "else 0.25"))
    item(tmp_path, 2, codec=codec).close()
    with refuses("parts_wrong", causes=Containing("code was ")):
        merge(parts=[tmp_path / "part1", tmp_path / "part2"], out=tmp_path / "out")
    for k, path in enumerate(levels.values(), 1):
        item(tmp_path / "weights", k, codec=codec, options={codec: {"weights": str(path)}}).close()
    with refuses("parts_wrong", causes=Containing("here.txt")):
        merge(parts=[tmp_path / "weights" / f"part{k}" for k in (1, 2)], out=tmp_path / "out")


def test_a_manifest_that_changed_between_two_shards_is_refused(tmp_path, clips):
    manifest = tmp_path / "m.jsonl"
    samples = {sample.id: sample for sample in open_source("embedded", limit=8)}
    write = lambda names: manifest.write_text(  # noqa: E731
        "".join(json.dumps({"id": name, "audio": str(samples[name].audio)}) + "\n" for name in names)
    )
    write(clips)
    item(tmp_path, 1, data=manifest, limit=None).close()
    write(clips[:-1])
    item(tmp_path, 2, data=manifest, limit=None).close()
    with refuses("parts_wrong", causes=Containing("data was ")):
        merge(parts=[tmp_path / "part1", tmp_path / "part2"], out=tmp_path / "out")
