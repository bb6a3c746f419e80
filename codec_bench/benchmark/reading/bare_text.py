"""A transcript, translation or caption without what models put around it.

Taken off, as often as they occur, in any order: a fence of code; marks of a language such as `<|en|>` and `[en]`; an
announcement such as `Transcription:`, `Here is the translation:` or `转写结果：`; tags such as `<transcript>`; quotes and
bold print around the whole text.
"""

from __future__ import annotations

import re

_ANNOUNCED = re.compile(
    r"\A[*_#\s]{0,6}(?:sure[,!.]?\s+|certainly[,!.]?\s+|okay[,!.]?\s+)?(?:"
    r"(?:here(?:'s|’s| is)\s+)?(?:the |an? |my )?(?:verbatim |english |chinese |german |french |spanish |japanese |full |complete |final )?"
    r"(?:transcription|transcript|translation|transcribed text|translated text|caption|recognized text|output)(?: of (?:the |this )?[\w ]{1,40}| (?:in|into) \w+)?(?: is| reads)?(?: as follows)?"
    r"|text|content|the (?:speaker|person|audio|recording|man|woman|voice) says"
    r"|(?:以下是)?(?:音频|录音|语音)?(?:的)?(?:转写|转录|识别|翻译)(?:文本|结果|内容)?(?:如下|是)?|译文|原文|文本|transkription|transkript|übersetzung|traduction|transcripción|traducción"
    r")[*_\s]{0,4}[:：][*_\s]{0,4}",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\A```[\w-]{0,20}\n(.*?)\n?```\Z", re.DOTALL)
_MARKED = re.compile(
    r"\A(?:<\|[^|<>\n]{1,40}\|>\s*|\[(?:[a-z]{2,3}|[A-Z][a-z]{3,12})\]\s*|language [A-Za-z]{2,20}\s?<asr_text>)+|(?:<\|[^|<>\n]{1,40}\|>\s*)+\Z"
)
_TAGGED = re.compile(
    r"\A<(transcript|transcription|translation|caption|text|content|answer|output)>(.*?)(?:</\1>)?\Z",
    re.DOTALL | re.IGNORECASE,
)
_PAIRS = {'"': '"', "“": "”", "「": "」", "『": "』", "«": "»", "„": "“", "'": "'", "‘": "’", "**": "**"}
_MOST = 6


def bare_text(text: str) -> str:
    """The text alone.

    Examples:
        >>> bare_text('Transcription: "hello there"'), bare_text("he said: no")
        ('hello there', 'he said: no')
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
        bare = _unquoted(bare)
        if bare == before:
            break
    return bare


def _unquoted(text: str) -> str:
    for left, right in _PAIRS.items():
        if text.startswith(left) and text.endswith(right) and len(text) > len(left) + len(right):
            inner = text[len(left) : -len(right)]
            if left not in inner and right not in inner:
                return inner.strip()
    return text
