"""The kinds of listening test, one entry of `kinds.yaml` each.

`trial`: `all` systems in one trial, `each` system in one, `pairs` of systems, or `none`. `answer`: a `number` for each
stimulus and scale; a `comparison` of the second of two with the first; a `choice` of a stimulus id, or `TIE`; an
`option` number from 0, or `NONE`; a `decision` of `DECISIONS`. With several scales an answer names `STIMULUS/SCALE`.
`mushra` has the scale of ITU-R BS.1534-3. The words of `rating` and `dcr` are those of ITU-T P.800, annex B and D, of
`ccr` annex E, of `p835` ITU-T P.835, of `bs1116` ITU-R BS.1116-3. 0 means that nothing is there; a P.800 test uses 1 to
5.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter

from codec_bench.config import load_yaml
from codec_bench.messages.errors import UnknownName, UserError

TIE = "tie"
NONE = "none"
DECISIONS = ("accept", "edit", "drop")
SCALES = {"0-5": (0, 5), "1-5": (1, 5)}
Words = tuple[tuple[int, str], ...]


def _words(highest: int, *words: str) -> Words:
    return tuple((highest - n, word) for n, word in enumerate(words))


_QUALITY = _words(5, "Excellent", "Good", "Fair", "Poor", "Bad", "Nothing usable")
_DEGRADATION = _words(
    5, "Inaudible", "Audible but not annoying", "Slightly annoying", "Annoying", "Very annoying", "Nothing usable"
)
_ANSWER = _words(
    5, "Right and complete", "Right, with small flaws", "Mostly right", "Mostly wrong", "Wrong", "No answer"
)
_COMPARED = _words(
    3, "Much better", "Better", "Slightly better", "About the same", "Slightly worse", "Worse", "Much worse"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """One scale of a kind; `words` of its values, the highest first."""

    name: str
    question: str
    words: Words


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of test.

    Args:
        measures: names of its overall value, without and with an open reference.
        question: of trials about sounds, and about the answers of a model.
        instructions: before the first trial, one paragraph each.
        trial, answer: as above.
        ends: the lowest and the highest number; None for the option `scale`.
        step: of numbers.
        scales: if more than one.
        labels: of the five intervals of a slider, from the lowest.
        open: whether the reference is open: `must`, `no`, `default` (can be switched off), or `may` (can be switched
            on).
        plays_reference: the open reference must be played before an answer.
        hidden: the reference is a stimulus.
        unknown: a third stimulus equals one of the others.
        difference: scores are relative to the hidden reference.
        exact: guesses are right half of the time.
        screening: default rules that exclude raters.
        needs_answers: it is about a benchmark's answers or questions, so runs of codecs are refused.
    """

    name: str
    measures: tuple[str, str]
    question: tuple[str, str]
    instructions: tuple[str, ...]
    trial: str = "each"
    answer: str = "number"
    ends: tuple[int, int] | None = (0, 0)
    step: float = 1
    scales: tuple[Scale, ...] = ()
    labels: tuple[str, ...] = ()
    open: str = "may"
    plays_reference: bool = False
    hidden: bool = False
    unknown: bool = False
    difference: bool = False
    exact: bool = False
    screening: tuple[str, ...] = ()
    needs_answers: bool = False

    @property
    def is_per_trial(self) -> bool:
        """Whether a trial has one answer for all stimuli."""
        return self.answer in ("comparison", "choice", "decision")

    @property
    def has_sides(self) -> bool:
        """Whether a trial presents two stimuli as A and B."""
        return self.answer in ("comparison", "choice")

    @property
    def is_share(self) -> bool:
        """Whether a score is between 0 and 1."""
        return self.answer in ("choice", "option")

    @property
    def sounds_only(self) -> bool:
        """Whether it needs a reference that answers of a benchmark lack."""
        return self.hidden or self.plays_reference

    def bounds(self, scale: tuple[int, int]) -> tuple[float, float]:
        """Return the lowest and highest score by the scale of an answer."""
        width = scale[1] - scale[0]
        return (0, 1) if self.is_share else (-width, width) if self.difference else scale

    @property
    def places(self) -> int:
        """The decimals of its values."""
        return 3 if self.is_share else 1 if self.ends == (0, 100) else 2


_KINDS = {
    kind.name: kind
    for kind in TypeAdapter(tuple[Kind, ...]).validate_python(load_yaml(files(__package__) / "kinds.yaml"))
}
KINDS = tuple(_KINDS)
_DEGRADED = "How do you hear the difference from the reference?"


def question_of(kind: Kind, *, has_reference: bool, answers: bool) -> str:
    """Return the question of every trial."""
    return _DEGRADED if kind.ends is None and has_reference else kind.question[answers]


def kind_of(name: str) -> Kind:
    """Return a kind by name; raises UnknownName."""
    if name not in _KINDS:
        raise UnknownName("listening_kind", name, _KINDS)
    return _KINDS[name]


def scale_of(kind: str, scale: str | None) -> tuple[int, int]:
    """Return the lowest and highest answer, or (0, 0) where answers are no numbers.

    Args:
        scale: of the kind `rating`: `0-5`, `1-5`, or None for the first.

    Raises:
        UserError: there is no such scale, or the kind has another one.
    """
    if scale is not None and scale not in SCALES:
        raise UserError("scale_unknown", scale=scale, known=" or ".join(SCALES))
    ends = kind_of(kind).ends
    if ends is None:
        return SCALES[scale or "0-5"]
    if scale is not None and ends != SCALES[scale]:
        has = f"has the scale {ends[0]} to {ends[1]}" if ends != (0, 0) else "has no scale of numbers"
        raise UserError("scale_of_other_kind", scale=scale, kind=kind, scale_of_kind=has, hint="leave --scale out")
    return ends


def scales_of(kind: Kind, scale: tuple[int, int], *, has_reference: bool, answers: bool) -> tuple[Scale, ...]:
    """Return the rating scales of a trial with words; none for sliders or options.

    Args:
        scale: lowest and highest answer.
        answers: whether answers of a benchmark are rated, not codecs.
    """
    if kind.scales:
        return kind.scales
    words = {
        "comparison": _COMPARED,
        "number": () if kind.labels else _ANSWER if answers else _DEGRADATION if has_reference else _QUALITY,
    }.get(kind.answer, ())
    points = tuple((value, word) for value, word in words if scale[0] <= value <= scale[1])
    question = question_of(kind, has_reference=has_reference, answers=answers)
    return (Scale("", question, points),) if points else ()


def is_valid(value: Any, kind: str, scale: tuple[int, int], stimuli: tuple[str, ...], options: int) -> bool:
    """Whether a value is a possible answer in a trial of this kind.

    Args:
        scale: lowest and highest number.
        stimuli: ids that can be chosen.
        options: the number of options.
    """
    listening_kind = kind_of(kind)
    if listening_kind.answer in ("number", "comparison"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return (
            is_number
            and scale[0] <= value <= scale[1]
            and abs(value / listening_kind.step - round(value / listening_kind.step)) < 1e-6
        )
    if listening_kind.answer == "choice":
        return (value == TIE and not listening_kind.exact) or (isinstance(value, str) and value in stimuli)
    if listening_kind.answer == "option":
        return value == NONE or is_option(value, options)
    return value in DECISIONS


def is_option(value: Any, options: int) -> bool:
    """Whether a value is the number of an option."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < options
