"""Spoken texts: what is kept, the reason of what is dropped, and that nothing is synthesised twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from codec_bench import build
from codec_bench.audio.decode import decode_bytes
from codec_bench.audio.encode import flac_bytes
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.benchmark import load_benchmark
from codec_bench.building.checks import longest_pause_s
from codec_bench.errors import UserError
from codec_bench.types import Audio

pytest.importorskip("num2words")
HERE = Path(__file__).parent


@pytest.fixture
def speaking(tmp_path, monkeypatch):
    """Writes rows and a recipe; gives the path of the recipe."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))

    def write(*questions, **changed):
        rows = [
            {"question": q, "choices": ["red", "blue"], "answer": "B", "subject": "colours"}
            if isinstance(q, str)
            else q
            for q in questions
        ]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        log = {"log": str(tmp_path / "said.jsonl")}
        recipe = {
            "version": 1, "kind": "spoken", "title": "Spoken", "summary": "Spoken questions.", "language": "en",
            "texts": {"data": "rows.jsonl", "group": "subject", "licence": "MIT"},
            "template": "{{ question }} {% for choice in choices %}{{ 'AB'[loop.index0] }}: {{ choice }}. {% endfor %}",
            "synthesiser": {"model": f"{HERE / 'scripted.py'}:Speaker", "options": log},
            "voices": [{"name": "plain", "options": {"voice": "plain"}}, {"name": "other", "options": {"voice": "other"}}],
            "checks": {"recognisers": [{"model": f"{HERE / 'scripted.py'}:Listener", "options": log}]},
        }  # fmt: skip
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({**recipe, **changed}))
        return tmp_path / "recipe.yaml"

    return write


def rows_of(folder):
    return pq.read_table(folder / "data" / "test-00000-of-00001.parquet").to_pylist()


def said_in(folder):
    return [json.loads(line)["said"] for line in (folder / "said.jsonl").read_text().splitlines()]


def test_what_is_read_back_is_kept_at_one_loudness(speaking, tmp_path):
    built = build(speaking("What has 2 colours?", "Which is warm?"), out=tmp_path / "set")
    rows = rows_of(built.folder)
    assert [row["said"] for row in rows] == [
        "What has two colours? A: red. B: blue.", "Which is warm? A: red. B: blue.",
    ]  # fmt: skip
    for row in rows:
        audio = decode_bytes(row["audio"]["bytes"], row["id"])
        assert loudness_lufs(audio) == pytest.approx(-23, abs=0.05) and row["loudness_lufs"] == pytest.approx(
            -23, abs=0.01
        )
        assert row["error_rate"] == 0 and row["answer"] == "B" and row["group"] == "colours"
        assert json.loads(row["provenance"])["voice"] == row["voice"]
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.kind == "qa" and definition.size == 2


def test_every_drop_has_its_reason(speaking, tmp_path):
    row = {"question": "Which?", "choices": ["red", "blue"], "answer": "A", "subject": "colours"}
    bad = {
        "": "nothing to say", "What is x^2?": "a sign cannot", "Is it broken?": "gave an error", "Is it hurried?": "too short",
        "Is it silent?": "silent", "Is it paused?": "long pause", "Is it shouted?": "clipped", "Is it skipped?": "not read back",
    }  # fmt: skip
    rows = [*bad, {**row, "answer": "C"}, {**row, "choices": ["8", "eight"]}, {**row, "choices": "red"}, "Is it fine?"]
    funnel = build(speaking(*rows), out=tmp_path / "set").funnel
    assert funnel.items == 12 and funnel.kept == 1
    lines = [json.loads(line) for line in (tmp_path / "set" / "dropped.jsonl").read_text().splitlines()]
    for line, reason in zip(lines, [*bad.values(), "names no option", "sound alike", "cannot be used"], strict=True):
        assert reason in line["reason"], line
    assert sum(count for _, _, reason, count in funnel.rows() if reason) == 11
    assert funnel.groups["group"] == {"colours": [11, 1]}


def test_a_retry_takes_another_voice(speaking, tmp_path):
    built = build(
        speaking(*(f"Is it mumbled, {name}?" for name in ("Anna", "Bert", "Carl", "Dora"))), out=tmp_path / "set"
    )
    assert built.funnel.kept == 4 and {row["voice"] for row in rows_of(built.folder)} == {"other"}
    assert built.funnel.tries > 4, "the seed gives some of the four the other voice first"


def test_a_threshold_by_name_keeps_what_is_read_back_nearly(speaking, tmp_path):
    recipe = yaml.safe_load(speaking("Is it skipped?").read_text())
    checks = {**recipe["checks"], "error_rate": 0.4}
    built = build(speaking("Is it skipped?", checks=checks), out=tmp_path / "set")
    (row,) = rows_of(built.folder)
    assert 0 < row["error_rate"] <= 0.4


def test_nothing_is_synthesised_twice_and_bytes_are_equal(speaking, tmp_path):
    recipe = speaking(*(f"Is it number {n}?" for n in range(6)))
    first = build(recipe, out=tmp_path / "a", limit=3)
    assert first.funnel.items == 3
    whole, again = build(recipe, out=tmp_path / "b"), build(recipe, out=tmp_path / "c")
    assert set(Counter(said_in(tmp_path)).values()) == {1} and len(said_in(tmp_path)) == 6
    for name in ("README.md", "benchmark.yaml", "data/test-00000-of-00001.parquet", "funnel.json"):
        assert (whole.folder / name).read_bytes() == (again.folder / name).read_bytes()


def test_a_text_that_stands_twice_is_synthesised_once(speaking, tmp_path):
    one = [{"name": "plain"}]
    speaker = {
        "model": f"{HERE / 'scripted.py'}:Speaker",
        "options": {"log": str(tmp_path / "said.jsonl"), "wait_s": 0.05},
    }
    built = build(speaking(*["Is it blue?"] * 6, voices=one, synthesiser=speaker), out=tmp_path / "set")
    assert built.funnel.kept == 6 and len(said_in(tmp_path)) == 1


def test_a_voice_imitates_a_recording(speaking, tmp_path):
    noise = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    (tmp_path / "voice.flac").write_bytes(flac_bytes(Audio(noise, 16_000)))
    heard = {}
    for name, voice in (("own", {}), ("imitated", {"recording": "voice.flac"})):
        built = build(speaking("Is it blue?", voices=[{"name": name, **voice}]), out=tmp_path / name)
        heard[name] = rows_of(built.folder)[0]["audio"]["bytes"]
    assert heard["own"] != heard["imitated"]
    with pytest.raises(UserError, match="not there"):
        build(speaking("Is it blue?", voices=[{"name": "gone", "recording": "gone.flac"}]), out=tmp_path / "gone")


@pytest.mark.long
def test_twenty_kills_change_nothing(speaking, tmp_path):
    speaker = {
        "model": f"{HERE / 'scripted.py'}:Speaker",
        "options": {"log": str(tmp_path / "said.jsonl"), "wait_s": 0.05},
    }
    questions = [f"Is it mumbled, number {n}?" if n % 3 else f"Is it number {n}?" for n in range(200)]
    recipe = speaking(*questions, synthesiser=speaker)
    code = "import sys; from codec_bench import build; build(sys.argv[1], out=sys.argv[2])"
    command = [sys.executable, "-P", "-c", code, str(recipe), str(tmp_path / "killed")]
    log = tmp_path / "said.jsonl"
    log.touch()
    for _ in range(20):
        process, before = subprocess.Popen(command), len(said_in(tmp_path))
        while len(said_in(tmp_path)) < before + 8 and process.poll() is None:
            time.sleep(0.01)
        assert process.poll() is None, "the build ended before it was killed"
        process.kill()
        process.wait()
    subprocess.run(command, check=True)
    said = Counter((line["said"], line["key"]) for line in map(json.loads, log.read_text().splitlines()))
    assert sum(said.values()) - len(said) <= 20 * 8, "only what was in flight at a kill is said again"
    shutil.rmtree(tmp_path / "cache")
    build(recipe, out=tmp_path / "whole")
    for name in ("README.md", "benchmark.yaml", "data/test-00000-of-00001.parquet", "dropped.jsonl", "funnel.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()


def test_wrong_recipes_are_refused_before_anything_is_spoken(speaking, tmp_path):
    for changed, said in (
        ({"template": "{{ subject }}"}, "template reads subject"),
        ({"texts": {"data": "rows.jsonl", "licence": "MIT", "answer": "key"}}, "no column key"),
        ({"texts": {"data": "rows.jsonl"}}, "licence"),
        ({"voices": [{"name": "plain"}, {"name": "plain"}]}, "same name"),
    ):
        with pytest.raises(UserError, match=said):
            build(speaking("Is it fine?", **changed), out=tmp_path / "set")
    assert not (tmp_path / "said.jsonl").exists()


def test_a_pause_is_measured():
    sound = np.random.default_rng(0).normal(0, 0.1, 16_000)
    paused = Audio(np.concatenate([sound, np.zeros(8_000), sound]), 16_000)
    assert longest_pause_s(paused) == pytest.approx(0.5, abs=0.03)
    assert longest_pause_s(Audio(sound, 16_000)) == 0


def test_flite_speaks_and_pocketsphinx_reads_back(speaking, tmp_path):
    if shutil.which("flite") is None:
        pytest.skip("flite is not installed")
    pytest.importorskip("pocketsphinx")
    recogniser = {"recognisers": [{"model": "pocketsphinx"}], "error_rate": 0.5, "unit": "word"}
    recipe = speaking(
        "What is the color of the sky?", checks=recogniser, template="{{ question }}", retries=0,
        synthesiser={"model": f"{HERE / 'flite.py'}:Flite"}, voices=[{"name": "slt"}],
    )  # fmt: skip
    (row,) = rows_of(build(recipe, out=tmp_path / "set").folder)
    assert row["error_rate"] <= 0.5 and "color" in row["transcripts"][0]
