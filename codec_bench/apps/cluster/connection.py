"""The driver's connection to a Ray cluster, its errors, and its actors."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from codec_bench.codecs import runs_on_device
from codec_bench.data.shard import Shard
from codec_bench.engine.evaluation import Evaluation, execute_shard
from codec_bench.engine.executor import OnRay
from codec_bench.engine.plan import Plan
from codec_bench.engine.running import Running, Workers, start_workers
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, RunLocked, UserError

ANSWERS_S = 5.0
"""Time limit of the head node's reply."""
LOCKED_S = 10.0
"""Wait for a folder that another process, such as a lost actor, still holds."""


def check_reachable(address: str | None) -> None:
    """Raise UserError if Ray is not installed, or no cluster answers."""
    if find_spec("ray") is None:
        raise MissingExtra("ray_executor", "ray", "ray")
    address = address or os.environ.get("RAY_ADDRESS")
    if not address or address in ("auto", "local"):
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not host:
        raise UserError("ray_address_form", address=address)
    try:  # Ray itself would try for a minute
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWERS_S).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            "ray_unreachable",
            address=address,
            cause=getattr(error, "strerror", None) or error,
            hint="--ray-address names the head node, as HOST:6379; ray status shows whether it runs",
        ) from error


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect Ray to a cluster for the block; an existing connection stays.

    Args:
        address: as `OnRay` takes it.

    Raises:
        UserError: no cluster answers there.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        yield ray
        return
    # Ray alone would join any cluster on this machine.
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    try:
        ray.init(
            address=address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            include_dashboard=False if address == "local" else None,
        )
    except Exception as error:  # Ray raises errors of many kinds
        cause = first_line(error)
        local, other = (
            Diagnostic("ray_not_started", cause=cause),
            Diagnostic("ray_unreachable", address=address, cause=cause),
        )
        raise UserError(
            local if address == "local" else other, hint="ray status shows whether a cluster runs"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def head_answers(ray: Any) -> bool:
    """Whether the head node is reachable; Ray's own calls would block."""
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWERS_S).close()
    except OSError:
        return False
    return True


def first_line(error: BaseException) -> str:
    """Return the first line of a Ray error."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


CPUS_PER_ACTOR = 4
"""Default CPUs of an actor without a GPU, if the nodes have as many."""


@dataclass(frozen=True, slots=True)
class ConnectionKind:
    """A kind of actor: requested GPUs and CPUs, and their number."""

    gpus: int
    cpus: int
    count: int


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """The suitable numbers of actors by kind for the present cluster."""

    kinds: tuple[ConnectionKind, ...]

    @property
    def actors(self) -> int:
        """The number of actors of all kinds."""
        return sum(kind.count for kind in self.kinds)

    @classmethod
    def of(cls, ray: Any, plan: Plan, running: Running, cluster: OnRay) -> ClusterSize:
        """Choose kinds and numbers of actors that the living nodes have room for.

        Raises:
            UserError: a GPU is requested, and no node has one.
        """
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cpus = [int(node.get("CPU", 0)) for node in nodes]
        with_gpu = [(int(node["GPU"]), int(node.get("CPU", 0))) for node in nodes if node.get("GPU", 0) >= 1]
        if not nodes:
            return cls(())
        least = min((count for count in cpus if count), default=1)
        each = cluster.cpus or min(CPUS_PER_ACTOR, least)
        fit = sum(count // each for count in cpus)
        if not with_gpu and running.device not in ("auto", "cpu"):
            raise UserError("no_gpu_in_cluster", device=running.device, hint="give --device auto or cpu")
        if with_gpu and running.device != "cpu" and _uses_device(plan):
            share = min(count // gpus for gpus, count in with_gpu)
            main = ConnectionKind(1, share, cluster.actors or sum(gpus for gpus, _ in with_gpu))
            return cls((main, *([ConnectionKind(0, each, cluster.cpu_actors)] if cluster.cpu_actors else [])))
        return cls((ConnectionKind(0, each, cluster.actors or fit),))


def _uses_device(plan: Plan) -> bool:
    codecs = [system.codec for system in plan.systems if system.codec is not None]
    return any(one.where == "device" for one in plan.features.values()) or any(map(runs_on_device, codecs))


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
    """Settings that the driver sends to every actor of a run.

    Args:
        folder: the driver's, on a shared file system.
        token: a file in it, and its content.
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
        """Enter the driver's folder, and check that this node sees the run folder.

        Returns:
            Why it cannot take part; None if it can.
        """
        node = self._node
        path, content = node.token
        try:
            os.chdir(node.folder)
            if Path(path).read_text() == content:
                return None
            cause: Diagnostic | str = Diagnostic("token_differs")
        except OSError as error:
            cause = error.strerror or str(error)
        return UserError(
            "run_folder_not_shared",
            node=socket.gethostname(),
            path=path,
            cause=cause,
            hint="give an --out on a file system that all nodes of the Ray cluster share",
        )

    def progress(self) -> ShardProgress:
        """Return the progress of the running shard, concurrently."""
        return self._progress

    def run(self, shard: Shard, folder: str, check: bool) -> Ended:
        """Run or continue one shard in a folder; an error is part of the result.

        Args:
            check: whether to test the codecs first.
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
        """Return the workers, started for the first shard; their log is next to the parts."""
        if self._workers is None:
            log = folder.parent.parent / "ray" / f"{socket.gethostname()}-{os.getpid()}"
            started = start_workers(self._node.running, log, self._node.cores)
            self._workers = self._open.enter_context(started)
        return self._workers

    def _update(self, stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        self._progress = ShardProgress(done, failed, audio_s)
