"""Batch interfaces: a file of requests, answered within a day at half price.

The run records a random mark before it submits a batch, and the service stores the mark with the batch. A submission
with an unknown result is repeated only after a search for the mark. Results follow the rules of single requests: an
HTTP status says whether a request was answered, refused or failed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError
from codec_bench.models.endpoints.bodies import optional_text
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.remote import HttpModel, JsonModel
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import Denied, RequestFailed, Retryable
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    import aiohttp

State = Literal["running", "ended", "expired", "cancelled", "failed"]
TRANSFER_S = 3600.0
"""Time limit of one file transfer."""
PAGES = 20
MAX_FILE_BYTES = 8 << 30
"""Longest answer file: 50,000 spoken answers of 6 s."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A service's report on a batch.

    Args:
        state: `running`; `ended`; `expired` or `cancelled`, if only a part was answered; `failed`, if nothing was.
        message: why it failed, in the words of the service.
        files: the names of the files with answers and errors.
    """

    id: str
    state: State
    message: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The result of one request of a batch.

    Args:
        status: of HTTP; None if the batch ended before the request.
        body: the reply as JSON.
        request: the service's id of the request, or None.
    """

    key: str
    status: int | None
    body: Any
    request: str | None = None


class BatchInterface(ABC):
    """The batch interface of one model's service.

    Attributes:
        share: the charged fraction of the model's prices.
        most_requests, most_bytes: the limits of one file.
        client: sends everything but the submission, with retries.
        page_size, listed, marked, looked_at: the query for a page of the list of batches, its keys of the batches and
            of their mark, and the path of one batch.
    """

    page_size: ClassVar[str]
    listed: ClassVar[str]
    marked: ClassVar[str]
    looked_at: ClassVar[str]

    share: ClassVar[float] = 0.5
    most_requests: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 190_000_000

    def __init__(self, model: BatchableModel) -> None:
        self._model = model
        self.client = transfer_client(model, model.base_url)

    async def start(self) -> None:
        """Implement `Client.start`."""
        await self.client.start()

    async def close(self) -> None:
        """Close every connection."""
        await self.client.close()

    @abstractmethod
    def line(self, key: str, body: bytes) -> bytes:
        """Return one line of the file: a request under a key."""

    @abstractmethod
    async def upload(self, file: Path, mark: str) -> str:
        """Upload a file of requests; return its name at the service."""

    @abstractmethod
    def submission(self, file: str, mark: str) -> tuple[str, dict[str, Any]]:
        """Return the path and body that submit an uploaded file."""

    async def submit(self, file: str, mark: str) -> Batch:
        """Start a batch from an uploaded file; `find` finds it by its mark, any text.

        Raises:
            Retryable: it is unknown whether a batch exists now. RequestFailed, Denied: none exists.
        """
        path, body = self.submission(file, mark)
        created = await self.client.send_once("POST", path, read_json, json=body)
        try:
            return self.batch(created)
        except RequestFailed as end:  # a batch was made, and its name is not known
            raise Retryable(end.reason) from None

    async def find(self, mark: str) -> Batch | None:
        """Return the batch that was submitted with a mark; None if the service has none."""
        query: str | None = ""
        for _ in range(PAGES):
            body = (await self.client.send("GET", f"/batches?{self.page_size}{query}", read_json)).value
            listed = body.get(self.listed) if isinstance(body, Mapping) else None
            entries = [entry for entry in listed or () if isinstance(entry, Mapping)]
            for entry in entries:
                if optional_text(entry.get("metadata"), self.marked) == mark:
                    return self.batch(entry)
            query = self.next_page(body, entries)
            if query is None:
                return None
        return None

    @abstractmethod
    def next_page(self, body: Any, entries: list[Mapping[str, Any]]) -> str | None:
        """Return the query of the next page of the list of batches; None after the last."""

    async def look(self, id: str) -> Batch:
        """Return the service's report on a batch."""
        return self.batch((await self.client.send("GET", f"{self.looked_at}{id}", read_json)).value)

    @abstractmethod
    def batch(self, body: Any) -> Batch:
        """Parse a report on a batch; one without a name raises RequestFailed."""

    @abstractmethod
    async def fetch(self, file: str, target: Path) -> None:
        """Download a file of answers or errors."""

    @abstractmethod
    def outcome(self, line: Any) -> BatchOutcome | None:
        """Parse one line of a downloaded file; None if its layout is unknown."""

    @abstractmethod
    async def delete(self, file: str) -> None:
        """Delete a file at the service; a missing one is no error."""

    async def response(self, request: Request, outcome: BatchOutcome, batch: str) -> Response:
        """Return the response to a request of a batch."""

        async def read() -> Response:
            try:
                served = {name: text for name, text in (("request", outcome.request), ("batch", batch)) if text}
                if outcome.status == 200:
                    return self._model.read_body(outcome.body, {"served": served})
                raise self.client.error(outcome.status or 500, _text(outcome.body), {})
            except Retryable as again:
                raise RequestFailed(again.reason) from None
            except Denied as denied:
                if denied.final:
                    raise UserError(as_reason(denied.reason, "service_refusal"), hint=denied.hint) from None
                raise RequestFailed(denied.reason) from None

        return await self._model.finish_answer(request, read(), share=self.share)


class BatchableModel(JsonModel):
    """A model whose service accepts files of requests. Arguments as `RemoteModel`."""

    @abstractmethod
    def batches(self) -> BatchInterface:
        """Return the service's batch interface; the caller starts and closes it.

        Raises:
            UserError: the model's settings rule batches out.
        """

    @abstractmethod
    def read_body(self, body: Any, about: dict[str, Any]) -> Response:
        """Parse a complete JSON reply; `about`: further fields of the response.

        Raises:
            Retryable, RequestFailed: the reply holds no answer.
        """

    async def ready(self, body: Any) -> bytes:
        """Return an encoded request as the body of one request of a batch."""
        return bytes(body)


def transfer_client(model: HttpModel, url: str) -> Client:
    """Return a client of a model's service with an hour per transfer."""
    patience = replace(model.client.patience, timeout_s=max(TRANSFER_S, model.patience.timeout_s))
    return Client(url, key=model.key, headers=model.headers, concurrency=2, patience=patience)


async def download(client: Client, path: str, target: Path) -> None:
    """Download the body of a reply to a file.

    Raises:
        RequestFailed: the service refuses it, or it is longer than `MAX_FILE_BYTES`.
    """

    async def read(response: aiohttp.ClientResponse, _began: float) -> None:
        size = 0
        with target.open("wb") as file:
            async for chunk in response.content.iter_any():
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise RequestFailed(Diagnostic("answers_file_too_large", most_gib=MAX_FILE_BYTES >> 30))
                file.write(chunk)

    await client.send("GET", path, read)


def _text(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body)
