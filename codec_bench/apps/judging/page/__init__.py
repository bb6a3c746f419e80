"""The pages of a judge's test and of a comparison: one HTML file each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codec_bench.apps.judging import words
from codec_bench.report.page.markup import SHARED, PageFiles, render
from codec_bench.store.files import write_text
from codec_bench.store.judge_successions import Succession
from codec_bench.store.judge_tests import Figure, JudgeTest

_LAYOUT = PageFiles(
    (__package__, "judging.html.j2"), ((SHARED, "style.css"), (SHARED, "tables.css"), (__package__, "judging.css")), ()
)
Cells = Sequence[str | Figure]
_WIDE = 100.0
"""Length of the value line, in units of the drawing."""


@dataclass(frozen=True, slots=True)
class Section:
    """A table with lead and notes; figures are drawn on a line from `least` to `most`."""

    id: str
    title: str
    lead: str
    heads: Sequence[str]
    rows: Sequence[Cells]
    notes: Sequence[str] = ()
    least: float = -1.0
    most: float = 1.0

    def at(self, value: float) -> float:
        """Return the position of a value on the line."""
        return round(_WIDE * (value - self.least) / ((self.most - self.least) or 1.0), 1)


@dataclass(frozen=True, slots=True)
class MovedAnswer:
    """An answer with both judges' marks, and its question."""

    rubric: str
    benchmark: str
    system: str
    id: str
    question: str
    answered: str
    old: float
    new: float


def write_check_page(
    test: JudgeTest, spent: Mapping[str, str], excluded: Sequence[tuple[str, str]], path: Path
) -> None:
    """Write the page of a judge's test.

    Args:
        spent: costs of each part in words.
        excluded: questions without a request, with reasons.
    """
    parts = test.parts
    kinds: list[Cells] = [
        [words.part_name(name), kind, one] for name, part_test in parts.items() for kind, one in part_test.kinds.items()
    ]
    rows: list[Cells] = [
        [words.part_name(name), part_test.j, part_test.changed.words,
            *(part_test.biases[of].words if of in part_test.biases else "–" for of in words.BIASES)]
        for name, part_test in parts.items()
    ]  # fmt: skip
    question_rows = [
        [words.part_name(name), part_test.date, ", ".join(part_test.served) or "unknown",
            spent.get(name) or "not known",
         *(f"{count:,}" for count in (part_test.asked, part_test.refused, part_test.unread, part_test.failed))]
        for name, part_test in parts.items()
    ]  # fmt: skip
    sections = [
        Section(
            "figures", "What kind of judge it is",
            "J is Youden's J: the share of true statements that the judge affirms, less the share of false ones; of "
            "marks, the share of pairs in which the better answer gets the higher mark, less the share in which the "
            "worse one does. 1 is always right, 0 is a coin. Changed is the share of verdicts that were others when "
            "the same question was put again. Biases go from −1 to 1, and 0 is none.",
            ("part", "J", "changed", *words.BIASES), rows, words.sentences(test),
        ),
        Section("kinds", "J by kind", "The 95 % intervals are over sounds, or over questions.", ("kind", "J", "part"),
            kinds),
        Section(
            "questions", "Questions",
            "A reply that declines, or that is no clear verdict, counts as a coin. Calls that failed count nowhere.",
            ("part", "date", "answered by", "cost", "asked", "declined", "unread", "failed"), question_rows,
            [f"excluded: {name}: {why}" for name, why in excluded],
        ),
    ]  # fmt: skip
    facts = {"Judge": test.judge, "Parts": str(len(parts))}
    _write(path, "judge check", f"Test of {test.judge}", facts, sections)


def write_compare_page(
    successions: Sequence[Succession], moved: Sequence[MovedAnswer], tested: Mapping[str, str], path: Path
) -> None:
    """Write the page of two judges over the same answers.

    Args:
        successions: by rubric, at least one.
        moved: the answers of most different marks.
        tested: test results by judge.
    """
    old, new = successions[0].display_names
    reach = max(
        [abs(end) for one in successions for of in (one.offset, *one.kinds.values()) for end in (of.low, of.high,
            of.value) if end is not None],
        default=1.0,
    )  # fmt: skip
    rows: list[Cells] = [
        [words.part_name(one.rubric), f"{one.offset.n:,}", one.offset, one.equal.words, one.ranks.words,
            f"{one.lost:,}"] for one in successions
    ]  # fmt: skip
    kinds: list[Cells] = [
        [kind, of, words.part_name(one.rubric)] for one in successions for kind, of in one.kinds.items()
    ]
    items = [
        [one.id, f"{one.old:g}", f"{one.new:g}", one.system, one.question, one.answered, one.benchmark,
            words.part_name(one.rubric)] for one in moved
    ]  # fmt: skip
    sections = [
        Section(
            "offset", "What changes",
            f"How much more or less {new} gives than {old} to the same answers, with its 95 % interval over questions "
            f"or speakers; how many answers "
            "both mark alike; and whether the systems keep their order (Spearman's correlation of their means).",
            words.SUCCESSION, rows,
            [f"rubric {words.part_name(one.rubric)}: {one.words}" for one in successions]
            + [f"the judge {name}: {test_text}" for name, test_text in tested.items()], -reach, reach,
        ),
        Section(
            "kinds", "Which kinds of items move", "By the subsets of the benchmarks, the farthest first.",
            ("kind of items", "new less old", "rubric"),
            kinds, (), -reach, reach,
        ),
        Section(
            "items", "Which items move most", "The answers whose two marks lie farthest apart.",
            ("item", "old", "new", "system", "asked", "answered", "benchmark", "rubric"), items,
        ),
    ]  # fmt: skip
    facts = {"Old judge": old, "New judge": new, "Answers": f"{sum(one.offset.n for one in successions):,}"}
    _write(path, "judge compare", f"{new} and {old}", facts, [one for one in sections if one.rows])


def _write(path: Path, command: str, title: str, facts: Mapping[str, str], sections: Sequence[Section]) -> None:
    write_text(
        path, render(_LAYOUT, {"command": command, "title": title, "facts": facts, "sections": sections}, {}, ())
    )
