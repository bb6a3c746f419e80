"""A model that answers a question with its last words, and can be told to be killed on the way."""

import asyncio
import os
import signal

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Echo(Model):
    """Repeats what stands behind the last bar of the question."""

    info = ModelInfo("echo", outputs=("text",))
    identity = {"echo": 1}
    asked = 0

    async def ask(self, request):
        """The text behind the last bar."""
        self.asked += 1
        await asyncio.sleep(float(os.environ.get("ECHO_WAIT_S", "0")))
        if self.asked > int(os.environ.get("ECHO_ANSWERS", "1000")):
            os.kill(os.getpid(), signal.SIGKILL)
        return Response(text=request.messages[-1].content[-1].rpartition("|")[2].strip())
