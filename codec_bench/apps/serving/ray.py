"""The warm scorer as a Ray Serve application with one replica a GPU.

    serve run codec_bench.apps.serving.ray:deployment metrics=stoi,sim[ge2e] reward=reward.yaml

Each replica runs the service on a loopback address and forwards requests, so answers are the same. References are in a
separate actor, since a later request may reach another replica.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

import ray
from aiohttp import ClientSession, ClientTimeout
from pydantic import BaseModel, ConfigDict
from ray import serve
from starlette.requests import Request
from starlette.responses import StreamingResponse
from yarl import URL

from codec_bench.apps.serving.items import Item, Result
from codec_bench.apps.serving.rewards import read_reward
from codec_bench.apps.serving.scorer import (
    MAX_WAIT_MS,
    MOST_REFERENCES,
    QUEUE,
    Scorer,
    check_reference,
    fits_references,
    too_many_references,
    unknown_reference,
)
from codec_bench.apps.serving.server import Service, run_service
from codec_bench.config import fit, load_mapping
from codec_bench.messages.errors import UserError

HOP_HEADERS = {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
"""Headers of one connection, which are not forwarded."""


class Arguments(BaseModel):
    """The options of the service.

    Args:
        metrics, reward, max_wait_ms, queue, time_limit_s: as of the command; `queue` is of each replica.
        token_env: the environment variable of the nodes with the token that requests need.
        replicas: how many; None for one a GPU, or one where there is none.
        cpus: of each.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metrics: str
    reward: str | Mapping[str, Any] | None = None
    token_env: str | None = None
    max_wait_ms: float = MAX_WAIT_MS
    queue: int = QUEUE
    time_limit_s: float = 300.0
    replicas: int | None = None
    cpus: int = 1


def deployment(options: Arguments | dict[str, Any]) -> serve.Application:
    """Build the Ray Serve application; by default it has a replica for each GPU.

    Args:
        options: of the service, as `Arguments` or as the texts of a command line.

    Raises:
        UserError: an option is unknown, missing or of another kind.
    """
    arguments = options if isinstance(options, Arguments) else fit(options, Arguments, source="the deployment")
    if isinstance(arguments.reward, str) and Path(arguments.reward).is_file():  # here, and not on the nodes
        arguments = arguments.model_copy(update={"reward": load_mapping(Path(arguments.reward))})
    if not ray.is_initialized():
        ray.init()
    gpus = int(ray.cluster_resources().get("GPU", 0))
    replicas = serve.deployment(
        name="scorer", num_replicas=arguments.replicas or max(1, gpus), max_ongoing_requests=2 * arguments.queue,
        ray_actor_options={"num_gpus": 1 if gpus else 0, "num_cpus": arguments.cpus},
    )(Replica)  # fmt: skip
    references = serve.deployment(name="references", ray_actor_options={"num_cpus": 0})(References)
    return replicas.bind(arguments, references.bind())


class References:
    """The references of all replicas."""

    def __init__(self) -> None:
        self._references: dict[str, tuple[bytes, bytes]] = {}

    async def put(self, id: str, data: bytes) -> bool:
        """Store a reference, replacing one of this id; False if there is no room."""
        if not fits_references({name: known for name, (_, known) in self._references.items()}, id, data):
            return False
        self._references[id] = blake2b(data, digest_size=16).digest(), data
        return True

    async def drop(self, id: str) -> bool:
        """Delete a reference; returns whether there was one."""
        return self._references.pop(id, None) is not None

    async def get(self, id: str, digest: bytes | None) -> tuple[bytes, bytes | None] | None:
        """Return a reference's digest, and its bytes unless the caller has them; or None."""
        known, data = self._references.get(id, (None, None))
        return None if known is None else (known, None if known == digest else data)


@dataclass(slots=True)
class ClusterService(Service):
    """The service of a replica; `shared` is the handle of the common `References`."""

    shared: Any = None
    fetched: OrderedDict[str, tuple[bytes, bytes]] = field(default_factory=OrderedDict)

    async def _keep_reference(self, id: str, data: bytes) -> None:
        data = await asyncio.get_running_loop().run_in_executor(None, check_reference, id, data)
        if not await self.shared.put.remote(id, data):
            raise too_many_references()

    async def _drop_reference(self, id: str) -> bool:
        return bool(await self.shared.drop.remote(id))

    async def _result(self, item: Item, *, wait: bool = False) -> Result:
        if item.reference is None and item.reference_id is not None:
            item = replace(item, reference=await self._fetch(item.reference_id), reference_id=None)
        return await Service._result(self, item, wait=wait)

    async def _fetch(self, id: str) -> bytes:
        """Return the bytes of a stored reference; only changed ones are transferred.

        Raises:
            BadItem: none is stored under this id.
        """
        digest, data = self.fetched.pop(id, (None, b""))
        entry = await self.shared.get.remote(id, digest)
        if entry is None:
            raise unknown_reference(id)
        self.fetched[id] = entry[0], data if entry[1] is None else entry[1]
        if len(self.fetched) > MOST_REFERENCES:
            self.fetched.popitem(last=False)
        return self.fetched[id][1]


class Replica:
    """One replica: a scorer and its service; `references` is a handle."""

    def __init__(self, arguments: Arguments, references: Any) -> None:
        token = os.environ.get(arguments.token_env, "") if arguments.token_env else None
        if token == "":
            raise UserError("token_variable_empty_on_node", variable=arguments.token_env)
        self._scorer = Scorer(
            arguments.metrics, device="auto" if os.environ.get("CUDA_VISIBLE_DEVICES") else "cpu",
            workers=arguments.cpus,
            max_wait_ms=arguments.max_wait_ms, queue=arguments.queue, time_limit_s=arguments.time_limit_s,
        )  # fmt: skip
        better = self._scorer.higher_is_better
        reward = None if arguments.reward is None else read_reward(arguments.reward, better)
        self._service = ClusterService(self._scorer, reward, token, arguments.time_limit_s, shared=references)
        self._scorer.warm_up()
        self._address: asyncio.Future[str] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, request: Request) -> StreamingResponse:
        """Forward a request to the service of this replica."""
        if self._address is None:
            self._address = asyncio.get_running_loop().create_future()
            self._session = ClientSession(auto_decompress=False, timeout=ClientTimeout(total=None))
            ready, stop = self._address.set_result, self._stop.wait()
            self._running = asyncio.create_task(run_service(self._service, "127.0.0.1", 0, on_ready=ready, stop=stop))
        address = await asyncio.shield(self._address)
        path = quote(request.scope["path"].removeprefix(request.scope.get("root_path", "")))
        headers = [(name, value) for name, value in request.headers.items() if name not in HOP_HEADERS]
        body = request.stream() if request.method in ("POST", "PUT") else None
        url = URL(address + path, encoded=True)
        reply = await self._session.request(request.method, url, headers=headers, data=body, allow_redirects=False)

        async def parts() -> AsyncIterator[bytes]:
            async with reply:
                async for chunk in reply.content.iter_any():
                    yield chunk

        forwarded = {name: value for name, value in reply.headers.items() if name.lower() not in HOP_HEADERS}
        return StreamingResponse(parts(), reply.status, forwarded)

    def check_health(self) -> None:
        """Fail with RuntimeError for an ended scorer; Ray starts another."""
        if not self._scorer.is_running:
            raise RuntimeError("the scorer has ended")

    async def close(self) -> None:
        """Finish waiting items, and end the service and its workers."""
        self._stop.set()
        if self._address is not None:
            await self._running
            await self._session.close()
        await asyncio.get_running_loop().run_in_executor(None, self._scorer.close)

    def __del__(self) -> None:
        if hasattr(self, "_scorer"):
            self._scorer.close()
