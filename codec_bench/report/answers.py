"""Notes on a run's answers: the answering models, and ignored parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codec_bench.report.numbers import Entries, plain
from codec_bench.report.robustness.rows import WAYS
from codec_bench.stats.answers import wordings_text
from codec_bench.stats.summary_types import Answers, Count, Judging

_MANY = 0.05
"""The share of missing answers from which a note reports them."""
_VALUES = 8
"""How many subsets are named; `summary.json` has all of them."""


def answer_notes(answers: Answers) -> list[str]:
    """Return the notes on answers, one sentence each."""
    if not answers:
        return []
    notes = [
        *([f"each question was sent in {wordings_text(answers.each_wording)}"] if answers.each_wording else []),
        *_length_notes(answers),
        *_collapse_notes(answers),
        *_served_notes(answers),
        *_ignored("model", answers.decoding),
        *_ignored("judge", answers.judging),
    ]
    return [plain(note) for note in notes]


def cost_text(done: Answers | Judging) -> str:
    """Return the cost in words; empty if unknown or zero."""
    if done.cost_range_usd:
        least, most = done.cost_range_usd
        return f"{least:.4g} to {most:.4g} USD (the service does not say which tokens were sound)"
    return f"{done.cost_usd:.4g} USD" if done.cost_usd else ""


def spent_text(done: Answers | Judging) -> str:
    """Return tokens and cost in words; empty if unknown."""
    used = [f"{amount:,.0f} {name.replace('_', ' ')}" for name, amount in done.usage.items() if amount]
    return "; ".join(filter(None, (*used, cost_text(done))))


def judge_notes(entries: Entries) -> list[str]:
    """Return a note per metric and system on its judge's calls and cost."""
    notes = []
    for system, metric, entry in entries:
        done = entry.judging
        if not done or not done.asked:
            continue
        phrases = [
            f"{done.asked - done.failed:,} verdicts on {done.asked:,} answers",
            f"{done.calls:,} calls, {done.cached:,} of them from the cache",
            spent_text(done),
            f"the service named {' and '.join(done.served)}" if done.served else "",
        ]
        if len(done.served) > 1:
            phrases.append(f"so that the verdicts may be those of {len(done.served)} judges")
        notes.append(plain(f"{metric} of {system}: the judge {done.judge} gave {'; '.join(filter(None, phrases))}"))
    return notes


def _length_notes(answers: Answers) -> list[str]:
    """Notes on audio that was cut or too long, and answers that ended early."""
    phrases = []
    if answers.cut.n:
        unheard = answers.cut.unheard
        of_all = f"; {100 * unheard:.3g} % of all sound was cut" if unheard is not None else ""
        phrases.append(
            f"the audio of {_count_and_share(answers.cut)} was cut, because it is longer than the model takes{of_all}"
        )
    if answers.too_long and answers.too_long.n:
        phrases.append(
            f"{_count_and_share(answers.too_long)} were not sent, because their audio is longer than the model takes"
        )
    if answers.at_limit and answers.at_limit.n:
        phrases.append(f"{_count_and_share(answers.at_limit, 'answers')} ended at a limit of length")
    if answers.with_reasoning and answers.with_reasoning.n:
        phrases.append(
            f"{_count_and_share(answers.with_reasoning, 'answers')} held the model's reasoning, which was cut off; "
            "metrics of official/ read it"
        )
    return phrases


def _collapse_notes(answers: Answers) -> list[str]:
    """A note if many answers are degenerate (empty, looping, copied ...), by kind."""
    answered = answers.asked - sum(answers.failed.values())
    none = answers.no_answer or 0
    if not answered or none < _MANY * answered:
        return []
    ways = ", ".join(f"{WAYS[kind]} {count:,}" for kind, count in sorted(answers.ways.items(), key=lambda one: -one[1]))
    return [f"{none:,} of {answered:,} answers are none ({ways})"]


def _count_and_share(count: Count, of: str = "questions") -> str:
    return f"{count.n:,} {of} ({100 * count.share:.3g} %)"


def _ignored(role: str, decoding: Mapping[str, Any] | None) -> list[str]:
    unsupported = (decoding or {}).get("untold") or {}
    return [f"the {role} does not accept '{name}': {why}" for name, why in unsupported.items()]


def _served_notes(answers: Answers) -> list[str]:
    """Notes on which model the service reports to have answered."""
    served = answers.served
    parts = [
        f"{one.n:,} answers are from '{one.model}' and not from '{answers.asked_for}'{_where(one.subsets)}"
        for one in served
        if one.other
    ]
    if answers.alias:
        unknown = (
            "it does not say which model is behind it, so a change of that model shows only in the questions that are"
        )
        parts.append(f"'{answers.alias}' is a name that the service gave: {unknown} repeated")
    if len({(one.model, one.revision) for one in served}) > 1:
        states = "; ".join(f"{one.state} gave {one.n:,} answers{_where(one.subsets)}" for one in served)
        parts.append(f"the service named {len(served)} states of the model that answered: {states}")
    for one in (answers.canary or {}).get("changed", ()):
        among = (
            f", so that the {one['answers']:,} answers before may be from either of two models{_where(one['subsets'])}"
            if one.get("answers")
            else ""
        )
        parts.append(f"{one['asked'] - one['same']} of {one['asked']} repeated questions got another answer{among}")
    return parts


def _where(subsets: Mapping[str, Mapping[str, int]] | None) -> str:
    """Return the answers per subset, in brackets; empty without subsets."""
    columns = []
    for column, values in (subsets or {}).items():
        named = [f"{value} {n:,}" for value, n in list(values.items())[:_VALUES]]
        more = [f"{len(values) - _VALUES:,} more values"] if len(values) > _VALUES else []
        columns.append(f"{column}: {', '.join([*named, *more])}")
    return f" ({'; '.join(columns)})" if columns else ""


__all__ = ["answer_notes", "judge_notes"]
