"""The HTTP client of endpoints: sends requests, reads replies, explains errors.

Retried: status 408, 409, 425, 429, 5xx, a broken connection, an unreadable reply. 400, 413, 415 and 422 refuse the
request; every other 4xx refuses the caller. Waits come from headers, else from the body (`error_texts`). Replies are
untrusted: a reason quotes one line of limited length, without markup and keys.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, optional_package
from codec_bench.models.endpoints.error_texts import is_daily, most_at_once, parse_duration, wait_of
from codec_bench.models.endpoints.keys import ApiKey, check_headers, check_url, clean, clean_reason
from codec_bench.models.endpoints.replies import error_of, read_bytes, read_json
from codec_bench.models.endpoints.retries import (
    Denied,
    Patience,
    Reply,
    RequestFailed,
    Retryable,
    RetryPolicy,
    is_crowded,
    is_temporary,
)

if TYPE_CHECKING:
    import ssl

    import aiohttp
    import yarl

T = TypeVar("T")
LOOK_S = 5.0
CONNECT_S = 15.0
MAX_HEADER = 64 << 10
_QUOTA = {
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated", "Arrearage",
    "quota_exceeded", "insufficient_user_quota",
}  # fmt: skip
_REQUEST_IDS = ("x-request-id", "request-id", "x-dashscope-request-id", "apim-request-id")


class Client(RetryPolicy):
    """A client of one service.

    Args:
        patience, timing: as `RetryPolicy`.

    Raises:
        UserError: the URL is not valid or holds a key, or a header holds a key.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: ApiKey | None = None,
        headers: Mapping[str, str] | None = None,
        concurrency: int = 16,
        patience: Patience | None = None,
        **timing: Any,
    ) -> None:
        super().__init__(concurrency, patience, **timing)
        self.base_url = check_url(base_url)
        self._key, self._headers = key or ApiKey(), check_headers(headers or {})
        self._secrets: tuple[str, ...] = ()
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, yarl.URL] = {}

    async def start(self) -> None:
        """Read the key and prepare connections; send nothing.

        Raises:
            UserError: the variable that should hold the key is not set.
            MissingExtra: aiohttp is not installed.
        """
        secret = self._key.read()
        self._secrets = (secret,) if secret else ()
        optional_package("aiohttp", MissingExtra("http_endpoint", "aiohttp", "api"))
        headers = {"User-Agent": "codec-bench", **self._headers, **self._key.headers()}
        self._session = open_session(self.base_url, headers, self.patience.timeout_s)

    async def close(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(
        self, method: str, path: str, read: Callable[[aiohttp.ClientResponse, float], Awaitable[T]], **body: Any
    ) -> Reply[T]:
        """Send one request, again if necessary.

        Args:
            method, path: for example `POST` and `/chat/completions`.
            read: reads a 2xx reply from the reply and the start of the attempt (`time.monotonic`); raises as an attempt
                of `RetryPolicy.run` does.
            body: `json=` or `content=` (bytes, or the path of a file), or the form fields `data=` and files `files=`
                (file name, bytes or path, type); `headers=`.

        Raises:
            RequestFailed: the service gave no answer.
            UserError: the first request of all was denied, or the service could not be reached.
        """
        url = self._url(path)
        request_id: list[str] = []

        async def noting(response: aiohttp.ClientResponse, began: float) -> T:
            named = (response.headers.get(name) for name in _REQUEST_IDS)
            request_id[:] = [clean(header, self._secrets) for header in named if header][:1]
            return await read(response, began)

        reply = await self.run(lambda: self._attempt(method, url, noting, body))
        return replace(reply, request=request_id[0] if request_id else None)

    async def send_once(
        self, method: str, path: str, read: Callable[[aiohttp.ClientResponse, float], Awaitable[T]], **body: Any
    ) -> T:
        """Send a request without retries, because a repetition would do harm; see `send`.

        Raises:
            Retryable: there is no answer; the service may have acted on the request all the same.
            RequestFailed, Denied: the service did not act on the request.
        """
        try:
            async with asyncio.timeout(self.patience.timeout_s):
                return await self._attempt(method, self._url(path), read, body)
        except TimeoutError:
            raise Retryable(Diagnostic("no_complete_answer", limit_s=self.patience.timeout_s), slow=True) from None

    def _url(self, path: str) -> yarl.URL:
        """Return the parsed URL of a path, parsed once."""
        url = self._urls.get(path)
        if url is None:
            import yarl

            url = self._urls[path] = yarl.URL(self.base_url + path)
        return url

    async def look(self, url: str) -> Any:
        """Return the JSON at a URL, or None. Tried once, for a few seconds."""
        import aiohttp

        try:
            async with asyncio.timeout(LOOK_S), self._open().get(url, allow_redirects=False) as response:
                return await read_json(response) if response.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, Retryable, RequestFailed):
            return None

    def clean(self, text: str) -> str:
        """Return a text of the service on one line, without markup and the key."""
        return clean(text, self._secrets)

    async def _attempt(
        self,
        method: str,
        url: yarl.URL,
        read: Callable[[aiohttp.ClientResponse, float], Awaitable[T]],
        body: Mapping[str, Any],
    ) -> T:
        """Send a request once; return what `read` makes of a 2xx reply."""
        import aiohttp

        began = time.monotonic()
        # The errors of aiohttp hold the request, and with it the key. So none of them is chained.
        try:
            with sent_by(body) as sent:
                async with self._open().request(method, url, allow_redirects=False, **sent) as response:
                    self._heed_limits(response.headers)
                    if response.status >= 300:
                        text = (await read_bytes(response)).decode("utf-8", "replace")
                        raise self.error(response.status, text, response.headers, url)
                    return await read(response, began)
        except aiohttp.ClientError as error:
            raise self._connection_error(error) from None
        except (Retryable, RequestFailed) as trouble:  # the service may have repeated the request and its key
            trouble.reason = clean_reason(trouble.reason, self._secrets)
            raise

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client was not started, or was closed")
        return self._session

    def _connection_error(self, error: aiohttp.ClientError) -> Retryable:
        """Convert a connection error to a Retryable with its reason."""
        import aiohttp
        from aiohttp.http_exceptions import ContentEncodingError

        message = self.clean(str(error)) or type(error).__name__
        if isinstance(error, (aiohttp.ClientConnectorSSLError, aiohttp.ClientConnectorCertificateError)):
            return Retryable(
                Diagnostic("no_secure_connection", url=self.base_url, cause=message),
                disconnected=True,
                hint=_of_tls(message),
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            message = self.clean(error.os_error.strerror or str(error.os_error))
            return Retryable(Diagnostic("nothing_answers", url=self.base_url, cause=message), disconnected=True)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Retryable(Diagnostic("no_connection", url=self.base_url, limit_s=CONNECT_S), disconnected=True)
        if isinstance(error, aiohttp.ServerTimeoutError):
            return Retryable(Diagnostic("no_complete_answer", limit_s=self.patience.timeout_s), slow=True)
        if isinstance(error, (aiohttp.ClientResponseError, aiohttp.InvalidURL)) or isinstance(
            error.__cause__, ContentEncodingError
        ):
            return Retryable(Diagnostic("reply_unreadable", url=self.base_url, cause=message))
        return Retryable(Diagnostic("connection_broke", url=self.base_url, cause=message))

    def error(
        self, status: int, text: str, headers: Mapping[str, str], url: yarl.URL | None = None
    ) -> Retryable | RequestFailed | Denied:
        """Convert an HTTP error reply to an exception.

        Args:
            text: body of the reply.

        Returns:
            `Retryable` for temporary errors, `RequestFailed` if this request is wrong, `Denied` if all are.
        """
        message, codes = error_of(text)
        message = self.clean(message).removeprefix(f"{status}: ")
        reason = Diagnostic("service_status", url=self.base_url, status=status, message=message)
        if codes & _QUOTA:
            return Denied(reason, "the account has no credit left or is not active", final=True)
        if any("api_key" in code.lower() for code in codes):
            return Denied(reason, self._advice(401), final=True)
        if status in (400, 413, 415, 422):
            return RequestFailed(reason, refused=True, message=text)
        if is_temporary(status):
            crowded = is_crowded(status)
            return Retryable(reason, wait_s=wait_of(headers, text), crowded=crowded, daily=crowded and is_daily(text))
        return Denied(reason, self._advice(status, headers.get("location"), url), final=status in (401, 402))

    def _advice(self, status: int, location: str | None = None, url: yarl.URL | None = None) -> str:
        """Return a hint for a denied request: at a redirect, model name, base_url or key."""
        if location is not None:
            return self._of_redirect(urljoin(str(url or self.base_url), location), url)
        if status == 404:
            return f"is the model's name right, and is base_url ({self.base_url}) right?{self._of_path(url)}"
        if self._key.env is None:
            return "the service needs a key: name the environment variable that holds it with key_env=NAME"
        return f"check the key in the environment variable {self._key.env}, and that it may use this model"

    def _of_redirect(self, target: str, url: yarl.URL | None) -> str:
        """Return a hint at the base_url to which a service redirects."""
        path = str(url).removeprefix(self.base_url) if url is not None else ""
        to = f"the service redirects to {self.clean(target)}"
        if path and target.endswith(path):
            return f"{to}; give {self.clean(target.removesuffix(path))} as base_url"
        return f"{to}; is base_url ({self.base_url}) right?"

    def _of_path(self, url: yarl.URL | None) -> str:
        """Return a hint for a 404 at a likely mistake in base_url, or an empty text.

        The mistakes: it ends with the path that every request adds, or it has no path, such as a version.
        """
        path = str(url).removeprefix(self.base_url) if url is not None else ""
        if path and self.base_url.endswith(path):
            return f" It ends before {path}, which every request adds: base_url={self.base_url.removesuffix(path)}"
        return "" if urlsplit(self.base_url).path else f" Most services have a version in it: {self.base_url}/v1"

    def _heed_limits(self, headers: Mapping[str, str]) -> None:
        """Limit or pause requests by the rate limits in a reply's headers."""
        most = most_at_once(headers)
        if most is not None:
            self.gate.lower_ceiling(most)
        for kind in ("requests", "tokens"):
            if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0":
                reset = parse_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
                if reset:
                    self.gate.close_for(min(reset, self.patience.throttled_s))


def open_session(url: str, headers: Mapping[str, str], timeout_s: float) -> aiohttp.ClientSession:
    """Open an HTTP session; `timeout_s` is the longest time without a received byte."""
    import aiohttp

    certificates = _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=timeout_s),
        connector=aiohttp.TCPConnector(limit=0, ssl=certificates, keepalive_timeout=30.0),  # the gate limits them
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
        proxy=_proxy_to(url),  # aiohttp would look for it in a thread at every request
    )


@contextmanager
def sent_by(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield aiohttp's arguments for one attempt with `body` of `Client.send`.

    Files are opened anew, because aiohttp closes those that it has sent.
    """
    import aiohttp

    sent = {name: body[name] for name in ("json", "headers") if name in body}
    with ExitStack() as opened:
        if "content" in body:
            content = body["content"]
            sent["data"] = opened.enter_context(content.open("rb")) if isinstance(content, Path) else content
        elif "files" in body:
            form = sent["data"] = aiohttp.FormData()
            for name, value in body.get("data", {}).items():
                form.add_field(name, value)
            for name, (called, content, kind) in body["files"].items():
                data = opened.enter_context(content.open("rb")) if isinstance(content, Path) else content
                form.add_field(name, data, filename=called, content_type=kind)
        yield sent


def _of_tls(message: str) -> str:
    if "certificate" in message.lower():
        return "the certificate is not trusted here: name the file of the authority that signed it in SSL_CERT_FILE"
    return "does the service speak TLS? If it does not, base_url begins with http://"


def _proxy_to(url: str) -> str | None:
    """Return the proxy that the environment sets for a URL, or None."""
    parts = urlsplit(url)
    if proxy_bypass(parts.netloc):
        return None
    named = getproxies()
    return named.get(parts.scheme) or named.get("all")


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Load TLS certificates: those of a file or folder, else certifi's. Cached."""
    import ssl

    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())
