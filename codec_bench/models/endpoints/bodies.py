"""Bodies of requests and replies: JSON with audio out, untrusted JSON in."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeVar

from codec_bench.messages import Diagnostic
from codec_bench.models.audio_payloads import Base64
from codec_bench.models.endpoints.keys import clean
from codec_bench.models.endpoints.retries import RequestFailed

T = TypeVar("T")
UNEXPECTED = (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError)
"""Exceptions from reading a reply with an unexpected layout."""


def optional_text(body: Any, name: str) -> str | None:
    """Return a text in a reply, such as the answering model's name, or None."""
    value = body.get(name) if isinstance(body, Mapping) else None
    return value if isinstance(value, str) and value else None


def service_facts(about: dict[str, Any], **who: str | None) -> dict[str, Any]:
    """Add facts about the serving side to the fields of a response."""
    return {**about, "served": {**{name: text for name, text in who.items() if text}, **about["served"]}}


def text_of(body: Any, name: str) -> str:
    """Return the text at a key of a reply; RequestFailed if it is missing."""
    value = optional_text(body, name)
    if value is None:
        raise RequestFailed(Diagnostic("field_not_in_reply", name=name, body=clean(str(body))))
    return value


def put(body: dict[str, Any], path: str, value: Any) -> None:
    """Set a value in place at a path such as `references.0.text`, creating levels."""
    here: Any = body
    keys = path.split(".")
    for key, following in zip(keys, [*keys[1:], None]):
        fresh: Any = value if following is None else [] if following.isdigit() else {}
        if isinstance(here, list):
            here.extend({} for _ in range(int(key) + 1 - len(here)))
            if following is None:
                here[int(key)] = value
            here = here[int(key)]
        elif following is None:
            here[key] = value
        else:
            here[key] = here = copy(here.get(key, fresh))


def json_bytes(body: Any) -> bytes:
    """Encode a body as JSON.

    Audio (`Base64`) is inserted afterwards: it needs no escaping, and the search for it takes longer than base64
    itself.
    """
    coded: dict[str, bytes] = {}
    mark = secrets.token_hex(16)

    def without_sounds(node: Any) -> Any:
        """Replace audio by marks, and collect its base64 in `coded`."""
        if isinstance(node, Mapping):
            return {key: without_sounds(value) for key, value in node.items()}
        if isinstance(node, (list, tuple)):
            return [without_sounds(value) for value in node]
        if isinstance(node, Base64):
            coded[f"{mark}{len(coded)}."] = node.encode("ascii")
            return next(reversed(coded))
        return node

    text = json.dumps(without_sounds(body), ensure_ascii=False).encode("utf-8", "replace")
    pieces = []
    for name, sound in coded.items():
        before, _, text = text.partition(name.encode())
        pieces += [before, sound]
    return b"".join([*pieces, text])


def parse_reply(read: Callable[[Any], T], body: Any, subject: str = "reply") -> T:
    """Read a valid JSON reply with `read`; a layout error becomes RequestFailed."""
    try:
        return read(body)
    except UNEXPECTED as error:
        facts = {"subject": subject, "type": type(error).__name__, "cause": str(error), "body": clean(str(body))}
        raise RequestFailed(Diagnostic("body_layout", **facts)) from None
