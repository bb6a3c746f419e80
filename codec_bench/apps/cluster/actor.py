"""What an actor of a Ray cluster does: it runs shards, one after the other, with worker processes that stay.

It is a plain class. `ray.py` makes actors of it; nothing here imports Ray.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep

from codec_bench.data.shard import Shard
from codec_bench.engine.evaluation import Evaluation, execute_shard
from codec_bench.engine.running import Running, Workers, started_workers
from codec_bench.errors import RunLocked, UserError

LOCKED_S = 10.0
"""How long an actor waits for a folder that another process holds, such as a lost actor that has not quite ended."""


@dataclass(frozen=True, slots=True)
class Told:
    """How far the shard that an actor runs is: items that are finished, items that failed, seconds of audio."""

    done: int = 0
    failed: int = 0
    audio_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a shard ended.

    Args:
        told: what is in its record. error: what was wrong, if it could not be finished.
    """

    told: Told
    error: UserError | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """What every actor of a run is told.

    Args:
        folder: that the driver works in, on a file system that all nodes share. token: a file in it, and what it holds.
        prepare: opens the data and reads what is asked for. running: how to run it. cores: how many an actor may use.
    """

    folder: str
    token: tuple[str, str]
    prepare: Callable[[], Evaluation]
    running: Running
    cores: int


class ShardActor:
    """Runs shards. The data is opened, and models are loaded, on the node where the actor is.

    Args:
        place: what it is told.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._told = Told()
        self._asked: Evaluation | None = None
        self._workers: Workers | None = None
        self._open = ExitStack()

    def begin(self) -> UserError | None:
        """Goes to the driver's folder; the reason why this node cannot take part, or None."""
        place = self._place
        path, content = place.token
        try:
            os.chdir(place.folder)
            if Path(path).read_text() == content:
                return None
            why = "holds something else"
        except OSError as error:
            why = error.strerror or str(error)
        return UserError(
            f"the node {socket.gethostname()} does not see the run folder: '{path}' {why}",
            hint="give an --out on a file system that all nodes of the Ray cluster share",
        )

    def told(self) -> Told:
        """How far the shard is that is being run. It may be asked for meanwhile."""
        return self._told

    def run(self, shard: Shard, folder: str, check: bool) -> Ended:
        """Runs one shard into a folder; continues what the folder holds of it.

        Args:
            shard: which one. folder: of its run. check: whether the codecs are checked.
        """
        self._told = Told()
        running = replace(self._place.running, check=check, progress=self._tell)
        try:
            asked, workers = self._asked_for(), self._with_workers(Path(folder))
            end = monotonic() + LOCKED_S
            while True:
                try:
                    with closing(execute_shard(asked, shard, Path(folder), running, workers)) as run:
                        counts = run.counts()
                    return Ended(Told(counts["finished"], counts["failed_items"], self._told.audio_s))
                except RunLocked:
                    if monotonic() >= end:
                        raise
                    sleep(0.5)
        except UserError as error:
            return Ended(self._told, error)

    def _asked_for(self) -> Evaluation:
        if self._asked is None:
            self._asked = self._place.prepare()
        return self._asked

    def _with_workers(self, folder: Path) -> Workers:
        """The workers, which are started for the first shard. What they say is kept beside the parts."""
        if self._workers is None:
            log = folder.parent.parent / "ray" / f"{socket.gethostname()}-{os.getpid()}"
            started = started_workers(self._place.running, log, self._place.cores)
            self._workers = self._open.enter_context(started)
        return self._workers

    def _tell(self, stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        self._told = Told(done, failed, audio_s)
