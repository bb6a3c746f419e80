"""NISQA: quality of transmitted speech; naturalness of synthetic speech."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from codec_bench.features.base import NetworkFeature, Result, Unavailable, too_short
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.features.windowed import WindowedBatch, WindowLimits, windowed_batch
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.networks.batch_shapes import in_shape
from codec_bench.networks.precision import computing
from codec_bench.weights import find, load_into, load_state, unfilled

RATE_HZ = 48_000
HOP, REACH, SEGMENT = 480, 2048, 15
LEAST = HOP * (SEGMENT - 1)
"""The shortest signal in samples: a segment of 15 frames."""
LIMITS = WindowLimits(on_cpu=16 * RATE_HZ, on_gpu=600 * RATE_HZ)
"""They bound the memory of the convolutions: 12 MB per second, four times as much for NISQA-TTS."""
MOS_ONLY = "mos-only"
SCORES = ("mos", "noisiness", "discontinuity", "coloration", "loudness")
"""In the order of the network's outputs."""


class _Nisqa(NetworkFeature):
    """The base of both networks."""

    rate_hz = RATE_HZ
    batch_s = 240.0
    most_frames: ClassVar[int]
    """The longest window of the published program."""

    def __init__(self, device: str, weights: str | None, checkpoint: str) -> None:
        super().__init__(device, weights)
        self._path = find(checkpoint, weights).path

    def _architecture(self) -> Any:
        raise NotImplementedError

    def _network(self) -> Any:
        net = unfilled(self._architecture)
        load_into(net, load_state(self._path, key="model_state_dict"), path=self._path)
        return net

    def prepare(self, signals: Sequence[np.ndarray]) -> WindowedBatch:
        """Cut the signals into mirrored windows on the device."""
        return windowed_batch(signals, _obstacle, self._mirrored, self.device, LIMITS)

    def _mirrored(self, signal: np.ndarray) -> list[np.ndarray]:
        return [np.pad(window, REACH, mode="reflect") for window in cut_up(signal, self.most_frames)]

    def compute_prepared(self, batch: WindowedBatch) -> list[Result | Unavailable]:
        """Score signals `(samples,)`, float32 at 48 kHz."""
        from codec_bench.networks.transfer import fetched

        with computing(self.device, "float32"):
            rows = fetched(
                [in_shape(self._pass, [one.waves], one.lengths, steps_per_s=self.rate_hz) for one in batch.passes]
            )
        return batch.results(rows, _scored)

    def _pass(self, waves: Any, samples: Sequence[int]) -> Any:
        from codec_bench.networks.ragged import each, uploaded

        return self._net(waves, each(uploaded(samples, self.device), _frames))


class Nisqa(_Nisqa):
    """NISQA 2.0's opinion score and four dimensions. Higher is better.

    The mel levels at 48 kHz, 48 bands up to 20 kHz every 10 ms, are cut into segments of 15 frames, four frames apart.
    Six convolutions process each segment, two layers of self-attention all of them, and attention pooling gives each
    score. The published program refuses signals of more than 1300 segments (52 s); here they are cut into the fewest
    equal windows of that size, and the scores are means over them.

    Result: `{"mos": float, "noisiness": float, "discontinuity": float, "coloration": float, "loudness": float,
    "windows": int}`; of the variant `mos-only`, the first and the last alone.

    Paper: G. Mittag et al., "NISQA: A Deep CNN-Self-Attention Model for Multidimensional Speech Quality Prediction with
    Crowdsourced Datasets", Interspeech 2021. Reference implementation: github.com/gabrielmittag/NISQA at fe84f0f with
    librosa 0.11, on signals at 48 kHz, to 1e-4.

    Args:
        weights: a file in the published layout, or None.
        variant: None, or `mos-only` for the network trained for the opinion score alone.

    Raises:
        WeightsError: the weights are missing. UserError: no such variant.
    """

    name = "nisqa"
    most_frames = 1299 * 4 + SEGMENT

    def __init__(self, device: str = "cpu", weights: str | None = None, variant: str | None = None) -> None:
        self.protocol = self.protocol_id(variant)
        self._variant = variant
        super().__init__(device, weights, f"nisqa-{variant}" if variant else "nisqa")

    @classmethod
    def protocol_id(cls, variant: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        if variant not in (None, MOS_ONLY):
            raise UserError("no_variant", variant=variant, name="NISQA", hint=f"use nisqa or nisqa_mos[{MOS_ONLY}]")
        return f"nisqa-2.0/{variant}/48khz" if variant else "nisqa-2.0/48khz"

    def _architecture(self) -> Any:
        from codec_bench.networks.nisqa import NisqaNet

        return NisqaNet(1 if self._variant else len(SCORES))


class NisqaTts(_Nisqa):
    """The naturalness of synthetic speech by NISQA-TTS, 1 to 5. Higher is better.

    The mel levels at 48 kHz, 48 bands up to 8 kHz every 10 ms, are cut into segments of 15 frames, one frame apart. Six
    convolutions process each segment, a bidirectional LSTM all of them; its last states give the score. The published
    program refuses signals of more than 6000 segments (60 s); here they are cut into the fewest equal windows of that
    size, and the score is the mean over them.

    Result: `{"mos": float, "windows": int}`.

    Paper: G. Mittag, S. Moeller, "Deep Learning Based Assessment of Synthetic Speech Naturalness", Interspeech 2020.
    Reference implementation: github.com/gabrielmittag/NISQA at fe84f0f with librosa 0.11, on signals at 48 kHz, to
    1e-4.

    Args:
        weights: a file in the published layout, or None.

    Raises:
        WeightsError: the weights are missing.
    """

    name = "nisqa-tts"
    protocol = "nisqa-tts-1.0/48khz"
    batch_s = 60.0
    most_frames = 5999 + SEGMENT

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        super().__init__(device, weights, "nisqa-tts")

    def _architecture(self) -> Any:
        from codec_bench.networks.nisqa import NisqaTtsNet

        return NisqaTtsNet()


def cut_up(signal: np.ndarray, most_frames: int) -> list[np.ndarray]:
    """Cut a signal `(samples,)` into the fewest equal parts of at most `most_frames`."""
    parts = -(-signal.size // (most_frames * HOP - 1))  # a part of most_frames hops has one frame more
    return np.array_split(signal, parts)


def _obstacle(signal: np.ndarray) -> Unavailable | None:
    if (why := too_short(signal, "NISQA", LEAST)) is not None:
        return why
    return None if signal.any() else Unavailable(Diagnostic("signal_silent"))


def _frames(padded_samples: Any) -> Any:
    return (padded_samples - 2 * REACH) // HOP + 1


def _scored(windows: np.ndarray) -> Result | Unavailable:
    means = windows.mean(axis=0)
    if not np.isfinite(means).all():
        return Unavailable(NOT_FINITE)
    return {**{name: float(mean) for name, mean in zip(SCORES, means)}, "windows": len(windows)}
