"""How a benchmark's answers are scored: its post-processing and its metrics, sorted by what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codec_bench.benchmark.process import Chain, load_steps
from codec_bench.engine.plan import GENERATED, Plan, build_plan, features_read
from codec_bench.judges.rating import Rating, is_rating, load_rating
from codec_bench.metrics import build_metric
from codec_bench.metrics.answers import is_answer_metric, load_answer_metric
from codec_bench.metrics.answers.base import AnswerMetric
from codec_bench.metrics.base import Metric


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """Everything that turns recorded answers into scores.

    Args:
        chain: the benchmark's post-processing. chains: that of metrics which read the answer in a way of their own.
        alone: metrics that score one answer by itself. sets: metrics that look at all answers. ratings: what a judge says.
        spoken: metrics of generated audio. order: the names of all metrics, as the benchmark names them.
    """

    chain: Chain
    chains: Mapping[str, Chain]
    alone: Mapping[str, AnswerMetric]
    sets: Mapping[str, AnswerMetric]
    ratings: Mapping[str, Rating]
    spoken: Mapping[str, Metric]
    order: tuple[str, ...]

    @classmethod
    def of(
        cls, process: Sequence[str], metrics: Mapping[str, Sequence[str] | None], judge: str | None = None
    ) -> Scheme:
        """The scheme of a benchmark.

        Args:
            process: the steps of its post-processing.
            metrics: by name the steps of those that have their own, None for the others. Groups are taken apart.
            judge: the model that gives verdicts, where there are ratings.

        Raises:
            UserError: an unknown step or metric, or a package that one needs is missing.
        """
        answers = {n: load_answer_metric(n) for n in metrics if not is_rating(n) and is_answer_metric(n)}
        ratings = {n: load_rating(n, judge) for n in metrics if is_rating(n)}
        return cls(
            chain=load_steps(process),
            chains={n: load_steps(own) for n, own in metrics.items() if own is not None},
            alone={n: m for n, m in answers.items() if not m.whole_set},
            sets={n: m for n, m in answers.items() if m.whole_set},
            ratings=ratings,
            spoken={n: build_metric(n) for n in metrics if n not in answers and n not in ratings},
            order=tuple(metrics),
        )

    def chain_of(self, metric: str) -> Chain:
        """The post-processing between an answer and a metric."""
        return self.chains.get(metric, self.chain)

    @property
    def transcripts(self) -> tuple[str, ...]:
        """The metrics that hear what is read of spoken answers, each once."""
        chains = [self.chain, *self.chains.values()]
        return tuple(dict.fromkeys(transcript_of(c) for c in chains if c.recogniser is not None))

    @property
    def hears(self) -> bool:
        """Whether the sound of answers is needed."""
        return bool(self.spoken or self.transcripts)

    @property
    def compares(self) -> bool:
        """Whether an answer's sound is compared with the question's."""
        return any(metric.kind == "pair" for metric in self.spoken.values())

    def plan(self, options: Mapping[str, Mapping[str, Any]], languages: Iterable[str | None]) -> Plan:
        """What the engine computes of answers in these languages; only where `hears`."""
        asked = [*self.spoken, *self.transcripts]
        read = {feature for name in asked for feature in features_read(build_metric(name))}
        given = {name: values for name, values in options.items() if name in read}
        return build_plan([GENERATED], asked, given, languages)

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the record says of each metric, in the benchmark's order."""
        made: dict[str, Any] = {**self.alone, **self.sets, **self.ratings, **self.spoken}
        return {name: _facts(made[name]) for name in self.order}

    def identity(self) -> dict[str, Any]:
        """Everything that changes a score, as JSON values."""
        protocols = {name: facts["protocol"] for name, facts in self.facts().items()}
        protocols |= {name: build_metric(name).protocol for name in self.transcripts}
        chains = {name: list(chain.names) for name, chain in self.chains.items()}
        return {"process": list(self.chain.names), "chains": chains, "metrics": protocols}


def transcript_of(chain: Chain) -> str:
    """The metric that hears what a chain reads of spoken answers."""
    return f"transcript[{chain.recogniser}]"


def _facts(metric: Any) -> dict[str, Any]:
    summary = metric.summary if isinstance(metric, Rating) else type(metric).__doc__ or ""
    return {
        "protocol": metric.protocol,
        "kind": getattr(metric, "kind", "answer"),
        "unit": metric.unit,
        "higher_is_better": metric.higher_is_better,
        "range": list(metric.range),
        "aggregate": metric.aggregate,
        "paper": metric.paper,
        "source": metric.source,
        "summary": summary.strip().split("\n")[0],
    }
