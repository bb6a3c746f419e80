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
class ShardProgress:
    """How far the shard that an actor runs is: items that are finished, items that failed, seconds of audio."""

    done: int = 0
    failed: int = 0
    audio_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a shard ended.

    Args:
        progress: what is in its record. error: what was wrong, if it could not be finished.
    """

    progress: ShardProgress
    error: UserError | None = None


@dataclass(frozen=True, slots=True)
class NodeContext:
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

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._progress = ShardProgress()
        self._prepared: Evaluation | None = None
        self._workers: Workers | None = None
        self._open = ExitStack()

    def begin(self) -> UserError | None:
        """Goes to the driver's folder; the reason why this node cannot take part, or None."""
        node = self._node
        path, content = node.token
        try:
            os.chdir(node.folder)
            if Path(path).read_text() == content:
                return None
            why = "holds something else"
        except OSError as error:
            why = error.strerror or str(error)
        return UserError(
            f"the node {socket.gethostname()} does not see the run folder: '{path}' {why}",
            hint="give an --out on a file system that all nodes of the Ray cluster share",
        )

    def progress(self) -> ShardProgress:
        """How far the shard is that is being run. It may be asked for meanwhile."""
        return self._progress

    def run(self, shard: Shard, folder: str, check: bool) -> Ended:
        """Runs one shard into a folder; continues what the folder holds of it.

        Args:
            shard: which one. folder: of its run. check: whether the codecs are checked.
        """
        self._progress = ShardProgress()
        running = replace(self._node.running, check=check, progress=self._update)
        try:
            evaluation, workers = self._evaluation(), self._with_workers(Path(folder))
            end = monotonic() + LOCKED_S
            while True:
                try:
                    with closing(execute_shard(evaluation, shard, Path(folder), running, workers)) as run:
                        counts = run.counts()
                    return Ended(ShardProgress(counts["finished"], counts["failed_items"], self._progress.audio_s))
                except RunLocked:
                    if monotonic() >= end:
                        raise
                    sleep(0.5)
        except UserError as error:
            return Ended(self._progress, error)

    def _evaluation(self) -> Evaluation:
        if self._prepared is None:
            self._prepared = self._node.prepare()
        return self._prepared

    def _with_workers(self, folder: Path) -> Workers:
        """The workers, which are started for the first shard. What they say is kept beside the parts."""
        if self._workers is None:
            log = folder.parent.parent / "ray" / f"{socket.gethostname()}-{os.getpid()}"
            started = started_workers(self._node.running, log, self._node.cores)
            self._workers = self._open.enter_context(started)
        return self._workers

    def _update(self, stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        self._progress = ShardProgress(done, failed, audio_s)
