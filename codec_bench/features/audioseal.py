"""AudioSeal: whether a signal carries an inaudible watermark, and its message."""

from __future__ import annotations

from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.features.learned import Learned
from codec_bench.features.scorers import ScorerNetwork
from codec_bench.networks.batch_shapes import in_shape


class AudioSeal(Learned):
    """AudioSeal's share of watermarked samples, and the 16-bit message.

    The signal passes the detector whole. A sample is marked from a probability of 0.5, and a bit is the sigmoid of its
    mean over all samples, as in the package. Batches do not change the result.

    Result: `{"share": float, "bits": float32 (16,)}`; a bit is the probability that it is 1.

    Paper: R. San Roman et al., "Proactive Detection of Voice Cloning with Localized Watermarking", ICML 2024. Reference
    implementation: the package audioseal 0.2 `AudioSealDetector`, signal by signal, to 1e-5.

    Args:
        weights: a file in the published layout, or None.

    Raises:
        WeightsError: the weights are missing.
    """

    name = "audioseal"
    protocol = "audioseal/detector-16bits/1"
    rate_hz = 16_000
    batch_s = 240.0
    row = ScorerNetwork(
        "codec_bench.networks.audioseal:AudioSealNet", weights="audioseal-detector-16bits", key="model",
        protocol=protocol, title="AudioSeal", about="", outputs=("share", "bits"), windows="", least=1,
        batch_s=batch_s, most_s=300.0,
    )  # fmt: skip

    def _passed(self, one: Any) -> Any:
        return in_shape(self._net, [one.waves], one.lengths, steps_per_s=self.rate_hz)

    def _score_windows(self, windows: np.ndarray) -> Result | Unavailable:
        (row,) = windows
        if not np.isfinite(row).all():
            return Unavailable(NOT_FINITE)
        return {"share": float(row[0]), "bits": row[1:].astype(np.float32)}
