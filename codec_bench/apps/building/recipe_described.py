"""Recipes of questions about recordings that are described already: by a caption, by classes, by a transcript."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from codec_bench.apps.building.recipe_base import Form, RecordingSource, Wanted
from codec_bench.apps.building.recipe_spoken import Used
from codec_bench.benchmark.definition.schema import Strict


class Classes(Strict):
    """One question with options about every recording, whose answer is the class that a column names.

    Args:
        column: holds the class; a row without one is dropped.
        names: what the options call the classes, by their values in the column. A row with another value is dropped. Empty leaves the
            values as they are.
        wordings: texts of the question, one of which is drawn, or the name of a list that comes with the project. A text may name
            columns: `{{ word }}`.
        options: how many options a question has at the most.
        others: where the wrong options come from: `all` classes, classes drawn at `random`, or `written` by the writer.
    """

    column: str
    names: dict[str, str] = Field(default_factory=dict)
    wordings: str | Annotated[tuple[str, ...], Field(min_length=1)]
    options: Annotated[int, Field(ge=2, le=8)] = 4
    others: Literal["all", "random", "written"] = "random"


class Written(Strict):
    """Open questions with their answers, which the writer makes from the description.

    Args:
        each: how many questions about one recording, or about one segment of it.
        focus: a sentence that tells the writer what to ask about; null for anything that can be heard.
    """

    each: Annotated[int, Field(ge=1, le=20)] = 1
    focus: str | None = None


class Topics(Strict):
    """Long recordings are cut where the topic changes, and every segment is asked about by itself.

    Args:
        lines: the column with what is said and when: a list, or JSON text, of mappings with `start_s`, `end_s` and `text`.
        by: the model that says at which lines a new topic begins; null if every line is a segment already.
        least_s, most_s: how long a segment may be; shorter and longer ones are dropped.
    """

    lines: str
    by: Used | None = None
    least_s: Annotated[float, Field(gt=0)] = 5.0
    most_s: Annotated[float, Field(gt=0)] = 120.0


class Fact(Strict):
    """Something that was measured, so that the answer to a question about it can be checked by rule.

    Args:
        is_what: what the writer is told that such a question is about, such as `which sound is louder`.
        column: holds the right answer. An answer must name it, and no other value of this column.
        measure: the column with the difference that must be heard; null for none. least: how large it must be, whatever its sign.
    """

    is_what: str
    column: str
    measure: str | None = None
    least: Annotated[float, Field(ge=0)] = 0.0


class DescribedRecipe(Wanted):
    """Questions about recordings from what is known of them.

    Args:
        source: the recordings. Their further columns can be named in `description` and by `classes`, `topics` and `facts`.
        description: a template of what writer and judge are told of a recording; `text` is its transcript or caption, and `segment` what is
            said in a segment.
        classes, written: what is asked; one of the two.
        topics: how long recordings are cut; null for recordings that stay whole.
        facts: what can be checked by rule, by name.
        writer: the model that writes questions, or wrong options. judge: the model that checks them; null for no check.
        rubric: by which the answers of a model to open questions are rated.
        group: a column that the funnel counts by; null for none.
        limit: make at most this many questions, the first ones; null makes all.
    """

    kind: Literal["described"]
    language: str
    source: RecordingSource
    description: str = "{{ text }}"
    classes: Classes | None = None
    written: Written | None = None
    topics: Topics | None = None
    facts: dict[str, Fact] = Field(default_factory=dict)
    writer: Used | None = None
    judge: Used | None = None
    rubric: str = "audiobench-0-5"
    group: str | None = None
    limit: Annotated[int | None, Field(ge=1)] = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.classes is None) == (self.written is None):
            raise ValueError("expected either 'classes' or 'written'")
        needs_writer = self.written is not None or (self.classes is not None and self.classes.others == "written")
        if needs_writer and self.writer is None:
            raise ValueError("'writer' names the model that writes, and is missing")
        if not needs_writer and self.writer is not None:
            raise ValueError("nothing is written by a model here; leave 'writer' out")
        return self

    @property
    def form(self) -> Form:
        """A question about the recording, with options or with a free answer that a judge rates."""
        held = {"audio": "audio", "question": "question", "reference": "answer"}
        if self.classes is not None:
            return Form(
                kind="understanding", prompt="choice-letter", columns={**held, "choices": "choices"},
                postprocess=("option-letter",), metrics=("accuracy[exact]",),
            )  # fmt: skip
        columns = {**held, "meta_info": "description"}
        return Form(kind="understanding", prompt="question", columns=columns, metrics=(f"rating[{self.rubric}]",))

    def limited(self, seed: int | None, limit: int | None) -> Self:
        """As `Wanted.limited`."""
        recipe = super().limited(seed, limit)
        return recipe if limit is None else recipe.model_copy(update={"limit": min(limit, recipe.limit or limit)})
