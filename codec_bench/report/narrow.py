"""Tables in a narrow terminal: widths at which no word is broken, and blocks of lines where there are none.

Conventions
    Cells are texts without what could control a terminal. A width counts columns of the terminal, of which a Chinese
    character takes two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

_ORDINARY = 30
"""Columns of the longest word of a cell that is kept whole; a path or an address may be broken."""


def longest_word(text: str) -> int:
    """How wide the longest word of a text is."""
    return max(map(cell_len, text.split()), default=0)


def room_for(width: int, columns: int) -> int:
    """The room for the cells of so many columns in a table that is as wide as the terminal."""
    return width - 3 * columns - 1


def whole_words(cells: Sequence[Sequence[str]], room: int, unbroken: Sequence[int] = (0,)) -> list[int] | None:
    """The widths of columns at which no heading and no ordinary word is broken; None if there is not room enough.

    The widest column that can still be broken between words gives way first.

    Args:
        cells: each column from its head down.
        room: for all cells of a row.
        unbroken: the places of columns whose cells stay on one line.
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
    """The rows of a table as blocks of lines, each line a heading and its cell. An empty cell has no line.

    Args:
        heads: of the columns. rows: their cells.
    """
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row()
        for head, cell in zip(heads, row):
            if cell.plain:
                table.add_row(Text(head), cell)
    return table
