"""A run on a Ray cluster: actors run shards, and the driver merges them.

Each actor has a GPU, or some CPUs, and workers that load models once. It runs small shards into folders, as `--shard`
does. Only names go through Ray's object store; nodes share the run folder. Lost actors are replaced, and their shards
continue where the record ends. Actors follow the cluster's size, and end with the driver or without work. Without any
suitable node the driver waits, then ends; the same command continues.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np

from codec_bench.apps.cluster.connection import (
    ClusterSize,
    ConnectionKind,
    Ended,
    NodeContext,
    ShardActor,
    ShardProgress,
    check_reachable,
    connected,
    first_line,
    head_answers,
)
from codec_bench.apps.cluster.parts import PartFolders
from codec_bench.apps.cluster.queue import ShardQueue
from codec_bench.data.shard import MOST_SHARDS, Shard
from codec_bench.engine.evaluation import Evaluation, open_folders, plan_evaluation
from codec_bench.engine.executor import OnRay
from codec_bench.engine.plan import Plan
from codec_bench.engine.running import Running, report_nothing
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import RunLocked, UserError, on_disk
from codec_bench.store.folders import RunFolder
from codec_bench.store.integrity import DATABASE
from codec_bench.store.merge import merge_records
from codec_bench.store.parts import items_now
from codec_bench.store.record import Run

SAMPLES_PER_SHARD = 1000
SHARDS_PER_ACTOR = 8
"""Least shards per actor (of `LEAST_SAMPLES`), so that all end at about the same time."""
LEAST_SAMPLES = 50
LOOK_S = 2.0
"""How often the driver checks the cluster."""
REPORT_S = 1.0
IDLE_S = 60.0
"""How long an idle actor stays; it may take a piece of a slow shard."""
NO_NODE_S = 120.0
"""How long the driver waits for a suitable node."""
NO_HEAD_S = 30.0
"""How long it waits for the head node; Ray ends the process after 60 s without a reason."""
NOT_STARTED = 8
"""Limit of consecutive actors that end before they begin."""


def execute_on_ray(
    evaluation: Evaluation, prepare: Callable[[], Evaluation], out: str | os.PathLike[str] | None, running: Running,
    cluster: OnRay
) -> Run:  # fmt: skip
    """Run systems over data on a Ray cluster; the record equals that of `execute`.

    Args:
        prepare: recreates `evaluation` on every node; it is sent to the actors.
        out: the run folder, on a file system that all nodes share, as for `execute`.

    Raises:
        UserError: Ray is not installed or does not answer, a node does not see the folder, or as for `execute`.
    """
    if evaluation.source.shard is not None:
        raise UserError("shard_with_ray", hint="leave --shard out")
    check_reachable(cluster.address)
    plan = plan_evaluation(evaluation, running)
    for attempt in open_folders(evaluation, plan, out, running):
        with attempt as folder:
            return _execute_in(folder, plan, evaluation, prepare, running, cluster)
    raise AssertionError("the last folder is new")


def _execute_in(
    folder: RunFolder, plan: Plan, evaluation: Evaluation, prepare: Callable[[], Evaluation], running: Running,
    cluster: OnRay
) -> Run:  # fmt: skip
    """Run the unfinished shards on the cluster, and merge all into the run folder.

    Args:
        prepare: recreates `evaluation` on every node.
    """
    for system in plan.systems:
        if system.live is not None:
            raise UserError("codec_is_object", codec=system.name, hint="give its name, such as ./mine.py:MyCodec")
    running.on_folder(folder.path, folder.words)
    with connected(cluster.address) as ray:
        size = ClusterSize.of(ray, plan, running, cluster)
        running = replace(running, as_on_gpu=any(kind.gpus for kind in size.kinds))
        folders = PartFolders(folder.path, cluster.shards, _shards(len(evaluation.source), size.actors))
        places = evaluation.source.places
        numbers, counts = np.unique(places % np.uint64(folders.of), return_counts=True)
        # Largest first, so that all actors end together.
        largest = {Shard(int(numbers[k]) + 1, folders.of): int(counts[k]) for k in np.argsort(-counts, kind="stable")}
        shards = list(largest)
        finished = set(() if running.retry_failed else folders.known(shards))
        sizes = lambda shard: len(shard.among(places))  # noqa: E731
        queue = ShardQueue((shard for shard in shards if shard not in finished), sizes)
        before = sum(largest[shard] for shard in finished) * len(plan.systems)
        token = _token(folder.path)
        node = NodeContext(os.getcwd(), token, prepare, running, 0)
        count = _Count(before, len(evaluation.source) * len(plan.systems))
        driver = _Driver(ray, queue, folders, node, plan, shards[0].number, running, cluster, count)
        try:
            driver.run()
        finally:
            driver.close()
            with suppress(OSError):
                os.unlink(token[0])
    running.progress("merging the shards", driver.count.total, driver.count.total, driver.count.failed, 0.0)
    merge_records(folders.finished, folder.path, anew=True, lock=folder.lock)
    return Run(folder.path)


def _shards(samples: int, actors: int) -> int:
    """Number of shards for a number of samples and of actors."""
    count = max(-(-samples // SAMPLES_PER_SHARD), min(SHARDS_PER_ACTOR * actors, samples // LEAST_SAMPLES))
    return max(1, min(count, MOST_SHARDS))


def _token(folder: Path) -> tuple[str, str]:
    """Write a file that actors must find, to prove that they see the run folder.

    Returns:
        Its path and its content.
    """
    path, content = folder.resolve() / "ray.token", secrets.token_hex(16)
    with on_disk("file_not_writable", path=path):
        path.write_text(content)
    return str(path), content


@dataclass(slots=True)
class _Count:
    """Finished items, their total, and failures."""

    done: int
    total: int
    failed: int = 0
    audio_s: float = 0.0


@dataclass(slots=True, eq=False)
class _Actor:
    """An actor with its shard; `answer` is awaited, `pending` a requested progress."""

    handle: Any
    kind: int
    answer: Any
    shard: Shard | None = None
    folder: Path | None = None
    ready: bool = False
    pending: Any = None
    progress: ShardProgress = field(default_factory=ShardProgress)
    updated_at: float = 0.0
    free_since: float = 0.0


def _count_finished(actor: _Actor) -> int:
    """Number of finished items of an actor's shard, from its record if there is one."""
    if actor.folder is not None and (actor.folder / DATABASE).is_file():
        with suppress(UserError, sqlite3.Error):
            return items_now(actor.folder)[1]
    return actor.progress.done


class _Driver:
    """Assigns shards to actors until all shards are finished."""

    def __init__(
        self, ray: Any, queue: ShardQueue, folders: PartFolders, node: NodeContext, plan: Plan, first: int,
        running: Running,
        cluster: OnRay, count: _Count,
    ) -> None:  # fmt: skip
        self._ray, self._queue, self._folders, self._node = ray, queue, folders, node
        self._plan, self._first = plan, first
        self._running, self._cluster, self.count = running, cluster, count
        self._actors: list[_Actor] = []
        self._pieces: dict[Shard, Path] = {}
        self._fresh: set[Shard] = set()
        self._looked = -LOOK_S
        self._size = ClusterSize(())
        self._not_started = 0
        self._head = True
        self._head_seen = self._node_seen = monotonic()
        self._most = count.done
        self._remote = ray.remote(ShardActor)

    def run(self) -> None:
        """Run until no shard is left; raises UserError if a shard or node cannot continue."""
        while self._queue.open_count:
            self._sync_actors()
            self._assign_shards()
            waiting = [ref for actor in self._actors for ref in (actor.answer, actor.pending) if ref is not None]
            if waiting:
                ready, _ = self._ray.wait(waiting, num_returns=1, timeout=REPORT_S)
            else:
                ready = []
                sleep(REPORT_S)
            for ref in ready:
                self._handle_reply(ref)
            self._request_progress()
            self._report()

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors:
            self._end(actor)
        self._actors.clear()

    def _sync_actors(self) -> None:
        """Every `LOOK_S`, check the cluster and start the actors that it has room for."""
        if monotonic() - self._looked < LOOK_S:
            return
        self._looked = monotonic()
        self._head = head_answers(self._ray)
        self._size = ClusterSize(())
        if self._head:
            with suppress(UserError):  # the nodes with a GPU, which there were, are gone; others may come
                self._size = ClusterSize.of(self._ray, self._plan, self._running, self._cluster)
        self._check_nodes()
        have = Counter(actor.kind for actor in self._actors)
        most = self._queue.open_count
        for number, kind in enumerate(self._size.kinds):
            for _ in range(min(kind.count - have[number], most - len(self._actors))):
                self._start(number, kind)

    def _check_nodes(self) -> None:
        """Raise UserError without nodes for `NO_NODE_S`, or a head node for `NO_HEAD_S`."""
        if self._head:
            self._head_seen = monotonic()
        if self._size.actors:
            self._node_seen = monotonic()
        why = None
        if monotonic() - self._head_seen > NO_HEAD_S:
            why = Diagnostic("head_node_silent", limit_s=NO_HEAD_S)
        elif monotonic() - self._node_seen > NO_NODE_S:
            why = Diagnostic("no_cluster_node", limit_s=NO_NODE_S)
        if why is not None:
            raise UserError(
                "cluster_lost",
                cause=why,
                finished=self._most,
                items=self.count.total,
                folder=self._folders.out,
                hint="the same command goes on with the rest when the cluster is back; ray status shows its nodes",
            )

    def _start(self, number: int, kind: ConnectionKind) -> None:
        """Start an actor with the CPUs and GPUs of `kind`, the kind at position `number`."""
        device = "auto" if kind.gpus else "cpu"
        workers = self._running.workers or max(1, kind.cpus - kind.gpus)
        nobody: dict[str, Any] = {"progress": report_nothing, "on_folder": lambda folder, words: None}
        running = replace(self._running, device=device, workers=workers, executor="local", page=False, **nobody)
        node = NodeContext(self._node.folder, self._node.token, self._node.prepare, running, max(1, kind.cpus))
        options = {"num_cpus": kind.cpus, "num_gpus": kind.gpus, "max_concurrency": 2, "max_restarts": 0}
        handle = self._remote.options(**options).remote(node)
        self._actors.append(_Actor(handle, number, handle.begin.remote()))

    def _assign_shards(self) -> None:
        """Give shards to free actors, and end actors that were idle for `IDLE_S`."""
        free = [actor for actor in self._actors if actor.ready and actor.shard is None]
        for index, actor in enumerate(free):
            shard = self._queue.take(len(free) - index)
            if shard is None:
                break
            actor.shard, actor.progress = shard, ShardProgress()
            actor.folder = self._folders.next(shard, fresh=shard in self._fresh)
            self._fresh.discard(shard)
            check = self._running.check and shard.number == self._first
            actor.answer = actor.handle.run.remote(shard, str(actor.folder.resolve()), check)
        for actor in [one for one in free if one.shard is None and monotonic() - one.free_since > IDLE_S]:
            self._end(actor)
            self._actors.remove(actor)

    def _handle_reply(self, ref: Any) -> None:
        """Handle the result of an actor's call: ready, progress, a finished shard, death."""
        actor = next((one for one in self._actors if ref in (one.answer, one.pending)), None)
        if actor is None:
            return
        errors = self._ray.exceptions
        try:
            result = self._ray.get(ref)
        except errors.RayTaskError:
            raise  # a defect of this program
        except errors.RayError as error:
            self._retry(actor, error)
            return
        if ref == actor.pending:
            actor.pending, actor.progress = None, result
        elif actor.shard is None:
            if isinstance(result, UserError):
                raise result
            actor.answer, actor.ready, actor.free_since, self._not_started = None, True, monotonic(), 0
        else:
            self._finish_shard(actor, result)

    def _finish_shard(self, actor: _Actor, ended: Ended) -> None:
        """Record a finished shard; join a split one, and end actors on needless pieces."""
        shard, folder = actor.shard, actor.folder
        assert shard is not None and folder is not None  # it was running one
        actor.answer = actor.shard = None
        actor.progress, actor.free_since = ShardProgress(), monotonic()
        if isinstance(ended.error, RunLocked):
            self._fresh.add(shard)
            self._queue.requeue(shard, ended.error.message, 0)
            return
        if ended.error is not None:
            raise ended.error
        if shard.of == self._folders.of:
            self._folders.finish(shard, folder)
            self._add(ended.progress)
        else:
            self._pieces[shard] = folder
        needless, parent, pieces = self._queue.finish(shard)
        for other in [one for one in self._actors if one.shard in needless]:
            self._end(other)
            self._actors.remove(other)
        if parent is not None:
            self._folders.join(parent, [self._pieces[shard_part] for shard_part in pieces])
            self._add(ended.progress)

    def _add(self, progress: ShardProgress) -> None:
        self.count.done += progress.done
        self.count.failed += progress.failed
        self.count.audio_s += progress.audio_s

    def _retry(self, actor: _Actor, error: Exception) -> None:
        """Remove a lost actor and requeue its shard; raises UserError after many losses."""
        self._actors.remove(actor)
        self._end(actor)  # if it only cannot be reached, it must not go on
        self._looked = -LOOK_S
        if actor.shard is not None:
            self._queue.requeue(actor.shard, first_line(error), _count_finished(actor))
        elif not actor.ready:
            self._not_started += 1
            if self._not_started >= NOT_STARTED:
                raise UserError(
                    "actors_not_started",
                    actors=NOT_STARTED,
                    cause=first_line(error),
                    hint="codec-bench must be installed on every node, in the environment that Ray was started from",
                ) from error

    def _end(self, actor: _Actor) -> None:
        if not self._head:  # the call would wait for it, and its actors end without it
            return
        with suppress(Exception):  # it may have ended, or the cluster with it
            self._ray.kill(actor.handle)

    def _request_progress(self) -> None:
        """Request the progress of each busy actor, at most once per `REPORT_S`."""
        now = monotonic()
        for actor in self._actors:
            if actor.shard is not None and actor.pending is None and now - actor.updated_at >= REPORT_S:
                actor.pending, actor.updated_at = actor.handle.progress.remote(), now

    def _report(self) -> None:
        """Report finished and failed items of all actors to the progress callback."""
        busy = [actor for actor in self._actors if actor.shard is not None]
        running = [actor.progress for actor in busy if actor.shard and actor.shard.of == self._folders.of]
        done, failed = (sum(getattr(progress, name) for progress in running) for name in ("done", "failed"))
        done = min(self.count.done + done, self.count.total)
        self._most = max(self._most, done)
        audio_s = self.count.audio_s + sum(progress.audio_s for progress in running)
        words = f"running on {len(busy)} actor{'' if len(busy) == 1 else 's'}"
        self._running.progress(words, done, self.count.total, self.count.failed + failed, audio_s)
