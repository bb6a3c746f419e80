"""Read answers that are a JSON object, or options with probabilities."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from codec_bench.benchmark.reading.patterns import compile_pattern

MOST = 400
"""How many entries of a list count."""
_ANSWER_KEYS = re.compile(
    r"(?i)answer|option|choice|letter|label|prediction|result|class|emotion|gender|category|verdict|value|答案|选项"
)
_NUMBERED = compile_pattern("tables", "numbered")


def loaded(text: str) -> Any:
    """Parse an answer that is JSON, in a code block or not; None for other text."""
    bare = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text).strip()
    if bare[:1] not in ("{", "["):
        return None
    try:
        return json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return None


def answer_in(value: Any) -> str | None:
    """The answer in a parsed JSON value as text, found by its key; None if unclear."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) if all(isinstance(one, str) for one in value) else None
    if not isinstance(value, dict):
        return None
    named = [held for key, held in value.items() if _ANSWER_KEYS.search(str(key))] or list(value.values())
    if len(named) != 1 or isinstance(named[0], (list, bool)) or named[0] is None:
        return None
    return answer_in(named[0]) if isinstance(named[0], dict) else str(named[0])


def likeliest_options(text: str, value: Any, key_of: Callable[[str], str | None]) -> set[str] | None:
    """The most probable options in a list of probabilities; None for other answers.

    Args:
        text: as `fold_text` gives it.
        value: its JSON value, or None.
        key_of: the option that a text names as a whole.

    Returns:
        The options with the largest number; none if something other than options is listed.
    """
    pairs: Sequence[tuple[str, float]]
    if isinstance(value, dict) and len(value) > 1:
        numbers = [n for n in value.values() if isinstance(n, (int, float)) and not isinstance(n, bool)]
        if len(numbers) < len(value):
            return None
        pairs = [(str(key), float(n)) for key, n in value.items()]
    else:
        matches = list(islice(_NUMBERED.finditer(text), MOST))
        if len(matches) < 2 or sum(len(match[0]) for match in matches) < 0.5 * len(text.strip()):
            return None
        pairs = [(match["key"].strip(" \"'*([-"), float((match["n"] or match["m"]).strip(" %"))) for match in matches]

    def last_word(name: str) -> str:
        return name.split()[-1] if value is None and key_of(name) is None and name.split() else name

    keys = [key_of(last_word(name)) for name, _ in pairs]
    if None in keys or len(set(keys)) < len(keys):
        return set() if isinstance(value, dict) else None
    most = max(n for _, n in pairs)
    return {key for key, (_, n) in zip(keys, pairs) if n == most and key is not None}
