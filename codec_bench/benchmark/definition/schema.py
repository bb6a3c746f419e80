"""The fields of benchmark definitions and prompts. A field that is not listed here is refused.

Conventions
    What a definition does not know, such as a licence or a size, is null and is shown as unknown.
    `{key}` with one pair of braces is a key of the definition's `matrix`; `{{ name }}` is a column in a prompt.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from codec_bench.benchmark.definition.windows import WindowsSpec
from codec_bench.text.language import base_language
from codec_bench.types import Wants

BOOLEANS = "YAML reads yes, no, on and off as true and false: put such words in quotes"
"""What to do where a word was written and a truth value was read."""


def _listed(value: Any) -> Any:
    """A list from a text with commas, such as `a,b` on the command line."""
    return [item.strip() for item in value.split(",")] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_listed)]


class Strict(BaseModel):
    """A mapping that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ContentPart(Strict):
    """One part of a prompt: a sound, a text, or a text that has several wordings.

    Args:
        audio: name of the column that holds the sound.
        text: template of the text.
        wordings: templates of texts that ask for the same in other words; each question is asked in one of them.
        when: name of a column; the part is left out if the row has no value there.
    """

    audio: str | None = None
    text: str | None = None
    wordings: Annotated[list[str], Field(min_length=2)] | None = None
    when: str | None = None

    @model_validator(mode="after")
    def _one(self) -> ContentPart:
        if sum(value is not None for value in (self.audio, self.text, self.wordings)) != 1:
            raise ValueError("expected one of 'audio', 'text' and 'wordings'")
        if self.wordings is not None and len(set(self.wordings)) < len(self.wordings):
            raise ValueError("two of the wordings are the same")
        return self

    @property
    def texts(self) -> list[str]:
        """All templates of the part; none if it is a sound."""
        return self.wordings if self.wordings is not None else [] if self.text is None else [self.text]


def _parse_content_part(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


AnyPart = Annotated[ContentPart, BeforeValidator(_parse_content_part)]


class Turn(Strict):
    """One message: the role of its speaker, and its parts in order."""

    role: Literal["system", "user", "assistant"] = "user"
    content: list[AnyPart] = Field(min_length=1)


class Template(Strict):
    """How a question is put to a model.

    Args:
        messages: the conversation, for models that read messages.
        fields: the named inputs, for models that read fields.
        answer: post-processing steps that undo the format the messages ask for; they come before the benchmark's own.
        rounds: a column that holds several sounds, if the last message is put once for each of them; between two of
            them stands what the model itself answered to the one before. Null asks once.
    """

    messages: list[Turn] | None = None
    fields: dict[str, AnyPart] | None = None
    answer: Names = []
    rounds: str | None = None

    @model_validator(mode="after")
    def _some(self) -> Template:
        if not self.messages and not self.fields:
            raise ValueError("expected 'messages', 'fields' or both")
        if self.messages and self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's")
        if sum(content_part.wordings is not None for turn in self.messages or () for content_part in turn.content) > 1:
            raise ValueError("several parts have wordings; expected one at most")
        if any(content_part.wordings is not None for content_part in (self.fields or {}).values()):
            raise ValueError("a field has wordings; only a message may have them")
        last = self.messages[-1].content if self.messages else []
        if self.rounds is not None and all(content_part.audio != self.rounds for content_part in last):
            raise ValueError(f"'rounds' is '{self.rounds}', and the last message gives no sound of that name")
        return self

    @property
    def wordings(self) -> list[str]:
        """The wordings that a question may be asked in; none if there is one way to ask."""
        return next(
            (
                content_part.wordings
                for turn in self.messages or ()
                for content_part in turn.content
                if content_part.wordings
            ),
            [],
        )


class PromptSpec(Template):
    """A prompt in a file of its own, with variants for models or families of models.

    Args:
        version: version of the file format.
        summary: what the prompt asks for, in one sentence.
        variants: other templates, by the name of a model or a family. A model that reads messages is given the
            prompt's own if its variant has none, and likewise for fields.
    """

    version: Literal[1]
    summary: str
    variants: dict[str, Template] = {}


class Expand(Strict):
    """How one row that holds several questions is taken apart.

    Args:
        field: name of the field that holds the question's own value.
        columns: the columns that hold the values, by a name that is added to the question's id.
        subset: name of the subsets that the questions form, or null for none.
    """

    field: str
    columns: dict[str, str] = Field(min_length=1)
    subset: str | None = None


class Kinds(Strict):
    """How rows of several kinds are told apart.

    Args:
        column: the column that shows the kind, by the definition's name.
        field: name of the field that holds the question's kind.
        names: additional fields of each kind, by a text; a row is of the first kind whose text its column contains.
    """

    column: str
    field: str = "kind"
    names: dict[str, dict[str, Any]] = Field(min_length=1)


class Join(Strict):
    """Texts of another table that belong to a row, found by a key.

    Args:
        repository, config, split: where the other table is; null for the same.
        key: the column of the row that holds the key. other_key: the column of the other table that holds it; null for
            the same name.
        columns: the other table's column for each name that is added to the columns of the row. Of several rows of one
            key the first counts.
        unmatched: whether a row whose key the other table lacks is kept without these texts, or is left out and no
            question.
    """

    repository: str | None = Field(None, pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    config: str | None = None
    split: str | None = None
    key: str
    other_key: str | None = None
    columns: dict[str, str] = Field(min_length=1)
    unmatched: Literal["keep", "leave-out"] = "keep"


class Speaker(Strict):
    """Which column says who speaks. Items of one speaker resemble each other, so intervals are over speakers.

    Args:
        column: the column of the data. A cell that is blank or says `None`, `N/A`, `unknown` or the like names no
            speaker.
        pattern: a regular expression with one group, which finds the speaker in a cell that holds more, such as a path;
            null takes the cell whole. A cell that does not match names no speaker.
    """

    column: str
    pattern: str | None = None

    @model_validator(mode="after")
    def _group(self) -> Speaker:
        try:
            groups = 1 if self.pattern is None else re.compile(self.pattern).groups
        except re.error as error:
            raise ValueError(f"the pattern '{self.pattern}' is no regular expression: {error}") from error
        if groups != 1:
            raise ValueError(f"the pattern '{self.pattern}' has {groups} groups; expected one, which is the speaker")
        return self


def _decoded(value: Any) -> Any:
    """The word `own` stands for parameters that are all left to the model."""
    return dict.fromkeys(Parameters.model_fields) if value == "own" else value


def _speaker(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class Data(Strict):
    """Where the rows are, and which columns are used under which names. Either `repository` or `path` is given.

    Args:
        repository: a data set on the Hugging Face hub, `OWNER/NAME`.
        path: a folder or file, relative to the definition.
        obtain: how the data are had if they are on no hub, in one sentence. They then lie in `FOLDER/OWNER/NAME`, and
            `--data FOLDER` is given.
        revision: a commit, tag or branch of the repository; null for the newest.
        config, split: configuration and split of the data set; a split of null means all.
        configs: several configurations that form one benchmark.
        data_dir: a folder of the repository whose files alone are read; null for all that belong to the configuration.
        splits: several splits that form one benchmark; their names form the subset `split`.
        sounds: a folder of the repository, or an archive in it, in which the paths begin that rows give of their
            sounds; null if they begin at the table or at the root. An archive is unpacked once, into the cache.
        layout: `table` for rows with columns; `minimax` for texts and speakers in files; `air-bench` for AIR-Bench's
            two files of rows with their folders of sound, of which `config` names one; `seed-tts` for a list of
            Seed-TTS-Eval, and `listed` for a JSON file that holds a list of rows, rows by their ids, or a row a line,
            which `config` names; `tagged` for a table between tabs with the tags of sounds, which `config` names;
            `transcribed` for a list of ids and words or a folder of words, which `config` names; `esd` for the folders
            of ESD and `expresso` for the table of Expresso, with voices that are `neutral` or `emotional` as `config`
            says; `zerospeech` and `story-cloze` for pairs of sounds in the folder that `config` names.
        language: the language to read, for a layout that has several.
        columns: the data's column for each name that the definition uses. `audio` is the sound that the question is
            about, and `reference` is the expected answer. `a.b` is the value `b` in the column `a`, if no column is
            called so; of a list, `a.0` is the first entry. A list of columns gives a list of their values without null.
            A cell of `audio` may hold several sounds; a prompt gives all of them where it names `audio`.
        values: what the texts or numbers of a column stand for, such as `{reference: {"0": A, "1": B}}`; others stay as
            they are.
        optional: names from `columns` whose column may be missing or null; `speaker` for that of `speaker`.
        speaker: the column that says who speaks in the question's sound, or a column with a pattern; null if none does.
        id: the column that holds the id of a row; with null, rows are numbered.
        trials: of a benchmark of codecs: a list of trials of speaker verification, relative to the definition or to
            where the command runs.
        size: the number of questions that all the data give; null if unknown. A run over another number says so.
        rows_digest: a hash of what all questions say and of their expected answers, as `codec-bench validate --hub`
            gives it and checks it.
        types: the type of each column of the data in words, as `codec-bench validate --hub` gives it and checks it.
        pins: a file beside the definition that `codec-bench validate --hub --pins FILE` wrote; what is not stated here
            of `revision`, `size`, `rows_digest` and `types` (there `columns`) is taken from it, by the benchmark's
            name.
        expand: how a row that holds several questions is taken apart.
        join: texts of another table that belong to a row; null for none.
        answer_among_choices: `true` if `choices` are the wrong ones alone; the expected answer then joins them, and all
            stand in an order that the id of the question tells.
        where: the text, or the texts, that rows must have in a column (by the definition's name); null takes all rows.
        unless: the text, or the texts, that rows must not have in a column, in the same form.
        kinds: how rows of several kinds are told apart.
        scripts: further fields, each with the column (by the definition's name) whose text suggests by its script the
            language that the field
            holds: `ja` for a text with kana, `zh` for other Han characters, `ko` for Hangul, `en` for Latin letters.
    """

    repository: str | None = Field(None, pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    path: str | None = None
    obtain: str | None = None
    revision: str | None = None
    config: str | None = None
    configs: Names | None = None
    data_dir: str | None = None
    split: str | None = None
    splits: Names | None = None
    sounds: str | None = None
    layout: Literal[
        "table",
        "minimax",
        "air-bench",
        "seed-tts",
        "listed",
        "tagged",
        "transcribed",
        "esd",
        "expresso",
        "zerospeech",
        "story-cloze",
    ] = "table"
    language: str | None = None
    columns: dict[str, str | list[str]] = Field(min_length=1)
    values: dict[str, dict[str, str]] = {}
    optional: Names = []
    speaker: Annotated[Speaker | None, BeforeValidator(_speaker)] = None
    id: str | None = None
    trials: str | None = None
    size: int | None = Field(None, ge=1)
    rows_digest: str | None = Field(None, pattern="^[0-9a-f]{40}$")
    types: dict[str, str] | None = None
    pins: str | None = None
    expand: Expand | None = None
    kinds: Kinds | None = None
    scripts: dict[str, str] = {}
    join: Join | None = None
    answer_among_choices: Literal[True] | None = None
    where: dict[str, str | list[str]] | None = None
    unless: dict[str, str | list[str]] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Data:
        if (self.repository is None) == (self.path is None):
            raise ValueError("expected either 'repository' or 'path'")
        if self.split is not None and self.splits is not None:
            raise ValueError("expected either 'split' or 'splits'")
        if self.join is not None and (self.layout != "table" or self.repository is None):
            raise ValueError("'join' needs a table of a 'repository'")
        if self.layout == "minimax" and self.language is None:
            raise ValueError("the layout 'minimax' needs 'language'")
        if self.layout == "esd" and self.language not in ("en", "zh"):
            raise ValueError("the layout 'esd' needs 'language', en or zh")
        if self.layout in ("esd", "expresso") and self.config not in ("neutral", "emotional"):
            raise ValueError(f"the layout '{self.layout}' needs 'config', neutral or emotional")
        if self.layout == "air-bench" and self.config is None:
            raise ValueError("the layout 'air-bench' needs 'config', Foundation or Chat")
        if self.layout == "seed-tts" and self.config is None:
            raise ValueError("the layout 'seed-tts' needs 'config', the path of a list such as zh/hardcase.lst")
        if self.layout in ("zerospeech", "story-cloze") and self.config is None:
            raise ValueError(f"the layout '{self.layout}' needs 'config', the folder of the sounds such as lexical/dev")
        if self.layout == "listed" and self.config is None:
            raise ValueError("the layout 'listed' needs 'config', the path of a JSON file such as json/questions.json")
        if self.layout == "transcribed" and self.config is None:
            raise ValueError("the layout 'transcribed' needs 'config', the path of a list such as test/trans.txt")
        if self.layout == "tagged" and self.config is None:
            raise ValueError(
                "the layout 'tagged' needs 'config', the path of a table between tabs such as annotations.csv"
            )
        if self.configs is not None and (self.config is not None or self.layout != "table"):
            raise ValueError("'configs' is for tables, and stands in place of 'config'")
        return self


class MetricUse(Strict):
    """A metric with its own post-processing, which starts from the raw answer and replaces the benchmark's."""

    name: str
    postprocess: Names


def _words(fields: dict[str, Any]) -> dict[str, Any]:
    """Refuses lists with true or false in them: whoever wrote `[yes, no]` meant the words."""
    for name, held in fields.items():
        for value in held if isinstance(held, list) else ():
            if isinstance(value, bool):
                raise ValueError(f"'{name}' holds {value}; {BOOLEANS}")
    return fields


def _metric(value: Any) -> Any:
    return value if not isinstance(value, str) else value.strip()


class PublishedTable(Strict):
    """Published numbers of one metric.

    Args:
        source: where they were published.
        metric: the benchmark's metric that they are values of.
        scale: factor that converts them into the metric's unit, such as 0.01 for per cent.
        values: the numbers as published, by model.
    """

    source: str
    metric: str
    scale: float = 1.0
    values: dict[str, float] = Field(min_length=1)


_BASE_CODE = re.compile("[a-z]{2,3}")


def _base_code(language: str) -> str:
    if _BASE_CODE.fullmatch(language) is None:
        meant = base_language(language)
        expected = meant if _BASE_CODE.fullmatch(meant) else "one such as en, or null"
        raise ValueError(f"'{language}' is no base code of a language; expected {expected}")
    return language


class Parameters(Strict):
    """How answers are decoded, unless a paper or toolkit says otherwise: greedily, with at most 256 new tokens.

    What is null is left to the model. `Benchmark.decoding` says which of the defaults hold for spoken answers and for
    models that read fields.

    Args:
        max_tokens: the most new tokens of the answer's text.
        reasoning_tokens: tokens that a model which reasons may write before its answer, on top of `max_tokens`.
        temperature: 0 takes the most probable token each time.
        repetition_penalty: 1 is no penalty. Servers of open models take another one from the checkpoint unless told.
        top_p: the share of the probability that tokens are drawn from.
        stop: texts that end an answer.
        seed: where random numbers begin.
    """

    max_tokens: Annotated[int | None, Field(ge=1)] = 256
    reasoning_tokens: Annotated[int | None, Field(ge=0)] = 4096
    temperature: Annotated[float | None, Field(ge=0)] = 0.0
    repetition_penalty: Annotated[float | None, Field(gt=0)] = 1.0
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    stop: Names | None = None
    seed: int | None = None


class Passing(Strict):
    """How several answers to one question count as one result (`--repeats`), beside the mean over all of them.

    Args:
        rules: `all` (a question counts as passed if every answer passes), `any` (if one does) and `majority` (if more
            than half of them do).
        at: the value of the primary metric from which an answer passes, up or down as the metric is better; null for 1
            of the values 0 and 1, and then there are no rules for metrics with other values.
    """

    rules: Annotated[list[Literal["all", "any", "majority"]], BeforeValidator(_listed)] = ["all", "any", "majority"]
    at: float | None = None


class Failures(Strict):
    """How the toolkit of a benchmark counts an answer or a verdict that failed or cannot be read.

    Args:
        toolkit: its name. counts: whether such an item is `left-out` of the mean or counts `as-wrong`.
    """

    toolkit: str
    counts: Literal["left-out", "as-wrong"]


class Submission(Strict):
    """The file that a benchmark's service scores: a JSON list with an entry for every question.

    Args:
        answer: the field of the model's answer.
        fields: the fields of an entry, each with the name of the question's column, or `id`. A column without a value
            is left out.
        made: further fields, each with a text in which `<id>` stands for the question's id.
    """

    answer: str
    fields: dict[str, str] = Field(min_length=1)
    made: dict[str, str] = {}


ULTRAEVAL_AUDIO = Failures(toolkit="UltraEval-Audio", counts="left-out")
"""Read on 2026-11-23 in github.com/OpenBMB/UltraEval-Audio 1b68ac7, audio_evals/eval_task.py: an item that raises an
error in asking, post-processing or scoring is skipped before the results are aggregated, and a share of failures is
reported beside them."""


class BenchmarkSpec(Strict):
    """One benchmark.

    Args:
        version: version of the file format.
        title, summary: the name that people read, and what the benchmark asks in one sentence.
        category: the group that it belongs to in tables, such as `ASR`.
        kind: the suite that it belongs to.
        language: language of the expected answers as a base code such as `en`; null if there is no single one.
        licence: licence of the data as its publisher states it; null if unknown.
        paper: the paper that describes it, or null.
        upstream: its name in UltraEval-Audio, or null.
        wants: what a model must answer with: `text`, `audio`, or `likelihood` (how likely it finds each of two sounds).
        data: where the rows are, and their columns.
        fields: fields with the same value for every question.
        prompt: the name of a prompt, or a prompt written here; null for a benchmark of codecs.
        prompts: other prompts for single models or families, by their names.
        postprocess: the steps that read an answer before it is scored.
        metrics: names of metrics, or names with a post-processing of their own.
        primary: the metric that represents the benchmark in tables.
        subsets: a column for each kind of subset, by the name of the subsets.
        parameters: how answers are decoded; `own` leaves everything to the model.
        too_long: what happens to a sound that is longer than the model takes: `cut` asks about its beginning, `refuse`
            does not ask and counts the question as refused, `windows` asks about its parts and joins the answers. With
            `cut` and `refuse`, models that read long sounds in windows of their own are given them whole.
        windows: how the parts are made and the answers joined.
        passing: how several answers to one question count as one result.
        failures: how its toolkit counts failures; null if that is not known. Benchmarks of UltraEval-Audio that say
            nothing have its rule: whatever raised an error, from asking to scoring, is left out.
        submission: the file that the authors' service scores, where the expected answers are not published; null if
            they are.
        published: numbers that others published.
    """

    version: Literal[1]
    title: str
    summary: str
    category: str
    kind: Literal["understanding", "generation", "qa", "codec"]
    language: Annotated[str, AfterValidator(_base_code)] | None = None
    licence: str | None = None
    paper: str | None = None
    upstream: str | None = None
    wants: Wants = "text"
    data: Data
    fields: Annotated[dict[str, Any], AfterValidator(_words)] = {}
    prompt: str | Template | None = None
    prompts: dict[str, str | Template] = {}
    postprocess: Names = []
    metrics: Annotated[list[Annotated[str, BeforeValidator(_metric)] | MetricUse], BeforeValidator(_listed)] = Field(
        min_length=1
    )
    primary: str
    subsets: dict[str, str] = {}
    parameters: Annotated[Parameters, BeforeValidator(_decoded)] = Parameters()
    too_long: Literal["cut", "refuse", "windows"] = "cut"
    windows: WindowsSpec = WindowsSpec()
    passing: Passing = Passing()
    failures: Failures | None = None
    submission: Submission | None = None
    published: list[PublishedTable] = []

    @model_validator(mode="before")
    @classmethod
    def _counted_as_upstream(cls, held: Any) -> Any:
        upstream = isinstance(held, dict) and held.get("upstream") is not None
        return {"failures": ULTRAEVAL_AUDIO.model_dump(), **held} if upstream else held

    @model_validator(mode="after")
    def _check_request(self) -> BenchmarkSpec:
        try:
            json.dumps(self.fields)
        except TypeError as error:
            raise ValueError(f"'fields' has a value that JSON cannot hold: {error}") from error
        if (self.prompt is None) != (self.kind == "codec"):
            raise ValueError("a benchmark of kind 'codec' must have no prompt, and every other benchmark needs one")
        return self


FORM = {"matrix", "name", "extends"}
"""Fields of a definition that are used to make its entries and are not part of them."""

_TOP = "the top of the file"
_SCHEMAS: dict[str, type[BaseModel]] = {
    _TOP: BenchmarkSpec, "'data'": Data, "'data.expand'": Expand, "'data.kinds'": Kinds, "'data.join'": Join, "'data.speaker'": Speaker,
    "an entry of 'metrics'": MetricUse, "an entry of 'published'": PublishedTable, "'parameters'": Parameters, "'passing'": Passing,
    "'windows'": WindowsSpec, "'failures'": Failures, "'submission'": Submission, "'prompt'": PromptSpec, "an entry of 'messages'": Turn,
    "an entry of 'content'": ContentPart,
}  # fmt: skip
FIELDS = {
    name: [
        location
        for location, schema in _SCHEMAS.items()
        if name in schema.model_fields or (location == _TOP and name in FORM)
    ]
    for name in FORM.union(*(schema.model_fields for schema in _SCHEMAS.values()))
}
"""The names of all fields and where each may stand, for what to do where a name is misspelled or stands in the wrong
place.
"""
