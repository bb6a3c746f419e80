"""OpenAI's batch interface: a file of requests is uploaded, and a batch is made of it.

Source: https://developers.openai.com/api/docs/guides/batch and the types of the package openai 3.54, read on 2026-11-22: up
to 50,000 requests and 200 MB a file, a window of 24 hours, half the price; requests that were not answered in time stand in
the file of errors with `batch_expired`. A batch has up to 16 words of metadata, and batches can be listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.models.endpoints.batches import (
    Batch,
    BatchableModel,
    BatchInterface,
    Outcome,
    State,
    download,
)
from codec_bench.models.endpoints.bodies import named, text_of
from codec_bench.models.endpoints.client import read_json
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.persistence import Again, Denied, GivenUp

if TYPE_CHECKING:
    import aiohttp

MARK = "codec_bench"
STATES: Mapping[str, State] = {
    "completed": "ended", "expired": "expired", "cancelled": "cancelled", "failed": "failed",
}  # fmt: skip
NOT_RUN = {"batch_expired", "batch_cancelled"}
PAGE = 100
PAGES = 20


class OpenAiBatches(BatchInterface):
    """The batch interface of OpenAI and of services that follow it.

    Args:
        model: the model.
        path: of the requests, such as `/chat/completions`; the service names it with `/v1` before it.
    """

    def __init__(self, model: BatchableModel, path: str) -> None:
        super().__init__(model)
        self.endpoint = f"/v1{path}"

    def line(self, key: str, body: bytes) -> bytes:
        """As `BatchInterface.line`."""
        head = f'{{"custom_id": "{key}", "method": "POST", "url": "{self.endpoint}", "body": '
        return b"".join((head.encode(), body, b"}\n"))

    async def upload(self, file: Path, mark: str) -> str:
        """As `BatchInterface.upload`."""
        reply = await self.client.send(
            "POST", "/files", read_json, data={"purpose": "batch"},
            files={"file": (f"codec-bench-{mark}.jsonl", file, "application/jsonl")},
        )  # fmt: skip
        return text_of(reply.value, "id")

    async def submit(self, file: str, mark: str) -> Batch:
        """As `BatchInterface.submit`."""
        body = {
            "input_file_id": file, "endpoint": self.endpoint, "completion_window": "24h", "metadata": {MARK: mark},
        }  # fmt: skip
        return await self.client.send_once("POST", "/batches", _made, json=body)

    async def find(self, mark: str) -> Batch | None:
        """As `BatchInterface.find`."""
        after = ""
        for _ in range(PAGES):
            reply = await self.client.send("GET", f"/batches?limit={PAGE}{after}", read_json)
            listed = reply.value.get("data") if isinstance(reply.value, Mapping) else None
            entries = [entry for entry in listed or () if isinstance(entry, Mapping)]
            for entry in entries:
                if named(entry.get("metadata"), MARK) == mark:
                    return _batch(entry)
            if not entries or not reply.value.get("has_more"):
                return None
            after = f"&after={text_of(entries[-1], 'id')}"
        return None

    async def look(self, id: str) -> Batch:
        """As `BatchInterface.look`."""
        return _batch((await self.client.send("GET", f"/batches/{id}", read_json)).value)

    async def fetch(self, file: str, target: Path) -> None:
        """As `BatchInterface.fetch`."""
        await download(self.client, f"/files/{file}/content", target)

    def outcome(self, line: Any) -> Outcome | None:
        """As `BatchInterface.outcome`."""
        key = named(line, "custom_id")
        if key is None:
            return None
        reply, error = line.get("response"), line.get("error")
        if isinstance(reply, Mapping):
            status = reply.get("status_code")
            return Outcome(
                key, status if isinstance(status, int) else 500, reply.get("body"), named(reply, "request_id")
            )
        if isinstance(error, Mapping) and error.get("code") in NOT_RUN:
            return Outcome(key, None, line)
        return Outcome(key, 500, {"error": error})

    async def delete(self, file: str) -> None:
        """As `BatchInterface.delete`."""
        try:
            await self.client.send_once("DELETE", f"/files/{file}", read_json)
        except (Again, GivenUp, Denied):
            return


async def _made(response: aiohttp.ClientResponse, began: float) -> Batch:
    body = await read_json(response, began)
    try:
        return _batch(body)
    except GivenUp as end:  # a batch was made, and its name is not known
        raise Again(end.reason) from None


def _batch(body: Any) -> Batch:
    id = text_of(body, "id")
    state = STATES.get(str(body.get("status")), "running")
    files = tuple(name for name in (named(body, "output_file_id"), named(body, "error_file_id")) if name)
    errors = body.get("errors")
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    said = [str(one.get("message") or one.get("code")) for one in listed or () if isinstance(one, Mapping)]
    return Batch(id, state, clean("; ".join(said[:3])), files)


__all__ = ["OpenAiBatches"]
