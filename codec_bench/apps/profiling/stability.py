"""Stability of codes under re-encoding and changes of the input.

Agreement is the share of codes equal in the same position, by codebook. Re-encoding compares each round with the
original (`with_first`, falls on drift) and with the round before (`with_previous`, 1 once settled). A change compares
with the unchanged clip, attenuated first to avoid clipping; a shift moves the sound within fixed frames.
`quality` compares output with changed input; `unchanged` is that of unchanged clips. `wave_snr_db` compares outputs
after undoing the change. Latents have `latent_snr_db` in place of agreement.

Perturbations of a clip before encoding.
louder, softer, later (by some samples, and by half a frame, after silence, at constant length), white Gaussian noise at
a signal-to-noise ratio, reverberation (Polack's model: a Gaussian tail 5 dB below the direct sound that falls by 60 dB
in 0.5 s, at constant power), MP3 at 64 kbit/s (LAME), and resampling to 44.1 kHz (from that rate to 48 kHz) and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from codec_bench.apps.profiling.scoring import SectionScorer
from codec_bench.apps.profiling.settings import Settings
from codec_bench.audio.resample import fit_length, to_rate
from codec_bench.codecs.adapt import fault_of, recode
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Latents, Sent

_SNR_CEILING_DB = 200.0
Undone = Callable[[Audio, Audio], tuple[Audio, Audio]]
_DECAY_S, _DIRECT_DB = 0.5, 5.0
_MP3_BPS = 64_000
_OTHER_HZ, _OTHERWISE_HZ = 44_100, 48_000


def measure(codec: Any, material: ProfileClips, settings: Settings) -> dict[str, Any]:
    """Measure repeated re-encoding, and small changes of the input, on a few clips."""
    clips = material.cut(settings.robust_clips, settings.robust_s)
    codes, waves = recode(codec, clips)
    loudest = 10 ** (max((*settings.gains_db, 0.0)) / 20)
    quiet = [scale(c, min(1.0, 0.99 / (loudest * max(1e-9, float(np.abs(c.samples).max()))))) for c in clips]
    scorer = SectionScorer(settings.robust_metrics)
    plain = recode(codec, quiet)
    no_tokens = "latents" if isinstance(codes[0], Latents) else "packets_not_compared"
    return {
        "clips": len(clips),
        "tokens": sum(np.asarray(s.values).size for c in codes for s in c.streams),
        "tokens_reason": None if codes[0].streams else Diagnostic(no_tokens),
        "reencoding": _reencoding(codec, codes, waves, settings.reencodings),
        "metrics": scorer.facts,
        "unchanged": scorer(quiet, plain[1]),
        "changes": [
            _changed(codec, change, quiet, plain, scorer) for change in changes(settings, codec.info.frame_rate_hz)
        ],
    }


def _reencoding(codec: Any, first: Sequence[Sent], waves: Sequence[Audio], rounds: int) -> list[dict[str, Any]]:
    """Encode decoded audio again, round by round.

    Args:
        first, waves: the codes and the decoded audio of the original clips.

    Returns:
        By round: shares of codes equal to the first and to the previous round, and the SNR of latents.
    """
    out: list[dict[str, Any]] = []
    if not first[0].streams and not isinstance(first[0], Latents):
        return out
    before, current = first, waves
    for number in range(1, rounds + 1):
        codes, decoded = recode(codec, current)
        same = {"with_first": agreement(first, codes), "with_previous": agreement(before, codes)}
        out.append({"round": number, **same, "latent_snr_db": latent_snr_db(first, codes)})
        before, current = codes, decoded
    return out


def _changed(
    codec: Any,
    change: Perturbation,
    clips: Sequence[Audio],
    plain: tuple[Sequence[Sent], Sequence[Audio]],
    scorer: SectionScorer,
) -> dict[str, Any]:
    """Measure codes and output after one change of the input; or give the reason.

    Args:
        plain: codes and decoded audio of the unchanged clips.
    """
    facts = {"change": change.name, "noise_db": change.noise_db}
    try:
        inputs = [change.make(clip, index) for index, clip in enumerate(clips)]
        codes, waves = recode(codec, inputs)
    except Exception as error:  # one change that cannot be made, or coded, must not take the others along
        reason = fault_of(error)
        missing = dict.fromkeys(("agreement", "latent_snr_db", "wave_snr_db"))
        quality = {name: {"value": None, "n": 0, "reason": reason} for name in scorer.metrics}
        return {**facts, "reason": reason, **missing, "quality": quality}
    undone = None
    if change.undo is not None:
        pairs = [change.undo(wave, other) for wave, other in zip(plain[1], waves)]
        undone = snr_db([before for before, _ in pairs], [after for _, after in pairs])
    return {
        **facts,
        "reason": None,
        "agreement": agreement(plain[0], codes),
        "latent_snr_db": latent_snr_db(plain[0], codes),
        "wave_snr_db": undone,
        "quality": scorer(inputs, waves),
    }


def agreement(codes: Sequence[Sent], others: Sequence[Sent]) -> list[float] | None:
    """Return the share of equal codes by codebook of all streams; None without codes."""
    if not codes[0].streams:
        return None
    same: list[float] = []
    for index, stream in enumerate(codes[0].streams):
        equal = np.zeros(np.asarray(stream.values).shape[0])
        total = 0
        for a, b in zip(codes, others):
            left, right = np.asarray(a.streams[index].values), np.asarray(b.streams[index].values)
            frames = min(left.shape[1], right.shape[1])
            equal += (left[:, :frames] == right[:, :frames]).sum(axis=1)
            total += max(left.shape[1], right.shape[1])
        same += (equal / max(1, total)).tolist()
    return same


def latent_snr_db(latents: Sequence[Sent], others: Sequence[Sent]) -> float | None:
    """Return the SNR of other latents against the first in dB; None without latents."""
    pairs = [(a, b) for a, b in zip(latents, others) if isinstance(a, Latents) and isinstance(b, Latents)]
    if not pairs:
        return None
    frames = [min(np.shape(a.values)[1], np.shape(b.values)[1]) for a, b in pairs]
    one, other = (
        np.concatenate([np.asarray(pair[column].values, np.float64)[:, :n] for pair, n in zip(pairs, frames)], axis=1)
        for column in (0, 1)
    )
    return _ratio_db(float(np.square(one - one.mean(axis=1, keepdims=True)).sum()), float(np.square(one - other).sum()))


def snr_db(references: Sequence[Audio], others: Sequence[Audio]) -> float | None:
    """Return the signal-to-noise ratio in dB, up to 200; None without a signal."""
    signal = sum(float(np.square(r.samples, dtype=np.float64).sum()) for r in references)
    noise = sum(
        float(np.square(r.samples.astype(np.float64) - o.samples.astype(np.float64)).sum())
        for r, o in zip(references, others)
    )
    return _ratio_db(signal, noise)


def _ratio_db(signal: float, noise: float) -> float | None:
    if signal == 0.0:
        return None
    return min(_SNR_CEILING_DB, float(10 * np.log10(signal / noise))) if noise else _SNR_CEILING_DB


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A change of a clip.

    Args:
        make: changes a clip; takes the clip and its index.
        undo: aligns decoded unchanged and decoded changed audio for comparison; None where nothing undoes the change.
        noise_db: the signal-to-noise ratio of added noise; None for other changes.
    """

    name: str
    make: Callable[[Audio, int], Audio]
    undo: Undone | None = None
    noise_db: float | None = None


def changes(settings: Settings, frame_rate_hz: float | None) -> list[Perturbation]:
    """List the changes to measure; the half-frame shift needs a frame rate."""
    shift = settings.shift_samples
    perturbations = [_gain(gain_db) for gain_db in settings.gains_db]
    by_samples = _shift(lambda rate_hz: shift)
    perturbations.append(Perturbation(f"{shift} sample{'s' if shift != 1 else ''} later", *by_samples))
    if frame_rate_hz:
        by_half = _shift(lambda rate_hz: max(1, round(rate_hz / frame_rate_hz / 2)))
        perturbations.append(Perturbation("half a frame later", *by_half))
    for snr_db in settings.noises_db:
        noise = partial(with_noise, snr_db=snr_db, seed=settings.seed)
        perturbations.append(Perturbation(f"with noise at {snr_db:g} dB", noise, noise_db=snr_db))
    return [
        *perturbations,
        Perturbation("with reverberation", partial(with_reverberation, seed=settings.seed)),
        Perturbation("after MP3", _after_mp3),
        Perturbation("after another rate", _after_another_rate),
    ]


def _gain(gain_db: float) -> Perturbation:
    factor = 10 ** (gain_db / 20)
    name = f"{abs(gain_db):g} dB {'louder' if gain_db > 0 else 'softer'}"
    return Perturbation(
        name, lambda clip, index: scale(clip, factor), lambda before, after: (before, scale(after, 1 / factor))
    )


def _shift(samples: Callable[[int], int]) -> tuple[Callable[[Audio, int], Audio], Undone]:
    """Build a delay of the input by `samples(rate)`, and the alignment of its output."""

    def later(clip: Audio, index: int) -> Audio:
        padded = np.pad(clip.samples, ((0, 0), (samples(clip.sample_rate_hz), 0)))
        return Audio(padded[:, : clip.num_samples], clip.sample_rate_hz)

    def undone(before: Audio, after: Audio) -> tuple[Audio, Audio]:
        count = samples(before.sample_rate_hz)
        overlap = before.samples[:, : max(0, before.num_samples - count)]
        return Audio(overlap, before.sample_rate_hz), Audio(after.samples[:, count:], after.sample_rate_hz)

    return later, undone


def scale(audio: Audio, factor: float) -> Audio:
    """Multiply audio by a factor."""
    return Audio(audio.samples * np.float32(factor), audio.sample_rate_hz)


def with_noise(clip: Audio, index: int, *, snr_db: float, seed: int) -> Audio:
    """Add white noise at an SNR in dB; the draw depends on `seed` and clip `index`."""
    noise = np.random.default_rng((seed, index)).standard_normal(clip.samples.shape)
    power = float(np.square(clip.samples, dtype=np.float64).mean())
    noise *= np.sqrt(power / 10 ** (snr_db / 10) / np.square(noise).mean())
    return Audio(clip.samples + noise, clip.sample_rate_hz)


def with_reverberation(clip: Audio, index: int, *, seed: int) -> Audio:
    """Reverberate a clip, at its length and power; `seed` draws the impulse response."""
    response = impulse_response(clip.sample_rate_hz, seed)
    points = 1 << (clip.num_samples + response.size - 1).bit_length()
    spectrum = np.fft.rfft(clip.samples.astype(np.float64), points) * np.fft.rfft(response, points)
    wet = np.fft.irfft(spectrum, points)[:, : clip.num_samples]
    power = np.square(clip.samples, dtype=np.float64).mean() / max(1e-20, np.square(wet).mean())
    return Audio(wet * np.sqrt(power), clip.sample_rate_hz)


def impulse_response(rate_hz: int, seed: int) -> np.ndarray:
    """Build a room impulse response: 1, and a tail of -5 dB that falls 60 dB in 0.5 s."""
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
