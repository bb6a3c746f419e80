"""Every file of published cases is compared by some test: 87 files, 5,357 cases."""

from __future__ import annotations

import json
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
FILES = sorted((TESTS / "golden" / "text").glob("*.json"))


def test_every_file_is_there():
    assert len(FILES) == 87
    assert sum(len(json.loads(file.read_text("utf-8"))["cases"]) for file in FILES) == 5357


def test_every_file_is_compared():
    sources = "\n".join(file.read_text("utf-8") for file in TESTS.rglob("test_*.py") if file != Path(__file__))
    assert [file.stem for file in FILES if f'"{file.stem}"' not in sources] == []
