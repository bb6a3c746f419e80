"""The generated sounds of a judge's test, with true and false statements.

A kind has two or more alternatives, such as rising and falling pitch; a claim that is true of one sound is false of
another. Sounds depend on seed, kind and number alone. They are float32 at 16 kHz, stereo for `side`. Speech is the
embedded speech of four synthetic voices (`data/embedded`).

Questions about each sound: true and false claims, and choices, in several wordings. Each sound has a true and a false
claim, in two wordings of claim and question, and a choice in both orders. The true statement is the longer one in half
of a kind's sounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from codec_bench.audio.resample import resample
from codec_bench.benchmark.judge.replies import read_letter, read_yes_no
from codec_bench.config import load_yaml
from codec_bench.data import open_source
from codec_bench.types import Audio, Sample

RATE_HZ = 16_000
FEMALE = ("slt",)
"""Female voices of the embedded speech."""
STATEMENTS: Mapping[str, Sequence[Sequence[str]]] = load_yaml(files(__package__) / "statements.yaml")
"""By kind, the statements of its two alternatives, each in two wordings."""
MOST_BEEPS = 7
Claims = tuple[str, str]
"""One statement in two wordings."""
CLAIMED = (
    "Listen to the recording. Is this statement about it true?\n\n{claim}\n\nReply with Yes or No alone.",
    "Somebody says of this recording: {claim}\n\nDoes that agree with what you hear? Answer Yes or No, and nothing "
    "else.",
)
CHOSEN = (
    "Listen to the recording. Which of these two statements about it is right?\n\nA. {first}\nB. {second}\n\nReply "
    "with A or B alone."
)
LONGER = " This is what anybody hears who listens to the whole recording with attention, from its beginning to its end."


@dataclass(frozen=True, slots=True)
class InjectedSound:
    """A mono or `(channels, samples)` sound, with true and false statements."""

    samples: np.ndarray
    true: Claims
    false: Claims

    @property
    def audio(self) -> Audio:
        """The sound."""
        return Audio(self.samples, RATE_HZ)


def make_sound(kind: str, number: int, seed: int) -> InjectedSound:
    """Make one sound of a kind; even and odd numbers alternate where there are two.

    Args:
        kind: one of `KINDS`.
        number: from 0.
        seed: decides levels, pitches, lengths and which speech is used.
    """
    digest = hashlib.blake2b(f"{seed}:{kind}:{number}".encode(), digest_size=16).digest()
    return KINDS[kind](number, np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big"))))


def _either(kind: str, first: bool, samples: np.ndarray) -> InjectedSound:
    one, other = ((claim[0], claim[1]) for claim in STATEMENTS[kind])
    return InjectedSound(samples.astype(np.float32), *((one, other) if first else (other, one)))


def _times(seconds: float) -> np.ndarray:
    return np.arange(round(seconds * RATE_HZ)) / RATE_HZ


def _quiet(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE_HZ))


def _fade_ends(signal: np.ndarray) -> np.ndarray:
    """Fade 5 ms at both ends."""
    ramp = np.minimum(1.0, np.arange(signal.size) / (0.005 * RATE_HZ))
    return signal * ramp * ramp[::-1]


def _tone(seconds: float, hz: float, level: float = 0.3) -> np.ndarray:
    return _fade_ends(level * np.sin(2 * np.pi * hz * _times(seconds)))


@cache
def _spoken() -> tuple[Sample, ...]:
    return tuple(open_source("embedded"))


def _speech(rng: np.random.Generator, female: bool | None = None) -> tuple[np.ndarray, Sample]:
    """Draw an utterance at a peak of 0.5, and its sample; `female` None is any voice."""
    fitting = [one for one in _spoken() if female is None or (one.speaker in FEMALE) == female]
    sample = fitting[int(rng.integers(len(fitting)))]
    signal = Audio.read(str(sample.audio)).samples[0].astype(np.float64)
    return 0.5 * signal / np.abs(signal).max(), sample


def _silence(number: int, rng: np.random.Generator) -> InjectedSound:
    speech, _ = _speech(rng)
    silent = number % 2 == 0
    return _either("silence", silent, _quiet(rng.uniform(2, 4)) if silent else speech)


def _snr(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make speech, for even numbers with white noise of the same power (0 dB)."""
    speech, _ = _speech(rng)
    noise = rng.standard_normal(speech.size)
    noise *= np.sqrt(np.mean(speech**2) / np.mean(noise**2))
    noisy = number % 2 == 0
    return _either("noise", noisy, 0.5 * (speech + noise) if noisy else speech)


def _stops(number: int, rng: np.random.Generator) -> InjectedSound:
    stops, hz = number % 2 == 0, rng.uniform(300, 800)
    tone = np.concatenate([_tone(1.6, hz), _quiet(1.6)]) if stops else _tone(3.2, hz)
    return _either("tone that stops", stops, tone)


def _counted(count: int) -> Claims:
    beeps = "beep" if count == 1 else "beeps"
    return (
        f"There are exactly {count} {beeps} in the recording.",
        f"If the {beeps} are counted, their number is {count}.",
    )


def _beeps(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make 1 to 7 beeps; the false statement is off by one or two."""
    count = 1 + (2 + 2 * number) % MOST_BEEPS
    others = [n for n in range(1, MOST_BEEPS + 1) if 1 <= abs(n - count) <= 2]
    hz = rng.uniform(600, 1200)
    pieces = [segment for _ in range(count) for segment in (_tone(0.18, hz), _quiet(0.32))]
    signal = np.concatenate([_quiet(0.3), *pieces])
    return InjectedSound(signal.astype(np.float32), _counted(count), _counted(others[int(rng.integers(len(others)))]))


def _clicks(bpm: float, beats: int) -> np.ndarray:
    beat = _tone(0.03, 1000.0, 0.6)
    return np.concatenate([np.concatenate([beat, _quiet(60.0 / bpm - 0.03)]) for _ in range(beats)])


def _tempo(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make eight beats at 120 and eight at 140 a minute, or for odd numbers reversed."""
    faster = number % 2 == 0
    first, second = (120.0, 140.0) if faster else (140.0, 120.0)
    return _either("tempo", faster, np.concatenate([_clicks(first, 8), _quiet(0.8), _clicks(second, 8)]))


def _pitch(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make a tone that rises by an octave (even numbers) or falls (odd ones)."""
    rising, low = number % 2 == 0, rng.uniform(200, 400)
    times = _times(2.0)
    hz = low * 2.0 ** (times / 2.0 if rising else 1.0 - times / 2.0)
    signal = _fade_ends(0.3 * np.sin(2 * np.pi * np.cumsum(hz) / RATE_HZ))
    return _either("pitch", rising, signal)


def _loudness(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make speech twice, softer by 14 dB the first (even numbers) or second time."""
    speech, _ = _speech(rng)
    louder = number % 2 == 0
    first, second = (0.2, 1.0) if louder else (1.0, 0.2)
    return _either("loudness", louder, np.concatenate([first * speech, _quiet(0.6), second * speech]))


def _channel_side(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make speech in one of two channels; the other is silent."""
    speech, _ = _speech(rng)
    left = number % 2 == 0
    return _either("side", left, np.stack([speech, np.zeros_like(speech)] if left else [np.zeros_like(speech), speech]))


def _voice(number: int, rng: np.random.Generator) -> InjectedSound:
    female = number % 2 == 0
    speech, _ = _speech(rng, female)
    return _either("voice", female, speech)


def _reversed(number: int, rng: np.random.Generator) -> InjectedSound:
    speech, _ = _speech(rng)
    backwards = number % 2 == 0
    return _either("reversed speech", backwards, speech[::-1] if backwards else speech)


def _order(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make a tone and noise, with the tone first for even numbers."""
    tone_first = number % 2 == 0
    tone, noise = _tone(1.0, rng.uniform(400, 900)), _fade_ends(0.1 * rng.standard_normal(RATE_HZ))
    pieces = [tone, _quiet(0.5), noise] if tone_first else [noise, _quiet(0.5), tone]
    return _either("order", tone_first, np.concatenate(pieces))


def _longest(text: str) -> str:
    return max(text.lower().strip(".").split(), key=len)


def _spoken_claims(word: str) -> Claims:
    return f'The speaker says the word "{word}".', f'Among the words that are spoken is "{word}".'


def _word(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make a sentence; statements name its longest word, or that of another sentence."""
    speech, sample = _speech(rng)
    text = str(sample.text)
    others = [w for one in _spoken() if (w := _longest(str(one.text))) not in text.lower()]
    return InjectedSound(
        speech.astype(np.float32),
        _spoken_claims(_longest(text)),
        _spoken_claims(others[int(rng.integers(len(others)))]),
    )


def _cut(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make a complete sentence with silence, or one that breaks off at 55 %."""
    speech, _ = _speech(rng)
    broken = number % 2 == 0
    full = np.concatenate([speech, _quiet(0.6)])
    return _either("cut speech", broken, speech[: round(0.55 * speech.size)] if broken else full)


def _delivery(number: int, rng: np.random.Generator) -> InjectedSound:
    """Make speech a third faster and higher, for odd numbers a quarter slower, lower."""
    speech, _ = _speech(rng)
    excited = number % 2 == 0
    claimed_hz = round(RATE_HZ / (1.33 if excited else 0.75))
    return _either(
        "delivery", excited, np.clip(resample(speech[None].astype(np.float32), RATE_HZ, claimed_hz)[0], -1, 1)
    )


KINDS: Mapping[str, Callable[[int, np.random.Generator], InjectedSound]] = {
    "silence": _silence, "noise": _snr, "tone that stops": _stops, "count of beeps": _beeps, "tempo": _tempo,
    "pitch": _pitch,
    "loudness": _loudness, "side": _channel_side, "voice": _voice, "reversed speech": _reversed, "order": _order,
    "word": _word, "cut speech": _cut, "delivery": _delivery,
}  # fmt: skip
"""The kinds of sounds by name."""
TWO_CHANNELS = ("side",)
"""The kinds that need two channels."""


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One question to a judge.

    Args:
        unit: the sound or fact; questions on one are dependent.
        kind: of the sound, or of the injected answer.
    """

    id: str
    unit: str
    kind: str
    repeat: int

    @property
    def same(self) -> str:
        """The common id of all repeats."""
        return self.id.rpartition("~")[0]


@dataclass(frozen=True, slots=True)
class Claim(JudgeQuestion):
    """One question about a sound.

    Args:
        right: whether the right reply is yes, or A.
        options: the statements A and B of a choice; empty for a claim.
    """

    text: str
    right: bool
    options: tuple[str, ...] = ()

    def read(self, reply: str) -> bool | None:
        """Parse a reply: whether it says yes, or A for a choice; None if it is unclear."""
        if not self.options:
            return None if (answer := read_yes_no(reply)).reason else answer.values["score"] == 1
        letter = read_letter(reply, choices=dict(zip("AB", self.options)))
        return None if letter.reason else letter.text == "A"


def claims(
    per_kind: int, repeats: int, seed: int, kinds: Collection[str] = tuple(KINDS)
) -> Iterator[tuple[str, InjectedSound, list[Claim]]]:
    """Yield the name, the sound and the questions of every injected sound."""
    for kind in (one for one in KINDS if one in kinds):
        for number in range(per_kind):
            name = f"{kind.replace(' ', '-')}-{number}"
            sound = make_sound(kind, number, seed)
            questions = [
                one for repeat in range(repeats) for one in _about(name, kind, sound, number // 2 % 2 == 0, repeat)
            ]
            yield name, sound, questions


def _about(unit: str, kind: str, sound: InjectedSound, long: bool, repeat: int) -> Iterator[Claim]:
    """Yield the yes/no claims and the A/B choices about one sound.

    Args:
        unit: the sound's name; it begins the questions' ids.
        long: whether the true statement of a choice is the longer one.
    """
    for wording, frame in enumerate(CLAIMED):
        for right, statement in ((True, sound.true), (False, sound.false)):
            id = f"{unit}-{'true' if right else 'false'}-{wording}~{repeat}"
            yield Claim(id, unit, kind, repeat, frame.format(claim=statement[wording]), right)
    true, false = sound.true[0] + LONGER * long, sound.false[0] + LONGER * (not long)
    for first, (one, other) in ((True, (true, false)), (False, (false, true))):
        text = CHOSEN.format(first=one, second=other)
        yield Claim(f"{unit}-{'first' if first else 'second'}~{repeat}", unit, kind, repeat, text, first, (one, other))
