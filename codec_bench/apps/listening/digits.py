"""Digits in noise, the hearing check of ITU-T P.808.

The ten digits come from the package (English, `codec_bench/data/embedded/README.md`) or the user. Silence at the ends
(40 dB below the peak) is cut, and RMS equalised. The noise has their mean power spectrum. The first of five triplets is
5 dB below the noise, the others 8 dB. Microsoft's P.808 toolkit uses -5 and -11 dB; half of such triplets are
understood at about -11 dB (Han et al. 2020: -11.55 dB), and these are uncalibrated, hence 3 dB easier.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from codec_bench.audio.resample import to_signal
from codec_bench.data.folder import sound_files
from codec_bench.errors import UserError
from codec_bench.types import Audio

EMBEDDED = Path(__file__).parent / "spoken_digits"
RATE_HZ = 16_000
BELOW_NOISE_DB = (5.0, 8.0, 8.0, 8.0, 8.0)
"""By how much the digits of each triplet are softer than the noise."""
_NOISE = 0.08  # 22 dB below full scale
_LEAD_S, _PAUSE_S = 0.5, 0.2
_SILENT = 0.01
_BINS = 1 << 14


def read_digits(folder: Path | None) -> list[np.ndarray]:
    """Read the digits 0 to 9, each float32 `(samples,)` at `RATE_HZ` with an RMS of 1.

    Args:
        folder: of audio files named 0 to 9, such as `7.wav`; None for those of the package.

    Raises:
        UserError: a digit has no file, or two, or is silent. AudioError: one cannot be read.
    """
    source = folder or EMBEDDED
    names = [name for name in sound_files(str(source)) if "/" not in name]
    recordings: list[np.ndarray] = []
    for digit in range(10):
        files = [source / name for name in names if name.startswith(f"{digit}.")]
        if len(files) != 1:
            raise UserError(
                f"the folder of digits '{source}' has {len(files)} sound files of the digit {digit}; expected one for "
                f"each of 0 to 9",
                hint=f"name it {digit}.wav",
            )
        recordings.append(_alone(to_signal(Audio.read(files[0]), RATE_HZ), files[0]))
    return recordings


def _alone(signal: np.ndarray, path: Path) -> np.ndarray:
    loud = np.flatnonzero(np.abs(signal) > _SILENT * np.abs(signal).max())
    if not len(loud):
        raise UserError(f"the digit '{path}' is silent")
    trimmed = signal[loud[0] : loud[-1] + 1]
    return np.asarray(trimmed / np.sqrt(np.mean(np.square(trimmed, dtype=np.float64))), np.float32)


def triplet(digits: Sequence[np.ndarray], numbers: Sequence[int], below_db: float, seed: int) -> Audio:
    """Mix three digits `below_db` softer than noise."""
    pause = np.zeros(round(_PAUSE_S * RATE_HZ))
    spoken = np.concatenate([segment for number in numbers for segment in (digits[number], pause)])
    lead = np.zeros(round(_LEAD_S * RATE_HZ))
    speech = np.concatenate([lead, spoken, lead])
    power = np.mean([np.abs(np.fft.rfft(one, _BINS)) ** 2 for one in digits], axis=0)
    noise = np.random.default_rng(seed).standard_normal(len(speech))
    shape = np.interp(np.fft.rfftfreq(len(noise)), np.fft.rfftfreq(_BINS), np.sqrt(power))
    noise = np.fft.irfft(np.fft.rfft(noise) * shape, len(noise))
    mixed = speech * 10 ** (-below_db / 20) + noise / np.sqrt(np.mean(noise**2))
    return Audio(np.clip(_NOISE * mixed, -1, 1).astype(np.float32), RATE_HZ)
