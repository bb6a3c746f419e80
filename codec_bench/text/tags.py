"""Tags in texts for speech, such as `[laughs]`, `(sighs)` and SSML: directions.

A tag is: square or angle brackets around anything with a letter, up to 200 characters; round brackets around one to
three words of Latin letters in lower case, as in `(clears throat)`, or around up to four Han characters. The content of
an SSML element stays, because it is spoken. A `<` before a space, and an unclosed bracket, are no tags.
"""

from __future__ import annotations

import re

from codec_bench.messages import Diagnostic

PREFIX = "untagged/"
"""Prefix of a rule's name: both texts lose their tags before the comparison."""
TAG_NOTE = Diagnostic("tags_as_words")
"""The flag of a score whose rule takes a tag for words."""
FEW_TAGGED = 0.01
"""Up to this share of a metric's scores, the flag `TAG_NOTE` is not counted next to its value."""
FLAG_FROM = "flag_from"
"""Key in the detail of a score next to its `flag`, which is reported only from a larger share of the scores."""
REMOVED = Diagnostic("tags_removed")
"""The flag of a score by a tag-removing rule whose reference has tags."""
_TAG = re.compile(
    r"\[[^\[\]\n]{0,200}\]|<[^<>\s][^<>\n]{0,199}>|\([a-z\u00df-\u00f6\u00f8-\u00ff]+(?: "
    r"[a-z\u00df-\u00f6\u00f8-\u00ff]+){0,2}\)|\([\u4e00-\u9fff]{1,4}\)"
)
_SIGNS = "[<("


def without_tags(text: str) -> tuple[str, int]:
    """Remove the tags of a text: (the text, their number).

    Examples:
        >>> without_tags("[laughs] Well <break time='1s'/> then (sighs), a < b (see page 3).")
        ('Well then , a < b (see page 3).', 3)
    """
    if not any(sign in text for sign in _SIGNS):
        return text, 0
    tags = [match for match in _TAG.finditer(text) if any(letter.isalpha() for letter in match[0])]
    if not tags:
        return text, 0
    ends = [0, *(match.end() for match in tags)]
    starts = [*(match.start() for match in tags), len(text)]
    return " ".join(" ".join(text[end:start] for end, start in zip(ends, starts)).split()), len(tags)
