"""Recipes: YAML files with the sources, steps and checks of a data set.

Unknown fields are refused. A number is fixed, `{uniform: [LOW, HIGH]}` or `{choice: [..]}`. All draws follow from
`seed`. Paths are relative to the recipe.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from codec_bench.apps.building.recipe_base import AnyDraw, BaseRecipe, Draw, Form, RecordingSource
from codec_bench.apps.building.recipe_spoken import JoinedRecipe, SpokenRecipe, Used
from codec_bench.benchmark.definition.finding import fit_lines
from codec_bench.benchmark.definition.schema import Strict
from codec_bench.config import config_names, invalid_value, load_yaml_with_lines
from codec_bench.messages.errors import UnknownName, UserError


class Classes(Strict):
    """One question about every recording; the right option is the class in a column.

    Args:
        column: holds the class; a row without one is dropped.
        names: the options' names of the classes, by value; other values are dropped. Empty uses the values themselves.
        wordings: texts of the question (one is drawn), or the name of a list of the project. A text may name
            columns: `{{ word }}`.
        options: the highest number of options.
        others: source of the wrong options: `all` classes, classes drawn at `random`, or `written` by the writer.
    """

    column: str
    names: dict[str, str] = Field(default_factory=dict)
    wordings: str | Annotated[tuple[str, ...], Field(min_length=1)]
    options: Annotated[int, Field(ge=2, le=8)] = 4
    others: Literal["all", "random", "written"] = "random"


class Written(Strict):
    """Open questions with answers, which the writer makes from the description.

    Args:
        each: how many questions about one recording or segment.
        focus: a sentence that tells the writer what to ask about; null for anything audible.
    """

    each: Annotated[int, Field(ge=1, le=20)] = 1
    focus: str | None = None


class Topics(Strict):
    """Cuts long recordings at changes of topic; each segment has its questions.

    Args:
        lines: the column with timed lines: a list, or JSON text, of mappings with `start_s`, `end_s` and `text`.
        by: the model that finds the lines with a new topic; null if every line is a segment.
        least_s, most_s: bounds of a segment; others are dropped.
    """

    lines: str
    by: Used | None = None
    least_s: Annotated[float, Field(gt=0)] = 5.0
    most_s: Annotated[float, Field(gt=0)] = 120.0


class Fact(Strict):
    """A measured fact, by which a rule checks the answer to a question.

    Args:
        is_what: describes the subject to the writer, such as `which sound is louder`.
        column: holds the right answer. An answer must name it, and no other value of this column.
        measure: the column with the audible difference; null for none.
        least: its smallest absolute value.
    """

    is_what: str
    column: str
    measure: str | None = None
    least: Annotated[float, Field(ge=0)] = 0.0


class DescribedRecipe(BaseRecipe):
    """A recipe of questions about recordings, from their metadata or transcripts.

    Args:
        source: the recordings. Further columns can be named in `description`, `classes`, `topics` and `facts`.
        description: a template for writer and judge; `text` is the transcript or caption, `segment` that of a segment.
        classes, written: the questions; one of the two.
        topics: how long recordings are cut; null for whole ones.
        facts: rules for checks, by name.
        writer: the model for questions or wrong options.
        judge: the model for checks; null for none.
        rubric: rates a model's answers to open questions.
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
    def _check_complete(self) -> Self:
        """Validate that classes, written questions and the writer model fit together."""
        if (self.classes is None) == (self.written is None):
            raise invalid_value("one_of_fields", fields=["classes", "written"])
        needs_writer = self.written is not None or (self.classes is not None and self.classes.others == "written")
        if needs_writer and self.writer is None:
            raise invalid_value("writer_missing")
        if not needs_writer and self.writer is not None:
            raise invalid_value("writer_unused")
        return self

    @property
    def form(self) -> Form:
        """The benchmark's form: a question about audio, with options or judged freely."""
        held = {"audio": "audio", "question": "question", "reference": "answer"}
        if self.classes is not None:
            return Form(
                kind="understanding", prompt="choice-letter", columns={**held, "choices": "choices"},
                postprocess=("option-letter",), metrics=("accuracy[exact]",), unit="recording",
            )  # fmt: skip
        columns, metrics = {**held, "meta_info": "description"}, (f"rating[{self.rubric}]",)
        return Form(kind="understanding", prompt="question", columns=columns, metrics=metrics, unit="recording")


class SoundSource(RecordingSource):
    """Recordings to mix. The first arguments are those of `RecordingSource`.

    Args:
        is_what: what a question calls the sound, such as `the speech`.
    """

    is_what: str


class Excerpt(Strict):
    """An excerpt of `least_s` to `most_s` seconds, faded over `fade_s`."""

    least_s: Annotated[float, Field(ge=0.4)] = 1.0
    most_s: Annotated[float, Field(ge=0.4, le=3600)] = 10.0
    fade_s: Annotated[float, Field(ge=0, le=0.2)] = 0.01

    @model_validator(mode="after")
    def _ordered(self) -> Excerpt:
        if self.most_s < self.least_s:
            raise invalid_value("most_below_least", most_s=self.most_s, least_s=self.least_s)
        return self


Overlap = Literal["none", "partial", "full"]


class MixtureLevel(Strict):
    """A mixture's level: mean loudness of its two sounds, and the peak limit."""

    mean_lufs: Annotated[float, Field(ge=-60, le=-5)] = -26.0
    peak_dbfs: Annotated[float, Field(ge=-40, le=0)] = -1.0


class QuestionSpec(Strict):
    """A question about a mixture.

    Args:
        wordings: texts of the question (one is drawn); `{{ first }}` and `{{ second }}` name the sounds.
        least: the smallest difference for the question, in LU or seconds.
    """

    wordings: Annotated[list[str], Field(min_length=1)]
    least: float = Field(gt=0)


class Questions(Strict):
    """Questions that measurement answers: which is louder, which begins first."""

    louder: QuestionSpec | None = None
    ahead: QuestionSpec | None = None

    @model_validator(mode="after")
    def _check_any(self) -> Questions:
        if self.louder is None and self.ahead is None:
            raise invalid_value("any_of_fields", fields=["louder", "ahead"])
        return self


class MixtureRecipe(BaseRecipe):
    """A data set of mixtures of two recordings.

    Args:
        rate_hz: the sample rate of the mixtures, which have one channel.
        gap_db: by how much the first sound is louder than the second.
        overlap: the drawn kinds of overlap: `none` (one after the other, with `pause_s` between), `partial` (each is
            alone for a while) or `full` (the shorter one lies within the longer one).
    """

    kind: Literal["mixture"]
    count: int = Field(ge=1)
    rate_hz: Annotated[int, Field(ge=8_000, le=192_000)] = 16_000
    first: SoundSource
    second: SoundSource
    excerpt: Excerpt = Excerpt()
    gap_db: AnyDraw
    overlap: Annotated[tuple[Overlap, ...], Field(min_length=1)] = ("none", "partial", "full")
    pause_s: AnyDraw = Draw(choice=[0.0])
    level: MixtureLevel = MixtureLevel()
    questions: Questions

    @property
    def form(self) -> Form:
        """A written question with options about the recording."""
        return Form(
            kind="understanding",
            prompt="choice-letter",
            columns={"audio": "audio", "question": "question", "choices": "choices", "reference": "answer"},
            postprocess=("option-letter",),
            metrics=("accuracy[exact]",),
        )


Recipe = DescribedRecipe | JoinedRecipe | MixtureRecipe | SpokenRecipe
RECIPES: dict[str, type[Recipe]] = {
    "described": DescribedRecipe,
    "joined": JoinedRecipe,
    "mixture": MixtureRecipe,
    "spoken": SpokenRecipe,
}


def read_recipe(name: str) -> tuple[Recipe, Path]:
    """Read a recipe by name or path; returns it with the folder of its paths.

    Raises:
        UnknownName: there is no such recipe.
        UserError: with file, line and field of every mistake.
    """
    is_path = os.path.sep in name or name.endswith((".yaml", ".yml"))
    if not is_path and name not in config_names("recipe"):
        raise UnknownName("recipe", name, config_names("recipe"))
    file = Path(name) if is_path else files("codec_bench") / "configs" / "recipe" / f"{name}.yaml"
    document, lines = load_yaml_with_lines(file)
    if not isinstance(document, dict):
        raise UserError("mapping_expected", path=name, type=type(document).__name__)
    kind = document.get("kind")
    if kind not in RECIPES:
        raise UserError("recipe_kind", name=name, kind=kind, known=", ".join(RECIPES))
    recipe: Recipe = fit_lines(document, RECIPES[kind], str(name), lines)
    return recipe, Path(name).absolute().parent if is_path else Path.cwd()
