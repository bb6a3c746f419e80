"""Pages that are written from the registry are as it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import pairwise
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


def test_the_readmes_runs_name_what_there_is():
    from codec_bench.benchmark import has_benchmark, suite_names
    from codec_bench.codecs import has_codec
    from codec_bench.leaderboard import board_names
    from codec_bench.models import model_names

    text = (ROOT / "README.md").read_text("utf-8").replace("\\\n", " ")
    runs = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("codec-bench run ")]
    assert len(runs) > 8
    for words in runs:
        given = dict(pairwise(words))
        for name in words[2].split(",") if not words[2].startswith("--") else []:
            assert has_benchmark(name), name
        for option in ("--model", "--judge"):
            for name in filter(None, given.get(option, "").split(",")):
                assert name.startswith("./") or name in model_names(), name
        assert given.get("--suite", suite_names()[0]) in suite_names()
        assert all(has_codec(name) for name in given.get("--codec", "opus-6k").split(","))
        assert "--out" in given
    boards = re.findall(r"^codec-bench leaderboard (\S+)", text, flags=re.MULTILINE)
    assert boards and set(boards) <= set(board_names())
