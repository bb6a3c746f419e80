"""The workers: one that is killed while it loads is started again."""

from __future__ import annotations

import subprocess
from contextlib import closing

import pytest

from codec_bench.engine.pool import Pool
from codec_bench.engine.stage import StageSpec
from codec_bench.errors import UserError

CODE = """
import os
from pathlib import Path
from codec_bench import CodecInfo

class Killed:
    where = "cpu"

    def __init__(self):
        self.info = CodecInfo("killed", (16000,), (1,))
        with (Path(__file__).parent / "loads").open("a") as loads:
            loads.write("x")
        if len((Path(__file__).parent / "loads").read_text()) <= int((Path(__file__).parent / "kills").read_text()):
            os.kill(os.getpid(), 9)

    def encode(self, batch): ...

    def decode(self, codes): ...
"""


def facts(folder, kills):
    (folder / "own.py").write_text(CODE)
    (folder / "kills").write_text(str(kills))
    name = f"{folder}/own.py:Killed"
    with closing(Pool(("cpu",), 1, subprocess.DEVNULL)) as pool:
        pool.define({key: StageSpec(key, "codec", (name,)) for key in ("one", "two")})
        return pool.facts([("one", "cpu"), ("two", "cpu")])


def test_a_worker_that_is_killed_while_it_loads_is_started_again(tmp_path):
    assert set(facts(tmp_path, kills=1)) == {"one", "two"}
    assert (tmp_path / "loads").read_text() == "xxx"


def test_a_worker_that_is_killed_whenever_it_loads_ends_the_run(tmp_path):
    with pytest.raises(UserError, match=r"killed by signal 9\) while loading 'one', and so did the one before it"):
        facts(tmp_path, kills=9)
