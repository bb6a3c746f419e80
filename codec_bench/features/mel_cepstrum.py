"""The mel-cepstrum of a voice, frame by frame, from WORLD's spectral envelope."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable, refuse_weights
from codec_bench.features.pitch import RATE_HZ, WORLD_HOP_S, check_world, harvest, import_world, unusable
from codec_bench.messages import Diagnostic

ORDER, ALPHA = 39, 0.466
FFT_SAMPLES = 1024


class MelCepstrum(Feature):
    """VERSA's mel-cepstrum: 40 coefficients every 5 ms by CheapTrick.

    The signal in 16-bit units passes a high-pass of 255 taps at 70 Hz; CheapTrick with a transform of 1024 samples
    follows Harvest's pitch between 40 and 800 Hz; the envelope's cepstrum is warped by an all-pass of 0.466. VERSA uses
    this constant at every rate (at 16 kHz a mel scale would need 0.42).

    Result: `{"cepstra": float32 (frames, 40), "power_db": float32 (frames,), "hop_s": float}`. The power of a frame is
    relative to the mean of all frames.

    Papers: M. Morise, "CheapTrick, a spectral envelope estimator for high-quality speech synthesis", Speech
    Communication 67, 2015; K. Tokuda et al., "Mel-generalized cepstral analysis", ICSLP 1994. Reference implementation:
    pyworld 0.3.5 itself and pysptk 1.0 `sp2mc`, to 1e-6.

    Args:
        device: unused; it runs on the CPU. weights: must be None.

    Raises:
        UserError: weights were passed. MissingExtra: pyworld is not installed.
    """

    name = "mel_cepstrum"
    protocol = "mel_cepstrum/world-cheaptrick-1024/harvest-40-800hz/low-cut-70hz/order-39-alpha-0.466/5ms-16k"
    rate_hz = RATE_HZ
    where = "cpu"
    batch_s = 600.0

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        refuse_weights(self.name, weights)
        check_world(self.name)
        super().__init__(device, weights)

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Compute signals `(samples,)`, float32 at 16 kHz."""
        return [self._cepstra(signal) for signal in signals]

    def _cepstra(self, signal: np.ndarray) -> Result | Unavailable:
        """Estimate pitch and spectral envelope with WORLD, and convert it to mel-cepstra."""
        from codec_bench.kernels.cepstrum.ref import mel_cepstrum, relative_power_db

        broken = unusable(signal)
        if broken is not None:
            return broken
        if not signal.any():
            return Unavailable(Diagnostic("no_envelope"))
        filtered, f0, times = harvest(signal)
        envelope = import_world().cheaptrick(filtered, f0, times, RATE_HZ, fft_size=FFT_SAMPLES)
        cepstra = mel_cepstrum(envelope, ORDER, ALPHA)
        return {
            "cepstra": cepstra.astype(np.float32),
            "power_db": relative_power_db(envelope).astype(np.float32),
            "hop_s": WORLD_HOP_S,
        }
