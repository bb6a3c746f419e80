"""Variant spellings of the same speech, unified by a table per language.

A table holds only what a language leaves to the writer; `docs/metrics/text_rules.md` names the sources. Different
speech stays different, even with the same meaning: inflected numbers, "ngàn" and "nghìn", "septante". Numbers are
written out in `cardinals.py`; the tables here also unify the ways to write them out.

Steps
    `alefs`: أ, إ, آ and ٱ become ا. `variants-ar`: "و" between numbers joins the number after it; مائة becomes مئة, and
        ثلاث مئة one word.
    `yo`: ё becomes е. `variants-ru`: "одна тысяча" becomes "тысяча".
    `devanagari`: sequences that Unicode advises against become the letter meant; a nasal before a consonant of its
        class becomes anusvara; the dot under क ख ग ज फ is removed. `variants-hi`: one spelling per numeral.
    `variants-de`, `variants-it`, `variants-pt`, `variants-vi`: one spelling per numeral. `ordinals-id`: ke-2 becomes
        kedua.
    `variants-zh`: 二 before 百, 千, 万, 亿 becomes 两; numbers read digit by digit as telephone numbers become cardinals.
        `groups-zh`: removes the comma between thousands, and the hyphen between a Latin letter and a digit.
    `positional-ja`: numbers written with 〇, and years, as digits. `variants-ja`: 一千 before 万, 億, 兆 becomes 千.
    `variants-ko`: native numerals before counters become Sino-Korean ones: 세 명 becomes 삼 명.
    `spelling-en`: acronyms without dots, and clock times as spoken, before Whisper's rule.
    `okay`: ok becomes okay. `lone-points`: removes a full stop on its own, which Whisper's rule leaves of three dots.
    `letters`: single Latin letters in a row become one word; `letters-en`: except where they may be words. `names`:
        names with a space inside become one word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

from codec_bench.text.basic_steps import Step
from codec_bench.text.cardinals import load

Table = tuple[tuple[str, str], ...]


def _rewriting(table: Table, *parts: str) -> Step:
    """A step that replaces patterns in their order, in texts that contain one of the parts."""
    rules = [(re.compile(pattern), new) for pattern, new in table]

    def rewrite(text: str) -> str:
        if any(needle in text for needle in parts):
            for pattern, new in rules:
                text = pattern.sub(new, text)
        return text

    return rewrite


# Arabic.

_ALEFS = re.compile("[أإآٱ]")


def _alefs(text: str) -> str:
    return _ALEFS.sub("ا", text)


def _variants_ar() -> Step:
    """Return a step that unifies Arabic spellings of number words."""
    numbers = load("ar")
    words = {
        word for spelled in (*numbers.alone.values(), *numbers.before.values()) for word in _alefs(spelled).split()
    }
    words |= {word.replace("مائ", "مئ") for word in words}
    hundred = re.compile(r"مائ(?=(?:ة|تا|تان|تين)(?!\w))")
    hundreds = re.compile(r"(?<!\w)(ثلاث|اربع|خمس|ست|سبع|ثمان|تسع) (?=مئة(?!\w))")

    def rewrite(text: str) -> str:
        if " و " in text:
            items = text.split(" ")
            for index in range(len(items) - 2, 0, -1):
                if items[index] == "و" and items[index - 1] in words and items[index + 1] in words:
                    items[index : index + 2] = ["و" + items[index + 1]]
            text = " ".join(items)
        return hundreds.sub(r"\1", hundred.sub("مئ", text)) if "مائ" in text or "مئة" in text else text

    return rewrite


# Hindi.

_VOWELS_HI = {
    "\u0905\u093e": "\u0906", "\u0909\u0941": "\u090a", "\u090f\u0945": "\u090d", "\u090f\u0946": "\u090e",
    "\u090f\u0947": "\u0910", "\u0905\u0949": "\u0911", "\u0906\u0945": "\u0911", "\u0905\u094a": "\u0912",
    "\u0906\u0946": "\u0912", "\u0905\u094b": "\u0913", "\u0906\u0947": "\u0913", "\u0905\u094c": "\u0914",
    "\u0906\u0948": "\u0914", "\u0905\u0945": "\u0972",
}  # fmt: skip
"""DoNotEmit.txt of the Unicode Character Database, Indic_Vowel_Letter, for the letters of Hindi."""
_DEVANAGARI = re.compile(
    rf"{'|'.join(_VOWELS_HI)}"
    # A nasal before a stop of its own class (Central Hindi Directorate: हिंदी, not हिन्दी).
    r"|ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ])"
    # The dot of sounds from Persian, Arabic and English; that of ड़ and ढ़ stays.
    "|[कखगजफ]\u093c"
)


def _devanagari(text: str) -> str:
    return _DEVANAGARI.sub(_written_hi, text)


def _written_hi(match: re.Match[str]) -> str:
    if match[0][1] == "\u094d":
        return "\u0902"
    return _VOWELS_HI.get(match[0], match[0][0])


_NUMERALS_HI = {
    "पांच": "पाँच", "छह": "छः", "अठारह": "अट्ठारह", "चवालीस": "चौंतालीस", "तिरपन": "तिरेपन", "तिरसठ": "तिरेसठ",
    "छियासठ": "छयासठ", "सड़सठ": "सरसठ", "सताईस": "सत्ताईस", "उनासी": "उन्यासी", "सतासी": "सत्तासी",
}  # fmt: skip
"""Numerals of the Central Hindi Directorate's list that indic-numtowords spells differently, and पांच."""


def _variants_hi() -> Step:
    # Both sides of the table are spelled as the step `devanagari` leaves them.
    forms = {_devanagari(word): _devanagari(other) for word, other in _NUMERALS_HI.items()}
    return lambda text: " ".join(forms.get(word, word) for word in text.split(" "))


# Korean.

_NATIVE_KO = {
    "하나": 1, "한": 1, "둘": 2, "두": 2, "셋": 3, "세": 3, "넷": 4, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9,
}  # fmt: skip
_NATIVE_TENS_KO = {
    "열": 10, "스물": 20, "스무": 20, "서른": 30, "마흔": 40, "쉰": 50, "예순": 60, "일흔": 70, "여든": 80, "아흔": 90,
}  # fmt: skip
_COUNTERS_KO = ("명 사람 살 마리 개 시 시간 잔 병 벌 켤레 그루 송이 자루 가지 달 군데 바퀴 번째 그릇 채 배 척").split()
"""Counters that take native and Sino-Korean numerals with the same meaning (25명: 스물다섯 명, 이십오 명).

Others are omitted: 세 번 is three times, 삼 번 is number three; so 권, 장, 대.
"""


def _variants_ko() -> Step:
    """Return a step that writes native Korean numbers before counters as Sino-Korean."""
    numbers = load("ko")
    tens, ones = "|".join(_NATIVE_TENS_KO), "|".join(_NATIVE_KO)
    pattern = re.compile(rf"(?<!\w)(?:({tens}) ?({ones})?|({ones})) ?(?={'|'.join(_COUNTERS_KO)})")

    def sino(match: re.Match[str]) -> str:
        number = _NATIVE_TENS_KO.get(match[1], 0) + _NATIVE_KO.get(match[2] or match[3], 0)
        return f"{numbers.words(number)} "

    return lambda text: pattern.sub(sino, text)


# Chinese and Japanese.

_GROUPS_ZH: Table = ((r"(?<=\d),(?=\d{3}(?:,\d{3})*(?!\d))", ""), (r"(?<=[A-Za-z])[-‐‑](?=\d)", " "))
_DIGITS_ZH = "零一二三四五六七八九十百千万亿两点"
_TELEPHONES_ZH = {"一一零": "一百一十", "一一一": "一百一十一", "一一二": "一百一十二", "一一四": "一百一十四", "一一九": "一百一十九",
                  "一二零": "一百二十", "一二二": "一百二十二"}  # fmt: skip
"""Numbers below 10,000 that wetext reads digit by digit as telephone numbers if no measure word follows."""
_VARIANTS_ZH: Table = (
    (r"(?<!十)二(?=[百千万亿])", "两"),
    *((rf"(?<![{_DIGITS_ZH}]){read}(?![{_DIGITS_ZH}])", cardinal) for read, cardinal in _TELEPHONES_ZH.items()),
)

_KANJI = "〇一二三四五六七八九"
_POSITIONAL_JA = re.compile(rf"[{_KANJI}]*〇[{_KANJI}]*|(?<![{_KANJI}])[一二][{_KANJI}]{{3}}(?=年)")


def _positional_ja(text: str) -> str:
    def digits(match: re.Match[str]) -> str:
        return "".join(str(_KANJI.index(letter)) for letter in match[0])

    return _POSITIONAL_JA.sub(digits, text)


# Numerals of European languages, of Indonesian and of Vietnamese.


def _variants_de() -> Step:
    """Return a step that replaces variants of large German numerals by one form."""
    forms = _numerals_de()

    def rewrite(text: str) -> str:
        if "hundert" not in text and "tausend" not in text:
            return text
        return " ".join(forms.get(word, word) for word in text.split(" "))

    return rewrite


@cache
def _numerals_de() -> dict[str, str]:
    """Variants of German numerals: hundertzwei, tausendhundert, neunzehnhundertvierundachtzig."""
    spell = load("de").words
    forms = {}
    for number in range(100, 10_000):
        spelled = spell(number)
        other = spelled.replace("tausendeinhundert", "tausendhundert")
        forms[other] = spelled
        if number < 200 or 1000 <= number < 2000:
            forms[spelled.removeprefix("ein")] = forms[other.removeprefix("ein")] = spelled
        if 1100 <= number < 2000:
            forms[f"{spell(number // 100)}hundert{spell(number % 100) if number % 100 else ''}"] = spelled
    return forms


_VARIANTS_IT: Table = (
    # num2words writes centodicotto for 118 and milleventitre for 1,023.
    (r"dicotto(?!\w)", "diciotto"),
    (r"tré(?!\w)", "tre"),
)
_VARIANTS_PT: Table = (
    # Brazilian spellings, and the European ones that num2words writes.
    (r"(?<!\w)dezesseis(?!\w)", "dezasseis"),
    (r"(?<!\w)dezessete(?!\w)", "dezassete"),
    (r"(?<!\w)dezenove(?!\w)", "dezanove"),
    (r"(?<!\w)quatorze(?!\w)", "catorze"),
)


def _ordinals_id() -> Step:
    numbers = load("id")
    ordinal = re.compile(r"(?<!\w)([Kk]e)-(\d{1,4})(?!\w)")
    return lambda text: ordinal.sub(lambda match: match[1] + numbers.words(int(match[2])), text)


_VARIANTS_VI: Table = (
    # 105 is spoken with linh or lẻ; 1,021 with không trăm, where num2words writes lẻ.
    (r"(?<=trăm )linh(?!\w)", "lẻ"),
    (r"(?<=nghìn )không trăm (?:(?:linh|lẻ) )?", "lẻ "),
    (r"(?<=nghìn )linh(?!\w)", "lẻ"),
)

# English, and Latin letters in Chinese.

# U.S.A., e.g., a.m.; and J. K., where each letter has its dot.
_ACRONYM = re.compile(r"(?<![\w.'])(?:[A-Za-z](?:\.[A-Za-z])+(?![\w'])\.?|(?:[A-Z]\. )+[A-Z]\.(?!\w))")
_DOTTED = re.compile(r"[A-Za-z]\. ?[A-Za-z](?![A-Za-z'])")
"""A quick test for acronyms with dots."""
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u00b4`", "'''''")
_O_CLOCK = re.compile(r"(?<!\w)o[' ]? ?clock(?!\w)(?: (?=[ap]m(?!\w)))?", re.IGNORECASE)
_CLOCK = re.compile(r"(?<![\w:.,])([01]?\d|2[0-4]):([0-5]\d)(?: ?([ap]m))?(?![\w:])", re.IGNORECASE)


def _spelling_en(text: str) -> str:
    """Unify apostrophes, acronyms, o'clock and times of day in English text."""
    text = text.translate(_APOSTROPHES)
    if _DOTTED.search(text):
        text = _ACRONYM.sub(lambda match: re.sub(r"[. ]", "", match[0]), text)
    if "lock" in text.lower():
        text = _O_CLOCK.sub(lambda match: "" if match[0].endswith(" ") else "oclock", text)
    return _CLOCK.sub(_spell_time, text) if ":" in text else text


def _spell_time(match: re.Match[str]) -> str:
    """Write a clock time as Whisper's rule writes the spoken form: three thirty is 330, three o five is 305."""
    hour, minute, half = int(match[1]), match[2], f" {match[3]}" if match[3] else ""
    if minute == "00" and 0 < hour <= 12:
        return f"{hour}{half or ' oclock'}"
    return f"{hour}{minute}{half}"


_LONE_POINTS: Table = ((r"^(?:\. ?)+(?!\S)|(?: \.)+(?!\S)", ""),)
_OKAY: Table = ((r"(?<!\w)ok(?!\w)", "okay"),)
_SPLIT_NAMES = {
    "i": "(?:phone|pad|pod|mac|cloud|os|tunes|message)s?", "e": "mail(?:s|ed|ing)?", "wi": "fi", "we": "chat",
    "you": "tube", "tik": "tok", "chat": "gpt", "ph": "d",
}  # fmt: skip
"""Names with a variant with a space: iPhone, email, WiFi, WeChat, YouTube, TikTok, ChatGPT, PhD."""
_NAMES = re.compile(
    "|".join(rf"{first}(?<![a-z0-9]{first}) (?=(?:{rest})(?![a-z0-9]))" for first, rest in _SPLIT_NAMES.items())
)


_LETTERS = re.compile(r"[a-z](?<![a-z0-9'][a-z])(?: [a-z])+(?![a-z0-9])")


def _one_word(match: re.Match[str]) -> str:
    # A, I and O are words, and a speaker may repeat them: "I I I". Of two letters, neither may be one of them.
    spelled = [letter for letter in match[0] if letter not in " aio"]
    return match[0].replace(" ", "") if len(spelled) >= (2 if len(match[0]) == 3 else 1) else match[0]


STEPS: dict[str, Callable[[], Step]] = {
    "alefs": lambda: _alefs,
    "devanagari": lambda: _devanagari,
    "groups-zh": partial(_rewriting, _GROUPS_ZH, ",", "-", "\u2010", "\u2011"),
    "letters": lambda: partial(_LETTERS.sub, lambda match: match[0].replace(" ", "")),
    "letters-en": lambda: partial(_LETTERS.sub, _one_word),
    "lone-points": partial(_rewriting, _LONE_POINTS, "."),
    "names": lambda: partial(_NAMES.sub, lambda match: match[0].rstrip()),
    "okay": partial(_rewriting, _OKAY, "ok"),
    "ordinals-id": _ordinals_id,
    "positional-ja": lambda: _positional_ja,
    "spelling-en": lambda: _spelling_en,
    "variants-ar": _variants_ar,
    "variants-de": _variants_de,
    "variants-hi": _variants_hi,
    "variants-it": partial(_rewriting, _VARIANTS_IT, "tré", "dicotto"),
    "variants-ja": partial(_rewriting, (("一千(?=[万億兆])", "千"),), "一千"),
    "variants-ko": _variants_ko,
    "variants-pt": partial(_rewriting, _VARIANTS_PT, "dez", "quatorze"),
    "variants-ru": partial(_rewriting, ((r"(?<!\w)одна тысяча(?!\w)", "тысяча"),), "одна тысяча"),
    "variants-vi": partial(_rewriting, _VARIANTS_VI, "trăm ", "nghìn "),
    "variants-zh": partial(_rewriting, _VARIANTS_ZH, "二", "一一"),
    "yo": lambda: lambda text: text.replace("ё", "е").replace("Ё", "Е"),
}
"""Each step by its name, as a function that builds it."""
