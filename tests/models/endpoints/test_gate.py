import asyncio

import pytest

from codec_bench.models.endpoints.retries import HELD_SLOTS, HeldSlots, RequestGate, RetryPolicy


def run_gate(slots, ceiling, requests=4000, start=64):
    """A service with so many slots, in rounds: everything sent in one round is answered before the next."""

    async def main():
        gate = RequestGate(ceiling, start=start)
        served = rounds = 0
        while served < requests:
            tickets = []
            while gate.busy < int(gate.limit):
                tickets.append(await gate.enter())
            for at, ticket in reversed(list(enumerate(tickets))):  # requests that are turned away are answered first
                gate.leave(ticket, "good" if at < slots else "crowded")
            served += min(slots, len(tickets))
            rounds += 1
        return gate, rounds

    return asyncio.run(main())


@pytest.mark.parametrize("slots", [4, 16, 64])
def test_the_gate_finds_how_many_fit(slots):
    gate, rounds = run_gate(slots, ceiling=256)
    assert rounds <= 4000 / slots * 1.15 + 10
    assert 0.7 * slots <= gate.limit <= 1.3 * slots + 2


def test_the_limit_becomes_what_the_service_took():
    async def main():
        gate = RequestGate(128, start=128)
        tickets = [await gate.enter() for _ in range(100)]
        for ticket in tickets[:60]:
            gate.leave(ticket, "crowded")
        return gate.limit

    assert asyncio.run(main()) == 40


def test_many_that_are_too_slow_halve_it_once():
    async def main():
        gate = RequestGate(64, start=64)
        tickets = [await gate.enter() for _ in range(64)]
        for ticket in tickets:
            gate.leave(ticket, "slow")
        gate.leave(await gate.enter(), "slow")
        return gate.limit

    assert asyncio.run(main()) == 16


def test_it_never_closes_altogether_and_never_passes_its_ceiling():
    async def main():
        gate, limits = RequestGate(8, start=8), []
        for outcome in ["crowded"] * 20 + ["good"] * 200:
            tickets = [await gate.enter() for _ in range(int(gate.limit))]
            for ticket in tickets:
                gate.leave(ticket, outcome)
            limits.append(gate.limit)
        return min(limits), max(limits), limits[-1]

    assert asyncio.run(main()) == (1, 8, 8)


def test_a_cancelled_wait_loses_no_place():
    async def main():
        gate = RequestGate(1)
        ticket = await gate.enter()
        first, second = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        gate.leave(ticket, "good")
        first.cancel()
        await asyncio.wait_for(second, 1)
        return first.cancelled(), gate.busy

    assert asyncio.run(main()) == (True, 1)


def test_a_question_that_sends_two_requests_at_once_does_not_wait_for_its_own_place():
    """A cascade hears all sounds of a question at once; the first answer holds the only place
    that the second may take.
    """

    async def main():
        client = RetryPolicy(1)

        async def attempt():
            await asyncio.sleep(0)

        async def question():
            places = HeldSlots()
            HELD_SLOTS.set(places)
            await asyncio.gather(*(asyncio.create_task(client.run(attempt)) for _ in range(3)))
            held = client.gate.held
            places.release_all()
            return held

        held = [await asyncio.wait_for(one, 5) for one in [asyncio.create_task(question()) for _ in range(4)]]
        return held, client.gate.busy, client.gate.held, client.answered

    held, *rest = asyncio.run(main())
    assert min(held) >= 1 and rest == [0, 0, 12]


def test_a_request_that_ends_after_its_question_was_abandoned_holds_no_place():
    """One sound of a question cannot be read, and the question fails while another of its
    sounds is still in progress.
    """

    async def main():
        client, ended = RetryPolicy(1), asyncio.Event()
        places = HeldSlots()
        HELD_SLOTS.set(places)
        late = asyncio.create_task(client.run(ended.wait))
        await asyncio.sleep(0)
        places.release_all()
        ended.set()
        await late
        HELD_SLOTS.set(HeldSlots())
        await asyncio.wait_for(client.run(lambda: asyncio.sleep(0)), 5)

    asyncio.run(main())
