"""Whole data sets: questions that Flite speaks and PocketSphinx reads back, and mixtures of recordings by FFmpeg's
meter.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from codec_bench import build, run_benchmark
from codec_bench.apps.building.mixtures import excerpt
from codec_bench.audio.clip import Clip
from codec_bench.decoding.decode import decode_bytes
from codec_bench.types import Audio

from .conftest import rows_of, same_bytes
from .killed import build_through_kills

HERE = Path(__file__).parent
RECORDINGS = os.environ.get("CODEC_BENCH_TEST_RECORDINGS")
WORDS = {
    "an animal": "horse tiger monkey rabbit elephant".split(),
    "a color": "yellow purple orange silver green".split(),
    "a month": "january february october november december".split(),
    "a part of the body": "finger shoulder stomach elbow tongue".split(),
    "a kind of weather": "thunder sunshine rain snow lightning".split(),
}
TEMPLATE = (
    "{{ question }} {% for choice in choices %}The {{ ['first', 'second', 'third'][loop.index0] }} one is {{ choice "
    "}}. {% endfor %}"
)
ANSWERS = '''
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Always(Model):
    """Answers A to any text."""
    info = ModelInfo("always")
    identity = {"always": 1}

    async def ask(self, request):
        return Response(text="A")
'''


def questions(count):
    """Questions of our own whose answer is the one word that belongs to the class."""
    random, rows = np.random.default_rng(0), []
    for _ in range(count):
        classes = [str(name) for name in random.permutation(list(WORDS))[:3]]
        choices = [str(random.choice(WORDS[name])) for name in classes]
        right = int(random.integers(3))
        rows.append({"question": f"Which of these three words is the name of {classes[right]}?", "choices": choices,
                     "answer": "ABC"[right], "subject": classes[right]})  # fmt: skip
    return rows


def accuracy_of(folder, model, out):
    """What the summary of a model's run over a data set says of its accuracy."""
    (run,) = run_benchmark(benchmark=str(folder / "benchmark.yaml"), model=str(model), out=out).runs.values()
    (system,) = json.loads((run.folder / "summary.json").read_text())["systems"].values()
    return system["metrics"]["accuracy[exact]"]


@pytest.mark.long
def test_flite_speaks_200_questions_and_a_cascade_answers_them(tmp_path, monkeypatch):
    if shutil.which("flite") is None:
        pytest.skip("flite is not installed")
    pytest.importorskip("pocketsphinx")
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions(200)))
    recipe = {
        "version": 1, "kind": "spoken", "title": "Spoken words", "summary": "Which word belongs to a class.",
        "language": "en",
        "texts": {"data": "rows.jsonl", "group": "subject", "licence": "MIT"}, "template": TEMPLATE, "retries": 1,
        "synthesiser": {"model": f"{HERE / 'flite.py'}:Flite"},
        "voices": [{"name": voice, "options": {"voice": voice}} for voice in ("slt", "rms")],
        "checks": {"recognisers": [{"model": "pocketsphinx"}], "error_rate": 0.4, "unit": "word"},
    }  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    built = build(tmp_path / "recipe.yaml", out=tmp_path / "set")
    rows = rows_of(built.folder)
    assert built.funnel.items == 200 and 50 <= built.funnel.usable == len(rows)
    assert all(row["error_rate"] <= 0.4 and row["transcripts"][0] for row in rows)
    assert {row["voice"] for row in rows} == {"slt", "rms"}
    same_bytes(built.folder, build(tmp_path / "recipe.yaml", out=tmp_path / "again").folder)
    (tmp_path / "always.py").write_text(ANSWERS)
    cascade = {
        "version": 1, "summary": "What is heard, and always A.", "kind": "cascade", "inputs": ["text", "audio"],
        "outputs": ["text"],
        "options": {"recogniser": "pocketsphinx", "llm": f"{tmp_path / 'always.py'}:Always"},
    }  # fmt: skip
    (tmp_path / "cascade.yaml").write_text(yaml.safe_dump(cascade))
    result = accuracy_of(built.folder, tmp_path / "cascade.yaml", tmp_path / "run")
    assert result["n"] == len(rows)
    assert result["value"] == pytest.approx(sum(row["answer"] == "A" for row in rows) / len(rows))


@pytest.mark.long
def test_flite_speaks_dialogues_with_a_voice_for_each_speaker(tmp_path, monkeypatch):
    if shutil.which("flite") is None:
        pytest.skip("flite is not installed")
    pytest.importorskip("pocketsphinx")
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    turns = ["W: Where did you go on Saturday afternoon?", "M: I went to the market with my brother.",
        "W: What did you buy there?",
             "M: We bought some bread and a yellow bicycle."]  # fmt: skip
    options = ["A bicycle.", "A yellow hat.", "A horse."]
    requests = ("What did the man buy?", "What did the brothers buy?")
    rows = [
        {"dialogue": turns, "question": question, "choices": options, "answer": "A bicycle."} for question in requests
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {
        "version": 1, "kind": "spoken", "title": "Spoken dialogues", "summary": "What was said.", "language": "en",
        "retries": 0,
        "texts": {
            "data": "rows.jsonl", "answer_is": "text", "licence": "MIT",
            "dialogue": {"column": "dialogue", "genders": {"W": "female", "M": "male"}, "pause_s": 0.4},
        },
        "synthesiser": {"model": f"{HERE / 'flite.py'}:Flite"},
        "voices": [
            {"name": name, "gender": gender, "options": {"voice": name}}
            for name, gender in (("slt", "female"), ("rms", "male"))
        ],
        "checks": {"recognisers": [{"model": "pocketsphinx"}], "error_rate": 0.6, "unit": "word"},
    }  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    built = build(tmp_path / "recipe.yaml", out=tmp_path / "set")
    one, other = rows_of(built.folder)
    assert one["voices"] == ["slt", "rms"] and one["audio"]["bytes"] == other["audio"]["bytes"]
    assert one["error_rate"] <= 0.6 and one["check"] == "wer<=0.6" and "saturday" in one["transcripts"][0]
    assert 8 < one["duration_s"] < 20
    (tmp_path / "always.py").write_text(ANSWERS)
    result = accuracy_of(built.folder, f"{tmp_path / 'always.py'}:Always", tmp_path / "run")
    assert result["n"] == 2 and result["value"] == 1 and result["units"] == 1


LICENCES = {
    "arctic_*": "free for any use", "librispeech_*": "CC BY 4.0", "aishell_*": "Apache-2.0", "vox_*": "CC BY 4.0",
    "digit_*": "CC BY-SA 4.0", "encodec_*": "MIT",
}  # fmt: skip


@pytest.mark.long
def test_ffmpeg_measures_the_gaps_of_200_mixtures(tmp_path):
    if RECORDINGS is None or shutil.which("ffmpeg") is None:
        pytest.skip("needs the recordings and ffmpeg")
    recipe = {
        "version": 1, "kind": "mixture", "title": "Mixtures", "summary": "Speech and music.", "language": "en",
        "count": 200,
        "retries": 100, "rate_hz": 16_000,
        "first": {"data": RECORDINGS, "is_what": "the speech", "without": ["encodec_*"], "licences": LICENCES},
        "second": {"data": RECORDINGS, "is_what": "the music", "ids": ["encodec_*"], "licences": LICENCES},
        "excerpt": {"least_s": 1.0, "most_s": 5.0, "fade_s": 0.01}, "gap_db": {"uniform": [-15, 15]},
        "pause_s": {"uniform": [0, 1]},
        "questions": {"louder": {"wordings": ["Which is louder?"], "least": 3.0},
            "ahead": {"wordings": ["Which is first?"], "least": 0.5}},
    }  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    built = build(tmp_path / "recipe.yaml", out=tmp_path / "set")
    rows = rows_of(built.folder)
    assert len(rows) == 200 and {row["overlap"] for row in rows} == {"none", "partial", "full"}
    assert not any("german" in row["first_id"] for row in rows)
    worst = 0.0
    for row in rows:
        first, second = parts = tuple(parts_of(row))
        shift = round(row["offset_s"] * 16_000)
        mixed = np.zeros(round(row["duration_s"] * 16_000), np.float32)
        for item, start in ((first, max(0, -shift)), (second, max(0, shift))):
            mixed[start : start + item.size] += item
        output = Audio(*decode_bytes(row["audio"]["bytes"], row["id"])).samples[0]
        np.testing.assert_allclose(output, mixed, atol=1e-3)
        levels = [ffmpeg_lufs(item, tmp_path / "part.wav") for item in parts]
        worst = max(worst, abs(levels[0] - levels[1] - row["gap_db"]))
    assert worst <= 0.1
    same_bytes(built.folder, build(tmp_path / "recipe.yaml", out=tmp_path / "again").folder)
    (tmp_path / "always.py").write_text(ANSWERS)
    result = accuracy_of(built.folder, f"{tmp_path / 'always.py'}:Always", tmp_path / "run")
    assert result["n"] == 200 and result["value"] == pytest.approx(sum(row["answer"] == "A" for row in rows) / 200)


@pytest.mark.long
def test_twenty_kills_change_no_mixture(mixing, sounds):
    recipe = mixing(count=1600, retries=30)
    record = sounds / "killed" / ".build" / "record.sqlite"

    def create():
        if not record.exists():
            return 0
        with closing(sqlite3.connect(f"file:{record}?mode=ro", uri=True, timeout=30)) as db:
            known = db.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'items'").fetchone()[0]
            return db.execute("SELECT COUNT(*) FROM items").fetchone()[0] if known else 0

    build_through_kills(recipe, sounds / "killed", kills=20, built=create, more=1)
    same_bytes(sounds / "killed", build(recipe, out=sounds / "whole").folder)


def parts_of(row):
    """The two sounds of a mixture by themselves, made again from its provenance."""
    built = json.loads(row["provenance"])
    for origin, gain_db in zip(built["excerpts"], built["gains_db"], strict=True):
        signal = Clip(str(Path(RECORDINGS) / f"{origin['id']}.flac")).fitted(16_000)[0].read().samples[0]
        yield excerpt(signal, origin["start_samples"], origin["length_samples"], 160) * np.float32(10 ** (gain_db / 20))


def ffmpeg_lufs(samples, path):
    soundfile.write(path, samples, 16_000, subtype="FLOAT")
    meter = "ebur128=metadata=1,ametadata=mode=print:key=lavfi.r128.I:file=-"
    command = ["ffmpeg", "-hide_banner", "-v", "error", "-i", str(path), "-af", meter, "-f", "null", "-"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(output.rsplit("lavfi.r128.I=", 1)[1].split()[0])
