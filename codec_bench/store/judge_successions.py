"""What is known of judges that take the place of others: the results of `judge compare`, kept for this user.

Conventions
    A succession is of one rubric and of two judges, each with what its service called the model that answered. Another
    measurement of the same two replaces the earlier one. The files are in the folder `judge-successions` of the user's
    cache folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codec_bench.config.paths import cache_folder
from codec_bench.errors import UserError, on_disk
from codec_bench.messages import from_json
from codec_bench.store.files import read_json, write_json
from codec_bench.store.judge_tests import Figure


@dataclass(frozen=True, slots=True)
class Succession:
    """Two judges over the same answers, by one rubric.

    Args:
        rubric: its protocol without a judge. old, new: the labels of the judges. served: what the services called the
            old one, and the new one.
        offset: the new judge's marks less the old one's, in the rubric's unit. equal: the share of answers that both
            mark alike.
        ranks: Spearman's correlation of the systems' means; a value of None where there are too few systems.
        kinds: the offset by subset, `COLUMN=VALUE`, the largest first. lost: answers that one of the two gave no
            verdict on.
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
        """The succession that `as_dict` wrote."""
        offset, equal, ranks = (Figure(**held[name]) for name in ("offset", "equal", "ranks"))
        kinds = {name: Figure(**one) for name, one in held["kinds"].items()}
        old, new = held["served"]
        return cls(held["rubric"], held["old"], held["new"], (old, new), offset, equal, ranks, kinds, held["lost"])

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {**asdict(self), "words": self.words}

    @property
    def words(self) -> str:
        """What a table says of it: `by NEW, minus 0.12 ± 0.03 beside OLD`."""
        return self.words_in(1.0)

    def words_in(self, factor: float) -> str:
        """The same in another unit; `factor` leads from the rubric's unit to it."""
        old, new = self.called
        offset = self.offset
        if offset.value is None:
            return f"{old} and {new} marked no answer both"
        reach = "" if offset.low is None or offset.high is None else f" ± {factor * (offset.high - offset.low) / 2:.2f}"
        return (
            f"by {new}, {'minus' if offset.value < 0 else 'plus'} {abs(factor * offset.value):.2f}{reach} beside {old}"
        )

    @property
    def called(self) -> tuple[str, str]:
        """What the judges are called: by their labels, or by what they were served as where the labels are the same."""
        return (
            (self.old, self.new)
            if self.old != self.new
            else (_as(self.old, self.served[0]), _as(self.new, self.served[1]))
        )

    def name_of(self, judge: str, served: Sequence[str]) -> str | None:
        """What a judge is called here; None if it is neither of the two.

        Args:
            judge: its label. served: what its service called the model that gave the verdicts; empty if that is not
                known.
        """
        for label, known, name in zip((self.old, self.new), self.served, self.called):
            if judge == label and (not served or not known or set(served) <= set(known)):
                return name
        return None


def _as(judge: str, served: Sequence[str]) -> str:
    return f"{judge} as {' and '.join(served)}"


def _folder() -> Path:
    return cache_folder() / "judge-successions"


def keep_succession(succession: Succession) -> Path:
    """Keeps what was found; returns the file."""
    of = json.dumps([succession.rubric, succession.old, succession.new, succession.served])
    path = _folder() / f"{hashlib.blake2b(of.encode(), digest_size=8).hexdigest()}.json"
    with on_disk(f"'{path.parent}' cannot be made"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, succession.as_dict())
    return path


def saved_successions() -> list[Succession]:
    """What is known, in the order of the files' names.

    Raises:
        UserError: a file is not what was written.
    """
    known = []
    for path in sorted(_folder().glob("*.json")):
        hint = "delete it; codec-bench judge compare measures the two judges again"
        try:
            known.append(Succession.from_dict(from_json(read_json(path, hint=hint))))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"'{path}' is no comparison of two judges: {error}", hint=hint) from error
    return known
