"""The connection of the driver to a Ray cluster, and the sentences that say why there is none."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from codec_bench.errors import MissingExtra, UserError

ANSWERS_S = 5.0
"""How long the head node may take to answer."""


def check_there(address: str | None) -> None:
    """Raises UserError if Ray is not installed, or if nothing answers where its cluster should be."""
    if find_spec("ray") is None:
        raise MissingExtra("--executor ray", "ray", "ray")
    address = address or os.environ.get("RAY_ADDRESS")
    if address and address not in ("auto", "local"):
        _check_answers(address)


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster until the block ends. A program that is connected already stays so.

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
    _begin(ray, address or os.environ.get("RAY_ADDRESS") or None)
    try:
        yield ray
    finally:
        ray.shutdown()


def _begin(ray: Any, address: str | None) -> None:
    """Connects to a cluster, or starts one on this machine.

    Raises:
        UserError: none answers, or it cannot be started.
    """
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        try:
            if address == "local":
                raise ConnectionError
            ray.init(address=address or "auto", **quiet)
        except ConnectionError:
            if address not in (None, "local"):
                raise
            ray.init(address="local", include_dashboard=False, **quiet)
    except Exception as error:  # Ray raises errors of many kinds
        what = (
            "Ray cannot be started on this machine"
            if address in (None, "local")
            else f"the Ray cluster at '{address}' does not answer"
        )
        raise UserError(f"{what}: {first_line(error)}", hint="ray status shows whether a cluster runs") from error


def _check_answers(address: str) -> None:
    """Raises UserError if nothing answers at an address; Ray itself would try for a minute."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not host:
        raise UserError(f"the Ray address is '{address}'; expected HOST:PORT, such as 10.0.0.1:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWERS_S).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"the Ray cluster at '{address}' does not answer: {getattr(error, 'strerror', None) or error}",
            hint="--ray-address names the head node, as HOST:6379; ray status shows whether it runs",
        ) from error


def first_line(error: BaseException) -> str:
    """What an error of Ray says, without the lines that follow."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
