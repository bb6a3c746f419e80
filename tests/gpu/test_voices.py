"""Every family of models that read texts aloud, on a GPU that is not there: the CPU's sounds, and what a text costs."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_voices
from tiny_questions import clip

from codec_bench.models.base import ModelInfo
from codec_bench.models.in_process.transformers_model import TransformersModel
from codec_bench.types import Request

FRAMES = 3
COSTS = {
    "csm": (99, 6), "dia": (99, 12), "gradium_phonon_tts": (32, 6), "higgs_audio_v2": (79, 22), "pocket_tts": (61, 8),
    "vibevoice": (72, 33),
}  # fmt: skip
"""How often a text with that many frames makes the host wait, and sends something to the device: nearly all of it in
transformers.
"""


def question(name, k):
    """A text with a voice where the model takes one."""
    imitates = name != "gradium_phonon_tts"
    fields = {"text": "one two", **({"prompt_audio": clip(0.4, k), "prompt_text": "as said"} if imitates else {})}
    return Request(str(k), fields=fields, wants="audio", parameters={"max_tokens": FRAMES, "seed": k})


def model_in(folder, device):
    info = ModelInfo("tiny", outputs=("audio",), reads="fields")
    speaker = "ida" if folder.name == "gradium_phonon_tts" else None
    model = TransformersModel(info, weights=str(folder), device=device, dtype="float32", speaker=speaker)
    model.load()
    return model


@pytest.mark.parametrize("name", sorted(tiny_voices.WRITERS))
def test_a_voice_says_what_it_says_on_the_cpu(name, tmp_path, request):
    tiny_voices.WRITERS[name](tmp_path / name)
    asked = [question(name, k) for k in range(2)]
    expected = model_in(tmp_path / name, "cpu").answer(asked)
    there, within_limits = request.getfixturevalue("there"), request.getfixturevalue("within_limits")
    model = model_in(tmp_path / name, "cuda:0")
    there.forget()
    found = model.answer(asked)
    for one, other in zip(found, expected, strict=True):
        assert one.status == "ok", one.reason
        assert one.finish == other.finish
        assert one.audio.num_samples == other.audio.num_samples
        assert np.abs(one.audio.samples - other.audio.samples).max() <= 1e-4 * np.abs(other.audio.samples).max()
    waits, uploads = COSTS[name]
    within_limits(more_waits=2 * waits, more_uploads=2 * uploads, blocking=2 * uploads)
