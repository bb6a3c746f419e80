"""Records that an earlier version began: today's version reads them, continues them, and comes to the same numbers."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from codec_bench import evaluate, open_run, run_benchmark
from codec_bench.data import REGISTERED
from codec_bench.errors import RunMismatch

OLD = Path(__file__).parents[1] / "golden" / "record_0_1"
RENEWED = {"wer/answer/by-language-1": "wer/answer/by-language-3"}
"""What is scored today goes by today's rule. It gives other numbers only where a reference is empty or a spelling is
left to choice, as none is here."""


def rebuild(folder: Path, *names: str) -> Path:
    """The run folder that a killed run of version 0.1 left; the later of several files changes rows of the first."""
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "run.sqlite") as record:
        for name in names:
            record.executescript((OLD / name).read_text("utf-8").replace("{embedded}", str(REGISTERED["embedded"])))
    record.close()
    return folder


def same_numbers(folder: Path, expected: str) -> None:
    """Every value of `summary.json` equals what version 0.1 gave for the same run uninterrupted. Intervals are newer."""
    ours = json.loads((folder / "summary.json").read_text("utf-8"))["systems"]
    theirs = json.loads((OLD / expected).read_text("utf-8"))["systems"]
    assert ours.keys() == theirs.keys()
    for system, metrics in theirs.items():
        assert ours[system]["metrics"].keys() == metrics.keys()
        for metric, entry in metrics.items():
            mine = ours[system]["metrics"][metric]
            protocol = RENEWED.get(entry["protocol"], entry["protocol"])
            assert (mine["n"], mine["failed"], mine["protocol"]) == (entry["n"], entry["failed"], protocol)
            # Vector instructions differ between machines in the last digits.
            assert mine["value"] == pytest.approx(entry["value"], rel=1e-6), (system, metric)


def test_a_killed_evaluation_is_read_and_continued(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    folder = rebuild(tmp_path / "run", "evaluate.sql")
    begun = open_run(folder).scores()
    assert {(row.system, row.id) for row in begun} == {("g722", "awb_05")}
    run = evaluate(
        codec="g722,opus-12k", data="embedded", metrics="stoi,bitrate,mel_distance", out=folder, limit=6, workers=1,
        save_audio="none", page=False, by="speaker,duration",
    )  # fmt: skip
    assert run.meta["timings"]["continued_after_items"] == 1
    same_numbers(folder, "evaluate.json")
    # Version 0.1 knew no breakdown; its record gives one all the same.
    stoi = json.loads((folder / "summary.json").read_text("utf-8"))["systems"]["g722"]["metrics"]["stoi"]
    speakers, durations = stoi["subsets"]["speaker"], stoi["subsets"]["duration"]
    assert set(speakers) == {sample.speaker for sample in run.samples()}
    assert sum(row["value"] * row["n"] for row in speakers.values()) / 6 == pytest.approx(stoi["value"], rel=1e-12)
    assert sum(row["n"] for row in durations.values()) == 6


def test_a_killed_benchmark_is_read_and_continued(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    for name in ("model.py", "capitals"):
        whole = OLD / name
        (shutil.copytree if whole.is_dir() else shutil.copy)(whole, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    folder = rebuild(tmp_path / "out" / "capitals" / "echo", "capitals.sql")
    monkeypatch.setenv(
        "ECHO_ANSWERS", "3"
    )  # it is killed at a fourth question: what was answered must not be asked again
    run_benchmark(benchmark="./capitals", model="./model.py:Echo", out=tmp_path / "out", cache=False, page=False)
    same_numbers(folder, "capitals.json")


def test_a_benchmark_whose_definition_names_speakers_since_is_the_same_run(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    for name in ("model.py", "capitals"):
        whole = OLD / name
        (shutil.copytree if whole.is_dir() else shutil.copy)(whole, tmp_path / name)
    definition = tmp_path / "capitals" / "benchmark.yaml"
    text = definition.read_text("utf-8")
    definition.write_text(
        text.replace("id: id,", "id: id, speaker: {column: id, pattern: '(a[1-4])'}, optional: [speaker],")
    )
    monkeypatch.chdir(tmp_path)
    folder = rebuild(tmp_path / "out" / "capitals" / "echo", "capitals.sql")
    assert [sample.speaker for sample in open_run(folder).samples()] == [None] * 3
    monkeypatch.setenv("ECHO_ANSWERS", "3")  # what was answered is not asked again
    run_benchmark(benchmark="./capitals", model="./model.py:Echo", out=tmp_path / "out", cache=False, page=False)
    same_numbers(folder, "capitals.json")
    assert [sample.speaker for sample in open_run(folder).samples()] == ["a1", "a2", "a3", "a4", None, None]


def test_a_run_by_an_earlier_protocol_is_read_and_says_why_it_is_not_continued(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    folder = rebuild(tmp_path / "run", "evaluate.sql", "si_sdr.sql")
    (begun,) = [row for row in open_run(folder).scores() if row.metric == "si_sdr"]
    assert (begun.protocol, begun.value) == ("si_sdr/no-zero-mean", pytest.approx(26.295, abs=1e-3))
    with pytest.raises(RunMismatch, match=r"metrics\.si_sdr was si_sdr/no-zero-mean, now si_sdr/no-zero-mean/uncut"):
        evaluate(
            codec="g722,opus-12k",
            data="embedded",
            metrics="stoi,bitrate,si_sdr",
            out=folder,
            limit=6,
            page=False,
            workers=1,
        )


def test_another_question_is_another_run(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    folder = rebuild(tmp_path / "run", "evaluate.sql")
    with pytest.raises(RunMismatch, match="seed"):
        evaluate(
            codec="g722,opus-12k",
            data="embedded",
            metrics="stoi,bitrate,mel_distance",
            out=folder,
            limit=6,
            seed=1,
            page=False,
        )
