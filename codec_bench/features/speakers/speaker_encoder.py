"""The base of speaker embeddings by this project's networks over padded waves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable, too_short
from codec_bench.features.encoder_feature import EncoderFeature
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.networks.kaldi import HOP
from codec_bench.weights import find, load_into, load_state, unfilled

CLASSIFIER = "projection."
"""Prefix of training tensors: the classifier over the training speakers."""


class SpeakerEncoder(EncoderFeature):
    """A speaker embedding of a whole signal.

    Args:
        weights: a file or folder in place of the published checkpoint, or None.
        point: `float16`, `bfloat16` or `tf32` in place of float32; each has its own protocol.

    Class attributes:
        min_samples: the fewest samples that the network takes.

    Raises:
        WeightsError: the checkpoint is missing. UserError: no such precision.
    """

    batch_s = 120.0
    title = "the encoder"
    min_samples: int

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights, parse_precision(self.name, point, BY_WEIGHTS))
        checkpoint = find(self.name, weights)
        self._path, self._folder = checkpoint.path, checkpoint.folder
        self.protocol = type(self).protocol + suffix(self._precision)

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        if (why := too_short(signal, self.title, self.min_samples)) is not None:
            return why
        return Unavailable(Diagnostic("signal_silent")) if np.ptp(signal) == 0 else None

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        if not np.isfinite(row).all():
            return Unavailable(Diagnostic("encoder_not_finite"))
        return {"embedding": row}


class FbankEncoder(SpeakerEncoder):
    """A speaker embedding over Kaldi's filter bank, from a checkpoint of bare tensors.

    Args:
        weights: a file in the published layout, or a folder with it, or None. point: as for `SpeakerEncoder`.
    """

    def _network(self) -> Any:
        """Build the network, and load the published tensors without the classifier."""
        net = unfilled(self._architecture)
        state = load_state(self._path)
        load_into(net, state, path=self._path, unused=[name for name in state if name.startswith(CLASSIFIER)])
        return net

    @abstractmethod
    def _architecture(self) -> Any: ...

    def _step(self) -> int:
        return HOP
