"""The one way to a service over HTTP: sends requests, reads whole or streamed replies, and says what went wrong.

Conventions
    A status of 408, 409, 425, 429 or 5xx, a cut connection and a reply that cannot be read are tried again; 400, 413, 415
    and 422 mean that the service refuses this request; every other 4xx means that it refuses the caller.
    Whatever a service says is hostile text: what reaches a reason is one line without markup, keys and excess length.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from codec_bench.errors import MissingExtra
from codec_bench.models.keys import Key, check_headers, check_url, clean
from codec_bench.models.persistence import Again, Denied, GivenUp, Patience, Persistence, Reply

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
CONNECT_S = 15.0
# The longest reply that is read: an hour of speech as base64 of 16-bit samples at 24 kHz is 230 MB.
MAX_BYTES = 256 << 20
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated"}


class Client(Persistence):
    """A service at one address.

    Args:
        base_url: what every path is appended to.
        key: where its key is found.
        headers: sent with every request.
        concurrency: never more requests at once.
        patience, clock, sleep, rng: as `Persistence`.

    Raises:
        UserError: the address is none, or holds a key.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        concurrency: int = 16,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(concurrency, patience, clock=clock, sleep=sleep, rng=rng)
        self.base_url = check_url(base_url)
        self._key, self._headers = key or Key(), check_headers(headers or {})
        self._secrets: tuple[str, ...] = ()
        self._lanes: list[httpx.AsyncClient] = []
        self._free: list[httpx.AsyncClient] = []
        self._open_lane: Callable[[], httpx.AsyncClient] | None = None
        self._urls: dict[str, httpx.URL] = {}

    async def start(self) -> None:
        """Reads the key and gets ready to connect; sends nothing.

        Raises:
            UserError: the key's variable is not set.
            MissingExtra: httpx is not installed.
        """
        secret = self._key.read()
        self._secrets = (secret,) if secret else ()
        try:
            import httpx
        except ImportError as error:
            raise MissingExtra("a model behind an HTTP endpoint", "httpx", "api") from error
        options = {
            "headers": {"User-Agent": "codec-bench", **self._headers, **self._key.headers()},
            "timeout": httpx.Timeout(self.patience.timeout_s, connect=CONNECT_S),
            "limits": httpx.Limits(max_connections=1, keepalive_expiry=30.0),
            "verify": httpx.create_ssl_context(),  # made once: it reads every certificate there is
        }
        # A client for each request in flight: the pool of one client looks through all connections at every request.
        self._open_lane = lambda: httpx.AsyncClient(**options)

    async def close(self) -> None:
        """Closes every connection."""
        self._open_lane = None
        self._free = []
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            await lane.aclose()

    async def send(
        self, method: str, path: str, read: Callable[[httpx.Response, float], Awaitable[T]], **body: Any
    ) -> Reply[T]:
        """Sends one request, as often as it takes.

        Args:
            method, path: `POST`, `/chat/completions`.
            read: turns a reply of status 2xx into a value, and is told when the attempt began (`time.monotonic`); what it
                raises counts as for `Persistence.insist`.
            body: `json=`, `content=`, `data=`, `files=`, `headers=`, as httpx takes them.

        Raises:
            GivenUp: no answer.
            UserError: the first request of all was denied, or nobody answered it.
        """
        if self._open_lane is None:
            raise RuntimeError("the client was not started")
        url = self._urls.get(path)
        if url is None:  # taking an address apart costs more than a small request
            import httpx

            url = self._urls[path] = httpx.URL(self.base_url + path)
        return await self.insist(lambda: self._attempt(method, url, read, body))

    def clean(self, text: str) -> str:
        """What the service said, fit for a reason."""
        return clean(text, self._secrets)

    async def _attempt(
        self, method: str, url: httpx.URL, read: Callable[[httpx.Response, float], Awaitable[T]], body: dict[str, Any]
    ) -> T:
        import httpx

        began = time.monotonic()
        if not self._free:
            self._free.append(self._open_lane())
            self._lanes += self._free
        lane = self._free.pop()
        # httpx keeps the request, and with it the key, in its errors: none is chained.
        try:
            async with lane.stream(method, url, **body) as response:
                self._heed_limits(response.headers)
                if response.status_code >= 300:
                    raise self._judge(response, (await read_bytes(response)).decode("utf-8", "replace"))
                return await read(response, began)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Again(f"nothing answers at {self.base_url}: {self.clean(str(error))}", lost=True) from None
        except httpx.TimeoutException:
            raise Again(f"no whole answer within {self.patience.timeout_s:g} s", slow=True) from None
        except httpx.TransportError as error:
            said = self.clean(str(error)) or type(error).__name__
            raise Again(f"the connection to {self.base_url} broke: {said}") from None
        except (httpx.InvalidURL, httpx.DecodingError) as error:
            raise Again(f"the reply of {self.base_url} cannot be read: {self.clean(str(error))}") from None
        except (Again, GivenUp) as trouble:  # what the service repeated of the request must not reach the record
            trouble.reason = self.clean(trouble.reason)
            raise
        finally:
            self._free.append(lane)

    def _judge(self, response: httpx.Response, text: str) -> Exception:
        """What a reply that is not a success means."""
        status = response.status_code
        said, codes = error_of(text)
        said = self.clean(said)
        reason = f"{self.base_url} answered {status}" + (f": {said}" if said else "")
        if status in (400, 413, 415, 422) and not any("api_key" in code.lower() for code in codes):
            return GivenUp(reason, refused=True)
        if codes & _QUOTA:
            return Denied(reason, "the account has no credit left or is not active")
        if status in (408, 409, 425, 429) or status >= 500:
            return Again(reason, wait_s=wait_of(response.headers), crowded=status in (429, 503, 529))
        return Denied(reason, self._advice(status, response.headers.get("location")))

    def _advice(self, status: int, location: str | None) -> str:
        if location is not None:
            return f"it sends callers to {clean(location)}; give that address as base_url"
        if status == 404:
            return f"is the model's name right, and base_url ({self.base_url})?"
        if self._key.env is None:
            return "it wants a key: name the environment variable that holds it with key_env=NAME"
        return f"is the key in the environment variable {self._key.env} the right one, and may it use this model?"

    def _heed_limits(self, headers: Mapping[str, str]) -> None:
        for kind in ("requests", "tokens"):
            if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0":
                reset = parse_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
                if reset:
                    self.gate.close_for(min(reset, self.patience.throttled_s))


def parse_duration(text: str) -> float | None:
    """Seconds of `1s`, `6m0s`, `20ms` or a bare number; None where it is none of them."""
    text = text.strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        parts = _DURATION.findall(text)
        return sum(float(n) * _SECONDS[unit] for n, unit in parts) if parts else None


def wait_of(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as `retry-after-ms` or `Retry-After` say (seconds or a date, RFC 9110 10.2.3), or None."""
    milliseconds = parse_duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000.0
    said = headers.get("retry-after", "")
    seconds = parse_duration(said)
    if seconds is not None or not said:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def error_of(text: str) -> tuple[str, set[str]]:
    """The message in an error's body, whatever its layout, and the codes that stand beside it."""
    try:
        body = json.loads(text)
    except ValueError:
        return text, set()
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return text, set()
    inner = body.get("error") if isinstance(body.get("error"), dict) else body
    details = [d for d in inner.get("details") or [] if isinstance(d, dict)] if isinstance(inner, dict) else []
    codes = {str(d[key]) for d in [inner, *details] for key in ("code", "type", "reason", "status") if d.get(key)}
    for key in ("message", "detail", "error", "msg"):
        if inner.get(key):
            said = inner[key]
            return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), codes
    return text, codes


async def parts_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it comes in.

    Raises:
        GivenUp: it is longer than any answer may be.
    """
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BYTES:
            raise GivenUp(f"the reply is longer than {MAX_BYTES >> 20} MiB")
        yield part


async def read_bytes(response: httpx.Response) -> bytes:
    """The whole body.

    Raises:
        GivenUp: it is longer than any answer may be.
    """
    return b"".join([part async for part in parts_of(response)])


async def read_json(response: httpx.Response, _began: float = 0.0) -> Any:
    """The body as JSON; fits `Client.send`.

    Raises:
        Again: it is not JSON (a proxy's page, a cut body).
    """
    body = await read_bytes(response)
    try:
        return json.loads(body)
    except ValueError:
        kind = response.headers.get("content-type", "no content type")
        said = clean(body.decode("utf-8", "replace")) or "nothing"
        raise Again(f"expected JSON, got {clean(kind)}: {said}") from None


__all__ = [
    "Client",
    "error_of",
    "parse_duration",
    "parts_of",
    "read_bytes",
    "read_json",
    "wait_of",
]
