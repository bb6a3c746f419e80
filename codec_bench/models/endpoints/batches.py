"""Batch interfaces: many requests in one file, which a service answers within a day at half the price.

Conventions
    A batch has a mark: a random word that is in the record of the run before the batch is submitted, and in what the
    service keeps of the batch. A submission whose outcome is not known is not repeated before the batches of the
    service were looked through for its mark. Every request of a batch has a key. What became of it is read by the rules
    that hold for single requests: a status of HTTP says whether it was answered, refused or failed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from codec_bench.errors import UserError
from codec_bench.models.endpoints.bodies import named
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.remote import HttpModel, JsonModel
from codec_bench.models.endpoints.replies import read_json
from codec_bench.models.endpoints.retries import Again, Denied, RequestFailed
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    import aiohttp

State = Literal["running", "ended", "expired", "cancelled", "failed"]
TRANSFER_S = 3600.0
"""Time limit of one transfer of a file, in seconds."""
PAGES = 20
MAX_FILE_BYTES = 8 << 30
"""The longest file of answers that is read: 50,000 spoken answers of 6 s have as much."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a service says of a batch.

    Args:
        id: its name at the service.
        state: `running`; `ended`; `expired` or `cancelled`, when only a part was answered; `failed`, when nothing was.
        said: why it failed, in the words of the service.
        files: the names of the files with answers and errors.
    """

    id: str
    state: State
    message: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request of a batch.

    Args:
        key: of the request.
        status: of HTTP; None if the service did not come to it before the batch ended.
        body: the reply as JSON. request: the service's id of the request, or None.
    """

    key: str
    status: int | None
    body: Any
    request: str | None = None


class BatchInterface(ABC):
    """The batch interface of the service of one model.

    Args:
        model: the model; its URL, key and headers are used.

    Attributes:
        share: of the model's prices that an answer costs.
        most_requests, most_bytes: the most requests and bytes in one file.
        client: sends everything but the submission as often as is necessary.
        page_size, listed, marked, looked_at: the query for a page of the list of batches, the names in it of the
            batches and of their mark, and the path of one batch.
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
        """As `Client.start`."""
        await self.client.start()

    async def close(self) -> None:
        """Closes every connection."""
        await self.client.close()

    @abstractmethod
    def line(self, key: str, body: bytes) -> bytes:
        """One line of the file: a request under a key."""

    @abstractmethod
    async def upload(self, file: Path, mark: str) -> str:
        """Sends a file of requests; returns its name at the service."""

    @abstractmethod
    def submission(self, file: str, mark: str) -> tuple[str, dict[str, Any]]:
        """Where a batch of an uploaded file is requested, and the body of the request."""

    async def submit(self, file: str, mark: str) -> Batch:
        """Makes a batch of an uploaded file.

        Raises:
            Again: it is not known whether there is a batch now. RequestFailed, Denied: there is none.
        """
        path, body = self.submission(file, mark)
        created = await self.client.send_once("POST", path, read_json, json=body)
        try:
            return self.batch(created)
        except RequestFailed as end:  # a batch was made, and its name is not known
            raise Again(end.reason) from None

    async def find(self, mark: str) -> Batch | None:
        """The batch with a mark; None if the service has none."""
        query: str | None = ""
        for _ in range(PAGES):
            body = (await self.client.send("GET", f"/batches?{self.page_size}{query}", read_json)).value
            listed = body.get(self.listed) if isinstance(body, Mapping) else None
            entries = [entry for entry in listed or () if isinstance(entry, Mapping)]
            for entry in entries:
                if named(entry.get("metadata"), self.marked) == mark:
                    return self.batch(entry)
            query = self.next_page(body, entries)
            if query is None:
                return None
        return None

    @abstractmethod
    def next_page(self, body: Any, entries: list[Mapping[str, Any]]) -> str | None:
        """What requests the page after this one of the list of batches; None if it was the last."""

    async def look(self, id: str) -> Batch:
        """What the service says of a batch."""
        return self.batch((await self.client.send("GET", f"{self.looked_at}{id}", read_json)).value)

    @abstractmethod
    def batch(self, body: Any) -> Batch:
        """What the service's description of a batch says.

        Raises:
            RequestFailed: it has no name.
        """

    @abstractmethod
    async def fetch(self, file: str, target: Path) -> None:
        """Writes a file of answers or errors to a file of this machine."""

    @abstractmethod
    def outcome(self, line: Any) -> Outcome | None:
        """What one line of a fetched file says; None if it is laid out in another way."""

    @abstractmethod
    async def delete(self, file: str) -> None:
        """Deletes a file at the service; one that is gone already is no error."""

    async def response(self, request: Request, outcome: Outcome, batch: str) -> Response:
        """The answer to a request.

        Args:
            request: what was asked. outcome: what became of it. batch: the service's name of the batch.

        Raises:
            UserError: every other request would fail too, because the account or the key is not valid any more.
        """

        async def read() -> Response:
            try:
                served = {name: text for name, text in (("request", outcome.request), ("batch", batch)) if text}
                if outcome.status == 200:
                    return self._model.read_body(outcome.body, {"served": served})
                raise self.client.error(outcome.status or 500, _text(outcome.body), {})
            except Again as again:
                raise RequestFailed(again.reason) from None
            except Denied as denied:
                if denied.final:
                    raise UserError(denied.reason, hint=denied.hint) from None
                raise RequestFailed(denied.reason) from None

        return await self._model.concluded(request, read(), share=self.share)


class BatchableModel(JsonModel):
    """A model whose service takes many requests in one file. Arguments as `RemoteModel`."""

    @abstractmethod
    def batches(self) -> BatchInterface:
        """The batch interface of the model's service; the caller starts and closes it.

        Raises:
            UserError: the model cannot be asked in batches as it is set.
        """

    @abstractmethod
    def read_body(self, body: Any, about: dict[str, Any]) -> Response:
        """The answer in a complete reply that is JSON.

        Args:
            body: the reply. about: further fields of the response.

        Raises:
            Again, RequestFailed: the reply holds no answer.
        """

    async def ready(self, body: Any) -> bytes:
        """What `encode` made, as the body of one request of a batch."""
        return bytes(body)


def transfer_client(model: HttpModel, url: str) -> Client:
    """A client of a model's service that has an hour for each transfer."""
    patience = replace(model.client.patience, timeout_s=max(TRANSFER_S, model.patience.timeout_s))
    return Client(url, key=model.key, headers=model.headers, concurrency=2, patience=patience)


async def download(client: Client, path: str, target: Path) -> None:
    """Writes the body of a reply to a file.

    Raises:
        RequestFailed: the service does not give it, or it is longer than `MAX_FILE_BYTES`.
    """

    async def read(response: aiohttp.ClientResponse, _began: float) -> None:
        size = 0
        with target.open("wb") as file:
            async for chunk in response.content.iter_any():
                size += len(chunk)
                if size > MAX_FILE_BYTES:
                    raise RequestFailed(f"the file of answers is longer than {MAX_FILE_BYTES >> 30} GiB")
                file.write(chunk)

    await client.send("GET", path, read)


def _text(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body)
