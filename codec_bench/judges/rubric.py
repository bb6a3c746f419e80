"""Rubrics: what a judge is asked and how its reply is read, in YAML (`configs/judge`)."""

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
        version: of this file's form.
        summary: what it measures, one sentence.
        system, prompt: Jinja templates; they may read `question`, `answer` and `reference` (texts of foreign origin between
            marks that differ from item to item), `first` and `second` where answers are compared, and the data's columns.
        compares: whether the reference answer is rated beside the answer; the verdict is then a pair.
        swap: ask a second time with both answers in the other order, and take the mean.
        hears: whether the judge is given the sound of the answer.
        reply: how a reply is read: `rating` (one number of the range), `pair` (two), `yes-no`, or a published reader by its
            name in `codec_bench.judges.replies`.
        times: how often each question is asked. combine: `mean` or `majority` of the verdicts.
        needs: columns without which nothing can be asked.
        parameters: of the judge's generation.
        unit, range, higher_is_better: of the verdict.
        paper, source: where it is described.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    summary: str
    prompt: str
    system: str | None = None
    compares: bool = False
    swap: bool = False
    hears: bool = False
    reply: Literal["rating", "pair", "yes-no"] | Annotated[str, Field(pattern=r"^official/")]
    times: int = Field(1, ge=1, le=9)
    combine: Literal["mean", "majority"] = "mean"
    needs: list[str] = []
    parameters: dict[str, Any] = {"temperature": 0}
    unit: str = ""
    range: tuple[float, float]
    higher_is_better: bool = True
    paper: str = ""
    source: str = ""

    @property
    def digest(self) -> str:
        """32 bits over everything that changes a verdict, as hexadecimal."""
        held = self.model_dump(exclude={"summary", "paper", "source"})
        return hashlib.blake2b(json.dumps(held, sort_keys=True).encode(), digest_size=4).hexdigest()


@cache
def load_rubric(name: str) -> Rubric:
    """Reads a rubric.

    Raises:
        UnknownName: there is none of this name. UserError: its file does not fit.
    """
    from codec_bench.config import read_config

    return read_config(KIND, name, Rubric)


def rubric_names() -> list[str]:
    """Every rubric that can be named."""
    from codec_bench.config import config_names

    return config_names(KIND)
