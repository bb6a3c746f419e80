"""Follow a run and send its results to a tracker (see `trackers`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

from codec_bench.api.trackers import Tracker, collect_material, open_tracker, parse_target
from codec_bench.engine.running import Running
from codec_bench.messages.errors import UserError
from codec_bench.report.open_run import open_run
from codec_bench.stats.summary import summarise
from codec_bench.store.folders import run_folders

EVERY_S = 60.0
_REST = 20.0
"""A look waits so many times as long as the last one took: looking takes at most 5 % of the time."""

Clock = Callable[[], float]


class Tracking:
    """State of the followed runs; `notify` gets sentences for the user."""

    def __init__(self, target: str, notify: Callable[[str], None], clock: Clock = monotonic) -> None:
        self._target, self._notify, self._clock = target, notify, clock
        self._folder: Path | None = None
        self._open: dict[Path, tuple[Tracker, set[Path]]] = {}
        self._next, self._broken = clock() + EVERY_S, False

    def on_folder(self, folder: Path) -> None:
        """Set the folder of the run, or of several."""
        self._folder = folder

    def tick(self) -> None:
        """Look at the runs if the last look is long enough ago."""
        if self._clock() >= self._next:
            started = self._clock()
            self.look()
            self._next = self._clock() + max(EVERY_S, _REST * (self._clock() - started))

    def look(self) -> None:
        """Write the results so far; a service that fails is reported once."""
        if self._folder is None or self._broken:
            return
        try:
            for path in run_folders(self._folder):
                self._write(path)
        except (UserError, sqlite3.Error):
            return  # a record that is being made has nothing in it yet
        except Exception as error:
            self._broken = True
            self._notify(f"--log {self._target} failed and is disabled from here on: {type(error).__name__}: {error}")

    def _write(self, path: Path) -> None:
        """Write a run's current summary to its tracker; open the tracker at first."""
        with closing(open_run(path)) as run:
            if path not in self._open:
                self._open[path] = (open_tracker(self._target, path, run.meta.get("config") or {}), set())
            tracker, written = self._open[path]
            tracker.write(collect_material(run, summarise(run), written))

    def close(self) -> None:
        """End the runs at the service."""
        for tracker, _ in self._open.values():
            try:
                tracker.close()
            except Exception as error:
                self._notify(f"--log {self._target} could not be ended: {type(error).__name__}: {error}")


@contextmanager
def track(target: str | None, running: Running, notify: Callable[[str], None]) -> Iterator[Running]:
    """Report a run to a tracking service within the context.

    Args:
        target: the value of `--log`; None reports nothing.

    Returns:
        A context manager of `running` with callbacks that also report to the service.

    Raises:
        UserError: the target is invalid.
    """
    if target is None:
        yield running
        return
    parse_target(target)
    tracking = Tracking(target, notify)

    def on_folder(folder: Path, words: str) -> None:
        running.on_folder(folder, words)
        tracking.on_folder(folder)

    def progress(stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        running.progress(stage, done, total, failed, audio_s)
        tracking.tick()

    try:
        yield replace(running, progress=progress, on_folder=on_folder)
        tracking.look()
    finally:
        tracking.close()
