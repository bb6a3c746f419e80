"""The scorer of a running service, with the methods of `Scorer`."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPException
from typing import Any

from codec_bench.apps.serving.items import AudioInput, BadItem, Item, QueueFull, Result, as_item, audio_bytes
from codec_bench.messages import as_reason, read
from codec_bench.messages.errors import UserError
from codec_bench.types import Score

AT_ONCE = 16
TRIES = 5
TIME_LIMIT_S = 600.0


class RemoteScorer:
    """A running service at `url`, with its token if it needs one."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self._url, self._token = url.rstrip("/"), token
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="score")
        self._lock = threading.Lock()
        metrics = self._call("GET", "/v1/metrics")["metrics"]
        self.protocols = {one["name"]: one["protocol"] for one in metrics}
        self.higher_is_better = {one["name"]: one["higher_is_better"] for one in metrics}

    def score(self, items: Iterable[Item | Mapping[str, Any]]) -> list[Result]:
        """Score items together; a bad item gets failed scores."""
        return list(self._threads.map(self._score_or_fail, items))

    def submit(self, item: Item | Mapping[str, Any]) -> Future[Result]:
        """Submit an item; the future gets its `Result`, or a `BadItem`."""
        return self._threads.submit(self._score, item)

    async def score_async(self, item: Item | Mapping[str, Any]) -> Result:
        """Score an item; raises BadItem or UserError."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._score, item)

    def reward(self, item: Item | Mapping[str, Any]) -> dict[str, Any]:
        """Return an item's `score` and metric values; raises BadItem."""
        return self._send("POST", "/v1/reward", as_item(item))

    def put_reference(self, id: str, audio: AudioInput) -> None:
        """Store a reference at the service; raises BadItem."""
        self._call("PUT", f"/v1/references/{urllib.parse.quote(id, safe='')}", audio_bytes(audio, "reference"))

    def close(self) -> None:
        """Close the connections."""
        self._threads.shutdown()

    def __enter__(self) -> RemoteScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _score(self, item: Item | Mapping[str, Any]) -> Result:
        """Score one item by the service."""
        reply = self._send("POST", "/v1/score", as_item(item))
        scores = {
            name: Score(
                one["value"],
                one["status"],
                one["reason"],
                one["protocol"],
                detail={} if one["flag"] is None else {"flag": read(one["flag"])},
            )
            for name, one in reply["scores"].items()
        }
        return Result(reply["id"], scores, reply["duration_s"], reply["seconds"])

    def _score_or_fail(self, item: Item | Mapping[str, Any]) -> Result:
        try:
            return self._score(item)
        except BadItem as error:
            scores = {name: Score.failed(error.message, protocol) for name, protocol in self.protocols.items()}
            return Result(item.id if isinstance(item, Item) else "", scores, None, 0.0, error.message)

    def _send(self, method: str, path: str, item: Item) -> dict[str, Any]:
        """Send an item with its audio as a multipart request; returns the JSON reply."""
        texts = {"id": item.id, "text": item.text, "language": item.language, "reference_id": item.reference_id}
        parts = {"item": json.dumps({name: text for name, text in texts.items() if text is not None}).encode()}
        parts["audio"] = audio_bytes(item.audio, "audio")
        if item.reference is not None:
            parts["reference"] = audio_bytes(item.reference, "reference")
        boundary = secrets.token_hex(16)
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="%s"\r\n\r\n'
        body = b"".join(b"%s%s\r\n" % ((head % name).encode(), value) for name, value in parts.items())
        return self._call(
            method, path, body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"
        )

    def _call(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/octet-stream"
    ) -> dict[str, Any]:
        """Send a request, retried while the queue is full; returns the JSON reply.

        Raises:
            BadItem, QueueFull, UserError: the service refuses the item, stays full, or cannot be reached.
        """
        headers = {"Content-Type": kind}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        for attempt in range(TRIES):
            request = urllib.request.Request(self._url + path, body, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as reply:
                    return dict(json.loads(reply.read() or b"{}"))
            except urllib.error.HTTPError as error:
                wrong = _error_of(error)
                if not isinstance(wrong, QueueFull) or attempt == TRIES - 1:
                    raise wrong from error
                time.sleep(0.1 * 2**attempt)
            except (OSError, HTTPException, ValueError) as error:
                raise UserError(
                    "service_unreachable", url=self._url, cause=error, hint="is codec-bench serve running there?"
                ) from error
        raise AssertionError


def _error_of(error: urllib.error.HTTPError) -> UserError:
    """Convert an HTTP error of the service to the exception of its code."""
    try:
        problem = json.loads(error.read())["error"]
        code, message = str(problem["code"]), str(problem["message"])
    except (ValueError, KeyError, TypeError):
        code, message = "http", f"status {error.code}"
    if error.code == 503:
        return QueueFull(as_reason(message, "service_refusal"))
    return BadItem(as_reason(message, "service_refusal"), code=code)
