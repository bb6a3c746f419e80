"""Recipes: the YAML files that say what data set is built, from what, and with which checks. A field that is not listed is refused.

Conventions
    What comes from chance says how: a number is fixed, `{uniform: [LOW, HIGH]}` is drawn evenly, and `{choice: [..]}` is one of a
    list. All draws follow from `seed`.
    Paths are relative to the recipe.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from codec_bench.benchmark.definition.finding import fit_lines
from codec_bench.benchmark.definition.schema import Strict
from codec_bench.config import config_names, load_yaml_with_lines
from codec_bench.errors import UnknownName, UserError


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


class SoundSource(Strict):
    """Where recordings come from.

    Args:
        data: a folder, a manifest, or `hf:REPO`, as `--data` takes it.
        is_what: what a question calls the sound, such as `the speech`.
        ids: patterns (`speech_*`) of the ids that are taken. without: patterns of ids that are left out.
        licences: the licence of the recordings: one text, or a text for each pattern of ids; the first pattern that fits counts. A
            recording without a licence is left out. Where it is not known, the text must say so.
    """

    data: str
    is_what: str
    ids: tuple[str, ...] = ("*",)
    without: tuple[str, ...] = ()
    licences: Annotated[dict[str, str], BeforeValidator(_licences), Field(min_length=1)]


class Wanted(Strict):
    """What every recipe says.

    Args:
        version: version of the file format.
        title, summary: the name that people read, and what the data set holds in one sentence.
        language: language of the questions and answers as a base code such as `en`; null if there is no single one.
        licence: the licence under which the data set is given on; null if none was chosen.
        paper: the paper that the recipe follows, or null.
        seed: where all random draws begin.
        retries: how many further tries an item has whose first try failed.
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
    choices: tuple[str, ...] = ()

    def limited(self, seed: int | None, limit: int | None) -> Self:
        """The same recipe with another seed, and for at most `limit` items; None changes nothing."""
        return self if seed is None else self.model_copy(update={"seed": seed})


class Excerpt(Strict):
    """The part of a recording that is used: `least_s` to `most_s` seconds from a random place, with faded ends of `fade_s`."""

    least_s: Annotated[float, Field(ge=0.4)] = 1.0
    most_s: Annotated[float, Field(ge=0.4, le=3600)] = 10.0
    fade_s: Annotated[float, Field(ge=0, le=0.2)] = 0.01

    @model_validator(mode="after")
    def _ordered(self) -> Excerpt:
        if self.most_s < self.least_s:
            raise ValueError(f"most_s is {self.most_s} and less than least_s, {self.least_s}")
        return self


Overlap = Literal["none", "partial", "full"]


class Level(Strict):
    """How loud a mixture is: its two sounds have `mean_lufs` on average, and no sample is above `peak_dbfs`; both are scaled together."""

    mean_lufs: Annotated[float, Field(ge=-60, le=-5)] = -26.0
    peak_dbfs: Annotated[float, Field(ge=-40, le=0)] = -1.0


class Asked(Strict):
    """What is asked about a mixture.

    Args:
        wordings: texts of the question, one of which is drawn; `{{ first }}` and `{{ second }}` are the names of the sounds.
        least: the least difference, in LU or seconds, at which the question is asked.
    """

    wordings: Annotated[list[str], Field(min_length=1)]
    least: float = Field(gt=0)


class Questions(Strict):
    """The questions about mixtures, whose answers follow from what was measured: which sound is louder, and which begins first."""

    louder: Asked | None = None
    ahead: Asked | None = None

    @model_validator(mode="after")
    def _some(self) -> Questions:
        if self.louder is None and self.ahead is None:
            raise ValueError("expected 'louder', 'ahead' or both")
        return self


class MixtureRecipe(Wanted):
    """A data set of mixtures of two recordings.

    Args:
        count: how many mixtures are made.
        rate_hz: the sample rate of the mixtures, which have one channel.
        first, second: where the two sounds come from.
        excerpt: which part of a recording is used.
        gap_db: by how much the first sound is louder than the second.
        overlap: the ways in which the sounds may overlap, one of which is drawn: `none` (one after the other, with `pause_s`
            between), `partial` (each is heard alone for a while) or `full` (the shorter one lies within the longer one).
        pause_s: the pause where the sounds do not overlap.
        level: how loud the mixture is.
        questions: what is asked.
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
    level: Level = Level()
    questions: Questions

    def limited(self, seed: int | None, limit: int | None) -> Self:
        """As `Wanted.limited`."""
        recipe = super().limited(seed, limit)
        return recipe if limit is None else recipe.model_copy(update={"count": min(limit, recipe.count)})


class TextSource(Strict):
    """Where the texts come from.

    Args:
        data: `hf:REPO`, a folder in the hub's layout, or a Parquet, JSON-lines, CSV or TSV file.
        config, split, revision: as for `hf:REPO`; null takes the default one, all splits, and the newest.
        question, choices, answer: the columns. `choices` is one column with a list, or a list of columns; the answer is a letter.
        group: a column that the funnel counts by, such as the subject; null for none.
        licence: of the texts. Where it is not known, the text must say so.
    """

    data: str
    config: str | None = None
    split: str | None = None
    revision: str | None = None
    question: str = "question"
    choices: str | tuple[str, ...] = "choices"
    answer: str = "answer"
    group: str | None = None
    licence: str = Field(min_length=1)


class Used(Strict):
    """A model and its options, as `--model` and `--set` take them."""

    model: str
    options: dict[str, Any] = Field(default_factory=dict)


class Voice(Strict):
    """A voice.

    Args:
        name: for the rows and the funnel.
        options: of the synthesiser, added to its own.
        fields: of its requests, such as `instruction`.
        recording: a sound file to imitate, which is given as `prompt_audio`; null for none.
    """

    name: str
    options: dict[str, Any] = Field(default_factory=dict)
    fields: dict[str, str] = Field(default_factory=dict)
    recording: str | None = None


def _other_names(voices: tuple[Voice, ...]) -> tuple[Voice, ...]:
    if len({voice.name for voice in voices}) < len(voices):
        raise ValueError("two voices have the same name")
    return voices


class Checks(Strict):
    """What a spoken text must fulfil.

    Args:
        recognisers: models that transcribe; each must read back what was meant.
        rule: by which texts are compared. unit: what one item is.
        error_rate: the highest error rate; 0 asks for exactly what was meant.
        least_s, most_s: how long the sound may be. most_silence_s: the longest pause in it.
        most_clipped: the highest share of samples at full scale.
    """

    recognisers: Annotated[tuple[Used, ...], Field(min_length=1)]
    rule: str = "by-language"
    unit: Literal["word", "char", "mixed"] = "char"
    error_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    least_s: Annotated[float, Field(ge=0.4)] = 0.5
    most_s: Annotated[float, Field(gt=0)] = 60.0
    most_silence_s: Annotated[float, Field(gt=0)] = 2.0
    most_clipped: Annotated[float, Field(ge=0, le=1)] = 0.001


class SpokenRecipe(Wanted):
    """A spoken version of a text benchmark with options.

    Args:
        texts: where the questions come from.
        template: what is said of a row, with `question` and `choices`.
        synthesiser: the model that speaks. voices: its voices, one of which is drawn for each item; a retry takes the next one.
        checks: what a spoken text must fulfil.
        loudness_lufs: the loudness of all items, as far as `peak_dbfs` allows.
        limit: make at most this many items, the first ones; null makes all.
    """

    kind: Literal["spoken"]
    language: str
    texts: TextSource
    template: str
    synthesiser: Used
    voices: Annotated[tuple[Voice, ...], AfterValidator(_other_names), Field(min_length=1)]
    checks: Checks
    loudness_lufs: Annotated[float, Field(ge=-60, le=-5)] = -23.0
    peak_dbfs: Annotated[float, Field(ge=-40, le=0)] = -1.0
    limit: Annotated[int | None, Field(ge=1)] = None

    def limited(self, seed: int | None, limit: int | None) -> Self:
        """As `Wanted.limited`."""
        recipe = super().limited(seed, limit)
        return recipe if limit is None else recipe.model_copy(update={"limit": min(limit, recipe.limit or limit)})


RECIPES: dict[str, type[MixtureRecipe | SpokenRecipe]] = {"mixture": MixtureRecipe, "spoken": SpokenRecipe}
Recipe = MixtureRecipe | SpokenRecipe


def read_recipe(name: str) -> tuple[Recipe, Path]:
    """Reads a recipe.

    Args:
        name: a recipe that comes with the project (`codec-bench list recipes`), or the path of a YAML file.

    Returns:
        The recipe, and the folder that its paths start from.

    Raises:
        UnknownName: there is no such recipe. UserError: with file, line and field of every mistake.
    """
    own = os.path.sep in name or name.endswith((".yaml", ".yml"))
    if not own and name not in config_names("recipe"):
        raise UnknownName("recipe", name, config_names("recipe"))
    file = Path(name) if own else files("codec_bench") / "configs" / "recipe" / f"{name}.yaml"
    document, lines = load_yaml_with_lines(file)
    if not isinstance(document, dict):
        raise UserError(f"'{name}' holds {type(document).__name__}; expected a mapping of names to values")
    kind = document.get("kind")
    if kind not in RECIPES:
        raise UserError(f"'{name}' is of the kind {kind!r}; expected one of {', '.join(RECIPES)}")
    recipe: Recipe = fit_lines(document, RECIPES[kind], str(name), lines)
    return recipe, Path(name).absolute().parent if own else Path.cwd()
