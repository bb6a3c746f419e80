"""Two lanes: while one batch computes, the next is received and made ready; and what goes wrong in one leaves the other
right.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from multiprocessing import Pipe
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench.engine import running, worker
from codec_bench.engine.arena import Arena
from codec_bench.engine.batch import Dispatcher
from codec_bench.engine.double_buffer import ComputeDevice, Gpu
from codec_bench.engine.pool import Died, Done, Pool, PoolWorker
from codec_bench.engine.stage import Fault, StageSpec
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import DeviceFull, Note
from codec_bench.networks.batch_shapes import SHORTEST_S

ASSETS = Path(__file__).parent / "assets"
WAIT_S = 20.0


class StandIn(ComputeDevice):
    """A device with two lanes that is ordinary memory."""

    device, lanes = "cuda:0", 2

    def ahead(self, make):
        value = make()
        return SimpleNamespace(wait=lambda: value)


class Steps:
    """A stage that does what the test says when it makes a batch ready and when it computes it."""

    facts: dict = {}  # noqa: RUF012

    def __init__(self):
        self.prepare_as = self.compute_as = lambda works: None
        self.prepared = []

    def prepare(self, works, segments):
        self.prepared.append(works)
        self.prepare_as(works)
        return f"ready {works}"

    def run(self, works, segments, batch=None):
        self.compute_as(works)
        return [batch or self.prepare(works, segments)], {}


@pytest.fixture
def stage(monkeypatch):
    built = Steps()
    monkeypatch.setitem(worker.STAGES, "feature", lambda spec, device: built)
    return built


@pytest.fixture
def served(stage):
    """A worker in a thread of this process that has loaded the stage: sends it batches, and takes what it answers."""
    ends = []

    def start(position):
        ours, theirs = Pipe()
        thread = Thread(target=worker.serve, args=(theirs, position), daemon=True)
        thread.start()
        ends.append((ours, thread))
        ours.send(("specs", {"s": StageSpec("s", "feature", ("s",))}))
        ours.send(("facts", "s"))
        assert answer(ours) == ("facts", "s", {})
        return ours

    yield start
    for pipe, thread in ends:
        pipe.close()
        thread.join(WAIT_S)
        assert not thread.is_alive(), "a worker ends when its pipe closes"


def answer(pipe):
    assert pipe.poll(WAIT_S), "the worker does not answer"
    kind, number, *rest = pipe.recv()
    return (kind, number, *rest[:1])


def test_the_second_batch_is_prepared_while_the_first_computes(served, stage):
    second_is_ready, waited = Event(), []
    stage.prepare_as = lambda works: works == "two" and second_is_ready.set()
    stage.compute_as = lambda works: works == "one" and waited.append(second_is_ready.wait(WAIT_S))
    pipe = served(StandIn())
    for number, works in ((1, "one"), (2, "two")):
        pipe.send(("run", number, "s", works))
    assert [answer(pipe) for _ in range(4)] == [
        ("began", 1), ("done", 1, ["ready one"]), ("began", 2), ("done", 2, ["ready two"]),
    ]  # fmt: skip
    assert waited == [True], "the second was made ready before the first was done"
    assert stage.prepared == ["one", "two"], "nothing is made ready twice"


def test_the_limit_of_a_batch_counts_while_it_is_waited_for(served, stage):
    go_on = Event()
    stage.prepare_as = lambda works: works == "two" and go_on.wait(WAIT_S)
    pipe = served(StandIn())
    pipe.send(("run", 1, "s", "one"))
    pipe.send(("run", 2, "s", "two"))
    assert [answer(pipe) for _ in range(3)] == [("began", 1), ("done", 1, ["ready one"]), ("began", 2)]
    go_on.set()
    assert answer(pipe) == ("done", 2, ["ready two"])


def test_what_goes_wrong_in_one_lane_leaves_the_other_right(served, stage):
    def broken(wrong, error):
        def step(works):
            if works == wrong:
                raise error

        return step

    pipe = served(StandIn())
    stage.prepare_as = broken("two", ValueError("no"))
    stage.compute_as = broken("three", MemoryError())
    for number, works in enumerate(("one", "two", "three", "four")):
        pipe.send(("run", number, "s", works))
    results = [answer(pipe) for _ in range(8)]
    assert [outcome for kind, _, *rest in results if kind == "done" for outcome in rest] == [
        ["ready one"], Fault("ValueError: no"), "oom", ["ready four"],
    ]  # fmt: skip
    assert sorted(stage.prepared) == ["four", "one", "three", "two", "two"]


def test_stages_are_preloaded(served, stage, monkeypatch):
    loads = []

    def build(spec, device):
        loads.append(spec.key)
        if spec.key == "broken":
            raise ValueError("no weights")
        return stage

    monkeypatch.setitem(worker.STAGES, "feature", build)
    pipe = served(StandIn())
    pipe.send(("specs", {key: StageSpec(key, "feature", (key,)) for key in ("broken", "t")}))
    pipe.send(("preload", ["broken", "t"]))
    pipe.send(("run", 1, "t", "one"))
    pipe.send(("run", 2, "broken", "one"))
    results = {}
    while len(results) < 2:
        assert pipe.poll(WAIT_S)
        kind, number, *rest = pipe.recv()
        if kind == "done":
            results[number] = rest
    assert loads == ["s", "broken", "t", "broken"], "a stage is loaded once; what failed is tried again by its batch"
    assert results[1][0] == ["ready one"] and results[1][1] >= results[1][3]["load"] > 0
    assert isinstance(results[2][0], Fault)


def test_a_cpu_has_one_lane(served, stage):
    stage.compute_as = lambda works: stage.prepared.append(f"compute {works}")
    pipe = served(ComputeDevice())
    for number, works in ((1, "one"), (2, "two")):
        pipe.send(("run", number, "s", works))
    assert [answer(pipe)[0] for _ in range(4)] == ["began", "done"] * 2
    assert stage.prepared == ["compute one", "one", "compute two", "two"]


class FewWorkers(Pool):
    """A GPU's worker and no processes: what it is given is kept."""

    def __init__(self):
        super().__init__(("cuda:0",), 0, subprocess.DEVNULL)

    def _start(self, device):
        process = SimpleNamespace(pid=1, poll=lambda: 0, wait=lambda: 0)
        return PoolWorker(device, process, SimpleNamespace(send=lambda message: None, close=lambda: None))

    @property
    def held(self):
        return [[work.payload for work in batch.works] for batch in self.workers[0].batches.values()]

    def died(self, *, dropped=False):
        held = list(self.workers[0].batches.values())
        self.workers[0] = self._start("cuda:0")
        return Died("killed by signal 9", held[0], held[1:], is_device_unusable=dropped)

    def done(self, outcome, **more):
        number = next(iter(self.workers[0].batches))
        return Done(self.workers[0].batches.pop(number), outcome, 1.0, 1.0, {}, **more)


@pytest.fixture
def queue():
    """A dispatcher over one GPU, its pool, and the results of the items by their payload."""
    pool, results = FewWorkers(), {}
    with closing(Arena()) as arena:
        dispatcher = Dispatcher(pool, None, None, "", arena)
        dispatcher.add(StageSpec("s", "feature", ("s",)), "device", 2 * SHORTEST_S, True)

        def put(names):
            for name in names:
                dispatcher.put("s", name, SHORTEST_S, lambda result, name=name: results.update({name: result}))
            dispatcher.fill()

        yield SimpleNamespace(put=put, pool=pool, dispatcher=dispatcher, results=results)


def follow(queue, event):
    queue.dispatcher.handle(event)
    queue.dispatcher.fill()
    return queue.pool.held


def test_a_device_that_fails_again_and_again_ends_the_run_with_everything_stored(queue):
    queue.put("abcdefgh")
    follow(queue, queue.pool.died(dropped=True))
    assert follow(queue, queue.pool.done(["A"])) == [["b"]], "it works again"
    for _ in range(3):
        follow(queue, queue.pool.died(dropped=True))
    with refuses("no_device_left", cause={"code": "device_fails", "device": "cuda:0", "times": 4}, hint="--device cpu"):
        follow(queue, queue.pool.died(dropped=True))
    assert queue.results.keys() == {"a", "b"}, "items are not used up by a device that does not work"


def test_a_run_goes_on_without_a_device_that_is_gone(queue):
    other = queue.pool._start("cuda:1")
    queue.pool.workers.append(other)
    queue.pool._gpus.append("cuda:1")
    queue.put("abcdefgh")
    for _ in range(3):
        follow(queue, queue.pool.died(dropped=True))
    with pytest.warns(Note) as noted:
        queue.dispatcher.handle(queue.pool.died(dropped=True))
    assert [one.message.code for one in noted] == ["goes_on_without_device"]
    assert [worker.device for worker in queue.pool.workers] == ["cuda:1"]
    waiting = len(queue.dispatcher.stages["s"].waiting) + sum(len(b.works) for b in other.batches.values())
    assert waiting + len(queue.results) == 8


def test_a_gpu_that_another_program_fills_ends_the_run_and_uses_up_no_item(queue):
    queue.put("abcdefgh")
    full = DeviceFull("'s'", "cuda:0", "0.2 of 140 GiB are free")
    with refuses("no_device_left", cause="device_full", hint="nvidia-smi"):
        follow(queue, queue.pool.done(full))
    assert not queue.results
    assert len(queue.dispatcher.stages["s"].waiting) == 8


def test_a_run_goes_on_next_to_a_gpu_that_another_program_fills(queue):
    other = queue.pool._start("cuda:1")
    queue.pool.workers.append(other)
    queue.pool._gpus.append("cuda:1")
    queue.put("abcdefgh")
    full = DeviceFull("'s'", "cuda:0", "0.2 of 140 GiB are free")
    with pytest.warns(Note) as noted:
        queue.dispatcher.handle(queue.pool.done(full))
    assert noted[0].message.message == Diagnostic("goes_on_without_device", cause=full.message)
    assert [worker.device for worker in queue.pool.workers] == ["cuda:1"]


def test_a_death_with_two_batches_in_work_runs_both_again_and_lone_items_by_themselves(queue):
    queue.put("abcdef")
    assert queue.pool.held == [["a", "b"], ["c", "d"]]
    assert follow(queue, queue.pool.died()) == [["a"]], "nothing is made ready beside an item that may end the worker"
    assert follow(queue, queue.pool.done(["A"])) == [["b"]]
    assert follow(queue, queue.pool.died()) == [["b"]]
    assert follow(queue, queue.pool.died()) == [["c", "d"], ["e", "f"]]
    assert queue.results["b"].reason.as_dict() == {
        "code": "worker_died",
        "stage": "s",
        "cause": "killed by signal 9",
        "times": 2,
    }
    follow(queue, queue.pool.done(["C", "D"]))
    follow(queue, queue.pool.done(["E", "F"]))
    assert {name: queue.results[name] for name in "acdef"} == {name: name.upper() for name in "acdef"}


def test_an_item_is_not_blamed_for_a_death_while_another_batch_was_prepared(queue):
    queue.dispatcher.stages["s"].budget_s = 1.0
    queue.put("ab")
    assert queue.pool.held == [["a"], ["b"]]
    assert follow(queue, queue.pool.died()) == [["a"]], "it is sent again, by itself"
    assert follow(queue, queue.pool.died()) == [["a"]], "the first death may have been the other's"
    follow(queue, queue.pool.died())
    assert queue.results["a"].reason.as_dict() == {
        "code": "worker_died",
        "stage": "s",
        "cause": "killed by signal 9",
        "times": 2,
    } and queue.pool.held == [["b"]]


def test_two_batches_that_do_not_fit_halve_the_budget_once(queue):
    stage = queue.dispatcher.stages["s"]
    stage.budget_s = stage.initial_s = stage.worth_s = 4 * SHORTEST_S
    queue.put("abcdefgh")
    assert queue.pool.held == [list("abcd"), list("efgh")]
    held = follow(queue, queue.pool.done("oom"))
    assert stage.budget_s == 2 * SHORTEST_S and held == [list("efgh"), ["a", "b"]]
    follow(queue, queue.pool.done("oom"))
    assert stage.budget_s == 2 * SHORTEST_S
    follow(queue, queue.pool.done("oom"))
    assert stage.budget_s == SHORTEST_S


def test_a_budget_is_what_fits_into_the_memory_and_what_a_batch_is_worth(queue):
    stage = queue.dispatcher.stages["s"]
    queue.put("abcd")
    follow(queue, queue.pool.done(["A", "B"], memory=(256, 4000)))
    assert stage.bytes_per_s == pytest.approx(100.0)
    assert stage.budget_s == pytest.approx(20.0), "half of the memory is filled"
    assert queue.dispatcher._room_s(stage, "cuda:0") == 2 * SHORTEST_S, "a batch of the first size takes a second"
    stage.record_duration(SHORTEST_S, 0.001)
    assert queue.dispatcher._room_s(stage, "cuda:0") == 2 * SHORTEST_S, "a batch that is not full says nothing"
    for times in (4, 8):
        stage.record_duration(times / 2 * SHORTEST_S, 0.001)
        assert queue.dispatcher._room_s(stage, "cuda:0") == times * SHORTEST_S
    stage.record_duration(8 * SHORTEST_S, 0.001)
    assert queue.dispatcher._room_s(stage, "cuda:0") == stage.budget_s


class StandInPool(Pool):
    """Its GPU's worker has two lanes and no GPU."""

    def program(self, device):
        return super().program(device) if device == "cpu" else [sys.executable, "-P", str(ASSETS / "laned_worker.py")]


@pytest.mark.long
def test_a_run_with_two_lanes_in_which_everything_goes_wrong(run_it, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "resolve_devices", lambda device: ["cuda:0"])
    monkeypatch.setattr(running, "Pool", StandInPool)
    rng = np.random.default_rng(0)
    lines, expected = [], {}
    for name, size in {**{f"ok{k:02d}": 7000 + k for k in range(20)}, "kills": 8001, "raises": 8002}.items():
        samples = np.round(rng.uniform(-0.5, 0.5, size) * 32768) / 32768
        soundfile.write(tmp_path / f"{name}.wav", samples, 16_000, subtype="PCM_16")
        lines.append(json.dumps({"id": name, "audio": str(tmp_path / f"{name}.wav")}))
        expected[name] = np.abs(samples).mean()
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    run = run_it(codec="unprocessed", data=str(tmp_path / "data.jsonl"), metrics=f"{ASSETS / 'fragile.py'}:OfFragile")
    scores = {s.id: s for s in run.scores()}
    assert scores.keys() == expected.keys()
    assert scores.pop("kills").reason.code == "worker_died"
    assert "ValueError: a signal that raises" in scores.pop("raises").reason
    for name, score in scores.items():
        assert score.value == pytest.approx(expected[name], rel=1e-6), name


def test_a_gpu_that_computes_no_more_is_gone_whatever_the_error_says():
    gpu, unknown = Gpu("cuda:0", 1), "ValueError: the device answers nothing"
    assert gpu.is_unusable("RuntimeError: CUDA error: an illegal memory access was encountered", alone=False)
    assert gpu.is_unusable(unknown, alone=True), "there is no GPU, so the test of it fails"
    assert not gpu.is_unusable(unknown, alone=False), "the items are sent by themselves first"
    assert not ComputeDevice().is_unusable(unknown, alone=True)
