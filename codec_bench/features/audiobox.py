"""Audiobox Aesthetics: enjoyment, usefulness, complexity and quality of a sound."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.errors import WeightsError
from codec_bench.features.base import PreparedFeature, Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.networks.batch_shapes import in_rows
from codec_bench.networks.precision import computing
from codec_bench.weights import find, load_into, load_state, unfilled

if TYPE_CHECKING:
    from codec_bench.networks.audiobox import Head

RATE_HZ = 16_000
WINDOW_S = 10
WINDOW = WINDOW_S * RATE_HZ
WEIGHTS = "audiobox-aesthetics"
WINDOWS_AT_ONCE = {"cpu": 1, "cuda": 24}
FIXED = {"nth_layer": 13, "use_weighted_layer_sum": True, "output_dim": 1, "proj_act_fn": "gelu"}
"""Required values of a checkpoint's configuration."""


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """A prepared batch.

    Args:
        obstacles: why a signal has no result, or None. items: the signal of each window. samples: its own samples.
        passes: float32 `(windows, WINDOW)` each, on the device.
    """

    obstacles: list[Unavailable | None]
    items: list[int]
    samples: list[int]
    passes: list[Any]


class Audiobox(PreparedFeature):
    """The four scores of Audiobox Aesthetics, for speech, music and other sound, 1 to 10.

    Windows of 10 s without overlap, the last one zero-padded; a score is the mean over windows, weighted by their own
    lengths. Batches do not change it.

    Result: `{"ce", "cu", "pc", "pq": float, "windows": int}`.

    Paper: A. Tjandra et al., "Meta Audiobox Aesthetics", 2025, arXiv 2502.05139. Reference implementation:
    github.com/facebookresearch/audiobox-aesthetics at 16 kHz, to 5e-5.

    Args:
        weights: a folder with config.json and model.safetensors in place of the published one, or None.
        point: `float16`, `bfloat16` or `tf32` for the encoder, or None for float32.

    Raises:
        WeightsError: the weights are missing, or another network's. UserError: no such precision.
    """

    name = "audiobox"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 120.0

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights)
        self.protocol = self.protocol_id(point)
        self._precision = parse_precision("audiobox", point, BY_WEIGHTS)
        self._checkpoint = find(WEIGHTS, weights)
        self._net: Any = None

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"audiobox-aesthetics/10s{suffix(parse_precision('audiobox', point, BY_WEIGHTS))}"

    def load(self) -> None:
        """Load the network."""
        if self._net is None:
            from codec_bench.networks.audiobox import AudioboxNet
            from codec_bench.networks.half_precision import reduce_weights

            head, self._scales = settings(self._checkpoint.folder / "config.json")
            net = unfilled(lambda: AudioboxNet(self._architecture(), head))
            load_into(net, load_state(self._checkpoint.path), path=self._checkpoint.path)
            self._net = reduce_weights(net, self._precision).to(self.device)

    def _architecture(self) -> Any:
        from codec_bench.networks.speech_config import WAVLM_BASE

        return WAVLM_BASE

    def prepare(self, signals: Sequence[np.ndarray]) -> _Windows:
        """Cut all signals into windows on the device."""
        from codec_bench.networks.transfer import padded_rows

        obstacles = [None if signal.size else Unavailable(Diagnostic("no_samples_heard")) for signal in signals]
        cut = [
            (item, signal[start : start + WINDOW])
            for item, signal in enumerate(signals)
            for start in range(0, signal.size, WINDOW)
        ]
        together = WINDOWS_AT_ONCE["cpu" if self.device == "cpu" else "cuda"]
        passes = []
        for first in range(0, len(cut), together):
            some = cut[first : first + together]
            passes.append(padded_rows([segment for _, segment in some], WINDOW, self.device))
        return _Windows(obstacles, [item for item, _ in cut], [segment.size for _, segment in cut], passes)

    def compute_prepared(self, batch: _Windows) -> list[Result | Unavailable]:
        """Score signals `(samples,)`, float32 at 16 kHz."""
        from codec_bench.networks.transfer import fetched

        samples = iter(batch.samples)
        with computing(self.device, self._precision):
            rows = fetched([in_rows(self._net, [waves], [next(samples) for _ in waves]) for waves in batch.passes])
        scores = np.concatenate(rows) if rows else np.empty((0, len(self._scales)), np.float32)
        items, weights = np.asarray(batch.items, int), np.asarray(batch.samples, np.float64)
        return [
            batch.obstacles[item] or self._scored(scores[items == item], weights[items == item])
            for item in range(len(batch.obstacles))
        ]

    def _scored(self, windows: np.ndarray, weights: np.ndarray) -> Result | Unavailable:
        if not np.isfinite(windows).all():
            return Unavailable(NOT_FINITE)
        mean, deviation = np.asarray(list(self._scales.values())).T
        values = np.average(windows.astype(np.float64) * deviation + mean, axis=0, weights=weights)
        return {**dict(zip(self._scales, map(float, values))), "windows": len(windows)}


def settings(path: Path) -> tuple[Head, Mapping[str, tuple[float, float]]]:
    """Read a configuration's small networks and the training mean and deviation per axis.

    Raises:
        WeightsError: it cannot be read, lacks a value, or describes another kind of network.
    """
    from codec_bench.networks.audiobox import AXES, Head

    try:
        config = json.loads(path.read_text("utf-8"))
        wrong = [
            f"{key} {config.get(key)} (expected {value})" for key, value in FIXED.items() if config.get(key) != value
        ]
        targets = config["target_transform"]
        scales = {axis.lower(): (float(targets[axis]["mean"]), float(targets[axis]["std"])) for axis in AXES}
        head = Head(
            layers=int(config["proj_num_layer"]),
            norms=bool(config["proj_ln"]),
            drops=config["proj_dropout"] != 0,
            normalises=bool(config["normalize_embed"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WeightsError(f"'{path}' cannot be read: {type(error).__name__}: {error}") from error
    if wrong:
        raise WeightsError(f"'{path}' is another network's: {', '.join(wrong)}")
    return head, scales
