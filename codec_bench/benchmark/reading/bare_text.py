"""Strip a transcript, translation or caption of what models put around it.

Repeatedly removed, in any order: a code fence; language marks such as `<|en|>` and `[en]`; an announcement such as
`Transcription:`, `Here is the translation:` or `转写结果：`; tags such as `<transcript>`; quotes and bold print around the
whole text.
"""

from __future__ import annotations

import re

from codec_bench.benchmark.reading.patterns import compile_pattern

_ANNOUNCED = compile_pattern("bare_text", "announced")
_FENCE = re.compile(r"\A```[\w-]{0,20}\n(.*?)\n?```\Z", re.DOTALL)
_MARKED = compile_pattern("bare_text", "marked")
_TAGGED = re.compile(
    r"\A<(transcript|transcription|translation|caption|text|content|answer|output)>(.*?)(?:</\1>)?\Z",
    re.DOTALL | re.IGNORECASE,
)
_PAIRS = {'"': '"', "“": "”", "「": "」", "『": "』", "«": "»", "„": "“", "'": "'", "‘": "’", "**": "**"}
_MOST = 6


def bare_text(text: str) -> str:
    """Remove what models put around a text: code fences, tags, announcements, quotes.

    Examples:
        >>> bare_text('Transcription: "hello there"'), bare_text("he wrote: no")
        ('hello there', 'he wrote: no')
    """
    bare = text.strip()
    for _ in range(_MOST):
        before = bare
        if (fenced := _FENCE.match(bare)) is not None:
            bare = fenced[1].strip()
        if (tagged := _TAGGED.match(bare)) is not None:
            bare = tagged[2].strip()
        bare = _MARKED.sub("", bare).strip()
        bare = _ANNOUNCED.sub("", bare, count=1).strip() or bare
        bare = _strip_quotes(bare)
        if bare == before:
            break
    return bare


def _strip_quotes(text: str) -> str:
    """Remove one pair of enclosing quotes that does not occur inside."""
    for left, right in _PAIRS.items():
        if text.startswith(left) and text.endswith(right) and len(text) > len(left) + len(right):
            inner = text[len(left) : -len(right)]
            if left not in inner and right not in inner:
                return inner.strip()
    return text
