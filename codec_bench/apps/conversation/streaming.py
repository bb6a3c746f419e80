"""The base of models that hear and speak at the same time, in this process."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.models.base import Model
from codec_bench.types import Request, Response


class Stream(Protocol):
    """One conversation with a model."""

    def step(self, frame: np.ndarray) -> np.ndarray:
        """Takes what the user said in a frame, and gives what the model says now.

        Args:
            frame: float32 `(samples,)` in [-1, 1] at the model's `rate_hz`; 20 ms.

        Returns:
            float32 `(samples,)` at the model's `output_rate_hz`: any number of samples, none for nothing. What is longer than
            a frame is played after what is still being played.
        """
        ...


class StreamingModel(Model):
    """A model that takes sound frame by frame and may speak at any time. `codec-bench converse` talks with it.

    Attributes
        rate_hz: of the sound that it takes. output_rate_hz: of the sound that it gives.
    """

    rate_hz: int = 24_000
    output_rate_hz: int = 24_000

    @abstractmethod
    def open(self, instructions: str) -> Stream:
        """Begins a conversation; several may be open at once. Each one's `step` is called in one thread at a time.

        Args:
            instructions: what the model is told beforehand; it may leave them unread.
        """

    async def ask(self, request: Request) -> Response:
        """Refuses the request: the model has no single answers."""
        return Response.refused(Diagnostic("converses_only", model=self.info.name))
