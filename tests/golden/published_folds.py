"""Published ways to combine a benchmark's items into its numbers, by name and with their quirks.

The tests fold published cases with them; the product has aggregates of its own.

`official/ultraeval-audio/...` (github.com/OpenBMB/UltraEval-Audio 9b69da6 `audio_evals/agg`): `acc`, `mean`,
`naive-acc`, `geval`, `wer`, `wer-zh`, `wer-yue`, `wer-kr`, `wer-jp`, `bleu`, `bleu-zh`, `airbench-chat`,
`instruct-tts`, `long-tts-wer`. `official/air-bench/chat`, `official/air-bench/foundation`
(github.com/OFA-Sys/AIR-Bench 9832476); `official/audiobench/judge-0-5`, `judge-binary`, `string-match`
(github.com/AudioLLMs/AudioBench e991641).

A row is what the published program keeps of an item (`pred`, `ref`, `match`, ...); items that failed have no row. The
keys of the results are the published program's own. These aggregations serve to compare a run with a published
number. The project's own aggregation, which has intervals and counts failures, is in `codec_bench.stats`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from codec_bench.messages.errors import UnknownName
from codec_bench.text.rules import get_rule, weighted_mean

Row = Mapping[str, Any]
Values = dict[str, Any]

INSTRUCTION_TYPES = ("APS", "DSD", "RP")
"""The kinds of instructions in InstructTTSEval: acoustic parameters, descriptive style, role play."""

CHAT_GROUPS = {
    "speech": ("speech_QA", "speech_dialogue_QA"),
    "sound": ("sound_QA", "sound_generation_QA"),
    "music": ("music_QA", "music_generation_analysis_QA"),
    "speech_and_sound": ("speech_and_sound_QA",),
    "speech_and_music": ("speech_and_music_QA",),
}
"""AIR-Bench's groups of chat questions, by the names in its data."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The result of a published aggregation.

    Args:
        values: its numbers under the published program's keys.
        reason: why there are none, if the published program ends in an error here; else None.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


def aggregate(name: str, rows: Sequence[Row]) -> Aggregate:
    """Combines rows as a published program does.

    Args:
        name: name of the aggregation, see `AGGREGATORS`.
        rows: what the published program keeps of each item.

    Raises:
        UnknownName: there is no such aggregation.
    """
    if name not in AGGREGATORS:
        raise UnknownName("published aggregation", name, AGGREGATORS)
    try:
        return Aggregate(AGGREGATORS[name](rows))
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
        return Aggregate(reason=f"'{name}' has no value for these {len(rows)} rows: {type(error).__name__}: {error}")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _acc(rows: Sequence[Row]) -> Values:
    return {"acc(%)": 100 * _mean([str(row["pred"]) == str(row["ref"]) for row in rows])}


def _mean_of_columns(rows: Sequence[Row], columns: Sequence[str] | None = None) -> Values:
    """The mean of every numeric key of the first row, without None.

    It is multiplied by 100 unless the key has a `%`.
    """
    values: Values = {}
    for key in columns or [key for key, value in rows[0].items() if isinstance(value, (int, float))]:
        share = "%" not in key
        known = [row[key] for row in rows if row.get(key) is not None]
        values[f"{key}(%)" if share else key] = _mean(known) * (100 if share else 1)
    return values


def _wer(rows: Sequence[Row], language: str) -> Values:
    rule = get_rule("official/ultraeval-audio/wer")
    compared = rule.compare(
        reference=[str(row["ref"]) for row in rows],
        estimate=[str(row["pred"]) for row in rows],
        language=[language] * len(rows),
    )
    value = rule.corpus(compared)
    if value is None:
        raise ZeroDivisionError("no reference has a word")
    return {"wer(%)": 100 * value}


def _bleu(rows: Sequence[Row], variant: str) -> Values:
    """As a run computes it: counts of each answer, summed and folded."""
    from codec_bench.benchmark.metrics.base import Answer
    from codec_bench.benchmark.metrics.bleu import Bleu
    from codec_bench.stats.corpus import FOLDS

    metric = Bleu(f"official/ultraeval-audio/{variant}")
    scores = metric.compute([Answer(str(n), str(row["pred"]), (str(row["ref"]),)) for n, row in enumerate(rows)])
    counts = [score.detail["counts"] for score in scores if score.status == "ok"]
    if not counts:
        raise ValueError("every reference is empty")
    return {"bleu": float(FOLDS[metric.aggregate](np.sum(counts, axis=0, dtype=float)))}


def _air_chat(rows: Sequence[Row]) -> Values:
    return {
        "win(%)": 100 * _mean([row["pred_score"] > row["ref_score"] for row in rows]),
        "ref_score": _mean([row["ref_score"] for row in rows]),
        "pred_score": _mean([row["pred_score"] for row in rows]),
    }


def _instruct_tts(rows: Sequence[Row]) -> Values:
    """For each type the share of true verdicts among the valid ones. In the average, a type without valid verdicts
    counts as 0, and a type without rows is excluded."""
    values: Values = {}
    shares = []
    for kind in INSTRUCTION_TYPES:
        verdicts = [row.get("gemini_score") for row in rows if row.get("instruction_type") == kind]
        if not verdicts:
            continue
        valid = [int(verdict) for verdict in verdicts if verdict is not None]
        shares.append(100 * sum(valid) / len(valid) if valid else 0.0)
        values |= {
            f"{kind}(%)": round(shares[-1], 2),
            f"{kind}_valid": len(valid),
            f"{kind}_null": len(verdicts) - len(valid),
        }
    return values | ({"AVG(%)": round(_mean(shares), 2)} if shares else {})


def _weighted(rows: Sequence[Row]) -> Values:
    """The mean of every numeric column of the first row, weighted by `word_count`.

    A missing value is excluded with its weight.
    """
    values: Values = {}
    weights = [row["word_count"] for row in rows]
    for key, first in rows[0].items():
        if key != "word_count" and isinstance(first, (int, float)):
            share = "%" not in key
            value = weighted_mean([row.get(key) for row in rows], weights)
            if value is None:
                raise ZeroDivisionError("the weights are all zero")
            values[f"{key}(%)" if share else key] = value * (100 if share else 1)
    return values


def _chat_groups(rows: Sequence[Row]) -> Values:
    """Takes rows with `task_name`, `first` and `second`. Rows whose judge's line could not be read are excluded."""
    values: Values = {}
    for group, names in CHAT_GROUPS.items():
        read = [row for row in rows if row["task_name"] in names and row.get("first") is not None]
        if read:
            values[group] = {
                "count": len(read),
                "mean_first": _mean([row["first"] for row in read]),
                "mean_second": _mean([row["second"] for row in read]),
                "share_first_higher": _mean([row["first"] > row["second"] for row in read]),
                "share_second_higher": _mean([row["second"] > row["first"] for row in read]),
            }
    return values


def _foundation(rows: Sequence[Row]) -> Values:
    """Takes rows with `task_name` and `correct`. Rows in which no option could be read (None) are excluded."""
    values: Values = {}
    for name in dict.fromkeys(row["task_name"] for row in rows):
        read = [row["correct"] for row in rows if row["task_name"] == name and row["correct"] is not None]
        if read:
            values[name] = {"counted": len(read), "correct": sum(read), "accuracy": _mean(read)}
    return values


def _judge(rows: Sequence[Row], scale: float) -> Values:
    """Takes rows with `score` and `success`. A rating that could not be read counts as 0."""
    return {
        "judge_score": scale * _mean([row["score"] for row in rows]),
        "success_rate": _mean([row["success"] for row in rows]),
    }


def _string_match(rows: Sequence[Row]) -> Values:
    return {"judge_score": 100 * _mean([row["score"] for row in rows])}


AGGREGATORS: dict[str, Callable[[Sequence[Row]], Values]] = {
    "official/air-bench/chat": _chat_groups,
    "official/air-bench/foundation": _foundation,
    "official/audiobench/judge-0-5": partial(_judge, scale=20),
    "official/audiobench/judge-binary": partial(_judge, scale=100),
    "official/audiobench/string-match": _string_match,
    "official/ultraeval-audio/acc": _acc,
    "official/ultraeval-audio/airbench-chat": _air_chat,
    "official/ultraeval-audio/bleu": partial(_bleu, variant="bleu"),
    "official/ultraeval-audio/bleu-zh": partial(_bleu, variant="bleu-zh"),
    "official/ultraeval-audio/geval": partial(_mean_of_columns, columns=("geval",)),
    "official/ultraeval-audio/instruct-tts": _instruct_tts,
    "official/ultraeval-audio/long-tts-wer": _weighted,
    "official/ultraeval-audio/mean": _mean_of_columns,
    "official/ultraeval-audio/naive-acc": partial(_mean_of_columns, columns=("acc",)),
    **{
        f"official/ultraeval-audio/{name}": partial(_wer, language=language)
        for name, language in (("wer", "en"), ("wer-jp", "jp"), ("wer-kr", "kr"), ("wer-yue", "yue"), ("wer-zh", "zh"))
    },
}
"""Every published aggregation by name.

Each turns rows into values, and raises an exception where the published program does.
"""
