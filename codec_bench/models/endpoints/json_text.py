"""The only reader of JSON that a service sent."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100
"""How deep values may lie in lists and mappings. The replies of services have about ten levels."""


def parse_json(text: str | bytes) -> Any:
    """Reads JSON that is not trusted. Its length is limited where it is received (`replies.MAX_BYTES`).

    Raises:
        ValueError: it is not JSON, or too deep; the message fits after "it is not JSON:".
    """
    try:
        body = json.loads(text)
    except RecursionError:
        raise ValueError(f"it has more than {DEEPEST} levels") from None
    level, depth = [body], 0
    while level:
        if depth > DEEPEST:
            raise ValueError(f"it has more than {DEEPEST} levels")
        inner = [part for part in level if isinstance(part, (dict, list))]
        level = [value for part in inner for value in (part.values() if isinstance(part, dict) else part)]
        depth += 1
    return body
