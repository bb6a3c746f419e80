"""A benchmark's scoring scheme: post-processing, and metrics by their needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codec_bench.benchmark.judge.metric import JudgeMetric, is_judge_metric, load_judge_metric, names_by_judge
from codec_bench.benchmark.judge.rubric import is_own
from codec_bench.benchmark.metrics import REGISTRY as ANSWER_METRICS
from codec_bench.benchmark.metrics import is_answer_metric, load_answer_metric
from codec_bench.benchmark.metrics.base import AnswerMetric
from codec_bench.benchmark.reading import Chain, load_steps, version_steps
from codec_bench.benchmark.reading.base import OFFICIAL
from codec_bench.config.registry import Spec, doc_summary
from codec_bench.engine.plan import Plan, build_plan, list_features_read
from codec_bench.engine.systems import build_generated
from codec_bench.features import REGISTRY as FEATURES
from codec_bench.metrics import REGISTRY as METRICS
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Metric


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """The post-processing and the metrics that turn recorded answers into scores.

    Args:
        chain: the benchmark's post-processing.
        chains: the post-processing of metrics that have their own, by metric.
        alone: metrics that score one answer by itself.
        sets: metrics that need all answers at once.
        judged: metrics whose numbers are a judge's verdicts.
        spoken: metrics of generated audio.
        order: the names of all metrics, in the benchmark's order.
    """

    chain: Chain
    chains: Mapping[str, Chain]
    alone: Mapping[str, AnswerMetric]
    sets: Mapping[str, AnswerMetric]
    judged: Mapping[str, JudgeMetric]
    spoken: Mapping[str, Metric]
    order: tuple[str, ...]

    @classmethod
    def of(
        cls,
        process: Sequence[str],
        metrics: Mapping[str, Sequence[str] | None],
        judges: Sequence[str] = (),
        baseline: str = "",
    ) -> Scheme:
        """Build the scheme of a benchmark.

        Args:
            process: the steps of its post-processing.
            metrics: metric name to its post-processing steps, or to None for the benchmark's. Groups such as
                `captions` must be expanded already.
            judges: the models that give verdicts, the first under the metric's plain name.
            baseline: the label of the baseline that a judge compares with; "" for none.

        Raises:
            UserError: an unknown step or metric, or a package that one needs is missing.
        """
        named = {one: (n, judge) for n in metrics for one, judge in names_by_judge(n, judges).items()}
        metrics = {one: metrics[n] for one, (n, _) in named.items()}
        answers = {n: load_answer_metric(n) for n in metrics if not is_judge_metric(n) and is_answer_metric(n)}
        judged = {one: load_judge_metric(n, judge, baseline) for one, (n, judge) in named.items() if is_judge_metric(n)}
        return cls(
            chain=load_steps(process),
            chains={n: load_steps(steps) for n, steps in metrics.items() if steps is not None},
            alone={n: m for n, m in answers.items() if not m.whole_set},
            sets={n: m for n, m in answers.items() if m.whole_set},
            judged=judged,
            spoken={n: build_metric(n) for n in metrics if n not in answers and n not in judged},
            order=tuple(metrics),
        )

    def chain_of(self, metric: str) -> Chain:
        """The post-processing before a metric; `official/...` metrics keep the reasoning."""
        chain = self.chains.get(metric, self.chain)
        return replace(chain, keeps_reasoning=True) if OFFICIAL in metric else chain

    @property
    def transcripts(self) -> tuple[str, ...]:
        """The metrics that transcribe spoken answers, each once."""
        chains = [self.chain, *self.chains.values()]
        return tuple(dict.fromkeys(transcript_of(c) for c in chains if c.recogniser is not None))

    @property
    def read_along(self) -> tuple[str, ...]:
        """Audio metrics that are no result themselves, but inputs of other metrics."""
        names = (name for metric in self.alone.values() for name in metric.sound_metrics)
        return tuple(dict.fromkeys([*self.transcripts, *names]))

    @property
    def reads_sound(self) -> bool:
        """Whether the sound of answers is needed."""
        return bool(self.spoken or self.read_along)

    @property
    def compares(self) -> bool:
        """Whether an answer's sound is compared with the question's."""
        return any(metric.kind == "pair" for metric in self.spoken.values())

    def plan(
        self, options: Mapping[str, Mapping[str, Any]], languages: Iterable[str | None] | None, *, gpu: bool,
        seed: int | None = None,
    ) -> Plan:  # fmt: skip
        """Plan the audio metrics of spoken answers; `languages` None allows any."""
        settings = {name: values for name, values in options.items() if name in self.features}
        return build_plan([build_generated()], self._of_sound, settings, languages, gpu=gpu, seed=seed)

    @property
    def features(self) -> frozenset[str]:
        """The names of the features of spoken answers."""
        return frozenset(feature for name in self._of_sound for feature in list_features_read(build_metric(name)))

    @property
    def _of_sound(self) -> list[str]:
        return list(dict.fromkeys([*self.spoken, *self.read_along]))

    def facts(self) -> dict[str, dict[str, Any]]:
        """The record's facts about each metric, in the benchmark's order."""
        metrics: dict[str, Any] = {**self.alone, **self.sets, **self.judged, **self.spoken}
        return {name: _metric_facts(metrics[name]) for name in self.order}

    def identity(self) -> dict[str, Any]:
        """Everything that changes a score, as JSON values."""
        protocols = {name: facts["protocol"] for name, facts in self.facts().items()}
        protocols |= {name: build_metric(name).protocol for name in self.read_along}
        chains = {name: list(chain.names) for name, chain in self.chains.items()}
        steps = {name for chain in (self.chain, *self.chains.values()) for name in chain.names}
        versions = sorted(set(version_steps(sorted(steps))) - steps)
        return {
            "process": list(self.chain.names),
            "chains": chains,
            "metrics": protocols,
            **({"reading": versions} if versions else {}),
            **({"code": code} if (code := self._code()) else {}),
        }

    def _code(self) -> dict[str, str]:
        """The hashes of custom code and of other packages' metrics and features, by name."""
        registries = {
            **dict.fromkeys([*self.alone, *self.sets], ANSWER_METRICS),
            **dict.fromkeys(self._of_sound, METRICS),
            **dict.fromkeys(sorted(self.features), FEATURES),
        }
        hashes = {name: registry.code_hash(Spec.parse(name).name) for name, registry in registries.items()}
        return {name: code for name, code in hashes.items() if code}


def transcript_of(chain: Chain) -> str:
    """The name of the metric with the transcripts that a chain of steps reads."""
    return f"transcript[{chain.recogniser}]"


def _metric_facts(metric: Any) -> dict[str, Any]:
    """Describe a metric for the record, and its judge and rubric if it has them."""
    summary = metric.summary.strip().split("\n")[0] if isinstance(metric, JudgeMetric) else doc_summary(type(metric))
    return {
        "protocol": metric.protocol,
        "kind": getattr(metric, "kind", "answer"),
        "unit": metric.unit,
        "higher_is_better": metric.higher_is_better,
        "range": list(metric.range),
        **({"bounds": list(bounds)} if (bounds := getattr(metric, "bounds", None)) is not None else {}),
        "aggregate": metric.aggregate,
        "paper": metric.paper,
        "source": metric.source,
        "summary": summary,
        **({"judge": metric.judge, "rubric": metric.rubric_name} if isinstance(metric, JudgeMetric) else {}),
        **({"hears": True} if isinstance(metric, JudgeMetric) and metric.rubric.hears else {}),
        **(
            {"own_rubric": metric.rubric.model_dump(exclude_defaults=True)}
            if isinstance(metric, JudgeMetric) and is_own(metric.rubric_name)
            else {}
        ),
        **({"judged_by": by} if isinstance(metric, JudgeMetric) and (by := metric.rubric.judged_by) else {}),
    }
