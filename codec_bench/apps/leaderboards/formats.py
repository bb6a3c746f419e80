"""A leaderboard in LaTeX, with significance groups, and as a heat map.

The best value is bold, indistinguishable own rows have ≈ (`best`). Partial or unfinished rows are not compared. Own
rows that share a letter are not distinguishable (compact letter display). Published rows have no items, and so no
letters or rank intervals.

The best rows in each column, and those not distinguishable from them.
Candidates are comparable rows: full questions, codecs without findings, output with speech. If the best row has too few
values of the shared questions, nobody is the best. `stats.verdict` compares own rows; published rows have no items for
a test.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING

from codec_bench.apps.leaderboards.board import Board, BoardRow, Column, Likeness, Trust
from codec_bench.report.figures.draw import COLOURS, INK, Drawing
from codec_bench.report.numbers import ARROWS, BOLD
from codec_bench.report.open_run import open_run
from codec_bench.report.paper import latex_table, latex_text
from codec_bench.stats.breakdown import MetricParts, parts_of
from codec_bench.stats.recorded import RecordedRun
from codec_bench.stats.verdict import speechless, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADS = ("first", "second", "rows", "spearman", "low", "high", "kendall", "note")
_SQUARE = 0.3
"""Inches of a square."""
_PALE = 0.85
"""Numbers are dark up to this correlation."""


def board_latex(board: Board) -> str:
    """Format a board as a LaTeX table, with ranks and significance groups if known."""
    trust, averages = board.trust, board.averages
    letters = _letters(board, trust) if trust else [""] * len(board.rows)
    grouped = any(letters)
    heads = [
        *(["rank"] if trust else []), "system", *(["group"] if grouped else []), *(["average"] if averages else []),
        *(f"{one.name} ({one.unit}) {ARROWS[one.counts != 'error']}" for one in board.columns),
    ]  # fmt: skip
    aligned = f"{'r' if trust else ''}l{'l' if grouped else ''}{'r' * (len(board.columns) + averages)}"
    best = {column.name: best_rows(board, column) for column in board.columns}
    lines = []
    for n, row in enumerate(board.rows):
        name = latex_text(row.name) + ("" if row.published else r"$^{\ast}$")
        cells = [_cell(row, column, n, *best[column.name]) for column in board.columns]
        mean = [latex_text("–" if row.shown_average is None else str(row.shown_average))] if averages else []
        lines.append([*([_rank(trust, n)] if trust else []), name, *([letters[n]] if grouped else []), *mean, *cells])
    return latex_table(aligned, [latex_text(head) for head in heads], lines, _notes(board, trust))


def _cell(row: BoardRow, column: Column, number: int, best: set[int], tied: set[int]) -> str:
    value = row.cells.get(column.name)
    if value is None:
        return latex_text("–")
    return rf"\textbf{{{value}}}" if number in best else latex_text("≈" * (number in tied)) + str(value)


def _rank(trust: Trust, row: int) -> str:
    rank, interval = trust.robustness[row].rank, trust.rank_intervals[row]
    if rank is None:
        return latex_text("–")
    return f"{rank}" if interval is None else f"{rank} ({interval[0]}--{interval[1]})"


def _letters(board: Board, trust: Trust) -> list[str]:
    """Return significance letters by row; empty without items or a rank interval."""
    known = [n for n, interval in enumerate(trust.rank_intervals) if interval is not None]
    names = [board.rows[n].name for n in known]
    tied_rows = [[index for index, name in enumerate(names) if name in trust.tied[n]] for n in known]
    by_row = dict(zip(known, significance_letters(tied_rows), strict=True))
    return [by_row.get(n, "") for n in range(len(board.rows))]


def _notes(board: Board, trust: Trust | None) -> Sequence[str]:
    """List the notes below the table: signs, source, and limits of each row."""
    has_runs = any(not row.published for row in board.rows)
    notes = [
        f"↑ higher is better, ↓ lower is better. {BOLD}; published rows have no items for a test.",
        *([f"Published rows: {board.source}."] if board.source else []),
        *(["Rows with a star are from own runs."] if has_runs else []),
    ]
    if trust is not None and any(interval is not None for interval in trust.rank_intervals):
        notes.append(
            "In brackets behind a rank stand the ranks that hold the middle 95 % of draws of other items. Own rows "
            "that share a letter (group) are not significantly different; published rows have no items, and so no "
            "letters."
        )
    for row in board.rows:
        doubts = (
            (not row.complete and board.averages, "its average is over fewer columns"),
            (bool(row.missing), board.lacking(row)),
            (row.limited, "only a part of the items was taken"),
            (bool(row.parts), row.parts_text),
            (
                bool(row.deviations),
                f"its questions, or its judge, are not those of the columns ({', '.join(row.deviations)})",
            ),
            (row.unfinished, "a run is not finished"),
            (row.rerouted, "the service says that another model answered"),
        )
        row_notes = [*(words for holds, words in doubts if holds), *([row.note] if row.note else []), *row.failures]
        if row_notes:
            notes.append(f"{row.name}: {'; '.join(row_notes)}.")
    return [*notes, *(f"{sentence}." for sentence in (*board.mixed, *board.judge_notes))]


def significance_letters(tied: Sequence[Collection[int]]) -> list[str]:
    """Assign letters to rows; two rows share one exactly if they do not differ.

    Args:
        tied: for each row, best first, the indistinguishable rows; naming by one of two rows suffices.
    """
    rows = range(len(tied))
    groups: list[frozenset[int]] = [frozenset(rows)] if tied else []
    for first in rows:
        for second in range(first + 1, len(tied)):
            if second in tied[first] or first in tied[second]:
                continue
            both = {first, second}
            split = [half for g in groups for half in ([g - {first}, g - {second}] if both <= g else [g])]
            unique = list(dict.fromkeys(split))
            groups = [group for group in unique if not any(group < other for other in unique)]
    groups.sort(key=sorted)
    return ["".join(_letter(n) for n, group in enumerate(groups) if row in group) for row in rows]


def _letter(number: int) -> str:
    """Return a to z, then aa, ab, and so on, in brackets to keep letters apart."""
    if number < len(ascii_lowercase):
        return ascii_lowercase[number]
    return f"({ascii_lowercase[number // 26 - 1]}{ascii_lowercase[number % 26]})"


def best_rows(board: Board, column: Column) -> tuple[set[int], set[int]]:
    """Return the positions of a column's best rows, and of rows that tie with them.

    A tie is a difference that is not significant; it is tested between rows of the user's runs. Both are empty if fewer
    than two rows can be compared, or if these runs measured the column by several protocols.
    """
    if len(board.protocols(column)) > 1:
        return set(), set()
    sign = -1 if column.counts == "error" else 1
    values = {
        n: sign * row.cells[column.name]
        for n, row in enumerate(board.rows)
        if row.compared and column.name in row.cells and not _is_excluded(row, column)
    }
    if len(values) < 2:
        return set(), set()
    run_rows = [n for n in values if not board.rows[n].published]
    best = {n for n in values if values[n] == max(values.values())}
    if len(run_rows) > 1 and column.subset is None:
        outcome = verdict(_parts([board.rows[n] for n in run_rows], column), (), sign > 0)
        if best & {run_rows[k] for k in outcome.excluded}:
            return set(), set()
        if best & {run_rows[k] for k in outcome.best}:
            return best, {run_rows[k] for k in outcome.tied} - best
    return best, set()


def _is_excluded(row: BoardRow, column: Column) -> bool:
    """Whether the row's system is suspect in its run, or its output has no speech."""
    if row.published:
        return False
    source = row.sources[column.name]
    with closing(open_run(source.folder)) as run:
        recorded = RecordedRun(run)
        if source.system in recorded.suspects:
            return True
        scores = recorded.scores(source.system, source.metric)
        return speechless(scores.speechless, len(scores.numbers)) is not None


def _parts(rows: Sequence[BoardRow], column: Column) -> dict[int, MetricParts]:
    """Load each row's values by question, with question numbers common to all rows."""
    numbers: dict[str, int] = {}
    scores = {}
    for index, row in enumerate(rows):
        source = row.sources[column.name]
        with closing(open_run(source.folder)) as run:
            ids = dict(run.query("SELECT number, id FROM samples"))
            parts = parts_of(RecordedRun(run), source.system, source.metric)
        scores[index] = replace(parts, numbers=[numbers.setdefault(ids[n], len(numbers)) for n in parts.numbers])
    return scores


def write_heatmap(likeness: Likeness, folder: Path, stem: str) -> list[Path]:
    """Write the correlations as SVG, PDF and CSV; returns the files.

    Blue is positive and orange negative, which suits all kinds of colour blindness; squares hold their number.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the folder cannot be written.
    """
    return Drawing().write(lambda: _figure(likeness), folder, stem, HEADS, _likeness_rows(likeness))


def _likeness_rows(likeness: Likeness) -> list[tuple[object, ...]]:
    """List the correlations of column pairs, for CSV."""
    return [
        (
            likeness.columns[p.first], likeness.columns[p.second], p.rows, p.spearman.value, p.spearman.low,
            p.spearman.high, p.kendall.value, p.spearman.note,
        )
        for p in likeness.pairs
    ]  # fmt: skip


def _figure(likeness: Likeness) -> Figure:
    """Draw the heat map of rank correlations of columns."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    names = likeness.order
    size = _SQUARE * len(names)
    figure = Figure(figsize=(size, size))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    colours = LinearSegmentedColormap.from_list("rho", [COLOURS[1], "white", COLOURS[0]])
    for row, first in enumerate(names):
        for column, second in enumerate(names[:row]):
            correlation = likeness.value(first, second)
            value = None if correlation is None else correlation.value
            if value is None:
                axes.text(column, row, "–", ha="center", va="center", color=INK)
                continue
            axes.fill_between(
                [column - 0.48, column + 0.48], row - 0.48, row + 0.48, color=colours((value + 1) / 2), linewidth=0
            )
            ink = INK if abs(value) < _PALE else "white"
            axes.text(column, row, f"{value:.2f}".replace("0.", ".", 1), ha="center", va="center", color=ink, size=6)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("Spearman's rho of every two columns over the rows of the board; more is better in every column")
    return figure
