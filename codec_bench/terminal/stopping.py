"""The reaction to Ctrl-C: what is saved, and the command that continues."""

from __future__ import annotations

import logging
import shlex
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from codec_bench.terminal.output import talk

INTERRUPTED = 130


class Stopping:
    """The run that may be stopped; `folder` is None before it is known."""

    def __init__(self) -> None:
        self.folder: Path | None = None

    def on_folder(self, folder: Path, words: str) -> None:
        """Store and print the folder of the run, as `Running.on_folder`."""
        self.folder = folder
        talk(words)


@contextmanager
def stopping(describe_saved: Callable[[Path], str] | None = None) -> Iterator[Stopping]:
    """End the command with a message if it is interrupted in the block."""
    run = Stopping()
    try:
        yield run
    except KeyboardInterrupt:
        ignore_interrupts()
        if run.folder is None:
            talk("stopped before the first item")
        else:
            talk(f"stopped; {(describe_saved or _count_saved)(run.folder)}\ncontinue with: {command(run.folder)}")
        sys.exit(INTERRUPTED)


def ignore_interrupts() -> None:
    """Ignore further Ctrl-C, so that the command can end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()  # asyncio would write the traceback of every request that was cut off
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h")  # a progress line that was cut off may have hidden the cursor


def program() -> str:
    """Return the name of this program as a person types it here."""
    installed = shutil.which("codec-bench")
    typed = sys.argv[0] if Path(sys.argv[0]).name == "codec-bench" else "codec-bench"
    return "codec-bench" if installed is not None and Path(installed).resolve() == Path(typed).resolve() else typed


def command(folder: Path) -> str:
    """Return the command as typed, with the folder of the run."""
    typed = sys.argv[1:]
    if not any(word == "--out" or word.startswith("--out=") for word in typed):
        typed = [*typed, "--out", str(folder)]
    return shlex.join([program(), *typed])


def _count_saved(folder: Path) -> str:
    """Describe what the record of a stopped command holds; empty if unreadable."""
    from codec_bench.messages.errors import UserError
    from codec_bench.store.answers import has_answers, turn_counts
    from codec_bench.store.folders import run_folders
    from codec_bench.store.record import Run

    finished = items = answers = unfinished = 0
    try:
        for path in run_folders(folder):
            run = Run(path)
            counts = run.counts()
            finished, items = finished + counts["finished"], items + counts["items"]
            if has_answers(run):
                answers += run.query("SELECT COUNT(*) FROM answers")[0][0]
                before, of_unfinished = turn_counts(run)
                answers, unfinished = answers + before, unfinished + of_unfinished
    except (UserError, sqlite3.Error):
        pass  # stopped while a record was being made: there is nothing in it yet
    if answers:
        suffix = f", {unfinished:,} of them in conversations that are not finished" if unfinished else ""
        return f"{answers:,} answers are recorded in {folder}{suffix}"
    if finished:
        return f"{finished:,} of {items:,} items are finished and recorded in {folder}"
    return f"nothing in {folder} is finished yet"
