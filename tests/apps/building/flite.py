"""Flite as a model: a small English synthesiser, which gives the same bytes each time."""

import subprocess
import tempfile
from pathlib import Path

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response


class Flite(Model):
    """Speaks the field `text`."""

    concurrency = 2

    def __init__(self, voice="slt"):
        self.info, self.voice = ModelInfo("flite"), voice

    @property
    def identity(self):
        return {"flite": 1, "voice": self.voice}

    async def ask(self, request):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "said.wav"
            command = ["flite", "-voice", self.voice, "-t", request.fields["text"], "-o", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return Response.failed(done.stderr) if done.returncode else Response(audio=Audio.read(path))
