"""Output of commands: tables on stdout, messages on stderr."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from codec_bench.messages.errors import Note, UserError, plain

if TYPE_CHECKING:
    from rich.console import Console


_LONGEST = 2_000
_ENDLESS = 10_000
"""Columns outside a terminal: tables in files and pipes are never broken."""


def console() -> Console:
    """Return standard output as a rich console.

    Outside a terminal, it is as wide as $COLUMNS, or else unlimited.
    """
    from rich.console import Console

    out = Console(file=sys.stdout, highlight=False)
    if out.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return out
    return Console(file=sys.stdout, highlight=False, width=_ENDLESS)


class _GuardedOutput:
    """Standard output, on which a failed write ends the command in one sentence."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._guard(self._out.write, text)

    def flush(self) -> None:
        self._guard(self._out.flush)

    def _guard(self, act: Callable[..., Any], *texts: str) -> Any:
        """Write or flush; failures raise UserError, except for a closed pipe."""
        try:
            return act(*texts)
        except BrokenPipeError:
            raise  # the reader of the pipe has read enough
        except OSError as error:
            from codec_bench.store.export import drop_output

            drop_output()
            raise UserError("output_not_writable", cause=error.strerror or error) from error
        except UnicodeEncodeError as error:
            raise UserError(
                "output_encoding",
                encoding=error.encoding,
                character=error.object[error.start],
                hint="set PYTHONUTF8=1, or a locale of UTF-8",
            ) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


@contextmanager
def guard_output() -> Iterator[None]:
    """Turn failed writes to standard output into a `UserError`, then flush."""
    before = sys.stdout
    checked = _GuardedOutput(before)
    sys.stdout = checked
    try:
        yield
    finally:
        if sys.stdout is checked:  # else typer has replaced it after a broken pipe
            sys.stdout = before
            checked.flush()


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


@contextmanager
def errors_as_json(is_json: bool) -> Iterator[None]:
    """Print a `UserError` of the block as one line of JSON too, and raise it."""
    try:
        yield
    except UserError as error:
        if is_json:
            # Without letters beyond ASCII, since names of files may hold bytes of no letter.
            sys.stdout.write(json.dumps({"error": error.as_dict()}) + "\n")
        raise


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences on standard output; text from data is never markup."""
    for line in lines:
        console().print(line, markup=False)


def print_wide(heads: Sequence[str], rows: Sequence[Sequence[Any]], notes: Iterable[str] = ()) -> None:
    """Print a `wide_table` for this terminal, then its notes."""
    from codec_bench.report.table import wide_table

    out = console()
    out.print(wide_table(heads, rows, out.width))
    print_lines(notes)


def talk(text: str) -> None:
    """Write lines to stderr, without control characters and shortened."""

    sys.stderr.write("\n".join(plain(line, _LONGEST) for line in text.split("\n")) + "\n")


def print_notes() -> None:
    """Print every `Note` once as a line on stderr."""
    show_other, printed = warnings.showwarning, set()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, Note):
            show_other(message, category, *where, **more)
        elif str(message) not in printed:
            printed.add(str(message))
            talk(f"note: {message}")

    warnings.simplefilter("always", Note)
    warnings.showwarning = show


def count_fitting(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """Return how many of the first columns fit unbroken; at least one."""
    from codec_bench.report.narrow import room_for, whole_words

    cells, count, width = _cells(columns, rows), len(columns), console().width
    while count > 1 and whole_words(cells[:count], room_for(width, count)) is None:
        count -= 1
    return count


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[str] = ()) -> Any:
    """Return a plain table without markup or control characters from data.

    Without room for three or more columns, each row is a block of lines.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from codec_bench.report.narrow import listed, longest_word, room_for, whole_words

    cells = _cells(columns, rows)
    widths = whole_words(cells, room_for(console().width, len(columns)))
    texts = [list(map(Text, row)) for row in zip(*(column[1:] for column in cells))]
    if widths is None and len(columns) > 2:
        return listed([head for head, *_ in cells], texts)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, (head, *_) in enumerate(cells):
        # The first column holds names to type, so it is never cut.
        grid.add_column(
            Text(head), justify="right" if head in numeric else "left", no_wrap=not number, overflow="fold",
            min_width=longest_word(head), width=widths[number] if widths else None,
        )  # fmt: skip
    for row in texts:
        grid.add_row(*row)
    return grid


def _cells(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    return [
        [plain(column), *("" if row[n] is None else plain(str(row[n])) for row in rows)]
        for n, column in enumerate(columns)
    ]
