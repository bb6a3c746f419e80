"""What may stand in a benchmark's definition and in a prompt: every field with its meaning; anything else is refused.

Conventions
    Whatever a definition cannot know (licence, size) is null, which is shown as unknown.
    A name `{key}` with one pair of braces is a key of the definition's `matrix`; `{{ name }}` is a column in a prompt.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _listed(value: Any) -> Any:
    """A list from text as it is typed on the command line: `a,b`."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_listed)]


class Strict(BaseModel):
    """A mapping that holds nothing unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(Strict):
    """One part of a prompt.

    Args:
        audio: the name of a column whose sound stands here.
        text: a template that is rendered here.
        when: a column; where the row has nothing in it, the part is left out.
    """

    audio: str | None = None
    text: str | None = None
    when: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Part:
        if (self.audio is None) == (self.text is None):
            raise ValueError("expected either 'audio' or 'text'")
        return self


def _part(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


AnyPart = Annotated[Part, BeforeValidator(_part)]


class Turn(Strict):
    """One message: who speaks, and its parts in order."""

    role: Literal["system", "user", "assistant"] = "user"
    content: list[AnyPart] = Field(min_length=1)


class Template(Strict):
    """How a question is put.

    Args:
        messages: for a model that is asked in words.
        fields: named inputs, for a model that fills fields.
        answer: post-processing that undoes the format the messages ask for, before the benchmark's own.
    """

    messages: list[Turn] | None = None
    fields: dict[str, AnyPart] | None = None
    answer: Names = []

    @model_validator(mode="after")
    def _some(self) -> Template:
        if not self.messages and not self.fields:
            raise ValueError("expected 'messages', 'fields' or both")
        if self.messages and self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's")
        return self


class PromptSpec(Template):
    """A prompt of its own file, with variants by model or by family of models.

    Args:
        version: of this file's form.
        summary: one sentence.
        variants: by the name of a model or family; what a variant does not say is the prompt's.
    """

    version: Literal[1]
    summary: str
    variants: dict[str, Template] = {}


class Expand(Strict):
    """One row that holds several questions.

    Args:
        field: the name under which a question finds its part.
        columns: the columns that hold them, by the name that joins the question's id.
        subset: the name of the subsets that they form.
    """

    field: str
    columns: dict[str, str] = Field(min_length=1)
    subset: str | None = None


class Kinds(Strict):
    """Rows of several kinds that are told apart by a column.

    Args:
        column: our name of the column. field: the name under which a question finds its kind.
        names: the constants of each kind, by a text that the column holds; the first that it holds counts.
    """

    column: str
    field: str = "kind"
    names: dict[str, dict[str, Any]] = Field(min_length=1)


class Data(Strict):
    """Where the rows are, and which of their columns are used under which name.

    Args:
        repository: of a data set on the Hugging Face hub, `OWNER/NAME`; or
        path: a folder or file, relative to the definition.
        revision: a commit, tag or branch; null for the newest.
        config, split: of the data set; a split of null means all.
        splits: several splits, asked as one benchmark; their names form the subset `split`.
        layout: `table` for rows with columns; `minimax` for texts and speakers in files.
        language: which of the layout's languages, where it has several.
        columns: the column by our name. `audio` is what the question is about and `reference` what is expected. A list of
            columns gives a list, without what is null.
        optional: our names whose column may be missing or null.
        id: the column that names a row; null numbers them.
        size: rows, or null where it is not known.
        expand: where one row holds several questions.
        kinds: where rows are of several kinds.
    """

    repository: str | None = Field(None, pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    path: str | None = None
    revision: str | None = None
    config: str | None = None
    split: str | None = None
    splits: Names | None = None
    layout: Literal["table", "minimax"] = "table"
    language: str | None = None
    columns: dict[str, str | list[str]] = Field(min_length=1)
    optional: Names = []
    id: str | None = None
    size: int | None = Field(None, ge=1)
    expand: Expand | None = None
    kinds: Kinds | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Data:
        if (self.repository is None) == (self.path is None):
            raise ValueError("expected either 'repository' or 'path'")
        if self.split is not None and self.splits is not None:
            raise ValueError("expected either 'split' or 'splits'")
        if self.layout == "minimax" and self.language is None:
            raise ValueError("the layout 'minimax' needs 'language'")
        return self


class MetricUse(Strict):
    """A metric with post-processing of its own, from the raw answer on, in place of the benchmark's."""

    name: str
    postprocess: Names


def _metric(value: Any) -> Any:
    return value if not isinstance(value, str) else value.strip()


class PublishedTable(Strict):
    """Numbers that somebody published.

    Args:
        source: where they stand.
        metric: which of the benchmark's metrics they are values of.
        scale: what they are multiplied by to be in the metric's unit: 0.01 for per cent.
        values: by model, as published.
    """

    source: str
    metric: str
    scale: float = 1.0
    values: dict[str, float] = Field(min_length=1)


class Parameters(Strict):
    """Of the generation, sent with every question."""

    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    stop: Names | None = None
    seed: int | None = None


class BenchmarkSpec(Strict):
    """One benchmark.

    Args:
        version: of this file's form.
        title, summary: a name for people, and one sentence.
        category: for tables, such as `ASR`.
        kind: which suite it belongs to.
        language: base code of the expected answer, or null.
        licence: of the data as its publisher names it, or null.
        paper: where it is described.
        upstream: its name in UltraEval-Audio, or null.
        wants: what the model must give back.
        data: rows and columns.
        fields: constants that every question has beside its columns.
        prompt: the name of a prompt, or one written here. Null for codecs, which are asked nothing.
        prompts: others, by the name of a model or family.
        postprocess: what an answer goes through before metrics see it.
        metrics: names, or names with a post-processing of their own.
        primary: the metric that stands for the benchmark.
        subsets: the column by the name of the subsets it forms.
        parameters: of the generation.
        published: numbers of others.
    """

    version: Literal[1]
    title: str
    summary: str
    category: str
    kind: Literal["understanding", "generation", "qa", "codec"]
    language: str | None = None
    licence: str | None = None
    paper: str | None = None
    upstream: str | None = None
    wants: Literal["text", "audio"] = "text"
    data: Data
    fields: dict[str, Any] = {}
    prompt: str | Template | None = None
    prompts: dict[str, str | Template] = {}
    postprocess: Names = []
    metrics: Annotated[list[Annotated[str, BeforeValidator(_metric)] | MetricUse], BeforeValidator(_listed)] = Field(
        min_length=1
    )
    primary: str
    subsets: dict[str, str] = {}
    parameters: Parameters = Parameters()
    published: list[PublishedTable] = []

    @model_validator(mode="after")
    def _asked(self) -> BenchmarkSpec:
        try:
            json.dumps(self.fields)
        except TypeError as error:
            raise ValueError(f"'fields' holds what JSON cannot: {error}") from error
        if (self.prompt is None) != (self.kind == "codec"):
            raise ValueError("a codec benchmark has no prompt, and every other has one")
        return self


FORM = {"matrix", "name", "extends"}
"""Fields of a definition that are gone once its entries are made."""

FIELDS = FORM | {
    name
    for schema in (BenchmarkSpec, Data, Expand, Kinds, MetricUse, PublishedTable, Parameters, PromptSpec, Turn, Part)
    for name in schema.model_fields
}
"""The names of all fields, to suggest the one that was meant."""
