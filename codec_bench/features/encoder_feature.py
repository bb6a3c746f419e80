"""The base of features that are a speech encoder with a head over whole signals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from codec_bench.features.base import NetworkFeature, Result, Unavailable, too_short
from codec_bench.features.padded import PaddedBatch, padded_batch
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.networks.batch_shapes import in_shape
from codec_bench.networks.precision import Precision, computing
from codec_bench.weights import convert_cached, find

RATE_HZ = 16_000
NOT_FINITE = Diagnostic("not_finite")


class EncoderFeature(NetworkFeature):
    """A speech encoder with a head that masks padding, exact in batches.

    Args:
        weights: a file or folder in place of the published checkpoint, or None.
        precision: that of the encoder.

    Class attributes:
        title: the name in messages.
    """

    rate_hz = RATE_HZ
    batch_s: ClassVar[float] = 240.0
    title: ClassVar[str]
    _path: Path

    def __init__(self, device: str, weights: str | None, precision: Precision) -> None:
        super().__init__(device, weights)
        self._precision = precision

    @abstractmethod
    def _network(self) -> Any:
        """Build the network on the CPU: a function of padded waves and lengths."""

    def _architecture(self) -> Any:
        from codec_bench.networks.speech_config import WAV2VEC2_BASE

        return WAV2VEC2_BASE

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        """Return why a signal has no result, or None."""
        return too_short(signal, self.title, self._architecture().receptive_field)

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        """Build a signal's result from its row of the output and its length in samples."""
        return {"embedding": row} if np.isfinite(row).all() else Unavailable(NOT_FINITE)

    def load(self) -> None:
        """Load the network."""
        if self._net is None:
            self._net = reduce_cached(self._network(), self._precision, self._path).to(self.device)

    def prepare(self, signals: Sequence[np.ndarray]) -> PaddedBatch:
        """Build the padded passes."""
        return padded_batch(signals, self._obstacle, self.device)

    def compute_prepared(self, batch: PaddedBatch) -> list[Result | Unavailable]:
        """Compute one result per signal `(samples,)`, float32 at 16 kHz."""
        from codec_bench.networks.transfer import fetched

        with computing(self.device, self._precision):
            outputs = fetched(
                [
                    in_shape(self._pass, [one.waves], one.lengths, steps_per_s=self.rate_hz, unit=self._step())
                    for one in batch.passes
                ]
            )
        return batch.results(outputs, self._result)

    def _pass(self, waves: Any, lengths: Sequence[int]) -> Any:
        """Run the network on a padded batch."""
        return self._net(waves, lengths)

    def _step(self) -> int:
        """Return the number of samples that divides a padded batch's length."""
        from codec_bench.networks.speech_encoder import SpeechEncoder

        return next(module.step for module in self._net.modules() if isinstance(module, SpeechEncoder))


def reduce_cached(net: Any, precision: Precision, source: Path | None) -> Any:
    """Return a network with half-precision weights if requested; else as it is.

    Converted weights are cached on disk by the content of the file `source`; None caches nothing.
    """
    from codec_bench.networks.half_precision import HALF, reduce_weights

    if source is not None and precision in HALF:

        def reduce() -> dict[str, Any]:
            state = reduce_weights(net, precision).state_dict()
            return {name: value for name, value in state.items() if value.dtype == HALF[precision]}

        shapes = [(name, *value.shape) for name, value in net.state_dict().items()]
        cached = convert_cached(reduce, source, type(net).__qualname__, precision, shapes)
        net.load_state_dict(cached, strict=False, assign=True)
    return reduce_weights(net, precision)


class Wav2Vec2Feature(EncoderFeature):
    """A feature of one published network over wav2vec 2.0 base.

    Class attributes:
        checkpoint: the entry of the catalogue.
        stem: the protocol id in float32.
    """

    checkpoint: ClassVar[str]
    stem: ClassVar[str]

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights, parse_precision(type(self).name, point, BY_WEIGHTS))
        self.protocol = self.protocol_id(point)
        self._path = find(self.checkpoint, weights).path

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return cls.stem + suffix(parse_precision(cls.name, point, BY_WEIGHTS))
