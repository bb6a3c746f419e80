"""A benchmark: its questions, the prompt for a model, and the identity of both."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from codec_bench.benchmark.definition.base import Published
from codec_bench.benchmark.definition.loader import PINNED, DefinitionEntry, resolve
from codec_bench.benchmark.definition.prompt import Prompt, choose
from codec_bench.benchmark.definition.questions import SPEAKER, QuestionStream
from codec_bench.benchmark.definition.schema import BenchmarkSpec, Data, MetricUse
from codec_bench.benchmark.reading import version_steps
from codec_bench.config.registry import locate_name
from codec_bench.messages.errors import UserError
from codec_bench.models.base import ModelInfo
from codec_bench.types import Wants, Windows


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One benchmark.

    Args:
        name: the canonical name, in lower case with hyphens.
        entry: where the definition is.
    """

    name: str
    spec: BenchmarkSpec
    entry: DefinitionEntry

    @property
    def folder(self) -> str:
        """The folder of the definition, where its relative paths begin."""
        return os.path.dirname(os.path.abspath(self.entry.file))

    @property
    def title(self) -> str:
        """The name for readers."""
        return self.spec.title

    @property
    def category(self) -> str:
        """The group that it belongs to in tables, such as `ASR`."""
        return self.spec.category

    @property
    def kind(self) -> Literal["understanding", "generation", "qa", "codec"]:
        """The suite of the benchmark. `codec` compares a codec's output with its input."""
        return self.spec.kind

    @property
    def language(self) -> str | None:
        """Base code of the expected answers' language, such as `en`; None if several."""
        return self.spec.language

    @property
    def licence(self) -> str | None:
        """Licence of the data as its publisher states it; None if unknown."""
        return self.spec.licence

    @property
    def size(self) -> int | None:
        """The number of questions; None if unknown."""
        return self.spec.data.size

    @property
    def wants(self) -> Wants:
        """Type of the model's output: text, audio or likelihoods."""
        return self.spec.wants

    @property
    def process(self) -> tuple[str, ...]:
        """The benchmark's own post-processing, after the prompt's (`Prompt.process`)."""
        return tuple(self.spec.postprocess)

    @property
    def primary(self) -> str:
        """The name of the metric that represents the benchmark in tables."""
        return self.spec.primary

    @property
    def parameters(self) -> dict[str, Any]:
        """Generation parameters that the definition itself states."""
        return self.spec.parameters.model_dump(exclude_none=True, exclude_unset=True)

    def decoding(self, info: ModelInfo) -> dict[str, Any]:
        """A model's decoding parameters: the definition's, and defaults for the others.

        A transcript is as long as the speech, so models that read fields get only the default temperature. Spoken
        answers get no defaults: without randomness many models speak in loops.
        """
        if self.wants != "text":
            return self.parameters
        parameters = self.spec.parameters.model_dump(exclude_none=True)
        if info.reads == "messages":
            return parameters
        return {name: value for name, value in parameters.items() if name == "temperature" or name in self.parameters}

    @property
    def data(self) -> Data:
        """Where the rows are, and which columns are used."""
        return self.spec.data

    @property
    def has_options(self) -> bool:
        """Whether the questions have their options in separate fields."""
        names = (*self.data.columns, *self.spec.fields)
        return any(name == "choices" or (name.lower().startswith("choice_") and len(name) == 8) for name in names)

    @property
    def subsets(self) -> tuple[str, ...]:
        """The names of its subsets: the keys of `Question.subsets`."""
        return tuple(self._subset_columns)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of its metrics, with groups expanded and the primary metric first."""
        names = [name for name, _ in self._metrics]
        return tuple(sorted(names, key=lambda name: name != self.primary))

    @property
    def metric_steps(self) -> dict[str, tuple[str, ...] | None]:
        """Each metric's post-processing of the raw answer; None for the benchmark's."""
        steps_by_name = dict(self._metrics)
        return {name: steps_by_name[name] for name in self.metrics}

    @property
    def described(self) -> dict[str, Any]:
        """The facts of the benchmark for a run's record, as JSON values."""
        published = [asdict(one) for one in self.published]
        facts = ("title", "summary", "category", "kind", "language", "licence")
        further = {"subsets": list(self.subsets), "passing": self.spec.passing.model_dump(), "published": published}
        failures = {} if self.spec.failures is None else {"failures": self.spec.failures.model_dump()}
        known: dict[str, Any] = {fact: getattr(self.spec, fact) for fact in facts}
        known |= {} if self.spec.submission is None else {"submission": self.spec.submission.model_dump()}
        known |= {"size": self.size, "paper": self.spec.paper, "primary": self.primary}
        known |= {"other_columns": changed} if (changed := self.changed_columns) else {}
        known |= {"rows_digest": self.data.rows_digest} if self.data.rows_digest is not None else {}
        return {"name": self.name, **known, **further, **failures}

    @property
    def changed_columns(self) -> list[str]:
        """Describe the columns that the user's settings replace, in one phrase each."""
        of = resolve(self.entry).data.columns
        columns = self.data.columns
        return [
            f"{name} from {_words(columns.get(name))} in place of {_words(of.get(name))}"
            for name in {**of, **columns}
            if columns.get(name) != of.get(name)
        ]

    @property
    def published(self) -> tuple[Published, ...]:
        """Numbers that others published, in the metric's unit."""
        return tuple(
            Published(model, table.metric, _scaled(value, table.scale), table.source)
            for table in self.spec.published
            for model, value in table.values.items()
        )

    @property
    def windows(self) -> Windows | None:
        """How sounds that are too long are split; None if they are not."""
        return Windows(**self.spec.windows.model_dump()) if self.spec.too_long == "windows" else None

    def prompt_for(self, info: ModelInfo) -> Prompt:
        """Select the prompt for a model by its name, its family and what it reads.

        Raises:
            UserError: there is no prompt for such a model, or the benchmark is for codecs and has no prompt.
        """
        if self.spec.prompt is None:
            raise UserError("benchmark_of_codecs", name=self.name, hint="run it with --codec, or with eval")
        if self.wants == "likelihood":  # the two sounds are named, whatever else the model reads
            info = replace(info, reads="fields")
        return choose(self.spec.prompt, self.spec.prompts, info, wants=self.wants, parameters=self.decoding(info))

    def questions(
        self,
        *,
        limit: int | None = None,
        seed: int | None = None,
        mirror: str | os.PathLike[str] | None = None,
        texts: bool = False,
    ) -> QuestionStream:
        """Its questions, read lazily.

        Args:
            limit: the highest number of questions; None for all.
            seed: with a limit, take a random part that this seed determines; None takes the first questions.
            mirror: a folder of data sets that replaces the hub; an empty text forces the hub, whatever the environment
                says.
            texts: read the questions of a table without fetching their sounds.

        Raises:
            UserError: the data cannot be found, or a column is missing.
        """
        return QuestionStream(
            self.name,
            self.data,
            constants=self.spec.fields,
            demanded=self.required_columns,
            subsets=self._subset_columns,
            language=self.language,
            limit=limit,
            seed=seed,
            mirror=mirror,
            texts=texts,
            folder=self.folder,
        )

    @cached_property
    def required_columns(self) -> frozenset[str]:
        """The columns that a row must have: those that its prompts read."""
        names: set[str] = {"audio"} if self.spec.prompt is None else set()
        for reads in ("messages", "fields"):
            try:
                names |= self.prompt_for(ModelInfo("", reads=reads)).required_columns
            except UserError:
                continue  # the prompt is not for models that read this
        return frozenset(names - set(self.data.optional) - set(self.spec.fields) | {"audio"} & names)

    @property
    def request_facts(self) -> dict[str, Any]:
        """Fields of the definition that affect questions or answers, as JSON values."""
        # The speaker changes no question, only intervals.
        data = self.data.model_dump(exclude_none=True, exclude={*PINNED, "pins", "obtain", SPEAKER} - {"revision"})
        data["optional"] = [name for name in self.data.optional if name != SPEAKER or name in self.data.columns]
        if not self.data.values:
            del data["values"]  # records from before this field stay valid
        return {
            "benchmark": self.name,
            "data": data,
            "fields": self.spec.fields,
            "language": self.language,
            "wants": self.wants,
            "parameters": self.parameters,
            **({"too_long": self.spec.too_long} if self.spec.too_long != "cut" else {}),
            **({"windows": self.spec.windows.model_dump()} if self.spec.too_long == "windows" else {}),
        }

    @property
    def scored(self) -> dict[str, Any]:
        """Everything that changes the score of an answer, as JSON values."""
        return {
            "postprocess": version_steps(self.process),
            "metrics": {name: None if steps is None else list(steps) for name, steps in self._metrics},
            "subsets": self._subset_columns,
        }

    @cached_property
    def _subset_columns(self) -> dict[str, str]:
        """Map each subset that results are broken down by to its column."""
        columns = dict(self.spec.subsets)
        if self.data.splits:
            columns.setdefault("split", "split")
        if self.data.expand is not None and self.data.expand.subset:
            columns.setdefault(self.data.expand.subset, self.data.expand.subset)
        if self.data.kinds is not None:
            columns.setdefault(self.data.kinds.field, self.data.kinds.field)
        return columns

    @cached_property
    def _metrics(self) -> tuple[tuple[str, tuple[str, ...] | None], ...]:
        """Expand the metrics' groups: (name, its post-processing steps or None)."""
        from codec_bench.benchmark.metrics import expand_answer_metrics
        from codec_bench.metrics import expand

        metrics: list[tuple[str, tuple[str, ...] | None]] = []
        for use in self.spec.metrics:
            text, steps = (use.name, tuple(use.postprocess)) if isinstance(use, MetricUse) else (use, None)
            name = locate_name(text, self.folder)
            metrics += [(member, steps) for member in expand(expand_answer_metrics([name]))]
        return tuple(metrics)


def _words(column: str | list[str] | None) -> str:
    if column is None:
        return "nothing"
    return f"'{column}'" if isinstance(column, str) else " and ".join(map(_words, column))


def _scaled(value: float, scale: float) -> float:
    # 2.3 per cent is 0.023 and not 0.023000000000000003.
    return value if scale == 1.0 else float(f"{value * scale:.10g}")
