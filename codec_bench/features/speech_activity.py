"""Speech activity by the Silero network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable, refuse_weights
from codec_bench.machine.environment import package_version
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UserError

RATE_HZ = 16_000
VERSION = "6.2"
THRESHOLD, MIN_SPEECH_MS, MIN_SILENCE_MS, PAD_MS = 0.5, 250, 100, 30
PROTOCOL = f"speech-activity/silero-vad-{VERSION}/{THRESHOLD:g}/{MIN_SPEECH_MS}-{MIN_SILENCE_MS}-{PAD_MS}ms"


class SpeechActivity(Feature):
    """The stretches of speech of a signal, by Silero's network and its package's rule.

    A probability every 32 ms; speech begins at 0.5 and ends below 0.35; silences of less than 100 ms are bridged,
    stretches of less than 250 ms are dropped, and 30 ms are added on either side.

    Result: `{"starts", "ends": int64 (stretches,) in samples at 16 kHz, "samples": int}`.

    Reference implementation: silero-vad 6.2 `get_speech_timestamps` with its defaults. The package itself runs, in its
    form for whole signals: the same stretches as its form for streams, and probabilities to 1e-4.

    Args:
        device: unused; it runs on the CPU. weights: must be None.

    Raises:
        MissingExtra: silero-vad or onnxruntime is not installed. UserError: weights were passed, or another version is
            installed.
    """

    name = "speech-activity"
    licence = "MIT"
    protocol = PROTOCOL
    rate_hz = RATE_HZ
    where = "cpu"
    batch_s = 600.0

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        refuse_weights(self.name, weights)
        for package in ("silero-vad", "onnxruntime"):
            if package_version(package) is None:
                raise MissingExtra("speech_activity", package, "embedded")
        installed = str(package_version("silero-vad"))
        if not f"{installed}.".startswith(f"{VERSION}."):
            raise UserError(
                "package_version_unexpected",
                feature="speech_activity",
                package="silero-vad",
                version=VERSION,
                installed=installed,
                hint=f"pip install 'silero-vad=={VERSION}.*'",
            )
        super().__init__(device, weights)

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Find speech in signals `(samples,)`, float32 at 16 kHz."""
        return [self._activity(np.asarray(signal, np.float32)) for signal in signals]

    def _activity(self, signal: np.ndarray) -> Result | Unavailable:
        """Find the segments of speech of one signal, or return why it has no result."""
        if not signal.size:
            return Unavailable(Diagnostic("no_samples_heard"))
        if not np.isfinite(signal).all():
            return Unavailable(Diagnostic("signal_not_finite"))
        spans = np.array(stretches(signal, MIN_SPEECH_MS, MIN_SILENCE_MS), np.int64).reshape(-1, 2)
        return {"starts": spans[:, 0].copy(), "ends": spans[:, 1].copy(), "samples": int(signal.size)}


def stretches(signal: np.ndarray, min_speech_ms: int, min_silence_ms: int) -> list[tuple[int, int]]:
    """Find the segments of speech in a signal `(samples,)`: start and end samples.

    Args:
        min_speech_ms: shorter segments are dropped.
        min_silence_ms: shorter silences are bridged.
    """
    network, stretches_of = _silero()
    timestamps = stretches_of(
        network.audio_forward(signal, RATE_HZ),
        sampling_rate=RATE_HZ,
        threshold=THRESHOLD,
        min_speech_duration_ms=min_speech_ms,
        min_silence_duration_ms=min_silence_ms,
        speech_pad_ms=PAD_MS,
        audio_length_samples=signal.size,
    )
    return [(int(stretch["start"]), int(stretch["end"])) for stretch in timestamps]


@cache
def _silero() -> tuple[Any, Any]:
    """Load Silero's network, and the function that turns probabilities to segments.

    The number of torch's threads stays; importing the package would set it to one.
    """
    import torch

    threads = torch.get_num_threads()
    try:
        from silero_vad import load_silero_vad
        from silero_vad.utils_vad import get_speech_timestamps_from_probs
    finally:
        torch.set_num_threads(threads)
    return load_silero_vad(sequence=True), get_speech_timestamps_from_probs
