"""Base of service models: options, audio limits, prices, a response per error.

The first request is sent alone to validate the settings. A rejected parameter is omitted from then on and noted
(`unsupported`); a wrong setting ends the run before anything is recorded.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import Model, ModelInfo
from codec_bench.models.batching import refusal
from codec_bench.models.endpoints.accounts import Prices
from codec_bench.models.endpoints.bodies import UNEXPECTED, json_bytes, put
from codec_bench.models.endpoints.client import Client
from codec_bench.models.endpoints.describe import describe, is_dated, is_vendor
from codec_bench.models.endpoints.error_texts import mistake_of, read_unsupported_parameter
from codec_bench.models.endpoints.keys import ApiKey, changed_texts, clean, masked
from codec_bench.models.endpoints.retries import (
    MOST_REQUESTS,
    REPEATS,
    TOO_OFTEN,
    Patience,
    RemainingAttempts,
    RequestFailed,
    RetryPolicy,
)
from codec_bench.models.windows import WindowedRequest, join, split_windows
from codec_bench.types import Request, Response

_MOST = 1_000_000
REASONING_TOKENS = 4096
"""Reasoning tokens of a request that limits its answer but not its reasoning."""
JSON = {"Content-Type": "application/json"}


class RemoteModel(Model):
    """A model that a service runs.

    Args:
        base_url: the URL of the service; the path of every request is appended to it.
        model: the name of the model at the service.
        key_env: name of the environment variable that holds the key; None if the service needs none.
        key_header: the header that carries the key; `Authorization` carries it as a bearer token.
        headers: sent with every request; a header with a key is refused.
        parameters: generation parameters under the service's names. Those of a request replace them.
        rename: the service's names of request parameters, such as `{max_tokens: max_completion_tokens}`; null omits
            one. A dotted name sets a value in a mapping (`thinkingConfig.thinkingBudget`).
        reasons: whether the model reasons before it answers; the limit then grows by `reasoning_tokens`.
        rate_hz: sample rate of the audio that is sent.
        concurrency: the most requests at once; the accepted number is probed. As many more are encoded in advance.
        timeout_s: time limit of one attempt, in seconds.
        attempts: the most attempts for one request.
        prices: US dollars, as `accounts.Prices` names them; omit unknown ones.

    Raises:
        UserError: an option has a wrong value, or holds a key.
    """

    client: RetryPolicy
    charges = True
    changes_answers: ClassVar[tuple[str, ...]] = ()
    """Options of this kind of model that change an answer, for `identity`."""
    words: ClassVar[Mapping[str, str | None]] = {"reasoning_tokens": None}
    """The services' names of parameters without a `rename`; None if there is none."""
    checked: ClassVar[str] = ""
    """Source and date of the last check of this protocol."""
    audio_as: str | None = None

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
        prices: Mapping[str, Any] | None = None,
        reasons: bool = False,
    ) -> None:
        if base_url is None:
            raise UserError(
                "base_url_missing", model=info.name, hint=f"--set {info.name}.base_url=http://localhost:8000/v1"
            )
        for name, value, least, most in (
            ("concurrency", concurrency, 1, _MOST), ("timeout_s", timeout_s, 1e-3, _MOST),
            ("attempts", attempts, 1, MOST_REQUESTS), ("rate_hz", rate_hz, 1000, _MOST),
        ):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
                raise UserError(
                    "model_option_out_of_range", model=info.name, option=name, value=value, least=least, most=most
                )
        self.info, self.concurrency, self.rate_hz = info, 2 * int(concurrency), int(rate_hz)
        self.ceiling = int(concurrency)
        self.model, self.parameters, self.rename = model, dict(parameters or {}), dict(rename or {})
        self.prices, self.reasons = Prices.parse(prices), bool(reasons)
        self._learned: dict[str, str | None] = {}
        self._unsupported: dict[str, Diagnostic] = {}
        self._alone, self._settled = asyncio.Lock(), False
        self._unusable: UserError | None = None
        self.patience = Patience(attempts=int(attempts), timeout_s=float(timeout_s))
        self.key, self.headers, self.base_url = ApiKey(key_env, key_header), dict(headers or {}), str(base_url)
        self.connect()

    @abstractmethod
    def connect(self) -> None:
        """Create `client`, which validates URL and headers; open no connection."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that changes an answer: URL, model name and options."""
        return {
            "kind": type(self).__name__,
            "base_url": self.base_url.rstrip("/"),
            "model": self.model,
            "parameters": self.parameters,
            "rename": self.rename,
            "headers": self.headers,
            "rate_hz": self.rate_hz,
            "reasons": self.reasons,
            "limit_s": self.info.limit_s,
            "window_s": self.info.window_s,
            **{name: getattr(self, name) for name in self.changes_answers},
        }

    @property
    def tells_apart(self) -> bool:
        """Whether URL and name identify the checkpoint, as a dated name at a vendor does."""
        return is_vendor(self.base_url) and is_dated(self.model)

    @property
    def unsupported(self) -> Mapping[str, str]:
        """Request parameters that the service does not support, each with the reason."""
        return self._unsupported

    def set_waiting(self, notify: Callable[[str], None], *, patient: bool = False) -> None:
        """Implement `Model.set_waiting`."""
        self.client.notify = notify
        if patient:
            self.client.patience = replace(self.client.patience, stops_s=None)

    async def ask(self, request: Request) -> Response:
        """Return the answer to a request. The first request is sent alone; others wait for its end.

        Raises:
            UserError: every request would fail, because a setting or the key is wrong or a quota is used up.
        """
        if not self._settled:
            async with self._alone:
                if self._unusable is not None:  # the others that waited must not ask before the run has ended
                    raise self._unusable
                if not self._settled:
                    try:
                        response = await self._ask(request)
                    except UserError as error:
                        self._unusable = error
                        raise
                    self._settled = response.attempts > 0
                    return response
        return await self._ask(request)

    async def _ask(self, request: Request) -> Response:
        """Send a request, split into windows if its audio is long, and join the answers."""
        refusal = self.check(request)
        if refusal is not None:
            return Response.refused(refusal, attempts=0)
        # A thread pays off where audio is read and encoded, not for text.
        silent = next(clips_of(request), None) is None
        windowed, body = self.prepare(request) if silent else await asyncio.to_thread(self.prepare, request)
        if isinstance(windowed, Response):
            return windowed
        answers: list[Response] = []
        for window in windowed.requests:
            if answers:
                body = await asyncio.to_thread(self.encode, window)
            answers.append(await self.finish_answer(window, self._instructed(window, body)))
            if answers[-1].status != "ok":
                break
        try:
            return join(answers, windowed)
        except UserError as error:
            return Response.failed(error.message)

    def check(self, request: Request) -> str | None:
        """Return why the model does not accept a request, or None."""
        return refusal(request, self.info)

    @abstractmethod
    def encode(self, request: Request) -> Any:
        """Encode a request with audio in memory, in a thread, once for all attempts.

        Raises:
            UserError: the options of the model contradict each other. This ends the run.
        """

    @abstractmethod
    async def answer(self, request: Request, body: Any) -> Response:
        """Return one answer to the body from `encode`.

        Raises:
            RequestFailed: the service gave no answer.
            AudioError: the audio of the answer cannot be read.
            UserError: as `ask`.
        """

    def named_parameters(self, request: Request) -> dict[str, Any]:
        """Return the generation parameters of request and model by the service's names.

        Parameters that the service does not have are omitted.
        """
        parameters = {name: value for name, value in request.parameters.items() if value is not None}
        if not self.reasons:
            parameters.pop("reasoning_tokens", None)
        elif "max_tokens" in parameters:
            parameters["max_tokens"] += parameters.get("reasoning_tokens", REASONING_TOKENS)
        out = dict(self.parameters)
        for name, value in parameters.items():
            called = self.service_parameter(name)
            if called is not None:
                put(out, called, value)
            elif name not in self._unsupported and name not in ("reasoning_tokens", "repetition_penalty"):
                self._unsupported[name] = Diagnostic("parameter_not_sent")
        return out

    def service_parameter(self, name: str) -> str | None:
        """Return the service's name of a parameter; None omits it."""
        for names in (self._learned, self.rename, self.words):
            if name in names:
                return names[name]
        # Vendors of closed models reject a repetition penalty.
        return None if name == "repetition_penalty" and is_vendor(self.base_url) else name

    def prepare(self, request: Request) -> tuple[WindowedRequest | Response, Any]:
        """Return a request's windows and the encoded first one, or a failed response."""
        try:
            windowed = split_windows(request, self.info, self.rate_hz)
        except UserError as error:
            return Response.failed(error.message, attempts=0), None
        return windowed, self.encode(windowed.requests[0])

    async def finish_answer(self, request: Request, answer: Awaitable[Response], *, share: float = 1.0) -> Response:
        """Await an answer and complete it: errors as responses, priced, without the key.

        Args:
            answer: raises as `answer` does.
            share: the fraction of the model's prices that is charged.
        """
        counting = REPEATS.set(RemainingAttempts())
        try:
            return self._priced(request, self._masked(await self._checked(request, answer)), share)
        finally:
            REPEATS.reset(counting)

    async def _checked(self, request: Request, answer: Awaitable[Response]) -> Response:
        """Await a response; errors of the service become failed or refused responses."""
        try:
            response = await answer
        except RequestFailed as end:
            make = Response.refused if end.refused else Response.failed
            return make(end.reason, text=end.text, attempts=end.attempts, finish=end.code)
        except AudioError as error:
            return Response.failed(error.message)
        except UNEXPECTED as error:  # a value of another type than the service documents
            about = {"subject": "reply", "type": type(error).__name__, "cause": clean(str(error))}
            return Response.failed(Diagnostic("body_layout", **about))
        if response.status == "ok" and request.wants == "audio" and response.audio is None:
            reason = Diagnostic("no_audio_in_answer")
            return replace(response, status="failed", reason=reason, text=response.text or None, notes=())
        return response

    async def _instructed(self, request: Request, body: Any) -> Response:
        """Send a request; until the first success, drop parameters that are rejected."""
        for _ in range(len(request.parameters) + 1):
            try:
                return await self.answer(request, body)
            except RequestFailed as end:
                if not end.refused or self.client.answered:
                    raise
                if not self._learn(end, request):
                    hint = mistake_of(
                        end.message,
                        name=self.info.name,
                        model=self.model,
                        audio_as=self.audio_as,
                        others=self.body_fields_of_options(),
                    )
                    if hint is not None:
                        raise UserError(as_reason(end.reason, "service_refusal"), hint=hint) from None
                    raise
                if (repeats := REPEATS.get()) is not None and not repeats.take():
                    raise RequestFailed(end.reason, attempts=MOST_REQUESTS, code=TOO_OFTEN) from None
            body = await asyncio.to_thread(self.encode, request)
        return await self.answer(request, body)

    def body_fields_of_options(self) -> list[str]:
        """Return the names of the request-body fields that the model's options set."""
        return [*self.parameters, *(name for name in ("modalities", "voice") if name in self.changes_answers)]

    def _learn(self, end: RequestFailed, request: Request) -> bool:
        """Remember a parameter that a refusal names, and return whether it names one.

        Later requests omit or replace it.
        """
        called = {name: self.service_parameter(name) for name in request.parameters}
        sent = {there: name for name, there in called.items() if there is not None}
        lesson = read_unsupported_parameter(end.message, sent)
        if lesson is None:
            return False
        name = sent[lesson.parameter]
        self._learned[name] = lesson.instead
        if lesson.instead is None:
            self._unsupported[name] = as_reason(end.reason)
        return True

    def _masked(self, response: Response) -> Response:
        """Return a response with the key masked, which a service may repeat in its answer."""
        hide = partial(masked, secrets=self.key.secrets())
        shown: dict[str, Any] = {
            name: hide(shown_text)
            for name in ("text", "finish", "reasoning")
            if (shown_text := getattr(response, name))
        }
        if response.reason is not None:
            shown["reason"] = changed_texts(response.reason, hide)
        notes = tuple(changed_texts(note, hide) for note in response.notes)
        served = {name: hide(clean(shown_text)) for name, shown_text in response.served.items()}
        if shown.get("text", response.text) != response.text:
            notes = (*notes, Diagnostic("key_repeated"))
        return replace(response, **shown, notes=notes, served=served)

    def _priced(self, request: Request, response: Response, share: float) -> Response:
        """Return a response with its cost in `usage`, multiplied by `share`."""
        usage = {**response.usage, **(self.prices.sent_parts(request) if response.status == "ok" else {})}
        sent = next(clips_of(request), None) is not None
        usage = self.prices.priced(usage, sent=sent, came=response.audio is not None, share=share)
        return replace(response, usage=usage)

    def unpriced(self, response: Response) -> tuple[str, ...]:
        """Return the prices or counts missing for an answer's cost, as of `Model`."""
        return self.prices.missing(response.usage)


def check_choice(info: ModelInfo, option: str, value: Any, known: Sequence[str]) -> None:
    """Check an option that has a few possible values."""
    if value not in known:
        raise UserError(
            "model_option_value", model=info.name, option=option, value=value, hint=f"expected {' or '.join(known)}"
        )


class HttpModel(RemoteModel):
    """A model behind HTTP. Arguments as `RemoteModel`."""

    client: Client

    def connect(self) -> None:
        """Create the client."""
        self.client = Client(
            self.base_url, key=self.key, headers=self.headers, concurrency=self.ceiling, patience=self.patience
        )

    async def start(self) -> None:
        """Implement `Client.start`."""
        self._unusable = None
        await self.client.start()

    async def describe(self) -> Mapping[str, Any]:
        """Return what the service reports about the model and itself."""
        return await describe(self.client, self.model, vendor=is_vendor(self.base_url))

    async def close(self) -> None:
        """Close every connection."""
        await self.client.close()


class JsonModel(HttpModel):
    """A model whose requests are one JSON body each. Arguments as `RemoteModel`."""

    def encode(self, request: Request) -> bytes:
        """Return the body as bytes."""
        return json_bytes(self.content(request))

    @abstractmethod
    def content(self, request: Request) -> Any:
        """Return the body as JSON values, with audio as `Base64`."""
