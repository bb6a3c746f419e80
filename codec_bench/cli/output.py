"""Where commands print: tables go to stdout, messages to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Standard output as a rich console, which is wide enough for tables if it is not a terminal."""
    from rich.console import Console

    out = Console(file=sys.stdout, highlight=False)
    return out if out.is_terminal else Console(file=sys.stdout, highlight=False, width=160)


def talk(text: str) -> None:
    """Writes a line to stderr."""
    sys.stderr.write(text + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[str] = ()) -> Any:
    """A plain table. Text from data is added as text, never as markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        # The first column holds names that a person types, so it is never cut.
        made.add_column(
            Text(column), justify="right" if column in numeric else "left", no_wrap=not place, overflow="fold"
        )
    for row in rows:
        made.add_row(*(Text("" if value is None else str(value)) for value in row))
    return made
