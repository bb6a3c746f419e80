"""The progress of a run, as one redrawn line or a line every 30 seconds.

It goes to stderr, in a notebook below the cell.

When the time that is left is shown
    The estimate goes by the items that were finished since the first of them was, so that loading does not count. There
    is none before they took 10 seconds, and before they are a tenth of all items or took 2 minutes. Then it is made
    three
    times: by all of that time, by its last half and by its last quarter. Where these differ by more than a factor of
    two, or nothing was finished in a third of the last quarter, as after a stall, nothing is shown; else the range of
    the three is.
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

LINE_EVERY_S = 30.0
_NOTEBOOK_EVERY_S = 0.5
_LEAST_S = 10.0
_SURE_S = 120.0
_SURE_PART = 0.1
_WINDOWS = (1.0, 0.5, 0.25)
_LEAST_STEPS = 3
"""So often something must have been finished in the shortest window: less is chance."""
_LONGEST_GAP = 1 / 3
"""Of the shortest window, in which nothing is finished: what comes at once after a stall says nothing of the speed."""
_MOST_REPORTS = 512

Clock = Callable[[], float]


class Progress:
    """What is known of the progress of a run, and how it is said.

    Args:
        clock: seconds, for the speed and the time that is left.
        unit: what is counted, such as `items`.
        estimates: whether the time that is left is estimated; not for items of very different length.
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
        """Takes a report: the arguments of `Running.progress`."""
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
        """Takes it that everything is done."""
        with self._lock:
            self.stage, self._first = "finished", None

    def words(self) -> str:
        """The counts, failures, speed, and time so far or left."""
        with self._lock:
            now = self._clock()
            counted = f"{self.done:,} of {self.total:,} {self._unit}" if self.total else ""
            failed = f"{self._failed:,} failed" if self._failed else ""
            return ", ".join(filter(None, (counted, failed, self._speed(now), self._time(now))))

    def line(self) -> str:
        """The stage, and what is known next to it."""
        return f"{self.stage}: {self.words()}".removesuffix(": ")

    def _speed(self, now: float) -> str:
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
            return f"{_span(*left)} left"
        return f"{_rough(now - self._started_at)} so far" if now - self._started_at >= 1 else ""

    def _left_s(self, now: float) -> tuple[float, float] | None:
        """The least and most seconds left, once known within a factor of two."""
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
        """The longest time of the last `window_s` seconds in which nothing was finished."""
        times = [now - window_s]
        for (_, before), (when, done) in pairwise(self._reports):
            if when > times[0] and done > before:
                times.append(when)
        return max(after - before for before, after in pairwise([*times, now]))


def _span(least_s: float, most_s: float) -> str:
    """A range of durations in words, or one duration where both ends read alike."""
    least, most = _rough(least_s), _rough(most_s)
    if least == most:
        return f"about {most}"
    number, _, unit = least.partition(" ")
    alike = unit == most.partition(" ")[2] and unit.isalpha()
    return f"{number if alike else least} to {most}"


def _rough(seconds: float) -> str:
    """A duration in words with as many digits as an estimate deserves."""
    if seconds < 59.5:
        return f"{round(seconds)} s"
    if seconds < 3570:
        return f"{round(seconds / 60)} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02d} min"


class Lines:
    """Says the progress in a line of its own, now and then; for logs and pipes."""

    def __init__(
        self, progress: Progress, clock: Clock = monotonic, write_line: Callable[[str], None] | None = None
    ) -> None:
        self._progress, self._clock = progress, clock
        self._write_line = write_line or (lambda line: print(line, file=sys.stderr, flush=True))
        self._last = clock()

    def tick(self) -> None:
        """Says a line if the last one is long enough ago."""
        if self._clock() - self._last >= LINE_EVERY_S:
            self._last = self._clock()
            self._write_line(self._progress.line())


@contextmanager
def progress_line(unit: str = "items", estimates: bool = True) -> Iterator[Progress]:
    """Shows the progress that is told to it until the block ends."""
    from rich.console import Console

    console = Console(file=sys.stderr, force_jupyter=False)
    progress = Progress(unit=unit, estimates=estimates)
    if in_notebook():
        display = _show_in_notebook(progress)
    elif console.is_terminal and not console.is_dumb_terminal:
        display = _show_in_terminal(progress, console)
    else:
        display = _call_regularly(Lines(progress).tick, 1.0)
    with display:
        yield progress


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


@contextmanager
def _show_in_notebook(progress: Progress) -> Iterator[None]:
    """A line below the cell of a notebook."""
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
def _show_in_terminal(progress: Progress, console: object) -> Iterator[None]:
    """A line at the bottom of the terminal, drawn again several times a second."""
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    class Line:
        def __rich_console__(self, console: object, options: object) -> Iterator[Table]:
            row = Table.grid(padding=(0, 1))
            row.add_column(no_wrap=True)
            row.add_column(no_wrap=True, overflow="ellipsis")
            row.add_row(spinner, Text.assemble(progress.stage, "  ", (progress.words(), "dim")))
            yield row

    from rich.spinner import Spinner

    spinner = Spinner("dots")
    with Live(Line(), console=console, transient=True, refresh_per_second=8, redirect_stdout=False):  # type: ignore[arg-type]
        yield


@contextmanager
def _call_regularly(look: Callable[[], None], every_s: float) -> Iterator[None]:
    """Calls a function regularly on a thread, also while nothing is reported."""
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
