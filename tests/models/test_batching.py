"""Batches: every request gets its own answer, whatever the number of requests, the failures and the memory."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.models.base import ModelInfo
from codec_bench.models.batching import REQUEST_S, TEXT_S, BatchModel, Waiting, length_s, refusal
from codec_bench.types import Audio, Message, Request, Response

RATE = 16_000


class Counting(BatchModel):
    """Answers with the number of its input samples. It has memory for `room_s` padded seconds and fails on some ids."""

    def __init__(self, *, room_s=1e9, bad=(), batch_s=60.0, device="cpu", **info):
        self.info = ModelInfo("counting", **info)
        self.room_s, self.bad, self.batch_s, self.device = room_s, set(bad), batch_s, device
        self.batches = []
        self.running, self.most = 0, 0

    @property
    def identity(self):
        return {}

    def answer(self, batch):
        self.running += 1
        self.most = max(self.most, self.running)
        self.batches.append([request.id for request in batch])
        try:
            padded = max(map(length_s, batch)) * len(batch)
            if padded > self.room_s:
                raise MemoryError
            if any(request.id in self.bad for request in batch):
                raise ValueError("no such word")
            assert threading.current_thread() is not threading.main_thread()
            return [Response(text=str(sum(c.read().num_samples for c in r.messages[0].content))) for r in batch]
        finally:
            self.running -= 1


def request(name, seconds, rate=RATE):
    clip = Clip(Audio(np.zeros(round(seconds * rate), np.float32) + 0.1, rate))
    return Request(str(name), (Message("user", (clip,)),))


def send_requests(model, requests):
    async def run():
        await model.start()
        answers = await asyncio.gather(*map(model.ask, requests))
        await model.close()
        return answers

    return asyncio.run(run())


def lengths(seed, count):
    return np.random.default_rng(seed).uniform(0.2, 9.0, count)


def test_everybody_gets_their_own_answer_in_few_batches():
    model = Counting(batch_s=60.0)
    seconds = lengths(0, 200)
    answers = send_requests(model, [request(k, s) for k, s in enumerate(seconds)])
    assert [a.text for a in answers] == [str(round(s * RATE)) for s in seconds]
    assert sorted(int(i) for b in model.batches for i in b) == list(range(200))
    assert len(model.batches) < 40  # 200 x (4.6 + 1) s in 60 s is 19 without any padding
    assert all(a.latency_s is not None and a.status == "ok" for a in answers)


def test_a_batch_holds_like_lengths_and_stays_within_its_budget():
    model = Counting(batch_s=30.0)
    seconds = lengths(1, 300)
    send_requests(model, [request(k, s) for k, s in enumerate(seconds)])
    weights = [[seconds[int(i)] + REQUEST_S for i in batch] for batch in model.batches]
    assert all(max(w) * len(w) <= 30.0 for w in weights if len(w) > 1)
    padding = sum(max(w) * len(w) for w in weights) / sum(map(sum, weights))
    shuffled = np.array_split(np.random.default_rng(0).permutation(seconds + REQUEST_S), len(weights))
    assert padding < 1.15 < sum(max(w) * len(w) for w in shuffled) / sum(map(sum, weights))


def test_nobody_waits_for_a_full_batch():
    model = Counting(batch_s=1e6)
    assert send_requests(model, [request("a", 1.0)])[0].text == "16000"  # otherwise it would wait for ever
    assert model.batches == [["a"]]


def test_what_comes_later_joins_a_later_batch():
    model = Counting(batch_s=4.0)

    async def run():
        async def chain(name):
            return [(await model.ask(request(f"{name}{k}", 1.0))).text for k in range(5)]

        texts = await asyncio.gather(*map(chain, "abcd"))
        await model.close()
        return texts

    assert asyncio.run(run()) == [["16000"] * 5] * 4
    assert max(map(len, model.batches)) == 2 and sum(map(len, model.batches)) == 20


def test_a_request_that_fails_fails_alone():
    model = Counting(bad=("3", "7"))
    answers = send_requests(model, [request(k, 1.0) for k in range(12)])
    assert [k for k, a in enumerate(answers) if a.status == "failed"] == [3, 7]
    assert answers[3].reason == "ValueError: no such word"
    assert all(a.text == "16000" for k, a in enumerate(answers) if k not in (3, 7))


def test_a_model_that_gives_up_the_process_only_fails_its_items():
    class Leaving(Counting):
        def answer(self, batch):
            if any(request.id == "2" for request in batch):
                raise SystemExit(3)
            return super().answer(batch)

    answers = send_requests(Leaving(), [request(k, 1.0) for k in range(4)])
    assert [a.status for a in answers] == ["ok", "ok", "failed", "ok"] and answers[2].reason == "SystemExit: 3"


@pytest.mark.parametrize("device", ["cpu", "cuda:7"])
def test_memory_that_is_too_small_costs_nobody_an_answer(device):
    model = Counting(room_s=7.0, batch_s=500.0, device=device)
    answers = send_requests(model, [request(k, 1.0 + k % 3) for k in range(30)])
    assert [a.text for a in answers] == [str(RATE * (1 + k % 3)) for k in range(30)]


def test_one_request_that_is_too_large_for_memory_fails_alone():
    model = Counting(room_s=7.0)
    answers = send_requests(model, [request("small", 1.0), request("large", 9.0), request("other", 2.0)])
    assert [a.status for a in answers] == ["ok", "failed", "ok"]
    assert answers[1].reason == Diagnostic("model_out_of_memory")


def test_a_budget_grows_where_batches_fit_and_rests_after_one_did_not():
    waiting = Waiting(10.0, growing=True)
    waiting.fitted(5.0)
    assert waiting.budget_s == 10.0  # it was not tried
    waiting.fitted(9.0)
    assert waiting.budget_s == 12.5
    waiting.did_not_fit(12.0)
    waiting.fitted(6.0)
    assert waiting.budget_s == 6.0


def test_audio_is_cut_to_the_limit_and_the_cut_is_reported():
    model = Counting(limit_s=2.0)
    answers = send_requests(model, [request("long", 5.0, 8_000), request("short", 1.0)])
    assert (answers[0].text, answers[0].cut_s) == ("32000", 3.0)
    assert (answers[1].text, answers[1].cut_s) == ("16000", 0.0)


def test_windows_are_answered_in_batches_and_joined():
    model = Counting(window_s=2.0)
    answers = send_requests(model, [request("long", 5.0), request("short", 1.0)])
    assert sum(map(int, answers[0].text.split())) == 5 * RATE and answers[0].cut_s == 0.0
    assert answers[1].text == "16000" and len(model.batches) == 1


def test_audio_that_cannot_be_read_fails_alone(tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"RIFF")
    requests = [request("a", 1.0), Request("b", (Message("user", (Clip(str(broken)),)),)), request("c", 1.0)]
    answers = send_requests(Counting(), requests)
    assert [a.status for a in answers] == ["ok", "failed", "ok"] and "broken.wav" in answers[1].reason


def test_what_a_model_does_not_take_is_refused_before_it_is_queried():
    model = Counting(inputs=("text",))
    assert send_requests(model, [request("a", 1.0)])[0].status == "refused" and not model.batches
    spoken = Request("b", (Message("user", ("hello",)),), wants="audio")
    assert "gives text" in refusal(spoken, ModelInfo("m"))
    assert "has no messages" in refusal(Request("c"), ModelInfo("m"))
    assert refusal(Request("c"), ModelInfo("m", reads="fields")) is None


def test_a_wrong_number_of_answers_is_nobodys_answer():
    class Short(Counting):
        def answer(self, batch):
            return super().answer(batch)[1:]

    answers = send_requests(Short(), [request(k, 1.0) for k in range(3)])
    assert all(
        a.status == "failed" and a.reason.as_dict() == {"code": "answers_miscounted", "answers": 0, "requests": 1}
        for a in answers
    )


def test_one_batch_at_a_time_on_a_device():
    shared = Counting(batch_s=3.0)
    other = Counting(batch_s=3.0)
    inside, most = 0, 0
    lock = threading.Lock()

    def watched(answer):
        def call(batch):
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.002)
            try:
                return answer(batch)
            finally:
                with lock:
                    inside -= 1

        return call

    shared.answer, other.answer = watched(shared.answer), watched(other.answer)

    async def run():
        await asyncio.gather(*(m.ask(request(k, 1.0)) for k in range(10) for m in (shared, other)))
        await shared.close()
        await other.close()

    asyncio.run(run())
    assert most == 1


def test_closing_answers_those_who_wait():
    model = Counting(batch_s=1.0)

    async def run():
        requests = [asyncio.create_task(model.ask(request(k, 1.0))) for k in range(50)]
        await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        await model.close()
        return await asyncio.wait_for(asyncio.gather(*requests), 10)

    answers = asyncio.run(run())
    assert {a.status for a in answers} <= {"ok", "failed"} and answers.count(None) == 0
    assert all("closed" in a.reason for a in answers if a.status == "failed")


def test_text_weighs_too():
    assert length_s(Request("a", (Message("user", ("x" * 500,)),))) == pytest.approx(REQUEST_S + 500 * TEXT_S)
