"""Runs on a real Ray cluster of several raylets on this machine, whose actors, raylets and
driver are killed at random.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from raylets import LIMITS, PATIENCE_S, STORE_BYTES, Raylets

from codec_bench import evaluate, open_run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (the extra ray)"),
]

EMBEDDED = Path(__file__).parents[3] / "codec_bench" / "data" / "embedded"
KIND = {"codec": "g711-ulaw,opus-12k", "metrics": "stoi,si_sdr,bitrate"}
COMMAND = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]
SOON = "from codec_bench.apps.cluster import ray; ray.{} = 10; from codec_bench.cli import main; main()"
"""The program, which does not wait for what is gone as long as it does otherwise."""
GONE = {
    "raylet": ("NO_NODE_S", "had no node to run on for 10 s"),
    "gcs_server": ("NO_HEAD_S", "has not answered for 10 s"),
}


@pytest.fixture(autouse=True)
def patient(tmp_path, monkeypatch):
    """Ray waits longer than it does otherwise.

    What cannot be set, such as how long a raylet waits for its agent, is tried again (`started`).
    """
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for name, limit in LIMITS.items():
        monkeypatch.setenv(f"RAY_{name}", str(limit))


@pytest.fixture
def raylets():
    built = Raylets(2)
    yield built
    built.close()


def corpus(folder, copies):
    """The embedded clips, several times, as hard links under new names."""
    folder.mkdir()
    with open(folder / "manifest.jsonl", "w") as file:
        for line in (EMBEDDED / "manifest.jsonl").read_text().splitlines():
            row = json.loads(line)
            source = EMBEDDED / row["audio"]
            for copy in range(copies):
                name = f"{copy}-{source.name}"
                os.link(source, folder / name) if source.stat().st_dev == folder.stat().st_dev else (
                    folder / name
                ).symlink_to(source)
                file.write(json.dumps({**row, "id": f"{row['id']}-{copy}", "audio": name}) + "\n")
    return folder


def begin(raylets, data, out, *more, program=COMMAND[-1]):
    words = [f"--{name}={value}" for name, value in KIND.items()]
    options = ["--executor=ray", f"--ray-address={raylets.address}", "--cpus-per-actor=1", "--no-cache", *more]
    with open(out.parent / "said.txt", "ab") as text:
        return subprocess.Popen(
            [*COMMAND[:-1], program, "eval", *words, f"--data={data}", f"--out={out}", *options], stdout=text,
            stderr=text, cwd=out.parent
        )  # fmt: skip


def ended(process, out):
    code = process.wait(PATIENCE_S)
    assert code == 0, (out.parent / "said.txt").read_text()[-3000:]


def complete(data, out):
    return list(evaluate(**KIND, data=data, out=out, workers=2, page=False, cache=False).rows())


def kill_until_it_ends(raylets, data, out, kills, draw, done):
    """Runs to the end, and kills actors, raylets and the driver on the way, at most so often; counts them in `done`."""
    before = done.total()
    driver = begin(raylets, data, out, "--shards=12")
    while done.total() - before < kills:
        time.sleep(draw.uniform(0.5, 4.0))
        if driver.poll() is not None:
            if driver.returncode == 0:
                break
            driver = begin(raylets, data, out)
            continue
        kind = draw.choice(("actor", "raylet", "driver"))
        if kind == "driver":
            driver.send_signal(signal.SIGKILL)
            driver.wait()
        elif kind == "raylet":
            raylets.kill_node(draw.choice(raylets.nodes))
            raylets.add()
        elif not raylets.kill_actor(draw.choice):
            continue
        done[kind] += 1
    if driver.poll() is None:
        driver.wait(PATIENCE_S)
    ended(driver if driver.returncode == 0 else begin(raylets, data, out), out)


def test_whatever_is_killed_the_record_is_that_of_one_machine(raylets, tmp_path):
    """`CODEC_BENCH_TEST_KILLS` says how many kills there are in all, over as many runs as that takes."""
    kills, draw, done = int(os.environ.get("CODEC_BENCH_TEST_KILLS", "9")), random.Random(5), Counter()
    data, runs = corpus(tmp_path / "data", 12), 0
    expected = complete(data, tmp_path / "whole")
    while not runs or done.total() < kills:
        out, runs = tmp_path / f"run{runs}", runs + 1
        kill_until_it_ends(raylets, data, out, kills - done.total(), draw, done)
        assert list(open_run(out).rows()) == expected
    print("killed", dict(done), "in", runs, "runs")
    assert done.total() >= 3


def test_a_cluster_that_grows_and_shrinks_and_a_full_object_store(raylets, tmp_path):
    import ray

    data, out = corpus(tmp_path / "data", 4), tmp_path / "run"
    ray.init(address=raylets.address, logging_level="ERROR", log_to_driver=False)
    try:
        full = [ray.put(bytes(STORE_BYTES // 8)) for _ in range(7)]
        driver = begin(raylets, data, out, "--shards=8")
        end = time.monotonic() + PATIENCE_S
        while not raylets.actors():
            assert time.monotonic() < end, (tmp_path / "said.txt").read_text()
            time.sleep(0.2)
        raylets.add()
        while len(raylets.actors()) < 3:
            assert time.monotonic() < end, "no actor was started on the new node"
            time.sleep(0.2)
        raylets.kill_node(raylets.nodes[0])
        ended(driver, out)
        del full
    finally:
        ray.shutdown()
    assert list(open_run(out).rows()) == complete(data, tmp_path / "whole")
    assert len(list((out / "ray").iterdir())) >= 3


def until(true, text):
    """Waits until something is true."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, text.read_text()[-3000:]
        time.sleep(0.2)


@pytest.mark.parametrize("gone", ["raylet", "gcs_server"])
def test_an_actor_is_replaced_and_a_cluster_that_is_gone_ends_the_run_in_a_sentence(tmp_path, gone):
    """The raylets are lost, and in the other case the head node's server as well. Another cluster goes on."""
    data, out, text = corpus(tmp_path / "data", 12), tmp_path / "run", tmp_path / "said.txt"
    first = Raylets(1)
    try:
        driver = begin(first, data, out, "--shards=12", program=SOON.format(GONE[gone][0]))
        until(lambda: len(list(out.glob("parts/*/part.json"))) >= 1, text)
        (before,) = first.actors()
        os.kill(before, signal.SIGKILL)
        until(lambda: set(first.actors()) - {before}, text)
        finished = len(list(out.glob("parts/*/part.json")))
        until(lambda: len(list(out.glob("parts/*/part.json"))) > finished, text)
        for node in first.cluster.list_all_nodes():
            for info in node.all_processes["raylet"] + node.all_processes.get(
                "gcs_server" if gone == "gcs_server" else "", []
            ):
                info.process.kill()
        assert driver.wait(PATIENCE_S) == 2, text.read_text()[-3000:]
    finally:
        first.close()
    last = text.read_text()
    assert re.search(GONE[gone][1] + r"; [1-9]\d* of 768 items are finished in", last), last[-3000:]
    assert "the same command goes on" in last and "Traceback" not in last
    retained = {path: path.stat().st_mtime_ns for path in out.glob("parts/*/part.json")}
    assert retained
    second = Raylets(1)
    try:
        ended(begin(second, data, out, "--shards=12"), out)
    finally:
        second.close()
    assert all(path.stat().st_mtime_ns == when for path, when in retained.items())
    assert list(open_run(out).rows()) == complete(data, tmp_path / "whole")


NODES = """import ray
from codec_bench.apps.cluster.connection import connected
with connected({address!r}) as ray:
    print(ray.get_runtime_context().gcs_address)"""


def joined(address=None):
    """The head node of the cluster that a command is connected to."""
    output = subprocess.run(
        [sys.executable, "-P", "-c", NODES.format(address=address)], capture_output=True, text=True, timeout=PATIENCE_S
    )  # fmt: skip
    assert output.returncode == 0, output.stderr[-3000:]
    return output.stdout.split()[-1]


def test_a_cluster_that_nobody_named_is_not_joined(raylets, monkeypatch):
    """Somebody else's cluster on the same machine; `auto` is the word for whatever runs on it."""
    assert joined() != raylets.address
    assert joined("auto") == raylets.address
    monkeypatch.setenv("RAY_ADDRESS", raylets.address)
    assert joined() == raylets.address
    assert joined("local") != raylets.address
