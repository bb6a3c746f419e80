"""The one progress line, on stderr: items, hours of audio, times real time, time left, failures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def progress_line() -> Iterator[Callable[[str, int, int, int, float], None]]:
    """Gives a function to call with (stage, items finished, items in all, items failed, seconds of audio finished)."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.fields[speed]}"), TimeRemainingColumn(), TextColumn("{task.fields[failed]}"),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        line = progress.add_task("loading", total=None, speed="", failed="")
        current, begun, first = "loading", perf_counter(), 0

        def tell(stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
            nonlocal current, begun, first
            if stage != current:  # items that were finished before do not count for the speed
                current, begun, first = stage, perf_counter(), done
            hours = f"{audio_s / 3600:.2f} h" if audio_s >= 360 else f"{audio_s:.0f} s"
            elapsed = perf_counter() - begun
            speed = ""
            if elapsed > 0.5 and audio_s:
                speed = f"{hours} of audio, {audio_s / elapsed:.1f}x real time"
            elif elapsed > 0.5 and done > first:
                speed = f"{(done - first) / elapsed:.1f} a second"
            progress.update(
                line,
                description=stage,
                completed=done,
                total=total or None,
                speed=speed,
                failed=f"{failed} failed" if failed else "",
            )

        yield tell
