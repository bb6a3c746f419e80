"""Tables in a narrow terminal: widths without broken words, else blocks of lines.

Cells have no control characters. A width counts columns of the terminal; a Chinese character takes two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

_ORDINARY = 30
"""The widest word that is never broken; a path or an address may be."""


def longest_word(text: str) -> int:
    """Return the width of a text's longest word."""
    return max(map(cell_len, text.split()), default=0)


def room_for(width: int, columns: int) -> int:
    """Return the room for the cells of so many columns in a table of this width."""
    return width - 3 * columns - 1


def whole_words(cells: Sequence[Sequence[str]], room: int, unbroken: Sequence[int] = (0,)) -> list[int] | None:
    """Return column widths without broken heads and words; None without room.

    In cells, words wider than `_ORDINARY` may be broken. The widest column that can still be broken shrinks first.

    Args:
        cells: each column from its head down.
        room: for all cells of a row.
        unbroken: the indices of columns whose cells stay on one line.
    """
    widths = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in cells]
    words = [
        max(longest_word(column[0]), *(min(longest_word(cell), _ORDINARY) for cell in column[1:]), 0)
        for column in cells
    ]
    for index in unbroken:
        words[index] = widths[index]
    if sum(words) > room:
        return None
    while sum(widths) > room:
        _, index = max((width, index) for index, (width, word) in enumerate(zip(widths, words)) if width > word)
        widths[index] -= 1
    return widths


def listed(heads: Sequence[str], rows: Iterable[Sequence[Text]]) -> Table:
    """Return the rows as blocks of lines with heading and cell, without empty cells."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row()
        for head, cell in zip(heads, row):
            if cell.plain:
                table.add_row(Text(head), cell)
    return table
