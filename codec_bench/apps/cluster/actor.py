"""An actor of a Ray cluster: runs shards in worker processes; imports no Ray."""

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
from codec_bench.engine.running import Running, Workers, start_workers
from codec_bench.errors import RunLocked, UserError

LOCKED_S = 10.0
"""Wait for a folder that another process, such as a lost actor, still holds."""


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """Progress of an actor's shard: finished items, failed ones, seconds of audio."""

    done: int = 0
    failed: int = 0
    audio_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a shard: its recorded progress, and the error if unfinished."""

    progress: ShardProgress
    error: UserError | None = None


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What every actor of a run needs.

    Args:
        folder: the driver's, on a shared file system. token: a file in it, and its content.
        prepare: opens the data. cores: limit of an actor.
    """

    folder: str
    token: tuple[str, str]
    prepare: Callable[[], Evaluation]
    running: Running
    cores: int


class ShardActor:
    """Runs shards; data and models are loaded on the actor's node."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._progress = ShardProgress()
        self._prepared: Evaluation | None = None
        self._workers: Workers | None = None
        self._open = ExitStack()

    def begin(self) -> UserError | None:
        """Enter the driver's folder; returns why this node cannot take part, or None."""
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
        """Return the progress of the running shard, concurrently."""
        return self._progress

    def run(self, shard: Shard, folder: str, check: bool) -> Ended:
        """Run or continue one shard in a folder; `check` tests the codecs."""
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
        """Return the workers, started for the first shard; their log is next to the parts."""
        if self._workers is None:
            log = folder.parent.parent / "ray" / f"{socket.gethostname()}-{os.getpid()}"
            started = start_workers(self._node.running, log, self._node.cores)
            self._workers = self._open.enter_context(started)
        return self._workers

    def _update(self, stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        self._progress = ShardProgress(done, failed, audio_s)
