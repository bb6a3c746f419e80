"""The only reader of JSON that a service sent."""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100
"""The deepest nesting. Replies of services have about ten levels."""


def parse_json(text: str | bytes) -> Any:
    """Parse untrusted JSON, whose length is limited on receipt (`replies.MAX_BYTES`).

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
        inner = [node for node in level if isinstance(node, (dict, list))]
        level = [value for node in inner for value in (node.values() if isinstance(node, dict) else node)]
        depth += 1
    return body
