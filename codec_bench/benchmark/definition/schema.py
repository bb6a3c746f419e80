"""The fields of benchmark definitions and prompts. Any other field is refused.

An unknown fact, such as a licence or a size, is null and shown as unknown. `{key}` with one pair of braces is a key of
the definition's `matrix`; `{{ name }}` is a column in a prompt.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from codec_bench.benchmark.definition.windows import WindowsSpec
from codec_bench.config import invalid_value
from codec_bench.text.language import base_language
from codec_bench.types import Wants

BOOLEANS = "YAML reads yes, no, on and off as true and false: put such words in quotes"
"""The hint for a truth value where a word is expected."""


def _listed(value: Any) -> Any:
    """Split a text at its commas, such as `a,b` on the command line."""
    return [item.strip() for item in value.split(",")] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_listed)]


class Strict(BaseModel):
    """A mapping that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ContentPart(Strict):
    """One part of a prompt: a sound, a text, or a text with several wordings.

    Args:
        audio: name of the column that holds the sound.
        text: template of the text.
        wordings: templates of the same question in other words; each question gets one of them.
        when: name of a column; a row without a value there omits the part.
    """

    audio: str | None = None
    text: str | None = None
    wordings: Annotated[list[str], Field(min_length=2)] | None = None
    when: str | None = None

    @model_validator(mode="after")
    def _one(self) -> ContentPart:
        if sum(value is not None for value in (self.audio, self.text, self.wordings)) != 1:
            raise invalid_value("one_of_fields", fields=["audio", "text", "wordings"])
        if self.wordings is not None and len(set(self.wordings)) < len(self.wordings):
            raise invalid_value("wordings_alike")
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
    """The prompt that puts a question to a model.

    Args:
        messages: the conversation, for models that read messages.
        fields: the named inputs, for models that read fields.
        answer: post-processing steps that undo the format of the messages, before the benchmark's own steps.
        rounds: a column of several sounds: the last message is sent once for each, with the model's own answers in
            between. Null asks once.
    """

    messages: list[Turn] | None = None
    fields: dict[str, AnyPart] | None = None
    answer: Names = []
    rounds: str | None = None

    @model_validator(mode="after")
    def _check_messages(self) -> Template:
        """Check that there are messages or fields, with consistent wordings and rounds."""
        if not self.messages and not self.fields:
            raise invalid_value("any_of_fields", fields=["messages", "fields"])
        if self.messages and self.messages[-1].role != "user":
            raise invalid_value("last_message_role")
        if sum(content_part.wordings is not None for turn in self.messages or () for content_part in turn.content) > 1:
            raise invalid_value("wordings_of_parts")
        if any(content_part.wordings is not None for content_part in (self.fields or {}).values()):
            raise invalid_value("wordings_of_field")
        last = self.messages[-1].content if self.messages else []
        if self.rounds is not None and all(content_part.audio != self.rounds for content_part in last):
            raise invalid_value("rounds_without_sound", sound=self.rounds)
        return self

    @property
    def wordings(self) -> list[str]:
        """The wordings of the question; empty if there is one way to ask."""
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
    """A prompt in a separate file, with variants for models or families of models.

    Args:
        summary: what the prompt asks for, in one sentence.
        variants: other templates, by model or family. A variant without messages (or fields) leaves the prompt's own.
    """

    version: Literal[1]
    summary: str
    variants: dict[str, Template] = {}


class Expand(Strict):
    """How a row with several questions is split.

    Args:
        field: name of the field that holds the question's own value.
        columns: the columns of the values, by a name that is added to the question's id.
        subset: name of the subsets that the questions form; null for none.
    """

    field: str
    columns: dict[str, str] = Field(min_length=1)
    subset: str | None = None


class Kinds(Strict):
    """How rows of several kinds are distinguished.

    Args:
        column: the column that shows the kind, by the definition's name.
        field: name of the field that holds the question's kind.
        names: extra fields of each kind, by a text. A row is of the first kind whose text its column contains.
    """

    column: str
    field: str = "kind"
    names: dict[str, dict[str, Any]] = Field(min_length=1)


class Join(Strict):
    """Texts of another table, joined to a row by a key.

    Args:
        repository, config, split: the other table; null for the same value as the rows'.
        key: the row's column with the key.
        other_key: the other table's column with it; null for the same name.
        columns: the other table's column for each new name. The first of several rows with one key counts.
        unmatched: whether a row without a match stays, without these texts, or is no question.
    """

    repository: str | None = Field(None, pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    config: str | None = None
    split: str | None = None
    key: str
    other_key: str | None = None
    columns: dict[str, str] = Field(min_length=1)
    unmatched: Literal["keep", "leave-out"] = "keep"


class Speaker(Strict):
    """The speaker's column. Confidence intervals are clustered by speaker.

    Args:
        column: the data's column. A blank cell, or `None`, `N/A`, `unknown` and the like, names no speaker.
        pattern: a regular expression with one group, the speaker, for cells that hold more, such as a path; null takes
            the whole cell. A cell that does not match names no speaker.
    """

    column: str
    pattern: str | None = None

    @model_validator(mode="after")
    def _check_pattern(self) -> Speaker:
        """Refuse a pattern that has not exactly one group."""
        try:
            groups = 1 if self.pattern is None else re.compile(self.pattern).groups
        except re.error as error:
            raise invalid_value("pattern_no_expression", pattern=self.pattern, cause=error) from error
        if groups != 1:
            raise invalid_value("pattern_groups", pattern=self.pattern, groups=groups)
        return self


def _decoded(value: Any) -> Any:
    """Turn the word `own` into parameters that are all left to the model."""
    return dict.fromkeys(Parameters.model_fields) if value == "own" else value


def _speaker(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class Data(Strict):
    """Where the rows are, and the columns to read. Needs `repository` or `path`.

    Args:
        repository: a data set on the Hugging Face hub, `OWNER/NAME`.
        path: a folder or file, relative to the definition.
        obtain: how to get data that are on no hub, in one sentence. `--data FOLDER` then reads `FOLDER/OWNER/NAME`.
        revision: a commit, tag or branch of the repository; null for the newest.
        config, split: configuration and split of the data set; a null split reads all.
        configs: several configurations that form one benchmark.
        data_dir: the only folder of the repository to read; null for all files of the configuration.
        splits: several splits that form one benchmark; their names form the subset `split`.
        sounds: the folder or archive of the repository where the rows' sound paths begin; null if they begin at the
            table or at the root. An archive is unpacked once, into the cache.
        layout: `table` for rows with columns. The others read the file or folder that `config` names: `air-bench` (rows
            and folders of sound), `seed-tts` (a list of Seed-TTS-Eval), `listed` (JSON: a list of rows, rows by id, or
            a row a line), `tagged` (a tab-separated table with the tags of sounds), `transcribed` (a list of ids and
            words, or a folder of words), `zerospeech` and `story-cloze` (pairs of sounds). `esd` and `expresso` have
            `neutral` or `emotional` voices by `config`; `minimax` has texts and speakers in files.
        language: the language to read, for a layout that has several.
        columns: the data's column for each name that the definition uses. `audio` is the sound of the question,
            `reference` the expected answer. `a.b` is the value `b` in the column `a` unless a column has that name;
            `a.0` is the first entry of a list. A list of columns gives a list of their non-null values. A cell of
            `audio` may hold several sounds, which a prompt sends together.
        values: replacements for the texts or numbers of a column, such as `{reference: {"0": A, "1": B}}`.
        optional: names from `columns` whose column may be missing or null; `speaker` for that of `speaker`.
        speaker: the column of the speaker, or a column with a pattern; null if there is none.
        id: the column of a row's id; null numbers the rows.
        trials: for codecs: a list of speaker verification trials, relative to the definition or the working directory.
        size: the number of questions in all the data; null if unknown. A run over another number says so.
        rows_digest: hash of all questions and expected answers. `codec-bench validate --hub` writes and checks it.
        types: the type of each column in words. `codec-bench validate --hub` writes and checks it.
        pins: a file next to the definition from `codec-bench validate --hub --pins FILE`. It supplies `revision`,
            `size`, `rows_digest` and `types` (there `columns`) where they are not stated here, by the benchmark's name.
        expand: how a row with several questions is split.
        join: texts of another table; null for none.
        answer_among_choices: `true` if `choices` are only the wrong ones. The expected answer joins them, in an order
            that the question's id decides.
        where: the text or texts that rows must have in a column (by the definition's name); null takes all rows.
        unless: the text or texts that rows must not have in a column.
        kinds: how rows of several kinds are distinguished.
        scripts: extra fields with a language, each with the column (by the definition's name) whose script decides it:
            `ja` for kana, `zh` for other Han characters, `ko` for Hangul, `en` for Latin letters.
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
        """Check that the fields of the data's location fit each other and the layout."""
        if (self.repository is None) == (self.path is None):
            raise invalid_value("one_of_fields", fields=["repository", "path"])
        if self.split is not None and self.splits is not None:
            raise invalid_value("one_of_fields", fields=["split", "splits"])
        if self.join is not None and (self.layout != "table" or self.repository is None):
            raise invalid_value("join_without_table")
        if self.layout == "minimax" and self.language is None:
            raise invalid_value("layout_needs", layout=self.layout, field="language")
        if self.layout == "esd" and self.language not in ("en", "zh"):
            raise invalid_value("layout_needs", layout=self.layout, field="language", known=["en", "zh"])
        if self.layout in ("esd", "expresso") and self.config not in ("neutral", "emotional"):
            raise invalid_value("layout_needs", layout=self.layout, field="config", known=["neutral", "emotional"])
        if self.layout in _LAYOUTS_WITH_CONFIG and self.config is None:
            raise invalid_value("layout_needs", layout=self.layout, field="config")
        if self.configs is not None and (self.config is not None or self.layout != "table"):
            raise invalid_value("configs_of_no_table")
        return self


_LAYOUTS_WITH_CONFIG = ("air-bench", "seed-tts", "zerospeech", "story-cloze", "listed", "transcribed", "tagged")


class MetricUse(Strict):
    """A metric with its own post-processing, instead of the benchmark's."""

    name: str
    postprocess: Names


def _words(fields: dict[str, Any]) -> dict[str, Any]:
    """Refuse lists with true or false in them: the author of `[yes, no]` meant the words."""
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
        raise invalid_value("no_base_language", language=language, expected=expected)
    return language


class Parameters(Strict):
    """How a model decodes answers. Default: greedy, at most 256 new tokens.

    A null parameter is left to the model. `Benchmark.decoding` says which defaults apply to spoken answers and to
    models that read fields.

    Args:
        max_tokens: the most new tokens of the answer's text.
        reasoning_tokens: tokens that a reasoning model may write before its answer, on top of `max_tokens`.
        temperature: 0 takes the most probable token each time.
        repetition_penalty: 1 is no penalty. Servers of open models otherwise take one from the checkpoint.
        top_p: the share of the probability that tokens are drawn from.
        stop: texts that end an answer.
    """

    max_tokens: Annotated[int | None, Field(ge=1)] = 256
    reasoning_tokens: Annotated[int | None, Field(ge=0)] = 4096
    temperature: Annotated[float | None, Field(ge=0)] = 0.0
    repetition_penalty: Annotated[float | None, Field(gt=0)] = 1.0
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    stop: Names | None = None
    seed: int | None = None


class Passing(Strict):
    """How several answers to one question count as one result, next to their mean.

    Args:
        rules: `all` (every answer must pass), `any` (one must) and `majority` (more than half must).
        at: the value of the primary metric from which an answer passes, in the metric's direction; null for 1 of the
            values 0 and 1, and no rules for metrics with other values.
    """

    rules: Annotated[list[Literal["all", "any", "majority"]], BeforeValidator(_listed)] = ["all", "any", "majority"]
    at: float | None = None


class Failures(Strict):
    """How a benchmark's toolkit counts failed or unreadable answers and verdicts.

    Args:
        toolkit: its name.
        counts: whether the mean excludes such an item (`left-out`) or counts it `as-wrong`.
    """

    toolkit: str
    counts: Literal["left-out", "as-wrong"]


class SubmissionFile(Strict):
    """The file that a benchmark's service scores: a JSON list of all questions.

    Args:
        answer: the field of the model's answer.
        fields: the fields of an entry, each with the name of the question's column, or `id`. Empty columns are omitted.
        made: further fields, each with a text in which `<id>` is replaced by the question's id.
    """

    answer: str
    fields: dict[str, str] = Field(min_length=1)
    made: dict[str, str] = {}


ULTRAEVAL_AUDIO = Failures(toolkit="UltraEval-Audio", counts="left-out")
"""Source: github.com/OpenBMB/UltraEval-Audio 1b68ac7 (2026-11-23), audio_evals/eval_task.py. An item with an error in
inference, post-processing or scoring is skipped before aggregation, and a share of failures is reported."""


class BenchmarkSpec(Strict):
    """One benchmark.

    Args:
        title, summary: the name for readers, and what the benchmark asks in one sentence.
        category: the group that it belongs to in tables, such as `ASR`.
        kind: the suite that it belongs to.
        language: language of the expected answers as a base code such as `en`; null if there is no single one.
        licence: licence of the data as its publisher states it; null if unknown.
        paper: the paper that describes it, or null.
        upstream: its name in UltraEval-Audio, or null.
        wants: what a model must answer with: `text`, `audio`, or `likelihood` (how likely it finds each of two sounds).
        fields: fields with the same value for every question.
        prompt: the name of a prompt, or a prompt written here; null for a benchmark of codecs.
        prompts: other prompts for single models or families, by their names.
        postprocess: the steps that read an answer before it is scored.
        metrics: names of metrics, or names with their post-processing.
        primary: the metric that represents the benchmark in tables.
        subsets: a column for each kind of subset, by the name of the subsets.
        parameters: how answers are decoded; `own` leaves everything to the model.
        too_long: what happens to a sound that is longer than the model takes: `cut` sends its beginning, `refuse`
            counts the question as refused, `windows` sends its parts and joins the answers. With `cut` and `refuse`,
            models with their own windows get long sounds whole.
        windows: how the parts are formed and the answers joined.
        passing: how several answers to one question count as one result.
        failures: how its toolkit counts failures; null if unknown. The default for benchmarks of UltraEval-Audio is its
            rule: any error excludes the item.
        submission: the file for the authors' service, if the expected answers are unpublished; otherwise null.
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
    submission: SubmissionFile | None = None
    published: list[PublishedTable] = []

    @model_validator(mode="before")
    @classmethod
    def _counted_as_upstream(cls, held: Any) -> Any:
        upstream = isinstance(held, dict) and held.get("upstream") is not None
        return {"failures": ULTRAEVAL_AUDIO.model_dump(), **held} if upstream else held

    @model_validator(mode="after")
    def _check_request(self) -> BenchmarkSpec:
        """Refuse fields that JSON cannot hold, and a prompt that misses or is unused."""
        try:
            json.dumps(self.fields)
        except TypeError as error:
            raise invalid_value("fields_not_json", cause=error) from error
        if (self.prompt is None) != (self.kind == "codec"):
            raise invalid_value("prompt_of_kind")
        return self


FORM = {"matrix", "name", "extends"}
"""Fields of a definition that form its entries and are not part of them."""

_TOP = "the top of the file"
_SCHEMAS: dict[str, type[BaseModel]] = {
    _TOP: BenchmarkSpec, "'data'": Data, "'data.expand'": Expand, "'data.kinds'": Kinds, "'data.join'": Join,
    "'data.speaker'": Speaker, "an entry of 'metrics'": MetricUse, "an entry of 'published'": PublishedTable,
    "'parameters'": Parameters, "'passing'": Passing, "'windows'": WindowsSpec, "'failures'": Failures,
    "'submission'": SubmissionFile, "'prompt'": PromptSpec, "an entry of 'messages'": Turn,
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
"""The places of every field name, for hints on a misspelled or misplaced field."""
