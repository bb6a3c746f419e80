"""One worker: the host survives whatever it does, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench.workers.host import WorkerEnded, WorkerHost

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


def gone(pid: int, within_s: float = 120.0) -> bool:
    """Whether a process has ended, or is a zombie that only its new parent can reap."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def own_temporary(tmp_path, monkeypatch):
    """A folder for temporary files that nobody else uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def ask(settings, *items, **changed):
    """The replies of a fresh worker to one batch, and how it is afterwards."""

    async def go():
        host = WorkerHost(settings(**changed))
        await host.start()
        try:
            return await host.ask(items)
        finally:
            await host.close()

    return go()


def test_sounds_come_back_bit_for_bit(settings, item, clean, rng):
    kinds = [((1, 160_000), 16_000), ((2, 7), 24_000), ((1, 1), 8_000), ((3, 100_001), 44_100)]
    sounds = [(rng.standard_normal(shape).astype(np.float32), rate) for shape, rate in kinds]
    replies = clean(ask(settings, *(item("é 1", audio={"samples": x, "sample_rate_hz": r}) for x, r in sounds)))
    for reply, (x, rate) in zip(replies, sounds, strict=True):
        assert reply["text"] == "é 1"
        got = reply["audio"]
        assert (got["channels"], got["sample_rate_hz"]) == (x.shape[0], rate)
        assert bytes(got["samples"]) == x.tobytes()


def test_a_batch_keeps_its_order_and_its_sounds(settings, item, clean, rng):
    sounds = [rng.standard_normal((1, 100 + k)).astype(np.float32) for k in range(20)]
    items = [item(str(k), audio={"samples": x, "sample_rate_hz": 8000}) for k, x in enumerate(sounds)]
    items.insert(7, item("without"))
    replies = clean(ask(settings, *items))
    assert [r["text"] for r in replies] == [*map(str, range(7)), "without", *map(str, range(7, 20))]
    assert replies.pop(7)["audio"] is None
    for reply, x in zip(replies, sounds, strict=True):
        assert bytes(reply["audio"]["samples"]) == x.tobytes()


def test_worker_code_may_change_what_it_receives(settings, item, clean):
    x = np.ones((1, 5), np.float32)
    (reply,) = clean(ask(settings, item(do="keep", audio={"samples": x, "sample_rate_hz": 8000})))
    assert np.frombuffer(reply["audio"]["samples"], np.float32).tolist() == [2.0] * 5
    assert x.tolist() == [[1.0] * 5]


def test_a_long_sound_does_not_hold_memory(settings, item, clean):
    from codec_bench.workers import wire

    x = np.zeros((1, 12 << 20), np.float32)  # 48 MiB
    sizes = []

    async def go():
        host = WorkerHost(settings())
        await host.start()
        for samples in (x, x[:, :100], x[:, :1000], x):
            (reply,) = await host.ask([item(audio={"samples": samples.copy(), "sample_rate_hz": 8000})])
            assert len(reply["audio"]["samples"]) == samples.nbytes
            sizes.append([os.fstat(memory.handle).st_size for memory in (host._request_memory, host._reply_memory)])
        await host.close()

    clean(go())
    assert sizes[1] == [wire.CACHED_BYTES] * 2
    assert sizes[0] == sizes[3] == [x.nbytes] * 2


@pytest.mark.parametrize("do", ["print", "garbage"])
def test_what_it_prints_is_only_a_log(settings, item, clean, do):
    async def go():
        host = WorkerHost(settings())
        await host.start()
        replies = [(await host.ask([item(f"k{k}", do=do)]))[0]["text"] for k in range(3)]
        tail = host.log_tail
        await host.close()
        return replies, tail

    replies, tail = clean(go())
    assert replies == ["k0", "k1", "k2"]
    assert tail.isprintable()
    if do == "print":
        assert "a line on stdout" in tail and "a line on stderr" in tail


def test_a_log_does_not_grow_without_end(settings, item, clean, monkeypatch):
    monkeypatch.setattr("codec_bench.workers.host.LOG_BYTES", 20_000)

    async def go():
        host = WorkerHost(settings(beat_s=0.02))
        await host.start()
        for _ in range(5):
            await host.ask([item(do="garbage")])
        async with asyncio.timeout(120):  # the log is cut when the worker next reports
            while os.fstat(host._log).st_size >= 20_000:
                await asyncio.sleep(0.01)
        assert (await host.ask([item("x")]))[0]["text"] == "x"
        await host.close()

    clean(go())


def test_an_item_that_raises_fails_alone(settings, item, clean):
    replies = clean(ask(settings, item("a"), item("b", do="raise"), item("c")))
    assert [r.get("text") for r in replies] == ["a", None, "c"]
    assert re.fullmatch(r"ValueError: this one is not for me \(code\.py, line \d+\)", replies[1]["error"])


def test_an_answer_that_cannot_be_used_is_the_items_failure(settings, item, clean):
    reasons = {
        "fewer": "answer() returned 0 for 1 requests",
        "none": "answer() returned NoneType for 1 requests",
        "not a dictionary": "the answer is str; expected a dictionary",
        "not JSON": "object cannot be sent",
        "endless text": "characters; the most are",
        "words as audio": "the samples are <U1; expected floating-point numbers",
        "integers as audio": "the samples are int16; expected floating-point numbers",
        "no rate": "'samples' and 'sample_rate_hz'",
        "three dimensions": "the samples have shape (1, 2, 3)",
    }
    items = [chunk for do in reasons for chunk in (item("good"), item("bad", do=do))]
    replies = clean(ask(settings, *items))
    assert [reply["text"] for reply in replies[::2]] == ["good"] * len(reasons)
    for reply, reason in zip(replies[1::2], reasons.values(), strict=True):
        assert "text" not in reply and reason in reply["error"]


def test_numbers_and_sounds_of_other_types_are_accepted(settings, item, clean):
    numbers, sound, long = clean(ask(settings, *(item(do=d) for d in ("numbers of NumPy", "float64", "long text"))))
    assert numbers["usage"] == {"tokens": 3}
    assert (sound["audio"]["channels"], sound["audio"]["sample_rate_hz"]) == (2, 8000)
    assert np.frombuffer(sound["audio"]["samples"], np.float32).tolist() == [k / 8 for k in range(6)]
    assert long["text"] == "ä" * 100_000


@pytest.mark.parametrize(
    ("do", "changed", "reason", "parameters"),
    [
        ("exit", {}, "worker_exited", {"worker": "w", "exit_status": 5}),
        ("die", {}, "worker_killed", {"worker": "w", "signal": "SIGKILL", "log": "loading {} | last words"}),
        ("hang", {"limit_s": 0.5}, "worker_reply_late", {"limit_s": 0.5}),
        ("stop", {"silence_s": 1.0, "beat_s": 0.1}, "worker_silent", {"silence_s": 1.0}),
        ("write everywhere", {}, "worker_reply_unreadable", {"cause": Containing("a message claims")}),
        (
            "lost device",
            {},
            "worker_stopped",
            {"cause": Containing("RuntimeError: CUDA error: device-side assert triggered")},
        ),
    ],
)
def test_a_process_that_fails_is_ended_and_says_why(
    settings, item, clean, own_temporary, do, changed, reason, parameters
):
    with refuses(reason, **parameters, error=WorkerEnded):
        clean(ask(settings, item(do=do), **changed))
    assert not os.listdir(own_temporary)


@pytest.mark.parametrize(
    ("do", "changed", "reason", "parameters"),
    [
        ("raise", {}, "worker_stopped", {"cause": "RuntimeError: the weights are not there (code.py, line 10)"}),
        ("exit", {}, "worker_stopped", {"cause": Containing("SystemExit: no licence")}),
        ("die", {}, "worker_exited", {"exit_status": 7, "log": "loading {'do': 'die'}"}),
        ("hang", {"start_s": 1.0}, "worker_load_late", {"limit_s": 1.0}),
    ],
)
def test_a_worker_that_does_not_load_says_why(settings, clean, own_temporary, do, changed, reason, parameters):
    with refuses(reason, **parameters, error=WorkerEnded):
        clean(ask(settings, options={"do": do}, **changed))
    assert not os.listdir(own_temporary)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found' (code.py, line 1)"),
        ("def load(): pass", "has no function 'answer'"),
        ("def load(:", "SyntaxError"),
    ],
)
def test_worker_code_that_is_wrong_is_named(settings, code, clean, text, reason):
    code.write_text(text)
    with refuses("worker_stopped", cause=Containing(reason), error=WorkerEnded):
        clean(ask(settings))


def test_an_interpreter_that_is_not_there(settings, clean, tmp_path, own_temporary):
    with refuses("worker_not_started", worker="w", error=WorkerEnded):
        clean(ask(settings, python=tmp_path / "python"))
    assert not os.listdir(own_temporary)


def test_an_option_that_load_does_not_take(settings, code, clean):
    code.write_text("def load(size): pass\ndef answer(state, batch): pass\n")
    with refuses("worker_stopped", cause=Containing("unexpected keyword argument 'sise'"), error=WorkerEnded):
        clean(ask(settings, options={"sise": 1}))


def test_modules_next_to_the_code_can_be_imported(settings, code, item, clean):
    (code.parent / "beside.py").write_text("WORD = 'found'\n")
    code.write_text(
        "import beside\ndef load(): pass\ndef answer(state, batch): return [{'text': beside.WORD} for _ in batch]\n"
    )
    assert clean(ask(settings, item()))[0]["text"] == "found"


def test_a_restarted_host_answers_again(settings, item, clean):
    async def go():
        host = WorkerHost(settings())
        await host.start()
        with pytest.raises(WorkerEnded):
            await host.ask([item(do="die")])
        assert not host.running
        await host.start()
        replies = await host.ask([item("again")])
        await host.close()
        await host.close()
        return replies[0]["text"]

    assert clean(go()) == "again"


async def hanging(settings, item):
    """A host with a request that it never answers."""
    host = WorkerHost(settings())
    await host.start()
    requests = asyncio.create_task(host.ask([item(do="hang")]))
    await asyncio.sleep(0.1)
    return host, requests


def test_a_cancelled_batch_takes_the_process_with_it(settings, item, clean):
    async def go():
        host, requested = await hanging(settings, item)
        requested.cancel()
        with pytest.raises(asyncio.CancelledError):
            await requested
        assert not host.running

    clean(go())


def test_a_host_that_is_closed_tells_who_waits(settings, item, clean):
    async def go():
        host, requested = await hanging(settings, item)
        await host.close()
        with refuses("worker_closed", worker="w", error=WorkerEnded):
            await requested

    clean(go())


def test_a_batch_that_fails_is_answered_in_halves(settings, item, code, clean):
    code.write_text(
        "import sys, types\n"
        "sizes, emptied = [], []\n"
        "cuda = types.SimpleNamespace(empty_cache=lambda: emptied.append(len(sizes)))\n"
        "sys.modules['torch'] = types.SimpleNamespace(cuda=cuda)\n"
        "def load(): pass\n"
        "def answer(state, batch):\n"
        "    sizes.append(len(batch))\n"
        "    if len(batch) > 2: raise MemoryError('CUDA error: out of memory')\n"
        "    return [{'text': f'{sizes} {emptied}'} for _ in batch]\n"
    )
    replies = clean(ask(settings, *(item(str(k)) for k in range(6))))
    assert replies[-1]["text"] == "[6, 3, 1, 2, 3, 1, 2] [1, 2, 5]"


def test_nothing_is_written_next_to_the_code(settings, item, code, clean):
    before = set(code.parent.iterdir())
    clean(ask(settings, item()))
    assert set(code.parent.iterdir()) == before


def test_a_start_that_is_cancelled_leaves_nothing(settings, clean, own_temporary):
    async def go():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(WorkerHost(settings(options={"do": "hang"})).start(), 0.5)

    clean(go())
    assert not os.listdir(own_temporary)


def test_what_the_worker_started_and_left_goes_with_it(settings, item, clean, own_temporary):
    async def go():
        host = WorkerHost(settings())
        await host.start()
        (reply,) = await host.ask([item(do="start others")])
        pids = [int(pid) for pid in reply["text"].split()]
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        held = [name for _, _, files in os.walk(own_temporary) for name in files]
        await host.close()
        return pids, held

    pids, held = clean(go())
    assert len(held) == 2  # only the log, and the file that the worker left
    assert all(gone(pid, 0.5) for pid in pids)
    assert not os.listdir(own_temporary)


PARENT = """
import asyncio, sys
from pathlib import Path
from codec_bench.workers import wire
from codec_bench.workers.host import WorkerHost, WorkerSettings

async def main():
    host = WorkerHost(WorkerSettings("w", Path(sys.executable), Path(sys.argv[1])))
    await host.start()
    (reply,) = await host.ask([wire.pack({"id": "a", "fields": {"do": "start others"}})])
    asked = asyncio.create_task(host.ask([wire.pack({"id": "b", "fields": {"do": sys.argv[2]}})]))
    await asyncio.sleep(0.2)
    print(reply["text"], host._process.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("do", ["nothing", "hang", "stop"])
def test_nothing_is_left_when_the_parent_is_killed(code, own_temporary, do):
    parent = subprocess.Popen(
        [sys.executable, "-P", "-c", PARENT, str(code), do],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(own_temporary)},
    )  # fmt: skip
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    pids += [int(p) for p in Path(f"/proc/{pids[-1]}/task/{pids[-1]}/children").read_text().split()]
    assert len(pids) == 4 and not any(gone(pid, 0.01) for pid in pids)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert all(gone(pid) for pid in pids)
    # The guardian's last act; it may come a moment after its children are gone.
    assert not os.listdir(own_temporary)


def test_a_guardian_that_is_killed_takes_the_worker_with_it(settings, item, clean, own_temporary):
    async def go():
        host = WorkerHost(settings())
        await host.start()
        guardian = host._process.pid
        (worker,) = [int(p) for p in Path(f"/proc/{guardian}/task/{guardian}/children").read_text().split()]
        os.kill(guardian, signal.SIGKILL)
        with pytest.raises(WorkerEnded):
            await host.ask([item(do="hang")])
        assert gone(worker)

    clean(go())
    assert not os.listdir(own_temporary)
