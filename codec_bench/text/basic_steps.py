"""Steps of the project's own text rules: small functions of one text.

Steps
    `lower`: lower case.
    `clean`: removes characters that are not spoken (control and format characters, variants of a glyph); white space
    becomes spaces.
    `squeeze`: runs of white space become one space, and none stays at the ends.
    `nfkc`: Unicode's normal form NFKC.
    `digits`: decimal digits of every script become ASCII digits.
    `apostrophes`: every kind of apostrophe becomes '. `drop-marked`: removes text in square or angle brackets.
    `drop-bracketed`: also text in round brackets. `drop-vowel-points`: removes the optional vowel signs of Arabic and
    Hebrew. `thai-am`: writes a vowel of Thai and Lao in one way. `turkish-i`: I becomes ı, and İ becomes i.
    `words`: symbols and punctuation become spaces; marks stay. `join-words`: removes apostrophes. `no-spaces`: removes
    white space. `join-alone`: removes spaces next to Han characters and kana.
    `width`: full-width letters, digits and the signs in numbers become ASCII. `zh-hans`: Chinese in simplified
    characters (OpenCC). `numbers-en`: writes English numbers as words that Whisper's rule drops
    (`codec_bench.text.numbers_en`). `numbers-ko`: writes what is around Korean numbers as words
    (`codec_bench.text.numbers_ko`). `numbers-zh`: writes Chinese numbers out that wetext reads otherwise than people do
    (`codec_bench.text.numbers_zh`). `wetext-zh`: writes out Chinese numbers, dates, units and percentages (wetext).
    `zh-digits`: writes the digits that are left as Chinese numbers. `zh-variants`: 〇 becomes 零, 幺 becomes 一.
    `strip`: no white space at the ends.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from codec_bench.messages.errors import MissingExtra
from codec_bench.text import numbers_en, numbers_ko, numbers_zh
from codec_bench.text.language import ALONE_CLASS

Step = Callable[[str], str]

EXTRA = "text"
"""The extra that brings the optional packages of this room."""


def optional(module: str, feature: str, package: str) -> Any:
    """Import a module of an optional package.

    Args:
        feature: what needs the module, a key of `codec_bench.messages.general`.
        package: the distribution to install.

    Raises:
        MissingExtra: the package is not installed.
    """
    try:
        with warnings.catch_warnings():
            # Users cannot act on a package's warning that it needs an older setuptools.
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise MissingExtra(feature, package, EXTRA) from error


def squeeze(text: str) -> str:
    """Collapse runs of white space to one space, and strip the ends."""
    return " ".join(text.split())


# Marks that enclose a letter, and variants of a glyph: unspoken, but printable for Python.
_PRINTABLE_SILENT = re.compile(
    "[\u0488\u0489\u1abe\u20dd-\u20e0\u20e2-\u20e4\ua670-\ua672\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def _clean(text: str) -> str:
    text = _PRINTABLE_SILENT.sub("", text)
    return text if text.isprintable() else "".join(map(_cleaned, text))


@cache
def _cleaned(letter: str) -> str:
    if letter.isspace():
        return " "
    # Control and format characters (joiners, marks of direction), and code points without a character.
    return "" if unicodedata.category(letter) in ("Cc", "Cf", "Cn", "Co", "Cs") else letter


def _drop_marked(text: str) -> str:
    return re.sub(r"\[[^\[\]]*\]|<[^<>]*>", " ", text)


def _drop_vowel_points(text: str) -> str:
    # Arabic tashkeel, Koranic signs and the tatweel that stretches a word; Hebrew points and accents.
    arabic = "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    hebrew = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    return re.sub(f"[{arabic}{hebrew}]", "", text)


def _thai_am(text: str) -> str:
    # NFKC splits the vowel am in two characters. Tone marks may stand before or after its ring.
    text = re.sub("\u0e4d?([\u0e48-\u0e4b])\u0e4d?\u0e32", _am, text)
    return text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")


def _am(match: re.Match[str]) -> str:
    return f"{match[1]}\u0e33" if "\u0e4d" in match[0] else match[0]


def _words(text: str) -> str:
    # Letters and digits stay, so they need no look-up in Unicode's tables.
    return re.sub(r"[^\w ]|_", lambda match: _spaced(match[0]), text)


@cache
def _spaced(letter: str) -> str:
    return " " if unicodedata.category(letter)[0] in "PS" else letter


_HALF_WIDTH = {
    0xFF01 + shift: 0x21 + shift
    for shift in range(94)
    # The full-width comma stays: it separates numbers, and an ASCII comma joins them.
    if chr(0x21 + shift).isalnum() or chr(0x21 + shift) in "%+-./:~$"
} | {0xFFE5: 0xA5, 0xFFE1: 0xA3}


# 幺 is a spoken form of one inside a number; writers use either character.
_VARIANTS_ZH = str.maketrans("〇○幺", "零零一")


def _simplified() -> Step:
    return optional("opencc", "chinese_script", "OpenCC").OpenCC("t2s").convert


def _wetext_zh() -> Step:
    """Return a step that spells Chinese numbers with wetext."""
    normalizer = optional("wetext", "chinese_numbers", "wetext").Normalizer(lang="zh", operator="tn")

    def spoken(text: str) -> str:
        # A clause without a digit would not change, and the transducers are slow.
        clauses = re.split(r"([，。！？；\n])", text)
        return "".join(normalizer.normalize(clause) if re.search(r"\d", clause) else clause for clause in clauses)

    return spoken


def _zh_digits(text: str) -> str:
    """Write the remaining digits (of circled numbers and powers) as Chinese numbers."""
    from codec_bench.text.chinese_numbers import cardinal

    return re.sub(r"\d+", lambda match: cardinal(match[0]), text)


STEPS: dict[str, Callable[[], Step]] = {
    "apostrophes": lambda: partial(re.sub, "[\u2018\u2019\u201b\u02bb\u02bc\u00b4`\uff07]", "'"),
    "clean": lambda: _clean,
    "digits": lambda: partial(re.sub, r"[^\D0-9]", lambda match: str(int(match[0]))),
    "drop-bracketed": lambda: lambda text: re.sub(r"\([^()]*\)", " ", _drop_marked(text)),
    "drop-marked": lambda: _drop_marked,
    "drop-vowel-points": lambda: _drop_vowel_points,
    "join-alone": lambda: partial(re.sub, rf"(?<=[{ALONE_CLASS}]) +| +(?=[{ALONE_CLASS}])", ""),
    "join-words": lambda: lambda text: text.replace("'", ""),
    "lower": lambda: str.lower,
    "nfkc": lambda: partial(unicodedata.normalize, "NFKC"),
    "numbers-en": lambda: numbers_en.spoken_numbers,
    "numbers-ko": lambda: numbers_ko.spoken_numbers,
    "numbers-zh": lambda: numbers_zh.spoken_numbers,
    "no-spaces": lambda: lambda text: "".join(text.split()),
    "squeeze": lambda: squeeze,
    "strip": lambda: str.strip,
    "thai-am": lambda: _thai_am,
    "turkish-i": lambda: lambda text: text.replace("I", "ı").replace("İ", "i"),
    "wetext-zh": _wetext_zh,
    "width": lambda: lambda text: text.translate(_HALF_WIDTH),
    "words": lambda: _words,
    "zh-digits": lambda: _zh_digits,
    "zh-hans": _simplified,
    "zh-variants": lambda: lambda text: text.translate(_VARIANTS_ZH),
}
"""Each step by its name, as a function that builds it."""
