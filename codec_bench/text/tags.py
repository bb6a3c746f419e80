"""Tags in texts that are to be spoken, such as `[laughs]`, `<emotion="happy">`, `(sighs)` and SSML: they direct a voice
and are not said.

What counts as a tag: square or angle brackets around anything with a letter, up to 200 characters; round brackets
around one to three words of Latin letters in lower case, as in `(sighs)` and `(clears throat)`, or around up to four
Han characters. Round brackets around anything else are text. What an SSML element encloses stays, because it is said. A
`<` before a space, and a bracket that nothing closes, are no tags.
"""

from __future__ import annotations

import re

from codec_bench.messages import Diagnostic

PREFIX = "untagged/"
"""Before the name of a rule: both texts lose their tags, and then the rule compares them."""
TAG_NOTE = Diagnostic("tags_as_words")
"""The flag of a score whose rule takes a tag for words."""
FEW_TAGGED = 0.01
"""Up to this share of the scores of a metric the flag `TAG_NOTE` is not counted next to its value."""
REMOVED = Diagnostic("tags_removed")
"""The flag of a score of a rule that removes tags, whose reference has some."""
_TAG = re.compile(
    r"\[[^\[\]\n]{0,200}\]|<[^<>\s][^<>\n]{0,199}>|\([a-z\u00df-\u00f6\u00f8-\u00ff]+(?: "
    r"[a-z\u00df-\u00f6\u00f8-\u00ff]+){0,2}\)|\([\u4e00-\u9fff]{1,4}\)"
)
_SIGNS = "[<("


def without_tags(text: str) -> tuple[str, int]:
    """A text without its tags, and how many it had.

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
