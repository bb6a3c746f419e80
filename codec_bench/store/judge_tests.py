"""What is known of judges: the results of `judge check`, kept for this user, and the words that stand beside numbers
which rest on a judge.

Conventions
    Every table, page, board and export takes the words from `judge_words`, so a number of a judge never stands without
    them. Each judge has a file in the folder `judge-tests` of the user's cache folder. A part of a test, which is what
    the judge hears or how it marks by one rubric, replaces the same part of an earlier test alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.config.paths import cache_folder
from codec_bench.errors import UserError, on_disk
from codec_bench.messages import Diagnostic, from_json
from codec_bench.messages.judges import figure_text
from codec_bench.store.files import read_json, write_json

HEARING = "hearing"
"""The part of a test that asks about sounds; the other parts are called by the protocols of their rubrics."""
NOT_TESTED = Diagnostic("judge_not_tested")
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval over independent units.

    Args:
        value: None if nothing was counted. low, high: None where no method holds; `note` then says why.
        n: how many cases it rests on. units: how many sounds, or facts.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    units: int = 0
    note: str | None = None

    @property
    def words(self) -> str:
        """The figure as text: `0.62 [0.50, 0.70]`."""
        return figure_text(self.value, self.low, self.high)


@dataclass(frozen=True, slots=True)
class PartTest:
    """What one part of a test found.

    Args:
        date: on which the test began. served: what the service called the models that replied.
        j: Youden's J: the share of true claims that are affirmed less that of false ones; of marks, the share of pairs
            in which the better answer gets the higher mark less that in which the worse one does. 1 is always right, 0
            is chance.
        kinds: the same by kind. changed: the share of verdicts that were another when asked again.
        biases: by name, from -1 to 1: how much more often it is chosen than the other side where either is right
            equally often.
        asked, refused, unread, failed: questions, replies that decline, replies that are no verdict, and calls that
            failed.
    """

    date: str
    served: Sequence[str]
    j: Figure
    kinds: Mapping[str, Figure]
    changed: Figure
    biases: Mapping[str, Figure]
    asked: int
    refused: int
    unread: int
    failed: int

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> PartTest:
        """The part that `asdict` wrote."""
        figures = {name: Figure(**held[name]) for name in ("j", "changed")}
        tables = {name: {key: Figure(**one) for key, one in held[name].items()} for name in ("kinds", "biases")}
        return cls(**{**held, **figures, **tables})


@dataclass(frozen=True, slots=True)
class JudgeTest:
    """What is known of one judge: its label in the protocols of verdicts, and the parts of its tests."""

    judge: str
    parts: Mapping[str, PartTest] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The test as its file holds it."""
        return {"schema": SCHEMA, "judge": self.judge, "parts": {name: asdict(one) for name, one in self.parts.items()}}


def _path(judge: str) -> Path:
    name = "".join(char if char.isalnum() or char in "._-" else "_" for char in judge)
    return (
        cache_folder()
        / "judge-tests"
        / f"{name[:80]}-{hashlib.blake2b(judge.encode(), digest_size=4).hexdigest()}.json"
    )


def saved_test(judge: str) -> JudgeTest:
    """What is known of a judge; without parts if nothing is.

    Raises:
        UserError: its file is not what was written.
    """
    path = _path(judge)
    if not path.is_file():
        return JudgeTest(judge)
    hint = "delete it; codec-bench judge check tests the judge again"
    held = from_json(read_json(path, hint=hint))
    try:
        return JudgeTest(held["judge"], _parts(held["parts"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"'{path}' is not the test of a judge: {error}", hint=hint) from error


def _parts(held: Mapping[str, Any]) -> dict[str, PartTest]:
    return {name: PartTest.from_dict(one) for name, one in held.items()}


def keep_test(test: JudgeTest) -> Path:
    """Keeps what was found beside the parts that are known from before; returns the file."""
    path = _path(test.judge)
    with on_disk(f"'{path.parent}' cannot be made"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, JudgeTest(test.judge, {**saved_test(test.judge).parts, **test.parts}).as_dict())
    return path


def judge_words(
    judge: str | None,
    protocol: str,
    listens: bool,
    served: Sequence[str] = (),
    recorded: Mapping[str, Any] | None = None,
) -> Diagnostic:
    """What stands beside a number that rests on a judge: `judge tested 2026-11-24: J 0.62 [0.50, 0.70]`, or that it was
    not tested.

    Args:
        judge: its label in the protocol of its verdicts; None if it is not known.
        protocol: of the verdicts, `rating/RUBRIC-HASH/JUDGE`. listens: whether the rubric gives the judge the sound of an
            answer.
        served: what the service called the models that gave the verdicts; empty if that is not known.
        recorded: tests of judges that the record of a run holds, by judge; what this user knows stands before them.
    """
    known = (recorded or {}).get(judge or "") or {}
    parts = {**_parts(known.get("parts", {})), **(saved_test(judge).parts if judge is not None else {})}
    if not parts:
        return NOT_TESTED
    part_test = parts.get(HEARING if listens else "/".join(protocol.split("/")[:2]))
    if part_test is None:
        return Diagnostic("judge_not_tested_on_sounds" if listens else "judge_not_tested_by_rubric")
    other = bool(served and part_test.served) and not set(served) <= set(part_test.served)
    models = {"tested": list(part_test.served), "served": list(served)} if other else {}
    return Diagnostic(
        "judge_tested", date=part_test.date, j=part_test.j.value, low=part_test.j.low, high=part_test.j.high, **models
    )
