"""`codec-bench serve`."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.config.option import SEVERAL
from codec_bench.messages.errors import UserError
from codec_bench.terminal.options import Device, Set, Workers
from codec_bench.terminal.output import talk

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    metrics: Annotated[str, typer.Option("--metrics", help="Metrics with commas (see: list metrics)."), SEVERAL],
    reward: Annotated[str | None,
        typer.Option("--reward", help="A reward: a YAML file, or the name of a metric.")] = None,
    host: Annotated[str,
        typer.Option("--host", help="Address to listen on. Others than loopback need --token-env.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
    token_env: Annotated[str | None,
        typer.Option("--token-env", help="The environment variable with the token that requests need.")] = None,
    max_wait_ms: Annotated[float,
        typer.Option("--max-wait-ms", min=0.0,
            help="How long an item waits for others, so that a batch fills.")] = 10.0,
    queue: Annotated[int,
        typer.Option("--queue", min=1, help="Most items that wait; more are refused with 503.")] = 1024,
    time_limit_s: Annotated[float,
        typer.Option("--time-limit-s", min=1.0, help="Seconds until an item fails.")] = 300.0,
    record: Annotated[Path | None,
        typer.Option("--record", help="A run folder that takes every item that is scored.")] = None,
    settings: Set = None,
    device: Device = "auto",
    workers: Workers = None,
) -> None:  # fmt: skip
    """Score audio over HTTP, for training and services.

    Metrics stay loaded.
    """
    from codec_bench.api.read_arguments import group_options
    from codec_bench.apps.serving.rewards import is_reward_file, parse_reward, read_reward
    from codec_bench.apps.serving.scorer import Scorer
    from codec_bench.apps.serving.server import Service, check_port
    from codec_bench.terminal.request import parse_settings

    token = None
    if token_env is not None:
        token = os.environ.get(token_env)
        if not token:
            raise UserError("token_variable_empty", variable=token_env, hint=f"export {token_env}=...")
    if host not in LOOPBACK and token is None:
        raise UserError(
            "host_without_token", host=host, hint="name the environment variable that holds one with --token-env"
        )
    check_port(host, port)
    parsed = parse_reward(reward) if reward is not None and is_reward_file(reward) else reward
    talk(f"loading {metrics}")
    scorer = Scorer(
        metrics, device=device, workers=workers, options=group_options(parse_settings(settings or []), []),
        max_wait_ms=max_wait_ms, queue=queue, time_limit_s=time_limit_s, record=record,
    )  # fmt: skip
    with scorer:
        spec = None if parsed is None else read_reward(parsed, scorer.higher_is_better)
        scorer.warm_up()
        service = Service(scorer, spec, token, time_limit_s)
        asyncio.run(_serve(service, host, port))


async def _serve(service: object, host: str, port: int) -> None:
    """Run the service until SIGTERM or SIGINT."""
    from codec_bench.apps.serving.server import Service, run_service

    assert isinstance(service, Service)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    ended = asyncio.ensure_future(stop.wait())
    await run_service(service, host, port, on_ready=lambda url: talk(f"ready: {url}"), stop=ended)
    talk("stopped")
