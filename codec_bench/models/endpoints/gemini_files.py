"""Gemini's Files API, for audio and request files that are too long for a request.

Source: https://ai.google.dev/api/files and https://ai.google.dev/gemini-api/docs/files, read on 2026-11-22, and
`files.py` of google-genai 3.4. Uploads are resumable; the sender may choose a name of up to 40 letters, digits and
dashes; a file lasts 48 hours and is usable in the state `ACTIVE`. A project may hold 20 GB.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codec_bench.messages import Diagnostic
from codec_bench.models.endpoints.bodies import optional_text, text_of
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.replies import read_bytes, read_json
from codec_bench.models.endpoints.retries import Denied, RequestFailed, Retryable

if TYPE_CHECKING:
    import aiohttp

LIFE_S = 48 * 3600.0
SPARE_S = 6 * 3600.0
"""A file that expires within so many seconds is uploaded again."""
MOST_BYTES = 8 << 30
"""The most bytes of one process at the service, of the 20 GB of a project."""
LOOKS = 120
LOOK_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Stored:
    """A file at the service: name (`files/...`), address, expiry (s since 1970)."""

    name: str
    uri: str
    until_s: float


class GeminiFiles:
    """The files of one process."""

    def __init__(self, client: Client, version: str) -> None:
        self._client, self._version = client, version
        self._held: OrderedDict[str, tuple[Stored, int]] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        self._in_use: dict[str, int] = {}

    async def start(self) -> None:
        """Implement `Client.start`."""
        await self._client.start()

    async def sound(self, data: bytes, digest: str) -> Stored:
        """Upload a WAV file unless it is stored already. `release` it after use.

        Args:
            digest: of the content, in letters and digits; names the file at the service.

        Raises:
            RequestFailed: the service does not take it.
        """
        self._in_use[digest] = self._in_use.get(digest, 0) + 1
        async with self._locks.setdefault(digest, asyncio.Lock()):
            held = self._held.get(digest)
            if held is None or held[0].until_s - time() < SPARE_S:
                self._held[digest] = (await self._find_or_upload(data, f"cb-{digest}"), len(data))
            self._held.move_to_end(digest)
            return self._held[digest][0]

    async def release(self, digest: str) -> None:
        """Mark audio as unused. It stays for further questions while there is room."""
        self._in_use[digest] = max(0, self._in_use.get(digest, 0) - 1)
        while sum(size for _, size in self._held.values()) > MOST_BYTES:
            idle = next((one for one in self._held if not self._in_use.get(one)), None)
            if idle is None:
                return
            await self.delete(self._held.pop(idle)[0].name)

    def keep(self, digest: str) -> None:
        """Leave audio at the service after this process, for a pending batch."""
        self._held.pop(digest, None)

    async def requests(self, file: Path, name: str) -> str:
        """Upload a file of requests; return its name at the service."""
        return (await self._uploaded(file, "application/jsonl", name)).name

    async def delete(self, name: str) -> None:
        """Delete a file; a missing one is no error."""
        with suppress(Retryable, RequestFailed, Denied):
            await self._client.send_once("DELETE", f"/{self._version}/{name}", read_bytes_of)

    async def close(self) -> None:
        """Delete all audio of this process, and close every connection."""
        held, self._held = self._held, OrderedDict()
        for stored, _ in held.values():
            await self.delete(stored.name)
        await self._client.close()

    async def _find_or_upload(self, content: bytes, name: str) -> Stored:
        """Return the stored file of this name, uploaded if needed."""
        stored = await self._find(name)
        if stored is not None:
            return stored
        try:
            return await self._uploaded(content, "audio/wav", name)
        except RequestFailed:  # another process may have uploaded it meanwhile
            return await self._find(name) or await self._uploaded(content, "audio/wav", None)

    async def _find(self, name: str) -> Stored | None:
        """Find a usable stored file; deletes failed and expiring ones."""
        try:
            body = await self._client.send_once("GET", f"/{self._version}/files/{name}", read_json)
        except (Retryable, RequestFailed, Denied):
            return None
        if optional_text(body, "state") == "FAILED" or self._until_s(body) - time() < SPARE_S:
            await self.delete(f"files/{name}")
            return None
        return await self._active(body)

    async def _uploaded(self, content: bytes | Path, kind: str, name: str | None) -> Stored:
        """Upload content of a MIME type; wait until the service can use it."""
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        head = {
            "X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(size), "X-Goog-Upload-Header-Content-Type": kind,
        }  # fmt: skip
        about = {"file": {"name": f"files/{name}", "displayName": name}} if name is not None else {"file": {}}
        began = await self._client.send(
            "POST", f"/upload/{self._version}/files", self._upload_path, json=about, headers=head
        )
        sent = {
            "Content-Length": str(size), "X-Goog-Upload-Offset": "0",
            "X-Goog-Upload-Command": "upload, finalize",
        }  # fmt: skip
        reply = await self._client.send("POST", began.value, read_json, content=content, headers=sent)
        body = reply.value.get("file") if isinstance(reply.value, dict) else None
        return await self._active(body)

    async def _upload_path(self, response: aiohttp.ClientResponse, _began: float) -> str:
        """Return the upload path from a reply's header.

        An address at another host raises RequestFailed, because the key is sent there.
        """
        await read_bytes(response)
        url = response.headers.get("x-goog-upload-url", "")
        here, there = urlsplit(self._client.base_url), urlsplit(url)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise RequestFailed(Diagnostic("no_upload_address"))
        return url.removeprefix(f"{here.scheme}://{here.netloc}")

    def _until_s(self, body: Any) -> float:
        expires = optional_text(body, "expirationTime")
        with suppress(ValueError):
            return datetime.fromisoformat(expires).timestamp() if expires else time() + LIFE_S
        return time() + LIFE_S

    async def _active(self, body: Any) -> Stored:
        """Wait until the service has processed the file.

        Raises:
            RequestFailed: it cannot be read, or is not ready after minutes.
        """
        for _ in range(LOOKS):
            state = optional_text(body, "state")
            if state in (None, "ACTIVE"):
                return Stored(text_of(body, "name"), text_of(body, "uri"), self._until_s(body))
            if state == "FAILED":
                raise RequestFailed(Diagnostic("upload_unreadable"), refused=True)
            await asyncio.sleep(LOOK_EVERY_S)
            body = (await self._client.send("GET", f"/{self._version}/{text_of(body, 'name')}", read_json)).value
        raise RequestFailed(Diagnostic("upload_late", limit_s=LOOKS * LOOK_EVERY_S))


async def read_bytes_of(response: aiohttp.ClientResponse, _began: float) -> bytes:
    """Return the body of any reply, as a `read` of `Client.send`."""
    return await read_bytes(response)
