"""Downloads one file over HTTP, resumably, and checks it before it gets its name.

During a download the file is `NAME.part`, described by `NAME.part.json`. Only a file of the expected size and SHA-256
is renamed to `NAME`. An incomplete file stays for the next attempt; a wrong file is removed. Credentials are sent
only to their own host, never with a redirect.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from codec_bench.config.network import TIMEOUT_S, offline
from codec_bench.messages.errors import WeightsError
from codec_bench.weights.catalogue import readable

Progress = Callable[[str, int, int | None], None]
"""Called with the file's name, its bytes so far, and in all (or None)."""

_CHUNK = 1 << 18


class Unreachable(WeightsError):
    """A source is unreachable or incomplete; another one, or a later try, may work."""


class WrongContent(WeightsError):
    """A source has another file than expected. It is removed."""


def refuse_offline() -> None:
    """Raise Unreachable if HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set."""
    name = offline()
    if name is not None:
        raise Unreachable(
            "offline",
            variable=name,
            hint="unset it, or copy the files from a folder: codec-bench weights fetch NAME --from FOLDER",
        )


def download(
    url: str,
    target: Path,
    *,
    size: int | None = None,
    sha256: str | None = None,
    headers: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> str:
    """Download one file and return its SHA-256.

    After a broken connection it continues, as long as each attempt brings new bytes.

    Args:
        target: its final path, in a folder that exists.
        size, sha256: of the expected content, or None if unknown.
        headers: sent only to the host of `url`.
        progress: called as bytes arrive, or None.

    Raises:
        Unreachable: there is no connection or no such file, or the download broke off. The bytes so far stay.
        WrongContent: the content is not the expected one. It is removed.
        WeightsError: the file cannot be written.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise WeightsError("address_not_web", url=url)
    partial = _PartialFile(target, url, sha256)
    while True:
        before = partial.size
        try:
            is_complete = _attempt(partial, url, size, headers or {}, progress)
        except (OSError, HTTPException) as error:  # the connection failed, or the answer was broken
            if _of_the_disk(error):
                raise WeightsError(
                    "file_not_writable", path=target, cause=getattr(error, "strerror", None) or error
                ) from error
            if partial.size <= before:
                raise unreachable(url, error, partial.size) from error
            continue
        if is_complete:
            return partial.finish(size, sha256)
        if partial.size <= before:
            raise Unreachable(
                "download_broke_off", url=url, bytes=partial.size, hint="the same command continues where it stopped"
            )


def check_room(folder: Path, needed: int, subject: str) -> None:
    """Raise WeightsError, with needed and free bytes, if a disk has too little room."""
    here = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(here).free
    if free < needed:
        raise WeightsError(
            "no_disk_space",
            subject=subject,
            needed=readable(needed),
            folder=folder,
            free=readable(free),
            hint="make room, or choose another disk: --to DIR, HF_HOME or CODEC_BENCH_CACHE",
        )


class _PartialFile:
    def __init__(self, target: Path, url: str, sha256: str | None) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self._note = target.with_name(target.name + ".part.json")
        self._digest: Any = None
        known = self._read()
        # Another URL may continue a download only if a SHA-256 checks the complete file.
        same = known.get("sha256") == sha256 if sha256 else known.get("url") == url and bool(known.get("validator"))
        self.validator = (
            str(known["validator"]) if same and known.get("url") == url and known.get("validator") else None
        )
        if not same:
            self.discard()
        self._about = {"url": url, "sha256": sha256}

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self._note.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return known if isinstance(known, dict) else {}

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self, validator: str | None) -> None:
        """Restart the file from its first byte."""
        self.path.unlink(missing_ok=True)
        self._digest = hashlib.sha256()
        self.validator = validator
        self._note.write_text(json.dumps({**self._about, "validator": validator}), "utf-8")

    def proceed(self) -> None:
        """Prepare to append bytes."""
        if self._digest is None:
            self._digest = hashlib.sha256()
            with self.path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    self._digest.update(chunk)

    def add(self, file: Any, chunk: bytes) -> None:
        file.write(chunk)
        self._digest.update(chunk)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def finish(self, size: int | None, sha256: str | None) -> str:
        """Check the content and rename the file."""
        self.proceed()
        got, bytes_ = self._digest.hexdigest(), self.size
        if size is not None and bytes_ != size:
            self.discard()
            raise WrongContent("download_size", url=self._about["url"], bytes=bytes_, expected=size)
        if sha256 is not None and got != sha256:
            self.discard()
            raise WrongContent(
                "download_digest",
                url=self._about["url"],
                digest=got,
                expected=sha256,
                hint="the download was damaged or the file is another one: try again, or use another source (--from)",
            )
        self.path.replace(self.target)
        self._note.unlink(missing_ok=True)
        return got


def _attempt(
    partial: _PartialFile, url: str, size: int | None, headers: Mapping[str, str], progress: Progress | None
) -> bool:
    """Request the missing bytes once; return whether the file is now complete."""
    here = partial.size
    request = urllib.request.Request(url, headers={"User-Agent": "codec-bench", "Accept-Encoding": "identity"})
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    if here:
        request.add_header("Range", f"bytes={here}-")
        if partial.validator:
            request.add_header("If-Range", partial.validator)
    try:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == 416 and here:  # no more bytes: the file is complete, or it is another one
            whole_size = error.headers.get("Content-Range", "").rpartition("/")[2]
            error.close()
            if whole_size == str(here):
                return True
            partial.discard()
            return _attempt(partial, url, size, headers, progress)
        raise
    with answer:
        validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if validator and validator.startswith("W/"):
            validator = None  # a weak validator does not promise equal bytes
        length = answer.headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        span = answer.headers.get("Content-Range", "")
        if answer.status == 206 and span.startswith(f"bytes {here}-"):
            partial.proceed()
            total = None if total is None else total + here
        else:
            partial.begin(validator)
            here = 0
        if size is not None and total is not None and total != size:
            partial.discard()
            raise WrongContent("download_declared", url=url, bytes=total, expected=size)
        if answer.headers.get_content_type() == "text/html" and partial.target.suffix not in (".html", ".htm"):
            partial.discard()
            raise WrongContent(
                "download_web_page",
                url=url,
                hint="a proxy or a page that asks for consent may be in between: open the address in a browser",
            )
        if total is not None:
            check_room(partial.target.parent, total - here, partial.target.name)
        bound = size if size is not None else total
        with partial.path.open("ab") as file:
            while chunk := answer.read(_CHUNK):
                here += len(chunk)
                if bound is not None and here > bound:
                    file.close()
                    partial.discard()
                    raise WrongContent("download_beyond", url=url, most=bound)
                partial.add(file, chunk)
                if progress is not None:
                    progress(partial.target.name, here, bound)
    # Without a length, a broken download looks complete; then only the check of the content detects it.
    return bound is None or here == bound


def _of_the_disk(error: Exception) -> bool:
    """Whether an error comes from writing the file and not from the connection."""
    if isinstance(error, urllib.error.URLError) or not isinstance(error, OSError):
        return False
    return error.filename is not None or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def unreachable(url: str, error: Exception, here: int = 0) -> Unreachable:
    """Return a failed connection or answer as an error for the user."""
    host = urlsplit(url).netloc
    if isinstance(error, urllib.error.HTTPError):
        if error.code in (401, 403):
            return Unreachable(
                "download_refused",
                url=url,
                status=error.code,
                reason=error.reason,
                hint="it asks for a permission: see its page, and set HF_TOKEN (or MODELSCOPE_API_TOKEN)",
            )
        if error.code in (404, 410):
            return Unreachable(
                "download_missing",
                url=url,
                status=error.code,
                reason=error.reason,
                hint="name another source with --from, or download the file by hand (docs/weights.md)",
            )
        return Unreachable(
            "not_fetched_status",
            url=url,
            status=error.code,
            reason=error.reason,
            hint="try again later, or name another source with --from",
        )
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    resumable = f"; {here} bytes are here, and the same command continues" if here else ""
    return Unreachable(
        "host_unreachable",
        host=host,
        cause=why(reason),
        resumable=resumable,
        hint="check the network and its proxy; without a network, copy the files from a folder: --from FOLDER "
        "(docs/weights.md)",
    )


def why(reason: object) -> str:
    """Describe why a connection failed."""
    if isinstance(reason, socket.gaierror):
        return "its name could not be resolved"
    if isinstance(reason, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(reason, TimeoutError):
        return f"no answer within {TIMEOUT_S:g} s"
    if isinstance(reason, ssl.SSLError):
        return f"its certificate was not accepted ({reason.reason or reason})"
    return str(reason) or type(reason).__name__


def read_json(url: str, headers: Mapping[str, str]) -> Any:
    """Return a server's answer as JSON; redirects do not get `headers`.

    Raises:
        Unreachable: the server does not answer, or not with JSON.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "codec-bench"})
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read())
    except (OSError, HTTPException) as error:
        raise unreachable(url, error) from error
    except (ValueError, RecursionError) as error:
        raise Unreachable("answer_not_json", url=url) from error
