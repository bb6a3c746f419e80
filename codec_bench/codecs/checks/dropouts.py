"""Lost audio: stretches that are loud in the input and silent in the output.

Windows of 5 ms count if their input is within 20 dB of the loudest. They are lost if the output is below -80 dB of full
scale and 40 dB below the input, or 40 dB below the usual output level if lower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WINDOW_S = 0.005
_LOUD_DB, _LEAST_DB = 20.0, -60.0
_DROP_DB, _LARGEST_LOSS_DB, _SILENT_DB = 40.0, 30.0, -80.0


@dataclass(frozen=True, slots=True)
class Dropouts:
    """Seconds of a clip that are silent in the estimate but not in the reference.

    Args:
        start_s: from the beginning of the clip.
        end_s: up to its end.
        inside_s: the sum of all between.
        at_s: start of the first one inside.
    """

    start_s: float = 0.0
    inside_s: float = 0.0
    end_s: float = 0.0
    at_s: float = 0.0


def find_dropouts(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> Dropouts:
    """Find where the estimate is silent but the reference is loud.

    Args:
        reference, estimate: `(channels, samples)`.

    Returns:
        The seconds lost at the start, inside and at the end. Of a silent estimate, all of it is lost at the end.
    """
    dropped, present = find_dropped_windows(reference, estimate, rate_hz)
    if not dropped.any():
        return Dropouts()
    if not present.any():
        return Dropouts(end_s=reference.shape[1] / rate_hz)
    places, first, last = np.flatnonzero(dropped), present.argmax(), len(present) - 1 - present[::-1].argmax()
    start, end = places[places < first], places[places > last]
    inside = places[(places > first) & (places < last)]
    return Dropouts(
        start_s=float(start[-1] + 1) * WINDOW_S if len(start) else 0.0,
        inside_s=len(inside) * WINDOW_S,
        end_s=reference.shape[1] / rate_hz - float(end[0]) * WINDOW_S if len(end) else 0.0,
        at_s=float(inside[0]) * WINDOW_S if len(inside) else 0.0,
    )


def find_dropped_windows(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the windows of `WINDOW_S` in which the estimate lost the reference's sound.

    Returns two bool arrays by window: loud in the reference and lost; not lost, with sound in the reference.
    """
    window = max(1, round(WINDOW_S * rate_hz))
    before, after = _levels_db(reference, window), _levels_db(estimate, window)
    loud = (before > before.max(initial=-np.inf) - _LOUD_DB) & (before > _LEAST_DB)
    usual = float(np.clip(np.median((after - before)[loud]), -_LARGEST_LOSS_DB, 0.0)) if loud.any() else 0.0
    below = after < np.minimum(before + usual - _DROP_DB, _SILENT_DB)
    return loud & below, ~below & (before > _LEAST_DB - _LOUD_DB)


def _levels_db(signal: np.ndarray, window: int) -> np.ndarray:
    """Compute the RMS level in dB of every window `(windows,)`; the last may be short."""
    starts = np.arange(0, signal.shape[1], window)
    power = np.square(signal, dtype=np.float64).mean(axis=0)
    counts = np.minimum(window, signal.shape[1] - starts)
    return 10 * np.log10(np.maximum(np.add.reduceat(power, starts) / counts, 1e-20)) if len(starts) else np.zeros(0)
