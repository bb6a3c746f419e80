"""The kinds of listening test: what a rater is asked, what is written above the trials, and which values an answer may have.

Conventions
    An answer of the kinds `mushra` and `rating` is a whole number for one stimulus. An answer of `preference` is the id of
    the preferred stimulus, or `TIE`. An answer of `options` is the number of an option, from 0, or `NONE`. An answer of
    `review` is one of `DECISIONS`.
    The scale of `mushra` is the continuous quality scale of ITU-R BS.1534-3: 0 to 100 in five equal intervals. The words
    of `rating` are those of ITU-T P.800, annex B (quality) and annex D (degradation). 0 is for what cannot be rated higher
    than "nothing of it is there"; a test after P.800 takes the scale 1 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codec_bench.errors import UnknownName, UserError

TIE = "tie"
NONE = "none"
DECISIONS = ("accept", "edit", "drop")
SCALES = {"0-5": (0, 5), "1-5": (1, 5)}
MUSHRA_SCALE = (0, 100)
_QUALITY = {5: "Excellent", 4: "Good", 3: "Fair", 2: "Poor", 1: "Bad", 0: "Nothing usable"}
_DEGRADATION = {
    5: "Inaudible",
    4: "Audible but not annoying",
    3: "Slightly annoying",
    2: "Annoying",
    1: "Very annoying",
    0: "Nothing usable",
}
_ANSWER = {
    5: "Right and complete",
    4: "Right, with small flaws",
    3: "Mostly right",
    2: "Mostly wrong",
    1: "Wrong",
    0: "No answer",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of test.

    Args:
        name: its name. measures: what its value over all answers is called, by whether a reference is played openly.
        question: what is asked in every trial about sounds, and about the answers of a model.
        instructions: what a rater reads before the first trial, one paragraph each.
        needs_answers: whether it asks about the answers or the questions of a benchmark, so that a run of codecs has none.
    """

    name: str
    measures: tuple[str, str]
    question: tuple[str, str]
    instructions: tuple[str, ...]
    needs_answers: bool = False


_QUIET = (
    "Use headphones in a quiet room. Set a comfortable level with the first sounds, and do not change it afterwards."
)
_KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "mushra",
            ("MUSHRA score", "MUSHRA score"),
            ("How good does each sound, compared with the reference?",) * 2,
            (
                "Each trial has a reference and several numbered versions of it. Move the slider of every version to where it "
                "belongs on the scale from bad to excellent. Any difference from the reference counts as a flaw.",
                "One of the versions is the reference itself. Give it 100, and give 100 to nothing in which you hear a flaw.",
                "Change between the versions and the reference as often as you like. A slider moves only while its version is the one that you hear.",
                _QUIET,
            ),
        ),
        Kind(
            "rating",
            ("MOS", "DMOS"),
            ("How good is what you hear?", "How good is this answer?"),
            (
                "Each trial has one thing to rate. Choose the words that fit it best, and judge each trial for itself.",
                _QUIET,
            ),
        ),
        Kind(
            "preference",
            ("preference", "preference"),
            ("Which of the two is better?", "Which of the two answers is better?"),
            (
                "Each trial has two versions, A and B. Say which one is better, or that there is no difference to you.",
                _QUIET,
            ),
        ),
        Kind(
            "options",
            ("share read as right", "share read as right"),
            ("Which option does this answer mean?",) * 2,
            (
                "Each trial has a question with options, and an answer to it in free words. Choose the option that is closest to what "
                "the answer says. Do not ask yourself whether the answer is right.",
                "If the answer chooses none of the options, or several of them, choose “none of them”.",
            ),
            needs_answers=True,
        ),
        Kind(
            "review",
            ("reviewed", "reviewed"),
            ("Can this question stay as it is?",) * 2,
            (
                "Each trial has a question of a benchmark with its expected answer. Accept it, edit its words, or drop it and say why.",
                "Drop a question that cannot be answered from its sound, that has no right answer, or more than one.",
            ),
            needs_answers=True,
        ),
    )
}
KINDS = tuple(_KINDS)


_DEGRADED = "How do you hear the difference from the reference?"


def question_of(kind: Kind, *, beside_reference: bool, answers: bool) -> str:
    """What is asked in every trial."""
    return _DEGRADED if kind.name == "rating" and beside_reference else kind.question[answers]


def kind_of(name: str) -> Kind:
    """A kind by its name.

    Raises:
        UnknownName: there is none of this name.
    """
    if name not in _KINDS:
        raise UnknownName("kind of listening test", name, _KINDS)
    return _KINDS[name]


def scale_of(kind: str, scale: str) -> tuple[int, int]:
    """The lowest and the highest value of an answer; (0, 0) for a kind whose answers are no numbers.

    Raises:
        UserError: there is no such scale.
    """
    if scale not in SCALES:
        raise UserError(f"the scale is '{scale}'; expected {' or '.join(SCALES)}")
    return MUSHRA_SCALE if kind == "mushra" else SCALES[scale] if kind == "rating" else (0, 0)


def scale_words(kind: str, scale: tuple[int, int], *, beside_reference: bool, answers: bool) -> list[tuple[int, str]]:
    """The values of a rating scale with their words, the highest first; empty for other kinds."""
    if kind != "rating":
        return []
    words = _ANSWER if answers else _DEGRADATION if beside_reference else _QUALITY
    return [(value, word) for value, word in words.items() if scale[0] <= value <= scale[1]]


def is_valid(value: Any, kind: str, scale: tuple[int, int], stimuli: tuple[str, ...], options: int) -> bool:
    """Whether a value is one that an answer of this kind may have.

    Args:
        stimuli: the ids of the stimuli of the trial. options: how many options it has.
    """
    if kind in ("mushra", "rating"):
        return isinstance(value, int) and not isinstance(value, bool) and scale[0] <= value <= scale[1]
    if kind == "preference":
        return value == TIE or (isinstance(value, str) and value in stimuli)
    if kind == "options":
        return value == NONE or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < options)
    return value in DECISIONS
