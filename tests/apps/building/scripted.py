"""A synthesiser and a recogniser without a network: the text is found by the audio's hash.

Some texts make the synthesiser fail.
"""

import asyncio
import json
import zlib
from pathlib import Path

import numpy as np

from codec_bench.audio.clip import clip_digest
from codec_bench.audio.hash import content_hash
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response

RATE_HZ = 16_000


class Speaker(Model):
    """Noise that depends on text and voice; `log` gets a line for each text: what is heard in it, by the hash of the
    16-bit sound.
    """

    concurrency = 4

    def __init__(self, log, voice="plain", wait_s=0, rate_hz=RATE_HZ):
        self.info, self.log, self.voice, self.wait_s, self.rate_hz = (
            ModelInfo("speaker"),
            Path(log),
            voice,
            wait_s,
            rate_hz,
        )

    @property
    def identity(self):
        return {"speaker": 1, "voice": self.voice, "log": str(self.log), "rate_hz": self.rate_hz}

    async def ask(self, request):
        text = request.fields["text"]
        await asyncio.sleep(self.wait_s)
        if "broken line" in text:
            return Response.failed("the line is down")
        imitated = clip_digest(request.fields["prompt_audio"]) if "prompt_audio" in request.fields else ""
        seconds = 0.1 if "hurried" in text else 1.0
        random = np.random.default_rng(zlib.crc32(f"{self.voice}:{imitated}:{text}".encode()))
        samples = random.normal(0, 0.05, round(seconds * self.rate_hz)).astype(np.float32)
        if "silent" in text:
            samples[:] = 0
        if "broken number" in text:
            samples[5] = np.nan
        if "paused" in text:
            samples = np.concatenate([samples, np.zeros(3 * RATE_HZ, np.float32), samples])
        if "shouted" in text:
            samples = np.clip(samples * 100, -1, 1)
        output = text
        if "skipped" in text:
            output = text.replace("skipped", "")
        if "repeated" in text:
            output = f"{text} {text}"
        if "fading" in text:
            samples[RATE_HZ // 2 :] = 0
            output = text[: len(text) // 2]
        if "mumbled" in text and self.voice == "plain":
            output = "something else"
        line = {"said": text, "heard": output, "key": key_of(samples)}
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return Response(audio=Audio(np.stack([samples] * 4) if "surrounding" in text else samples, self.rate_hz))


class Listener(Model):
    """Hears what the log says was said, with other case and without points; `deaf` to one word, which it takes for
    another one. A sound that is not in the log is nothing.
    """

    concurrency = 4

    def __init__(self, log, deaf=""):
        self.info, self.log, self.deaf = ModelInfo(f"listener{deaf and '-deaf'}"), Path(log), deaf

    @property
    def identity(self):
        return {"listener": 1, "log": str(self.log), "deaf": self.deaf}

    async def ask(self, request):
        key = key_of(request.fields["audio"].read().samples[0])
        lines = map(json.loads, self.log.read_text().splitlines())
        output = {line["key"]: line["heard"] for line in lines}.get(key, "")
        if "unheard" in output:
            return Response.failed("the ears are closed")
        if self.deaf:
            output = output.replace(self.deaf, "nothing")
        return Response(text=output.upper().replace(".", ""))


def key_of(samples):
    """What stays the same when a sound is scaled: the order of its first samples, which are hardly ever equal."""
    return content_hash(np.argsort(samples[:200]).astype(np.float32), RATE_HZ)


class Breaking(Speaker):
    """Raises at the first request, and leaves a file when it is closed."""

    async def ask(self, request):
        raise RuntimeError("it is broken")

    async def close(self):
        self.log.with_name(f"closed {self.voice}").touch()
