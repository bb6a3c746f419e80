"""Audio that is longer than a model takes is not sent where the benchmark says so, and is counted."""

from __future__ import annotations

import asyncio
from contextlib import closing

import numpy as np
from refusals import refuses
from scripted_models import Recording

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.asking.question_loop import Asking, check_length
from codec_bench.benchmark.asking.sending import send_requests
from codec_bench.benchmark.definition.base import Question
from codec_bench.models.base import ModelInfo
from codec_bench.report.answers import answer_notes
from codec_bench.stats.answers import answers_of
from codec_bench.stats.summary_types import Answers
from codec_bench.store.answers import AnswerWriter, exchanges
from codec_bench.store.record import Run
from codec_bench.types import Audio, Message, Request


def request(seconds, id="q"):
    sound = Clip(Audio(np.zeros(int(8000 * seconds), np.float32), 8000))
    return Request(id, (Message("user", (sound, "What is this?")),))


def test_only_a_limit_without_windows_is_a_limit():
    complete = request(2.0)
    for facts in ({}, {"limit_s": 2.0}, {"limit_s": 1.0, "window_s": 1.0}):
        assert check_length(complete, ModelInfo("m", **facts)) is complete
    with refuses("sound_not_to_be_cut", s=2.0, model="m", limit_s=1.5):
        check_length(complete, ModelInfo("m", limit_s=1.5))
    broken = Request("q", (Message("user", (Clip(b"no sound"), "?")),))
    assert check_length(broken, ModelInfo("m", limit_s=1.5)) is broken, "the model tells it"


def test_what_is_too_long_is_refused_without_asking_and_counted(tmp_path):
    model, info = Recording(lambda request: "a tone"), ModelInfo("m", limit_s=1.0)
    questions = [Question(f"q{k}") for k in range(4)]
    with closing(AnswerWriter(tmp_path, {"asked": {}, "scored": {}})) as writer:
        render = lambda question: check_length(request(int(question.id[1:]), question.id), info)  # noqa: E731
        asking = Asking(model, model.start, render, writer, lambda n: False, send_requests, lambda *a: None)
        asyncio.run(asking.run(questions, {}))
    assert model.requests == ["q0", "q1"]
    with closing(Run(tmp_path)) as run:
        assert [e.answer.status for e in exchanges(run)] == ["ok", "ok", "refused", "refused"]
        answers = answers_of(run).as_dict()
    assert answers["too_long"] == {"n": 2, "share": 0.5} and answers["failed"] == {"refused": 2}
    assert answer_notes(Answers.from_dict(answers)) == [
        "2 questions (50 %) were not sent, because their audio is longer than the model takes"
    ]
