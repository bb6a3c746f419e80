"""The main job: every system and metric has numbers, and no process of it touches a network."""

from __future__ import annotations

import json
import os
import shlex
import shutil

import pytest
from command_line import COMMAND
from forked import FIRST

from codec_bench.apps.profiling.steps import OPTIONAL
from codec_bench.config import read_config
from codec_bench.data import open_source
from codec_bench.engine import pool
from codec_bench.report.open_run import open_run

BLOCKED = """
import os, socket

connect = socket.socket.connect

def refuse(*args, **kwargs):
    if getattr(args[0], "family", None) == socket.AF_UNIX:  # by which processes on this machine are started
        return connect(*args)
    with open(os.environ["CODEC_BENCH_TEST_SOCKETS"], "a") as file:
        file.write(repr(args[1:]) + "\\n")
    raise OSError("no network here")

socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse
socket.getaddrinfo = socket.create_connection = refuse
open(os.environ["CODEC_BENCH_TEST_SOCKETS"] + ".refused", "a").write("x")
"""


@pytest.fixture(scope="module", params=[3, pytest.param(14, marks=pytest.mark.long)])
def utterances(request) -> int:
    """How many the demo takes: fewer, or as many as it takes by default."""
    return request.param


@pytest.fixture(scope="module")
def demo(utterances, tmp_path_factory):
    """The demo, with sockets that refuse every connection in every process."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "blocked.py").write_text(BLOCKED)
    environment = {
        **os.environ, FIRST: str(folder / "blocked.py"), "CODEC_BENCH_TEST_SOCKETS": str(folder / "sockets"),
        "CODEC_BENCH_CACHE": str(folder / "cache"),
    }  # fmt: skip
    command = [
        *COMMAND,
        "demo",
        "--out",
        str(folder / "run"),
        *(["--limit", str(utterances)] if utterances < 14 else []),
    ]
    done = pool.subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=1800)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_no_process_touches_a_network(demo):
    folder, _ = demo
    assert len((folder / "sockets.refused").read_text()) >= 2, "the command and a worker"
    assert not (folder / "sockets").exists(), (folder / "sockets").read_text()


def test_every_system_and_metric_has_numbers(demo, utterances):
    folder, done = demo
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert list(summary["systems"]) == [
        "unprocessed", "opus-6k", "opus-12k", "opus-24k", "mp3-32k", "aac-32k", "amr-nb-12k", "g722",
    ]  # fmt: skip
    for name, system in summary["systems"].items():
        assert set(system["metrics"]) == {
            "bitrate", "wer[pocketsphinx]", "sim[ge2e]", "dnsmos_ovrl", "dnsmos_p808", "pesq_wb", "stoi", "estoi",
            "si_sdr", "mel_distance", "stft_distance",
        }  # fmt: skip
        for metric, entry in system["metrics"].items():
            if name == "unprocessed" and metric in ("bitrate", "si_sdr"):
                assert entry["n"] == 0 and entry["missing"] == {"undefined": utterances}
                continue
            assert entry["n"] == utterances, (name, metric, entry)
            assert entry["ci95"][0] <= entry["value"] <= entry["ci95"][1]
            if entry["ci95"][0] == entry["ci95"][1]:  # such as those of unprocessed speech
                assert entry["note_code"] == {"code": "all_equal"}
        assert name in done.stdout


def test_it_takes_the_utterances_of_all_voices(demo, utterances):
    folder, _ = demo
    preset = read_config("preset", "demo")
    assert preset["limit"] == len(open_source(preset["data"])) == 14
    chosen = open_source(preset["data"], limit=utterances, seed=preset["seed"])
    assert [sample.id for sample in open_run(folder / "run").samples()] == [sample.id for sample in chosen]


def test_it_tells_systems_apart(demo, utterances):
    if utterances < 14:
        pytest.skip("a part of the voices")
    folder, done = demo
    systems = json.loads((folder / "run" / "summary.json").read_text())["systems"]
    standings = {
        metric: {name: systems[name]["metrics"][metric]["standing"] for name in systems if name != "unprocessed"}
        for metric in systems["opus-6k"]["metrics"]
        if metric != "bitrate"
    }
    for metric, of in standings.items():
        assert not of["opus-6k"]["best"] and not of["opus-6k"]["alike"], metric
        assert sum(one["best"] for one in of.values()) == 1, metric
    assert 10 < sum(one["alike"] for of in standings.values() for one in of.values()) < 35
    assert "≈" in done.stdout and "≈" in (folder / "run" / "report.html").read_text("utf-8")


def test_it_ends_with_what_to_try_next_and_that_works(demo, tmp_path):
    folder, done = demo
    _, details = done.stderr.split("\nWhat to try next:\n")
    assert f"open {folder / 'run' / 'report.html'} in a browser" in details
    commands = [shlex.split(line) for line in details.splitlines() if line.startswith("    ")]
    assert [command[:2] for command in commands] == [["codec-bench", "eval"], ["codec-bench", "profile"]]
    (tmp_path / "FOLDER").mkdir()
    shutil.copy(next(iter(open_source("embedded"))).audio, tmp_path / "FOLDER")
    (tmp_path / "mine.py").write_text(
        "from codec_bench.codecs.classical.g722 import G722\n\n\nclass MyCodec(G722):\n    pass\n", "utf-8"
    )
    short = {
        "eval": [],
        "profile": ["--metrics", "si_sdr", "--limit", "2", "--clip-s", "0.5", "--skip", ",".join(OPTIONAL)],
    }
    for _, name, *arguments in commands:
        ran = pool.subprocess.run(
            [*COMMAND, name, *arguments, *short[name], "--out", name], cwd=tmp_path, capture_output=True, text=True,
            timeout=1800,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert (tmp_path / name / {"eval": "report.html", "profile": "profile.html"}[name]).is_file()


def test_the_numbers_have_the_order_they_must_have(demo):
    folder, _ = demo
    systems = json.loads((folder / "run" / "summary.json").read_text())["systems"]
    value = lambda system, metric: systems[system]["metrics"][metric]["value"]  # noqa: E731
    for metric in ("pesq_wb", "stoi", "estoi", "si_sdr", "sim[ge2e]"):
        assert value("opus-6k", metric) < value("opus-12k", metric) < value("opus-24k", metric), metric
    for metric in ("mel_distance", "stft_distance"):
        assert value("opus-6k", metric) > value("opus-12k", metric) > value("opus-24k", metric), metric
        assert value("unprocessed", metric) == 0
    assert value("unprocessed", "stoi") == pytest.approx(1)
    assert value("unprocessed", "sim[ge2e]") == pytest.approx(1)
    for name, kbps in (
        ("opus-6k", 6),
        ("opus-12k", 12),
        ("opus-24k", 24),
        ("g722", 64),
        ("amr-nb-12k", 12.2),
    ):
        assert value(name, "bitrate") / 1000 == pytest.approx(kbps, rel=0.05), name


def test_the_record_holds_the_audio_and_the_words(demo):
    folder, _ = demo
    run = open_run(folder / "run")
    assert all(i.audio.is_file() for i in run.items())
    score = next(run.scores("opus-6k", "wer[pocketsphinx]"))
    assert {"hits", "substitutions", "deletions", "insertions", "reference", "hypothesis"} <= score.detail.keys()
    assert (folder / "run" / "report.html").stat().st_size > 1_000_000
