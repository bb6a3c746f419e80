"""Rater checks after ITU-T P.808: qualification, gold questions and traps.

`qualification` asks about playback device, hearing and language. `hearing` plays five triplets of digits in noise
(`digits`); 3 must be right. `headphones` plays three tones, one 6 dB softer and another in antiphase, which cancels on
loudspeakers (Woods et al. 2017); 5 of 6 must be right. `environment` compares noise 50 dB and 40 dB below one sound; 3
of 4 must be right, which a loud place prevents. `gold` is custom audio with an answer within one step. `trap` breaks
off into beeps to count.

Digits in noise, the hearing check of ITU-T P.808.
The ten digits come from the package (English, `codec_bench/data/embedded/README.md`) or the user. Silence at the ends
(40 dB below the peak) is cut, and RMS equalised. The noise has their mean power spectrum. The first of five triplets is
5 dB below the noise, the others 8 dB. Microsoft's P.808 toolkit uses -5 and -11 dB; half of such triplets are
understood at about -11 dB (Han et al. 2020: -11.55 dB), and these are uncalibrated, hence 3 dB easier.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from codec_bench.apps.listening.kinds import Kind, Scale
from codec_bench.apps.listening.material import DrawnTrial, ListeningItem
from codec_bench.audio.resample import to_signal
from codec_bench.data.folder import sound_files
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio

GOLD, TRAP, SOUND_SLOT = "gold", "trap", "(sound)"
GOLD_WITHIN = 1
BEEPS = "Some sounds break off into beeps. Count the beeps, and choose the value of that number on every scale."
_RATE_HZ = 32_000
_LEVEL = 0.25
_BEEP_S, _GAP_S, _BEEP_HZ = 0.09, 0.16, 880.0
_CheckParts = tuple[str, list[Audio], tuple[str, ...], tuple[int, ...]]
"""Question, sounds, choices, and numbers of the right ones, or without choices the digits to write."""
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
        UserError: a digit has no file, or two, or is silent.
        AudioError: one cannot be read.
    """
    source = folder or EMBEDDED
    names = [name for name in sound_files(str(source)) if "/" not in name]
    recordings: list[np.ndarray] = []
    for digit in range(10):
        files = [source / name for name in names if name.startswith(f"{digit}.")]
        if len(files) != 1:
            raise UserError("digit_files", folder=source, count=len(files), digit=digit, hint=f"name it {digit}.wav")
        recordings.append(_alone(to_signal(Audio.read(files[0]), RATE_HZ), files[0]))
    return recordings


def _alone(signal: np.ndarray, path: Path) -> np.ndarray:
    """Trim silence at both ends, and scale to an RMS of 1; UserError if it is silent."""
    loud = np.flatnonzero(np.abs(signal) > _SILENT * np.abs(signal).max())
    if not len(loud):
        raise UserError("digit_silent", path=path)
    trimmed = signal[loud[0] : loud[-1] + 1]
    return np.asarray(trimmed / np.sqrt(np.mean(np.square(trimmed, dtype=np.float64))), np.float32)


def triplet(digits: Sequence[np.ndarray], numbers: Sequence[int], below_db: float, seed: int) -> Audio:
    """Mix three spoken digits with speech-shaped noise, for a digit-in-noise test.

    Args:
        digits: the signals of 0 to 9.
        numbers: which three.
        below_db: by how much the digits are softer than the noise.
        seed: of the noise.
    """
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


class CheckAudio(NamedTuple):
    """Audio for checks: a sound of the test and ten digits."""

    speech: Audio
    digits: Sequence[np.ndarray]


@dataclass(frozen=True, slots=True)
class Check:
    """A check before the test: its questions, its pass mark and their maker."""

    count: int
    fewest: int
    make: Callable[[random.Random, int, CheckAudio], _CheckParts]


_QUESTIONS = (
    ("With what do you listen?", ("Headphones or earphones on both ears", "One earphone", "Loudspeakers"), (0,)),
    ("Is your hearing normal, as far as you know?", ("Yes", "No"), (0,)),
    ("Do you understand the language of these instructions well?", ("Yes", "No"), (0,)),
)
_PLACES = ("The first", "The second", "The third")


def _tone(hz: float, seconds: float, level: float) -> np.ndarray:
    """Build a sine with 50 ms fades and amplitude `level`: float64 `(samples,)`."""
    time = np.arange(round(seconds * _RATE_HZ)) / _RATE_HZ
    ramp = np.minimum(1, np.minimum(time, time[::-1]) / 0.05)
    return np.asarray(level * ramp * np.sin(2 * np.pi * hz * time))


def _audio(samples: np.ndarray, rate_hz: int) -> Audio:
    return Audio(np.clip(samples, -1, 1).astype(np.float32), rate_hz)


def _qualification(_: random.Random, number: int, __: CheckAudio) -> _CheckParts:
    question, choices, right = _QUESTIONS[number]
    return question, [], choices, right


def _hearing(draw: random.Random, number: int, sources: CheckAudio) -> _CheckParts:
    digits = tuple(draw.sample(range(10), 3))
    sound = triplet(sources.digits, digits, BELOW_NOISE_DB[number], draw.getrandbits(32))
    return "Which three digits do you hear behind the noise? Write them in their order.", [sound], (), digits


def _headphones(draw: random.Random, _: int, __: CheckAudio) -> _CheckParts:
    """Build the headphone test: three tones, one of them softer."""
    roles = draw.sample(["softer", "opposite", "plain"], 3)
    tones = [
        _audio(np.stack([one, -one if role == "opposite" else one]), _RATE_HZ)
        for role in roles
        for one in [_tone(200, 1.0, _LEVEL * 10 ** (-6 / 20) if role == "softer" else _LEVEL)]
    ]
    return "Which of the three tones is the softest?", tones, _PLACES, (roles.index("softer"),)


def _environment(draw: random.Random, _: int, sources: CheckAudio) -> _CheckParts:
    """Make the check of a quiet place: which of two noisy versions has less noise.

    Returns:
        Question, sounds, choices, and the number of the right choice.
    """
    right, speech = draw.randrange(2), sources.speech
    level = float(np.sqrt(np.mean(np.square(speech.samples, dtype=np.float64))))
    noises = [np.random.default_rng(draw.getrandbits(32)).standard_normal(speech.num_samples) for _ in range(2)]
    sounds = [
        _audio(speech.samples + level * 10 ** (-(50 if n == right else 40) / 20) * noise, speech.sample_rate_hz)
        for n, noise in enumerate(noises)
    ]
    return "Which of the two has less noise?", sounds, (*_PLACES[:2], "I hear no difference"), (right,)


CHECKS = {
    "qualification": Check(len(_QUESTIONS), len(_QUESTIONS), _qualification),
    "hearing": Check(len(BELOW_NOISE_DB), 3, _hearing),
    "headphones": Check(6, 5, _headphones),
    "environment": Check(4, 3, _environment),
}


def make_checks(
    names: Sequence[str], speech: Audio, seed: int, digits: Path | None = None
) -> list[tuple[DrawnTrial, dict[str, Audio]]]:
    """Make the trials of checks before the test, each with its sounds by name.

    Args:
        names: in `CHECKS`.
        speech: a sound of the test, for the comparison trial.
        digits: a folder of recorded digits; None for those of the package.
    """
    sources = CheckAudio(speech, read_digits(digits) if "hearing" in names else ())
    prepared = []
    for name in names:
        draw = random.Random(f"{seed} {name}")
        for number in range(CHECKS[name].count):
            ask, sounds, choices, right = CHECKS[name].make(draw, number, sources)
            held = {f"({index})": one for index, one in enumerate(sounds)}
            item = ListeningItem(f"{name} {number + 1}", None, (), None, {})
            prepared.append((DrawnTrial(item, tuple(held), check=name, choices=choices, right=right, ask=ask), held))
    return prepared


def beeping(sound: Audio, beeps: int) -> Audio:
    """Build a trap trial: a sound that breaks off at half its length into beeps."""
    rate_hz = sound.sample_rate_hz
    time = np.arange(round(_BEEP_S * rate_hz)) / rate_hz
    beep = _LEVEL * np.sin(np.pi * time / _BEEP_S) * np.sin(2 * np.pi * _BEEP_HZ * time)
    each = np.concatenate([np.zeros(round(_GAP_S * rate_hz)), beep])
    begin = sound.samples[:, : -(-sound.num_samples // 2)] * np.linspace(1, 0, -(-sound.num_samples // 2)) ** 0.2
    rest = np.tile(np.concatenate([each] * beeps), (sound.channels, 1))
    return Audio(np.concatenate([begin, rest], axis=1).astype(np.float32), rate_hz)


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold question: a sound, its reference, and the right answer on each scale."""

    audio: Path
    reference: Path | None
    right: tuple[int | None, ...]


def read_gold(path: Path, kind: Kind, scales: Sequence[Scale], scale: tuple[int, int], *, open: bool) -> list[Gold]:
    """Read gold questions from a CSV: `audio`, and `answer` or a column for a scale.

    Args:
        scales: of a trial.
        scale: lowest and highest answer.
        open: whether a reference is played, which the column `reference` names.

    Raises:
        UserError: it cannot be read, lacks a column, or a question has no answer, or one that the scale does not have.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError("gold_unreadable", path=path, cause=error) from error
    names = [one.name or "answer" for one in scales]
    lacking = [name for name in ("audio", *(["reference"] if open else [])) if not rows or name not in rows[0]]
    if lacking:
        raise UserError("gold_lacks_column", path=path, column=lacking[0])
    gold = []
    for number, row in enumerate(rows, 2):
        where = f"line {number} of the gold questions '{path}'"
        cells = {name: (row.get(name) or "").strip() for name in ("audio", "reference", *names)}
        if not any(cells[name] for name in names):
            raise UserError("gold_without_answer", place=where, hint=f"fill in {' or '.join(names)}")
        right = []
        for name in names:
            text = cells[name]
            points = int(text) if text.removeprefix("-").isdecimal() and len(text) < 10 else None
            if text and (points is None or not scale[0] <= points <= scale[1]):
                raise UserError(
                    "gold_answer_out_of_scale", place=where, answer=text, kind=kind.name, low=scale[0], high=scale[1]
                )
            right.append(points)
        files = [path.parent / cells[name] if cells[name] else None for name in ("audio", "reference")]
        missing_file = next(
            (one for one, must in zip(files, (True, open)) if must and (one is None or not one.is_file())), ""
        )
        if missing_file != "":
            raise UserError("gold_without_sound", place=where, path=missing_file or "(empty)")
        gold.append(Gold(files[0] or path, files[1] if open else None, tuple(right)))
    return gold
