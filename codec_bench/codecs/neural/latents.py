"""Base class of continuous, causal neural codecs."""

from __future__ import annotations

from typing import Any

import numpy as np

from codec_bench.codecs.neural.base import NeuralCodec
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Latents


class CausalLatents(NeuralCodec):
    """A continuous codec without look-ahead: padding changes no own frame.

    An adapter's `_search` returns latents `(items, dimensions, frames)`, and `_waves` decodes them.
    """

    def vectors(self, values: np.ndarray) -> np.ndarray:
        """Refuse: there are no codes."""
        raise UserError("codec_without_codes", codec=self.info.name)

    def _to_codes(self, values: np.ndarray, audio: Audio) -> Latents:
        assert self.info.frame_rate_hz is not None, "a continuous codec has a frame rate"
        return Latents(np.ascontiguousarray(values), self.info.frame_rate_hz, audio.num_samples, audio.sample_rate_hz)

    def _values(self, item: Latents) -> np.ndarray:
        return np.asarray(item.values, np.float32)

    def _check(self, item: Any) -> None:
        shape, got = (self.info.latents, self._frames(item.num_samples)), np.shape(getattr(item, "values", ()))
        if got != shape:
            raise UserError(
                "latents_unexpected", codec=self.info.name, shape=got, samples=item.num_samples, expected=shape
            )

    def _input_samples(self, num_samples: int) -> int:
        return self._frames(num_samples) * self._hop

    def _read_quantiser(self, net: Any) -> Any:
        return None
