"""Real signals and damaged versions of them: for each clip one reference and several estimates, always the same."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from codec_bench.audio.resample import prepare
from codec_bench.metrics import Inputs
from codec_bench.types import Audio


@dataclass(frozen=True, eq=False)
class Pair:
    """A clip and one damaged version of it, mono float32 `(samples,)` each."""

    clip: str
    damage: str
    rate_hz: int
    reference: np.ndarray
    estimate: np.ndarray

    @property
    def inputs(self) -> Inputs:
        """The pair in the form that a metric takes."""
        return Inputs(f"{self.clip}/{self.damage}", self.rate_hz, self.estimate, self.reference)


def _noisy(signal: np.ndarray, rate_hz: int, rng: np.random.Generator, snr_db: float) -> np.ndarray:
    return signal + rng.standard_normal(signal.size) * np.sqrt(np.mean(signal**2.0)) * 10 ** (-snr_db / 20)


def _soft_clipped(signal: np.ndarray, rate_hz: int, rng: np.random.Generator) -> np.ndarray:
    peak = np.abs(signal).max()
    return np.tanh(6 * signal / peak) * peak / 3


def _low_passed(signal: np.ndarray, rate_hz: int, rng: np.random.Generator) -> np.ndarray:
    from scipy.signal import butter, sosfilt

    return sosfilt(butter(6, 1800, fs=rate_hz, output="sos"), signal)


def _coarse_spectrum(signal: np.ndarray, rate_hz: int, rng: np.random.Generator) -> np.ndarray:
    """Imitates a transform codec at a low rate: 20 ms blocks, spectral lines rounded to steps that follow the level."""
    from scipy.fft import dct, idct

    block = rate_hz // 50
    padded = np.concatenate([signal, np.zeros(-signal.size % block)]).reshape(-1, block)
    lines = dct(padded, axis=1, norm="ortho")
    step = 0.7 * np.sqrt((lines**2).mean(axis=1, keepdims=True)) + 1e-9
    return idct(np.round(lines / step) * step, axis=1, norm="ortho").reshape(-1)[: signal.size]


DAMAGE: dict[str, Callable[..., np.ndarray]] = {
    "noise 20 dB": lambda *options: _noisy(*options, snr_db=20.0),
    "noise 0 dB": lambda *options: _noisy(*options, snr_db=0.0),
    "soft clipping": _soft_clipped,
    "low-pass": _low_passed,
    "coarse spectrum": _coarse_spectrum,
}


def damaged(clip: str, signal: np.ndarray, rate_hz: int, damage: str) -> Pair:
    """A damaged version of one clip; the clip's name is the seed."""
    rng = np.random.default_rng(zlib.crc32(f"{clip}/{damage}".encode()))
    estimate = np.clip(DAMAGE[damage](signal.astype(np.float64), rate_hz, rng), -1, 1)
    return Pair(clip, damage, rate_hz, signal, estimate.astype(np.float32))


@pytest.fixture(scope="session")
def spoken_pairs(spoken):
    """A function of a rate (None for each clip's own): every clip of speech with two damages each, in turn.

    The recordings hold digits of a third of a second, too short for some metrics. Where a set has none so short, 0.2 s
    out of every second clip stand in for them.
    """
    clips = [(row["id"], audio) for row, audio in spoken]
    if min(audio.duration_s for _, audio in clips) > 0.5:
        clips += [
            (f"{name} cut", Audio(audio.samples[:, second : second + second // 5], second))
            for name, audio in clips[::2]
            for second in (audio.sample_rate_hz,)
        ]

    names = list(DAMAGE)

    @lru_cache(maxsize=2)  # of a rate they take 30 MB
    def at(rate_hz: int | None) -> tuple[Pair, ...]:
        pairs = []
        for index, (name, audio) in enumerate(clips):
            signal = prepare(audio, rate_hz)
            for damage in (names[index % len(names)], names[(index + 2) % len(names)]):
                pairs.append(damaged(name, signal, rate_hz or audio.sample_rate_hz, damage))
        return tuple(pairs)

    return at


@pytest.fixture(scope="session")
def oracles(embedded):
    """Pairs at 16 kHz with the numbers that other programs gave for them; `tests/golden/signal_oracles.json` says
    which.
    """
    saved = json.loads((Path(__file__).parents[1] / "golden" / "signal_oracles.json").read_text("utf-8"))
    clips = {sample.id: audio for sample, audio in embedded}
    out = []
    for numbers in saved["pairs"]:
        signal = prepare(clips[numbers["clip"]], 16_000)[: saved["samples"]]
        out.append((damaged(numbers["clip"], signal, 16_000, numbers["damage"]), numbers))
    return out
