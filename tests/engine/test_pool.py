"""The workers: how many there are, at which priority, and that one that is killed while it loads is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import forked
import pytest
from refusals import refuses

from codec_bench.engine import device, running
from codec_bench.engine import pool as engine_pool
from codec_bench.engine.pool import NICENESS_WITH_GPU, Pool, thread_variables
from codec_bench.engine.stage import StageSpec

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


@pytest.fixture(params=["as the product starts it", "forked"])
def _both(request):
    """A worker as the product starts it, and one as other tests have it."""
    if request.param != "forked":
        request.getfixturevalue("fresh")


def facts(folder, kills):
    (folder / "own.py").write_text(CODE)
    (folder / "kills").write_text(str(kills))
    name = f"{folder}/own.py:Killed"
    with closing(Pool(("cpu",), 1, subprocess.DEVNULL)) as pool:
        pool.define({key: StageSpec(key, "codec", (name,)) for key in ("one", "two")})
        return pool.build_stages([("one", "cpu"), ("two", "cpu")])


@pytest.mark.usefixtures("_both")
def test_a_worker_that_is_killed_while_it_loads_is_started_again(tmp_path):
    assert set(facts(tmp_path, kills=1)) == {"one", "two"}
    assert (tmp_path / "loads").read_text() == "xxx"


@pytest.mark.usefixtures("_both")
def test_a_worker_that_is_killed_whenever_it_loads_ends_the_run(tmp_path):
    with refuses("not_loaded", stage="one", cause={"code": "process_killed", "signal": 9}):
        facts(tmp_path, kills=9)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no worker is forked")
def test_tests_fork_workers_unless_a_library_would_read_another_environment(monkeypatch):
    # A server of its own: a library that an earlier test imported may have set a variable after the server of the tests
    # began.
    with closing(forked.Started({**os.environ, **thread_variables(1)})) as started:
        monkeypatch.setattr(engine_pool, "subprocess", started)
        monkeypatch.setenv("KMP_INIT_AT_FORK", "FALSE")  # as after scikit-learn was imported
        with closing(Pool(("cpu",), 1, subprocess.DEVNULL)) as pool:
            (worker,) = pool.workers
            assert isinstance(worker.process, forked.Forked) and worker.process.poll() is None
            worker.kill()
            assert worker.process.wait() == worker.process.poll() == -signal.SIGKILL
        monkeypatch.setenv("NUMBA_OPT", "2")
        with closing(Pool(("cpu",), 1, subprocess.DEVNULL)) as pool:
            assert isinstance(pool.workers[0].process, subprocess.Popen)


@pytest.mark.parametrize(
    ("cores", "devices", "expected"),
    [
        (16, ("cpu",), 16),
        (16, ("cuda:0",), 14),
        (16, ("cuda:0", "cuda:1"), 13),
        (2, ("cuda:0",), 1),
        (1, ("cuda:0",), 1),
    ],
)
def test_gpus_and_the_main_process_keep_a_core_each(monkeypatch, cores, devices, expected):
    monkeypatch.setattr(device, "cpu_count", lambda: cores)
    assert device.cpu_workers(devices) == expected


def test_the_workers_of_the_cpu_make_room_for_those_of_a_gpu():
    for devices, cpus in ((("cpu",), 0), (("cuda:0", "cuda:0"), NICENESS_WITH_GPU)):
        with closing(Pool(devices, 1, subprocess.DEVNULL)) as pool:  # no stage is loaded, so no GPU is needed
            nice = {w.process.pid: os.getpriority(os.PRIO_PROCESS, w.process.pid) for w in pool.workers}
            actual = os.getpriority(os.PRIO_PROCESS, 0)
            assert {nice[w.process.pid] for w in pool.workers if w.device == "cpu"} == {max(actual, cpus)}
            assert {nice[w.process.pid] - actual for w in pool.workers if w.device != "cpu"} <= {0}


def test_several_workers_share_a_gpu(monkeypatch, tmp_path):
    requests = []
    monkeypatch.setattr(running, "resolve_devices", lambda device: ["cuda:0", "cuda:1"])
    monkeypatch.setattr(running, "Engine", lambda *options: None)
    monkeypatch.setattr(running, "Pool", lambda *options: requests.append(options) or Pool((), 0, subprocess.DEVNULL))
    with running.start_engine(None, running.Running(per_gpu=2, cache=False), tmp_path):
        pass
    assert requests[0][0] == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]


HANGS = """
import os, time
from pathlib import Path
from codec_bench import CodecInfo

class Hangs:
    where = "cpu"

    def __init__(self):
        (Path(__file__).parent / "loads").write_text(str(os.getpid()))
        while True:
            time.sleep(1)
"""
STARTS = """
import subprocess, sys
from codec_bench.engine.pool import Pool
from codec_bench.engine.stage import StageSpec

pool = Pool(("cpu",), 1, subprocess.DEVNULL)
pool.define({"one": StageSpec("one", "codec", (sys.argv[1],))})
pool.build_stages([("one", "cpu")])
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_a_worker_that_hangs_ends_with_the_process_that_started_it(tmp_path):
    (tmp_path / "own.py").write_text(HANGS)
    parent = subprocess.Popen([sys.executable, "-P", "-c", STARTS, f"{tmp_path}/own.py:Hangs"])
    loads = tmp_path / "loads"
    while not (loads.exists() and loads.read_text()):
        assert parent.poll() is None
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    stat = Path("/proc", loads.read_text(), "stat")
    with suppress(OSError):  # once it is gone; or it has ended, and nobody has waited for it
        while " Z " not in stat.read_text():
            time.sleep(0.05)


def test_an_owner_has_workers_of_its_own_on_the_device_of_its_stages(monkeypatch):
    monkeypatch.setattr(engine_pool, "memory_bytes", lambda device: 90)
    with closing(Pool(("cuda:0", "cuda:1"), 2, subprocess.DEVNULL)) as pool:
        assert pool.memory_bytes() == 90
        pool.define({"codec": StageSpec("codec", "codec", ("none",), owner="codec")})
        assert pool.memory_bytes() == 45, "the owner's process takes memory of the same GPU"
        (first,) = pool.staff("device", "codec")
        assert pool.staff("device", "codec") == [first] and first.device == "cuda:0"
        assert [w.device for w in pool.workers_for("device")] == ["cuda:0", "cuda:1"], "ours run nothing of it"
        pool.grow("device", "codec")
        assert len(pool.workers_for("device", "codec")) == 1, "it is not busy"
        first.batches[0] = None
        pool.grow("device", "codec")
        pool.grow("device", "codec")
        assert [w.device for w in pool.workers_for("device", "codec")] == ["cuda:0", "cuda:1"]
        pool.dismiss("cpu", "codec")
        assert not pool.workers_for("device", "codec") and len(pool.workers) == 4
        pool.staff("cpu", "codec")[0].batches[0] = None
        for worker in pool.workers_for("cpu"):
            worker.batches[0] = None
        pool.grow("cpu", "codec")
        assert len(pool.workers_for("cpu", "codec")) == 1, "no processor is idle"


def test_a_message_of_no_batch_is_ignored():
    with closing(Pool((), 1, subprocess.DEVNULL)) as pool:
        (worker,) = pool.workers
        ours, theirs = engine_pool.Pipe()
        worker.pipe.close()
        worker.pipe = ours
        theirs.send(("done", 7, [], 0.0, 0.0, {}, None))
        theirs.send(("unknown", 7))
        assert pool.events(1.0) == pool.events(1.0) == []
        assert pool.workers == [worker]


def test_worker_that_ends_before_its_first_message(monkeypatch):
    starts = []

    def start(arguments, environment, log, program=engine_pool.PROGRAM):
        program = program if starts else ["/bin/false"]
        process, pipe = start_process(arguments, environment, log, program)
        starts.append(process)
        if len(starts) == 1:
            process.wait()
        return process, pipe

    start_process = engine_pool.start_process
    monkeypatch.setattr(engine_pool, "start_process", start)
    with closing(Pool((), 1, subprocess.DEVNULL)) as pool:
        (event,) = pool.events(5.0)
        assert isinstance(event, engine_pool.Died) and len(starts) == 2
        assert pool.workers[0].process is starts[1]
