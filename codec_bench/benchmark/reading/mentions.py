"""Where a text names an option: by a letter, by its text or another word for it, or by a word for yes or no."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import islice

from codec_bench.benchmark.reading.grammar import MOST, Mention, cue, joins
from codec_bench.text.language import ALONE_CLASS

_LOOKS_LIKE = str.maketrans({"А": "A", "В": "B", "С": "C", "Е": "E"})
_CYRILLIC = re.compile(r"(?<!\w)[АВСЕ](?!\w)")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s?\{|<(?:final_?)?(?:answer|ans|choice|option)>", re.IGNORECASE)
_TAGS = re.compile(
    r"</?(?:(?:final_?)?(?:answer|ans|choice|option)|(?-i:[biu])|br|li|ul|em|strong|p|span|code)\s?/?>|\\(?:text|textbf|mathbf|mathrm)\s?(?=\{)",
    re.IGNORECASE,
)
_WORD = rf"(?:(?![{ALONE_CLASS}])[^\W_])"


def folded(text: str) -> str:
    """A text in one form: NFKC, plain apostrophes, no tags around answers, single spaces, no blank lines, and Latin
    letters where single Cyrillic ones look like them.
    """
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    plain = _TAGS.sub(" ", _BOXED.sub(" \n final answer: ", plain))
    lines = (" ".join(line.split()) for line in plain.split("\n"))
    plain = "\n".join(filter(None, lines))
    return _CYRILLIC.sub(lambda match: match[0].translate(_LOOKS_LIKE), plain)


def mentions_of(text: str, phrases: Mapping[str, str]) -> list[Mention]:
    """Where a text holds phrases, the longest at each place.

    Args:
        text: as `folded` gives it. phrases: the option by each of its phrases.
    """
    pattern, keys = _phrases(tuple(phrases.items()))
    if pattern is None:
        return []
    return [Mention(keys[(match.lastindex or 1) - 1], match.start(), match.end()) for match in pattern.finditer(text)]


@lru_cache(512)
def _phrases(phrases: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str] | None, list[str]]:
    parts: list[str] = []
    keys: list[str] = []
    for phrase, key in sorted(phrases, key=lambda one: -len(one[0])):
        items = re.findall(rf"[{ALONE_CLASS}]|{_WORD}+", folded(phrase))
        if not items:
            continue
        first, last = (bool(re.match(_WORD, items[at])) for at in (0, -1))
        body = r"[\W_]{0,3}".join(map(_any_case, items))
        parts.append((rf"(?<!{_WORD})(?:(?:[وفبل]|لل)?ال)?" if first else "") + f"({body})" + (_END if last else ""))
        keys.append(key)
    return (re.compile("|".join(parts), re.IGNORECASE) if parts else None), keys


def _any_case(item: str) -> str:
    """The pattern of a word, in Russian with another ending."""
    if len(item) > 3 and re.fullmatch("[а-яё]+", item, re.IGNORECASE):
        return re.escape(item.rstrip("аяоеийыьуАЯОЕИЙЫЬУ")) + r"[а-яё]{0,3}"
    return re.escape(item)


_PARTICLES = "입니다|이다|이에요|예요|이라고|라고|이|가|은|는|을|를|의|도|으로|로|와|과|인|일|하고|소리|같|에"
_END = rf"(?:(?!{_WORD})|(?=(?:{_PARTICLES})))"
"""Where a word ends: before no other letter, or before a Korean particle."""

_SINGLE = re.compile(
    r"(?<![A-Za-z0-9_])(?<![A-Za-z]')(?<![A-Za-z]\.)[A-Za-z](?![A-Za-z0-9_]|['’](?!s\b)\w|-\w|\.[A-Za-z])"
)
_NOTE = re.compile(r"[-\s]{0,3}(?:major|minor|sharp|flat|maj|min)(?!\w)|[#♯♭]|[大小]调|[型级班超罩组]", re.IGNORECASE)
"""What follows a letter that is no option: the name of a note, a blood group."""
_OPENERS = re.compile(r"[\s(\[{<\"'“«「『【《*_`$\\|>#•:：=-]*\Z")
_CITED = re.compile(r"(?:answer|option|choice|letter)s?(?: is)?[\s:=\"'(]{1,4}\Z", re.IGNORECASE)
_GOES_ON = re.compile(
    r"[)\]}>\"'”»」』】*_`$]*(?:\Z|\s*[^\w\s]|\n|[^\x00-\u024f]|\s*(?:'s|(?:is|are|was|be|because|since|as|due|rather|instead|it|fits?|match(?:es)?|seems?|sounds?|looks?|describes?|makes?|has|corresponds?"
    r"|alone|would|must|should|could|may|might|can|cannot|can't|doesn't|isn't|does|gets|wins|stands|remains|best|over|then|for|when|with|only|correct(?:ly)?|if|or|and|nor|but|vs|versus"
    r"|und|oder|noch|sagen|wählen|nehmen|tippen|ist|sind|wäre|passt|passen|stimmt|scheide\w*|aus|klingt|weil|da|für|richtig|est|sont|et|ou|ni|ne|n'est|car|parce|qui|convient|correspond\w*|es|son|y|o|no|porque|encaja|corresponde|me|queda\w*|è|e|и|или|не|верно))(?!\w))",
    re.IGNORECASE,
)

_ANSWER_NOUN = re.compile(
    r"option|choice|letter|antwort|r[ée]ponse|choix|opción|respuesta|opzione|risposta|opção|resposta|вариант|ответ",
    re.IGNORECASE,
)
_NO_OPTION_AFTER = re.compile(
    "an?|the|of|my|in|at|her|his|vitamin|plan|group|type|class|grade|section|note|key|string|chord|part|level|team|channel|speaker|person"
    "|clip|audio|sound|recording|track|sample|voice|man|woman|student|hepatitis|side|block|row|gate|exit|zone|category|phase"
    "|appendix|figure|hall|terminal|unit|route|low|high|middle|concert|open|natural|mit|un|une|le|ein|eine|el|la|di|du|de"
)
"""Words before a capital letter that names a note, a group, a grade, a person or a recording."""

_ORDINALS = re.compile(
    r"(?<!\w)(?:(?P<A>first|erste|première|primera|prima)|(?P<B>second|zweite|deuxième|seconde|segunda|seconda)"
    r"|(?P<C>third|dritte|troisième|tercera|terza)|(?P<D>fourth|vierte|quatrième|cuarta|quarta)|(?P<E>fifth|fünfte|cinquième|quinta))"
    r" (?:option|choice|answer|antwort|réponse|choix|opción|respuesta|opzione|risposta|opção|resposta)(?!\w)"
    r"|第(?:(?P<A_>一)|(?P<B_>二)|(?P<C_>三)|(?P<D_>四)|(?P<E_>五))(?:个|個)?(?:选项|選項|答案)",
    re.IGNORECASE,
)


def letters_of(text: str, allowed: str) -> list[Mention]:
    """Every letter that can be an option where it stands: none of a name, a note, an article or a list of these.

    "The second option" is B. A letter in brackets or bold print is one. Else the word before it must be a cue or a function word (`left` in
    `cues.yaml`), or a clause must begin with it.
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
    last = before[-1:]
    goes_on = _GOES_ON.match(text, end) is not None
    if not last or not last.isalnum() or "\n" in mark or re.search(r"[:：=>|]", mark):
        return goes_on
    if not re.match(r"[a-z\u00c0-\u024f]", last, re.IGNORECASE):
        return not re.search(rf"(?:{cue('nouns').pattern})\s?\Z", before, re.IGNORECASE)
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
        cue(role).fullmatch(word) for role in ("left", "answer", "so", "but", "first", "aside", "hedge", "negate")
    )


_YES = "absolutely|affirmative|exactly|indeed|of course|that(?:'s| is) (?:right|correct|true)|yes|yeah|yep|yea|true|correct|ja|oui|sí|sì|sim|да|verdadero|نعم|أجل|हाँ|हां|जी हाँ|はい|네|예"
_NO = "i (?:don't|do not) think so|that(?:'s| is) (?:not (?:right|correct|true|the case)|wrong|incorrect|false)|no|nope|nah|false|incorrect|nein|non|não|нет|لا|كلا|नहीं|जी नहीं|いいえ|아니요|아니오|아뇨|아닙니다"
_HAN_YES = "是的?(?![:：]|否|不|或|还|哪|谁|个|一|四|在|同|什)|对的?(?!不起|于|比|话|方|面|着|称)|正确|肯定|有(?!没有|可能|一|点|些|两|几|时|人)"
_HAN_NO = r"不是的?|不对|不正确|否定?|没有(?![^。，,.]{0,8}(?:音|录|收))|不(?=\W|\Z)"
_STARTS = r"(?:\A|[.!?。！？，、,;:：；\n]|(?<![\w'])(?:probably|likely|most likely|i think|i believe|i guess|i(?:'d| would) say|well|so|then|therefore|thus|hence|say|answer|is|be|dass?|que|donc|est|es|ist|è|é|что|هي|ist))[\s*\"'“「『_`(\[*>|-]{0,6}"
_STOPS = r"(?=[\s*\"'”」』_`)\]|]{0,4}(?:\Z|[.,،;:!?。，；！、\n—–-])|[\"'”」』])"
_SENTENCE = (
    r"(?=\s(?:it|he|she|they|that|this|there|the|these|those|i|we|because|since|not|es|das|il|ce|no|music|both)\b)"
)


_BOTH = re.compile(
    r"(?P<yes>\b(?:yes|no|ja|oui|sí)\b|是)\W{0,3}(?:and|or|and/or|/|oder|und|ou|et|o|y|或|和|还是)\W{0,3}(?P<no>\b(?:yes|no|nein|non)\b|不是|否)",
    re.IGNORECASE,
)


@cache
def _yes_no() -> re.Pattern[str]:
    lead = rf"(?:{_STARTS}|(?:{cue('answer').pattern})[^\w.]{{0,6}}(?:(?:{cue('copula').pattern})[^\w.]{{0,6}}){{0,2}})"
    return re.compile(
        rf"{lead}(?:(?P<no>(?:{_NO})(?!\w)(?:{_STOPS}|{_SENTENCE}|(?=입니다|です))|(?:definitely|certainly|absolutely|clearly|surely|obviously|of course) not{_STOPS}|not at all{_STOPS})"
        rf"|(?P<yes>(?:{_YES})(?:(?!\w){_STOPS}|(?!\w){_SENTENCE}|(?=입니다|です)))"
        rf"|(?P<han_no>{_HAN_NO})|(?P<han_yes>{_HAN_YES}))",
        re.IGNORECASE,
    )


def yes_no_mentions(text: str) -> list[Mention]:
    """Every yes or no that answers: it opens a clause or follows a cue, and stands alone there."""
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
