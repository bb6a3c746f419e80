"""A rubric (`configs/judge`): a judge's prompt, reply reader and verdict scale."""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from codec_bench.benchmark.definition.loader import is_path
from codec_bench.benchmark.definition.schema import Parameters
from codec_bench.benchmark.judge.published import (
    COMBINED,
    FOLLOWS_RULE,
    MMAR_RUBRICS,
    PAIRS,
    READERS,
    SEVERAL_REPLIES,
)
from codec_bench.config import invalid_value
from codec_bench.messages.errors import UnknownName, UserError

KIND = "judge"
OWN_FIELDS = frozenset(
    ("answer", "reference", "whole_answer", "criteria", "criterion", "first", "second", "options", "rounds")
)
"""What a template of a rubric may read, in addition to the columns of a question."""
READER = 2
"""Version of the project's own readers; 2 refuses a reply whose reasoning ends in another verdict.

`preferred` is one ahead, since it reads plain sentences.
"""
_STEM = re.compile(r"[A-Za-z0-9][\w-]*", re.ASCII)
_RATING = re.compile(r"\s*rating\[(?P<rubric>[^\[\]]+)\]\s*")
_READS = re.compile(r"\{[{%](.*?)(?:[%}]\}|\Z)", re.DOTALL)
_TEXT_FIELDS = frozenset(
    ("question", "reference", "criteria", "criterion", "options", "language", "if", "else", "elif", "endif")
)
"""What a template may mention without showing an answer."""


_READ_PAIRS = ("pair", "preferred", *PAIRS)
"""The readers of two numbers: that of the reference or another answer, and that of the answer."""


def _checked(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the judge's decoding parameters if the schema of benchmarks allows them."""
    from codec_bench.config import fit

    try:
        fit(parameters, Parameters, source="parameters")
    except UserError as error:
        raise ValueError(error.message) from error
    return parameters


_SCALE = re.compile(r"(?:from|between)\s+(-?\d+(?:\.\d+)?)\s+(?:to|and)\s+(-?\d+(?:\.\d+)?)")
"""A scale as a prompt states it: `from 1 to 5`."""


class Rubric(BaseModel):
    """A judge's prompt, the form of its reply, and the range of its verdicts.

    Args:
        summary: what the rubric measures, in one sentence.
        system, prompt: Jinja templates. They may read `question`, `answer`, `reference`, `whole_answer` (before
            post-processing), the data's columns, `first` and `second` if two answers are compared, and for several
            rounds `rounds`, each with `question`, `answer` and `suggestion` from the columns `questions` and
            `suggestions`. External texts are between marks that differ from item to item.
        compares: whether the judge also rates the reference; its verdict is then a pair.
        swap: whether the judge also rates the two answers in the other order; the mean counts. `drawn` asks once, in an
            order by the row's number, as EmergentTTS-Eval's program does.
        hears: whether the judge gets the sound of the answer; `every` gives it the sounds of all rounds in order.
        aligns: the rule that reads an answer's option first (`judge.aligning.FIRST`); the judge gets the answers
            without one. Null for rubrics that rate.
        baseline: for `preferred`, the other answer if the command names no baseline: a column with a text, or `audio`
            for the question's sound. Null takes the column `baseline`, or else the expected answer.
        reply: the reader: `rating` (one number in the range), `pair` (two), `preferred` (the better of two, or a tie; a
            verdict that changes with the order is a tie), `yes-no`, `letter`, `nearest` (the judge is an embedding
            model that gets the whole answer and the options, without a prompt; the nearest option must be the right
            one), or a published reader (see `codec_bench.benchmark.judge.replies`).
        each: a column with a list of criteria, one request each (`criterion`). Null sends one request.
        times: how often each question is sent.
        combine: `mean` or `majority` of the verdicts, or `all`: the least, so every yes-no verdict must be yes.
        needs: columns without which a question cannot be judged.
        also: a metric of answers that must be 1 too; otherwise the answer gets the worst value without a judge.
        judged_by: the config of the model behind the published numbers; None if unknown. It changes nothing.
        parameters: parameters of the judge's generation.
        unit, range, higher_is_better: unit and range of the verdict, and whether a higher one is better.
        paper, source: where the rubric is described.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    summary: str
    prompt: str = ""
    system: str | None = None
    compares: bool = False
    swap: bool | Literal["drawn"] = False
    hears: bool | Literal["every"] = False
    aligns: str | None = None
    baseline: str | None = None
    reply: (
        Literal["rating", "pair", "preferred", "yes-no", "letter", "nearest"]
        | Annotated[str, Field(pattern=r"^official/")]
    )
    each: str | None = None
    times: int = Field(1, ge=1, le=9)
    combine: Literal["mean", "majority", "all"] = "mean"
    needs: list[str] = []
    also: str | None = None
    judged_by: str | None = None
    parameters: Annotated[dict[str, Any], AfterValidator(_checked)] = {"temperature": 0}
    unit: str = ""
    range: tuple[float, float]
    higher_is_better: bool = True
    paper: str = ""
    source: str = ""

    @model_validator(mode="after")
    def _has_a_prompt(self) -> Rubric:
        """Check that the prompt, reply form and range of the rubric agree."""
        if (self.reply == "nearest") != (not self.prompt):
            raise invalid_value("rubric_prompt_missing")
        read = set(re.findall(r"[a-z_]\w*", " ".join(_READS.findall(f"{self.system or ''}{self.prompt}"))))
        if self.prompt and not self.hears and read <= _TEXT_FIELDS:
            raise invalid_value("rubric_shows_no_answer")
        low, high = self.range
        if not low < high:
            raise invalid_value("rubric_range_order", low=low, high=high)
        if self.reply in ("yes-no", "letter", "preferred") and self.range != (0, 1):
            raise invalid_value("rubric_range_of_reply", low=low, high=high, reply=self.reply)
        scales = [(float(least), float(most)) for least, most in _SCALE.findall(self.prompt)]
        if self.reply in ("rating", "pair") and scales and not any(a <= high and b >= low for a, b in scales):
            least, most = scales[0]
            raise invalid_value("rubric_range_of_prompt", low=low, high=high, least=least, most=most)
        return self

    @model_validator(mode="after")
    def _suits_its_reader(self) -> Rubric:
        """Check that the rubric gives its reader all that changes the number."""
        if self.reply.startswith("official/") and self.reply not in READERS:
            raise invalid_value("reader_unknown", reader=self.reply, known=", ".join(sorted(READERS)))
        if self.reply == COMBINED and self.also != FOLLOWS_RULE:
            raise invalid_value(
                "reader_needs_metric", reader=COMBINED, metric=FOLLOWS_RULE, rubric="ifeval-audio-overall"
            )
        if self.reply == MMAR_RUBRICS and "criteria" not in self.needs:
            raise invalid_value("reader_needs_column", reader=MMAR_RUBRICS, column="criteria")
        if self.compares != (self.reply in _READ_PAIRS):
            raise invalid_value("reader_of_one_answer" if self.compares else "reader_of_two_answers", reader=self.reply)
        if (self.reply == "letter") != (self.aligns is not None):
            raise invalid_value("reader_of_letters")
        if self.reply in (*SEVERAL_REPLIES, "letter") and (self.each is not None or self.combine != "mean"):
            raise invalid_value("reader_of_all_replies", reader=self.reply, field="each" if self.each else "combine")
        if self.reply == "letter" and self.times > 1:
            raise invalid_value("reader_of_all_replies", reader=self.reply, field="times")
        return self

    @property
    def digest(self) -> str:
        """A hash of everything that changes a verdict: 32 bits in hexadecimal."""
        fields = self.model_dump(exclude={"summary", "paper", "source", "judged_by"})
        # Null fields are omitted, so a new field keeps the hashes of all rubrics; `system` was there from the start.
        held = {field: value for field, value in fields.items() if value is not None or field == "system"}
        if not self.reply.startswith("official/"):
            held["reader"] = READER + (self.reply == "preferred")
        return hashlib.blake2b(json.dumps(held, sort_keys=True).encode(), digest_size=4).hexdigest()


_user_rubrics: dict[str, Rubric] = {}
"""The rubrics of users' files in this process, by name."""


def own_rubric(path: str, folder: str = "") -> str:
    """Read a rubric from a user's file and register it for `load_rubric`.

    Args:
        folder: where a relative path begins; "" for the working directory.

    Returns:
        Its name: the file's name and the rubric's digest, distinct from published rubrics and other versions.

    Raises:
        UserError: there is no such file, its name does not fit, or it is no rubric; the message names the path.
    """
    from codec_bench.config import fit

    file = os.path.abspath(os.path.join(folder, os.path.expanduser(path)))
    stem, suffix = os.path.splitext(os.path.basename(file))
    if not os.path.isfile(file):
        raise UserError("no_rubric_file", file=file, hint="expected a YAML file, such as a copy of a published one")
    if not _STEM.fullmatch(stem) or suffix not in (".yaml", ".yml"):
        raise UserError("rubric_name_form", file=file, hint="letters, digits, hyphens and underscores, and then .yaml")
    rubric = fit(_document(file, ()), Rubric, source=file)
    name = f"{stem}-{rubric.digest}"
    _user_rubrics[name] = rubric
    return name


def is_own(name: str) -> bool:
    """Whether a name is that of a rubric of `own_rubric`."""
    return name in _user_rubrics


def with_own_rubrics(value: Any, folder: str) -> Any:
    """Replace each `rating[PATH]` in YAML values by the rubric's registered name.

    Args:
        value: a benchmark's definition or a part of it; it is not changed.
        folder: where relative paths begin.

    Returns:
        The new values.

    Raises:
        UserError: a rubric cannot be read.
    """
    if isinstance(value, dict):
        return {key: with_own_rubrics(one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [with_own_rubrics(one, folder) for one in value]
    match = _RATING.fullmatch(value) if isinstance(value, str) else None
    return f"rating[{own_rubric(match['rubric'], folder)}]" if match and is_path(match["rubric"]) else value


def load_rubric(name: str) -> Rubric:
    """Load a published rubric by name, or one of `own_rubric`.

    A file with `extends` holds only what differs from another rubric, which may extend a third.

    Raises:
        UnknownName: there is no rubric of this name.
        UserError: the file has a field that is unknown, missing or wrong, or extends itself.
    """
    return _user_rubrics[name] if name in _user_rubrics else _published(name)


@cache
def _published(name: str) -> Rubric:
    from codec_bench.config import fit

    return fit(_document(name, ()), Rubric, source=f"the rubric {name}")


def _document(name: str, extending: tuple[str, ...]) -> dict[str, Any]:
    """Load a rubric's YAML over the one that it extends; `extending` detects cycles."""
    from codec_bench.config import load_mapping, read_config

    if name in extending:
        raise UserError("rubric_extends_itself", name=name, known=" -> ".join([*extending, name]))
    is_user_file = is_path(name)
    document = load_mapping(name) if is_user_file else read_config(KIND, name)
    base = document.pop("extends", None)
    if base is None:
        return document
    if not isinstance(base, str):
        raise UserError("rubric_base_form", name=name, base=base)
    if is_user_file and is_path(base):
        base = os.path.normpath(os.path.join(os.path.dirname(name), os.path.expanduser(base)))
    try:
        return {**_document(base, (*extending, name)), **document}
    except UnknownName as error:
        raise UserError("rubric_base_faulty", name=name, base=base, cause=error.message, hint=error.hint) from error


def rubric_names() -> list[str]:
    """The names of all rubrics."""
    from codec_bench.config import config_names

    return config_names(KIND)
