"""The fields of every recipe, and shared parts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from codec_bench.benchmark.definition.schema import Strict
from codec_bench.config import invalid_value

UNIT = "unit"
"""The column that names dependent items where duplicates stay."""


class Draw(Strict):
    """A number drawn for every item."""

    uniform: tuple[float, float] | None = None
    choice: Annotated[list[float], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Draw:
        if (self.uniform is None) == (self.choice is None):
            raise invalid_value("one_of_fields", fields=["uniform", "choice"])
        if self.uniform is not None and self.uniform[0] > self.uniform[1]:
            raise invalid_value("uniform_order", first=self.uniform[0])
        return self

    def sample(self, random: Any) -> float:
        """Draw one number, uniformly or from the listed ones; `random` is a Generator."""
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
    """A source of recordings.

    Args:
        data: a folder, a manifest, or `hf:REPO`, as `--data` takes it.
        ids: patterns (`speech_*`) of included ids.
        without: patterns of excluded ids.
        licences: one text, or a text for each pattern of ids, the first match first. Recordings without one are
            excluded; an unknown licence must be stated as text.
    """

    data: str
    ids: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    licences: Annotated[dict[str, str], BeforeValidator(_licences), Field(min_length=1)]


class Form(Strict):
    """How the benchmark definition asks a model about an item.

    Args:
        kind: `qa` if the model gets the recording only, `understanding` if it gets a question too.
        prompt: a prompt by name.
        columns: the data set's column for each name that prompt and metrics use.
        postprocess: the steps that normalise an answer.
        metrics: the first is the primary one.
        unit: a column that names items of one recording, for intervals; None if each has its own.
    """

    kind: Literal["qa", "understanding"]
    prompt: str
    columns: dict[str, str]
    postprocess: tuple[str, ...] = ()
    metrics: Annotated[tuple[str, ...], Field(min_length=1)]
    unit: str | None = None


class BaseRecipe(Strict):
    """The fields of every recipe.

    Args:
        version: version of the file format.
        title, summary: the display name, and the content in one sentence.
        language: of questions and answers as a base code such as `en`; null for several.
        licence: of the data set; null if none was chosen.
        paper: the paper that the recipe follows, or null.
        retries: further tries of an item whose first try failed.
        duplicates: items with the same text or audio: `drop` all but the first, or `keep` them with one value in the
            column `unit`, so that intervals are over units.
        choices: remarks for the card: decisions that the paper leaves open.
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
        """Deviations that the title must state, such as a looser check."""
        return ()

    @property
    def full_title(self) -> str:
        """The title followed by the marks."""
        return f"{self.title} ({', '.join(self.marks)})" if self.marks else self.title

    @property
    def form(self) -> Form:
        """The form of requests about the items."""
        raise NotImplementedError(f"{type(self).__name__} does not define `form`")

    @property
    def unit(self) -> str | None:
        """The column that names dependent items; None if all are independent."""
        return UNIT if self.duplicates == "keep" else self.form.unit

    def limited(self, seed: int | None, limit: int | None) -> Self:
        """Copy the recipe with a seed and at most `limit` items; None keeps its own."""
        changed: dict[str, Any] = {} if seed is None else {"seed": seed}
        if limit is not None:
            name = "count" if "count" in type(self).model_fields else "limit"
            changed[name] = min(limit, getattr(self, name) or limit)
        return self.model_copy(update=changed)
