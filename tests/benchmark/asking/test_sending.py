import asyncio
import gc
from contextlib import aclosing

import pytest

from codec_bench.benchmark.asking.sending import send_requests
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.cache import ResponseCache
from codec_bench.types import Request, Response


class Echo(Model):
    """Answers with the request's id after a while, and counts."""

    info = ModelInfo("echo")

    def __init__(self, concurrency=4, wait=0.0, answer=None):
        self.concurrency, self.wait = concurrency, wait
        self.answer = answer or (lambda request: Response(text=request.id))
        self.requests, self.busy, self.most = [], 0, 0

    @property
    def identity(self):
        return {"name": "echo"}

    async def ask(self, request):
        self.requests.append(request.id)
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await asyncio.sleep(self.wait)
            return self.answer(request)
        finally:
            self.busy -= 1


def requests(count, **more):
    return [Request(f"q{n}", parameters={"n": n}, **more) for n in range(count)]


def collect(model, inputs, **options):
    async def main():
        async with aclosing(send_requests(model, inputs, **options)) as pairs:
            out = [pair async for pair in pairs]
        return out, len(asyncio.all_tasks())

    out, tasks = asyncio.run(main())
    assert tasks == 1, "something was left behind"
    return out


@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_every_request_is_answered_once(count):
    model = Echo(wait=0.001)
    out = collect(model, iter(requests(count)))
    assert sorted(r.id for r, _ in out) == sorted(f"q{n}" for n in range(count)) and len(model.requests) == count
    assert all(response.text == request.id for request, response in out) and model.most == min(4, count)


def test_answers_come_as_they_finish():
    class Uneven(Echo):
        async def ask(self, request):
            await asyncio.sleep(0.2 if request.id == "q0" else 0.001)
            return Response(text="a")

    out = collect(Uneven(concurrency=2), requests(10))
    assert out[-1][0].id == "q0"


def test_requests_are_read_as_they_are_needed():
    read = 0

    def source():
        nonlocal read
        for request in requests(10_000):
            read += 1
            yield request

    async def main():
        ahead = []
        async with aclosing(send_requests(Echo(concurrency=8), source())) as pairs:
            done = 0
            async for _ in pairs:
                done += 1
                ahead.append(read - done)
                if done == 700:
                    break
        return ahead, len(asyncio.all_tasks())

    ahead, tasks = asyncio.run(main())
    assert max(ahead) <= 512 and read < 1_300 and tasks == 1


def test_one_that_raises_fails_alone():
    def answer(request):
        if request.id == "q3":
            raise KeyError("Bearer abcdef secret")
        return Response(text="a")

    out = dict(collect(Echo(answer=answer), requests(8)))
    failed = [(r.id, a.reason) for r, a in out.items() if a.status == "failed"]
    assert failed == [("q3", Diagnostic("model_raised", type="KeyError", message="'Bearer *** secret'"))]


def test_what_no_request_survives_ends_it_after_what_was_answered():
    def answer(request):
        if request.id == "q5":
            raise UserError("wrong key")
        return Response(text="a")

    async def main():
        got = []
        with pytest.raises(UserError, match="wrong key"):
            async with aclosing(send_requests(Echo(concurrency=1, answer=answer), requests(100))) as pairs:
                async for request, _ in pairs:
                    got.append(request.id)
        return got, len(asyncio.all_tasks())

    assert asyncio.run(main()) == ([f"q{n}" for n in range(5)], 1)


def test_what_ends_it_while_the_caller_has_an_answer_is_what_it_raises():
    def answer(request):
        if request.id == "q1":
            raise UserError("wrong key")
        return Response(text="a")

    class Later(Echo):
        charges = True

        async def ask(self, request):
            if request.id == "q1":
                await asyncio.sleep(0.02)
            return await super().ask(request)

    async def main():
        with pytest.raises(UserError, match="wrong key"):
            async with aclosing(send_requests(Later(concurrency=2, answer=answer), requests(2))) as pairs:
                async for _ in pairs:
                    await asyncio.sleep(0.06)  # the other request fails meanwhile

    asyncio.run(main())


def test_a_source_that_raises_ends_it():
    def source():
        yield from requests(3)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        collect(Echo(), source())


@pytest.mark.parametrize("options", ["break", "cancel", "raise"])
def test_leaving_in_the_middle_leaves_nothing_behind(options):
    model = Echo(concurrency=16, wait=5.0, answer=None)

    async def main():
        async def consume():
            async with aclosing(send_requests(model, requests(100))) as pairs:
                async for _ in pairs:
                    pass

        consumer = asyncio.create_task(consume())
        while model.busy < 16:
            await asyncio.sleep(0.001)
        if options == "raise":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer, 0.01)
        else:
            consumer.cancel()
            await asyncio.gather(consumer, return_exceptions=True)
        return model.busy, len(asyncio.all_tasks())

    if options == "break":
        model.wait = 0.01

        async def main():
            async with aclosing(send_requests(model, requests(100))) as pairs:
                async for _ in pairs:
                    break
            return model.busy, len(asyncio.all_tasks())

    assert asyncio.run(main()) == (0, 1)
    gc.collect()


def test_the_cache_is_read_first_and_failures_are_sent_again(tmp_path):
    def answer(request):
        return Response.failed("no") if request.id == "q7" else Response(text=request.id)

    for expected in (600, 1):
        model, cache = Echo(answer=answer), ResponseCache(tmp_path / "r.sqlite")
        out = collect(model, requests(600), cache=cache)
        cache.close()
        assert len(out) == 600 and len(model.requests) == expected
        assert all(a.text == q.id for q, a in out if q.id != "q7")
        assert sum(a.cached for _, a in out) == 600 - expected


def test_what_was_answered_before_an_interrupt_is_in_the_cache(tmp_path):
    async def main(cache):
        async with aclosing(send_requests(Echo(concurrency=2, wait=0.001), requests(50), cache=cache)) as pairs:
            done = 0
            async for _ in pairs:
                done += 1
                if done == 10:
                    break

    cache = ResponseCache(tmp_path / "r.sqlite")
    asyncio.run(main(cache))
    cache.close()
    model, cache = Echo(), ResponseCache(tmp_path / "r.sqlite")
    collect(model, requests(50), cache=cache)
    cache.close()
    assert len(model.requests) <= 40


def test_a_model_that_reads_undeclared_fields_is_reported():
    async def run():
        model = Echo(answer=lambda request: Response(text=request.fields["text"]))
        question = [Request("spoken", fields={"text": "Hello"}), Request("worded")]
        return {request.id: response async for request, response in send_requests(model, question)}

    messages = asyncio.run(run())
    assert messages["spoken"].text == "Hello"
    assert messages["worded"].reason == (Diagnostic("model_raised_on_messages", type="KeyError", message="'text'"))
