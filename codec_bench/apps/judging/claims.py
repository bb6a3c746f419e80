"""Questions about each sound: true and false claims, and choices, in several wordings.

Each sound has a true and a false claim, in two wordings of claim and question, and a choice in both orders. The true
statement is the longer one in half of a kind's sounds. So preferences for yes, the first or the longer are right half
of the time. `benchmark/judge/replies.py` parses replies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from codec_bench.apps.judging.sounds import KINDS, PlantedSound, make_sound
from codec_bench.benchmark.judge.replies import read_letter, read_yes_no

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
class JudgeQuestion:
    """One question to a judge.

    Args:
        unit: the sound or fact; questions on one are dependent.
        kind: of the sound, or of the planted answer. repeat: from 0.
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
        """Whether a reply says yes, or A; None if neither or both."""
        if not self.options:
            return None if (answer := read_yes_no(reply)).reason else answer.values["score"] == 1
        letter = read_letter(reply, choices=dict(zip("AB", self.options)))
        return None if letter.reason else letter.text == "A"


def claims(
    per_kind: int, repeats: int, seed: int, kinds: Collection[str] = tuple(KINDS)
) -> Iterator[tuple[str, PlantedSound, list[Claim]]]:
    """Yield every sound with its name and questions."""
    for kind in (one for one in KINDS if one in kinds):
        for number in range(per_kind):
            name = f"{kind.replace(' ', '-')}-{number}"
            sound = make_sound(kind, number, seed)
            questions = [
                one for repeat in range(repeats) for one in _about(name, kind, sound, number // 2 % 2 == 0, repeat)
            ]
            yield name, sound, questions


def _about(unit: str, kind: str, sound: PlantedSound, long: bool, repeat: int) -> Iterator[Claim]:
    for wording, frame in enumerate(CLAIMED):
        for right, statement in ((True, sound.true), (False, sound.false)):
            id = f"{unit}-{'true' if right else 'false'}-{wording}~{repeat}"
            yield Claim(id, unit, kind, repeat, frame.format(claim=statement[wording]), right)
    true, false = sound.true[0] + LONGER * long, sound.false[0] + LONGER * (not long)
    for first, (one, other) in ((True, (true, false)), (False, (false, true))):
        text = CHOSEN.format(first=one, second=other)
        yield Claim(f"{unit}-{'first' if first else 'second'}~{repeat}", unit, kind, repeat, text, first, (one, other))
