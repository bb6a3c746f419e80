"""Where commands print: tables go to stdout, messages to stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codec_bench.errors import Note

if TYPE_CHECKING:
    from rich.console import Console


_ENDLESS = 10_000
"""Columns of what is no terminal: a table in a file or in a pipe is never broken."""


def console() -> Console:
    """Standard output as a rich console. If it is no terminal, it is as wide as $COLUMNS says, or else as any table needs."""
    from rich.console import Console

    out = Console(file=sys.stdout, highlight=False)
    if out.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return out
    return Console(file=sys.stdout, highlight=False, width=_ENDLESS)


def talk(text: str) -> None:
    """Writes a line to stderr."""
    sys.stderr.write(text + "\n")


def talk_notes() -> None:
    """Makes every `Note` a line on stderr, once each, without the place in the code that other warnings have."""
    others, told = warnings.showwarning, set()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, Note):
            others(message, category, *where, **more)
        elif str(message) not in told:
            told.add(str(message))
            talk(f"note: {message}")

    warnings.simplefilter("always", Note)
    warnings.showwarning = show


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[str] = ()) -> Any:
    """A plain table. Text from data is added as text, never as markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(columns):
        # The first column holds names that a person types, so it is never cut. A heading breaks between words only.
        made.add_column(
            Text(column), justify="right" if column in numeric else "left", no_wrap=not place, overflow="fold",
            min_width=max(map(len, column.split()), default=0),
        )  # fmt: skip
    for row in rows:
        made.add_row(*(Text("" if value is None else str(value)) for value in row))
    return made
