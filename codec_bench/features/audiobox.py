"""Audiobox Aesthetics: enjoyment, usefulness, complexity and quality of a sound."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.features.base import NetworkFeature, Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, reduce_cached
from codec_bench.features.padded import PaddedPass
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.features.windowed import WindowedBatch, cut_windows
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError, describe
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


class Audiobox(NetworkFeature):
    """The four scores of Audiobox Aesthetics, for any sound, 1 to 10.

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
    batch_s = 120.0

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights)
        self.protocol = self.protocol_id(point)
        self._precision = parse_precision("audiobox", point, BY_WEIGHTS)
        self._checkpoint = find(WEIGHTS, weights)

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"audiobox-aesthetics/10s{suffix(parse_precision('audiobox', point, BY_WEIGHTS))}"

    def _network(self) -> Any:
        """Build the network of the checkpoint's configuration and load its weights."""
        from codec_bench.networks.audiobox import AudioboxNet

        head, self._scales = settings(self._checkpoint.folder / "config.json")
        net = unfilled(lambda: AudioboxNet(self._architecture(), head))
        load_into(net, load_state(self._checkpoint.path), path=self._checkpoint.path)
        return reduce_cached(net, self._precision, self._checkpoint.path)

    def _architecture(self) -> Any:
        from codec_bench.networks.speech_config import WAVLM_BASE

        return WAVLM_BASE

    def prepare(self, signals: Sequence[np.ndarray]) -> WindowedBatch:
        """Cut all signals into windows, and upload them in passes of the network."""
        from codec_bench.networks.transfer import padded_rows

        obstacles, owners, windows = cut_windows(signals, _obstacle, _windows)
        together = WINDOWS_AT_ONCE["cpu" if self.device == "cpu" else "cuda"]
        passes = []
        for first in range(0, len(windows), together):
            some = windows[first : first + together]
            places = list(range(first, first + len(some)))
            passes.append(PaddedPass(places, padded_rows(some, WINDOW, self.device), [one.size for one in some]))
        return WindowedBatch(passes, owners, obstacles, len(signals))

    def compute_prepared(self, batch: WindowedBatch) -> list[Result | Unavailable]:
        """Score signals `(samples,)`, float32 at 16 kHz."""
        from codec_bench.networks.transfer import fetched

        with computing(self.device, self._precision):
            scores = fetched([in_rows(self._net, [one.waves], one.lengths) for one in batch.passes])
        rows = [np.column_stack([numbers, one.lengths]) for numbers, one in zip(scores, batch.passes, strict=True)]
        return batch.results(rows, self._scored)

    def _scored(self, rows: np.ndarray) -> Result | Unavailable:
        """Average one signal's scores over its windows, weighted by their lengths.

        Args:
            rows: a row per window: normalised scores, then the window's length.
        """
        windows, lengths = rows[:, :-1], rows[:, -1]
        if not np.isfinite(windows).all():
            return Unavailable(NOT_FINITE)
        mean, deviation = np.asarray(list(self._scales.values())).T
        values = np.average(windows * deviation + mean, axis=0, weights=lengths)
        return {**dict(zip(self._scales, map(float, values))), "windows": len(windows)}


def _obstacle(signal: np.ndarray) -> Unavailable | None:
    return None if signal.size else Unavailable(Diagnostic("no_samples_heard"))


def _windows(signal: np.ndarray) -> list[np.ndarray]:
    return [signal[start : start + WINDOW] for start in range(0, signal.size, WINDOW)]


def settings(path: Path) -> tuple[Head, Mapping[str, tuple[float, float]]]:
    """Read the sizes of the score networks, and mean and deviation of each score.

    Args:
        path: the checkpoint's `config.json`.

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
        raise WeightsError("file_not_readable", path=path, cause=describe(error)) from error
    if wrong:
        raise WeightsError("weights_of_another_model", folder=path, difference=", ".join(wrong))
    return head, scales
