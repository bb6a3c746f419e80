"""The figures of a judge's test in sentences and tables."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.apps.judging.figures import FIRST, HIGH, LONG, MIDDLE, YES
from codec_bench.apps.judging.strengths import JudgedStrengths
from codec_bench.store.judge_successions import Succession
from codec_bench.store.judge_tests import HEARING, Figure, JudgeTest, PartTest

RIGHT, RIGHT_AT_LEAST, MOSTLY = 0.9, 0.5, 0.7
"""Thresholds of J for right, with its interval's lower end, and for mostly right."""
DISTINGUISHED_SHARE = 0.5
"""From this J on, with an interval above 0, a kind counts as distinguished."""
MOST_BIAS = 0.25
MOST_CHANGED, MOST_UNUSABLE = 0.05, 0.05
_PREFERS = {
    YES: ("says yes", "says no"),
    FIRST: ("takes the first", "takes the second"),
    LONG: ("takes the longer", "takes the shorter"),
    HIGH: ("gives high marks", "gives low marks"),
    MIDDLE: ("gives the middle of the range", "avoids the middle of the range"),
}


def findings(test_part: PartTest) -> list[str]:
    """Describe a judge by one part of its test, most important first, without subject."""
    about = [*_biases(test_part), *_restless(test_part.changed), *_partly(test_part), *_unusable_replies(test_part)]
    return [_trust(test_part.j), *about]


def _trust(j: Figure) -> str:
    """Describe in words how often the judge is right, from Youden's J."""
    if j.value is None:
        return "has no counted questions"
    low = j.value if j.low is None else j.low
    if low <= 0:
        return f"is no better than a coin (J {j.words})"
    right = j.value >= RIGHT and low >= RIGHT_AT_LEAST
    quality = "right" if right else "mostly right" if j.value >= MOSTLY else "better than a coin, and often wrong"
    return f"is {quality} (J {j.words})"


def _biases(test_part: PartTest) -> list[str]:
    """List the strong biases in words."""
    biases: dict[str, str] = {}
    for name, bias in test_part.biases.items():
        if bias.value is None or abs(bias.value) < MOST_BIAS or _may_be_0(bias):
            continue
        frequency = "nearly always" if abs(bias.value) > 0.9 else "too often"
        biases[name] = f"{_PREFERS[name][bias.value < 0]} {frequency} (bias {bias.words})"
    # Biases of order and length determine how high the marks are.
    decided = biases.keys() & {FIRST, LONG}
    return [text for name, text in biases.items() if not (decided and name in (HIGH, MIDDLE))]


def _may_be_0(figure: Figure) -> bool:
    return figure.low is not None and figure.high is not None and figure.low <= 0 <= figure.high


def _restless(changed: Figure) -> list[str]:
    if changed.value is None or changed.value < MOST_CHANGED or _may_be_0(changed):
        return []
    return [f"changes {100 * changed.value:.0f} % of its verdicts on repetition"]


def _partly(test_part: PartTest) -> list[str]:
    """Describe which kinds of questions the judge can tell, if there are others."""
    can = [name for name, one in test_part.kinds.items() if _is_distinguished(one)]
    cannot = [name for name, one in test_part.kinds.items() if not _is_distinguished(one)]
    return [f"can tell {', '.join(can)}, and cannot tell {', '.join(cannot)}"] if can and cannot else []


def _is_distinguished(figure: Figure) -> bool:
    return figure.value is not None and figure.value >= DISTINGUISHED_SHARE and (figure.low is None or figure.low > 0)


def _unusable_replies(test_part: PartTest) -> list[str]:
    """Describe how many questions the judge declined, answered unclearly or failed."""
    refused, unread, failed = test_part.refused, test_part.unread, test_part.failed
    counts = ((refused, "declines"), (unread, "replies with no clear verdict to"), (failed, "fails on"))
    known = [(count, label) for count, label in counts if count > MOST_UNUSABLE * test_part.asked]
    return [f"{label} {count:,} of {test_part.asked:,} questions" for count, label in known]


def part_name(name: str) -> str:
    """Return the name of a part in tables."""
    return "hearing" if name == HEARING else name.removeprefix("rating/").rpartition("-")[0]


BIASES = (YES, FIRST, LONG, HIGH, MIDDLE)
COLUMNS = ("part", "J", "changed", *BIASES, "asked", "declined", "unread", "failed")


def part_rows(test: JudgeTest) -> list[tuple[str, ...]]:
    """Build a row for each part, with the columns `COLUMNS`."""
    return [
        (
            part_name(name), test_part.j.words, test_part.changed.words,
            *(test_part.biases[bias].words if bias in test_part.biases else "" for bias in BIASES),
            *(f"{count:,}" for count in (test_part.asked, test_part.refused, test_part.unread, test_part.failed)),
        )
        for name, test_part in test.parts.items()
    ]  # fmt: skip


def kind_rows(test: JudgeTest) -> list[tuple[str, str, str]]:
    """Build the rows of J by kind: part, kind and figure."""
    return [
        (part_name(name), kind, one.words)
        for name, test_part in test.parts.items()
        for kind, one in test_part.kinds.items()
    ]


def sentences(test: JudgeTest) -> list[str]:
    """Describe the judge by each part."""
    return [f"{part_name(name)}: the judge {'; '.join(findings(test_part))}" for name, test_part in test.parts.items()]


SUCCESSION = ("rubric", "answers", "new less old", "equal", "ranks of systems", "without both verdicts")


def succession_rows(successions: Sequence[Succession]) -> list[tuple[str, ...]]:
    """Build a row for each rubric, with the columns `SUCCESSION`."""
    figures = lambda one: (one.offset.words, one.equal.words, one.ranks.words)  # noqa: E731
    return [(part_name(one.rubric), f"{one.offset.n:,}", *figures(one), f"{one.lost:,}") for one in successions]


def moved_rows(successions: Sequence[Succession]) -> list[tuple[str, str, str]]:
    """Build the rows of shifts by kind of items, largest first."""
    return [(part_name(one.rubric), kind, moved.words) for one in successions for kind, moved in one.kinds.items()]


def strengths_words(one: JudgedStrengths) -> list[str]:
    """List the basis of strengths as sentences: judge, comparisons, ties, and gaps."""
    notes = [
        f"{one.benchmark}: {part_name(one.rubric)}, {one.tested}; {one.found.duels:,} comparisons over "
        f"{one.found.units:,} units"
    ]
    if one.found.tie:
        notes.append(f"ties have the strength {one.found.tie:.2f} (Davidson's nu)")
    if one.lost:
        notes.append(f"{one.lost:,} answers have no verdict, and are in no comparison")
    return [*notes, *([one.found.note] if one.found.note else [])]
