"""Speech activity by energy, in windows of 10 ms.

A window is active if its RMS is above a threshold. Silences shorter than `BRIDGED_S` are bridged, then stretches
shorter than `SHORTEST_S` dropped. Ends are at most one window off.
"""

from __future__ import annotations

import numpy as np

WINDOW_S = 0.01
THRESHOLD_DBFS = -50.0
"""Of a model's track: streams without speech may hold low noise."""
BELOW_DB, LEAST_DBFS = 40.0, -60.0
"""Of a user's clean audio: relative to its loudest window, and at least this."""
BRIDGED_S, SHORTEST_S = 0.2, 0.05
PROTOCOL = f"energy-10ms/model{THRESHOLD_DBFS:g}dbfs/user-{BELOW_DB:g}db/bridge{BRIDGED_S:g}s/min{SHORTEST_S:g}s/1"

Stretch = tuple[float, float]


def levels_dbfs(samples: np.ndarray, rate_hz: int) -> np.ndarray:
    """Compute the RMS in dB of full scale `(windows,)`, zero-padded at the end."""
    size = round(WINDOW_S * rate_hz)
    signal = samples.astype(np.float64) / (32768.0 if samples.dtype == np.int16 else 1.0)
    if signal.size % size:
        signal = np.pad(signal, (0, -signal.size % size))
    windows = signal.reshape(-1, size)
    return 10 * np.log10(np.mean(windows**2, axis=1) + 1e-12)


def user_threshold_dbfs(levels: np.ndarray) -> float:
    """Return the threshold of a user's audio."""
    return max(LEAST_DBFS, float(levels.max(initial=-120.0)) - BELOW_DB)


def stretches(active: np.ndarray, *, bridged_s: float = BRIDGED_S) -> list[Stretch]:
    """Return the stretches of active windows `(windows,)`, in seconds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], active.astype(np.int8), [0]])))
    runs: list[list[int]] = []
    for begin, end in edges.reshape(-1, 2):
        if runs and begin - runs[-1][1] < round(bridged_s / WINDOW_S):
            runs[-1][1] = int(end)
        else:
            runs.append([int(begin), int(end)])
    least = round(SHORTEST_S / WINDOW_S)
    return [(round(a * WINDOW_S, 6), round(b * WINDOW_S, 6)) for a, b in runs if b - a >= least]


def speech_of_model(samples: np.ndarray, rate_hz: int) -> list[Stretch]:
    """Find speech in a model's track."""
    return stretches(levels_dbfs(samples, rate_hz) > THRESHOLD_DBFS)


def speech_of_user(samples: np.ndarray, rate_hz: int) -> list[Stretch]:
    """Find speech in a user's clean audio."""
    levels = levels_dbfs(samples, rate_hz)
    return stretches(levels > user_threshold_dbfs(levels))
