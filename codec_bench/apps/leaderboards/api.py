"""Published leaderboards, defined in YAML, with the user's runs among their rows."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codec_bench.apps.leaderboards.board import Column, Variant, View
from codec_bench.config import invalid_value
from codec_bench.config.paths import hint_for_path
from codec_bench.messages.errors import UserError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from codec_bench.apps.leaderboards.board import Board, BoardRow, Column, Rules


def board_names() -> list[str]:
    """List the names of all leaderboards."""
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
    """Place the user's runs among the rows of a published leaderboard.

    Args:
        name: such as `ultraeval-understanding`, or a YAML file.
        runs: run folders, or folders that hold run folders at any depth.
        robustness: fill `trust`: ranks without a benchmark, without a group of tasks and under other normalisations,
            and for own rows with other items.
        correlations: fill `likeness`: correlations of the columns' orders.
        seed: of the draws of other items.

    Raises:
        UnknownName: there is no such leaderboard.
        UserError: a folder holds no run, the board has no ranks, or its file is wrong.

    Examples:
        >>> from codec_bench import leaderboard
        >>> board = leaderboard("ultraeval-understanding")
        >>> len(board.columns), all(row.published for row in board.rows)
        (13, True)
    """
    from codec_bench.apps.leaderboards.board import Board, Rules
    from codec_bench.apps.leaderboards.user_rows import user_rows

    definition, published = definition_of(name)
    columns = definition.columns
    rules = Rules(columns, definition.means, definition.averages, definition.one == "sample")
    others = _read_published(published, rules, definition.notes)
    run_rows, ignored = user_rows(runs, rules, definition.board_variants, published=bool(others))
    rows = [*others, *run_rows]
    rows.sort(key=lambda row: _rank(row, rules))
    facts = (name, definition.summary, definition.source, columns, tuple(rows), tuple(ignored))
    board = Board(*facts, definition.means, definition.averages, rules.by_sample, definition.board_views)
    if robustness or correlations:
        from codec_bench.apps.leaderboards.rank_uncertainty import likeness, trust

        known = trust(board, seed) if robustness else None
        board = replace(board, trust=known, likeness=likeness(board) if correlations else None)
    return board


def _rank(row: BoardRow, rules: Rules) -> tuple[bool, Decimal, Decimal, str]:
    """Return a row's sort key: highest average first, incomplete rows last."""
    from codec_bench.apps.leaderboards.board import exact_average

    shown = row.shown_average
    exact = None if rules.by_sample else exact_average(row.cells, rules.columns, row.printed)[0]
    return (
        not (row.complete and row.compared),
        Decimal(1) if shown is None else -shown,
        -(exact or Decimal(0)),
        row.name,
    )


def definition_of(name: str) -> tuple[BoardDefinition, Traversable | None]:
    """Return a leaderboard's definition by name or file, and its published rows' file.

    Raises:
        UnknownName: there is no such leaderboard.
        UserError: the file is wrong, or a column names an unknown benchmark or metric.
    """
    from codec_bench.config import fit, load_yaml, read_config

    is_file = name.endswith((".yaml", ".yml"))
    if not is_file and (os.sep in name or (name not in board_names() and os.path.exists(name))):
        raise UserError("not_a_leaderboard", path=name, hint=_describe_no_board(name))
    document = load_yaml(name) if is_file else read_config("leaderboard", name)
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise UserError("mapping_expected", path=name, type=type(document).__name__)
    if "like" in document:  # the columns and rows of another board, computed in another way
        document = {**read_config("leaderboard", str(document["like"])), **document}
    definition = fit(document, BoardDefinition, source=name)
    if is_file:
        definition = _resolve_paths(definition, Path(name).parent)
        _check_columns(definition, name)
    if definition.published is None:
        return definition, None
    shipped = files("codec_bench") / "configs" / "leaderboard" / definition.published
    published_file = Path(name).parent / definition.published
    return definition, published_file if is_file and published_file.is_file() else shipped


def _describe_no_board(path: str) -> str:
    """A hint on a path that is no leaderboard: what it is, and what to write."""
    from codec_bench.benchmark.definition.loader import FILE
    from codec_bench.store.integrity import DATABASE

    if os.path.isfile(os.path.join(path, FILE)):
        return f"it is a benchmark; expected a YAML file with columns, such as {{benchmark: {path}, ...}}"
    if os.path.isdir(path) and any(Path(path).rglob(DATABASE)):
        return f"it holds runs; name a leaderboard first, such as codec-bench leaderboard {board_names()[0]} {path}"
    return hint_for_path(path, f"expected {', '.join(board_names())}, or a YAML file with columns")


def _resolve_paths(definition: BoardDefinition, folder: Path) -> BoardDefinition:
    """Make paths of local benchmarks absolute, if they exist below `folder`."""
    from codec_bench.benchmark import has_benchmark, is_path

    def locate(benchmark: str) -> str:
        """Return the absolute path of a local benchmark, otherwise the name."""
        local_folder = folder / benchmark
        is_local = is_path(benchmark) or not has_benchmark(benchmark)
        # `./mine:ENTRY` names one of several entries.
        there = local_folder.exists() or local_folder.with_name(local_folder.name.partition(":")[0]).exists()
        return os.path.abspath(local_folder) if is_local and there else benchmark

    columns = tuple(replace(column, benchmark=locate(column.benchmark)) for column in definition.columns)
    return definition.model_copy(update={"columns": columns})


def _check_columns(definition: BoardDefinition, file: str) -> None:
    """Refuse a column without such a benchmark or metric."""
    from codec_bench.benchmark import has_benchmark, load_benchmark

    for column in definition.columns:
        if not has_benchmark(column.benchmark):
            raise UserError(
                "board_benchmark_unknown",
                file=file,
                column=column.name,
                benchmark=column.benchmark,
                hint="`codec-bench list benchmarks` names them",
            )
        metrics = load_benchmark(column.benchmark).metrics
        if column.metric not in metrics:
            raise UserError(
                "board_metric_unknown",
                file=file,
                column=column.name,
                metric=column.metric,
                benchmark=column.benchmark,
                hint=f"it has {', '.join(metrics)}",
            )


def _read_published(file: Traversable | None, rules: Rules, notes: Mapping[str, str]) -> list[BoardRow]:
    """Read the published rows from their CSV file; none without a file.

    Args:
        notes: on rows, by name.
    """
    from codec_bench.apps.leaderboards.board import AVERAGE

    if file is None:
        return []
    if not file.is_file():
        raise UserError("no_published_rows", file=file)
    text = file.read_bytes().decode("utf-8-sig")
    # Printed group means are over columns, not over samples.
    metric_columns = () if rules.by_sample else (*rules.means, *([AVERAGE] if rules.averages else []))
    counts = _sizes(rules.columns) if rules.by_sample else {}
    rows = []
    for line in csv.DictReader(io.StringIO(text, newline="")):
        name = next(iter(line.values()))
        cells = {c.name: Decimal(line[c.name]) for c in rules.columns if line.get(c.name)}
        printed = {group: Decimal(line[group]) for group in metric_columns if line.get(group)}
        if cells or printed:
            note = notes.get(name, "") if metric_columns else ""
            rows.append(rules.build_row(name, cells, printed, counts, published=True, note=note))
    return rows


def _sizes(columns: Sequence[Column]) -> dict[str, int]:
    """Return the number of questions by column; raises UserError if unstated."""
    from codec_bench.benchmark import load_benchmark

    sizes = {}
    for column in columns:
        size = load_benchmark(column.benchmark).size
        if size is None:
            raise UserError("question_count_unknown", benchmark=column.benchmark)
        sizes[column.name] = size
    return sizes


class BoardDefinition(BaseModel):
    """A leaderboard.

    Args:
        version: of this file format.
        source: of its published rows.
        published: their file next to it.
        like: another board whose columns and rows it has.
        means: the groups whose means are shown.
        views: columns of a further mean, by its name.
        averages: whether there is an average.
        one: its unit.
        notes: by row.
        variants: further ways to run its benchmarks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    summary: str
    source: str = ""
    like: str | None = None
    published: str | None = None
    columns: tuple[Column, ...] = Field(min_length=1)
    means: tuple[str, ...] = ()
    views: dict[str, tuple[str, ...]] = {}
    averages: bool = True
    one: Literal["group", "sample"] = "group"
    notes: dict[str, str] = {}
    variants: tuple[Variant, ...] = ()

    @model_validator(mode="after")
    def _names_fit(self) -> BoardDefinition:
        """Validate that column names are unique, and that groups and views name columns."""
        names = [column.name for column in self.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise invalid_value("columns_alike", columns=", ".join(twice))
        groups = {column.group or column.name for column in self.columns}
        for group in self.means:
            if group not in groups:
                raise invalid_value("mean_of_no_group", group=group)
        of = {column.name: column for column in self.columns}
        for name, members in self.views.items():
            unknown = [member for member in members if member not in of]
            if unknown or not members:
                raise invalid_value("view_of_no_column", view=name, columns=", ".join(unknown))
            if len({(of[member].unit, of[member].counts) for member in members}) > 1:
                raise invalid_value("view_of_units", view=name)
        return self

    @property
    def board_variants(self) -> list[Variant]:
        """The variants; the first one has no name."""
        return [Variant(""), *self.variants]

    @property
    def board_views(self) -> tuple[View, ...]:
        """The further means."""
        return tuple(View(name, members) for name, members in self.views.items())
