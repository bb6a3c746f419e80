"""Judges of which it is known what they are, behind a local endpoint that speaks as OpenAI's does."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import soundfile
from direct_http import DirectSession
from local_http import Connection, LocalServer

from codec_bench.apps.judging.api import judge_check
from codec_bench.apps.judging.injected import FACTS, RIGHT, _answers
from codec_bench.apps.judging.sounds import claims, make_sound

ANSWER = re.compile(r"<(answer|first|second) [0-9a-f]{12}>\n(.*?)\n</\1", re.DOTALL)
FAILS = ""
"""In place of a reply: the call fails."""
OPTION = re.compile(r"^([AB])\. (.+)$", re.MULTILINE)


def digest(samples: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(samples.astype("<i2")).tobytes()).hexdigest()


@cache
def truth():
    """About which sound each question is, and whether yes or A is right, by the hash of the sound and the text."""
    return {
        (digest(np.round(np.atleast_2d(sound.samples).T * 32768.0)), one.text): (one.unit, one.right)
        for _, sound, requests in claims(4, 1, 0)
        for one in requests
    }


@pytest.fixture(autouse=True, scope="session")
def cached_sounds():
    """A sound is the same each time that it is made, and is made once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codec_bench.apps.judging.sounds.make_sound", cache(make_sound))
        yield


@dataclass
class Put:
    """One question as it reached the judge: about which sound it is, whether yes or A is right, and which texts are
    marked.
    """

    text: str
    unit: str
    right: bool | None
    requests: int
    texts: tuple[str, ...] = ()
    position: int = 0

    @property
    def chosen(self) -> bool:
        return bool(OPTION.search(self.text))

    @property
    def first_longer(self) -> bool:
        (_, first), (_, second) = OPTION.findall(self.text)
        return len(first) > len(second)


class Judge:
    """A judge of texts and sounds:

    `decide(put)` says whether yes or A is its verdict, `mark(put, text)` how good a text is, from 0 to 1.
    """

    def __init__(self):
        self.truth = truth()
        self.good = {text.strip() for fact in FACTS for kind, text in _answers(fact, 5).items() if kind in RIGHT}
        self.requests, self.calls, self.model = Counter(), 0, "judge-1"
        self.decide = lambda put: put.right
        self.mark = lambda put, text: float(text in self.good)
        self.override = None

    def answer(self, body):
        """The reply to a request, as the service sends it."""
        text = self.reply(body)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 100, "completion_tokens": 2}
        return {"model": self.model, "choices": [] if text is FAILS else [choice], "usage": usage}

    def reply(self, body):
        self.calls += 1
        text, sound = "", None
        content = body["messages"][-1]["content"]
        for item in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if item["type"] == "text":
                text += item["text"]
            else:
                sound = item["input_audio"]["data"]
        self.requests[text, sound] += 1
        requests = self.requests[text, sound]
        if self.override is not None and (texts := self.override(requests)) is not None:
            return texts
        return self.output(text, sound, requests) if sound is not None else self.marked(text, requests)

    def output(self, text, sound, requests):
        samples, _ = soundfile.read(io.BytesIO(base64.b64decode(sound)), dtype="int16", always_2d=True)
        put = Put(text, *self.truth[digest(samples), text.strip()], requests)
        verdict = self.decide(put)
        return ("A" if verdict else "B") if put.chosen else ("Yes" if verdict else "No")

    def marked(self, text, requests):
        texts = tuple(result[1].strip() for result in ANSWER.finditer(text) for result in [result.groups()])
        puts = [Put(text, "", None, requests, texts, position) for position in range(len(texts))]
        marks = [round(1 + 4 * self.mark(put, one), 1) for put, one in zip(puts, texts)]
        if "one word: first, second, or tie" in text:
            return ("second", "tie", "first")[1 + (marks[0] > marks[1]) - (marks[0] < marks[1])]
        if len(marks) == 2:
            return f"{2 * marks[0]:g} {2 * marks[1]:g}"
        return f"Rating: {marks[0]:g}"


@pytest.fixture
def judge():
    """A judge that is always right, until a test makes it another; `judge.url` is its endpoint."""
    built = Judge()

    class Chat(Connection):
        def do_POST(self):
            self.send_json(200, built.answer(json.loads(self.body())))

        def do_GET(self):
            self.send_json(404, {})

    with closing(LocalServer(Chat)) as http:
        built.url = f"{http.url}/v1"
        yield built


@pytest.fixture
def check(tmp_path, monkeypatch, judge):
    """Tests the judge without a connection; the outcome."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("codec_bench.models.endpoints.client.open_session", lambda *_: DirectSession(judge.answer))

    def run(out="check", options=(), **settings):
        inputs = {"openai-chat": {"base_url": judge.url, "model": "m", "concurrency": 16, **dict(options)}}
        return judge_check("openai-chat", out=tmp_path / out, options=inputs, **settings)

    return run


@pytest.fixture
def two(monkeypatch):
    """Two kinds of sounds in place of all, for what does not depend on how many there are."""
    monkeypatch.setattr("codec_bench.apps.judging.api.KINDS", dict.fromkeys(("count of beeps", "order")))


@pytest.fixture
def small(monkeypatch):
    """Four kinds of sounds in place of all, so that a check is quick."""
    monkeypatch.setattr(
        "codec_bench.apps.judging.api.KINDS", dict.fromkeys(("silence", "count of beeps", "pitch", "order"))
    )
