"""Times the pitch tracker against WORLD's Harvest and DIO and against Praat, side by side, and checks that it is right.

    python bench/bench_pitch.py [--recordings DIR] [--seconds 3 9 30] [--repeats 5] [--noise-db 40 30 20 10 5 0]

Speech cut from the recordings one after the other (without recordings: the embedded speech), frames every 10 ms between 60
and 600 Hz everywhere, one thread each. Right means: Praat's voicing on 99 % of the frames and its pitch to 0.2 % on 99 % of
those voiced in both. What WORLD finds is another definition: the note says how far apart the two lie.

The floor is what the two Fourier transforms of every frame take by themselves.

In white noise the two trackers decide differently on frames that are voiced or not by a hair. The rows in % say on how many of
the frames they agree, over the recordings one by one, with the noise so many dB below each recording.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from common import append_rows, interleaved, row

from codec_bench.audio.resample import prepare
from codec_bench.kernels.pitch import cpu, ref
from codec_bench.types import Audio

RATE = ref.RATE_HZ
FRAME_S = ref.HOP / RATE


def recordings(folder: str | None) -> list[np.ndarray]:
    """Read speech, mono at 16 kHz, each recording by itself."""
    if folder is None:
        from codec_bench.data import open_source

        return [prepare(Audio.read(sample.audio), RATE) for sample in open_source("embedded")]
    rows = [json.loads(line) for line in (Path(folder) / "manifest.jsonl").read_text("utf-8").splitlines()]
    read = [r for r in rows if r["id"].startswith(("arctic", "librispeech"))] or rows
    return [prepare(Audio.read(Path(folder) / r["audio"]), RATE) for r in read]


def world(signal: np.ndarray, method: str) -> np.ndarray:
    """WORLD's pitch, by `harvest` or `dio`, refined by StoneMask."""
    import pyworld

    exact = signal.astype(np.float64)
    options = {"f0_floor": ref.FLOOR_HZ, "f0_ceil": ref.CEILING_HZ, "frame_period": 1000 * FRAME_S}
    return pyworld.stonemask(exact, *getattr(pyworld, method)(exact, RATE, **options), RATE)


def praat(signal: np.ndarray) -> tuple[np.ndarray, float]:
    """Praat's pitch, and the number of our frame (not whole, where the two do not meet) that its first one is."""
    import parselmouth

    pitch = parselmouth.Sound(signal.astype(np.float64), RATE).to_pitch_ac(
        FRAME_S, ref.FLOOR_HZ, pitch_ceiling=ref.CEILING_HZ
    )
    return pitch.selected_array["frequency"], pitch.t1 / FRAME_S


def apart(found: np.ndarray, expected: np.ndarray) -> tuple[float, np.ndarray]:
    """The part of the frames whose voicing differs, and the distance in cents on those voiced in both."""
    frames = min(found.size, expected.size)
    found, expected = found[:frames].astype(np.float64), expected[:frames]
    both = (found > 0) & (expected > 0)
    return float(np.mean((found > 0) != (expected > 0))), np.abs(1200 * np.log2(found[both] / expected[both]))


def against_praat(signal: np.ndarray) -> tuple[float, np.ndarray]:
    """The part of the frames whose voicing is not Praat's, and the distance in cents on those voiced in both.

    Raises:
        SystemExit: the two look at different places of the signal.
    """
    for start in range(0, 2 * ref.HOP, ref.HOP // 2):  # Praat centres its frames on the signal: shift till they meet
        part = signal[start : start + signal.size - 2 * ref.HOP]
        expected, first = praat(part)
        frame = first + start / ref.HOP
        if abs(frame - round(frame)) < 1e-6:
            return apart(cpu.track(signal)[round(frame) :], expected)
    raise SystemExit("Praat's frames do not meet ours")


def check_praat(signal: np.ndarray) -> str:
    """How near our tracker is to Praat.

    Raises:
        SystemExit: not near enough.
    """
    voicing, cents = against_praat(signal)
    near = float(np.mean(cents < 1200 * np.log2(1.002)))
    if not (voicing <= 0.01 and near >= 0.99):  # also where nothing is voiced in both, and near is no number
        raise SystemExit(f"voicing differs from Praat's on {voicing:.1%} of the frames, pitch is its own on {near:.1%}")
    return f"Praat's voicing on {1 - voicing:.2%} of the frames, its pitch to 0.2 % on {near:.2%} of the voiced"


def in_noise(signals: list[np.ndarray], levels_db: list[float]) -> list[dict[str, object]]:
    """Rows of the agreement with Praat in white noise, over recordings of whole frames."""
    rows = []
    for level_db in levels_db:
        rng = np.random.default_rng(0)
        voiced, near = [], []
        for signal in signals:
            noise = rng.standard_normal(signal.size) * np.sqrt(np.mean(signal.astype(np.float64) ** 2))
            noisy = (signal + 10 ** (-level_db / 20) * noise).astype(np.float32)
            voicing, cents = against_praat(noisy[: noisy.size // ref.HOP * ref.HOP])
            voiced.append(100 * (1 - voicing))
            near.append(100 * np.mean(cents < 1200 * np.log2(1.002)) if cents.size else 100.0)
        agreement = (
            f"its pitch to 0.2 % on {np.mean(near):.2f} % of the frames voiced in both (mean), least {min(near):.2f} %"
        )
        note = f"frames with Praat's voicing: mean {np.mean(voiced):.2f} %, least {min(voiced):.2f} %"
        rows.append(row(f"noise {level_db:g} dB below", "codec-bench", np.asarray(voiced), n=len(voiced),
                        agreement=agreement, note=note) | {"unit": "%"})  # fmt: skip
        sys.stdout.write(f"{level_db:>4g} dB {note}; {agreement}\n")
    return rows


def transforms_s(count: int) -> float:
    """Seconds of both Fourier transforms of this many frames."""
    from scipy import fft

    frames = np.ones((cpu.BLOCK, ref.FFT), np.float32)
    power = np.ones((cpu.BLOCK, ref.FFT // 2 + 1), np.float32)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        fft.rfft(frames, workers=1)
        fft.irfft(power, ref.FINER * ref.FFT, workers=1)
        seconds.append(time.perf_counter() - start)
    return min(seconds) * count / cpu.BLOCK


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"), metavar="DIR")
    parser.add_argument("--seconds", type=float, nargs="*", default=[3, 9, 30])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--noise-db", type=float, nargs="*", default=[40, 30, 20, 10, 5, 0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # pyworld asks pkg_resources, which says that it is deprecated
    each = [signal for signal in recordings(options.recordings) if signal.size > RATE // 2]
    everything = np.concatenate(each)
    rows = in_noise(each, options.noise_db)
    sys.stdout.write(f"{'case':>6} {'variant':>12} {'ms':>9} {'ratio':>7} {'floor ms':>9}  note\n")
    for length in options.seconds:
        signal = np.resize(everything, round(length * RATE) // ref.HOP * ref.HOP)
        found = cpu.track(signal)
        agreement, floor = check_praat(signal), transforms_s(found.size)
        race = {
            "harvest": partial(world, signal, "harvest"), "dio": partial(world, signal, "dio"),
            "praat": partial(praat, signal), "codec-bench": partial(cpu.track, signal),
        }  # fmt: skip
        notes = {"praat": "the same definition", "codec-bench": f"transforms alone: {1000 * floor:.3g} ms"}
        for method in ("harvest", "dio"):
            voicing, cents = apart(found, world(signal, method))
            notes[method] = f"another definition: voicing differs from ours on {voicing:.1%} of the frames, pitch by "
            notes[method] += f"{np.median(cents):.1f} cents (median); over 300 cents on {np.mean(cents > 300):.1%}"
        seconds = interleaved(race, repeats=options.repeats)
        for name, times in seconds.items():
            ratio = float(np.median(seconds["harvest"]) / np.median(times))
            rows.append(row(f"{length:g} s", name, times, n=1, ratio=ratio, note=notes[name],
                            agreement=agreement if name == "codec-bench" else ""))  # fmt: skip
            sys.stdout.write(
                f"{length:>4g} s {name:>12} {1000 * np.median(times):>9.2f} {ratio:>7.1f} {1000 * floor:>9.2f}  {notes[name]}\n"
            )
        sys.stdout.write(f"{'':>19} {agreement}\n")
    path = append_rows("pitch", rows, ("codec-bench", "pyworld", "praat-parselmouth", "numba", "scipy", "numpy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
