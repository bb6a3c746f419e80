"""Text from data, made safe to print."""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, most: int = 500) -> str:
    """Text from data, safe to print: characters that control the terminal or the direction of writing, and halves of
    characters, become `�`.

    Of a text of more than `most` characters, the beginning and the end are shown.
    """
    if len(text) > most:
        end = most // 4
        text = f"{text[: most - end - 1]}…{text[-end:]}"
    return _CONTROLS.sub("�", text)
