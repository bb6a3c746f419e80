"""Reads service errors: waits, limits, and refused settings of the model.

Sources, read on 2026-11-22. Waits and limits: RFC 9110 10.2.3 (`Retry-After`);
https://platform.openai.com/docs/guides/rate-limits; https://ai.google.dev/gemini-api/docs/rate-limits with
`google.rpc.RetryInfo` and `QuotaFailure` (github.com/googleapis/googleapis, error_details.proto);
https://elevenlabs.io/docs/overview/models#concurrency-and-priority. Refusals:
https://platform.openai.com/docs/guides/error-codes, https://learn.microsoft.com/azure/ai-foundry/openai, litellm 1.80
(`UnsupportedParamsError`), vLLM and SGLang (pydantic's `extra_forbidden`), Gemini, and DashScope
(https://help.aliyun.com/zh/model-studio/error-code).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from codec_bench.models.endpoints.json_text import parse_json

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATIONS = re.compile(rf"(?:{_DURATION.pattern}\s*)+")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_IN_WORDS = re.compile(
    r"(?:try again|retry)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s?(?:ms|s|m|h|d)(?![a-z]))+|\d+(?:\.\d+)?(?=\s*sec))", re.I
)
_DAILY = re.compile(r"per[ _-]?day|\b[RT]PD\b|\bdaily\b", re.I)
_LONGEST = 20_000
_EPOCH_S = 1e9
"""Larger numbers are times since 1970, not durations."""


def parse_duration(text: str) -> float | None:
    """Parse `1s`, `6m0s`, `20ms` or a bare number as seconds, or return None."""
    text = text.strip()
    try:
        seconds = float(text)
    except ValueError:
        parts = _DURATION.findall(text) if _DURATIONS.fullmatch(text) else ()
        seconds = sum(float(n) * _SECONDS[unit] for n, unit in parts) if parts else math.nan
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def wait_of(headers: Mapping[str, str], body: str = "") -> float | None:
    """Return the seconds to wait before the next attempt; None without a future time.

    Args:
        headers: `retry-after-ms`, `Retry-After` (seconds or a date), or `x-ratelimit-reset-*`.
        body: Google's `RetryInfo`, or a message with "try again in 20s".
    """
    milliseconds = parse_duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000.0
    header = headers.get("retry-after", "")
    seconds = parse_duration(header)
    if seconds is not None:
        return seconds
    if header:
        with suppress(ValueError, TypeError, OverflowError):
            date = parsedate_to_datetime(header)
            # RFC 9110 5.6.7: dates of HTTP are in UTC.
            date = date if date.tzinfo else date.replace(tzinfo=UTC)
            if (seconds := date.timestamp() - time.time()) > 0:
                return seconds
    return _in_body(body) if (reset := _reset(headers)) is None else reset


def is_daily(body: str) -> bool:
    """Whether the body of an error reports an exhausted daily quota."""
    return _DAILY.search(body[:_LONGEST]) is not None


def most_at_once(headers: Mapping[str, str]) -> int | None:
    """Return the service's stated limit of concurrent requests, or None."""
    header = headers.get("maximum-concurrent-requests", "").strip()
    return int(header) if header.isdecimal() and 0 < int(header) < _EPOCH_S else None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until all exhausted rate limits are reset; None if unstated."""
    waits = []
    for kind in ("-requests", "-tokens", ""):
        remaining, reset = headers.get(f"x-ratelimit-remaining{kind}"), headers.get(f"x-ratelimit-reset{kind}")
        seconds = parse_duration(reset) if reset and (remaining is None or remaining.strip() == "0") else None
        if seconds is not None:
            waits.append(max(0.0, seconds - time.time()) if seconds > _EPOCH_S else seconds)
    return max(waits, default=None)


def _in_body(body: str) -> float | None:
    """Return the seconds to wait that an error body states, or None."""
    body = body[:_LONGEST]
    try:
        delays = [value for value in _find_values(parse_json(body), "retryDelay") if isinstance(value, str)]
    except ValueError:
        delays = []
    for delay in delays:
        if (seconds := parse_duration(delay)) is not None:
            return seconds
    match = _IN_WORDS.search(body)
    return parse_duration(match[1].replace(" ", "")) if match else None


def _find_values(body: Any, name: str) -> Iterator[Any]:
    """Yield the values of a key at any depth."""
    if isinstance(body, dict):
        if name in body:
            yield body[name]
        body = list(body.values())
    if isinstance(body, list):
        for node in body:
            yield from _find_values(node, name)


_OBJECTS = re.compile(
    r"(?i)unsupport|not support|n.t support|unrecogni[sz]ed|unexpected (?:field|key|parameter|argument|keyword)|"
    r"unknown (?:name|parameter|field|argument)|not allowed|not permitted|extra[_ ]forbidden|extra inputs|must be|"
    r"out of range|only (?:the default|\w+=)|does not accept|invalid value|too large|not compatible|deprecated|"
    r"cannot be (?:set|used)"
)
_INSTEAD = re.compile(r"(?i)\buse ['\"`]?([a-z_][a-z0-9_]*)['\"`]? instead")
# Prompt and answer exceed the context: a property of the question, although a parameter is named.
_TOO_LONG = re.compile(r"(?i)context[_ ]length|context window|maximum (?:context|input|prompt)|input (?:is )?too long")
_NO_MODEL = re.compile(
    r"(?i)model[_ ]?not[_ ]?found|modelnotfound|invalid[_ ]model|unknown model|no (?:such )?model\b|"
    r"model\b[^.\n]{0,120}?(?:not exist|not found|is not (?:available|valid|a valid))|no healthy deployments|"
    r"there are no healthy|is not found for api version"
)
_NO_AUDIO = re.compile(
    r"(?i)input_audio|audio_url|audio (?:input|content|modality)s?\b[^.\n]{0,60}not support|"
    r"not support[^.\n]{0,60}\baudio|not a multimodal model|unknown (?:content )?part type|"
    r"no endpoints found that support"
)
# Tried on 2026-11-22 and 2026-11-23: litellm's proxy 1.106 sends this with status 400.
_UNKNOWN_KEY = re.compile(r"(?i)no connected db")
_CHECK_KEY = (
    "litellm's proxy says this of a key that it does not know: check the environment variable that key_env names"
)
_NO_ACCOUNT = re.compile(r"(?i)arrearage|in arrears|overdue[- ]payment|billing (?:is )?not (?:active|enabled)")


@dataclass(frozen=True, slots=True)
class UnsupportedParameter:
    """A parameter that a service does not support, and its replacement or None."""

    parameter: str
    instead: str | None = None


def read_unsupported_parameter(message: str, sent: Iterable[str]) -> UnsupportedParameter | None:
    """Return which of the sent parameters a refusal names; None for another cause."""
    message = message[:_LONGEST]
    if not _OBJECTS.search(message) or _TOO_LONG.search(message):
        return None
    named = _named(message)
    # The longest name first: a dotted name may contain a shorter one.
    for name in sorted(sent, key=len, reverse=True):
        last = name.rpartition(".")[2]
        spellings = {last, _snake(last), _snake(last).replace("_", " ")}
        if spellings & named or any(re.search(rf"(?i)(?<!\w){re.escape(one)}(?!\w)", message) for one in spellings):
            instead = _INSTEAD.search(message)
            other = instead[1] if instead and instead[1] != last else None
            return UnsupportedParameter(name, other)
    return None


def mistake_of(
    message: str, *, name: str, model: str, audio_as: str | None = None, others: Iterable[str] = ()
) -> str | None:
    """Return a hint at a refused setting; None if the request itself may be the cause.

    Args:
        message: the body of the refusal.
        name: the model's name on the command line.
        model: its name at the service.
        audio_as: the form in which audio is sent, for models that have several.
        others: further names in the body, such as `modalities`.
    """
    message = message[:_LONGEST]
    if _NO_ACCOUNT.search(message):
        return "the account is in arrears or not active"
    if _UNKNOWN_KEY.search(message):
        return _CHECK_KEY
    if _NO_MODEL.search(message):
        return f"is the name '{model}' right? --set {name}.model=NAME"
    if _NO_AUDIO.search(message):
        if audio_as is None:
            return "does this model take audio?"
        other = "audio_url" if audio_as != "audio_url" else "input_audio"
        return f"does this model take audio? If it does, it may want it in another form: --set {name}.audio_as={other}"
    if _OBJECTS.search(message) and not _TOO_LONG.search(message):
        for other in others:
            if re.search(rf"(?<![\w]){re.escape(other)}(?![\w])", message):
                return (
                    f"the service does not take '{other}' as it is set; --set {name}.{other}=VALUE (null leaves it out)"
                )
    return None


def cause_of(message: str) -> str:
    """Return a hint at the likely cause when a service refuses every request alike."""
    if _TOO_LONG.search(message[:_LONGEST]):
        return (
            "the questions are longer than the model takes: --set NAME.limit_s=SECONDS cuts their audio, or serve the "
            "model with a longer context"
        )
    if _UNKNOWN_KEY.search(message[:_LONGEST]):
        return _CHECK_KEY
    return "is a setting of the model wrong?"


def _named(message: str) -> set[str]:
    """Collect the names of parameters in an error's JSON (`param`, `loc`)."""
    try:
        body = parse_json(message)
    except ValueError:
        return set()
    names: set[str] = set()
    level = [body]
    while level:
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                if isinstance(node.get("param"), str):
                    names.add(node["param"].rpartition(".")[2])
                if isinstance(node.get("loc"), list):
                    names |= {str(step) for step in node["loc"]}
                inner += node.values()
            elif isinstance(node, list):
                inner += node
        level = inner
    return names


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
