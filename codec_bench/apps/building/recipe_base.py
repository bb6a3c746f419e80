"""What every recipe says, and the parts that several kinds of recipes have."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from codec_bench.benchmark.definition.schema import Strict

UNIT = "unit"
"""The column that says which items are not independent, where duplicates are kept."""


class Draw(Strict):
    """A number that is drawn for every item."""

    uniform: tuple[float, float] | None = None
    choice: Annotated[list[float], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Draw:
        if (self.uniform is None) == (self.choice is None):
            raise ValueError("expected either 'uniform' or 'choice'")
        if self.uniform is not None and self.uniform[0] > self.uniform[1]:
            raise ValueError(f"the first number of 'uniform' is {self.uniform[0]}, and the second is lower")
        return self

    def sample(self, random: Any) -> float:
        """One number."""
        if self.uniform is not None:
            return float(random.uniform(*self.uniform))
        choice = self.choice or [0.0]
        return float(choice[int(random.integers(len(choice)))])


def _draw(value: Any) -> Any:
    return {"choice": [value]} if isinstance(value, (int, float)) and not isinstance(value, bool) else value


AnyDraw = Annotated[Draw, BeforeValidator(_draw)]


def _licences(value: Any) -> Any:
    return {"*": value} if isinstance(value, str) else value


class RecordingSource(Strict):
    """Where recordings come from.

    Args:
        data: a folder, a manifest, or `hf:REPO`, as `--data` takes it.
        ids: patterns (`speech_*`) of the ids that are taken. without: patterns of ids that are left out.
        licences: the licence of the recordings: one text, or a text for each pattern of ids; the first pattern that
            fits counts. A recording without a licence is left out. Where it is not known, the text must say so.
    """

    data: str
    ids: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    licences: Annotated[dict[str, str], BeforeValidator(_licences), Field(min_length=1)]


class Form(Strict):
    """How a model is asked with the items of a data set, for the benchmark definition beside it.

    Args:
        kind: `qa` if the recording is all that the model is given, `understanding` if it is asked about the recording.
        prompt: a prompt by name. columns: the data set's column for each name that prompt and metrics use.
        postprocess: the steps that make an answer comparable. metrics: of the answers; the first is the primary one.
        unit: a column that names the items which share a recording, so that intervals are over these; None if each has
            its own.
    """

    kind: Literal["qa", "understanding"]
    prompt: str
    columns: dict[str, str]
    postprocess: tuple[str, ...] = ()
    metrics: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: str | None = None


class BaseRecipe(Strict):
    """What every recipe says.

    Args:
        version: version of the file format.
        title, summary: the name that people read, and what the data set holds in one sentence.
        language: language of the questions and answers as a base code such as `en`; null if there is no single one.
        licence: the licence under which the data set is given on; null if none was chosen.
        paper: the paper that the recipe follows, or null.
        seed: where all random draws begin.
        retries: how many further tries an item has whose first try failed.
        duplicates: items with the same text or the same sound: `drop` all but the first, or `keep` them. Kept ones
            share a value of the column `unit`, so that intervals are over units and not over items.
        choices: further remarks for the card: what the paper leaves open and was chosen here.
    """

    version: Literal[1]
    title: str = Field(min_length=1)
    summary: str = Field(min_length=1)
    language: str | None = None
    licence: str | None = None
    paper: str | None = None
    seed: int = 0
    retries: Annotated[int, Field(ge=0, le=100)] = 2
    duplicates: Literal["drop", "keep"] = "drop"
    choices: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """What tells the data set from the one that its title alone would name, such as a looser check."""
        return ()

    @property
    def full_title(self) -> str:
        """The title with the marks behind it."""
        return f"{self.title} ({', '.join(self.marks)})" if self.marks else self.title

    @property
    def form(self) -> Form:
        """How a model is asked with the items."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a model is asked")

    @property
    def unit(self) -> str | None:
        """The column that names the items which are not independent of each other; None if all are."""
        return UNIT if self.duplicates == "keep" else self.form.unit

    def limited(self, seed: int | None, limit: int | None) -> Self:
        """The same recipe with another seed, and for at most `limit` items; None changes nothing."""
        changed: dict[str, Any] = {} if seed is None else {"seed": seed}
        if limit is not None:
            name = "count" if "count" in type(self).model_fields else "limit"
            changed[name] = min(limit, getattr(self, name) or limit)
        return self.model_copy(update=changed)
