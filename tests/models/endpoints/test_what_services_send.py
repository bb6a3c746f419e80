"""Answers in every form in which services send them, broken ones included: each is one response, and never an
exception.
"""

import asyncio
import io
import struct

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench.models import load_model
from codec_bench.models.audio_payloads import audio_of
from codec_bench.types import Request

PCM = (np.arange(4800) % 100 * 100).astype("<i2")


def encoded(kind, subtype=None, rate=24_000):
    file = io.BytesIO()
    soundfile.write(file, PCM, rate, format=kind, subtype=subtype)
    return file.getvalue()


def streamed_wav(size):
    """A WAV file whose header was written before its length was known."""
    data = bytearray(encoded("WAV", "PCM_16"))
    at = data.index(b"data")
    data[4:8] = data[at + 4 : at + 8] = struct.pack("<I", size)
    return bytes(data)


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0x7FFFFFFF - 36, 0xFFFFFFFF])
def test_the_header_of_a_streamed_wav_says_nothing(size):
    sound = audio_of(streamed_wav(size), "wav", 8000)
    np.testing.assert_array_equal(sound.samples[0] * 32768, PCM)
    assert sound.sample_rate_hz == 24_000


def test_a_wav_that_was_cut_off_is_still_reported():

    with refuses("bytes_missing"):
        audio_of(encoded("WAV", "PCM_16")[:-100], "wav", 8000)


def answered(kit, name, request, body, kind="application/json", **options):
    async def handle(seen, writer):
        return kit.reply(body, kind=kind)

    async def main():
        async with kit.serving(handle) as service:
            model = load_model(name, {"base_url": service.url, "model": "m", "attempts": 1, **options})
            kit.unhurried(model)
            async with kit.started(model):
                return await model.ask(request)

    return asyncio.run(main())


SOUNDS = {
    "wav": encoded("WAV", "PCM_16"), "mp3": encoded("MP3"), "opus": encoded("OGG", "OPUS"), "flac": encoded("FLAC"),
    "another rate": encoded("WAV", "PCM_16", 16_000), "streamed": streamed_wav(0xFFFFFFFF), "pcm": PCM.tobytes(),
}  # fmt: skip


@pytest.mark.parametrize("message", ["audio/wav", "application/json", "text/plain"])
@pytest.mark.parametrize("form", SOUNDS)
def test_sound_in_any_format_and_under_any_type(kit, form, message):
    request = Request("q", fields={"text": "x"}, wants="audio")
    requested = {"audio_format": "pcm"} if form == "pcm" else {}
    response = answered(kit, "openai-speech", request, SOUNDS[form], message, **requested)
    assert response.status == "ok", response.reason
    assert response.audio.sample_rate_hz == (16_000 if form == "another rate" else 24_000)
    assert response.audio.num_samples == pytest.approx(4800, abs=1200)


def choice(index=0, finish="stop", **message):
    return {"index": index, "message": {"role": "assistant", **message}, "finish_reason": finish}


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ([choice(content="a"), choice(1, content="b")], ("ok", "a")),
        ([choice(1, content="b"), choice(0, content="a")], ("ok", "b")),
        ([choice(content=[{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "yes"}])], ("ok", "yes")),
        ([choice(content="yes", reasoning=[{"text": "hm"}])], ("ok", "yes")),
        ([choice(content=[{"type": "refusal", "refusal": "no"}])], ("refused", "no")),
        ([choice(content=None, refusal="no")], ("refused", "no")),
        ([choice(content=None, finish="tool_calls", tool_calls=[{"id": "1"}])], ("ok", "")),
        ("x", ("failed", None)),
        ([choice(content=5)], ("failed", None)),
        ([choice(content="x", audio="zz")], ("failed", None)),
        ([None], ("failed", None)),
    ],
)
def test_choices_of_any_shape(kit, choices, expected):
    response = answered(kit, "openai-chat", kit.question(), {"choices": choices})
    assert (response.status, response.text) == expected
    assert ("tools" in " ".join(response.notes)) == (response.finish == "tool_calls")


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"<html>", b'{"error":' * 3000, b"", b"5", b"[1]", b'"x"', b"null", b"\xff\xfe"]
)
@pytest.mark.parametrize("name", ["openai-chat", "gemini-3.8-flash", "openai-transcription", "json-endpoint"])
def test_bodies_of_any_shape_fail_their_question_alone(kit, name, body, monkeypatch):
    options = {"key_env": None} if name.startswith("gemini") else {}
    from codec_bench.audio.clip import Clip

    request = Request("q", fields={"audio": Clip(kit.tone(0.1))}) if name == "openai-transcription" else kit.question()
    response = answered(kit, name, request, body, **options)
    assert response.status == "failed" and len(response.reason) < 500
