"""Recipes of speech: texts for a synthesiser, and recordings to join."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from codec_bench.apps.building.recipe_base import AnyDraw, BaseRecipe, Draw, Form
from codec_bench.benchmark.definition.schema import Strict
from codec_bench.config import invalid_value

Gender = Literal["female", "male"]


class Dialogue(Strict):
    """Dialogues, spoken by one voice per speaker; question and options stay written.

    Args:
        column: a list of turns, or a text with one turn a line: `NAME: TEXT`. A turn may also be a mapping with
            `speaker` and `text`.
        genders: `female` or `male` for patterns of speakers' names (`W*`), the first match first; other speakers get
            any voice.
        pause_s: the pause between two turns.
    """

    column: str
    genders: dict[str, Gender] = Field(default_factory=dict)
    pause_s: AnyDraw = Draw(choice=[0.5])


class TextSource(Strict):
    """A source of texts.

    Args:
        data: `hf:REPO`, a folder in the hub's layout, or a Parquet, JSON-lines, CSV or TSV file.
        config, split, revision: as for `hf:REPO`; null takes the default one, all splits, and the newest.
        question: the column of the question or of the instruction; null if the rows have none.
        choices: one column with a list, or a list of columns; null if there are no options.
        answer: the column of the answer.
        answer_is: whether it holds the `letter` of an option or its `text`. Without options the answer is a text.
        fields: further columns for the template, by its names.
        dialogue: for rows that hold a dialogue; null for others.
        group: a column that the funnel counts by, such as the subject; null for none.
        licence: of the texts. An unknown one must be stated as text.
    """

    data: str
    config: str | None = None
    split: str | None = None
    revision: str | None = None
    question: str | None = "question"
    choices: str | tuple[str, ...] | None = "choices"
    answer: str = "answer"
    answer_is: Literal["letter", "text"] = "letter"
    fields: dict[str, str] = Field(default_factory=dict)
    dialogue: Dialogue | None = None
    group: str | None = None
    licence: str = Field(min_length=1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns that are read from the texts."""
        listed = (self.choices,) if isinstance(self.choices, str) else self.choices or ()
        named = (self.question, *listed, self.answer, *self.fields.values(), self.group)
        return tuple(name for name in (*named, self.dialogue and self.dialogue.column) if name)


class Used(Strict):
    """A model and its options, as `--model` and `--set` take them."""

    model: str
    options: dict[str, Any] = Field(default_factory=dict)


class RecipeVoice(Strict):
    """A voice.

    Args:
        name: for the rows and the funnel.
        gender: `female` or `male`, for dialogues; null if unknown.
        options: of the synthesiser, added to its own.
        fields: of its requests, such as `instruction`.
        recording: an audio file to imitate, sent as `prompt_audio`; null for none.
    """

    name: str
    gender: Gender | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    fields: dict[str, str] = Field(default_factory=dict)
    recording: str | None = None


def _other_names(voices: tuple[RecipeVoice, ...] | str) -> tuple[RecipeVoice, ...] | str:
    if not isinstance(voices, str) and len({voice.name for voice in voices}) < len(voices):
        raise invalid_value("voices_alike")
    return voices


class VoiceList(Strict):
    """A file of voices: a mapping with `voices`; paths as in the recipe."""

    voices: Annotated[tuple[RecipeVoice, ...], AfterValidator(_other_names), Field(min_length=1)]


Voices = Annotated[str | tuple[RecipeVoice, ...], AfterValidator(_other_names), Field(min_length=1)]
"""The voices, or the path of a file as `VoiceList` describes it."""


class AudioLimits(Strict):
    """Limits of audio.

    Args:
        least_s, most_s: its length.
        most_silence_s: its longest pause.
        most_clipped: the highest share of samples at full scale.
        least_rate_hz: the lowest sample rate.
    """

    least_s: Annotated[float, Field(ge=0.4)] = 0.5
    most_s: Annotated[float, Field(gt=0)] = 60.0
    most_silence_s: Annotated[float, Field(gt=0)] = 2.0
    most_clipped: Annotated[float, Field(ge=0, le=1)] = 0.001
    least_rate_hz: Annotated[int, Field(ge=1)] = 8_000


class Checks(AudioLimits):
    """Checks of a spoken text, next to the limits of its audio.

    Args:
        recognisers: models that transcribe; each must read back the text.
        rule: the text rule of the comparison.
        unit: of the error rate.
        error_rate: the highest error rate; above 0 it appears in the title of the data set.
        quality: the lowest score by the name of a metric of single sounds, such as `{utmos: 3}` or `{dnsmos_ovrl:
            2.8}`.
    """

    recognisers: tuple[Used, ...] = ()
    rule: str = "by-language"
    unit: Literal["word", "char", "mixed"] = "char"
    error_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    quality: dict[str, float] = Field(default_factory=dict)

    @property
    def read_back(self) -> str:
        """The read-back check by name, such as `cer=0` or `wer<=0.1`."""
        if not self.recognisers:
            return "not read back"
        rate = {"word": "wer", "char": "cer", "mixed": "mer"}[self.unit]
        return f"{rate}<={self.error_rate:g}" if self.error_rate else f"{rate}=0"

    @property
    def marks(self) -> tuple[str, ...]:
        """The read-back check if it is looser than an exact match."""
        return (self.read_back,) if self.error_rate and self.recognisers else ()


class Speech(BaseRecipe):
    """The fields of speech recipes, synthesised or recorded.

    Args:
        loudness_lufs: the loudness of all items, as far as `peak_dbfs` allows.
        prompt: of `benchmark.yaml`; null selects the fitting one.
        metrics: of the answers; null likewise.
        limit: make at most this many items, the first ones; null makes all.
    """

    language: str
    texts: TextSource
    checks: Checks
    loudness_lufs: Annotated[float, Field(ge=-60, le=-5)] = -23.0
    peak_dbfs: Annotated[float, Field(ge=-40, le=0)] = -1.0
    prompt: str | None = None
    metrics: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    limit: Annotated[int | None, Field(ge=1)] = None

    def _form(self, kind: Literal["qa", "understanding"], prompt: str, columns: dict[str, str], rubric: str) -> Form:
        """Build a form with own prompt and metrics; `rubric` rates free answers."""
        options = self.texts.choices is not None
        return Form(
            kind=kind,
            prompt=self.prompt or prompt,
            columns={"audio": "audio", **columns, "reference": "answer"},
            postprocess=("option-letter",) if options and self.metrics is None else (),
            unit=None if self.texts.dialogue is None else "dialogue",
            metrics=self.metrics or (("accuracy[exact]",) if options else (f"rating[{rubric}]",)),
        )


class SpokenRecipe(Speech):
    """Texts for a synthesiser: questions with options, instructions, or dialogues.

    Args:
        template: the spoken text, with `question`, `choices` and the names in `fields`; null for dialogues.
        synthesiser: the model that speaks.
        voices: its voices, or the path of a file with them. One is drawn for each item or speaker; a retry takes
            another one.
        rate_hz: the sample rate of the items, so that bandwidth does not reveal a voice; null takes the voices' lowest.
            Audio of a lower rate is dropped.
    """

    kind: Literal["spoken"]
    template: str | None = None
    synthesiser: Used
    voices: Voices
    rate_hz: Annotated[int | None, Field(ge=8_000, le=192_000)] = None

    @model_validator(mode="after")
    def _fitting(self) -> SpokenRecipe:
        """Validate that template, dialogue, questions and recognisers fit together."""
        if (self.template is None) == (self.texts.dialogue is None):
            raise invalid_value("one_of_fields", fields=["template", "texts.dialogue"])
        if self.texts.question is None and (self.template is None or self.texts.choices is not None):
            raise invalid_value("question_missing")
        if not self.checks.recognisers:
            raise invalid_value("no_recogniser_to_check")
        return self

    @property
    def marks(self) -> tuple[str, ...]:
        """The read-back check if it is not exact."""
        return self.checks.marks

    @property
    def form(self) -> Form:
        """The benchmark's form: the spoken text alone, or a dialogue and a question."""
        if self.texts.dialogue is None:
            options = self.texts.choices is not None
            return self._form("qa", "spoken-question", {} if options else {"question": "said"}, "audiobench-0-5")
        if self.texts.choices is None:
            return self._form("understanding", "question", {"question": "question"}, "audiobench-binary")
        return self._form("understanding", "choice-letter", {"question": "question", "choices": "choices"}, "")


class Recorded(Strict):
    """Recordings of options that people read.

    Args:
        folder: holds them under the names of the script sheet (`--script`).
        readers: names of the people; items are divided among them evenly, by seed.
        licence: of the recordings. An unknown one must be stated as text.
    """

    folder: str
    readers: Annotated[tuple[str, ...], Field(min_length=1)] = ("reader",)
    licence: str = Field(min_length=1)


class Stems(Strict):
    """Recordings of the subject of questions, such as the dialogues of an exam.

    Args:
        folder: holds them.
        column: of the texts, with the path of each row's recording in that folder.
        licence: of the recordings. An unknown one must be stated as text.
    """

    folder: str
    column: str = "stem"
    licence: str = Field(min_length=1)
    limits: AudioLimits = AudioLimits(most_s=600.0, most_silence_s=20.0)


class JoinedRecipe(Speech):
    """Recorded questions joined with read options to one recording.

    Args:
        stems: the recordings of the questions.
        line: the spoken text of an option, with `letter` and `choice`.
        recorded: recordings of the options by people.
        synthesiser, voices: in place of `recorded`; the title says so, and one voice reads all options of an item.
        pause_s: the pause between two parts.
        rate_hz: the sample rate of the items, which have one channel.
    """

    kind: Literal["joined"]
    stems: Stems
    line: str
    recorded: Recorded | None = None
    synthesiser: Used | None = None
    voices: Voices | None = None
    pause_s: Annotated[float, Field(ge=0, le=10)] = 0.6
    rate_hz: Annotated[int, Field(ge=8_000, le=192_000)] = 16_000

    @model_validator(mode="after")
    def _fitting(self) -> JoinedRecipe:
        """Validate that recordings or synthesis, recognisers and options fit together."""
        if (self.recorded is None) == (self.synthesiser is None) or (self.synthesiser is None) != (self.voices is None):
            raise invalid_value("recorded_or_synthesised")
        if self.synthesiser is not None and not self.checks.recognisers:
            raise invalid_value("no_recogniser_to_check")
        if self.texts.choices is None or self.texts.dialogue is not None:
            raise invalid_value("texts_need_options")
        return self

    @property
    def marks(self) -> tuple[str, ...]:
        """Synthesised options, and the read-back check if it is not exact."""
        return (*(["options synthesised"] if self.synthesiser else []), *self.checks.marks)

    @property
    def form(self) -> Form:
        """The joined recording alone; questions that share a stem are dependent."""
        return self._form("qa", "spoken-question", {}, "").model_copy(update={"unit": "stem"})
