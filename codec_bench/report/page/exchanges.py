"""Questions with answers, and published results, for the page of a benchmark.

Systems and samples are positions, as in `collect.py`. Long texts are cut, visibly.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from codec_bench.messages.errors import beginning
from codec_bench.report import numbers
from codec_bench.stats.summary_types import Counted, CountingFailures, MetricSummary
from codec_bench.store.answers import Exchange, QuestionRecord, exchanges, has_answers
from codec_bench.store.controls import marks_in, without_marks
from codec_bench.store.judge_tests import judge_words
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.store.record import Run

CHARACTERS = 6000
_PARTS = 20
SHORT = 8


def spoken_questions(run: Run) -> list[str]:
    """Return the ids of questions with stored audio; empty for runs of codecs."""
    if not has_answers(run):
        return []
    rows = run.query("SELECT p.id FROM questions q JOIN samples p ON p.number = q.number WHERE q.audio IS NOT NULL")
    return [id for (id,) in rows]


def collect_exchanges(
    runs: Sequence[Run], systems: Sequence[Any], places: Sequence[Mapping[str, int]], position: Mapping[int, int]
) -> list[list[Any]]:
    """Return `[system, sample, {prompt, expected, answer, ...}]` for chosen samples.

    Args:
        places: for each run, the page position of each sample by id.
        position: of each chosen sample among those on the page.
    """
    rows = []
    for s, system in enumerate(systems):
        run = runs[system.run]
        if not has_answers(run):
            continue
        chosen = {id for id, sample in places[system.run].items() if sample in position}
        verdicts = _verdicts(run, system.name, chosen)
        for exchange in exchanges(run):
            id = exchange.question.id
            if id in chosen:
                row = _exchange_row(exchange, verdicts.get(id, []), _is_read(run))
                rows.append([s, position[places[system.run][id]], row])
    return rows


def _is_read(run: Run) -> bool:
    return any(facts.get("kind") in ("answer", "rating") for facts in run.metrics.values())


def _verdicts(run: Run, system: str, chosen: Container[str]) -> dict[str, list[str]]:
    """Collect the judges' replies to the chosen answers by sample id."""
    replies_by_id: dict[str, list[str]] = {}
    for metric in (name for name, facts in run.metrics.items() if facts.get("kind") == "rating"):
        for score in run.scores(system, metric):
            if score.id in chosen:
                replies = score.detail.get("replies", ())
                replies_by_id.setdefault(score.id, []).extend(f"{metric}: {reply}" for reply in replies)
    return replies_by_id


def _exchange_row(exchange: Exchange, verdicts: Sequence[str], is_read: bool) -> dict[str, Any]:
    """A question, its answer and its scores as values of the page."""
    question, answer, reading = exchange.question, exchange.answer, exchange.reading
    cut = cut_reasoning(answer.text) if answer.text is not None else None
    facts = {
        "prompt": question.prompt,
        "about": _about(question),
        "expected": list(question.expected),
        "status": answer.status,
        "reason": answer.reason,
        "answer": cut.text if cut is not None else None,
        "reasoning": "\n\n".join(filter(None, (answer.reasoning, cut.reasoning if cut is not None else None))) or None,
        "transcript": reading.transcript if reading else None,
        "read": reading.parsed if reading else None,
        "unread": reading.reason if is_read and reading and reading.parsed is None and answer.status == "ok" else None,
        "verdicts": list(verdicts),
        "latency_s": answer.latency_s,
        "finish": answer.finish,
        "cut_s": answer.cut_s or None,
        "cached": answer.cached or None,
        "subsets": ", ".join(f"{name}: {value}" for name, value in without_marks(question.subsets).items()) or None,
        "controls": marks_in(question.subsets),
    }
    return {key: _cut(value) for key, value in facts.items() if value not in (None, "", [])}


def _about(question: QuestionRecord) -> list[str]:
    """Return a question's columns outside the prompt and the expected answers.

    They may hold the text of a spoken question, and material of the judge.
    """
    lines = []
    for name, value in question.fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        # A short text such as "A" is in most prompts by chance.
        in_prompt = len(text) >= SHORT and text in (question.prompt or "")
        if value is not None and not in_prompt and text not in question.expected and name not in question.subsets:
            lines.append(f"{name}: {text}")
    return lines


def _cut(value: Any) -> Any:
    """Shorten a text, or a list with its texts; other values stay."""
    if isinstance(value, str):
        return beginning(value, CHARACTERS)
    if not isinstance(value, list):
        return value
    left = len(value) - _PARTS
    return [_cut(item) for item in value[:_PARTS]] + ([f"and {left:,} more"] if left > 0 else [])


def counting_rows(
    systems: Sequence[Any], heads: Sequence[Mapping[str, Any]], entries: Sequence[Sequence[MetricSummary | None]]
) -> list[dict[str, Any]]:
    """Return a row per system with failures as the worst value, if any failed."""
    counting = [[(entry and entry.counting_failures) or None for entry in row] for row in entries]
    item_counts = [[entry.n if entry else 0 for entry in row] for row in entries]
    if not any(e and e.n > n for row, counts in zip(counting, item_counts) for e, n in zip(row, counts)):
        return []
    return [
        {"label": system.label, "cells": [_cell(entry, head) for entry, head in zip(row, heads)]}
        for system, row in zip(systems, counting)
    ]


def common_rows(
    systems: Sequence[Any], heads: Sequence[Mapping[str, Any]], entries: Sequence[Sequence[MetricSummary | None]]
) -> list[dict[str, Any]]:
    """Return a row per system over the samples of all compared systems of its run.

    A system that lacks some of them has no values. Without different samples there are no rows.
    """
    if not any(entry and entry.common for row in entries for entry in row):
        return []
    rows = []
    for system, row in zip(systems, entries):
        cells = []
        for entry, head in zip(row, heads):
            cell = _cell(None if entry is None else entry.common or entry, head)
            cells.append(cell and {**cell, "best": entry is not None and numbers.is_best(entry)})
        rows.append({"label": system.label, "cells": cells})
    return rows


def _cell(entry: Counted | CountingFailures | MetricSummary | None, head: Mapping[str, Any]) -> dict[str, Any] | None:
    """A table cell with value and n, but no interval; None without a value."""
    shown_value = entry.of_all if isinstance(entry, CountingFailures) else entry.value if entry is not None else None
    if entry is None or shown_value is None:
        return None
    value = numbers.number(head["factor"] * shown_value, head["places"])
    return {"value": value, "n": entry.n, "spread": "", "best": False, "chance": "", "below_50": ""}


def published_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return published results of the same benchmarks as rows.

    Keys: `model`, `metric`, `value`, `source`, `benchmark`, and `judge` where there is one.
    """
    rows, seen = [], set()
    for run in runs:
        benchmark, metrics = run.meta.get("benchmark") or {}, run.metrics
        for row in benchmark.get("published", []):
            key = (benchmark.get("name"), row["model"], row["metric"])
            if key not in seen:
                seen.add(key)
                title = benchmark.get("title") or benchmark.get("name")
                rows.append({**row, "benchmark": title, "judge": _published_by(metrics.get(row["metric"], {}))})
    return rows


def _published_by(facts: Mapping[str, Any]) -> str:
    """Return the judge of published numbers with its test result, or ""."""
    if not facts.get("judge"):
        return ""
    judge, rubric = facts.get("judged_by"), str(facts.get("protocol", "")).rpartition("/")[0]
    return f"{judge or 'a judge that is not known'}; {judge_words(judge, rubric, bool(facts.get('hears')))}"
