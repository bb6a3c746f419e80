"""The driver and the actors of a run on Ray, on a Ray that is not there: it runs everything in this process, and loses
what it is told to.
"""

from __future__ import annotations

import json
import shutil
import socket
from contextlib import closing, nullcontext
from types import SimpleNamespace

import pytest
from refusals import Containing, refuses

from codec_bench.apps.cluster import connection, queue, ray
from codec_bench.apps.cluster.connection import ClusterSize
from codec_bench.data import Source, part_of
from codec_bench.engine.evaluation import Evaluation
from codec_bench.engine.executor import OnRay, read_executor
from codec_bench.engine.running import Running
from codec_bench.store.parts import mark_part
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

SAMPLES = [Sample(f"u{n:03d}", f"{n}.wav") for n in range(40)]


class TryError(Exception):
    """An actor is lost."""


class Failed(Exception):
    """A task failed."""


class StandInRay:
    """What the driver asks of Ray. A call is made when its answer is waited for."""

    def __init__(self, lose=(), hang=()) -> None:
        self.exceptions = SimpleNamespace(RayError=TryError, RayTaskError=Failed)
        self.lose, self.hang = set(lose), set(hang)
        self.options = self.calls = self.started = self.ended = 0
        self.resources = [{"CPU": 2.0}]
        self.answers = True

    def nodes(self):
        return [{"Alive": True, "Resources": one} for one in self.resources]

    def remote(self, cls):
        return SimpleNamespace(
            options=lambda **requests: SimpleNamespace(remote=lambda position: self._actor(cls(position)))
        )

    def _actor(self, held):
        self.started += 1

        def method(name):
            return SimpleNamespace(remote=lambda *options: self._call(name, lambda: getattr(held, name)(*options)))

        return SimpleNamespace(**{name: method(name) for name in ("begin", "progress", "run")})

    def _call(self, name, call):
        self.options += name == "run"
        return name, call, name == "run" and self.options in self.hang

    def wait(self, refs, num_returns, timeout):
        return [ref for ref in refs if not ref[2]][:1], []

    def get(self, ref):
        name, call, _ = ref
        if name == "run":
            self.calls += 1
            if self.calls in self.lose:
                raise TryError("its node is gone\nand more")
        return call()

    def kill(self, handle):
        self.ended += 1


def record_of(source, folder, shard=None):
    """The record that the engine would write, with made scores."""
    with closing(
        RunWriter(folder, {"samples": source.full_size, **({"shard": str(shard)} if shard else {})})
    ) as writer:
        writer.begin({"x": {}}, {"m": {"protocol": "p"}}, source, source.numbers, ())
        scores = [
            (n, ItemRecord("x", s.id, "ok", None, {"m": Score(n / 3, "ok", None, "p")}, duration_s=1.0))
            for n, s in zip(source.numbers, source)
        ]
        writer.write(scores)
        writer.set_meta(state="finished", config={}, data={"name": "made"})
    run = Run(folder)
    mark_part(run)
    return run


@pytest.fixture
def on_ray(tmp_path, monkeypatch):
    """Runs on the Ray that is not there; gives it, and the rows of the run."""
    monkeypatch.chdir(tmp_path)
    ran = []

    def execute_shard(requests, shard, folder, running, workers):
        ran.append((shard, workers))
        return record_of(part_of(requests.source, shard), folder, shard)

    monkeypatch.setattr(connection, "execute_shard", execute_shard)
    monkeypatch.setattr(connection, "start_workers", lambda running, folder, cores: nullcontext(object()))
    monkeypatch.setattr(ray, "check_reachable", lambda address: None)
    monkeypatch.setattr(ray, "LOOK_S", 0.0)
    monkeypatch.setattr(ray, "head_answers", lambda stand_in: bool(stand_in.answers))

    def run(stand_in, source=None, **options):
        monkeypatch.setattr(ray, "connected", lambda address: nullcontext(stand_in))
        source = source or Source("made", SAMPLES)
        requests = Evaluation("unprocessed", ["si_sdr"], source, {"command": "evaluate", "seed": 0, "limit": None}, {})
        del ran[:]
        return ray.execute_on_ray(requests, lambda: requests, "run", Running(), OnRay(**options))

    run.ran = ran
    return run


def test_stopped_actors_change_nothing_and_a_finished_run_is_not_run_again(on_ray, tmp_path):
    stand_in = StandInRay(lose={1, 3, 4})
    run = on_ray(stand_in, shards=6, cpus=1)
    complete = record_of(Source("made", SAMPLES), tmp_path / "whole")
    assert list(run.rows()) == list(complete.rows()) and run.meta["state"] == "finished"
    assert run.meta["fingerprint"] == complete.meta["fingerprint"]
    assert len(on_ray.ran) == 6 and stand_in.started == 2 + 3
    assert json.loads((tmp_path / "run" / "ray.json").read_text()) == {"shards": 6}
    assert not (tmp_path / "run" / "ray.token").exists()
    again = on_ray(StandInRay())
    assert not on_ray.ran and list(again.rows()) == list(complete.rows())
    shutil.rmtree(tmp_path / "run" / "parts" / "3")
    again = on_ray(StandInRay())
    assert [str(shard) for shard, _ in on_ray.ran] == ["3/6"] and list(again.rows()) == list(complete.rows())
    with refuses("shard_count_differs", started=6, shards=5):
        on_ray(StandInRay(), shards=5)


def test_a_shard_that_hangs_is_run_in_pieces_by_others(on_ray, tmp_path, monkeypatch):
    monkeypatch.setattr(queue, "SLOW", 0.0)
    stand_in = StandInRay(hang={1})
    run = on_ray(stand_in, shards=2, cpus=1)
    assert list(run.rows()) == list(record_of(Source("made", SAMPLES), tmp_path / "whole").rows())
    assert sorted(str(shard) for shard, _ in on_ray.ran) == ["1/4", "2/2", "3/4"]
    assert stand_in.ended == 2 and (tmp_path / "run" / "parts" / "1" / "part.json").exists()


@pytest.mark.parametrize(
    ("dropped", "text"), [("resources", "has had no node to run on for 0 s"), ("answers", "has not answered for 0 s")]
)
def test_without_a_node_the_run_ends_in_a_sentence_and_the_same_command_goes_on(
    on_ray, tmp_path, monkeypatch, dropped, text
):
    """The only node, or the head node, is lost after two shards."""
    monkeypatch.setattr(ray, "NO_NODE_S", 0.3)
    monkeypatch.setattr(ray, "NO_HEAD_S", 0.2)

    class Gone(StandInRay):
        def get(self, ref):
            if self.calls == 2 and ref[0] == "run":
                setattr(self, dropped, [])
                raise TryError("its node is gone")
            return super().get(ref)

        def wait(self, refs, num_returns, timeout):
            return super().wait(refs, num_returns, timeout) if self.resources and self.answers else ([], [])

    with refuses("cluster_lost", cause=Containing(text), items=40, folder="run", hint="the same command goes on"):
        on_ray(Gone(), shards=6, cpus=1)
    finished = {str(shard) for shard, _ in on_ray.ran}
    assert len(finished) == 2
    run = on_ray(StandInRay(), cpus=1)
    assert len(on_ray.ran) == 4 and not finished & {str(shard) for shard, _ in on_ray.ran}
    assert list(run.rows()) == list(record_of(Source("made", SAMPLES), tmp_path / "whole").rows())


def test_an_actor_starts_its_workers_once(on_ray):
    on_ray(StandInRay(), shards=6, cpus=1, actors=1)
    assert len(on_ray.ran) == 6 and len({id(workers) for _, workers in on_ray.ran}) == 1


def test_with_few_samples_shards_may_be_empty(on_ray):
    run = on_ray(StandInRay(), Source("made", SAMPLES[:3]), shards=16)
    assert run.counts()["samples"] == 3 and len(on_ray.ran) < 16


def test_what_cannot_go_on_is_one_sentence(on_ray, tmp_path, monkeypatch):
    with refuses("shard_ends_actors", actors=5, cause="its node is gone"):
        on_ray(StandInRay(lose=range(100)), shards=2, cpus=1)
    monkeypatch.setattr(ray, "_token", lambda folder: (str(tmp_path / "elsewhere"), "x"))
    with refuses("run_folder_not_shared"):
        on_ray(StandInRay())
    monkeypatch.undo()
    record_of(Source("made", SAMPLES), tmp_path / "alone")
    with refuses("run_without_ray"):
        ray.PartFolders(tmp_path / "alone", None, 4)


def test_an_address_that_does_not_answer(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connection, "find_spec", lambda name: object())
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = ("eval", "--codec", "unprocessed", "--data", "embedded", "--metrics", "si_sdr")
    code, _, text = command(*words, "--executor", "ray", "--ray-address", address)
    assert code == 2 and f"the Ray cluster at '{address}' does not answer: Connection refused" in text
    code, _, text = command(*words, "--executor", "ray", "--ray-address", "head")
    assert code == 2 and "expected HOST:PORT" in text
    code, _, text = command(*words, "--shards", "4")
    assert code == 2 and "without --executor ray" in text
    monkeypatch.setattr(connection, "find_spec", lambda name: None)
    code, _, text = command(*words, "--executor", "ray")
    assert code == 2 and "needs the package 'ray'" in text and "codec-bench[ray]" in text
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ({"shards": 0}, {"code": "option_out_of_range", "option": "shards", "value": 0}),
        ({"cpus": 0}, {"code": "option_out_of_range", "option": "cpus", "value": 0, "least": 1}),
        ({"address": "ray://head:10001"}, {"code": "ray_client_address"}),
    ],
)
def test_options_that_cannot_be(requests, message):
    with refuses(**message):
        OnRay(**requests)


def test_no_such_executor():
    assert read_executor("local") is None and read_executor("ray") == OnRay()
    with refuses("option_choice", known=["local", "ray"]):
        read_executor("slurm")


def plan_of(where):
    return SimpleNamespace(systems=(), features={"f": SimpleNamespace(where=where)})


def test_how_many_actors_suit_a_cluster():
    stand_in = StandInRay()
    stand_in.resources = [{}, {"CPU": 8.0, "GPU": 2.0}, {"CPU": 16.0, "GPU": 2.0}, {"CPU": 5.0}]
    kinds = lambda where, **more: [  # noqa: E731
        (kind.gpus, kind.cpus, kind.count)
        for kind in ClusterSize.of(
            stand_in, plan_of(where), Running(device=more.pop("device", "auto")), OnRay(**more)
        ).kinds
    ]
    assert kinds("device") == [(1, 4, 4)]
    assert kinds("device", cpu_actors=2, cpus=2) == [(1, 4, 4), (0, 2, 2)]
    assert kinds("cpu") == kinds("device", device="cpu") == [(0, 4, 7)]
    assert kinds("cpu", actors=20) == [(0, 4, 20)], "a cluster that grows on demand is asked for more than it has"
    stand_in.resources = [{"CPU": 2.0}]
    assert kinds("device") == [(0, 2, 1)]
    with refuses("no_gpu_in_cluster"):
        kinds("device", device="cuda:0")
