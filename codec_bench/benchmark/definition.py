"""A benchmark that is ready to be asked: its questions, the prompt for a model, and what identifies both."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from codec_bench.benchmark.base import Published
from codec_bench.benchmark.loader import Entry
from codec_bench.benchmark.prompt import Prompt, choose
from codec_bench.benchmark.questions import QuestionStream
from codec_bench.benchmark.schema import BenchmarkSpec, Data, MetricUse
from codec_bench.errors import UserError
from codec_bench.models.base import ModelInfo


@dataclass(frozen=True, eq=False)
class Benchmark:
    """One benchmark.

    Args:
        name: canonical, lower case with hyphens.
        spec: its definition, checked.
        entry: where that stands.
    """

    name: str
    spec: BenchmarkSpec
    entry: Entry

    @property
    def title(self) -> str:
        """A name for people."""
        return self.spec.title

    @property
    def summary(self) -> str:
        """One sentence."""
        return self.spec.summary

    @property
    def category(self) -> str:
        """For tables, such as `ASR`."""
        return self.spec.category

    @property
    def kind(self) -> Literal["understanding", "generation", "qa", "codec"]:
        """Which suite it belongs to; `codec` is asked nothing: a codec's output is scored against the original."""
        return self.spec.kind

    @property
    def language(self) -> str | None:
        """Base code of the expected answers, or None where it is none or several."""
        return self.spec.language

    @property
    def licence(self) -> str | None:
        """Of the data as its publisher names it, or None where that is not known."""
        return self.spec.licence

    @property
    def paper(self) -> str | None:
        """Where it is described."""
        return self.spec.paper

    @property
    def size(self) -> int | None:
        """Questions, or None where that is not known."""
        return self.spec.data.size

    @property
    def upstream(self) -> str | None:
        """Its name in UltraEval-Audio, or None."""
        return self.spec.upstream

    @property
    def family(self) -> str:
        """The folder it is defined in."""
        return self.entry.family

    @property
    def wants(self) -> Literal["text", "audio"]:
        """What a model must give back."""
        return self.spec.wants

    @property
    def process(self) -> tuple[str, ...]:
        """The benchmark's own post-processing; what the prompt's format needs (`Prompt.process`) comes before it."""
        return tuple(self.spec.postprocess)

    @property
    def primary(self) -> str:
        """The metric that stands for it."""
        return self.spec.primary

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the generation, where the definition sets them."""
        return self.spec.parameters.model_dump(exclude_none=True)

    @property
    def data(self) -> Data:
        """Where the rows are."""
        return self.spec.data

    @property
    def subsets(self) -> tuple[str, ...]:
        """The names of its subsets' columns: keys of `Question.subsets`."""
        return tuple(self._subset_columns)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of its metrics, groups taken apart, the primary one first."""
        names = [name for name, _ in self._metrics]
        return tuple(sorted(names, key=lambda name: name != self.primary))

    @property
    def own_steps(self) -> dict[str, tuple[str, ...] | None]:
        """Its metrics as `metrics`, each with the post-processing of its own from the raw answer on, or None for the benchmark's."""
        own = dict(self._metrics)
        return {name: own[name] for name in self.metrics}

    @property
    def described(self) -> dict[str, Any]:
        """What a run's record says of it, as JSON values."""
        published = [
            {"model": p.model, "metric": p.metric, "value": p.value, "source": p.source} for p in self.published
        ]
        facts = ("name", "title", "summary", "category", "kind", "language", "licence", "size", "paper", "primary")
        return {**{fact: getattr(self, fact) for fact in facts}, "subsets": list(self.subsets), "published": published}

    @property
    def published(self) -> tuple[Published, ...]:
        """Numbers of others, in the metric's unit."""
        return tuple(
            Published(model, table.metric, _scaled(value, table.scale), table.source)
            for table in self.spec.published
            for model, value in table.values.items()
        )

    def prompt_for(self, info: ModelInfo) -> Prompt:
        """The prompt that a model gets.

        Raises:
            UserError: there is none for such a model, or the benchmark asks nothing (codecs).
        """
        if self.spec.prompt is None:
            raise UserError(
                f"the benchmark '{self.name}' is for codecs and asks nothing", hint="run it with --codec, or with eval"
            )
        return choose(self.spec.prompt, self.spec.prompts, info, wants=self.wants, parameters=self.parameters)

    def questions(
        self, *, limit: int | None = None, seed: int | None = None, mirror: str | os.PathLike[str] | None = None
    ) -> QuestionStream:
        """Its questions, lazily.

        Args:
            limit: at most so many. seed: a random part of them instead of the first. mirror: a folder in place of the hub.

        Raises:
            UserError: the data is not there, or lacks a column.
        """
        return QuestionStream(
            self.name,
            self.data,
            constants=self.spec.fields,
            demanded=self.demanded,
            subsets=self._subset_columns,
            language=self.language,
            limit=limit,
            seed=seed,
            mirror=mirror,
            folder=os.path.dirname(os.path.abspath(self.entry.file)),
        )

    @cached_property
    def demanded(self) -> frozenset[str]:
        """Our names of the columns without a value of which a row cannot be asked: those that its prompts read."""
        names: set[str] = {"audio"} if self.spec.prompt is None else set()
        for reads in ("messages", "fields"):
            try:
                names |= self.prompt_for(ModelInfo("", reads=reads)).demanded
            except UserError:
                continue  # the prompt has no such side
        return frozenset(names - set(self.data.optional) - set(self.spec.fields) | {"audio"} & names)

    @property
    def asked(self) -> dict[str, Any]:
        """Everything that changes a question or an answer, but the prompt and the model, as JSON values."""
        data = self.data.model_dump(exclude_none=True, exclude={"size"})
        return {
            "benchmark": self.name,
            "data": data,
            "fields": self.spec.fields,
            "language": self.language,
            "wants": self.wants,
            "parameters": self.parameters,
        }

    @property
    def scored(self) -> dict[str, Any]:
        """Everything that changes a score once the answer is there, as JSON values."""
        return {
            "postprocess": list(self.process),
            "metrics": {name: None if own is None else list(own) for name, own in self._metrics},
            "subsets": self._subset_columns,
        }

    @cached_property
    def _subset_columns(self) -> dict[str, str]:
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
        from codec_bench.metrics import expand
        from codec_bench.metrics.answers import expand_answer_metrics

        found: list[tuple[str, tuple[str, ...] | None]] = []
        for use in self.spec.metrics:
            name, own = (use.name, tuple(use.postprocess)) if isinstance(use, MetricUse) else (use, None)
            found += [(member, own) for member in expand(expand_answer_metrics([name]))]
        return tuple(found)


def _scaled(value: float, scale: float) -> float:
    # 2.3 per cent is 0.023 and not 0.023000000000000003.
    return value if scale == 1.0 else float(f"{value * scale:.10g}")
