"""Values as the cells of a record can hold them."""

from __future__ import annotations

import json
import re
from typing import Any

_HALVES = re.compile("[\ud800-\udfff]")


def json_text(value: Any) -> str:
    """A value as the record holds it: JSON as the standard has it, with null in place of NaN and the infinities."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(value), parse_constant=lambda _: None), ensure_ascii=False)
    return storable(text) or ""


def storable(text: str | None) -> str | None:
    """A text as the record can hold it: halves of surrogate pairs, as in an answer that was cut, become U+FFFD."""
    return text if text is None or text.isascii() else _HALVES.sub("\ufffd", text)
