"""What a service says of itself and of a model: the facts by which two checkpoints under one name can be distinguished.

Sources, read on 2026-11-22: vLLM's `/v1/models` (`id`, `root`, `max_model_len`; `created` is the time of the call) and
`/version`; SGLang's `/get_model_info` (`model_path`, `weight_version`); OpenAI's `/v1/models/{model}` (`created`,
`shutdown_date`); Gemini's `models.get` (`version`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.keys import clean, host_of

VENDORS = ("api.openai.com", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "api.elevenlabs.io",
           "generativelanguage.googleapis.com", "api.minimax.io", "ark.cn-beijing.volces.com", ".maas.aliyuncs.com")  # fmt: skip
"""Services that serve models of their own and not the ones that somebody put there; a dot stands for any host before
it.
"""
_OF_MODEL = ("id", "root", "parent", "max_model_len", "version", "model_path", "weight_version", "shutdown_date")
_OF_VENDOR = (*_OF_MODEL, "created")
_DATED = re.compile(r"(?<!\d)(20\d{2}-\d{2}-\d{2}|20\d{6}|\d{2}-20\d{2}|00\d)$")


def is_vendor(url: str) -> bool:
    """Whether an address is that of a service that serves models of its own."""
    host = host_of(url)
    return host in VENDORS or host.endswith(tuple(name for name in VENDORS if name.startswith(".")))


def is_dated(model: str) -> bool:
    """Whether the name of a model at a vendor says which state of it is meant: `gpt-realtime-2025-08-28`, `...-001`."""
    return _DATED.search(model) is not None


async def describe(client: Client, model: str, *, vendor: bool) -> dict[str, Any]:
    """The facts that a service states of a model, in `model`, and those of its program, in `server`; empty if none.

    Where a service has a name for a model and no other fact of it, as a proxy has, that name is the `alias` in
    `server`. What differs between two calls is no fact of the model. Every address is tried once, for a few seconds.

    Args:
        client: a started client. model: the name of the model there.
        vendor: whether the service is one that serves models of its own.
    """
    if vendor:
        one = await client.look(f"{client.base_url}/models/{model}")
        return _drop_empty(model=_facts(one, _OF_VENDOR))
    root = _root(client.base_url)
    first, second, info, version = await asyncio.gather(
        client.look(f"{client.base_url}/models"), client.look(f"{client.base_url}/models"),
        client.look(f"{root}/get_model_info"), client.look(f"{root}/version"),
    )  # fmt: skip
    before, after = (_facts(_entry(body, model), _OF_MODEL) for body in (first, second))
    same = {name: value for name, value in before.items() if after.get(name) == value}
    facts = same | _facts(info, _OF_MODEL)
    # A proxy lists a name of its own, and says nothing of the model behind it.
    alias = {"alias": model} if set(facts) == {"id"} else {}
    return _drop_empty(model=facts, server=_facts(version, ("version",)) | alias)


def _drop_empty(**parts: dict[str, Any]) -> dict[str, Any]:
    return {name: facts for name, facts in parts.items() if facts}


def _entry(body: Any, model: str) -> Any:
    """The entry of a model in a list of models; of the only one if its name is another."""
    entries = body.get("data") if isinstance(body, Mapping) else None
    listed = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return next((entry for entry in listed if entry.get("id") == model), listed[0] if len(listed) == 1 else None)


def _facts(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The plain values of these names, as they may be recorded."""
    if not isinstance(body, Mapping):
        return {}
    facts = {name: body[name] for name in names if isinstance(body.get(name), (str, int))}
    return {name: clean(value) if isinstance(value, str) else value for name, value in facts.items()}


def _root(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", "")).rstrip("/")
