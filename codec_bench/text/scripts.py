"""Scripts: which characters are written without spaces, and which language a script suggests."""

from __future__ import annotations

import re

ALONE = (
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303C), (0x3040, 0x312F), (0x31A0, 0x31BF),
    (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x1AFF0, 0x1B16F),
    (0x20000, 0x323AF),
)  # fmt: skip
"""Ranges of code points, both ends included. In mixed text each of them is one item: Han characters, kana, bopomofo."""

ALONE_CLASS = "".join(f"{chr(first)}-{chr(last)}" for first, last in ALONE)
"""The same ranges, as the inside of a character class of a regular expression."""


def script_language(text: str) -> str:
    """The language that the script of a text suggests, for manifests that name no language.

    The script with the most items decides. An item is a character in scripts without spaces, else a word. A text with
    kana is Japanese; other Han characters are Chinese; Latin script is English. Scripts of many languages give `und`.
    """
    counts = {language: len(pattern.findall(text)) for language, pattern in _SCRIPTS.items()}
    if counts["ja"]:
        counts["ja"] += counts["zh"]
        counts["zh"] = 0
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else "en"


_SCRIPTS = {
    language: re.compile(letters)
    for language, letters in {
        "en": "[A-Za-z\u00aa-\u024f\u1e00-\u1eff\uff21-\uff5a]+",
        "zh": "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]",
        "ja": "[\u3041-\u30fa\uff66-\uff9d]",
        "ko": "[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]",
        "th": "[\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46]",
        "lo": "[\u0e81-\u0eb0\u0eb2\u0eb3\u0ec0-\u0ec6]",
        "km": "[\u1780-\u17b3]",
        "my": "[\u1000-\u1021]",
        "ar": "[\u0620-\u064a\u0671-\u06d3]+",
        "he": "[\u05d0-\u05ea]+",
        "und": "[\u0370-\u058f\u0700-\u0dff\u0f00-\u0fff\u10a0-\u10ff\u1200-\u139f]+",
    }.items()
}
