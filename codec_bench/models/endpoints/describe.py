"""Facts of a service and a model that distinguish two checkpoints under one name.

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

VENDORS = (
    "api.openai.com", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "api.elevenlabs.io", "api.minimax.io",
    "generativelanguage.googleapis.com", "ark.cn-beijing.volces.com", ".maas.aliyuncs.com",
)  # fmt: skip
"""Hosts that serve only their own models; a leading dot matches any subdomain."""
_OF_MODEL = ("id", "root", "parent", "max_model_len", "version", "model_path", "weight_version", "shutdown_date")
_OF_VENDOR = (*_OF_MODEL, "created")
_DATED = re.compile(r"(?<!\d)(20\d{2}-\d{2}-\d{2}|20\d{6}|\d{2}-20\d{2}|00\d)$")


def is_vendor(url: str) -> bool:
    """Whether a URL is that of a service that serves its own models."""
    host = host_of(url)
    return host in VENDORS or host.endswith(tuple(name for name in VENDORS if name.startswith(".")))


def is_dated(model: str) -> bool:
    """Whether a vendor's model name is dated: `gpt-realtime-2025-08-28`, `...-001`."""
    return _DATED.search(model) is not None


async def describe(client: Client, model: str, *, vendor: bool) -> dict[str, Any]:
    """Return what a service states about a model (`model`) and its server (`server`).

    A name without other facts, as from a proxy, becomes the `alias` in `server`. Facts that differ between two calls
    are dropped. Every address is tried once, for a few seconds.

    Args:
        client: a started client.
        vendor: whether the service serves its own models.
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
    # A proxy lists its own name for the model.
    alias = {"alias": model} if set(facts) == {"id"} else {}
    return _drop_empty(model=facts, server=_facts(version, ("version",)) | alias)


def _drop_empty(**parts: dict[str, Any]) -> dict[str, Any]:
    return {name: facts for name, facts in parts.items() if facts}


def _entry(body: Any, model: str) -> Any:
    entries = body.get("data") if isinstance(body, Mapping) else None
    listed = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return next((entry for entry in listed if entry.get("id") == model), listed[0] if len(listed) == 1 else None)


def _facts(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(body, Mapping):
        return {}
    facts = {name: body[name] for name in names if isinstance(body.get(name), (str, int))}
    return {name: clean(value) if isinstance(value, str) else value for name, value in facts.items()}


def _root(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", "")).rstrip("/")
