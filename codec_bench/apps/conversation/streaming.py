"""The base of streaming models in this process."""

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
        """Take a frame of the user, and return what the model says now.

        Args:
            frame: float32 `(samples,)` in [-1, 1] at the model's `rate_hz`; 20 ms.

        Returns:
            float32 `(samples,)` at the model's `output_rate_hz`, of any length; longer audio is queued.
        """
        ...


class StreamingModel(Model):
    """A model that takes audio frame by frame and may speak at any time, for `codec-bench converse`.

    Attributes
        rate_hz: of its input. output_rate_hz: of its output.
    """

    rate_hz: int = 24_000
    output_rate_hz: int = 24_000

    @abstractmethod
    def open(self, instructions: str) -> Stream:
        """Begin a conversation; `step` is called by one thread at a time."""

    async def ask(self, request: Request) -> Response:
        """Refuse the request: the model has no single responses."""
        return Response.refused(Diagnostic("converses_only", model=self.info.name))
