"""Results of `judge compare`: judges that replace others, stored per user.

A succession is of one rubric and two judges with the model names their services reported; a new measurement replaces
the earlier one. The files are in `judge-successions` of the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codec_bench.config.paths import cache_folder
from codec_bench.messages import from_json
from codec_bench.messages.errors import UserError, on_disk
from codec_bench.store.files import read_json, write_json
from codec_bench.store.judge_tests import Figure


@dataclass(frozen=True, slots=True)
class Succession:
    """Two judges over the same answers, by one rubric.

    Args:
        rubric: its protocol without a judge.
        old, new: labels of the judges.
        served: model names of old and new.
        offset: the new judge's ratings minus the old one's.
        equal: share of answers with equal ratings.
        ranks: Spearman's correlation of the systems' means.
        kinds: the offset by subset, `COLUMN=VALUE`, largest first.
        lost: answers without a verdict of both.
    """

    rubric: str
    old: str
    new: str
    served: tuple[Sequence[str], Sequence[str]]
    offset: Figure
    equal: Figure
    ranks: Figure
    kinds: Mapping[str, Figure]
    lost: int

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> Succession:
        """The succession from `as_dict`."""
        offset, equal, ranks = (Figure(**held[name]) for name in ("offset", "equal", "ranks"))
        kinds = {name: Figure(**one) for name, one in held["kinds"].items()}
        old, new = held["served"]
        return cls(held["rubric"], held["old"], held["new"], (old, new), offset, equal, ranks, kinds, held["lost"])

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {**asdict(self), "words": self.words}

    @property
    def words(self) -> str:
        """For a table: `by NEW, minus 0.12 ± 0.03 relative to OLD`."""
        return self.words_in(1.0)

    def words_in(self, factor: float) -> str:
        """As `words`: the new judge's offset from the old, times `factor`."""
        old, new = self.display_names
        offset = self.offset
        if offset.value is None:
            return f"{old} and {new} marked no answer both"
        sign, margin = "minus" if offset.value < 0 else "plus", ""
        if offset.low is not None and offset.high is not None:
            margin = f" ± {factor * (offset.high - offset.low) / 2:.2f}"
        return f"by {new}, {sign} {abs(factor * offset.value):.2f}{margin} relative to {old}"

    @property
    def display_names(self) -> tuple[str, str]:
        """The names of the old and the new judge.

        If both have one label, the model names that the service reported are added.
        """
        if self.old != self.new:
            return self.old, self.new
        old, new = (f"{self.old} as {' and '.join(served)}" for served in self.served)
        return old, new

    def name_of(self, judge: str, served: Sequence[str]) -> str | None:
        """A judge's name here, by label and served model names (may be empty), or None."""
        for label, known, name in zip((self.old, self.new), self.served, self.display_names):
            if judge == label and (not served or not known or set(served) <= set(known)):
                return name
        return None


def _folder() -> Path:
    return cache_folder() / "judge-successions"


def keep_succession(succession: Succession) -> Path:
    """Save a result; returns the file."""
    of = json.dumps([succession.rubric, succession.old, succession.new, succession.served])
    path = _folder() / f"{hashlib.blake2b(of.encode(), digest_size=8).hexdigest()}.json"
    with on_disk("file_not_writable", path=path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, succession.as_dict())
    return path


def saved_successions() -> list[Succession]:
    """The saved results, in the order of the files' names, or raise UserError."""
    known = []
    for path in sorted(_folder().glob("*.json")):
        hint = "delete it; codec-bench judge compare measures the two judges again"
        try:
            known.append(Succession.from_dict(from_json(read_json(path, hint=hint))))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError("not_a_judge_comparison", path=path, cause=error, hint=hint) from error
    return known
