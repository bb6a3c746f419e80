"""Perturbations of a clip before encoding.

louder, softer, later (by some samples, and by half a frame, after silence, at constant length), white Gaussian noise at
a signal-to-noise ratio, reverberation (Polack's model: a Gaussian tail 5 dB below the direct sound that falls by 60 dB
in 0.5 s, at constant power), MP3 at 64 kbit/s (LAME), and resampling to 44.1 kHz (from that rate to 48 kHz) and back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from codec_bench.apps.profiling.settings import Settings
from codec_bench.audio.resample import fit_length, to_rate
from codec_bench.types import Audio

Undone = Callable[[Audio, Audio], tuple[Audio, Audio]]
_DECAY_S, _DIRECT_DB = 0.5, 5.0
_MP3_BPS = 64_000
_OTHER_HZ, _OTHERWISE_HZ = 44_100, 48_000


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A change of a clip.

    Args:
        name: describes the changed input. make: changes a clip, given the clip and its index.
        undo: aligns decoded unchanged and decoded changed audio for comparison; None where nothing undoes the change.
        noise_db: the signal-to-noise ratio of added noise; None for other changes.
    """

    name: str
    make: Callable[[Audio, int], Audio]
    undo: Undone | None = None
    noise_db: float | None = None


def changes(settings: Settings, frame_rate_hz: float | None) -> list[Perturbation]:
    """List all changes; without a frame rate there is no shift by half a frame."""
    shift = settings.shift_samples
    perturbations = [_gain(gain_db) for gain_db in settings.gains_db]
    perturbations.append(
        Perturbation(f"{shift} sample{'s' if shift != 1 else ''} later", *_shift(lambda rate_hz: shift))
    )
    if frame_rate_hz:
        perturbations.append(
            Perturbation("half a frame later", *_shift(lambda rate_hz: max(1, round(rate_hz / frame_rate_hz / 2))))
        )
    noisy = [
        Perturbation(
            f"with noise at {snr_db:g} dB", partial(with_noise, snr_db=snr_db, seed=settings.seed), noise_db=snr_db
        )
        for snr_db in settings.noises_db
    ]
    return [
        *perturbations,
        *noisy,
        Perturbation("with reverberation", partial(with_reverberation, seed=settings.seed)),
        Perturbation("after MP3", _after_mp3),
        Perturbation("after another rate", _after_another_rate),
    ]


def _gain(gain_db: float) -> Perturbation:
    factor = 10 ** (gain_db / 20)
    name = f"{abs(gain_db):g} dB {'louder' if gain_db > 0 else 'softer'}"
    return Perturbation(
        name, lambda clip, index: scaled(clip, factor), lambda before, after: (before, scaled(after, 1 / factor))
    )


def _shift(samples: Callable[[int], int]) -> tuple[Callable[[Audio, int], Audio], Undone]:
    def later(clip: Audio, index: int) -> Audio:
        padded = np.pad(clip.samples, ((0, 0), (samples(clip.sample_rate_hz), 0)))
        return Audio(padded[:, : clip.num_samples], clip.sample_rate_hz)

    def undone(before: Audio, after: Audio) -> tuple[Audio, Audio]:
        count = samples(before.sample_rate_hz)
        overlap = before.samples[:, : max(0, before.num_samples - count)]
        return Audio(overlap, before.sample_rate_hz), Audio(after.samples[:, count:], after.sample_rate_hz)

    return later, undone


def scaled(audio: Audio, factor: float) -> Audio:
    """Multiply audio by a factor."""
    return Audio(audio.samples * np.float32(factor), audio.sample_rate_hz)


def with_noise(clip: Audio, index: int, *, snr_db: float, seed: int) -> Audio:
    """Add white noise to a clip at a signal-to-noise ratio in dB."""
    noise = np.random.default_rng((seed, index)).standard_normal(clip.samples.shape)
    power = float(np.square(clip.samples, dtype=np.float64).mean())
    noise *= np.sqrt(power / 10 ** (snr_db / 10) / np.square(noise).mean())
    return Audio(clip.samples + noise, clip.sample_rate_hz)


def with_reverberation(clip: Audio, index: int, *, seed: int) -> Audio:
    """Add reverberation to a clip, at its length and power."""
    from scipy.signal import fftconvolve

    wet = fftconvolve(clip.samples.astype(np.float64), room(clip.sample_rate_hz, seed)[None], axes=1)[
        :, : clip.num_samples
    ]
    power = np.square(clip.samples, dtype=np.float64).mean() / max(1e-20, np.square(wet).mean())
    return Audio(wet * np.sqrt(power), clip.sample_rate_hz)


def room(rate_hz: int, seed: int) -> np.ndarray:
    """Build the impulse response: 1, and a tail of -5 dB with 60 dB in 0.5 s."""
    count = round(_DECAY_S * rate_hz)
    tail = np.random.default_rng(seed).standard_normal(count) * 10 ** (-3 * np.arange(1, count + 1) / count)
    return np.concatenate([[1.0], tail * np.sqrt(10 ** (-_DIRECT_DB / 10) / np.square(tail).sum())])


def _after_mp3(clip: Audio, index: int) -> Audio:
    from codec_bench.codecs.adapt import reconstruct
    from codec_bench.codecs.classical.mp3 import Mp3

    return _back(reconstruct(Mp3(_MP3_BPS), [clip]).items[0].estimate, clip)


def _after_another_rate(clip: Audio, index: int) -> Audio:
    return _back(to_rate(clip, _OTHERWISE_HZ if clip.sample_rate_hz == _OTHER_HZ else _OTHER_HZ), clip)


def _back(other: Audio, clip: Audio) -> Audio:
    return Audio(fit_length(to_rate(other, clip.sample_rate_hz).samples, clip.num_samples), clip.sample_rate_hz)
