"""The session of aiohttp that a client keeps, and the bodies that it sends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    import ssl

    import aiohttp

CONNECT_S = 15.0
MAX_HEADER = 64 << 10


def open_session(url: str, headers: Mapping[str, str], timeout_s: float) -> aiohttp.ClientSession:
    """A session with a service. Nothing is sent yet.

    Args:
        url: of the service. headers: sent with every request. timeout_s: how long it may be silent within a reply.
    """
    import aiohttp

    certificates = _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=timeout_s),
        connector=aiohttp.TCPConnector(limit=0, ssl=certificates, keepalive_timeout=30.0),  # the gate limits them
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
        proxy=_proxy_to(url),  # aiohttp would look for it in a thread at every request
    )


@contextmanager
def sent_by(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The body of one attempt as aiohttp takes it. Files are opened anew for each, because aiohttp closes what it has sent."""
    import aiohttp

    sent = {name: body[name] for name in ("json", "headers") if name in body}
    with ExitStack() as opened:
        if "content" in body:
            sent["data"] = body["content"]
        elif "files" in body:
            form = sent["data"] = aiohttp.FormData()
            for name, value in body.get("data", {}).items():
                form.add_field(name, value)
            for name, (called, content, kind) in body["files"].items():
                data = opened.enter_context(content.open("rb")) if isinstance(content, Path) else content
                form.add_field(name, data, filename=called, content_type=kind)
        yield sent


def _proxy_to(url: str) -> str | None:
    """The proxy that the environment names for a URL (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`); None without one."""
    parts = urlsplit(url)
    if proxy_bypass(parts.netloc):
        return None
    named = getproxies()
    return named.get(parts.scheme) or named.get("all")


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """What connections are checked with, made once for what these variables say: it reads every certificate of the system."""
    import ssl

    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


__all__ = ["CONNECT_S", "open_session", "sent_by"]
