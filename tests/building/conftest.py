"""Sources that the tests write themselves: tones and noise with known levels, and a recipe that mixes them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile
import yaml

RATE_HZ = 16_000


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
            "version": 1, "kind": "mixture", "title": "Mixtures", "summary": "Two sounds.", "language": "en", "count": 12,
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
