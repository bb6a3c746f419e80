"""ViSQOL against visqol-python with numba, pair by pair, on one thread.

    python bench/bench_visqol.py [--clips 12] [--audio-clips 6] [--repeats 3]

Speech mode compares at 16 kHz, audio mode at 48 kHz, clips with the same and noise. The package maps speech by its
exponential fit, as the metric does. Recordings of less than a second are excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numba
import numpy as np
from common import Cases, Options, bench, clips, race, worst
from threadpoolctl import threadpool_limits

from codec_bench import Audio
from codec_bench.audio.resample import to_rate
from codec_bench.metrics import build_metric, visqol
from codec_bench.metrics.base import Inputs
from codec_bench.weights import lookup

SPREAD = 0.3  # the least range of scores whose agreement shows something
Pairs = Sequence[tuple[np.ndarray, np.ndarray]]


def pairs_of(signals: Sequence[np.ndarray], rate_hz: int) -> Pairs:
    """The signals at a rate, each with itself and more and more noise."""
    rng = np.random.default_rng(0)
    out = []
    for number, signal in enumerate(signals):
        at_rate = to_rate(Audio(signal[None], 16_000), rate_hz).samples[0]
        level = at_rate.std() * 10 ** -(1.5 - 1.2 * number / len(signals))
        out.append((at_rate, (at_rate + rng.normal(0, level, at_rate.size)).astype(np.float32)))
    return out


def package(mode: str | None) -> Callable[[Pairs], np.ndarray]:
    """The package's scores of pairs."""
    from visqol.audio_utils import AudioSignal
    from visqol.numba_accel import has_numba
    from visqol.visqol_manager import VisqolManager

    if not has_numba():
        raise SystemExit("visqol-python has no numba here, and would be compared in its slow form: pip install numba")
    manager = VisqolManager()
    regression = str(lookup(visqol.SVR).path) if mode else ""
    manager.init(regression, use_speech_mode=mode is None, use_lattice_model=False)
    rate_hz = visqol.Visqol.variants[mode].rate_hz

    def score(pair: tuple[np.ndarray, np.ndarray]) -> float:
        return float(manager.run_from_signals(*(AudioSignal(signal, rate_hz) for signal in pair)).moslqo)

    return lambda pairs: np.array([*map(score, pairs)])


def ours(metric: Any, pairs: Pairs) -> np.ndarray:
    """This project's scores of pairs."""
    results = metric.compute([Inputs("a", metric.rate_hz, reference=a, estimate=b) for a, b in pairs])
    return np.array([np.nan if score.value is None else score.value for score in results])


def compare(expected: np.ndarray, actual: np.ndarray) -> float:
    """Distance of the scores from the package's; stops if it is too large."""
    if not np.ptp(expected) >= SPREAD:
        raise SystemExit(f"the scores hardly differ, so their agreement shows nothing: {expected}")
    return worst([(expected, actual)], 1e-6, "ViSQOL")


@bench("visqol-python", "numba", "scipy", recordings=None, clips=12, audio_clips=6, repeats=3)
def main(options: Options) -> Cases:
    """Both modes; audio mode needs libsvm-official and the package's regression."""
    material, signals = clips(options.recordings)
    signals = [signal for signal in signals if len(signal) > 16_000]
    numba.set_num_threads(1)
    threadpool_limits(1)
    for mode, count in ((None, options.clips), (visqol.AUDIO, options.audio_clips)):
        pairs = pairs_of(signals[:count], visqol.Visqol.variants[mode].rate_hz)
        theirs, mine = package(mode), partial(ours, build_metric(f"visqol[{mode}]" if mode else "visqol"))
        agreement = {"codec-bench": f"within {compare(theirs(pairs), mine(pairs)):.1e}"}
        calls = {"visqol-python": partial(theirs, pairs), "codec-bench": partial(mine, pairs)}
        about = {"n": len(pairs), "note": f"{len(pairs)} pairs of {material}, one thread"}
        yield race(f"{mode or 'speech'} mode", calls, repeats=options.repeats, agreement=agreement, **about)
