"""Sources that the tests write themselves: noise with known levels and a recipe that mixes it, and texts with a recipe
that speaks them.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
import yaml

RATE_HZ = 16_000
HERE = Path(__file__).parent


def noise(seconds, seed, level=0.1):
    """White noise of a level, as float32 samples at 16 kHz."""
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE_HZ)).clip(-1, 1).astype(np.float32)


@pytest.fixture
def sounds(tmp_path):
    """Two folders with manifests, `speech` (four sounds) and `music` (three)."""
    for folder, lengths in (("speech", (2.0, 2.5, 3.0, 1.5)), ("music", (4.0, 3.0, 2.0))):
        (tmp_path / folder).mkdir()
        rows = []
        for number, seconds in enumerate(lengths):
            name = f"{folder}_{number}"
            path = tmp_path / folder / f"{name}.flac"
            soundfile.write(path, noise(seconds, f"{len(folder)}{number}".encode()[1], 0.03 * (number + 1)), RATE_HZ)
            rows.append({"id": name, "audio": path.name, "text": f"text {number}"})
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / folder / "manifest.jsonl").write_text(lines)
    return tmp_path


@pytest.fixture
def mixing(sounds):
    """A recipe of 12 mixtures; called with fields, gives the path of the recipe with these changed."""

    def write(**changed):
        recipe = {
            "version": 1, "kind": "mixture", "title": "Mixtures", "summary": "Two sounds.", "language": "en",
            "count": 12,
            "first": {"data": "speech", "is_what": "the speech", "licences": "CC BY 4.0"},
            "second": {"data": "music", "is_what": "the music", "licences": {"music_*": "MIT"}},
            "excerpt": {"least_s": 0.8, "most_s": 1.4}, "gap_db": {"uniform": [-12, 12]}, "pause_s": 0.1,
            "questions": {
                "louder": {"wordings": ["Which is louder, {{ first }} or {{ second }}?"], "least": 1},
                "ahead": {"wordings": ["Which is first, {{ first }} or {{ second }}?"], "least": 0.05},
            },
        }  # fmt: skip
        path = sounds / "recipe.yaml"
        path.write_text(yaml.safe_dump({**recipe, **changed}))
        return path

    return write


def rows_of(folder):
    return pq.read_table(folder / "data" / "test-00000-of-00001.parquet").to_pylist()


FILES = (
    "README.md",
    "benchmark.yaml",
    "build.html",
    "data/test-00000-of-00001.parquet",
    "dropped.jsonl",
    "funnel.json",
)


def same_bytes(one, other):
    """Two data sets are equal, file by file."""
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


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
            "voices": [{"name": "plain", "options": {"voice": "plain"}},
                {"name": "other", "options": {"voice": "other"}}],
            "checks": {"recognisers": [{"model": f"{HERE / 'scripted.py'}:Listener", "options": log}]},
        }  # fmt: skip
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({**recipe, **changed}))
        return tmp_path / "recipe.yaml"

    return write
