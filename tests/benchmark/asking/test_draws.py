"""Draws of a question: in every wording or order, with sounds that are read, converted and encoded once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from codec_bench import types
from codec_bench.audio import clip as clips
from codec_bench.audio.clip import Clip, wav_bytes
from codec_bench.benchmark.asking.variants import Draws, arrange_options, with_seed
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.prompt import EACH, Prompt
from codec_bench.benchmark.definition.schema import Template
from codec_bench.models import audio_payloads as sounds
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import ModelInfo
from codec_bench.models.cache import ResponseCache
from codec_bench.models.windows import split_windows
from codec_bench.types import Audio, Request

WORDINGS = [f"Wording {n}." for n in range(20)]
PROMPT = Prompt(
    "p", Template.model_validate({"messages": [{"content": [{"audio": "audio"}, {"wordings": WORDINGS}]}]}), "messages",
    wording=EACH
)  # fmt: skip
INFO = ModelInfo("m", limit_s=0.1, window_s=0.1)


def questions(count=3):
    rng = np.random.default_rng(0)
    for n in range(count):
        data = wav_bytes(Audio(rng.uniform(-0.5, 0.5, (2, 4_000)).astype(np.float32), 16_000))
        clip = Clip(data, f"q{n}")
        yield Question(f"q{n}", {"audio": clip, "choices": ["a", "b", "c", "d"]}, ("a",), clip)


@pytest.fixture
def calls(monkeypatch):
    """How often sounds are decoded, converted and encoded."""
    held = {"decode_bytes": 0, "prepare": 0, "wav_bytes": 0}

    def counted(name, real, *options):
        held[name] += 1
        return real(*options)

    for module, name in ((types, "decode_bytes"), (clips, "prepare"), (sounds, "wav_bytes")):
        monkeypatch.setattr(module, name, partial(counted, name, getattr(module, name)))
    return held


@pytest.mark.parametrize("rotated", [False, True])
def test_each_sound_is_decoded_converted_and_encoded_once(calls, rotated, tmp_path):
    orders = partial(arrange_options, ordering="all-rotations", seed=0) if rotated else None
    drawn = list(Draws(list(questions()), 1 if rotated else 20, PROMPT.wording_of, orders, rotated=rotated))
    assert len(drawn) == (12 if rotated else 60)
    cache = ResponseCache(tmp_path / "cache.sqlite")

    def sent(question):
        request = PROMPT.render(question)
        key = cache.key_of({}, request)
        windowed = split_windows(request, INFO, 8_000)
        return key, [sounds.wav_base64(clip) for item in windowed.requests for clip in clips_of(item)]

    with ThreadPoolExecutor(4) as threads:
        result = list(threads.map(sent, drawn))
    cache.close()
    assert calls == {"decode_bytes": 3, "prepare": 3, "wav_bytes": 3 * len(result[0][1])} and len(result[0][1]) > 1
    assert len({key for key, _ in result}) == (12 if rotated else 60) or rotated
    each = {question.draw_of: sent(question)[1] for question in drawn}
    plain = {
        one.id: [
            sounds.wav_base64(c) for r in split_windows(PROMPT.render(one), INFO, 8_000).requests for c in clips_of(r)
        ]
        for one in questions()
    }
    assert each == plain, "the same sounds as without sharing"


def test_a_question_that_is_sent_once_is_passed_on_as_it_is():
    (one,) = questions(1)
    assert list(Draws([one], 1)) == [one]


def test_rotations_are_draws_also_of_a_question_without_options():
    plain = Question("q", {"audio": None}, ("a",))
    (only,) = Draws([plain], 1, arranged=partial(arrange_options, ordering="all-rotations", seed=0), rotated=True)
    assert (only.id, only.draw_of, only.draw) == ("q", "q", 0)


def test_a_spoken_answer_of_a_model_that_draws_has_a_seed_of_its_own():
    spoken = [Request(id, fields={"text": "one"}, wants="audio") for id in ("a", "b", "a")]
    seeds = [with_seed(one, 3, draws=True).parameters["seed"] for one in spoken]
    assert seeds[0] == seeds[2] != seeds[1]
    assert with_seed(spoken[0], 4, draws=True).parameters["seed"] != seeds[0]
    stated = Request("a", fields={"text": "one"}, wants="audio", parameters={"seed": 7})
    assert with_seed(stated, 3, draws=True).parameters == {"seed": 7}
    assert "seed" not in with_seed(spoken[0], 3).parameters
    assert "seed" not in with_seed(Request("a", wants="text"), 3, draws=True).parameters
