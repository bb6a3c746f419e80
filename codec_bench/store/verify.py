"""Every check of a run record, and what can be saved of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from codec_bench.errors import DamagedRecord, UserError
from codec_bench.store import integrity
from codec_bench.store.integrity import DATABASE
from codec_bench.store.record import Run
from codec_bench.store.survey import survey


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked: whether it is whole, and what was found, in words."""

    what: str
    whole: bool
    found: str


def verify_record(folder: Path) -> list[Check]:
    """Checks everything that a run record holds, whether or not an earlier check failed.

    Returns:
        The checks: of the header and the tables, of the seal, of SQLite's pages, of the rows, and what can be saved. The last
        one is not whole if an item was lost.

    Raises:
        UserError: the folder holds no run record, or one of another version.
    """
    checks = [
        _check("header and tables", partial(_opened, folder)), _seal(folder), _check("pages", partial(_pages, folder)),
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


def _seal(folder: Path) -> Check:
    seal = integrity.read_seal(folder)
    if seal is None:
        return Check("seal", True, "none: the run goes on, or was killed")
    same = integrity.seal_of(folder / DATABASE) == seal
    return Check(
        "seal", same, "the file is as it was when it was closed" if same else "the file has changed since it was closed"
    )
