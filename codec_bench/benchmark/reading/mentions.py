"""Find where a text names an option: letter, text, synonym, yes or no."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import groupby, islice

from codec_bench.benchmark.reading.grammar import MOST, Mention, cue_pattern, joins
from codec_bench.benchmark.reading.patterns import compile_pattern
from codec_bench.text.language import ALONE_CLASS

_LOOKS_LIKE = str.maketrans({"А": "A", "В": "B", "С": "C", "Е": "E"})
_CYRILLIC = re.compile(r"(?<!\w)[АВСЕ](?!\w)")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s?\{|<(?:final_?)?(?:answer|ans|choice|option)>", re.IGNORECASE)
_TAGS = compile_pattern("mentions", "tags")
_WORD = rf"(?:(?!(?-i:[{ALONE_CLASS}]))[^\W_])"
"""A letter or digit of a word. Compiling the class takes milliseconds, and twice as many where case is ignored."""


def fold_text(text: str) -> str:
    """Normalise an answer: NFKC, no tags, single spaces, Latin for Cyrillic twins."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    plain = _TAGS.sub(" ", _BOXED.sub(" \n final answer: ", plain))
    lines = (" ".join(line.split()) for line in plain.split("\n"))
    plain = "\n".join(filter(None, lines))
    return _CYRILLIC.sub(lambda match: match[0].translate(_LOOKS_LIKE), plain)


def mentions_of(text: str, phrases: Mapping[str, str]) -> list[Mention]:
    """Find phrases in a text, the longest at each place.

    Args:
        text: as `fold_text` gives it.
        phrases: the option by each of its phrases.
    """
    pattern, keys = _phrases(tuple(phrases.items()))
    if pattern is None:
        return []
    return [Mention(keys[(match.lastindex or 1) - 1], match.start(), match.end()) for match in pattern.finditer(text)]


@lru_cache(512)
def _phrases(phrases: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str] | None, list[str]]:
    """Compile a pattern of all phrases, longest first.

    Returns:
        (pattern, option of each of its groups); the pattern is None without phrases.
    """
    keys: list[str] = []
    patterns: list[tuple[bool, bool, str]] = []
    for phrase, key in sorted(phrases, key=lambda one: -len(one[0])):
        items = re.findall(rf"[{ALONE_CLASS}]|{_WORD}+", fold_text(phrase))
        if not items:
            continue
        first, last = (bool(re.match(_WORD, items[at])) for at in (0, -1))
        body = r"[\W_]{0,3}".join(map(_any_case, items))
        patterns.append((first, last, (_ARTICLE if first else "") + f"({body})"))
        keys.append(key)
    parts = [
        (rf"(?<!{_WORD})" if first else "") + f"(?:{'|'.join(body for *_, body in run)})" + (_END if last else "")
        for (first, last), run in groupby(patterns, key=lambda one: one[:2])
    ]
    return (re.compile("|".join(parts), re.IGNORECASE) if parts else None), keys


def _any_case(item: str) -> str:
    """The pattern of a word, in Russian with any ending."""
    if len(item) > 3 and re.fullmatch("[а-яё]+", item, re.IGNORECASE):
        return re.escape(item.rstrip("аяоеийыьуАЯОЕИЙЫЬУ")) + r"[а-яё]{0,3}"
    return re.escape(item)


_ARTICLE = "(?:(?:[وفبل]|لل)?ال)?"
_PARTICLES = "입니다|이다|이에요|예요|이라고|라고|이|가|은|는|을|를|의|도|으로|로|와|과|인|일|하고|소리|같|에"
_END = rf"(?:(?!{_WORD})|(?=(?:{_PARTICLES})))"
"""The end of a word: before no other letter, or before a Korean particle."""

_SINGLE = re.compile(
    r"(?<![A-Za-z0-9_])(?<![A-Za-z]')(?<![A-Za-z]\.)[A-Za-z](?![A-Za-z0-9_]|['’](?!s\b)\w|-\w|\.[A-Za-z])"
)
_NOTE = re.compile(r"[-\s]{0,3}(?:major|minor|sharp|flat|maj|min)(?!\w)|[#♯♭]|[大小]调|[型级班超罩组]", re.IGNORECASE)
"""What follows a letter that is no option: the name of a note, a blood group."""
_OPENERS = re.compile(r"[\s(\[{<\"'“«「『【《*_`$\\|>#•:：=-]*\Z")
_CITED = re.compile(r"(?:answer|option|choice|letter)s?(?: is)?[\s:=\"'(]{1,4}\Z", re.IGNORECASE)
_GOES_ON = compile_pattern("mentions", "goes_on")


_ANSWER_NOUN = re.compile(
    r"option|choice|letter|antwort|r[ée]ponse|choix|opción|respuesta|opzione|risposta|opção|resposta|вариант|ответ",
    re.IGNORECASE,
)
_NO_OPTION_AFTER = compile_pattern("mentions", "no_option_after")
"""Words before a capital letter that names a note, a group, a grade, a person or a recording."""

_ORDINALS = compile_pattern("mentions", "ordinals")


def letters_of(text: str, allowed: str) -> list[Mention]:
    """Find every letter that can be an option and no name, note or article.

    "The second option" is B. A letter in brackets or bold print counts. Else the word before it must be a cue or a
    function word (`left` in `cues.yaml`), or it must begin a clause.
    """
    mentions: list[Mention] = []
    refused = -1
    for match in islice(_SINGLE.finditer(text), MOST):
        start, end = match.span()
        if match[0].upper() not in allowed or _NOTE.match(text, end):
            refused = end if match[0].isupper() else refused
            continue
        opening = _OPENERS.search(text, max(0, start - 12), start)
        mark = opening[0] if opening is not None else ""
        wrapped = bool(re.search(r"[(\[【「『«]|\*\*", mark)) and not text[end : end + 1].isspace()
        before = text[max(0, start - 40) : start - len(mark)]
        if match[0].islower() and not (wrapped or _CITED.search(text, max(0, start - 30), start)):
            continue
        joined = bool(mentions) and match[0].isupper() and joins(text, mentions[-1].end, start)
        if refused >= 0 and re.fullmatch(r"\W{0,3}(?:and |or |to |[和或、])?\W{0,2}", text[refused:start]):
            refused = end
        elif wrapped or joined or _is_licensed(text, before, mark, start, end):
            mentions.append(Mention(match[0].upper(), start, end))
        else:
            refused = end
    named = (((match.lastgroup or "")[0], match) for match in islice(_ORDINALS.finditer(text), MOST))
    return mentions + [Mention(letter, *match.span()) for letter, match in named if letter in allowed]


def _is_licensed(text: str, before: str, mark: str, start: int, end: int) -> bool:
    """Whether the words around a letter make it an option.

    Args:
        before: the text before the letter and `mark`.
        mark: brackets, quotes or colons in front of it.
        start, end: of the letter in the text.
    """
    last = before[-1:]
    goes_on = _GOES_ON.match(text, end) is not None
    if not last or not last.isalnum() or "\n" in mark or re.search(r"[:：=>|]", mark):
        return goes_on
    if not re.match(r"[a-z\u00c0-\u024f]", last, re.IGNORECASE):
        return not re.search(rf"(?:{cue_pattern('nouns').pattern})\s?\Z", before, re.IGNORECASE)
    word = re.search(r"[^\W\d_]+(?:'[^\W\d_]+)?\Z", before)
    if word is None:
        return goes_on
    if _ANSWER_NOUN.fullmatch(word[0]):
        return True
    if not any(map(_licenses, (word[0], *word[0].split("'")))):
        if word[0] == "in":
            return re.match(r"[.)] [A-Z]\w", text[end : end + 4]) is not None
        is_consonant = text[start] not in "AEIOUY"
        return goes_on and is_consonant and word[0].islower() and not _NO_OPTION_AFTER.fullmatch(word[0])
    return goes_on or text[start] not in "AEIOUY"


@cache
def _licenses(word: str) -> bool:
    """Whether an option may follow a word."""
    return any(
        cue_pattern(role).fullmatch(word)
        for role in ("left", "answer", "so", "but", "first", "aside", "hedge", "negate")
    )


_BOTH = compile_pattern("mentions", "both")


@cache
def _yes_no() -> re.Pattern[str]:
    return compile_pattern(
        "mentions", "answers", answer=cue_pattern("answer").pattern, copula=cue_pattern("copula").pattern
    )


def yes_no_mentions(text: str) -> list[Mention]:
    """Find every yes or no that answers: alone at a clause's start or after a cue."""
    mentions = [Mention(key, *both.span(key)) for key in ("yes", "no") for both in islice(_BOTH.finditer(text), MOST)]
    at = 0
    for _ in range(MOST):
        match = _yes_no().search(text, at)
        if match is None:
            break
        name = next(name for name, value in match.groupdict().items() if value)
        start, at = match.span(name)
        if not name.startswith("han") or not mentions:
            mentions.append(Mention(name.removeprefix("han_"), start, at))
        at = max(at, match.start() + 1)
    return mentions
