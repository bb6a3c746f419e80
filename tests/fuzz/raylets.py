"""A Ray cluster of several raylets on this machine, whose actors and raylets a test can kill."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 1200
"""How long a busy machine may take to whatever is waited for."""
STORE_BYTES = 80 << 20
"""The object store of each node, which is as small as Ray allows."""


def started(start):
    """What Ray starts. On a busy machine a node may take longer than Ray waits for it, which
    is 30 s and cannot be set.
    """
    for _ in range(9):
        with suppress(Exception):  # Ray raises no other class here
            return start()
    return start()


class Raylets:
    """A cluster whose head node has no CPU, and nodes with one CPU each."""

    def __init__(self, nodes: int, gpus: int = 0) -> None:
        from ray.cluster_utils import Cluster

        small = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
        self._node = {**small, "num_cpus": 1, "num_gpus": gpus}
        self.cluster = started(lambda: Cluster(initialize_head=True, head_node_args={**small, "num_cpus": 0}))
        self.nodes = []
        for _ in range(nodes):
            self.add()
        self.address = self.cluster.address

    def add(self) -> None:
        self.nodes.append(started(lambda: self.cluster.add_node(**self._node)))

    def kill_node(self, node) -> None:
        children = self._children([node])
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)
        end_all(children)

    def actors(self) -> list[int]:
        """The processes of actors."""
        return [pid for pid, name in self._children(self.nodes).items() if name.startswith(b"ray::ShardActor")]

    def kill_actor(self, choose) -> bool:
        """Kills an actor, or one of what it started; `choose` takes one of a list. Whether there was one."""
        actors = self.actors()
        if actors:
            with suppress(ProcessLookupError):
                os.kill(choose(actors), signal.SIGKILL)
        return bool(actors)

    def _children(self, nodes) -> dict[int, bytes]:
        """The processes that raylets of this test have started, with what they are called."""
        raylets = {info.process.pid for node in nodes for info in node.all_processes["raylet"]}
        by_name = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                name = (folder / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            if parent in raylets:
                by_name[int(folder.name)] = name
        return by_name

    def close(self) -> None:
        children = self._children(self.cluster.list_all_nodes())
        self.cluster.shutdown()  # ends the processes that it has started, and no other
        end_all(children)


def end_all(processes) -> None:
    """Ends what a raylet that was killed may leave."""
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


LIMITS = {
    "gcs_rpc_server_connect_timeout_s": PATIENCE_S, "gcs_rpc_server_reconnect_timeout_s": PATIENCE_S,
    "gcs_server_request_timeout_seconds": PATIENCE_S, "worker_register_timeout_seconds": PATIENCE_S,
    "agent_register_timeout_ms": 1000 * PATIENCE_S, "health_check_timeout_ms": 1000 * PATIENCE_S, "worker_niceness": 0,
}  # fmt: skip
"""Ray's own limits, which a busy machine passes; and actors wait for nobody else on it."""
