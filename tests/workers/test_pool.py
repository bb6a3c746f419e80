"""Several workers: how an item that kills its worker affects the others, and which worker gets which device."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from refusals import Containing, refuses

from codec_bench.workers.host import WorkerEnded
from codec_bench.workers.pool import DEATHS_IN_A_ROW, WorkerPool, device_variables

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


def replies(settings, *batches, variables=({},), **changed):
    """A pool's replies to concurrent batches."""

    async def go():
        pool = WorkerPool(settings(**changed), variables)
        await pool.start()
        try:
            return await asyncio.gather(*(pool.ask(batch) for batch in batches))
        finally:
            await pool.close()

    return go()


def test_an_item_that_kills_is_dropped_alone(settings, item, clean):
    (got,) = clean(replies(settings, [item("a"), item("b", do="die"), item("c"), item("d")]))
    assert [r.answer and r.answer["text"] for r in got] == ["a", None, "c", "d"]
    assert got[1].reason.code == "worker_killed" and got[1].reason.parameters["signal"] == "SIGKILL"
    assert "last words" in got[1].reason.parameters["log"]
    assert [r.attempts for r in got] == [2, 2, 2, 2]


def test_an_item_that_hangs_is_dropped_alone(settings, item, clean):
    (got,) = clean(replies(settings, [item("a"), item("b", do="hang"), item("c")], limit_s=1.0))
    assert [r.answer and r.answer["text"] for r in got] == ["a", None, "c"]
    assert got[1].reason.as_dict() | {"log": ""} == {
        "code": "worker_reply_late",
        "worker": "w",
        "limit_s": 1.0,
        "log": "",
    }


def test_a_worker_that_dies_once_is_started_again_and_queried_again(settings, item, clean, tmp_path):
    (got,) = clean(replies(settings, [item("a", do="die once", mark=str(tmp_path / "died"))]))
    assert (got[0].answer["text"], got[0].attempts) == ("a", 2)


def test_a_worker_that_always_dies_is_abandoned(settings, item, clean, code):
    async def go():
        pool = WorkerPool(settings(), [{}])
        await pool.start()
        mark = code.parent / "started"
        code.write_text(code.read_text().replace("def load(", f"open({str(mark)!r}, 'a').write('.')\n\n\ndef load(", 1))
        got = [(await pool.ask([item(do="die")]))[0] for _ in range(4)]
        await pool.close()
        return got, len(mark.read_text())

    got, started = clean(go())
    assert all(r.answer is None for r in got)
    assert got[-1].reason.code == "worker_ends_repeatedly" and "SIGKILL" in got[-1].reason
    assert started == DEATHS_IN_A_ROW - 1  # the first start was before the mark


def test_two_workers_share_the_batches(settings, item, clean):
    batches = [[item(f"{k}")] for k in range(12)]
    got = clean(replies(settings, *batches, variables=device_variables(2, ["cuda:0", "cuda:1"])))
    assert [r.answer["text"] for (r,) in got] == [str(k) for k in range(12)]
    assert {r.answer["notes"][0] for (r,) in got} == {"0", "1"}


def test_a_worker_that_is_abandoned_leaves_its_work_to_the_others(settings, item, clean, monkeypatch):
    monkeypatch.setattr("codec_bench.workers.pool.DEATHS_IN_A_ROW", 2)

    async def go():
        pool = WorkerPool(settings(), [{"MARKED": "1"}, {}])
        await pool.start()
        got = [(await pool.ask([item(do="die if marked")]))[0] for _ in range(4)]
        abandoned = [seat.failure is not None for seat in pool._seats]
        await pool.close()
        return [r.answer is not None for r in got], abandoned

    answered, abandoned = clean(go())
    assert abandoned == [True, False]
    assert answered == [False, True, True, True]  # the first item used up both attempts of the marked worker


def test_when_all_are_abandoned_answers_come_at_once(settings, item, clean, monkeypatch):
    monkeypatch.setattr("codec_bench.workers.pool.DEATHS_IN_A_ROW", 2)

    async def go():
        pool = WorkerPool(settings(), [{}, {}])
        await pool.start()
        for _ in range(2):
            await pool.ask([item(do="die")])
        got = await asyncio.gather(*(pool.ask([item("x")]) for _ in range(50)))
        await pool.close()
        return got

    for (reply,) in clean(go()):
        assert reply.answer is None and reply.reason.code == "worker_ends_repeatedly"


def test_a_pool_whose_workers_do_not_load_leaves_none_behind(settings, clean):
    with refuses("worker_stopped", cause=Containing("the weights are not there"), error=WorkerEnded):
        clean(replies(settings, options={"do": "raise"}, variables=[{}, {}]))


def test_devices_are_counted_among_those_that_are_visible(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert device_variables(1, None) == [{}]
    assert device_variables(3, ["cuda:0", 1]) == [{"CUDA_VISIBLE_DEVICES": c} for c in "010"]
    assert device_variables(1, ["cpu"]) == [{"CUDA_VISIBLE_DEVICES": ""}]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-ab")
    assert device_variables(2, [0, 1]) == [{"CUDA_VISIBLE_DEVICES": "5"}, {"CUDA_VISIBLE_DEVICES": "GPU-ab"}]
    with refuses("no_device", device="2"):
        device_variables(1, [2])
    with refuses("no_device", device="gpu"):
        device_variables(1, ["gpu"])


def test_workers_share_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert device_variables(3, None) == [{"OMP_NUM_THREADS": "2"}] * 3
    assert device_variables(1, None) == [{}]
