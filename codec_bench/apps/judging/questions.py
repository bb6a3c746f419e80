"""The questions of a test as benchmarks, and the recorded replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.apps.judging.claims import Claim, claims
from codec_bench.apps.judging.figures import JudgeReply, of_sounds, of_texts
from codec_bench.apps.judging.planted import Planted, planted
from codec_bench.audio.encode import write_flac
from codec_bench.benchmark.definition.schema import Parameters
from codec_bench.benchmark.judge.metric import JudgeMetric
from codec_bench.benchmark.metrics.refusal import refuses
from codec_bench.store.answers import AnswerRecord, exchanges
from codec_bench.store.files import write_json, write_text
from codec_bench.store.judge_tests import HEARING, PartTest
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.store.record import Run
from codec_bench.types import Request, Response

VERSION = 1
"""Of the sounds, claims and planted answers; another one is another test."""


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """The questions to a judge.

    Args:
        metrics: rubrics by the names of their questions. kinds: of sounds; empty for none.
        per_kind: sounds of each kind. repeats: of each question. seed: of the sounds.
    """

    metrics: Mapping[str, JudgeMetric]
    kinds: tuple[str, ...]
    per_kind: int
    repeats: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """The test's identity as JSON values."""
        rubrics = [one.protocol for one in self.metrics.values()]
        counts = {"per_kind": self.per_kind, "repeats": self.repeats, "seed": self.seed}
        return {"version": VERSION, "kinds": list(self.kinds), "rubrics": rubrics, **counts}


def write_questions(folder: Path, plan: QuestionPlan) -> list[Path]:
    """Write the questions as benchmarks; returns their folders."""
    written = [_write_claims(folder / HEARING, plan)] if plan.kinds else []
    return written + [_write_planted(folder / name, one, plan) for name, one in plan.metrics.items()]


_AUDIO = {"messages": [{"role": "user", "content": [{"audio": "audio"}, "{{ question }}"]}]}


def _write_claims(folder: Path, plan: QuestionPlan) -> Path:
    (folder / "sounds").mkdir(parents=True, exist_ok=True)
    rows = []
    for name, sound, questions in claims(plan.per_kind, plan.repeats, plan.seed, plan.kinds):
        write_flac(folder / "sounds" / f"{name}.flac", sound.audio)
        rows += [{"id": one.id, "audio": f"sounds/{name}.flac", "question": one.text} for one in questions]
    columns = {"audio": "audio", "question": "question"}
    return _write(
        folder,
        "What a judge hears",
        rows,
        columns,
        _AUDIO,
        {"max_tokens": 64, "reasoning_tokens": 4096, "temperature": 0.0},
    )


def _write_planted(folder: Path, metric: JudgeMetric, plan: QuestionPlan) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": _row_id(request, one), **{turn.role: turn.content[0] for turn in request.messages}}
        for one in planted(metric, plan.repeats, plan.seed)
        for request in one.requests
    ]
    roles = [turn for turn in ("system", "user") if turn in rows[0]]
    prompt = {"messages": [{"role": role, "content": [f"{{{{ {role} }}}}"]} for role in roles]}
    return _write(
        folder, f"Marks by {metric.rubric_name}", rows, {role: role for role in roles}, prompt, metric.rubric.parameters
    )


def _row_id(request: Request, of: Planted) -> str:
    return f"{request.id}~{of.repeat}"


def _write(
    folder: Path, title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], prompt: Mapping[str, Any],
    decoding: Mapping[str, Any]
) -> Path:  # fmt: skip
    """Write a benchmark that only asks; unnamed decoding is the model's own."""
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
    """Return the name of a part, and its figures."""
    answers = {one.question.id: one.answer for one in exchanges(run)}
    served = {answer.state for answer in answers.values() if answer.state}
    if metric is None:
        every = [
            one for _, _, questions in claims(plan.per_kind, plan.repeats, plan.seed, plan.kinds) for one in questions
        ]
        return HEARING, of_sounds([_claimed(one, answers[one.id]) for one in every if one.id in answers], day, served)
    marks = list(_marked(metric, answers, plan))
    return metric.protocol, of_texts(marks, metric.rubric.range, day, served, prefers=metric.prefers)


def _claimed(claim: Claim, answer: AnswerRecord) -> JudgeReply:
    if answer.status != "ok" or answer.text is None:
        return JudgeReply(claim, None, declined=answer.status == "refused", failed=answer.status != "refused")
    is_yes = claim.read(cut_reasoning(answer.text).text) if answer.finish != "length" else None
    return JudgeReply(
        claim, None if is_yes is None else float(is_yes), declined=is_yes is None and refuses(answer.text)
    )


def _marked(metric: JudgeMetric, answers: Mapping[str, AnswerRecord], plan: QuestionPlan) -> Iterator[JudgeReply]:
    for one in planted(metric, plan.repeats, plan.seed):
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
