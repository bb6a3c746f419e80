"""Gemini's Files API: sounds and files of requests that are too long to stand in a request.

Source: https://ai.google.dev/api/files and https://ai.google.dev/gemini-api/docs/files, read on 2026-11-22, and
`files.py` of the package google-genai 3.4: a file is uploaded by a resumable upload, has a name of up to 40 letters,
digits and dashes that the sender may choose, is kept for 48 hours, and can be used once its state is `ACTIVE`. A
project may hold 20 GB.
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

from codec_bench.models.endpoints.bodies import named, text_of
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.replies import read_bytes, read_json
from codec_bench.models.endpoints.retries import Again, Denied, RequestFailed

if TYPE_CHECKING:
    import aiohttp

LIFE_S = 48 * 3600.0
SPARE_S = 6 * 3600.0
"""A file that the service deletes within so many seconds is uploaded again."""
MOST_BYTES = 8 << 30
"""The most bytes that one process keeps at the service, of the 20 GB of a project."""
LOOKS = 120
LOOK_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Stored:
    """A file at the service: its name (`files/...`), the address by which requests name it, and when it is deleted (s
    since 1970).
    """

    name: str
    uri: str
    until_s: float


class GeminiFiles:
    """The files that one process uses.

    Args:
        client: a client whose `base_url` is the root of the service, without a version.
        version: of the interface, such as `v1beta`.
    """

    def __init__(self, client: Client, version: str) -> None:
        self._client, self._version = client, version
        self._held: OrderedDict[str, tuple[Stored, int]] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        self._in_use: dict[str, int] = {}

    async def start(self) -> None:
        """As `Client.start`."""
        await self._client.start()

    async def sound(self, data: bytes, digest: str) -> Stored:
        """A WAV file at the service, which is uploaded unless it is there already. `release` it after use.

        Args:
            data: the file. digest: of its content, in letters and digits; the file at the service is named after it.

        Raises:
            RequestFailed: the service does not take it.
        """
        self._in_use[digest] = self._in_use.get(digest, 0) + 1
        async with self._locks.setdefault(digest, asyncio.Lock()):
            held = self._held.get(digest)
            if held is None or held[0].until_s - time() < SPARE_S:
                self._held[digest] = (await self._placed(data, f"cb-{digest}"), len(data))
            self._held.move_to_end(digest)
            return self._held[digest][0]

    async def release(self, digest: str) -> None:
        """Says that a sound is not needed now. It stays for further questions, unless others need its room."""
        self._in_use[digest] = max(0, self._in_use.get(digest, 0) - 1)
        while sum(size for _, size in self._held.values()) > MOST_BYTES:
            idle = next((one for one in self._held if not self._in_use.get(one)), None)
            if idle is None:
                return
            await self.delete(self._held.pop(idle)[0].name)

    def keep(self, digest: str) -> None:
        """Leaves a sound at the service when this process ends, because a batch that waits needs it."""
        self._held.pop(digest, None)

    async def requests(self, file: Path, name: str) -> str:
        """Uploads a file of requests; returns its name at the service."""
        return (await self._uploaded(file, "application/jsonl", name)).name

    async def delete(self, name: str) -> None:
        """Deletes a file. One that is gone already is no error, since every file is gone after 48 hours."""
        with suppress(Again, RequestFailed, Denied):
            await self._client.send_once("DELETE", f"/{self._version}/{name}", read_bytes_of)

    async def close(self) -> None:
        """Deletes every sound that this process used, and closes every connection."""
        held, self._held = self._held, OrderedDict()
        for stored, _ in held.values():
            await self.delete(stored.name)
        await self._client.close()

    async def _placed(self, content: bytes, name: str) -> Stored:
        """A sound under a name, found or uploaded; under a name of the service's choice if it does not take this one."""
        stored = await self._find(name)
        if stored is not None:
            return stored
        try:
            return await self._uploaded(content, "audio/wav", name)
        except RequestFailed:  # another process may have uploaded it meanwhile
            return await self._find(name) or await self._uploaded(content, "audio/wav", None)

    async def _find(self, name: str) -> Stored | None:
        """The file with a name, if it stays for some hours; None if there is none."""
        try:
            body = await self._client.send_once("GET", f"/{self._version}/files/{name}", read_json)
        except (Again, RequestFailed, Denied):
            return None
        if named(body, "state") == "FAILED" or self._until_s(body) - time() < SPARE_S:
            await self.delete(f"files/{name}")
            return None
        return await self._active(body)

    async def _uploaded(self, content: bytes | Path, kind: str, name: str | None) -> Stored:
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
        """Where to send the content: a path of the same service, since the key is sent with it."""
        await read_bytes(response)
        url = response.headers.get("x-goog-upload-url", "")
        here, there = urlsplit(self._client.base_url), urlsplit(url)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise RequestFailed("the service gave no address of its own for the upload")
        return url.removeprefix(f"{here.scheme}://{here.netloc}")

    def _until_s(self, body: Any) -> float:
        """When the service deletes a file; by its documentation if it does not say."""
        expires = named(body, "expirationTime")
        with suppress(ValueError):
            return datetime.fromisoformat(expires).timestamp() if expires else time() + LIFE_S
        return time() + LIFE_S

    async def _active(self, body: Any) -> Stored:
        """The file, once the service has read it in.

        Raises:
            RequestFailed: the service cannot read it, or does not say so for minutes.
        """
        for _ in range(LOOKS):
            state = named(body, "state")
            if state in (None, "ACTIVE"):
                return Stored(text_of(body, "name"), text_of(body, "uri"), self._until_s(body))
            if state == "FAILED":
                raise RequestFailed("the service cannot read the uploaded sound", refused=True)
            await asyncio.sleep(LOOK_EVERY_S)
            body = (await self._client.send("GET", f"/{self._version}/{text_of(body, 'name')}", read_json)).value
        raise RequestFailed(f"the service has not read in an uploaded file after {LOOKS * LOOK_EVERY_S:.0f} s")


async def read_bytes_of(response: aiohttp.ClientResponse, _began: float) -> bytes:
    """The body of a reply whatever it is. Can be the `read` of `Client.send`."""
    return await read_bytes(response)
