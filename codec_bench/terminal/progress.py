"""A run's progress on stderr, as one redrawn line or a line every 30 seconds.

Estimate of the time left: it needs 10 seconds since the first finished item (loading excluded), and a tenth of all
items or 2 minutes. It is computed from all of that time, its last half and its last quarter, and shown as a range if
these agree within a factor of two and the last quarter has no gap of a third, as after a stall.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from time import monotonic
from typing import Any

LINE_EVERY_S = 30.0
_NOTEBOOK_EVERY_S = 0.5
_LEAST_S = 10.0
_SURE_S = 120.0
_SURE_PART = 0.1
_WINDOWS = (1.0, 0.5, 0.25)
_LEAST_STEPS = 3
"""The fewest steps in the shortest window; fewer are chance."""
_LONGEST_GAP = 1 / 3
"""The longest gap, as a share of the shortest window; a stall distorts the speed."""
_MOST_REPORTS = 512

Clock = Callable[[], float]


class Progress:
    """The state of a run's progress, and its text.

    Args:
        clock: in seconds. unit: of the counts, such as `items`.
        estimates: whether to estimate the time left; not for items of very different length.
    """

    def __init__(self, clock: Clock = monotonic, unit: str = "items", estimates: bool = True) -> None:
        self._clock, self._unit, self._estimates = clock, unit, estimates
        self._started_at = clock()
        self.stage, self.done, self.total = "starting", 0, 0
        self._failed, self._audio_s = 0, 0.0
        self._first: tuple[float, int, float] | None = None
        self._reports: list[tuple[float, int]] = []
        self._lock = threading.Lock()

    def update(self, stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        """Note a report: the arguments of `Running.progress`."""
        with self._lock:
            now = self._clock()
            if stage != self.stage:
                self._first = None
            self.stage, self.done, self.total, self._failed, self._audio_s = stage, done, total, failed, audio_s
            if self._first is None and done:
                self._first, self._reports = (now, done, audio_s), []
            self._reports.append((now, done))
            if len(self._reports) > _MOST_REPORTS:
                del self._reports[1::2]

    def finish(self) -> None:
        """Note that everything is done."""
        with self._lock:
            self.stage, self._first = "finished", None

    def words(self) -> str:
        """Return the counts, failures, speed, and time so far or left."""
        with self._lock:
            now = self._clock()
            counted = f"{self.done:,} of {self.total:,} {self._unit}" if self.total else ""
            failed = f"{self._failed:,} failed" if self._failed else ""
            return ", ".join(filter(None, (counted, failed, self._format_speed(now), self._time(now))))

    def line(self) -> str:
        """Return the stage with its details."""
        return f"{self.stage}: {self.words()}".removesuffix(": ")

    def _format_speed(self, now: float) -> str:
        """Describe the processed audio and its speed; empty before there is any."""
        if self._first is None or not self._audio_s:
            return ""
        hours = f"{self._audio_s / 3600:.2f} h" if self._audio_s >= 360 else f"{self._audio_s:.0f} s"
        began, _, before_s = self._first
        since_s = self._audio_s - before_s
        speed = f", {since_s / (now - began):.1f}x real time" if since_s > 0 and now - began >= 1 else ""
        return f"{hours} of audio{speed}"

    def _time(self, now: float) -> str:
        left = self._left_s(now)
        if left is not None:
            return f"{_format_span(*left)} left"
        return f"{_format_duration(now - self._started_at)} so far" if now - self._started_at >= 1 else ""

    def _left_s(self, now: float) -> tuple[float, float] | None:
        """Return the least and most seconds left, if known within a factor of two."""
        if self._first is None or not self._estimates:
            return None
        began, first, _ = self._first
        took, done = now - began, self.done - first
        if took < _LEAST_S or (took < _SURE_S and done < _SURE_PART * (self.total - first)):
            return None
        left = []
        for window in _WINDOWS:
            at = max(bisect_right(self._reports, (now - window * took, self.total)) - 1, 0)
            steps = {done for _, done in self._reports[at:]}
            if len(steps) <= _LEAST_STEPS:
                return None
            left.append(window * took / (self.done - self._reports[at][1]) * (self.total - self.done))
        if max(left) > 2 * min(left) or self._gap_s(now, _WINDOWS[-1] * took) > _LONGEST_GAP * _WINDOWS[-1] * took:
            return None
        return min(left), max(left)

    def _gap_s(self, now: float, window_s: float) -> float:
        """Return the longest gap of the last `window_s` seconds without finished items."""
        times = [now - window_s]
        for (_, before), (when, done) in pairwise(self._reports):
            if when > times[0] and done > before:
                times.append(when)
        return max(after - before for before, after in pairwise([*times, now]))


def _format_span(least_s: float, most_s: float) -> str:
    """Format a range of times, as in `2 to 3 min`."""
    least, most = _format_duration(least_s), _format_duration(most_s)
    if least == most:
        return f"about {most}"
    number, _, unit = least.partition(" ")
    is_same = unit == most.partition(" ")[2] and unit.isalpha()
    return f"{number if is_same else least} to {most}"


def _format_duration(seconds: float) -> str:
    """Format seconds to one unit, as in `40 s` or `5 min`."""
    if seconds < 59.5:
        return f"{round(seconds)} s"
    if seconds < 3570:
        return f"{round(seconds / 60)} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02d} min"


class ProgressLines:
    """Prints the progress now and then on its own line; for logs and pipes."""

    def __init__(
        self, progress: Progress, clock: Clock = monotonic, write_line: Callable[[str], None] | None = None
    ) -> None:
        self._progress, self._clock = progress, clock
        self._write_line = write_line or (lambda line: print(line, file=sys.stderr, flush=True))
        self._last = clock()

    def tick(self) -> None:
        """Print a line if the last one is long enough ago."""
        if self._clock() - self._last >= LINE_EVERY_S:
            self._last = self._clock()
            self._write_line(self._progress.line())


@contextmanager
def progress_line(unit: str = "items", estimates: bool = True) -> Iterator[Progress]:
    """Show progress until the block ends."""
    from rich.console import Console

    console = Console(file=sys.stderr, force_jupyter=False)
    progress = Progress(unit=unit, estimates=estimates)
    if in_notebook():
        display = _show_in_notebook(progress)
    elif console.is_terminal and not console.is_dumb_terminal:
        display = _show_in_terminal(progress, console)
    else:
        display = _call_regularly(ProgressLines(progress).tick, 1.0)
    with display:
        yield progress


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


@contextmanager
def _show_in_notebook(progress: Progress) -> Iterator[None]:
    """Update the line of progress in a notebook during the block."""
    from IPython.display import display

    def line() -> dict[str, str]:
        return {"text/plain": progress.line(), "text/html": f"<div>{escape(progress.line())}</div>"}

    handle = display(line(), raw=True, display_id=True)
    try:
        with _call_regularly(lambda: handle.update(line(), raw=True), _NOTEBOOK_EVERY_S):
            yield
    finally:
        handle.update(line(), raw=True)


@contextmanager
def _show_in_terminal(progress: Progress, console: Any) -> Iterator[None]:
    """Update the line of progress in a terminal during the block."""
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    class ProgressRow:
        def __rich_console__(self, console: object, options: object) -> Iterator[Table]:
            row = Table.grid(padding=(0, 1))
            row.add_column(no_wrap=True)
            row.add_column(no_wrap=True, overflow="ellipsis")
            row.add_row(spinner, Text.assemble(progress.stage, "  ", (progress.words(), "dim")))
            yield row

    from rich.spinner import Spinner

    spinner = Spinner("dots")
    options: dict[str, Any] = {"transient": True, "refresh_per_second": 8, "redirect_stdout": False}
    with Live(ProgressRow(), console=console, **options):
        yield


@contextmanager
def _call_regularly(look: Callable[[], None], every_s: float) -> Iterator[None]:
    """Call a function at intervals in a thread during the block."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every_s):
            look()

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
