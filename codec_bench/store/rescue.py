"""All checks of a record; save a damaged one's intact part into a new folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import DamagedRecord, UserError
from codec_bench.store import integrity
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.integrity import DATABASE, GENERATION
from codec_bench.store.record import Run
from codec_bench.store.survey import ANSWERING, Survey, survey
from codec_bench.store.tables import IDENTITY
from codec_bench.store.writer import RunWriter


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """One check and its result in words."""

    name: str
    is_intact: bool
    description: str


def verify_record(folder: Path) -> list[RecordCheck]:
    """Check a run record: journals, tables, seal, pages, rows; one result each."""
    path, closed = folder / DATABASE, "the file is as it was when it was closed"
    journals = _check("journals", integrity.check_journals, path, "none of another state of the run")
    if not journals.is_intact:  # SQLite would read them with the record, whatever is checked next
        return [journals]
    open_run = lambda path: Run(path.parent).close()  # noqa: E731
    checks = [
        journals,
        _check("header and tables", open_run, path, f"schema {integrity.SCHEMA}"),
        _check("seal", integrity.check_seal, path, closed, "none: the run goes on, or was killed"),
        _check("pages", integrity.check_pages, path, "as SQLite writes them"),
    ]
    try:
        survey_result = survey(folder)
    except UserError as error:
        return [*checks, RecordCheck("rows", False, error.message)]
    incomplete = [(name, table) for name, table in survey_result.parts.items() if table.missing]
    missing = [f"{table.missing} of {table.expected} of '{name}'" for name, table in incomplete]
    intact = sum(table.intact for table in survey_result.parts.values())
    description = f"damaged or missing: {', '.join(missing)}" if missing else f"{intact} rows have their checksums"
    checks.append(RecordCheck("rows", not missing, description))
    for name, held, gone in (
        ("items", survey_result.items, survey_result.missing_items),
        ("answers", survey_result.answers, survey_result.missing_answers),
    ):
        if held is not None:
            checks.append(RecordCheck(name, not gone, f"{len(held)} of {len(held) + gone} are whole"))
    return checks


def _check(name: str, check: Callable[[Path], Any], path: Path, passed: str, unchecked: str = "") -> RecordCheck:
    try:
        return RecordCheck(name, True, unchecked if check(path) is False else passed)
    except DamagedRecord as error:
        return RecordCheck(name, False, error.message)


_NOT_COPIED = ("schema", IDENTITY, GENERATION, "fingerprint", "state", "finished")
_AT_ONCE = 10_000


def rescue(folder: Path, out: Path) -> Survey:
    """Copy the intact items and answers of a damaged record to a new record.

    The same command with the new folder as `--out` runs the rest again. The damaged record is not changed.

    Args:
        out: a new or empty folder.

    Raises:
        UserError: nothing can be saved, or `out` holds something or cannot be written.
    """
    if out.is_dir() and any(out.iterdir()):
        raise UserError("folder_not_empty", out=out, hint="give --out a folder that does not exist yet")
    survey_result = survey(folder)
    kind = RunWriter if survey_result.answers is None else AnswerWriter
    audio = folder / "audio"
    with closing(kind(out, survey_result.meta["fingerprint"])) as writer:
        for table in ("systems", "metrics", "samples", *(ANSWERING if survey_result.answers is not None else ())):
            _copy(survey_result, writer, table)
        for table in ("items", "scores", *(name for name in ("readings", "turns") if name in survey_result.parts)):
            _copy(survey_result, writer, table)
        writer.set_meta(
            **{key: value for key, value in survey_result.meta.items() if key not in _NOT_COPIED},
            state="rescued",
            rescued={
                "from": str(folder), "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "lost_items": survey_result.missing_items, "lost_answers": survey_result.missing_answers,
            },
        )  # fmt: skip
        if audio.is_dir():
            try:
                shutil.copytree(audio, writer.folder / "audio", dirs_exist_ok=True)
            except (OSError, shutil.Error) as error:
                raise UserError("sound_not_copied", audio=audio, out=out, cause=error) from error
    return survey_result


def _copy(survey_result: Survey, writer: RunWriter, table: str) -> None:
    rows = survey_result.rows(table)
    while chunk := list(islice(rows, _AT_ONCE)):
        writer.copy(table, chunk[0][0], [cells for _, cells in chunk])
