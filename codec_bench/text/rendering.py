"""Compare the written form of the same words, such as digits or spelling.

Source: github.com/huggingface/open_asr_leaderboard d1e99b2, `benchmark_fitting/ref_rendering_utils.py`; equal on the
cases of tests/golden/text/open_asr_rendering.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from functools import cache
from typing import NamedTuple

from codec_bench.text.open_asr import spellings

KINDS = ("spelling", "initialism", "number", "lexical")

_SPELLED_FROM = tuple(
    "behaviour centre colour defence favour honour minimi mould neighbour organi realis recogni theatre travell".split()
)
"""Prefixes of words (in addition to the words below) that sound alike in both spellings and mean the same."""
_SPELLED = frozenset("""
accoutrements aesthetic aesthetically aesthetics analogue apologise ardour armour armoured authorised axe bannister
cancelled cancellation cancellations catalogues chilli civilised councillor counselled criticise criticised demeanour
democratisation destabilise dialogue dialogues emphasise emphasised encyclopaedia endeavour endeavoured fertiliser fibre
finalised fulfil fulfilment globalisation globalised gravelled grey harbour harmonisation humour humours ionising
labelled labelling labour labourers labours levelled litre lustre manoeuvring marshalled marvelled marvellous mitre
monologue offence offences omelette orthopaedic pencilled pretence revelled rumour saviour scepticism sepulchre
shrivelled signalled sombre specialisation specialised spectre stabilisation sulphur summarise towelling tranquillity
vapours
""".split())  # fmt: skip
_INITIALS = frozenset(
    "api bdb dfs dil dnlg dvd hci lc lcd msc nxt pcb pdf rsi sms spnlp tfidf tnt tv uid uv vcr xml xsl xslt".split()
)
_ALONE = r"(?<![A-Za-z])(?:{})(?![A-Za-z])"
_APART = r"(?:\s+|[-‐‑‒–—])"
_MISTER = "mister"
_LEXICAL = {
    _MISTER: {"expanded": "mister", "abbreviated": r"mr\.?"},
    "etcetera": {"apart": r"et\s+cetera", "joined": "etcetera", "abbreviated": r"etc\.?"},
    **{
        "".join(pair): {"apart": _APART.join(pair), "joined": "".join(pair)}
        for pair in (("e", "mail"), ("e", "commerce"), ("wi", "fi"), ("sci", "fi"), ("x", "ray"), ("t", "shirt"))
    },
}
_UNITS = "one two three four five six seven eight nine".split()
_TEENS = "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_UNITS_TH = "first second third fourth fifth sixth seventh eighth ninth".split()
_TEENS_TH = "eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split()
_TENS_TH = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth".split()
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_LEAST, _MOST = 11, 99
_DIGITS = re.compile(r"(?<![\w$€£¥.:\-])(\d{1,2})(st|nd|rd|th)?(?![\w%$€£¥.:\-])", re.IGNORECASE)
_YEAR_BEFORE = re.compile(r"(?:['’]|(?:fiscal\s+year|fy|year)\s*['’]?)\s*$", re.IGNORECASE)
_YEAR_AFTER = re.compile(r"\s*(?:fiscal\s+year|year)\b", re.IGNORECASE)
_SEEN_BEFORE, _SEEN_AFTER = 30, 20


class Rendered(NamedTuple):
    """Places with several written forms in two texts, and how many agree."""

    same: int
    places: int


class _Form(NamedTuple):
    """A segment of a text with another written form of the spoken words `family`."""

    start: int
    end: int
    kind: str
    family: str
    form: str


def rendered(reference: str, estimate: str, normalise: Callable[[str], str]) -> dict[str, Rendered]:
    """By kind, how often a transcript has the reference's form of the same words.

    A place counts if the normalised words around it are aligned and both texts have a form of one family there. A text
    whose forms are in brackets that the rule removes has no places.

    Args:
        reference, estimate: as written, not normalised.
        normalise: the rule that decides which words are the same.

    Examples:
        >>> rendered("The colour of e-mail", "The color of e-mail", str.lower)["lexical"]
        Rendered(same=1, places=1)
    """
    counts = dict.fromkeys(KINDS, Rendered(0, 0))
    reference = " ".join(reference.split())
    forms = [one for one in _forms(reference) if not _is_ambiguous(one, reference)]
    if not forms:
        return counts
    mine, words = _locate_forms(reference, forms, normalise)
    theirs, other_words = _locate_forms(estimate, _forms(estimate), normalise)
    for position, form in mine.items():
        other = theirs.get(_opposite(position, _aligned(words, other_words)))
        if other and other.family == form.family:
            same, places = counts[form.kind]
            counts[form.kind] = Rendered(same + (other.form == form.form), places + 1)
    return counts


def _aligned(words: list[str], other_words: list[str]) -> list[tuple[int, int, int]]:
    """The runs of equal words: (start and end in the first text, start in the second)."""
    steps = SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes()
    return [(i1, i2, j1) for step, i1, i2, j1, _ in steps if step == "equal"]


def _opposite(position: int, runs: list[tuple[int, int, int]]) -> int:
    return next((other + position - first for first, end, other in runs if first <= position < end), -1)


def _is_ambiguous(form: _Form, reference: str) -> bool:
    """Whether a form is `mr` without a dot, which may be another word in a reference."""
    return form.family == _MISTER and form.form == "abbreviated" and not reference[: form.end].endswith(".")


def _locate_forms(text: str, forms: list[_Form], normalise: Callable[[str], str]) -> tuple[dict[int, _Form], list[str]]:
    """The forms by position among the normalised words; a placeholder word replaces each form."""
    parts, at = [], 0
    for form in forms:
        parts += [text[at : form.start], _placeholder(form)]
        at = form.end
    words = normalise(" ".join([*parts, text[at:]])).split()
    forms_at: dict[int, _Form] = {}
    left = iter(forms)
    waiting = next(left, None)
    for position, word in enumerate(words):
        if waiting and word == _placeholder(waiting):
            forms_at[position] = waiting
            waiting = next(left, None)
    return ({} if waiting else forms_at), words


def _placeholder(form: _Form) -> str:
    """A placeholder word that no rule changes and no text has."""
    name = f"{form.kind} {form.family}".encode().hex()
    return "zq" + name.translate({ord(digit): ord("g") + int(digit) for digit in "0123456789"}) + "zq"


def _forms(text: str) -> list[_Form]:
    """All forms of a text in order; of overlapping ones the first, or the longest."""
    forms: list[_Form] = []
    for form in sorted(_candidates(text), key=lambda one: (one.start, -one.end)):
        if not forms or form.start >= forms[-1].end:
            forms.append(form)
    return forms


def _candidates(text: str) -> Iterator[_Form]:
    """Yield each place of a text that could be written in another form."""
    for pattern, read in _patterns():
        for match in pattern.finditer(text):
            reading = read(match)
            if reading is not None:
                yield _Form(match.start(), match.end(), *reading)


_Reading = tuple[str, str, str]
_Read = Callable[[re.Match[str]], _Reading | None]


@cache
def _patterns() -> list[tuple[re.Pattern[str], _Read]]:
    """Patterns of forms, each with a function that returns kind, family and form of a match, or None."""
    lexical = [
        (_alone(pattern), _always("lexical", family, form))
        for family, forms in _LEXICAL.items()
        for form, pattern in forms.items()
    ]
    words = "|".join(sorted(_spelled(), key=len, reverse=True))
    letters = (
        r"(?:[A-Za-z]\.\s*)+[A-Za-z]\.?",
        r"(?:[A-Za-z]\s+)+[A-Za-z]",
        "|".join(sorted(_INITIALS, key=len, reverse=True)),
    )
    numbers = _numbers()
    alternatives = "|".join(one.replace(" ", _APART) for one in sorted(numbers, key=len, reverse=True))
    return [
        (_alone(words), lambda match: ("spelling", *_spelled()[match[0].casefold()])),
        *lexical,
        *((_alone(pattern), _initialism) for pattern in letters),
        (_alone(alternatives), lambda match: ("number", numbers[re.sub(_APART, " ", match[0].casefold())], "words")),
        (_DIGITS, _digits),
    ]


def _alone(pattern: str) -> re.Pattern[str]:
    return re.compile(_ALONE.format(pattern), re.IGNORECASE)


def _always(*reading: str) -> _Read:
    kind, family, form = reading
    return lambda _: (kind, family, form)


@cache
def _spelled() -> dict[str, tuple[str, str]]:
    """Family and form of each word with two spellings."""
    pairs = {
        british: american
        for british, american in spellings().items()
        if british.startswith(_SPELLED_FROM) or british in _SPELLED
    }
    return {american: (american, "american") for american in pairs.values()} | {
        british: (american, "british") for british, american in pairs.items()
    }


def _initialism(match: re.Match[str]) -> _Reading | None:
    """Read an initialism as its letters and how they are written."""
    letters = re.sub(r"[.\s]", "", match[0]).casefold()
    if letters not in _INITIALS:
        return None
    dotted, spaced = "." in match[0], re.search(r"\.\s" if "." in match[0] else r"\s", match[0])
    return "initialism", letters, f"{'dotted' if dotted else 'bare'} {'apart' if spaced else 'together'}"


def _numbers() -> dict[str, str]:
    """The family of each cardinal and ordinal number from 11 to 99 in words."""
    names = {}
    for kind, teens, tens, units in (("count", _TEENS, _TENS, _UNITS), ("order", _TEENS_TH, _TENS_TH, _UNITS_TH)):
        names.update({word: f"{kind} {_LEAST + at}" for at, word in enumerate(teens)})
        names.update({word: f"{kind} {20 + 10 * at}" for at, word in enumerate(tens)})
        names.update(
            {
                f"{ten} {unit}": f"{kind} {21 + 10 * at + more}"
                for at, ten in enumerate(_TENS)
                for more, unit in enumerate(units)
            }
        )
    return names


def _digits(match: re.Match[str]) -> _Reading | None:
    """Read a number in digits, but no year, and no number with a wrong ending."""
    value, ending = int(match[1]), match[2]
    text = match.string
    if not _LEAST <= value <= _MOST or (ending and ending.casefold() != _ending(value)):
        return None
    before, after = (
        text[max(0, match.start() - _SEEN_BEFORE) : match.start()],
        text[match.end() : match.end() + _SEEN_AFTER],
    )
    if _YEAR_BEFORE.search(before) or _YEAR_AFTER.match(after):
        return None
    return "number", f"{'order' if ending else 'count'} {value}", "digits"


def _ending(value: int) -> str:
    return "th" if value in (11, 12, 13) else _ENDINGS.get(value % 10, "th")
