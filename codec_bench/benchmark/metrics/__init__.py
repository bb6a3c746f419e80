"""Metrics of answers: `accuracy[exact]`, `wer[answer]@by-language`, `bleu[zh]`.

`docs/metrics/answers.md` lists them all. `wer`, `cer` and `hallucinated` are metrics of answers with the argument
`answer` only; with a recogniser's name they are audio metrics (`codec_bench.metrics`).

Which file to open
    A rule for right answers is in `accuracy.py`, or with its toolkit's quirks in `audiobench.py`, `ultraeval.py`,
    `mmsu.py`, `mmau_pro.py`, `muchomusic.py`, `spoken_rules.py` or `air_bench_foundation.py`. `error_rate.py`,
    `bleu.py`, `rouge.py`, `meteor.py` and `captions.py` compare texts, `session_wer.py` those of whole sessions,
    `tag_f1.py` tags, `sections.py` the sections of a song. `ifeval.py` counts the checks of `instructions.py`.
    `refusal.py` detects refusals, `repeated.py` scores repetitions, `speaking_style.py` also the manner of speech,
    `reference_errors.py` detects fitted models. `pair_accuracy.py` compares likelihoods. `withheld.py` is for
    benchmarks without published answers. `base.py` has the base classes.
"""

from __future__ import annotations

from typing import Any

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.registry import Registry, Spec, call_with_known
from codec_bench.messages.errors import UnknownName, UserError

TABLE = {
    "accuracy": "codec_bench.benchmark.metrics.accuracy:Accuracy",
    "bleu": "codec_bench.benchmark.metrics.bleu:Bleu",
    "boundary_f1": "codec_bench.benchmark.metrics.sections:BoundaryF1",
    "cer": "codec_bench.benchmark.metrics.error_rate:AnswerCer",
    "cider": "codec_bench.benchmark.metrics.captions:Cider",
    "coco_bleu": "codec_bench.benchmark.metrics.captions:CocoBleu",
    "hallucinated": "codec_bench.benchmark.metrics.error_rate:AnswerHallucinated",
    "ifeval": "codec_bench.benchmark.metrics.ifeval:IfEval",
    "meteor": "codec_bench.benchmark.metrics.meteor:Meteor",
    "original_followed": "codec_bench.benchmark.metrics.reference_errors:OriginalFollowed",
    "pair_accuracy": "codec_bench.benchmark.metrics.pair_accuracy:PairAccuracy",
    "refusal_rate": "codec_bench.benchmark.metrics.refusal:RefusalRate",
    "rendering_followed": "codec_bench.benchmark.metrics.reference_errors:RenderingFollowed",
    "repeated": "codec_bench.benchmark.metrics.repeated:Repeated",
    "rouge_l": "codec_bench.benchmark.metrics.rouge:RougeL",
    "said_as_told": "codec_bench.benchmark.metrics.speaking_style:InstructedStyle",
    "said_fittingly": "codec_bench.benchmark.metrics.speaking_style:FittingStyle",
    "said_with_emotion": "codec_bench.benchmark.metrics.speaking_style:EmotionalSpeech",
    "section_accuracy": "codec_bench.benchmark.metrics.sections:SectionAccuracy",
    "session_wer": "codec_bench.benchmark.metrics.session_wer:SessionWer",
    "tag_f1": "codec_bench.benchmark.metrics.tag_f1:TagF1",
    "withheld": "codec_bench.benchmark.metrics.withheld:Withheld",
    "wer": "codec_bench.benchmark.metrics.error_rate:AnswerWer",
}
GROUPS = {"captions": (*(f"coco_bleu[{n}]" for n in range(1, 5)), "rouge_l[coco]", "cider")}
REGISTRY = Registry("answer_metric", "ANSWER_METRICS", TABLE)
_SHARED = ("cer", "hallucinated", "wer")
"""Names of audio metrics too; the argument `[answer]` marks the metrics of answers."""


def answer_metric_names() -> list[str]:
    """The names of all metrics of answers, without arguments, and of their groups."""
    return sorted([*REGISTRY.table(), *GROUPS])


def is_answer_metric(text: str) -> bool:
    """Whether a name, with any argument, is a metric of answers or a group of them.

    True for `wer[answer]` and a user's own subclass of `AnswerMetric`; false for `wer[whisper-large-v3]` or `stoi`.

    Raises:
        UserError: the text does not have the form of a name.
    """
    spec = Spec.parse(text)
    if is_custom_code(spec.name):
        resolved = REGISTRY.resolve(spec.name)
        return isinstance(resolved, type) and issubclass(resolved, AnswerMetric)
    if spec.name in _SHARED:
        return spec.argument == "answer"
    return spec.name in GROUPS or spec.name in REGISTRY.table()


def expand_answer_metrics(texts: list[str]) -> list[str]:
    """Replace the names of groups by their members'; the group `captions` has six."""
    return [member for text in texts for member in GROUPS.get(text, (text,))]


def load_answer_metric(text: str) -> AnswerMetric:
    """Build a metric of answers from its name. Expand groups first.

    Raises:
        UnknownName: there is no such metric.
        UserError: the metric does not take this argument.
        MissingExtra: a package that the metric needs is not installed.
    """
    spec = Spec.parse(text)
    if not is_custom_code(spec.name) and spec.name not in REGISTRY.table():
        raise UnknownName("answer_metric", spec.name, answer_metric_names())
    if spec.name in _SHARED and spec.argument is None:
        raise UserError("metric_without_side", text=text, hint=f"{spec.name}[answer]")
    values = {"variant": spec.argument, "point": spec.point}
    options: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    metric = call_with_known(REGISTRY.resolve(spec.name), options)
    if not isinstance(metric, AnswerMetric):
        raise UserError("not_a_metric_of_answers", text=text, hint="derive its class from AnswerMetric")
    if REGISTRY.is_foreign(spec.name):
        from codec_bench.stats.sets import check_aggregate

        check_aggregate(text, metric.aggregate)
    return metric


__all__ = [
    "GROUPS",
    "REGISTRY",
    "TABLE",
    "Answer",
    "AnswerMetric",
    "answer_metric_names",
    "expand_answer_metrics",
    "is_answer_metric",
    "load_answer_metric",
]
