"""Sentences decide nothing: with every sentence of every catalogue reworded, all that is decided stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import reworded_runs


def ran(folder: Path, reworded: bool):
    """What is decided and what is said, in processes that have the sentences as they are or reworded."""
    folder.mkdir()
    (folder / "first").mkdir()
    if reworded:
        (folder / "first" / "sitecustomize.py").write_text(reworded_runs.REWORDED)
    path = os.pathsep.join([str(folder / "first"), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "CODEC_BENCH_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, reworded_runs.__file__, str(folder)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / name).read_text()) for name in ("decided.json", "sentences.json")]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(ran, (folder / "plain", folder / "other"), (False, True)))


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
