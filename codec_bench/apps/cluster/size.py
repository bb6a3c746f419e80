"""How many actors suit a Ray cluster, and what each asks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codec_bench.codecs import runs_on_device
from codec_bench.engine.executor import OnRay
from codec_bench.engine.plan import Plan
from codec_bench.engine.running import Running
from codec_bench.errors import UserError

# How many CPUs an actor without a GPU has, if nobody said so and the nodes have as many.
CPUS_PER_ACTOR = 4


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of actor.

    Args:
        gpus, cpus: what each asks of the cluster. count: how many there should be.
    """

    gpus: int
    cpus: int
    count: int


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """How many actors of which kind suit the cluster as it is now."""

    kinds: tuple[Kind, ...]

    @property
    def actors(self) -> int:
        """How many actors of all kinds."""
        return sum(kind.count for kind in self.kinds)

    @classmethod
    def of(cls, ray: Any, plan: Plan, running: Running, cluster: OnRay) -> ClusterSize:
        """Looks at the nodes that are alive.

        Raises:
            UserError: GPUs were asked for, and the cluster has none.
        """
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cpus = [int(node.get("CPU", 0)) for node in nodes]
        with_gpu = [(int(node["GPU"]), int(node.get("CPU", 0))) for node in nodes if node.get("GPU", 0) >= 1]
        least = min((count for count in cpus if count), default=1)
        each = cluster.cpus or min(CPUS_PER_ACTOR, least)
        fit = sum(count // each for count in cpus)
        if not with_gpu and running.device not in ("auto", "cpu"):
            raise UserError(
                f"the device is '{running.device}', and no node of the Ray cluster has a GPU",
                hint="give --device auto or cpu",
            )
        if with_gpu and running.device != "cpu" and _uses_device(plan):
            share = min(count // gpus for gpus, count in with_gpu)
            main = Kind(1, share, cluster.actors or sum(gpus for gpus, _ in with_gpu))
            return cls((main, *([Kind(0, each, cluster.cpu_actors)] if cluster.cpu_actors else [])))
        return cls((Kind(0, each, cluster.actors or fit),))


def _uses_device(plan: Plan) -> bool:
    """Whether a network runs that a GPU would make faster."""
    codecs = [system.codec for system in plan.systems if system.codec is not None]
    return any(one.where == "device" for one in plan.features.values()) or any(map(runs_on_device, codecs))
