"""`codec-bench leaderboard`: published rows with own ones, and their ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.apps.leaderboards.codecs_command import print_codecs
from codec_bench.apps.leaderboards.json_values import plain_board, plain_items
from codec_bench.config.option import SEVERAL
from codec_bench.messages.errors import UserError
from codec_bench.report.numbers import ARROWS
from codec_bench.terminal.output import console, print_json, print_wide, table, talk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from codec_bench.apps.leaderboards.board import Board, BoardRow, Column, Likeness, Trust
    from codec_bench.apps.leaderboards.json_values import Items

CODECS = "codecs"
"""The name of the board of codecs."""
_SAME_ORDER = 1 - 1e-9
"""Kendall's tau of equal orders."""


def leaderboard(
    name: Annotated[str,
        typer.Argument(
            help="audiobench, air-bench-foundation, air-bench-foundation-per-sample, air-bench-chat, "
                 "ultraeval-understanding, ultraeval-generation, ultraeval-codec, open-asr, codec-applications or "
                 "mmau-pro (the last two have no published rows); codecs, for codecs of any runs and "
                 "published ones; or the path of a YAML file.")],
    runs: Annotated[list[Path] | None, typer.Argument(help="Your run folders, or folders that hold them.")] = None,
    robustness: Annotated[bool,
        typer.Option("--robustness", help="Show how the ranks change without a benchmark, without a group of tasks, "
                                          "under other normalisations, and with other items.")] = False,
    correlations: Annotated[bool,
        typer.Option("--correlations",
            help="Show how alike the columns order the rows: rank correlations of every two.")] = False,
    groups: Annotated[bool,
        typer.Option("--groups",
            help="Show means over some of the columns: mean WER, mean CER, and the like.")] = False,
    items: Annotated[bool, typer.Option("--items", help="Show which items tell your systems apart.")] = False,
    figures: Annotated[Path | None,
        typer.Option("--figures", help="With --correlations, or for codecs: a folder for them as pictures (SVG, PDF) "
                                       "and CSV.")] = None,
    latex: Annotated[Path | None,
        typer.Option("--latex", help="Also write the table in LaTeX, with ranks and significance groups.")] = None,
    axis: Annotated[str,
        typer.Option("--axis", help="For codecs: what quality is set against: bitrate, tokens, real_time_factor, "
                                    "lookahead or parameters.")] = "bitrate",
    metrics: Annotated[str | None, typer.Option("--metrics", help="For codecs: only these, with commas."),
        SEVERAL] = None,
    anchor: Annotated[str | None,
        typer.Option("--anchor",
            help="For codecs: the family that delta rates (Bjøntegaard) are measured against.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws of other items.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of a table.")] = False,
) -> None:  # fmt: skip
    """Show a published leaderboard with your runs in it."""
    from codec_bench.apps.leaderboards.api import leaderboard as read_board
    from codec_bench.apps.leaderboards.json_values import board_items
    from codec_bench.config.option import names

    if name == CODECS:
        if robustness or correlations or groups:
            raise UserError("options_of_ranks", board=CODECS)
        chosen = names(metrics) if metrics else ()
        print_codecs(runs or [], axis=axis, metrics=chosen, anchor=anchor, seed=seed, figures=figures, as_json=as_json)
        return
    if axis != "bitrate" or metrics or anchor:
        raise UserError("options_of_codecs", codecs=CODECS, board=name)

    if figures is not None and not correlations:
        raise UserError("figures_without_correlations", hint="give --correlations too")
    board = read_board(name, runs or [], robustness=robustness, correlations=correlations, seed=seed)
    if as_json:
        held = plain_board(board) | ({"items": [plain_items(one) for one in board_items(board)]} if items else {})
        print_json(held)
    else:
        _print_board(board)
        if groups:
            _print_views(board)
        if board.trust is not None:
            _print_trust(board, board.trust)
        if board.likeness is not None:
            _print_likeness(board.likeness)
        if items:
            _print_items(board_items(board))
    if latex is not None:
        _write_latex(board, seed, latex)
    if figures is not None and board.likeness is not None:
        from codec_bench.apps.leaderboards.formats import write_heatmap

        for path in write_heatmap(board.likeness, figures, f"correlations-{board.name}"):
            talk(f"written: {path}")


def _write_latex(board: Board, seed: int, file: Path) -> None:
    """Write a board's table in LaTeX, with ranks if available."""
    from dataclasses import replace

    from codec_bench.apps.leaderboards.formats import board_latex
    from codec_bench.apps.leaderboards.rank_uncertainty import trust
    from codec_bench.store.export import opened

    if board.averages and not board.by_sample and board.trust is None:
        board = replace(board, trust=trust(board, seed))
    with opened(file) as out:
        out.write(board_latex(board))
    talk(f"written: {file}")


def _print_trust(board: Board, trust: Trust) -> None:
    """Print ranks by the board's rule, under other rules, and with items drawn anew."""
    from codec_bench.apps.leaderboards.ranking import OTHER_RULES

    has_runs = any(interval is not None for interval in trust.rank_intervals)
    heads = ("", "rank", *OTHER_RULES.values(), *(("other items", "tied with") if has_runs else ()))
    rows = [
        (
            _own_marked(row), one.rank or "", *map(_span, one.spans.values()),
            *((_span(trust.rank_intervals[n]), ", ".join(trust.tied[n])) if has_runs else ()),
        )
        for n, (row, one) in enumerate(zip(board.rows, trust.robustness, strict=True))
    ]  # fmt: skip
    console().print(table(heads, rows))
    for note_text in dict.fromkeys(note_text for one in trust.robustness if one.rank for note_text in one.notes):
        talk(note_text)
    for row, note in zip(board.rows, trust.notes, strict=True):
        if note and not row.published:
            talk(f"{row.name}: {note}")
    if has_runs:
        talk(
            "with --json: the share of draws of other items in which a row has each rank, and in which it is above "
            "each other row"
        )
    dispensable = [name for name, tau in trust.dispensable if tau >= _SAME_ORDER]
    if dispensable:
        talk(
            f"the order of the rows stays the same without these columns, excluded one after the other: "
            f"{', '.join(dispensable)}"
        )


def _print_likeness(likeness: Likeness) -> None:
    """Print Spearman's rho of every two columns, similar ones side by side."""
    rows = []
    for number, first in enumerate(likeness.order, 1):
        cells = [likeness.value(first, second) for second in likeness.order[: number - 1]]
        shown = ["" if one is None or one.value is None else f"{one.value:+.2f}" for one in cells]
        rows.append((f"{number} {first}", *shown, *[""] * (len(likeness.order) - len(shown))))
    print_wide(["Spearman's rho", *map(str, range(1, len(rows) + 1))], rows)
    for note in dict.fromkeys(pair.spearman.note for pair in likeness.pairs if pair.spearman.note):
        talk(note)
    talk("with --json: the intervals, and Kendall's tau")


def _print_items(item_tables: Sequence[Items]) -> None:
    """Print which items discriminate best between systems, by column."""
    from codec_bench.apps.leaderboards.json_values import SHOWN

    if not item_tables:
        talk("no run has a value for this board, so there are no items to tell of")
        return
    heads = ("", "own systems", "items", "tell none apart", "mean discrimination", "against the rest", "such as")
    rows = [
        (
            one.column, one.systems, one.items, *(("", "", "", "") if one.note else (
                one.alike, "" if one.mean is None else f"{one.mean:.2f}", len(one.against),
                ", ".join(one.against[:SHOWN])
            )),
        )
        for one in item_tables
    ]  # fmt: skip
    console().print(table(heads, rows))
    for one in item_tables:
        if one.note:
            talk(f"{one.column}: {one.note}")
    talk(
        "discrimination: the correlation, over the systems, of an item with the mean of all others; an item below 0 "
        "(against the rest) orders the systems the other way round. With few systems it is noisy"
    )


def _span(span: tuple[int, int] | None) -> str:
    return "" if span is None else f"{span[0]}" if span[0] == span[1] else f"{span[0]} to {span[1]}"


def _print_board(board: Board) -> None:
    """Print a board's rows, notes and sources."""
    from codec_bench.apps.leaderboards.formats import best_rows

    of_group = {column.group: column for column in board.columns}
    has_gains = any(row.gains_over_text for row in board.rows)
    best = {column.name: best_rows(board, column) for column in board.columns}
    heads = [
        "",
        *(["average"] if board.averages else []),
        *(_mean_head(group, of_group[group]) for group in board.means),
        *(["beyond\nthe text"] if has_gains else []),
    ]
    rows = []
    for n, row in enumerate(board.rows):
        means = [_average(row)] if board.averages else []
        means += [_mean_cell(board, row, group) for group in board.means]
        means += [row.gain_over_text] if has_gains else []
        cells = [_mark_best(_cell(row.cells.get(name), row, name), n, *marks) for name, marks in best.items()]
        rows.append((_own_marked(row), *means, *cells))
    print_wide([*heads, *map(_head, board.columns)], rows)
    talk(
        f"published rows: {board.source or 'none'}; rows that begin with > are from your runs, with 95 % intervals in "
        "brackets; (part): an average or a mean is over fewer columns; (limit): only a part of the questions was "
        "taken, by an option; (questions missing): the data hold another number of questions than the benchmark; "
        "(other data), (other prompt) and the like: not the benchmark of the column, or not its judge; such rows are "
        "in no rank; (not finished): a run is not finished; (other model): the service says that another model "
        "answered"
    )
    if has_gains:
        talk(
            "beyond the text: what the value has beyond that of the same model to the text alone, in points of the "
            "column, more being better; published rows and rows without that control have none"
        )
    for row in board.rows:
        for note in (
            row.note,
            row.parts_text,
            board.lacking(row),
            *_format_earlier_values(row),
            *row.failures,
            *_failure_notes(row),
            *_wordings(row),
        ):
            if note:
                talk(f"{row.name}: {note}")
    for sentence in (*board.mixed, *board.judge_notes):
        talk(sentence)
    if board.ignored:
        talk(f"runs without a value for this board: {', '.join(board.ignored)}")


def _print_views(board: Board) -> None:
    """Print the board's means over selected columns, each in their common unit."""
    if not board.views:
        raise UserError("board_without_groups", board=board.name)
    of = {column.name: column for column in board.columns}
    heads = [f"{v.name} {ARROWS[of[v.columns[0]].counts != 'error']} {of[v.columns[0]].unit}" for v in board.views]
    rows = [(_own_marked(row), *(view.value(row) for view in board.views)) for row in board.rows]
    console().print(table(("", *heads), [tuple("" if cell is None else str(cell) for cell in row) for row in rows]))
    talk("a mean is empty where one of its cells is missing, because it would be another mean")


def _own_marked(row: BoardRow) -> str:
    return row.name if row.published else f"> {row.name}"


def _cell(value: Decimal | None, row: BoardRow, name: str) -> Any:
    ends = row.intervals.get(name)
    return row.judged.get(name) if value is None else value if ends is None else f"{value} [{ends[0]}, {ends[1]}]"


def _mark_best(cell: Any, row: int, best: set[int], tied: set[int]) -> Any:
    """Mark the best cell bold, and indistinguishable ones with ≈."""
    from rich.text import Text

    return Text(str(cell), "bold") if row in best else f"≈{cell}" if row in tied else cell


def _mean_cell(board: Board, row: BoardRow, group: str) -> Any:
    mean = row.shown_mean(group)
    return f"{mean} (part)" if mean is not None and board.is_part(row, group) else _cell(mean, row, group)


def _average(row: BoardRow) -> str:
    shown = row.shown_average
    return row.judged.get("average", "") if shown is None else f"{shown}{_list_doubts(row)}"


def _failure_notes(row: BoardRow) -> list[str]:
    """Note the values of a row by each rule for failures."""
    words = {"left_out": "without failures", "as_wrong": "with failures as wrong"}
    words["official"] = "with failures as the benchmark's toolkit counts them"
    return [
        f"{column} is {', '.join(f'{value} {words[rule]}' for rule, value in values.items())}; the table shows the last"
        for column, values in row.policies.items()
    ]


def _format_earlier_values(row: BoardRow) -> list[str]:
    return [
        f"{column} is {others} in an earlier run of the same name; the table shows the later one"
        for column, others in row.earlier_values.items()
    ]


def _wordings(row: BoardRow) -> list[str]:
    return [
        f"{column} over {over['n']} wordings, failures as wrong: mean {over['mean']}, standard deviation {over['sd']}"
        + "".join(f", {word} {over[word]}" for word in ("worst", "best") if word in over)
        for column, over in row.wording_spreads.items()
    ]


def _mean_head(group: str, column: Column) -> str:
    return f"{group}\n" + " ".join(filter(None, ("mean", ARROWS[column.counts != "error"], column.unit)))


def _head(column: Column) -> str:
    """Build a column's heading: data, metric, direction, unit, and chance level."""
    data, _, measured = column.name.partition("/")
    chance = "" if column.chance is None else f"(chance {column.chance})"
    return f"{data}\n" + " ".join(filter(None, (measured, ARROWS[column.counts != "error"], column.unit, chance)))


def _list_doubts(row: BoardRow) -> str:
    """Name what keeps a row from being ranked."""
    doubts = (
        ("part", not row.complete),
        ("limit", row.limited),
        ("questions missing", row.short),
        *((mark, True) for mark in row.deviations),
        ("not finished", row.unfinished),
        ("other model", row.rerouted),
        (f"{len(row.states)} states of the model", len(row.states) > 1),
    )
    return "".join(f" ({word})" for word, holds in doubts if holds)
