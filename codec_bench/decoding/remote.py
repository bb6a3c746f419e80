"""Bytes behind a URL, through fsspec: read whole or in part, tried again, and given up with a reason.

Conventions
    A URL is `PROTOCOL://...`, such as `s3://bucket/a.flac`, `https://host/a.flac` or `gs://bucket/a.flac`. Which
    protocols there are depends on the packages that are installed. Who may read is what fsspec takes from the
    environment, such as AWS_PROFILE or AWS_ACCESS_KEY_ID. A URL may hold a signature in its query. What is shown and
    recorded of a URL is without its query and without a user's name and password. What may pass is tried again: no
    answer, a server's error (5xx, 429), a connection that breaks off or stalls. What is missing, and what may not be
    read, is not.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from codec_bench.errors import AudioError, MissingExtra, UserError, describe

TRIES = 4
PAUSES_S = (0.5, 2.0, 5.0)
"""The seconds between the tries."""
STALL_S = 30.0
"""A connection that brings nothing for so long has stalled."""
EXTRA = "remote"
STORES = frozenset(("http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "hf", "memory"))
"""The protocols of stores.

Others that fsspec knows reach files of this machine, run commands, or end with a traceback.
"""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_WEB = ("http", "https")
_REFUSED = (401, 403)
_GONE = (404, 410)
_PASSES = (408, 425, 429)
_CHECKSUMS = ("ETag", "etag", "Content-MD5", "content_md5", "Digest", "md5Hash", "crc32c")
_Got = TypeVar("_Got")
_lock = threading.Lock()
_pause = time.sleep


class RemoteError(AudioError):
    """What is behind a URL cannot be read; the message names the URL."""


def is_url(path: str) -> bool:
    """Whether a text is a URL and not a path."""
    return _URL.match(path) is not None


def shown(path: str) -> str:
    """A path as it may be shown and recorded: of a URL, what is not secret."""
    if not is_url(path):
        return path
    protocol, rest = path.split("://", 1)
    if protocol.lower() not in _WEB:  # in the names of other stores, ? and # are letters like others
        host, slash, name = rest.partition("/")
        before, _, query = name.partition("?")
        return f"{protocol}://{host.rpartition('@')[2]}{slash}{before if '=' in query else name}"
    parts = urlsplit(path)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def filesystem(url: str) -> Any:
    """The fsspec file system of a URL.

    Raises:
        UserError: its package is not installed, there is no such protocol, or the URL holds a password.
    """
    import fsspec

    protocol = url.split("://", 1)[0]
    if "@" in url.split("://", 1)[1].partition("/")[0]:
        raise UserError(
            f"the URL '{shown(url)}' was given with a user's name or password, which would be recorded",
            hint="leave it out; fsspec takes credentials from the environment",
        )
    if protocol not in STORES and protocol in fsspec.available_protocols():
        raise UserError(
            f"'{shown(url)}' has the protocol '{protocol}', from which nothing is read",
            hint="s3, gs, http and https are known; fetch other files first and name them by their path",
        )
    try:
        fsspec.get_filesystem_class(protocol)
        options: dict[str, Any] = {"use_listings_cache": False}
        if protocol in _WEB:
            import aiohttp

            limit = aiohttp.ClientTimeout(total=None, sock_connect=STALL_S, sock_read=STALL_S)
            options["client_kwargs"] = {"timeout": limit}
        with _lock:  # fsspec starts a thread for the first one
            return fsspec.filesystem(protocol, **options)
    except ImportError as error:
        package = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs"}.get(protocol, error.name or "aiohttp")
        if package == "gcsfs":
            raise UserError(
                f"'{shown(url)}' needs the package 'gcsfs', which is not installed", hint="pip install gcsfs"
            ) from error
        raise MissingExtra(f"'{shown(url)}'", package, EXTRA) from error
    except ValueError as error:
        raise UserError(
            f"'{shown(url)}' has the protocol '{protocol}', which fsspec does not know",
            hint="s3, gs, http and https are known",
        ) from error


def read_remote(url: str, begin: int = 0, end: int | None = None) -> bytes:
    """The bytes behind a URL.

    Args:
        url: of a file. begin, end: which bytes; all up to its end if `end` is None.

    Raises:
        RemoteError: it is missing, may not be read, or could not be read in several tries.
        UserError: as `filesystem`.
    """
    is_complete = begin == 0 and end is None

    def read() -> bytes:
        system = filesystem(url)
        data: bytes = system.cat_file(url) if is_complete else system.cat_file(url, start=begin, end=end)
        if end is not None and len(data) != end - begin:
            if len(data) < end:
                raise OSError(f"{len(data)} bytes came; expected {end - begin}")
            data = data[begin:end]  # the server takes no ranges, and sent everything
        return data

    return tried(url, read)


def remote_state(url: str) -> str | None:
    """The checksums that a server states of a file, such as its `ETag`; None if it states none.

    Raises:
        RemoteError, UserError: as `read_remote`.
    """
    facts = tried(url, lambda: filesystem(url).info(url))
    checksums = [f"{name}={facts[name]}" for name in _CHECKSUMS if facts.get(name)]
    return f"{facts.get('size')} {' '.join(checksums)}" if checksums else None


def tried(url: str, act: Callable[[], _Got]) -> _Got:
    """What a call gives that reads from a URL. The call is made again if what went wrong may pass.

    Raises:
        RemoteError: it did not.
    """
    for turn in range(TRIES):
        try:
            return act()
        except UserError:
            raise
        except Exception as error:  # the packages behind fsspec raise errors of their own
            why, passes = _reason(error)
            if not passes:
                raise RemoteError(f"'{shown(url)}' {why}") from error
            if turn == TRIES - 1:
                raise RemoteError(f"'{shown(url)}' could not be read in {TRIES} tries: {why}") from error
            _pause(PAUSES_S[turn])
    raise AssertionError("the last try returns or raises")


def _reason(error: Exception) -> tuple[str, bool]:
    """What an error means, as the end of a sentence that begins with the URL, and whether it may pass."""
    status = _status(error)
    if isinstance(error, FileNotFoundError) or status in _GONE:
        return "is not there", False
    if isinstance(error, PermissionError) or status in _REFUSED:
        return "may not be read: access was refused", False
    if "Credentials" in type(error).__name__:
        return "may not be read: the environment holds no credentials for it", False
    if status is not None:
        return f"the server answered {status}", status >= 500 or status in _PASSES
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return "the connection stalled", True
    if isinstance(error, IsADirectoryError):
        return "is a folder", False
    return f"the connection broke off ({_without_urls(describe(error))})", True


def _status(error: Exception) -> int | None:
    """The HTTP status behind an error, as aiohttp and botocore give it."""
    seen: BaseException | None = error
    while seen is not None:
        status = getattr(seen, "status", None)
        if not isinstance(status, int):
            response = getattr(seen, "response", None)
            facts = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
            status = facts.get("HTTPStatusCode")
        if isinstance(status, int):
            return status
        seen = seen.__cause__
    return None


def _without_urls(text: str) -> str:
    """A message in which no query of a URL is left."""
    return re.sub(r"\?\S*", "", text)[:200]
