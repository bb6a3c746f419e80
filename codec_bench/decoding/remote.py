"""Reads URLs through fsspec, whole or in part, with retries.

A URL is `PROTOCOL://...`, such as `s3://bucket/a.flac`, `https://host/a.flac` or `gs://bucket/a.flac`; protocols depend
on installed packages, credentials on the environment (AWS_PROFILE, AWS_ACCESS_KEY_ID). Shown and recorded URLs have no
query (it may hold a signature), user or password. Retried: no answer, 5xx, 429, broken or stalled connections.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError, MissingExtra, UserError, describe

TRIES = 4
PAUSES_S = (0.5, 2.0, 5.0)
"""Seconds between the tries."""
STALL_S = 30.0
"""A connection without data for so long has stalled."""
EXTRA = "remote"
STORES = frozenset(("http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "hf", "memory"))
"""Allowed protocols. Others of fsspec reach local files, run commands, or crash."""
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
    """A URL cannot be read; the message names it."""


def is_url(path: str) -> bool:
    """Whether a text is a URL and not a path."""
    return _URL.match(path) is not None


def shown(path: str) -> str:
    """Return a path for display and records: a URL without its secrets."""
    if not is_url(path):
        return path
    protocol, rest = path.split("://", 1)
    if protocol.lower() not in _WEB:  # other stores allow ? and # in names
        host, slash, name = rest.partition("/")
        before, _, query = name.partition("?")
        return f"{protocol}://{host.rpartition('@')[2]}{slash}{before if '=' in query else name}"
    parts = urlsplit(path)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def filesystem(url: str) -> Any:
    """Return the fsspec file system of a URL."""
    import fsspec

    protocol = url.split("://", 1)[0]
    if "@" in url.split("://", 1)[1].partition("/")[0]:
        raise UserError(
            "url_with_password", url=shown(url), hint="leave it out; fsspec takes credentials from the environment"
        )
    if protocol not in STORES and protocol in fsspec.available_protocols():
        raise UserError(
            "url_protocol",
            url=shown(url),
            protocol=protocol,
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
                "package_not_installed", feature="file", name=shown(url), package="gcsfs", hint="pip install gcsfs"
            ) from error
        raise MissingExtra("file", package, EXTRA, name=shown(url)) from error
    except ValueError as error:
        raise UserError(
            "url_protocol_unknown", url=shown(url), protocol=protocol, hint="s3, gs, http and https are known"
        ) from error


def read_remote(url: str, begin: int = 0, end: int | None = None) -> bytes:
    """Return the bytes of a URL, from `begin` to `end` (None: its end).

    Raises:
        RemoteError: it is missing, forbidden, or unreadable in several tries.
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
    """Return a server's checksums of a file, such as its `ETag`, or None.

    Raises:
        RemoteError, UserError: as `read_remote`.
    """
    facts = tried(url, lambda: filesystem(url).info(url))
    checksums = [f"{name}={facts[name]}" for name in _CHECKSUMS if facts.get(name)]
    return f"{facts.get('size')} {' '.join(checksums)}" if checksums else None


def tried(url: str, act: Callable[[], _Got]) -> _Got:
    """Call `act`, which reads from a URL, again after a temporary error.

    Raises:
        RemoteError: the last try failed.
    """
    for turn in range(TRIES):
        try:
            return act()
        except UserError:
            raise
        except Exception as error:  # the packages behind fsspec raise their own errors
            why, passes = _reason(error)
            if not passes:
                raise RemoteError("url_refused", url=shown(url), cause=why) from error
            if turn == TRIES - 1:
                raise RemoteError("url_unreadable", url=shown(url), tries=TRIES, cause=why) from error
            _pause(PAUSES_S[turn])
    raise AssertionError("the last try returns or raises")


def _reason(error: Exception) -> tuple[Diagnostic, bool]:
    """Return an error's meaning, and whether it is temporary."""
    status = _status(error)
    if isinstance(error, FileNotFoundError) or status in _GONE:
        return Diagnostic("remote_missing"), False
    if isinstance(error, PermissionError) or status in _REFUSED:
        return Diagnostic("remote_forbidden"), False
    if "Credentials" in type(error).__name__:
        return Diagnostic("remote_credentials"), False
    if status is not None:
        return Diagnostic("remote_status", status=status), status >= 500 or status in _PASSES
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return Diagnostic("remote_stalled"), True
    if isinstance(error, IsADirectoryError):
        return Diagnostic("remote_folder"), False
    return Diagnostic("remote_broken", message=_without_urls(describe(error))), True


def _status(error: Exception) -> int | None:
    """Return the HTTP status of an error or of its cause."""
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
    return re.sub(r"\?\S*", "", text)[:200]
