"""What a text says about the options that it names: which of them it negates, and which it names side by side.

Conventions
    A mention is negated by a word of negation before it in the same clause ("doesn't seem happy", "far from happy", "can't
    say whether it is happy"), or by what is said of it ("B doesn't match", "B is wrong"). Options that are joined by `or`,
    `and`, a stroke or a comma are one group: what negates one negates all. Words are known in English, Chinese, German,
    French, Spanish, Italian, Portuguese, Russian, Japanese and Korean. The time grows in proportion to the length of the text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from codec_bench.text.language import ALONE_CLASS

REACH = 90
"""Characters before and after a mention in which a negation may stand."""
MOST = 400
"""How many mentions are looked at."""
_LOOKS_LIKE = str.maketrans({"А": "A", "В": "B", "С": "C", "Е": "E"})
_CYRILLIC = re.compile(r"(?<!\w)[АВСЕ](?!\w)")
_TAGS = re.compile(r"</?(?:(?:final_?)?(?:answer|ans|choice|option)|i|em|strong|p|span|u|code)>", re.IGNORECASE)
_WORD = rf"(?:(?![{ALONE_CLASS}])[^\W_])"

_BREAKS = re.compile(
    r"[.,;:!?。，；：！？、\n()（）]|\b(?:but|however|yet|so|therefore|thus|hence|because|since|which|while|although|though|then"
    r"|sondern|aber|daher|also|mais|donc|sino|pero|luego|ma|quindi|mas|но|поэтому|and (?:it|he|she|they|the|that|this|is|sounds?|seems?))\b"
    r"|而是|但是|但|所以|因此|而且|故",
    re.IGNORECASE,
)
# What looks like a negation and is none.
_AFFIRMS = re.compile(
    r"\b(?:no|without(?: a| any)?|not a|beyond(?: a| any)?) (?:doubt|question)\b|\bnot only\b|\bas if\b|\bnot? (?:other|less) than\b"
    r"|\bcan(?:no|')t (?:be )?(?:anything|other)\b|毫无疑问|不错|无疑",
    re.IGNORECASE,
)
_NEGATES = re.compile(
    r"\b(?:not|never|neither|nor|cannot|cant|no|without|hardly|barely|scarcely|rather than|instead of|other than|as opposed to"
    r"|except(?: for)?|excluding|excludes?|far from|rules? out|ruled out|ruling out|eliminat\w+|doubts?|doubtful|whether|if|unclear"
    r"|unsure|uncertain|unlikely|unable|impossible|lacks?|absence of|less|least|opposite of|nobody|no one|used to|too \w+ to be|less likely"
    r"|nicht|kein\w{0,2}|weder|noch|nie|statt|ohne|ob|ne|pas|ni|jamais|aucune?|plutôt que|sans|nunca|sin|en lugar de|tampoco"
    r"|non|né|senza|não|nem|sem|не|ни|нет|без|вряд ли)\b|n't\b|\bn'|[不非没沒無无別别]|排除|除了|而非|未|是否",
    re.IGNORECASE,
)
_ONLY_BUT = re.compile(r"\b(?:anything|everything|all|nothing like|any) but\W{1,3}(?:an? |the )?\Z", re.IGNORECASE)
_AFTER = re.compile(
    r"[)\]}*\"'”’`_]{0,4}(?:[?？]\s*(?:i\s+doubt|no\b(?!\s*,)|not\b|nope|hardly|never|unlikely|nein|non\b|不)|\s*(?:选项|選項|项|項)?\s*(?:"
    r"(?:is|are|was|were|seems?|looks?|sounds?|would be|can be|could be|may be|should be)\s*(?:\w+\s+){0,2}?"
    r"(?:not\b|n't\b|wrong|incorrect|false|unlikely|impossible|ruled out|excluded|eliminated|improbable|invalid|out of the question"
    r"|less likely|absent|missing)"
    r"|(?:isn't|aren't|wasn't|weren't|doesn't|don't|didn't|does not|do not|did not|can't|cannot|can not|could not|couldn't|won't|wouldn't)\b(?!\s+be\s+(?:excluded|ruled out|eliminated|dismissed|discounted))"
    r"|(?:是|都)?(?:不|错|錯|有误)|(?:ist|sind)\s(?:falsch|nicht|kein)|(?:n'est|est\s(?:faux|fausse|incorrecte?))"
    r"|(?:no\s)?es\s(?:incorrect|fals)\w*|no\ses\b|не\w*верн\w*|не\b|(?:は|が|では)(?:間違|違|不正解|ありませ|な)|で?はありません|じゃな|(?:번)?(?:이|가|은|는|도)?\s*(?:아니|아닙|아닌|맞지 않|틀렸|틀린)))",
    re.IGNORECASE,
)
_AND = (
    r"and/or|as well as|or|and|nor|versus|vs\.?|oder|und|noch|ou|et|o|u|y|e|ni|или|и|либо|ни|または|及び|および|もしくは|か|と"
    r"|或者|或是|或|还是|還是|和|与|與|跟|及|以及|또는|혹은|이나|및"
)
_JOINS = (
    rf"[)\]}}*\"'”’`_.]{{0,4}}[?？]?\s*(?:(?:[,，、;/|&+]|\b(?:{_AND})\b|(?:或者|或是|或|还是|還是|和|与|與|跟|及|以及|または|か|と|이나|나|와|과|도))\s*)"
    rf"(?:(?:[,/&]|\b(?:{_AND})\b)\s*)?"
    r"(?:\b(?:possibly|maybe|perhaps|even|also|probably|either|else|soit|entweder|the|an?|options?|choices?|answers?|选项|選項)\b\s*){0,3}"
    r"[(\[{\"'“‘*`_$\\]{0,4}(?:boxed\s?\{)?"
)
_GROUPS = re.compile(_JOINS, re.IGNORECASE)


class Mention(NamedTuple):
    """A place in a text that names an option: the option, where it begins and where it ends."""

    key: str
    start: int
    end: int


def folded(text: str) -> str:
    """A text in one form: NFKC, plain apostrophes, no tags around answers, single spaces, no blank lines, and Latin
    letters where single Cyrillic ones look like them.
    """
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    lines = (" ".join(line.split()) for line in _TAGS.sub(" ", plain).split("\n"))
    plain = "\n".join(filter(None, lines))
    return _CYRILLIC.sub(lambda match: match[0].translate(_LOOKS_LIKE), plain)


_CORRECTS = re.compile(
    r"\b(?:no,? wait|wait,? no|scratch that|correction|on second thoughts?|actually,? no|(?:let me|i) correct (?:that|myself))\b"
    r"|其实(?=是|应该是)|更正|(?:いや、|아니,? 잠깐)",
    re.IGNORECASE,
)


def corrected(text: str) -> str:
    """What follows the last place at which a text takes back what it has decided."""
    last = max(_CORRECTS.finditer(text), key=re.Match.start, default=None)
    return text[last.end() :] if last is not None and last.start() else text


def positive(text: str, mentions: Iterable[Mention]) -> set[str]:
    """The options that a text names and does not negate."""
    keys: set[str] = set()
    for group in grouped(text, mentions):
        if not (_is_negated_before(text, group[0].start) or _is_negated_after(text, group[-1].end)):
            keys.update(one.key for one in group)
    return keys


def grouped(text: str, mentions: Iterable[Mention]) -> Iterator[list[Mention]]:
    """Mentions that are joined."""
    group: list[Mention] = []
    for one in islice(mentions, MOST):
        if group and (one.start - group[-1].end > REACH or not _GROUPS.fullmatch(text, group[-1].end, one.start)):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def clause_before(text: str, at: int) -> str:
    """What stands before a place in its clause."""
    before = text[max(0, at - REACH) : at]
    last = max(_BREAKS.finditer(before), key=re.Match.start, default=None)
    return before[last.end() :] if last is not None else before


def _is_negated_before(text: str, at: int) -> bool:
    if _ONLY_BUT.search(text[max(0, at - 30) : at]):
        return True
    clause = _AFFIRMS.sub(" ", clause_before(text, at))
    return _NEGATES.search(clause) is not None


def _is_negated_after(text: str, at: int) -> bool:
    return _AFTER.match(text, at, at + REACH) is not None


def mentions_of(text: str, phrases: Mapping[str, str]) -> list[Mention]:
    """Where a text holds phrases, the longest at each place.

    Args:
        text: as `folded` gives it. phrases: the option by each of its phrases.
    """
    pattern, keys = _phrases(tuple(phrases.items()))
    if pattern is None:
        return []
    return [Mention(keys[_squeezed(match[0])], match.start(), match.end()) for match in pattern.finditer(text)]


@lru_cache(512)
def _phrases(phrases: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    parts: list[str] = []
    keys: dict[str, str] = {}
    for phrase, key in sorted(phrases, key=lambda one: -len(one[0])):
        items = re.findall(rf"[{ALONE_CLASS}]|{_WORD}+", folded(phrase))
        if not items:
            continue
        first, last = (bool(re.match(_WORD, items[at])) for at in (0, -1))
        body = r"[\W_]*".join(map(re.escape, items)) if len(items) == 1 else r"[\W_]{0,3}".join(map(re.escape, items))
        parts.append((rf"(?<!{_WORD})" if first else "") + body + (_end_of(items[-1]) if last else ""))
        keys.setdefault(_squeezed("".join(items)), key)
    return (re.compile("|".join(parts), re.IGNORECASE) if parts else None), keys


def _end_of(item: str) -> str:
    """Where a word ends: before no other letter, and in Korean also before a particle."""
    particles = rf"|(?=(?:{_PARTICLES})(?!{_WORD}))" if "가" <= item[-1] <= "힣" else ""
    return rf"(?:(?!{_WORD}){particles})"


_PARTICLES = "입니다|이다|이에요|예요|이라고|라고|이|가|은|는|을|를|의|도|으로|로|와|과|소리입니다|같습니다"


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


_ANSWER_KEYS = re.compile(
    r"(?i)answer|option|choice|letter|label|prediction|result|class|emotion|gender|category|verdict|value|答案|选项"
)
_NUMBERED = re.compile(
    r"(?P<key>[^\W\d_][\w' -]{0,40}?)[\"'*)\]]{0,3}(?:\s*[:=：]\s*[\"'*]{0,2}(?P<n>\d{1,3}(?:\.\d+)?|\.\d+)\s*%?|\s+(?P<m>0?\.\d+|1\.0+|\d{1,3}(?:\.\d+)?\s?%))(?!\w|\.\d)"
)


def loaded(text: str) -> Any:
    """The value of a text that is JSON, fenced or not; None if it is none."""
    bare = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text).strip()
    if bare[:1] not in ("{", "["):
        return None
    try:
        return json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return None


def answer_in(value: Any) -> str | None:
    """The text that an object in JSON gives as its answer; None if it gives none."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) if all(isinstance(one, str) for one in value) else None
    if not isinstance(value, dict):
        return None
    named = [held for key, held in value.items() if _ANSWER_KEYS.search(str(key))] or list(value.values())
    if len(named) != 1 or isinstance(named[0], (dict, list, bool)) or named[0] is None:
        return None
    return str(named[0])


def probabilities(text: str, value: Any, key_of: Callable[[str], str | None]) -> set[str] | None:
    """The likeliest options of a list of probabilities; None for a text that is no such list.

    Args:
        text: as `folded` gives it. value: what it is in JSON, or None. key_of: the option that a text names as a whole.

    Returns:
        The options with the largest number; none of them if what is listed is not options alone.
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
    keys = [
        key_of(name.split()[-1] if value is None and key_of(name) is None and name.split() else name)
        for name, _ in pairs
    ]
    if None in keys or len(set(keys)) < len(keys):
        return set() if isinstance(value, dict) else None
    most = max(n for _, n in pairs)
    return {key for key, (_, n) in zip(keys, pairs) if n == most and key is not None}
