"""Published leaderboards, with one's own runs placed among their rows (see `report.board` and `report.placed`)."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from typing import TYPE_CHECKING

from codec_bench.errors import UserError

if TYPE_CHECKING:
    from codec_bench.report.board import Board, Column, Row, Rules


def board_names() -> list[str]:
    """The names of all leaderboards."""
    from codec_bench.config import config_names

    return config_names("leaderboard")


def leaderboard(
    name: str,
    runs: Iterable[str | os.PathLike[str]] = (),
    *,
    robustness: bool = False,
    correlations: bool = False,
    seed: int = 0,
) -> Board:
    """A published leaderboard, with one's own runs placed among its rows.

    Args:
        name: such as `ultraeval-understanding`.
        runs: run folders, or folders that hold run folders at any depth.
        robustness: whether `trust` of the board says how the ranks change without a benchmark, without a group of tasks and
            under other normalisations, and for own rows how they change with other items.
        correlations: whether `likeness` of the board says how alike its columns order the rows.
        seed: of the draws of other items.

    Raises:
        UnknownName: there is no such leaderboard.
        UserError: a folder holds no run, or the board has no ranks.
    """
    from codec_bench.config import read_config
    from codec_bench.report.board import Board, Column, Rules, Variant
    from codec_bench.report.placed import own_rows

    document = read_config("leaderboard", name)
    if "like" in document:  # the columns and rows of another board, computed in another way
        document = {**read_config("leaderboard", document["like"]), **document}
    columns = tuple(Column(**{"group": entry["name"], **entry}) for entry in document["columns"])
    means, averages = tuple(document.get("means", ())), document.get("averages", True)
    rules = Rules(columns, means, averages, document.get("one", "group") == "sample")
    variants = [Variant(""), *(Variant(**entry) for entry in document.get("variants", ()))]
    own, ignored = own_rows(runs, rules, variants)
    rows = [*_published(document["published"], rules, document.get("notes", {})), *own]
    rows.sort(key=_rank)
    facts = (name, document["summary"], document["source"], columns, tuple(rows), tuple(ignored))
    board = Board(*facts, means, averages, rules.by_sample)
    if robustness or correlations:
        from codec_bench.report.trust import likeness, trust

        known = trust(board, seed) if robustness else None
        board = replace(board, trust=known, likeness=likeness(board) if correlations else None)
    return board


def _rank(row: Row) -> tuple[bool, Decimal, str]:
    """What rows are sorted by: the best average first, incomplete and limited rows last."""
    shown = row.shown_average
    return not row.complete or row.limited, Decimal(1) if shown is None else -shown, row.name


def _published(file: str, rules: Rules, notes: Mapping[str, str]) -> list[Row]:
    from codec_bench.report.board import AVERAGE

    text = (files("codec_bench") / "configs" / "leaderboard" / file).read_bytes().decode("utf-8")
    # What was printed of groups is of means over columns; it says nothing where every sample counts as one.
    told = () if rules.by_sample else (*rules.means, *([AVERAGE] if rules.averages else []))
    counts = _sizes(rules.columns) if rules.by_sample else {}
    rows = []
    for line in csv.DictReader(io.StringIO(text, newline="")):
        name = next(iter(line.values()))
        cells = {c.name: Decimal(line[c.name]) for c in rules.columns if line.get(c.name)}
        printed = {group: Decimal(line[group]) for group in told if line.get(group)}
        if cells or printed:
            note = notes.get(name, "") if told else ""
            rows.append(rules.row(name, cells, printed, counts, published=True, note=note))
    return rows


def _sizes(columns: Sequence[Column]) -> dict[str, int]:
    """How many questions the benchmark of each column has.

    Raises:
        UserError: the definition of one of them does not say it.
    """
    from codec_bench.benchmark import load_benchmark

    sizes = {}
    for column in columns:
        size = load_benchmark(column.benchmark).size
        if size is None:
            raise UserError(f"the benchmark '{column.benchmark}' does not say how many questions it has")
        sizes[column.name] = size
    return sizes
