"""`evaluate` as a script calls it: the Python of the page runs as it stands, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from codec_bench import evaluate, open_run
from codec_bench.engine import pool

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_script_of_the_page_gives_the_numbers_of_its_codec_by_path(tmp_path, monkeypatch):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.S)
    (tmp_path / "script.py").write_text(block.replace("limit=8", "limit=3, workers=1, page=False, save_audio='none'"))
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-P", "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    script = open_run(tmp_path / "runs" / "mine")
    assert list(script.systems) == ["unprocessed", "mu-law", "opus-12k"]
    assert script.meta["config"]["codecs"] == {"mu-law": "MuLaw"}
    assert done.stdout == f"{script.summary()['systems']['mu-law']['metrics']['si_sdr']['value']}\n"
    by_path = evaluate(
        codec=f"{tmp_path / 'script.py'}:MuLaw", data="embedded", metrics="si_sdr,bitrate", limit=3,
        out=tmp_path / "path",
        workers=1, page=False, save_audio="none",
    )  # fmt: skip
    numbers = [[(s.id, s.metric, s.value) for s in run.scores("mu-law")] for run in (script, by_path)]
    assert numbers[0] == numbers[1] and len(numbers[0]) == 6
    # G.711 has 37 dB and more for speech at full level; this curve is the one of its definition.
    assert all(value > 30 for _, metric, value in numbers[0] if metric == "si_sdr")
    assert {value for _, metric, value in numbers[0] if metric == "bitrate"} == {128000.0}
    again = pool.subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert again.returncode == 0 and again.stdout == done.stdout, "the same script goes on with its run"
