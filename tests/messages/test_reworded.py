"""Sentences decide nothing: with every sentence of every catalogue reworded, all that is decided stays as it was."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import forked
import pytest
import reworded_runs

from codec_bench.engine import pool


def ran(folder: Path, reworded: bool):
    """Decisions and messages, in processes that have the sentences as they are or reworded."""
    folder.mkdir()
    first = folder / "first.py"
    first.write_text(reworded_runs.REWORDED if reworded else "")
    env = {**os.environ, "CODEC_BENCH_CACHE": str(folder / "cache"), forked.FIRST: str(first)}
    command = [sys.executable, reworded_runs.__file__, str(folder)]
    done = pool.subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / name).read_text()) for name in ("decided.json", "sentences.json")]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    return ran(folder / "plain", False), ran(folder / "other", True)


def test_no_code_number_order_mark_or_exit_code_rests_on_a_sentence(both):
    (plain, _), (other, _) = both
    for name, held in plain.items():
        paths = lambda value: json.loads(json.dumps(value).replace("/both0/plain", "/both0/other"))  # noqa: E731
        assert paths(held) == paths(other[name]), name
    assert plain["exit codes"] == {"export": 0, "verify": 0, "suspect": 2, "scored again": 3}
    codes = {f[3]["code"] for name, rows in plain.items() if name.endswith("failures") for f in rows}
    assert {"silent_estimate", "error", "lengths_differ"} <= codes and len(codes) > 6, codes


def test_the_sentences_were_others(both):
    (_, first), (_, others) = both
    for name, sentences in first.items():
        assert len(sentences) == len(others[name]) and (not sentences or sentences != others[name]), name
