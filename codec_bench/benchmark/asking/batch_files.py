"""Local files of batches: the next requests, and the answers of ended batches."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codec_bench.messages import as_reason
from codec_bench.messages.errors import UserError
from codec_bench.models.endpoints.batches import BatchInterface, BatchOutcome
from codec_bench.models.endpoints.json_text import parse_json
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.retries import ALIKE, RequestFailed
from codec_bench.types import Request

_CHANGING = re.compile(r"[0-9a-f-]{8,}|\d+")


def custom_id(request: Request, request_part: int = 0) -> str:
    """The same id of a request's part in every batch: hexadecimal digits and a number.

    Args:
        request_part: number of the prompt, if the request is sent as several.
    """
    return f"{hashlib.blake2b(request.id.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}-{request_part}"


class RequestFile:
    """The requests of the next batch."""

    def __init__(self, interface: BatchInterface, path: Path) -> None:
        self._interface, self._path = interface, path
        self.begin()

    def begin(self) -> None:
        """Create an empty file in place of the submitted one, and forget its keys."""
        self.keys: list[str] = []
        self._size = 0
        self._file = self._path.open("wb")

    def fits(self, bodies: Sequence[bytes]) -> bool:
        """Whether bodies stay in the limits of one file; an empty file accepts any."""
        count, size = len(self.keys) + len(bodies), self._size + sum(map(len, bodies))
        return not self.keys or (count <= self._interface.most_requests and size <= self._interface.most_bytes)

    def add(self, key: str, body: bytes) -> None:
        """Append a request to the file as one line.

        Args:
            key: the request's id in the batch, by `custom_id`.
            body: its JSON body, as the model's API takes it.
        """
        line = self._interface.line(key, body)
        self._file.write(line)
        self._size += len(line)
        self.keys.append(key)

    def close(self) -> Path:
        """Close the complete file and return its path."""
        self._file.close()
        return self._path


class AnswerFiles:
    """The answers of a batch that has ended, fetched on first use.

    Args:
        entry: of the batch, in the record.

    Attributes:
        batch: the service's name of the batch.
    """

    def __init__(self, interface: BatchInterface, entry: dict[str, Any], folder: Path) -> None:
        self._interface, self._entry, self._folder = interface, entry, folder
        self._places: dict[str, tuple[Path, int]] | None = None
        self._keys = set(entry["keys"])
        self.batch = str(entry["id"])

    async def outcomes(self, request: Request) -> list[BatchOutcome] | None:
        """The outcomes of a request's parts, in order; None if the batch ended before one.

        A long prompt is sent as several parts. The first call downloads the files.

        Raises:
            UserError: the files cannot be fetched, or every request was refused with the same message.
        """
        if self._places is None:
            self._places = await self._fetched()
        outcomes: list[BatchOutcome] = []
        while (key := custom_id(request, len(outcomes))) in self._keys:
            outcome = self._read(*self._places[key]) if key in self._places else None
            if outcome is None or outcome.status is None:
                return None
            outcomes.append(outcome)
        return outcomes

    async def _fetched(self) -> dict[str, tuple[Path, int]]:
        """Download the answers; return the file and byte offset of each line by its key.

        Deletes the file of requests at the service.
        """
        places: dict[str, tuple[Path, int]] = {}
        answered, words = 0, set()
        for number, name in enumerate(self._entry["files"]):
            path = self._folder / f"{self._entry['mark']}-{number}.jsonl"
            try:
                await self._interface.fetch(name, path)
            except RequestFailed as end:
                raise UserError(
                    as_reason(end.reason, "service_refusal"), hint="the same command fetches the answers again"
                ) from None
            at = 0
            with path.open("rb") as lines:
                for line in lines:
                    outcome = self._outcome(line)
                    if outcome is not None:
                        places[outcome.key] = (path, at)
                        answered += outcome.status in (200, None)
                        words.add(_CHANGING.sub("#", json.dumps(outcome.body)))
                    at += len(line)
        if not answered and len(places) >= ALIKE and len(words) == 1:
            self._entry |= {"state": "failed", "files": []}
            raise UserError(
                "batch_refused_alike",
                requests=len(places),
                batch=self.batch,
                message=clean(words.pop()),
                hint="is a setting of the model wrong? The same command submits the questions again",
            )
        await self._interface.delete(self._entry["file"])
        return places

    def _read(self, path: Path, at: int) -> BatchOutcome | None:
        with path.open("rb") as lines:
            lines.seek(at)
            return self._outcome(lines.readline())

    def _outcome(self, line: bytes) -> BatchOutcome | None:
        try:
            return self._interface.outcome(parse_json(line))
        except ValueError:
            return None
