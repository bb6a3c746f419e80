"""Every check of a run record, and what is whole of a damaged one saved into a new run folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path

from codec_bench.errors import DamagedRecord, UserError
from codec_bench.store import integrity
from codec_bench.store.answers import AnswerWriter
from codec_bench.store.integrity import DATABASE, GENERATION
from codec_bench.store.record import Run
from codec_bench.store.survey import ANSWERING, Survey, survey
from codec_bench.store.tables import IDENTITY
from codec_bench.store.writer import RunWriter


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked: whether it is whole, and what was found, in words."""

    what: str
    whole: bool
    found: str


def verify_record(folder: Path) -> list[Check]:
    """Checks everything that a run record holds, whether or not an earlier check failed.

    Returns:
        The checks: of what SQLite left next to the record, of the header and the tables, of the seal, of SQLite's
        pages, of the rows, and what can be saved. They are those that every reader makes, and more.
        The last one is not whole if an item was lost.

    Raises:
        UserError: the folder holds no run record, or one of another version.
    """
    beside = _check("journals", partial(_beside, folder))
    if not beside.whole:  # SQLite would read them with the record, whatever is checked next
        return [beside]
    checks = [
        beside, _check("header and tables", partial(_opened, folder)), _check("seal", partial(_seal, folder)),
        _check("pages", partial(_pages, folder)),
    ]  # fmt: skip
    try:
        found = survey(folder)
    except UserError as error:
        return [*checks, Check("rows", False, error.message)]
    lost = [f"{part.lost} of {part.said} of '{name}'" for name, part in found.parts.items() if part.lost]
    kept = sum(part.whole for part in found.parts.values())
    said = f"damaged or missing: {', '.join(lost)}" if lost else f"{kept} rows have their checksums"
    checks.append(Check("rows", not lost, said))
    for name, held, gone in (("items", found.items, found.lost_items), ("answers", found.answers, found.lost_answers)):
        if held is not None:
            checks.append(Check(name, not gone, f"{len(held)} of {len(held) + gone} are whole"))
    return checks


def _check(what: str, check: Callable[[], str]) -> Check:
    try:
        return Check(what, True, check())
    except DamagedRecord as error:
        return Check(what, False, error.message)


def _pages(folder: Path) -> str:
    integrity.check_pages(folder / DATABASE)
    return "as SQLite writes them"


def _opened(folder: Path) -> str:
    Run(folder).close()
    return f"schema {integrity.SCHEMA}"


def _seal(folder: Path) -> str:
    if integrity.check_seal(folder / DATABASE):
        return "the file is as it was when it was closed"
    return "none: the run goes on, or was killed"


def _beside(folder: Path) -> str:
    integrity.check_journals(folder / DATABASE)
    return "none of another state of the run"


_NOT_KEPT = ("schema", IDENTITY, GENERATION, "fingerprint", "state", "finished")
_AT_ONCE = 10_000


def rescue(folder: Path, out: Path) -> Survey:
    """Writes a new record that holds the items, and the questions with their answers, that are whole in another one.

    The same command with the new folder as `--out` runs what was lost again. The damaged record is not changed.

    Args:
        folder: the run folder with the damaged record. out: a folder that does not exist yet, or is empty.

    Returns:
        What was saved, and what was lost.

    Raises:
        UserError: nothing can be saved, or `out` holds something or cannot be written.
    """
    if out.is_dir() and any(out.iterdir()):
        raise UserError(f"'{out}' is not empty", hint="give --out a folder that does not exist yet")
    found = survey(folder)
    kind = RunWriter if found.answers is None else AnswerWriter
    audio = folder / "audio"
    with closing(kind(out, found.meta["fingerprint"])) as writer:
        for table in ("systems", "metrics", "samples", *(ANSWERING if found.answers is not None else ())):
            _copy(found, writer, table)
        for table in ("items", "scores", *(name for name in ("readings", "turns") if name in found.parts)):
            _copy(found, writer, table)
        writer.set_meta(
            **{key: value for key, value in found.meta.items() if key not in _NOT_KEPT},
            state="rescued",
            rescued={
                "from": str(folder), "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "lost_items": found.lost_items, "lost_answers": found.lost_answers,
            },
        )  # fmt: skip
        if audio.is_dir():
            try:
                shutil.copytree(audio, writer.folder / "audio", dirs_exist_ok=True)
            except (OSError, shutil.Error) as error:
                raise UserError(f"the sound in '{audio}' cannot be copied to '{out}': {error}") from error
    return found


def _copy(found: Survey, writer: RunWriter, table: str) -> None:
    rows = found.rows(table)
    while chunk := list(islice(rows, _AT_ONCE)):
        writer.copy(table, chunk[0][0], [cells for _, cells in chunk])
