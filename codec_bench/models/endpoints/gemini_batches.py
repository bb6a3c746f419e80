"""Gemini's batch mode: a request file in the Files API becomes a batch.

Source: https://ai.google.dev/gemini-api/docs/batch-api and https://ai.google.dev/api/batch-api, read on 2026-11-22, and
`batches.py` of google-genai 3.4: half the price, files of up to 2 GB with a request and its key per line, states
`BATCH_STATE_*` (earlier `JOB_STATE_*`), expiry after 48 hours, display names, listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from codec_bench.models.endpoints.batches import (
    Batch,
    BatchableModel,
    BatchInterface,
    BatchOutcome,
    State,
    download,
    transfer_client,
)
from codec_bench.models.endpoints.bodies import optional_text, text_of
from codec_bench.models.endpoints.gemini_files import GeminiFiles
from codec_bench.models.endpoints.keys import clean

STATES: Mapping[str, State] = {
    "SUCCEEDED": "ended", "PARTIALLY_SUCCEEDED": "ended", "EXPIRED": "expired", "CANCELLED": "cancelled",
    "FAILED": "failed",
}  # fmt: skip
# Codes of google.rpc.Code as statuses of HTTP (https://github.com/googleapis/googleapis, google/rpc/code.proto).
STATUSES = {3: 400, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}
CANCELLED = 1
DEADLINE_EXCEEDED = 4


class GeminiBatches(BatchInterface):
    """Gemini's batch mode for the model `name`."""

    page_size: ClassVar[str] = "pageSize=100"
    listed: ClassVar[str] = "operations"
    marked: ClassVar[str] = "displayName"
    looked_at: ClassVar[str] = "/"

    def __init__(self, model: BatchableModel, name: str) -> None:
        self._version = version_of(model.base_url)
        super().__init__(model)
        self._name = name
        self._root = transfer_client(model, root_of(model.base_url))
        self._files = GeminiFiles(self._root, self._version)

    async def start(self) -> None:
        """Implement `BatchInterface.start`."""
        await super().start()
        await self._root.start()

    async def close(self) -> None:
        """Implement `BatchInterface.close`."""
        await super().close()
        await self._root.close()

    def line(self, key: str, body: bytes) -> bytes:
        """Implement `BatchInterface.line`."""
        return b"".join((f'{{"key": "{key}", "request": '.encode(), body, b"}\n"))

    async def upload(self, file: Path, mark: str) -> str:
        """Implement `BatchInterface.upload`."""
        return await self._files.requests(file, f"cb-{mark}")

    def submission(self, file: str, mark: str) -> tuple[str, dict[str, Any]]:
        """Implement `BatchInterface.submission`."""
        about = {"displayName": mark, "inputConfig": {"fileName": file}}
        return f"/models/{self._name}:batchGenerateContent", {"batch": about}

    def next_page(self, body: Any, entries: list[Mapping[str, Any]]) -> str | None:
        """Implement `BatchInterface.next_page`."""
        token = optional_text(body, "nextPageToken")
        return None if token is None else f"&pageToken={token}"

    def batch(self, body: Any) -> Batch:
        """Parse the service's report on a batch; one without a name raises RequestFailed."""
        id = text_of(body, "name")
        about = body.get("metadata") if isinstance(body.get("metadata"), Mapping) else {}
        state = str(about.get("state") or "").removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        error = body.get("error")
        message = clean(str(error.get("message") or "")) if isinstance(error, Mapping) else ""
        places = (body.get("response"), about.get("output"), about.get("dest"))
        file = optional_text(
            next((location for location in places if isinstance(location, Mapping)), {}), "responsesFile"
        )
        status = STATES.get(state, "failed" if message else "running")
        return Batch(id, status, message, (file,) if file is not None else ())

    async def fetch(self, file: str, target: Path) -> None:
        """Implement `BatchInterface.fetch`."""
        await download(self._root, f"/download/{self._version}/{file}:download?alt=media", target)

    def outcome(self, line: Any) -> BatchOutcome | None:
        """Parse one line of a file of results; None if it has no key."""
        key = optional_text(line, "key")
        if key is None:
            return None
        answer = line.get("response")
        if isinstance(answer, Mapping):
            return BatchOutcome(key, 200, answer)
        error = line.get("error") or line.get("status")
        code = error.get("code") if isinstance(error, Mapping) else None
        if code in (CANCELLED, DEADLINE_EXCEEDED):
            return BatchOutcome(key, None, line)
        status = code if isinstance(code, int) and code >= 100 else STATUSES.get(code, 500) if code else 500
        return BatchOutcome(key, status, {"error": error})

    async def delete(self, file: str) -> None:
        """Implement `BatchInterface.delete`."""
        await self._files.delete(file)


def root_of(url: str) -> str:
    """Return the scheme and host of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def version_of(url: str) -> str:
    """Return the path of a URL, which is Gemini's interface version: `v1beta`."""
    return urlsplit(url).path.strip("/")
