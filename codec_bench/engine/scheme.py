"""How a benchmark's answers are scored: its post-processing and its metrics, sorted by what they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codec_bench.benchmark.process import Chain, load_steps
from codec_bench.engine.plan import GENERATED, Plan, build_plan
from codec_bench.judges.rating import Rating, is_rating, load_rating
from codec_bench.metrics import build_metric, expand
from codec_bench.metrics.answers import is_answer_metric, load_answer_metric
from codec_bench.metrics.answers.base import AnswerMetric
from codec_bench.metrics.base import Metric
from codec_bench.registry import Spec


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """Everything that turns recorded answers into scores.

    Args:
        chain: the post-processing.
        alone: metrics that score one answer by itself. sets: metrics that look at all answers. ratings: what a judge says.
        spoken: metrics of generated audio. transcript: the metric that hears spoken answers, where they are read.
    """

    chain: Chain
    alone: Mapping[str, AnswerMetric]
    sets: Mapping[str, AnswerMetric]
    ratings: Mapping[str, Rating]
    spoken: Mapping[str, Metric]
    transcript: str | None

    @classmethod
    def of(cls, process: Sequence[str], metrics: Sequence[str]) -> Scheme:
        """The scheme of a benchmark's post-processing and metrics.

        Raises:
            UserError: an unknown step or metric, or a package that one needs is missing.
        """
        chain = load_steps(process)
        answers: dict[str, AnswerMetric] = {}
        ratings: dict[str, Rating] = {}
        spoken: list[str] = []
        for name in metrics:
            if is_rating(name):
                ratings[name] = load_rating(name)
            elif is_answer_metric(name):
                answers[name] = load_answer_metric(name)
            else:
                spoken.append(name)
        return cls(
            chain,
            {n: m for n, m in answers.items() if not m.whole_set},
            {n: m for n, m in answers.items() if m.whole_set},
            ratings,
            {n: build_metric(n) for n in expand(spoken)},
            f"transcript[{chain.recogniser}]" if chain.recogniser is not None else None,
        )

    @property
    def hears(self) -> bool:
        """Whether the audio of answers is needed."""
        return bool(self.spoken) or self.transcript is not None

    @property
    def compares(self) -> bool:
        """Whether an answer's audio is compared with the question's."""
        return any(metric.kind == "pair" for metric in self.spoken.values())

    def plan(self, options: Mapping[str, Mapping[str, Any]]) -> Plan:
        """What the engine computes of the answers' audio; only where `hears`."""
        asked = [*self.spoken, *([self.transcript] if self.transcript else [])]
        read = {Spec.parse(f).text for n in asked for f in build_metric(n).estimate_features}
        return build_plan([GENERATED], asked, {name: given for name, given in options.items() if name in read})

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the record says of each metric, in the benchmark's order of kinds."""
        metrics: dict[str, Any] = {**self.alone, **self.sets, **self.ratings, **self.spoken}
        return {
            name: {
                "protocol": m.protocol, "kind": getattr(m, "kind", "answer"), "unit": m.unit,
                "higher_is_better": m.higher_is_better, "range": list(m.range), "aggregate": m.aggregate, "paper": m.paper,
                "source": m.source, "summary": (m.summary if isinstance(m, Rating) else (type(m).__doc__ or "")).strip().split("\n")[0],
            }
            for name, m in metrics.items()
        }  # fmt: skip

    def identity(self) -> dict[str, Any]:
        """Everything that changes a score, as JSON values."""
        protocols = {name: facts["protocol"] for name, facts in self.facts().items()}
        if self.transcript is not None:
            protocols[self.transcript] = build_metric(self.transcript).protocol
        return {"process": list(self.chain.names), "metrics": protocols}
