"""A server that speaks the dialect of openai_realtime over a real WebSocket and behaves as configured.

It finds speech by the energy of the frames that it gets. Each connection has a plan, found by the instructions of its
session. What a plan did, and when, is logged, so that a test knows the truth: every time is the loop's, less the
arrival of the first frame, plus one frame, which is the time of the session.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from websockets.asyncio.server import serve

RATE_HZ, FRAME_S, PACKET_S = 24_000, 0.02, 0.1


@dataclass
class Plan:
    """How one connection behaves.

    Args:
        answer_after_s: silence after speech until it answers, None for never. answer_s: length of an answer.
        speed: seconds of sound that are sent in a second. jitter_s: each packet is late by up to this, drawn by seed.
        barges_at_s: it speaks so long after the user's first speech, whatever the user does.
        yields_after_s: how long after it hears an interruption it stops; None goes on talking. deaf_s: speech shorter
            than this never interrupts. backchannel_at_s: so long after the first speech it says a short sound.
        stall: (number of the packet, seconds): a pause in sending. drops_at_s: it closes the connection at this time.
        odd: something that a server should not do, by name.
    """

    answer_after_s: float | None = 0.6
    answer_s: float = 2.0
    speed: float = 5.0
    jitter_s: float = 0.0
    seed: int = 0
    barges_at_s: float | None = None
    yields_after_s: float | None = 0.3
    deaf_s: float = 0.0
    backchannel_at_s: float | None = None
    backchannel_s: float = 0.3
    stall: tuple[int, float] | None = None
    drops_at_s: float | None = None
    odd: str = ""


@dataclass
class Log:
    """What a connection did, in seconds of the session: beginnings of answers, stops, packets and the length of each
    answer.
    """

    answers: list[float] = field(default_factory=list)
    backchannels: list[float] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)
    frames: int = 0
    messages: list[dict] = field(default_factory=list)
    sound: bytearray = field(default_factory=bytearray)


def tone(seconds, hz=300.0, rate_hz=RATE_HZ, level=0.3):
    at = np.arange(round(seconds * rate_hz)) / rate_hz
    return np.rint(level * 32767 * np.sin(2 * np.pi * hz * at)).astype("<i2")


class Talk:
    """One connection."""

    def __init__(self, socket, plans, logs):
        self.socket, self.plans, self.logs = socket, plans, logs
        self.plan, self.log, self.loop = None, None, asyncio.get_running_loop()
        self.start = None
        self.answering = self.waiting = None
        self.first = self.speech_since = None
        self.number = self.replies = 0
        self.ended_s, self.quietest = 0.0, 1.0
        self.jobs = set()

    def now(self):
        return self.loop.time() - self.start

    async def send(self, kind, **more):
        self.number += 1
        event_id = "event_1" if self.plan and self.plan.odd == "twice" and self.number > 4 else f"event_{self.number}"
        await self.socket.send(json.dumps({"type": kind, "event_id": event_id, **more}))

    def job(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.jobs.add(task)
        task.add_done_callback(lambda done: self.jobs.discard(done) or done.cancelled() or done.exception())
        return task

    async def run(self):
        await self.send("session.created", session={"model": "scripted"})
        async for message in self.socket:
            event = json.loads(message)
            if event["type"] == "session.update":
                await self.begin(event["session"])
            elif event["type"] == "input_audio_buffer.append":
                await self.frame(base64.b64decode(event["audio"]))
            else:
                self.log.messages.append(event)
        for task in self.jobs:
            task.cancel()

    async def begin(self, session):
        name = session.get("instructions", "")
        self.plan = self.plans.get(name) or self.plans.get("") or Plan()
        self.log = self.logs.setdefault(name, Log())
        self.random = random.Random(f"{self.plan.seed} {name}")
        if self.plan.odd == "mute":
            return
        audio = {"output": {"format": {"type": "audio/pcm", "rate": 8000 if self.plan.odd == "rate" else RATE_HZ}}}
        await self.send("session.updated", session={"model": "scripted-1", "audio": audio})

    async def frame(self, data):
        if self.start is None:
            self.start = self.loop.time() - FRAME_S
            if self.plan.drops_at_s is not None:
                self.job(self.drop())
        self.log.frames += 1
        self.log.sound += data
        samples = np.frombuffer(data, "<i2").astype(np.float64) / 32768
        level = np.sqrt(np.mean(samples**2))
        self.quietest = min(self.quietest, level)  # the background, which is there before the user speaks
        if level > max(0.005, 1.5 * self.quietest):
            await self.speech()
        elif self.speech_since is not None:
            self.speech_since = None
            self.waiting = self.job(self.wait_for_turn())

    async def speech(self):
        now = self.now()
        if self.first is None:
            self.first = now
            for at_s, act in ((self.plan.barges_at_s, self.answer), (self.plan.backchannel_at_s, self.backchannel)):
                if at_s is not None:
                    self.job(self.later(at_s, act))
        if self.speech_since is None:
            self.speech_since = now
            if self.waiting:
                self.waiting.cancel()
        # The server has sent all of its answer long before the client has played it.
        if now < self.ended_s and self.plan.yields_after_s is not None and now - self.speech_since >= self.plan.deaf_s:
            self.ended_s = 0.0
            self.job(self.stop(self.plan.yields_after_s))

    async def later(self, seconds, act):
        await asyncio.sleep(seconds)
        await act()

    async def drop(self):
        await asyncio.sleep(self.plan.drops_at_s)
        await self.socket.close()

    async def stop(self, after_s):
        await asyncio.sleep(after_s)
        busy = self.answering is not None and not self.answering.done()
        if busy:
            self.answering.cancel()
        self.log.stops.append(self.now())
        await self.send("input_audio_buffer.speech_started", item_id="user", audio_start_ms=0)
        if busy:
            done = {"id": f"r{self.replies}", "status": "cancelled", "status_details": {"reason": "turn_detected"}}
            await self.send("response.done", response=done)

    async def wait_for_turn(self):
        if self.plan.answer_after_s is None:
            return
        # The last frame with speech came one frame ago.
        await asyncio.sleep(self.plan.answer_after_s - FRAME_S)
        if self.now() >= self.ended_s:
            await self.answer()

    async def backchannel(self):
        self.log.backchannels.append(self.now())
        await self.packets("b", tone(self.plan.backchannel_s, 500.0), self.plan.backchannel_s)

    async def answer(self):
        self.replies += 1
        self.answering = self.job(self.speak(f"r{self.replies}"))

    async def speak(self, name):
        if self.plan.odd == "words":
            await self.send("response.output_text.delta", delta="hello", response_id=name)
            await self.send("response.done", response={"id": name, "status": "completed"})
            return
        sound = tone(self.plan.answer_s)
        if self.plan.odd == "hour":
            sound = np.zeros(RATE_HZ * 60, "<i2")
        await self.packets(name, sound, PACKET_S * (600 if self.plan.odd == "hour" else 1))
        usage = {"input_tokens": 10, "output_tokens": 20}
        if self.plan.odd != "late":
            await self.send("response.done", response={"id": name, "status": "completed", "usage": usage})

    async def packets(self, name, sound, packet_s):
        size, sent_s, begin = round(packet_s * RATE_HZ), 0.0, self.loop.time()
        if self.plan.odd == "late":
            await self.send("response.done", response={"id": name, "status": "completed"})
        for number, at in enumerate(range(0, sound.size, size)):
            stalled = self.plan.stall[1] if self.plan.stall and number >= self.plan.stall[0] else 0.0
            due = begin + sent_s / self.plan.speed + stalled + self.random.uniform(0, self.plan.jitter_s)
            await asyncio.sleep(due - self.loop.time())
            if number == 0 and name.startswith("r"):
                self.log.answers.append(self.now())
                self.ended_s = self.now() + sound.size / RATE_HZ
            data = base64.b64encode(sound[at : at + size].tobytes()[self.plan.odd == "odd" :]).decode()
            mixed = f"-{number % 2}" if self.plan.odd == "mixed" else ""
            about = {"response_id": f"{name}{mixed}", "item_id": f"item_{name}", "content_index": 0, "output_index": 0}
            await self.send("response.output_audio.delta", delta=data, **about)
            sent_s += packet_s


class GeminiTalk(Talk):
    """The same in the dialect of gemini_live: sound comes at 16 kHz, and answers have no names."""

    async def run(self):
        async for message in self.socket:
            event = json.loads(message)
            if "setup" in event:
                parts = (event["setup"].get("systemInstruction") or {}).get("parts") or [{"text": ""}]
                await self.begin({"instructions": parts[0]["text"]})
            else:
                await self.frame(base64.b64decode(event["realtimeInput"]["audio"]["data"]))
        for task in self.jobs:
            task.cancel()

    async def send(self, kind, **more):
        if kind == "session.updated":
            text = {"setupComplete": {}}
        elif kind == "response.output_audio.delta":
            data = {"mimeType": f"audio/pcm;rate={RATE_HZ}", "data": more["delta"]}
            text = {"serverContent": {"modelTurn": {"parts": [{"inlineData": data}]}}}
        elif kind == "input_audio_buffer.speech_started":
            text = {"serverContent": {"interrupted": True}}
        elif kind == "response.done" and more["response"]["status"] == "completed":
            text = {"serverContent": {"turnComplete": True}}
        else:
            return
        await self.socket.send(json.dumps(text).encode())


class LiveTalk(Talk):
    """The same in the dialect of openai_live: a stream without turns, so what was sent before an interruption is
    played.
    """

    async def run(self):
        async for message in self.socket:
            event = json.loads(message)
            if event["type"] == "session.start":
                await self.begin(event["session"])
            elif event["type"] == "session.input_audio.append":
                await self.frame(base64.b64decode(event["audio"]))
        for task in self.jobs:
            task.cancel()

    async def send(self, kind, **more):
        if kind == "session.updated":
            await self.socket.send(json.dumps({"type": "session.started", "session": {"model": "scripted-1"}}))
        elif kind == "response.output_audio.delta":
            await self.socket.send(json.dumps({"type": "session.output_audio.delta", "delta": more["delta"]}))


class BetaTalk(Talk):
    """The same with the older names of events, as DashScope sends them."""

    async def send(self, kind, **more):
        await super().send(kind.replace("output_audio", "audio"), **more)


@asynccontextmanager
async def serving(plans, logs=None, port=0, talk=Talk):
    """The address of a server with these plans, by the instructions of a session."""
    logs = {} if logs is None else logs

    async def handle(socket):
        await talk(socket, plans, logs).run()

    async with serve(handle, "127.0.0.1", port, compression=None) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime"
