"""SIGMOS: opinion score and six dimensions of quality, by the published ONNX file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable, too_short
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.machine.environment import own_threads
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, WeightsError
from codec_bench.weights import find

KEYS = ("coloration", "discontinuity", "loudness", "noise", "reverb", "signal", "overall")
"""The outputs of the network, in order."""
RATE_HZ = 48_000
WINDOW, HOP = 960, 480
BINS = WINDOW // 2 + 1
COMPRESSION = 0.3
MAX_S = 120.0
"""The network reads the whole signal, and memory grows with it. Listeners rated clips of about 10 s."""


class Sigmos(Feature):
    """SIGMOS's seven scores of a signal, 1 to 5. Higher is better.

    A spectrogram at 48 kHz, 20 ms every 10 ms under the root of a Hann window; magnitudes to the power of 0.3, with the
    real and imaginary parts scaled alike. The rest is in the file. Every signal passes the network alone.

    Result: `{"coloration", "discontinuity", "loudness", "noise", "reverb", "signal", "overall": float}`.

    Paper: N. C. Ristea et al., "The ICASSP 2024 Speech Signal Improvement Challenge", 2024; B. Naderi, R. Cutler, N. C.
    Ristea, "Multi-dimensional Speech Quality Assessment in Crowdsourcing", ICASSP 2024. Reference implementation:
    github.com/microsoft/SIG-Challenge `ICASSP2024/sigmos/sigmos.py` at 48 kHz, to 1e-5.

    Args:
        device: unused; ONNX Runtime runs on the CPU. weights: the published file, or its folder, or None.

    Raises:
        WeightsError: the weights are missing. MissingExtra: onnxruntime is not installed.
    """

    name = "sigmos"
    protocol = "sigmos-1/48khz"
    rate_hz = RATE_HZ
    where = "cpu"
    batch_s = 60.0

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        super().__init__(device, weights)
        self._path = find("sigmos", weights).path
        self._session: Any = None

    def load(self) -> None:
        """Load the network."""
        if self._session is not None:
            return
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtra("sigmos", "onnxruntime", "embedded") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = own_threads(), 1
        try:
            session = onnxruntime.InferenceSession(os.fspath(self._path), options, ["CPUExecutionProvider"])
        except Exception as error:  # the runtime raises errors of its parser
            raise WeightsError("not_onnx", path=self._path, type=type(error).__name__, cause=error) from error
        inputs, outputs = session.get_inputs(), session.get_outputs()
        input_shape, output_shape = inputs[0].shape, outputs[0].shape
        if (
            len(inputs) != 1
            or len(input_shape) != 4
            or (input_shape[1], input_shape[3]) != (3, BINS)
            or output_shape[-1] != len(KEYS)
        ):
            raise WeightsError(
                "sigmos_shapes", path=self._path, input=input_shape, output=output_shape, bins=BINS, keys=len(KEYS)
            )
        self._session = session

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Score signals `(samples,)`, float32 at 48 kHz."""
        self.load()
        return [self._scored(signal) for signal in signals]

    def _scored(self, signal: np.ndarray) -> Result | Unavailable:
        """Run the ONNX network on one signal, or return why it has no score."""
        if (why := too_short(signal, "SIGMOS", WINDOW)) is not None:
            return why
        if signal.size > MAX_S * RATE_HZ:
            return Unavailable(Diagnostic("signal_long", seconds=signal.size / RATE_HZ, model="SIGMOS", most_s=MAX_S))
        if not np.isfinite(signal).all():
            return Unavailable(NOT_FINITE)
        if not signal.any():
            return Unavailable(Diagnostic("signal_silent"))
        try:
            scores = self._session.run(None, {self._session.get_inputs()[0].name: spectrogram(signal)})[0][0]
        except Exception as error:  # the runtime has its own kinds, and a network may need more frames than these
            return Unavailable(Diagnostic("sigmos_failed", seconds=signal.size / RATE_HZ, message=error))
        return {key: float(score) for key, score in zip(KEYS, scores)}


def spectrogram(signal: np.ndarray) -> np.ndarray:
    """Compute SIGMOS's input: compressed magnitudes, real and imaginary parts.

    Args:
        signal: `(samples,)` at 48 kHz.

    Returns:
        `(1, 3, frames, 481)`, float32. The first frame holds 10 ms of the signal, and the last one its last samples.
    """
    last = signal.size % HOP or HOP
    padded = np.pad(signal.astype(np.float64), (WINDOW - HOP, WINDOW - last))
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    spectra = np.fft.rfft(frames * _window()).astype(np.complex64)
    parts = np.stack([spectra.real, spectra.imag])
    powers = np.maximum((parts * parts).sum(axis=0), np.float32(1e-12))
    scaled = powers ** np.float32((COMPRESSION - 1) / 2) * parts
    return np.concatenate([powers[None] ** np.float32(COMPRESSION / 2), scaled])[None]


@cache
def _window() -> np.ndarray:
    """Return the root of a periodic Hann window, in float32 as published."""
    return np.sqrt(np.hanning(WINDOW + 1)[:-1]).astype(np.float32)
