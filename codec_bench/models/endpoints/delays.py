"""Reads how long a service asks to wait, and what it says about its limits, in headers and in the bodies of errors.

Sources, read on 2026-11-22: RFC 9110 10.2.3 (`Retry-After`); https://platform.openai.com/docs/guides/rate-limits
(`x-ratelimit-*`, "Please try again in 20s", requests per day); https://ai.google.dev/gemini-api/docs/rate-limits with
`google.rpc.RetryInfo` and `google.rpc.QuotaFailure` (https://github.com/googleapis/googleapis, error_details.proto);
https://elevenlabs.io/docs/overview/models#concurrency-and-priority (`maximum-concurrent-requests`).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from codec_bench.models.endpoints.json_text import parse_json

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_IN_WORDS = re.compile(
    r"(?:try again|retry)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s?(?:ms|s|m|h|d)(?![a-z]))+|\d+(?:\.\d+)?(?=\s*sec))", re.I
)
_DAILY = re.compile(r"per[ _-]?day|\b[RT]PD\b|\bdaily\b", re.I)
_LONGEST = 20_000
_EPOCH_S = 1e9
"""Numbers above this are times since 1970 and not durations."""


def parse_duration(text: str) -> float | None:
    """Seconds of `1s`, `6m0s`, `20ms` or a bare number; None if the text is none of these."""
    text = text.strip()
    try:
        seconds = float(text)
    except ValueError:
        parts = _DURATION.findall(text)
        return sum(float(n) * _SECONDS[unit] for n, unit in parts) if parts else None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def wait_of(headers: Mapping[str, str], body: str = "") -> float | None:
    """Seconds to wait before the next attempt; None if the service does not say.

    Args:
        headers: of the reply: `retry-after-ms`, `Retry-After` (seconds or a date), or `x-ratelimit-reset-*`.
        body: of the reply: `RetryInfo` of Google's errors, or a message with "try again in 20s".
    """
    milliseconds = parse_duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000.0
    said = headers.get("retry-after", "")
    seconds = parse_duration(said)
    if seconds is not None:
        return seconds
    if said:
        try:
            return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            pass
    return _in_body(body) if (reset := _reset(headers)) is None else reset


def is_daily(body: str) -> bool:
    """Whether the body of an error says that a quota is used up for the day."""
    return _DAILY.search(body[:_LONGEST]) is not None


def most_at_once(headers: Mapping[str, str]) -> int | None:
    """The most requests at once that the service states; None if it states none."""
    said = headers.get("maximum-concurrent-requests", "").strip()
    return int(said) if said.isdecimal() and 0 < int(said) < _EPOCH_S else None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until the limits that are used up are reset, the longest of them."""
    waits = []
    for kind in ("-requests", "-tokens", ""):
        remaining, reset = headers.get(f"x-ratelimit-remaining{kind}"), headers.get(f"x-ratelimit-reset{kind}")
        seconds = parse_duration(reset) if reset and (remaining is None or remaining.strip() == "0") else None
        if seconds is not None:
            waits.append(max(0.0, seconds - time.time()) if seconds > _EPOCH_S else seconds)
    return max(waits, default=None)


def _in_body(body: str) -> float | None:
    body = body[:_LONGEST]
    try:
        delays = [value for value in _values(parse_json(body), "retryDelay") if isinstance(value, str)]
    except ValueError:
        delays = []
    for said in delays:
        if (seconds := parse_duration(said)) is not None:
            return seconds
    found = _IN_WORDS.search(body)
    return parse_duration(found[1].replace(" ", "")) if found else None


def _values(body: Any, name: str) -> Iterator[Any]:
    """Every value of this name, at any depth."""
    if isinstance(body, dict):
        if name in body:
            yield body[name]
        body = list(body.values())
    if isinstance(body, list):
        for part in body:
            yield from _values(part, name)


__all__ = ["is_daily", "most_at_once", "parse_duration", "wait_of"]
