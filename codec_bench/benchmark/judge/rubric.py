"""Rubrics in YAML (`configs/judge`): what a judge is asked, and how its reply is read."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

KIND = "judge"


class Rubric(BaseModel):
    """One rubric.

    Args:
        version: version of the file format.
        summary: what the rubric measures, in one sentence.
        system, prompt: Jinja templates. They may read `question`, `answer` and `reference`, the data's columns, and
            `first` and
            `second` if two answers are compared. Texts from outside are put between marks that differ from item to
            item.
        compares: whether the judge rates the reference beside the answer; its verdict is then a pair.
        swap: whether the judge is asked a second time with the two answers in the other order; the mean counts.
        hears: whether the judge is given the sound of the answer.
        aligns: the rule that reads the option of an answer first (`judge.aligning.FIRST`); the judge reads the answers in which
            it finds none. Null for rubrics that rate.
        reply: how a reply is read: `rating` (one number in the range), `pair` (two), `yes-no`, `letter`, or the name of a
            published reader (see `codec_bench.benchmark.judge.replies`).
        times: how often each question is asked.
        combine: `mean` or `majority` of the verdicts.
        needs: columns without which a question cannot be judged.
        also: a metric of answers that must have the value 1 as well; where it has not, the answer gets the worst end of the range.
        parameters: parameters of the judge's generation.
        unit, range, higher_is_better: unit and range of the verdict, and whether a higher one is better.
        paper, source: where the rubric is described.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    summary: str
    prompt: str
    system: str | None = None
    compares: bool = False
    swap: bool = False
    hears: bool = False
    aligns: str | None = None
    reply: Literal["rating", "pair", "yes-no", "letter"] | Annotated[str, Field(pattern=r"^official/")]
    times: int = Field(1, ge=1, le=9)
    combine: Literal["mean", "majority"] = "mean"
    needs: list[str] = []
    also: str | None = None
    parameters: dict[str, Any] = {"temperature": 0}
    unit: str = ""
    range: tuple[float, float]
    higher_is_better: bool = True
    paper: str = ""
    source: str = ""

    @property
    def digest(self) -> str:
        """A hash of everything that changes a verdict: 32 bits in hexadecimal."""
        held = self.model_dump(exclude={"summary", "paper", "source"})
        for later in ("aligns", "also"):
            if held[later] is None:
                del held[later]  # the rubrics that were there before these fields keep their hashes
        return hashlib.blake2b(json.dumps(held, sort_keys=True).encode(), digest_size=4).hexdigest()


@cache
def load_rubric(name: str) -> Rubric:
    """Reads a rubric by its name. A file with `extends` holds only what differs from another rubric.

    Raises:
        UnknownName: there is no rubric of this name.
        UserError: the file has a field that is unknown, missing or wrong.
    """
    from codec_bench.config import fit, read_config

    document = read_config(KIND, name)
    base = document.pop("extends", None)
    return fit(
        {**(read_config(KIND, base) if base is not None else {}), **document}, Rubric, source=f"the rubric {name}"
    )


def rubric_names() -> list[str]:
    """The names of all rubrics."""
    from codec_bench.config import config_names

    return config_names(KIND)
