"""A run's answers in the file for a benchmark's own scoring service.

The benchmark's definition has the fields of an entry (`submission`).
"""

from __future__ import annotations

import json
from typing import Any

from codec_bench.messages.errors import UserError
from codec_bench.store.answers import Exchange, exchanges, has_answers
from codec_bench.store.export import Target, opened
from codec_bench.store.record import Run

FORMAT = "submission"


def export_submission(run: Run, out: Target) -> None:
    """Write a JSON list with an entry for every question, in the order of the data.

    A refused or unaskable question has an empty answer.

    Args:
        run: a run of a benchmark whose definition has a `submission`.
        out: the file or stream; None for standard output.

    Raises:
        UserError: the benchmark has no such file; questions are missing or have several answers; an answer failed
            temporarily; or the file cannot be written.
    """
    about = run.meta.get("benchmark") or {}
    form = about.get("submission")
    if form is None or not has_answers(run):
        raise UserError(
            "no_submission", benchmark=about.get("name") or run.folder, hint="export --format csv gives every score"
        )
    every = list(exchanges(run))
    if any(one.question.draw_of for one in every):
        raise UserError("submission_repeats", hint="run without --repeats")
    if about.get("size") not in (None, len(every)):
        raise UserError(
            "submission_incomplete", answered=len(every), questions=about["size"], hint="run without --limit"
        )
    failed = [one for one in every if one.answer.status == "failed" and one.question.prompt is not None]
    if failed:
        raise UserError(
            "submission_failed",
            failed=len(failed),
            questions=len(every),
            id=failed[0].question.id,
            reason=failed[0].answer.reason,
            hint="run the same command again",
        )
    with opened(out) as file:
        json.dump([_entry(one, form) for one in every], file, ensure_ascii=False, indent=4)
        file.write("\n")


def _entry(one: Exchange, format_facts: dict[str, Any]) -> dict[str, Any]:
    """One answer in the fields of the benchmark's submission file."""
    known = {"id": one.question.id, **one.question.fields}
    read = {name: known.get(field) for name, field in format_facts["fields"].items()}
    fixed = {name: form.replace("<id>", one.question.id) for name, form in format_facts["made"].items()}
    answer = one.answer.text if one.answer.status == "ok" else None
    return {name: value for name, value in {**read, **fixed}.items() if value is not None} | {
        format_facts["answer"]: answer or ""
    }
