"""Results of `judge check`, stored per user, and words next to judges' numbers.

Every table, page, board and export takes the words from `judge_words`. Each judge has a file in `judge-tests` of the
user's cache folder. A new part of a test (hearing, or one rubric) replaces that part alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.config.paths import cache_folder
from codec_bench.messages import Diagnostic, from_json
from codec_bench.messages.errors import UserError, on_disk
from codec_bench.messages.judges import figure_text
from codec_bench.store.files import read_json, write_json

HEARING = "hearing"
"""The part of a test about sounds; other parts are named by the protocols of their rubrics."""
NOT_TESTED = Diagnostic("judge_not_tested")
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval over independent units.

    Args:
        value: None if nothing was counted.
        low, high: None where no method holds; `note` says why.
        n: number of cases.
        units: number of sounds, or facts.
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
    """Result of one part of a test.

    Args:
        date: start of the test.
        served: model names reported by the service.
        j: Youden's J: share of true claims affirmed minus that of false ones; for ratings, share of pairs ranked
            correctly minus incorrectly. 1 is always right, 0 is chance.
        kinds: the same by kind.
        changed: share of verdicts that changed when repeated.
        biases: by name, from -1 to 1: how much more often one of two equally correct sides is chosen.
        asked, refused, unread, failed: questions, declined replies, replies without a verdict, and failed calls.
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
        """The part from `asdict`."""
        figures = {name: Figure(**held[name]) for name in ("j", "changed")}
        tables = {name: {key: Figure(**one) for key, one in held[name].items()} for name in ("kinds", "biases")}
        return cls(**{**held, **figures, **tables})


@dataclass(frozen=True, slots=True)
class JudgeTest:
    """Tests of one judge, by its label in the protocols of verdicts."""

    judge: str
    parts: Mapping[str, PartTest] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The content of the test's file."""
        return {"schema": SCHEMA, "judge": self.judge, "parts": {name: asdict(one) for name, one in self.parts.items()}}


def _path(judge: str) -> Path:
    """Return the cached file of a judge's test; its name is readable and unique."""
    name = "".join(char if char.isalnum() or char in "._-" else "_" for char in judge)
    return (
        cache_folder()
        / "judge-tests"
        / f"{name[:80]}-{hashlib.blake2b(judge.encode(), digest_size=4).hexdigest()}.json"
    )


def saved_test(judge: str) -> JudgeTest:
    """The saved test of a judge; without parts if there is none, or raise UserError."""
    path = _path(judge)
    if not path.is_file():
        return JudgeTest(judge)
    hint = "delete it; codec-bench judge check tests the judge again"
    held = from_json(read_json(path, hint=hint))
    try:
        return JudgeTest(held["judge"], _parts(held["parts"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError("not_a_judge_test", path=path, cause=error, hint=hint) from error


def _parts(held: Mapping[str, Any]) -> dict[str, PartTest]:
    return {name: PartTest.from_dict(one) for name, one in held.items()}


def keep_test(test: JudgeTest) -> Path:
    """Save a judge's test, merged with earlier parts; returns the file."""
    path = _path(test.judge)
    with on_disk("file_not_writable", path=path.parent):
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
    """The words next to a judge's number: `judge tested 2026-11-24: J 0.62 [...]`.

    Args:
        judge: its label in the protocol of its verdicts, if known.
        protocol: of the verdicts, `rating/RUBRIC-HASH/JUDGE`.
        listens: whether the judge hears the answers.
        served: model names reported by the service.
        recorded: tests in the run's record, overridden by the user's.
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
