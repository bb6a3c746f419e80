"""Figures from a judge's replies.

Declined or unreadable replies count half, so silence and constant replies have J = 0; failed calls are excluded. Of
claims, J is the share of affirmed true claims less that of false ones (Youden 1950), the mean over pairs of (right
replies - 1), as for choices in both orders. A pair of marks counts 1, 0 or -1 for the better answer. Biases to high or
middle marks are relative to a perfect judge. Units of intervals are the sounds or facts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from codec_bench.apps.judging.injected import BETTER, KINDS, LENGTHS, RIGHT, InjectedAnswer, injected_answers
from codec_bench.apps.judging.sounds import Claim, JudgeQuestion, claims
from codec_bench.audio.encode import write_flac
from codec_bench.benchmark.definition.schema import Parameters
from codec_bench.benchmark.judge.metric import JudgeMetric
from codec_bench.benchmark.metrics.refusal import refuses
from codec_bench.stats import interval
from codec_bench.stats.notes import Note
from codec_bench.store.answers import AnswerRecord, exchanges
from codec_bench.store.files import write_json, write_text
from codec_bench.store.judge_tests import HEARING, Figure, PartTest
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.store.record import Run
from codec_bench.types import Request, Response

COIN = 0.5
MID = 0.01
"""Tolerance of the middle, as a share of half the range."""
YES, FIRST, LONG, HIGH, MIDDLE = "yes", "the first", "the longer", "high marks", "the middle"
"""Possible biases of a judge."""
Case = tuple[str, float]
"""A unit and a value."""
VERSION = 1
"""Of the sounds, claims and injected answers; another one is another test."""


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """A judge's reply to a question.

    Args:
        verdict: of a claim, whether it says yes, or A; of a injected answer, its mark; None if unreadable.
        first: of a rubric for two answers, the first one's lead; None for other rubrics.
    """

    to: JudgeQuestion
    verdict: float | None
    first: float | None = None
    declined: bool = False
    failed: bool = False


def of_sounds(replies: Sequence[JudgeReply], date: str, served: Iterable[str]) -> PartTest:
    """Compute discrimination and biases from replies about sounds.

    Args:
        date: of the test.
        served: the service's names of the models.
    """
    answered = [reply for reply in replies if not reply.failed]
    pairs: dict[tuple[Any, ...], list[tuple[Claim, float]]] = defaultdict(list)
    biases: dict[str, list[Case]] = {YES: [], FIRST: [], LONG: []}
    for reply in answered:
        claim = _claim(reply)
        right = COIN if reply.verdict is None else float(bool(reply.verdict) == claim.right)
        wording = "choice" if claim.options else claim.same[-1]
        pairs[claim.unit, wording, claim.repeat].append((claim, right))
        chosen = 0.0 if reply.verdict is None else 2.0 * reply.verdict - 1.0
        biases[FIRST if claim.options else YES].append((claim.unit, chosen))
        if claim.options:
            first_longer = len(claim.options[0]) > len(claim.options[1])
            biases[LONG].append((claim.unit, chosen if first_longer else -chosen))
    cases = defaultdict(list)
    for both in pairs.values():
        if len(both) == 2:  # the other one's call did not fail
            cases[both[0][0].kind].append((both[0][0].unit, sum(right for _, right in both) - 1.0))
    return _part_test(replies, cases, biases, date, served)


def _claim(reply: JudgeReply) -> Claim:
    assert isinstance(reply.to, Claim)
    return reply.to


def of_texts(
    replies: Sequence[JudgeReply], span: tuple[float, float], date: str, served: Iterable[str], *, prefers: bool = False
) -> PartTest:
    """Compute discrimination and biases from marks of answers of known quality.

    Args:
        replies, date, served: as `of_sounds`.
        span: the range of the rubric.
        prefers: the rubric prefers injected answer or reference; a perfect judge calls right answers equal.
    """
    perfect = [0.0 if prefers and kind in RIGHT else float(kind in RIGHT) * 2 - 1 for kind in KINDS]
    usual, middles = sum(perfect) / len(perfect), sum(value == 0 for value in perfect) / len(perfect)
    marks: dict[tuple[str, int], dict[str, float | None]] = defaultdict(dict)
    for reply in replies:
        if not reply.failed:
            marks[reply.to.unit, reply.to.repeat][reply.to.kind] = reply.verdict
    cases: dict[str, list[Case]] = {name: [] for name in BETTER}
    biases: dict[str, list[Case]] = {HIGH: [], LONG: [], FIRST: [], MIDDLE: []}
    for (unit, _), held in marks.items():
        for name, compared in BETTER.items():
            cases[name] += [(unit, _sign(held[a], held[b])) for a, b in compared if a in held and b in held]
        biases[LONG] += [(unit, _sign(held[a], held[b])) for a, b in LENGTHS if a in held and b in held]
        if len(held) == len(KINDS):
            placed = [_centre_mark(held[kind], span) for kind in KINDS]
            if prefers:  # a tie prefers neither
                above = [0.0 if value == 0 else value - right for value, right in zip(placed, perfect)]
                biases[HIGH] += [(unit, max(-1.0, min(1.0, value))) for value in above]
            else:
                biases[HIGH] += [(unit, max(-1.0, min(1.0, value - usual))) for value in placed]
            is_middle = [
                abs(_centre_mark(value, span)) < MID if value is not None else False for value in held.values()
            ]
            biases[MIDDLE] += [(unit, (float(is_mid) - middles) / (1.0 - middles)) for is_mid in is_middle]
    biases[FIRST] = [(r.to.unit, _sign(r.first, 0.0)) for r in replies if r.first is not None]
    return _part_test(replies, cases, biases, date, served)


def _sign(better: float | None, worse: float | None) -> float:
    """Return 1 if the better one has the higher mark, -1 if lower, else 0."""
    return 0.0 if better is None or worse is None else float(better > worse) - float(better < worse)


def _centre_mark(value: float | None, span: tuple[float, float]) -> float:
    """Scale a mark to -1 to 1; 0 without one."""
    low, high = span
    return 0.0 if value is None else max(-1.0, min(1.0, 2.0 * (value - low) / (high - low) - 1.0))


def _part_test(
    replies: Sequence[JudgeReply],
    cases: Mapping[str, list[Case]],
    biases: Mapping[str, list[Case]],
    date: str,
    served: Iterable[str],
) -> PartTest:
    """Compute a part's test: errors, biases and agreement of repeats."""
    return PartTest(
        date=date,
        served=sorted(set(served)),
        j=figure([case for held in cases.values() for case in held]),
        kinds={name: figure(held) for name, held in cases.items()},
        changed=figure(_verdict_changes(replies), low=0.0),
        biases={name: figure(held) for name, held in biases.items() if held},
        asked=len(replies),
        refused=sum(reply.declined for reply in replies),
        unread=sum(reply.verdict is None and not reply.declined and not reply.failed for reply in replies),
        failed=sum(reply.failed for reply in replies),
    )


def _verdict_changes(replies: Sequence[JudgeReply]) -> list[Case]:
    """Return (unit, 1 or 0) for each repeated question: whether the verdict changed."""
    held: dict[str, list[JudgeReply]] = defaultdict(list)
    for reply in sorted((one for one in replies if not one.failed), key=lambda one: one.to.repeat):
        held[reply.to.same].append(reply)
    return [
        (later.to.unit, float(before.verdict != later.verdict))
        for of_question in held.values()
        for before, later in pairwise(of_question)
    ]


def figure(cases: Sequence[Case], low: float = -1.0) -> Figure:
    """Average (unit, value) cases from `low` to 1, with an interval over units."""
    if not cases:
        return Figure(None, note=Note("no_question_sent"))
    values = [value for _, value in cases]
    estimate = interval(values, clusters=[unit for unit, _ in cases], bounds=(low, 1.0))
    # Intervals of few units may exceed the range.
    lower, upper = (None if end is None else min(1.0, max(low, end)) for end in (estimate.low, estimate.high))
    return Figure(sum(values) / len(values), lower, upper, len(values), estimate.units, estimate.note)


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """The questions to a judge.

    Args:
        metrics: rubrics by the names of their questions.
        kinds: of sounds; empty for none.
    """

    metrics: Mapping[str, JudgeMetric]
    kinds: tuple[str, ...]
    per_kind: int
    repeats: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Return what identifies the test, as JSON values."""
        rubrics = [one.protocol for one in self.metrics.values()]
        counts = {"per_kind": self.per_kind, "repeats": self.repeats, "seed": self.seed}
        return {"version": VERSION, "kinds": list(self.kinds), "rubrics": rubrics, **counts}


def write_questions(folder: Path, plan: QuestionPlan) -> list[Path]:
    """Write the questions as benchmarks; returns their folders."""
    written = [_write_claims(folder / HEARING, plan)] if plan.kinds else []
    return written + [_write_injected(folder / name, one, plan) for name, one in plan.metrics.items()]


_AUDIO = {"messages": [{"role": "user", "content": [{"audio": "audio"}, "{{ question }}"]}]}


def _write_claims(folder: Path, plan: QuestionPlan) -> Path:
    """Write the questions about sounds as a benchmark folder with audio."""
    (folder / "sounds").mkdir(parents=True, exist_ok=True)
    rows = []
    for name, sound, questions in claims(plan.per_kind, plan.repeats, plan.seed, plan.kinds):
        write_flac(folder / "sounds" / f"{name}.flac", sound.audio)
        rows += [{"id": one.id, "audio": f"sounds/{name}.flac", "question": one.text} for one in questions]
    columns = {"audio": "audio", "question": "question"}
    decoding = {"max_tokens": 64, "reasoning_tokens": 4096, "temperature": 0.0}
    return _write(folder, "What a judge hears", rows, columns, _AUDIO, decoding)


def _write_injected(folder: Path, metric: JudgeMetric, plan: QuestionPlan) -> Path:
    """Write a benchmark folder of requests to mark answers of known quality."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": _row_id(request, one), **{turn.role: turn.content[0] for turn in request.messages}}
        for one in injected_answers(metric, plan.repeats, plan.seed)
        for request in one.requests
    ]
    roles = [turn for turn in ("system", "user") if turn in rows[0]]
    prompt = {"messages": [{"role": role, "content": [f"{{{{ {role} }}}}"]} for role in roles]}
    return _write(
        folder, f"Marks by {metric.rubric_name}", rows, {role: role for role in roles}, prompt, metric.rubric.parameters
    )


def _row_id(request: Request, of: InjectedAnswer) -> str:
    return f"{request.id}~{of.repeat}"


def _write(
    folder: Path, title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], prompt: Mapping[str, Any],
    decoding: Mapping[str, Any]
) -> Path:  # fmt: skip
    """Write a benchmark folder whose answers are read by `read_replies`.

    Args:
        columns: of the data, by field.
        prompt, decoding: template and parameters of the requests.
    """
    definition = {
        "version": 1, "title": title, "summary": "Questions with known answers, which test a judge.",
        "category": "Judges", "kind": "qa",
        "language": "en", "data": {"path": "rows.jsonl", "id": "id", "size": len(rows), "columns": dict(columns)},
        "prompt": prompt,
        "parameters": {**dict.fromkeys(Parameters.model_fields), **decoding}, "metrics": ["accuracy[exact]"],
        "primary": "accuracy[exact]",
    }  # fmt: skip
    write_text(folder / "rows.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_json(folder / "benchmark.yaml", definition)  # JSON is YAML
    return folder


def read_replies(run: Run, metric: JudgeMetric | None, day: str, plan: QuestionPlan) -> tuple[str, PartTest]:
    """Compute a part's name and its figures from a judge's replies in a run.

    Args:
        metric: the rubric; None for questions about sounds.
        day: of the test.
    """
    answers = {one.question.id: one.answer for one in exchanges(run)}
    served = {answer.state for answer in answers.values() if answer.state}
    if metric is None:
        every = [
            one for _, _, questions in claims(plan.per_kind, plan.repeats, plan.seed, plan.kinds) for one in questions
        ]
        return HEARING, of_sounds(
            [_read_claim(one, answers[one.id]) for one in every if one.id in answers], day, served
        )
    marks = list(_read_marks(metric, answers, plan))
    return metric.protocol, of_texts(marks, metric.rubric.range, day, served, prefers=metric.prefers)


def _read_claim(claim: Claim, answer: AnswerRecord) -> JudgeReply:
    """Read the judge's yes or no on a claim; None if it declined or failed."""
    if answer.status != "ok" or answer.text is None:
        return JudgeReply(claim, None, declined=answer.status == "refused", failed=answer.status != "refused")
    is_yes = claim.read(cut_reasoning(answer.text).text) if answer.finish != "length" else None
    return JudgeReply(
        claim, None if is_yes is None else float(is_yes), declined=is_yes is None and refuses(answer.text)
    )


def _read_marks(metric: JudgeMetric, answers: Mapping[str, AnswerRecord], plan: QuestionPlan) -> Iterator[JudgeReply]:
    """Yield the judge's mark of each injected answer whose requests are answered."""
    for one in injected_answers(metric, plan.repeats, plan.seed):
        held = {request.id: answers[id] for request in one.requests if (id := _row_id(request, one)) in answers}
        if len(held) < len(one.requests):
            continue
        if any(answer.status == "refused" for answer in held.values()):
            yield JudgeReply(one, None, declined=True)
            continue
        score = metric.score(one.answer, len(held), {key: _response(answer) for key, answer in held.items()})
        declined = score.status == "unparsed" and any(refuses(answer.text or "") for answer in held.values())
        yield JudgeReply(one, score.value, score.detail.get("first_minus_second"), declined, score.status == "failed")


def _response(answer: AnswerRecord) -> Response:
    return Response(status=answer.status, reason=answer.reason, text=answer.text, finish=answer.finish)
