"""Times PESQ by our kernel against the package `pesq` on one thread, wide-band and narrow-band, and compares both over
many damaged pairs.

    python bench/bench_pesq.py [--recordings DIR] [--pairs 10000]

A pair is one to five recordings with pauses, 0.3 to 60 s of them, and the same after one or two kinds of damage: a
codec, noise, clipping, lost frames, a delay, a jump of the delay, a filter, another level, or a stretch of silence.
Pair number n is the same in every run; `--pairs 0` leaves them out. Narrow-band scores are those of the same pairs at 8
kHz. The floor of the times is the Fourier transforms of the frames by NumPy, both signals, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
from common import Cases, Options, bench, clips, cores, race, worst
from scipy.signal import butter, sosfilt
from threadpoolctl import threadpool_limits

from codec_bench.audio.resample import prepare
from codec_bench.codecs import load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.metrics import Inputs, build_metric
from codec_bench.types import Audio

RATE_HZ = 16_000
BANDS = {"": ("pesq_wb", RATE_HZ), "narrow, ": ("pesq_nb", 8_000)}
"""How the cases of a band begin, and its metric and rate."""
CODECS = (
    "opus-6k", "opus-12k", "opus-24k", "mp3-16k", "mp3-32k", "mp3-64k", "mp2-64k", "aac-24k", "aac-32k", "ac3-64k", "g722", "g711-ulaw",
    "g711-alaw", "g726-16k", "g726-32k", "msbc", "adpcm-ima-16khz",
)  # fmt: skip
FAR = 5e-3
"""A difference that would be seen in a table."""
Signal = np.ndarray
KINDS = ("coded", "noisy", "clipped", "lossy", "late", "jumping", "filtered", "louder", "partly silent")


_codec = cache(load_codec)


def damaged(kind: str, signal: Signal, rng: np.random.Generator) -> Signal:
    """The signal after one kind of damage."""
    size = signal.size
    match kind:
        case "coded":
            audio = Audio(signal[None].astype(np.float32), RATE_HZ)
            codec = _codec(str(rng.choice(CODECS)))
            return prepare(reconstruct(codec, [audio]).items[0].estimate, RATE_HZ)[:size]
        case "noisy":  # white noise at 0 to 50 dB
            power = float(np.mean(signal**2)) * 10 ** (-rng.uniform(0, 5))
            return signal + np.sqrt(power) * rng.standard_normal(size)
        case "clipped":  # at a part of its peak
            limit = float(np.abs(signal).max()) * rng.uniform(0.05, 0.8)
            return np.clip(signal, -limit, limit)
        case "lossy":  # frames of 20 ms are silent, 1 to 30 % of them
            kept = rng.random(size // 320 + 1) >= rng.uniform(0.01, 0.3)
            return signal * np.repeat(kept, 320)[:size]
        case "late":  # up to 0.4 s
            return np.concatenate([np.zeros(rng.integers(1, 6400)), signal])[:size]
        case "jumping":  # from some place on, up to 0.1 s late
            at = rng.integers(0, size)
            return np.concatenate([signal[:at], np.zeros(rng.integers(1, 1600)), signal[at:]])[:size]
        case "filtered":  # without what is above 1 to 7 kHz, or below 100 to 800 Hz
            low = rng.random() < 0.5
            edge_hz = rng.uniform(1000, 7000) if low else rng.uniform(100, 800)
            return np.asarray(sosfilt(butter(4, edge_hz, "low" if low else "high", fs=RATE_HZ, output="sos"), signal))
        case "louder":  # 30 dB softer to 6 dB louder
            return signal * 10 ** rng.uniform(-1.5, 0.3)
    # Up to half of it is silent in one stretch.
    start, length = rng.integers(0, size), rng.integers(1, size // 2 + 1)
    return np.where((np.arange(size) >= start) & (np.arange(size) < start + length), 0.0, signal)


def pair(number: int, references: list[Signal]) -> tuple[Signal, Signal]:
    """A reference and what became of it, both float32 within [-1, 1]; half of the pairs are coded and nothing else."""
    rng = np.random.default_rng(number)
    parts: list[Signal] = []
    for _ in range(rng.integers(1, 6)):
        parts += [np.zeros(int(rng.uniform(0, 0.6) * RATE_HZ)), references[rng.integers(len(references))]]
    reference = np.concatenate(parts).astype(np.float64)
    length = min(reference.size, int(RATE_HZ * np.exp(rng.uniform(np.log(0.3), np.log(60)))))
    start = rng.integers(0, reference.size - length + 1)
    reference = reference[start : start + length]
    estimate = reference
    for kind in ["coded"] if rng.random() < 0.5 else rng.choice(KINDS, rng.integers(1, 3), False):
        estimate = damaged(kind, estimate, rng)
    cut = [np.clip(signal, -1, 1).astype(np.float32) for signal in (reference, estimate)]
    return cut[0], np.pad(cut[1], (0, reference.size - cut[1].size))


def numbers(name: str, pairs: Sequence[tuple[Signal, Signal]]) -> list[float | None]:
    """The scores of a metric for pairs at its rate; None where it has none."""
    metric = build_metric(name)
    items = [Inputs(str(at), metric.rate_hz, estimate, reference) for at, (reference, estimate) in enumerate(pairs)]
    return [score.value for score in metric.compute(items)]


def resampled(one: tuple[Signal, Signal], rate_hz: int) -> tuple[Signal, Signal]:
    """A pair at another rate, as a run would give it to a metric."""
    reference, estimate = (prepare(Audio(signal[None], RATE_HZ), rate_hz) for signal in one)
    return reference, estimate


_recordings: list[Signal] = []


def _begin(recordings: str | None) -> None:
    threadpool_limits(1)
    _recordings.extend(clips(recordings)[1])


def both(number: int) -> dict[str, tuple[float | None, float | None]]:
    """The package's number and ours of a pair, by band."""
    one, found = pair(number, _recordings), {}
    for band, (name, rate_hz) in BANDS.items():
        pairs = [resampled(one, rate_hz)]
        found[band] = numbers(name, pairs)[0], numbers(f"{name}[fast]", pairs)[0]
    return found


def compared(found: Iterable[tuple[float | None, float | None]], material: str, band: str = "") -> dict[str, object]:
    """The row of the differences over all pairs."""
    table = np.array(list(found), np.float64)
    none = np.isnan(table)
    apart = np.abs(np.subtract(*table[~none.any(axis=1)].T))
    p20, p50, p80, p95, p99 = np.percentile(apart, [20, 50, 80, 95, 99])
    said = (
        f"median {p50:.1e}; {100 * np.mean(apart > 1e-4):.1f} % above 1e-4, {100 * np.mean(apart > FAR):.2f} % above {FAR:g}; "
        f"95 % within {p95:.1e}, 99 % within {p99:.1e}, largest {apart.max():.3f}; "
        f"both have no number in {none.all(axis=1).sum()} more, one of them in {(none[:, 0] != none[:, 1]).sum()}"
    )
    print(f"{band}{apart.size} pairs: {said}")
    spread = {name: f"{value:.3g}" for name, value in (("p20", p20), ("p50", p50), ("p80", p80))}
    shared = {"case": f"{band}pairs", "variant": "codec-bench", "n": apart.size, "unit": "MOS", "note": material}
    return {**shared, **spread, "agreement": said}


def transforms(counts: list[int], size: int) -> None:
    """As many transforms of this size as the signals have frames, both signals at once."""
    for count in counts:
        np.fft.rfft(np.ones((2, count, size)))


@bench("codec-bench", "pesq", "numba", "numpy", "scipy", recordings=None, repeats=5, pairs=10_000)
def main(options: Options) -> Cases:
    """All clips through codecs in turns, then the pairs."""
    material, references = clips(options.recordings)
    rng = np.random.default_rng(0)
    pairs = [(x, damaged("coded", x, rng).astype(np.float32)) for x in references]
    threadpool_limits(1)
    note = f"{material}, one thread"
    for band, (name, rate_hz) in BANDS.items():
        at_rate = [resampled(one, rate_hz) for one in pairs]
        frames = [x.size * 125 // (2 * rate_hz) for x, _ in at_rate]
        calls: dict[str, Callable[[], Any]] = {
            "pesq": partial(numbers, name, at_rate),
            "codec-bench": partial(numbers, f"{name}[fast]", at_rate),
            "floor": partial(transforms, frames, rate_hz * 4 // 125),
        }
        scores = [one for one in zip(calls["pesq"](), calls["codec-bench"](), strict=True) if one != (None, None)]
        said = {"codec-bench": f"within {worst(scores, 0.02, 'coded'):.1e}"}
        yield race(f"{band}coded, all clips", calls, n=len(pairs), repeats=options.repeats, note=note, agreement=said)
    if options.pairs:
        with ProcessPoolExecutor(cores(), initializer=_begin, initargs=(options.recordings,)) as pool:
            found = list(pool.map(both, range(options.pairs), chunksize=8))
        yield [compared([one[band] for one in found], material, band) for band in BANDS]
