"""OpenAI's batch interface: an uploaded file of requests becomes a batch.

Source: https://developers.openai.com/api/docs/guides/batch and the types of openai 3.54, read on 2026-11-22: up to
50,000 requests and 200 MB a file, a window of 24 hours, half the price; late requests are in the error file with
`batch_expired`. A batch has up to 16 metadata entries, and batches can be listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from codec_bench.messages.errors import first_of
from codec_bench.models.endpoints.batches import Batch, BatchableModel, BatchInterface, BatchOutcome, State, download
from codec_bench.models.endpoints.bodies import optional_text, text_of
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import Denied, RequestFailed, Retryable

STATES: Mapping[str, State] = {
    "completed": "ended", "expired": "expired", "cancelled": "cancelled", "failed": "failed",
}  # fmt: skip
NOT_RUN = {"batch_expired", "batch_cancelled"}


class OpenAiBatches(BatchInterface):
    """The batch interface of OpenAI and of compatible services."""

    page_size: ClassVar[str] = "limit=100"
    listed: ClassVar[str] = "data"
    marked: ClassVar[str] = "codec_bench"
    looked_at: ClassVar[str] = "/batches/"

    def __init__(self, model: BatchableModel, path: str) -> None:
        super().__init__(model)
        self.endpoint = f"/v1{path}"

    def line(self, key: str, body: bytes) -> bytes:
        """Implement `BatchInterface.line`."""
        head = f'{{"custom_id": "{key}", "method": "POST", "url": "{self.endpoint}", "body": '
        return b"".join((head.encode(), body, b"}\n"))

    async def upload(self, file: Path, mark: str) -> str:
        """Implement `BatchInterface.upload`."""
        reply = await self.client.send(
            "POST", "/files", read_json, data={"purpose": "batch"},
            files={"file": (f"codec-bench-{mark}.jsonl", file, "application/jsonl")},
        )  # fmt: skip
        return text_of(reply.value, "id")

    def submission(self, file: str, mark: str) -> tuple[str, dict[str, Any]]:
        """Implement `BatchInterface.submission`."""
        about = {"endpoint": self.endpoint, "completion_window": "24h", "metadata": {self.marked: mark}}
        return "/batches", {"input_file_id": file, **about}

    def next_page(self, body: Any, entries: list[Mapping[str, Any]]) -> str | None:
        """Implement `BatchInterface.next_page`."""
        return f"&after={text_of(entries[-1], 'id')}" if entries and body.get("has_more") else None

    def batch(self, body: Any) -> Batch:
        """Parse the service's report on a batch; one without an id raises RequestFailed."""
        id = text_of(body, "id")
        state = STATES.get(str(body.get("status")), "running")
        files = tuple(
            name for name in (optional_text(body, "output_file_id"), optional_text(body, "error_file_id")) if name
        )
        errors = body.get("errors")
        listed = errors.get("data") if isinstance(errors, Mapping) else None
        messages = [str(one.get("message") or one.get("code")) for one in listed or () if isinstance(one, Mapping)]
        return Batch(id, state, clean(first_of(messages, 3, "; ")), files)

    async def fetch(self, file: str, target: Path) -> None:
        """Implement `BatchInterface.fetch`."""
        await download(self.client, f"/files/{file}/content", target)

    def outcome(self, line: Any) -> BatchOutcome | None:
        """Parse one line of a file of results; None if it has no `custom_id`."""
        key = optional_text(line, "custom_id")
        if key is None:
            return None
        reply, error = line.get("response"), line.get("error")
        if isinstance(reply, Mapping):
            status = reply.get("status_code")
            return BatchOutcome(
                key, status if isinstance(status, int) else 500, reply.get("body"), optional_text(reply, "request_id")
            )
        if isinstance(error, Mapping) and error.get("code") in NOT_RUN:
            return BatchOutcome(key, None, line)
        return BatchOutcome(key, 500, {"error": error})

    async def delete(self, file: str) -> None:
        """Implement `BatchInterface.delete`."""
        try:
            await self.client.send_once("DELETE", f"/files/{file}", read_json)
        except (Retryable, RequestFailed, Denied):
            return
