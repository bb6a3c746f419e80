"""Pages that are written from the registry are as it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from codec_bench.codecs import catalogue

ROOT = Path(__file__).resolve().parent.parent


def test_the_table_of_codecs_is_that_of_the_registry():
    script = ROOT / "scripts" / "write_codec_table.py"
    done = subprocess.run([sys.executable, "-P", script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_family_has_a_page():
    pages = "\n".join(
        page.read_text("utf-8") for page in (ROOT / "docs" / "codecs").glob("*.md") if page.stem != "names"
    ).lower()
    for name, family in catalogue.families().items():
        assert any(known.lower() in pages for known in (name, *family.variants)), name
