"""What all models behind an address share: settings, limits on audio, prices, and one response whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
import secrets
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from codec_bench.errors import AudioError, UserError
from codec_bench.models.accounts import Prices
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.batching import refusal
from codec_bench.models.client import Client
from codec_bench.models.keys import Key, clean
from codec_bench.models.persistence import GivenUp, Patience
from codec_bench.models.sound import Base64
from codec_bench.models.windows import Heard, hear, join
from codec_bench.types import Request, Response

T = TypeVar("T")
EMPTY = "the answer is empty"
JSON = {"Content-Type": "application/json"}


class RemoteModel(Model):
    """A model behind an address.

    Args:
        info: the facts.
        base_url: where it is; what every request's path is appended to.
        model: its name there.
        key_env: name of the environment variable that holds the key, or None where none is needed.
        key_header: the header that carries the key; `Authorization` carries it as a bearer token.
        headers: sent with every request; none of them a key.
        parameters: of the generation, as the service names them; a request's own go before them.
        rename: names that the service has for a request's parameters, such as `{max_tokens: max_completion_tokens}`; null
            leaves a parameter out.
        rate_hz: rate of the audio that is sent, in Hz.
        concurrency: never more requests at once at the service; how many of them it takes is found by trying. As many again
            are made ready meanwhile, so that no place waits for sounds to be read and coded.
        timeout_s: limit for one attempt. attempts: at most so many for one request.
        prices: US dollars per million tokens, `{input, output, audio_input, audio_output}`; unknown ones are left out.

    Raises:
        UserError: an option does not fit, or one of them holds a key.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        base_url: str | None = None,
        model: str,
        key_env: str | None = None,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        rename: Mapping[str, str | None] | None = None,
        rate_hz: int = 16_000,
        concurrency: int = 16,
        timeout_s: float = 300.0,
        attempts: int = 5,
        prices: Mapping[str, float] | None = None,
    ) -> None:
        if base_url is None:
            raise UserError(
                f"the model '{info.name}' needs 'base_url'", hint=f"--set {info.name}.base_url=http://localhost:8000/v1"
            )
        for name, value, least in (("concurrency", concurrency, 1), ("timeout_s", timeout_s, 1e-3), ("attempts", attempts, 1), ("rate_hz", rate_hz, 1000)):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < least:
                raise UserError(
                    f"the model '{info.name}' has {name}={value!r}; expected a number of at least {least:g}"
                )
        self.info, self.concurrency, self.rate_hz = info, 2 * int(concurrency), int(rate_hz)
        self.ceiling = int(concurrency)
        self.model, self.parameters, self.rename = model, dict(parameters or {}), dict(rename or {})
        self.prices = Prices.parse(prices)
        self.patience = Patience(attempts=int(attempts), timeout_s=float(timeout_s))
        self.key, self.headers, self.base_url = Key(key_env, key_header), dict(headers or {}), str(base_url)
        self.connect()

    def connect(self) -> None:
        """Makes the client."""
        self.client = Client(
            self.base_url,
            key=self.key,
            headers=self.headers,
            concurrency=self.ceiling,
            patience=self.patience,
        )

    @property
    def identity(self) -> Mapping[str, Any]:
        """The address, the model's name there, and every setting that changes an answer."""
        return {
            "kind": type(self).__name__,
            "base_url": self.base_url.rstrip("/"),
            "model": self.model,
            "parameters": self.parameters,
            "rename": self.rename,
            "headers": self.headers,
            "rate_hz": self.rate_hz,
            "limit_s": self.info.limit_s,
            "window_s": self.info.window_s,
            **self.settings(),
        }

    def settings(self) -> Mapping[str, Any]:
        """What else changes an answer of this kind of model."""
        return {}

    async def start(self) -> None:
        """Reads the key and gets ready to connect.

        Raises:
            UserError: the key's variable is not set.
            MissingExtra: a package that connects is not installed.
        """
        await self.client.start()

    async def close(self) -> None:
        """Closes every connection."""
        await self.client.close()

    async def ask(self, request: Request) -> Response:
        """One answer.

        Raises:
            UserError: the very first request shows that the key, the address or the model's name is wrong.
        """
        refusal = self.check(request)
        if refusal is not None:
            return Response.refused(refusal, attempts=0)
        heard, body = await asyncio.to_thread(self._prepared, request)
        if isinstance(heard, Response):
            return heard
        answers: list[Response] = []
        for part in heard.requests:
            if answers:
                body = await asyncio.to_thread(self.encode, part)
            answers.append(self._priced(await self._attempted(part, body)))
            if answers[-1].status != "ok":
                break
        try:
            return join(answers, heard)
        except UserError as error:
            return Response.failed(error.message)

    def check(self, request: Request) -> str | None:
        """Why the model does not take a request, or None."""
        return refusal(request, self.info)

    @abstractmethod
    def encode(self, request: Request) -> Any:
        """What is sent for a request whose sounds are one channel at `rate_hz`; called in a thread, once for all attempts.

        Raises:
            UserError: the model's settings do not fit together; ends the run.
        """

    @abstractmethod
    async def answer(self, request: Request, body: Any) -> Response:
        """One answer to a request, of which `body` is what `encode` made.

        Raises:
            GivenUp: there is none.
            UserError: an answer's audio cannot be read, or (as `ask`) nothing can be asked at all.
        """

    def named_parameters(self, request: Request) -> dict[str, Any]:
        """The generation's parameters as the service names them: the model's own, then the request's."""
        given = {self.rename.get(k, k): v for k, v in request.parameters.items() if v is not None}
        return {k: v for k, v in {**self.parameters, **given}.items() if k is not None}

    def _prepared(self, request: Request) -> tuple[Heard | Response, Any]:
        try:
            heard = hear(request, self.info, self.rate_hz)
        except UserError as error:
            return Response.failed(error.message, attempts=0), None
        return heard, self.encode(heard.requests[0])

    async def _attempted(self, request: Request, body: Any) -> Response:
        try:
            return await self.answer(request, body)
        except GivenUp as end:
            make = Response.refused if end.refused else Response.failed
            return make(end.reason, text=end.text, attempts=end.attempts)
        except AudioError as error:
            return Response.failed(error.message)

    def _priced(self, response: Response) -> Response:
        cost = self.prices.cost(response.usage)
        return response if cost is None else replace(response, usage={**response.usage, "cost_usd": cost})


def json_bytes(body: Any) -> bytes:
    """A body as JSON.

    Sounds in base64 are put in afterwards: they need no escaping, and looking for what does takes longer than coding them.
    """
    coded: dict[str, bytes] = {}
    mark = secrets.token_hex(16)

    def without_sounds(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: without_sounds(value) for key, value in part.items()}
        if isinstance(part, (list, tuple)):
            return [without_sounds(value) for value in part]
        if isinstance(part, Base64):
            coded[f"{mark}{len(coded)}."] = part.encode("ascii")
            return next(reversed(coded))
        return part

    text = json.dumps(without_sounds(body), ensure_ascii=False).encode("utf-8", "replace")
    pieces = []
    for name, sound in coded.items():
        before, _, text = text.partition(name.encode())
        pieces += [before, sound]
    return b"".join([*pieces, text])


def understood(read: Callable[[Any], T], body: Any, what: str = "reply") -> T:
    """What a reply of valid JSON says.

    Raises:
        GivenUp: it is laid out in a way that `read` does not expect.
    """
    try:
        return read(body)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise GivenUp(
            f"the {what} is laid out unexpectedly ({type(error).__name__}: {error}): {clean(str(body))}"
        ) from None
