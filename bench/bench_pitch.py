"""Times the pitch tracker against Praat's, one thread each, and checks that it finds Praat's pitch.

    python bench/bench_pitch.py [--recordings DIR] [--seconds 3 9 30]

Read speech cut from the recordings one after the other (without recordings: the embedded speech), frames every 10 ms
between 60 and 600 Hz. Right means: Praat's voicing on 99 % of the frames and its pitch to 0.2 % on 99 % of those voiced
in both. The floor is what the two Fourier transforms of every frame take by themselves.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from common import Cases, Options, bench, clips, race
from scipy import fft

from codec_bench.kernels.pitch import cpu, ref

RATE = ref.RATE_HZ
READ = ("arctic", "librispeech")
"""How the ids of read speech begin: on interviews and music no tracker is right."""


def praat(signal: np.ndarray) -> tuple[np.ndarray, float]:
    """Praat's pitch, and the number of our frame (not whole, where the two do not meet) that its first one is."""
    import parselmouth

    sound, frame_s = parselmouth.Sound(signal.astype(np.float64), RATE), ref.HOP / RATE
    pitch = sound.to_pitch_ac(frame_s, ref.FLOOR_HZ, pitch_ceiling=ref.CEILING_HZ)
    return pitch.selected_array["frequency"], pitch.t1 / frame_s


def both(signal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Our pitch and Praat's on the frames that both have; stops where the two look at different places of the signal."""
    for start in range(0, 2 * ref.HOP, ref.HOP // 2):  # Praat centres its frames on the signal: shift till they meet
        expected, first = praat(signal[start : start + signal.size - 2 * ref.HOP])
        frame = first + start / ref.HOP
        if abs(frame - round(frame)) < 1e-6:
            found = cpu.track(signal)[round(frame) :].astype(np.float64)
            frames = min(found.size, expected.size)
            return found[:frames], expected[:frames]
    raise SystemExit("Praat's frames do not meet ours")


def check_praat(signal: np.ndarray) -> str:
    """How near our tracker is to Praat; stops where that is not near enough, or nothing is voiced in both."""
    found, expected = both(signal)
    voiced = (found > 0) & (expected > 0)
    same = float(np.mean((found > 0) == (expected > 0)))
    near = float(np.mean(np.abs(found[voiced] / expected[voiced] - 1) < 0.002)) if voiced.any() else 0.0
    if not (same >= 0.99 and near >= 0.99):
        raise SystemExit(f"Praat's voicing on {same:.1%} of the frames, its pitch on {near:.1%} of the voiced")
    return f"Praat's voicing on {same:.2%} of the frames, its pitch to 0.2 % on {near:.2%} of the voiced"


def transforms(count: int) -> None:
    """Both Fourier transforms of this many frames."""
    together = min(cpu.BLOCK, count)
    frames, power = (np.ones((together, size), np.float32) for size in (ref.FFT, ref.FFT // 2 + 1))
    for _ in range(round(count / together)):
        fft.rfft(frames, workers=1)
        fft.irfft(power, ref.FINER * ref.FFT, workers=1)


@bench(
    "codec-bench", "praat-parselmouth", "numba", "scipy", "numpy", recordings=None, seconds=(3.0, 9.0, 30.0), repeats=5
)
def main(options: Options) -> Cases:
    """A clip of each length."""
    material, signals = clips(options.recordings, rate_hz=RATE, starting=READ)
    everything = np.concatenate([signal for signal in signals if signal.size > RATE // 2])
    for length in options.seconds:
        signal = np.resize(everything, round(length * RATE) // ref.HOP * ref.HOP)
        calls = {
            "praat": partial(praat, signal),
            "codec-bench": partial(cpu.track, signal),
            "floor": partial(transforms, cpu.track(signal).size),
        }
        said = {"codec-bench": check_praat(signal)}
        yield race(f"{length:g} s", calls, n=1, repeats=options.repeats, note=material, agreement=said)
