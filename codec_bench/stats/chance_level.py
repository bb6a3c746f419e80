"""Additions to a metric of answers: chance level, reading, references, judge.

The chance level is the mean probability over the scored questions that a guess is right. `official` is the value by the
failure rule of the benchmark's toolkit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from codec_bench.stats.answers import cost_of
from codec_bench.stats.breakdown import MetricParts, Subsets
from codec_bench.stats.intervals import ratios
from codec_bench.stats.notes import Note
from codec_bench.stats.recorded import Scores
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import (
    Counted,
    CountingFailures,
    Judging,
    Official,
    Policies,
    ReadBy,
    ReferenceComparison,
    Subset,
)
from codec_bench.store.answers import CALLS
from codec_bench.store.judge_tests import judge_words

STAGES = ("exact", "aligned", "neither")
"""How an option was read: by a rule, by the judge, or by neither."""


def answer_statistics(
    scores: Scores, parts: MetricParts, subsets: Subsets, entries: Mapping[str, Mapping[str, Subset]]
) -> dict[str, Any]:
    """Fields of a metric of answers: `chance`, `read`, `compared`, and new `subsets`.

    `chance` is the mean score of guessing, also added to `subsets`; `read` counts the answers that a rule or the judge
    could read; `compared` compares the answers with the references.

    Args:
        scores, parts: of the metric.
        subsets: sample numbers by column and value.
        entries: the subsets' results.
    """
    failed = {number for number, _, _ in scores.unscored}
    scored = {number: held for number, held in scores.details.items() if number not in failed}
    fields: dict[str, Any] = {}
    chances = {number: held["chance"] for number, held in scored.items() if "chance" in held}
    if chances:
        fields["chance"] = fmean(chances.values())
        fields["subsets"] = {
            column: {
                name: replace(entry, chance=_mean(chances[n] for n in subsets[column][name] if n in chances))
                for name, entry in values.items()
            }
            for column, values in entries.items()
        }
    stages = [held.get("stage") for held in scores.details.values()]
    exact, aligned, neither = (stages.count(stage) for stage in STAGES)
    if total := exact + aligned + neither:
        fields["read"] = ReadBy(exact, aligned, neither, exact / total, (exact + aligned) / total)
    if any("won" in held for held in scored.values()):
        fields["compared"] = ReferenceComparison(
            _over(parts, scored, "won", share=True),
            _mean(held.get("tied") for held in scored.values()),
            _mean(held.get("of_reference") for held in scored.values()),
            _over(parts, scored, "first_minus_second"),
            UNSET if (changed := _mean(held.get("changed") for held in scored.values())) is None else changed,
        )
    return fields


def policies(value: float | None, counting: CountingFailures, failures: Mapping[str, str]) -> Policies:
    """The value by each rule for failures.

    Args:
        value: without failures.
        counting: with failures as wrong.
        failures: the toolkit and its rule.
    """
    official = counting.of_all if failures["counts"] == "as-wrong" else value
    return Policies(value, counting.of_all, Official(failures["toolkit"], failures["counts"], official))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _over(parts: MetricParts, scored: Mapping[int, Mapping[str, Any]], field: str, *, share: bool = False) -> Counted:
    """The mean of one entry of the details, with its interval over the value's units."""
    of = parts.at([position for position, number in enumerate(parts.numbers) if field in scored.get(number, {})])
    sums = np.asarray([(scored[number][field], 1.0) for number in of.numbers], np.float64).reshape(-1, 2)
    return replace(of, sums=sums, fold=ratios, share=share, bounds=None).as_entry(Counted)


MOST_FAILED = 0.05
"""A larger share of answers without a verdict gives a note."""


def judging_of(scores: Scores, facts: Mapping[str, Any], tests: Mapping[str, Any] | None = None) -> Judging | None:
    """Sum up a judge's calls, failures and cost for a metric; None without a judge.

    Args:
        facts: the metric's recorded facts.
        tests: judge tests in the record.
    """
    if "judge" not in facts:
        return None
    requests = failed = 0
    sums, usage, served = Counter[str](), Counter[str](), set()
    without_value = {number for number, _, _ in scores.unscored}
    for number, held in scores.details.items():
        calls = held.get(CALLS)
        if not isinstance(calls, Mapping):
            continue
        requests += 1
        failed += number in without_value
        sums.update({name: calls.get(name, 0) for name in ("n", "cached", "unpriced")})
        usage.update(calls.get("usage", {}))
        served.update(calls.get("served", ()))
    cost, unsure = (usage.pop(name, 0.0) for name in ("cost_usd", "cost_unsure_usd"))
    return Judging(
        judge=facts["judge"], rubric=facts.get("rubric"), asked=requests, failed=failed,
        share=failed / requests if requests else 0.0, calls=sums["n"], cached=sums["cached"], usage=dict(usage),
        served=sorted(served),
        **cost_of(None if sums["unpriced"] else cost, unsure),
        tested=judge_words(facts["judge"], facts.get("protocol", ""), bool(facts.get("hears")), sorted(served), tests),
    )  # fmt: skip


def failing(judging: Judging | None) -> Note | None:
    """A note if a judge gave no verdict on more than 5 % of the answers."""
    if not judging or judging.share <= MOST_FAILED:
        return None
    return Note("judge_silent", failed=judging.failed, asked=judging.asked)
