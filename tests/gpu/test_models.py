"""Every family of models that run in this process, on a GPU that is not there: the CPU's answers, and what a batch
costs.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import tiny_audio_models
import tiny_voices
import tiny_whisper
import tiny_windowed_models
from tiny_questions import clip, request

from codec_bench.models.base import ModelInfo
from codec_bench.models.in_process.families.chat import Voxtral
from codec_bench.models.in_process.transformers_model import TransformersModel
from codec_bench.types import Request

WRITERS = tiny_audio_models.WRITERS | tiny_windowed_models.WRITERS
SECONDS = (0.5, 0.4, 0.6)
TOKENS = 3
# What `generate` of transformers does itself: it looks at the tokens after every step, and uploads the special ones.
WAITS_A_TOKEN, MORE_UPLOADS = 8, 8


@pytest.fixture(params=sorted(WRITERS))
def case(request, tmp_path, monkeypatch):
    """A folder with a tiny model, what asks it, and the CPU's answers."""
    monkeypatch.setattr(
        Voxtral, "load_processor", lambda self: tiny_audio_models.voxtral_processor(self.loading.folder)
    )
    folder = tmp_path / request.param
    WRITERS[request.param](folder)
    requests = [question(k, seconds) for k, seconds in enumerate(SECONDS)]
    return folder, requests, model_in(folder, "cpu").answer(requests)


question = request


def model_in(folder, device, info=None, **more):
    info, about = info or ModelInfo("tiny"), {"device": device, "dtype": "float32", **more}
    return TransformersModel(info, weights=str(folder), parameters={"max_tokens": TOKENS}, **about)


def spoken(answers):
    return [(answer.status, answer.text, answer.finish, dict(answer.usage), answer.reason) for answer in answers]


def test_a_family_answers_as_on_the_cpu_and_more_items_do_not_make_it_wait_more(
    case, there, within_limits, monkeypatch
):
    folder, requested, expected = case
    model = model_in(folder, "cuda:0")
    model.load()
    model.answer(requested[:1])
    there.reset()
    batches, answer = [], model._family.answer
    monkeypatch.setattr(model._family, "answer", lambda rows, settings: batches.append(rows) or answer(rows, settings))
    result = model.answer(requested)
    assert spoken(result) == spoken(expected)
    assert {answer.status for answer in result} == {"ok"}
    # The encoder of Omni in transformers reads the length of every recording from the device.
    actual = 2 * len(requested) if "omni" in folder.name else 0
    for _ in batches[1:]:  # requests that must not share a batch, as Omni's of unequal lengths
        actual += 4 + WAITS_A_TOKEN * TOKENS
    more_uploads = len(batches) * MORE_UPLOADS + 6 * (len(batches) - 1)
    within_limits(more_waits=WAITS_A_TOKEN * TOKENS + actual, more_uploads=more_uploads, blocking=more_uploads)


def test_whisper_answers_as_on_the_cpu(tmp_path, request):
    tiny_whisper.write_transformers(tmp_path, seed=1, end=55.0)
    tokens = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
    ids = {token["content"]: token["id"] for token in tokens}
    file = tmp_path / "generation_config.json"
    special = {"no_timestamps_token_id": "<|notimestamps|>", "decoder_start_token_id": "<|startoftranscript|>"}
    special |= dict.fromkeys(("pad_token_id", "bos_token_id"), "<|endoftext|>")
    more = {"is_multilingual": True, "task_to_id": {"transcribe": ids["<|transcribe|>"]}}
    file.write_text(
        json.dumps(json.loads(file.read_text()) | more | {key: ids[token] for key, token in special.items()})
    )
    info = ModelInfo("tiny", inputs=("audio",), reads="fields", window_s=30.0)
    requests = [Request(str(k), fields={"audio": clip(0.4, k), "language": "en"}) for k in range(3)]
    expected = model_in(tmp_path, "cpu", info).answer(requests)
    there, within_limits = request.getfixturevalue("there"), request.getfixturevalue("within_limits")
    model = model_in(tmp_path, "cuda:0", info)
    model.load()
    there.reset()
    assert spoken(model.answer(requests)) == spoken(expected)
    within_limits(more_waits=WAITS_A_TOKEN * TOKENS, more_uploads=MORE_UPLOADS, blocking=MORE_UPLOADS)


@pytest.mark.parametrize("name", sorted(tiny_voices.WRITERS))
def test_a_voice_says_what_it_says_on_the_cpu(name, tmp_path, request):
    tiny_voices.WRITERS[name](tmp_path)
    imitates = name != "gradium_phonon_tts"
    requests = [
        Request(
            str(k),
            fields={
                "text": "one two",
                **({"prompt_audio": clip(0.4, k), "prompt_text": "as said"} if imitates else {}),
            },
            wants="audio",
            parameters={"max_tokens": TOKENS, "seed": k},
        )
        for k in range(2)
    ]
    info = ModelInfo("tiny", outputs=("audio",), reads="fields")
    speaker = {} if imitates else {"speaker": "ida"}
    expected = model_in(tmp_path, "cpu", info, **speaker).answer(requests)
    there = request.getfixturevalue("there")
    result = model_in(tmp_path, "cuda:0", info, **speaker).answer(requests)
    assert there.launches and not there.rough
    for one, other in zip(result, expected, strict=True):
        assert (one.status, one.finish) == ("ok", other.finish)
        np.testing.assert_allclose(
            one.audio.samples, other.audio.samples, rtol=0, atol=1e-4 * np.abs(other.audio.samples).max()
        )
