"""Where a run is carried out: on this machine, or on a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass

from codec_bench.config.option import documented
from codec_bench.config.request import EvalRequest
from codec_bench.data.shard import MOST_SHARDS
from codec_bench.messages.errors import UserError

LOCAL, RAY = "local", "ray"


@documented(EvalRequest, "cluster")
@dataclass(frozen=True, slots=True)
class OnRay:
    """The machines of a Ray cluster, which take shards of the data when free.

    Args:

    Raises:
        UserError: a number is too small or too large, or the address is that of Ray's client.
    """

    address: str | None = None
    shards: int | None = None
    actors: int | None = None
    cpus: int | None = None
    cpu_actors: int = 0

    def __post_init__(self) -> None:
        limits = (("shards", 1, MOST_SHARDS), ("actors", 1, None), ("cpus", 1, None), ("cpu_actors", 0, None))
        for name, least, most in limits:
            value = getattr(self, name)
            if value is not None and (value < least or (most is not None and value > most)):
                raise UserError("option_out_of_range", option=name, value=value, least=least, most=most)
        if self.address is not None and self.address.startswith("ray://"):
            raise UserError(
                "ray_client_address",
                address=self.address,
                hint="start the command on a machine of the cluster, with --ray-address HOST:6379",
            )


def read_executor(executor: str | OnRay) -> OnRay | None:
    """The Ray cluster of an executor, None for this machine, or a UserError."""
    if isinstance(executor, OnRay):
        return executor
    if executor not in (LOCAL, RAY):
        raise UserError("option_choice", option="executor", value=executor, known=[LOCAL, RAY])
    return OnRay() if executor == RAY else None
