"""A model that gives the right answers of a file, and a judge that gives the best verdicts."""

from __future__ import annotations

import json
from pathlib import Path

from codec_bench.audio.clip import Clip
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response


def words(request):
    """What a request says in words."""
    return "\n".join(one for message in request.messages for one in message.content if isinstance(one, str))


class Perfect(Model):
    """Knows every answer, and says or writes it.

    Args:
        speaks: whether it reads the fields of a request.
        sound: the file that it says; without, a tone.
        answers: a JSON file of answers, by the id of a question and the words of its request.
    """

    concurrency = 8
    identity = property(lambda self: {"model": "perfect"})

    def __init__(self, info=None, speaks=False, sound=None, answers=None):
        self.info = ModelInfo("perfect", outputs=("text", "audio"), reads="fields" if speaks else "messages")
        self.sound, self.answers = sound, answers

    async def start(self):
        self.known = json.loads(Path(self.answers).read_text())

    async def ask(self, request):
        audio = Clip(self.sound).read() if self.sound and request.wants == "audio" else None
        if request.wants == "audio" and audio is None:
            audio = Audio([0.1, -0.1] * 800, 16000)
        answers = self.known[request.id.partition(" (round ")[0]]
        text = answers.get(words(request), next(iter(answers.values())))  # a round has other words than the whole
        return Response(text=text, audio=audio, usage={"output_tokens": 3})

    def log_likelihood(self, request):
        return -1.5 if request.id.endswith("/preferred") else -2.0


class Judge(Model):
    """Gives everything the best verdict there is, in the form that the rubric asks for."""

    concurrency = 8
    info = ModelInfo("judge")
    identity = property(lambda self: {"model": "judge"})

    async def ask(self, request):
        if not request.messages:  # as a model of embeddings
            likeness = [float(text == request.fields["text"]) for text in request.fields["texts"]]
            return Response(text=json.dumps({"similarities": likeness}))
        *sounds, prompt = request.messages[-1].content
        if "Yes or No" in prompt or "Yes if the criterion is met" in prompt:
            return Response(text="Yes")
        if "The recordings are its answers" in prompt:
            return Response(text=str(sum(isinstance(one, Clip) for one in sounds)))
        if "Reply with a JSON list alone" in prompt:
            return Response(text='[{"name": "Names the sound", "score": 1, "justification": "It does."}]')
        if "Decide whether the answer gives the same" in prompt or "Decide about the content alone" in prompt:
            return Response(text="It is the same. Rating: 1")
        if "two answers" in prompt or "second answer" in prompt or "that of the second" in prompt:
            return Response(text="10 10")
        return Response(text="Very good. [[10]]" if "[[5]]" in prompt else "5")
