"""The steps that text rules are made of: small functions of one text, each with a name.

Conventions
    A step is a function from text to text. Its name always stands for the same behaviour, because the names of protocols
    depend on the names of their steps. A step that needs an optional package imports it when it is first used.
    Steps are combined by name: `get_normaliser("lower,delete-punctuation")` (see `codec_bench.text.normalise`).

The project's own steps
    `lower`: lower case.
    `clean`: removes characters that are not spoken (control and format characters, variants of a glyph); white space
        becomes spaces.
    `squeeze`: runs of white space become one space, and none stays at the ends.
    `nfkc`: Unicode's normal form NFKC.
    `digits`: decimal digits of every script become ASCII digits.
    `apostrophes`: every kind of apostrophe becomes '.
    `drop-marked`: removes text in square or angle brackets. `drop-bracketed`: also text in round brackets.
    `drop-vowel-points`: removes the optional vowel signs of Arabic and Hebrew.
    `thai-am`: writes a vowel of Thai and Lao in one way.
    `turkish-i`: I becomes ı, and İ becomes i.
    `words`: symbols and punctuation become spaces; marks stay.
    `join-words`: removes apostrophes.
    `no-spaces`: removes white space. `join-alone`: removes spaces beside Han characters and kana.
    `width`: full-width letters, digits and the signs in numbers become ASCII.
    `zh-hans`: Chinese in simplified characters (OpenCC).
    `wetext-zh`: writes out Chinese numbers, dates, units and percentages (wetext).
    `zh-digits`: writes the digits that are left as Chinese numbers. `zh-variants`: 〇 becomes 零, 幺 becomes 一.

Steps of published rules are described where they are defined.
"""

from __future__ import annotations

import re
import string
import unicodedata
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from codec_bench.errors import MissingExtra, UnknownName
from codec_bench.text.scripts import ALONE_CLASS

Step = Callable[[str], str]

EXTRA = "text"
"""The extra that brings the optional packages of this room."""

CHINESE_PUNCTUATION = "＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､\u3000、〃〈〉《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏﹑﹔·．！？｡。"
"""The characters that zhon 2.1.1 counts as Chinese punctuation, including the ideographic space."""

_CJK = "\u4e00-\u9fff"
_WITHOUT_APOSTROPHE = string.punctuation.replace("'", "")
_DELETED = dict.fromkeys(map(ord, CHINESE_PUNCTUATION + _WITHOUT_APOSTROPHE))
_BLANKED = dict.fromkeys(map(ord, CHINESE_PUNCTUATION + string.punctuation), " ")


def get_step(name: str) -> Step:
    """The step of that name.

    Raises:
        UnknownName: there is none. MissingExtra: it needs a package that is not installed.
    """
    if name not in _STEPS:
        raise UnknownName("text step", name, _STEPS)
    return _built(name)


def step_names() -> list[str]:
    """The names that `get_step` knows."""
    return sorted(_STEPS)


@cache
def _built(name: str) -> Step:
    return _STEPS[name]()


def _import(module: str, what: str, package: str) -> Any:
    try:
        with warnings.catch_warnings():
            # A user can do nothing about a package's warning that it needs an older setuptools.
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise MissingExtra(what, package, EXTRA) from error


# The project's own steps.


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _clean(text: str) -> str:
    return "".join(map(_cleaned, text))


@cache
def _cleaned(letter: str) -> str:
    if letter.isspace():
        return " "
    # Joiners, marks of direction, variants of a glyph, and marks that enclose a letter are not spoken.
    silent = unicodedata.category(letter) in ("Cc", "Cf", "Cn", "Co", "Cs", "Me") or unicodedata.name(
        letter, ""
    ).startswith("VARIATION SELECTOR")
    return "" if silent else letter


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _digits(text: str) -> str:
    return re.sub(r"\d", lambda match: str(int(match[0])), text)


def _apostrophes(text: str) -> str:
    return re.sub("[\u2018\u2019\u201b\u02bb\u02bc\u00b4`\uff07]", "'", text)


def _drop_marked(text: str) -> str:
    return re.sub(r"\[[^\[\]]*\]|<[^<>]*>", " ", text)


def _drop_bracketed(text: str) -> str:
    return re.sub(r"\([^()]*\)", " ", _drop_marked(text))


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


def _turkish_i(text: str) -> str:
    return text.replace("I", "ı").replace("İ", "i")


def _words(text: str) -> str:
    return "".join(" " if unicodedata.category(letter)[0] in "PS" else letter for letter in text)


def _join_words(text: str) -> str:
    return text.replace("'", "")


def _no_spaces(text: str) -> str:
    return "".join(text.split())


def _join_alone(text: str) -> str:
    return re.sub(rf"(?<=[{ALONE_CLASS}]) +| +(?=[{ALONE_CLASS}])", "", text)


def _width(text: str) -> str:
    return text.translate(_HALF_WIDTH)


_HALF_WIDTH = {
    0xFF01 + shift: 0x21 + shift
    for shift in range(94)
    # A full-width comma separates numbers, and an ASCII comma joins them, so the comma keeps its width. Other punctuation
    # is removed in either width.
    if chr(0x21 + shift).isalnum() or chr(0x21 + shift) in "%+-./:~$"
} | {0xFFE5: 0xA5, 0xFFE1: 0xA3}


def _zh_variants(text: str) -> str:
    # 幺 is a spoken form of one inside a number; writers use either character.
    return text.replace("〇", "零").replace("○", "零").replace("幺", "一")


def _zhconv(locale: str) -> Step:
    convert = _import("zhconv", "the conversion of Chinese script", "zhconv").convert
    return lambda text: convert(text, locale)


def _simplified() -> Step:
    return _import("opencc", "the conversion of Chinese script", "OpenCC").OpenCC("t2s").convert


def _wetext_zh() -> Step:
    normalizer = _import("wetext", "the reading of Chinese numbers", "wetext").Normalizer(lang="zh", operator="tn")

    def spoken(text: str) -> str:
        # A clause without a digit would not change, and the transducers are slow.
        clauses = re.split(r"([，。！？；\n])", text)
        return "".join(normalizer.normalize(clause) if re.search(r"\d", clause) else clause for clause in clauses)

    return spoken


def _zh_digits(text: str) -> str:
    """Writes the digits that are left (of circled numbers and powers) as Chinese numbers."""
    from codec_bench.text.chinese_numbers import cardinal

    return re.sub(r"\d+", lambda match: cardinal(match[0]), text)


# Steps of seed-tts-eval (752f429 `run_wer.py`), and of UltraEval-Audio's copies of it (9b69da6 `evaluator/wer.py`,
# `seed_tts_eval_asr_wer.py`). All of them delete zhon's punctuation and Python's `string.punctuation`.


def _delete_punctuation(text: str) -> str:
    """Removes Chinese and ASCII punctuation, except the straight apostrophe; no space takes its place."""
    return text.translate(_DELETED)


def _halve_spaces(text: str) -> str:
    """Two spaces become one, once: three spaces become two."""
    return text.replace("  ", " ")


def _space_characters(text: str) -> str:
    """Puts a space between all characters, and spaces count as characters."""
    return " ".join(text)


def _space_black_characters(text: str) -> str:
    """Removes white space, then puts a space between all characters."""
    return " ".join("".join(text.split()))


# Steps of UltraEval-Audio (9b69da6 `lib/wer.py`, `lib/text_normalization`, `evaluator/long_tts_eval_asr_wer.py`).


def _ultraeval_en() -> Step:
    """Removes ASCII letters and spaces in full-width brackets, with the brackets; then applies Whisper's English rule."""
    from codec_bench.text.whisper import whisper_en

    whisper = whisper_en()
    return lambda text: whisper(re.sub(r"（[A-Za-z\s]+）", "", text))


def _cn_tn(text: str) -> str:
    """Chinese numbers written out in the published way, and punctuation as spaces (see `chinese_numbers`)."""
    from codec_bench.text.chinese_numbers import normalised

    return normalised(text)


def _sacrebleu(module: str, name: str) -> Step:
    tokeniser = getattr(_import(f"sacrebleu.tokenizers.{module}", f"the tokeniser {module}", "sacrebleu"), name)()
    return lambda text: " ".join(tokeniser(text).split())


def _ja_mecab() -> Step:
    _import("MeCab", "cutting Japanese into words", "mecab-python3")
    _import("ipadic", "cutting Japanese into words", "ipadic")
    return _sacrebleu("tokenizer_ja_mecab", "TokenizerJaMecab")


def _blank_punctuation(text: str) -> str:
    """Chinese and ASCII punctuation become spaces, and so does the apostrophe."""
    return text.translate(_BLANKED)


def _num2words_en() -> Step:
    """Writes runs of digits as English words with spaces around. If num2words fails on one run, all stay digits."""
    num2words = _import("num2words", "English number words", "num2words").num2words

    def spoken(text: str) -> str:
        try:
            return re.sub(r"\d+", lambda match: f" {num2words(int(match[0]), lang='en')} ", text)
        except (OverflowError, ValueError, NotImplementedError):
            return text

    return spoken


def _space_around_cjk(text: str) -> str:
    """Puts a space on both sides of each character from U+4E00 to U+9FFF; then runs of white space become one space."""
    return _squeeze(re.sub(f"([{_CJK}])", r" \1 ", text))


# Steps of AudioBench (e991641 `src/dataset_src/text_normalizer/preprocess_text.py`), whose lists of numbers and fillers these
# are. Its list of contractions is left out: Whisper's rule, which comes first, has written all of them out.

_SMALL_NUMBERS = dict(
    zip(
        map(str, [*range(21), *range(30, 100, 10)]),
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety".split(),
    )
)


def _small_numbers(text: str) -> str:
    """Writes 0 to 20 and the tens to 90 as words, wherever they are between word boundaries, also beside a decimal point."""
    return re.sub(r"\b\d{1,2}\b", lambda match: _SMALL_NUMBERS.get(match[0], match[0]), text)


def _space_between_cjk(text: str) -> str:
    """Puts a space between neighbouring characters from U+4E00 to U+9FFF, and none beside a letter or a digit."""
    return re.sub(f"(?<=[{_CJK}])(?=[{_CJK}])", " ", text)


def _drop_braces(text: str) -> str:
    """Removes bracketed text, unless it contains an n, a backslash or another round or square bracket."""
    return re.sub(r"[\[({<][^n\\()\[\]]*?[\])}>]", "", text)


def _jiwer_english(text: str) -> str:
    """Three steps of jiwer: white space becomes one space, English contractions are written out, Kaldi's marks removed."""
    text = re.sub(r"\s\s+", " ", text)
    for pattern, words in _JIWER_CONTRACTIONS:
        text = re.sub(pattern, words, text)
    return re.sub(r"[<\[][^>\]]*[>\]]", "", text)


_JIWER_CONTRACTIONS = (
    ("won't", "will not"), ("can't", "can not"), ("let's", "let us"), ("n't", " not"), ("'re", " are"), ("'s", " is"),
    ("'d", " would"), ("'ll", " will"), ("'t", " not"), ("'ve", " have"), ("'m", " am"),
)  # fmt: skip


def _no_punctuation(text: str) -> str:
    """Removes all characters that Unicode counts as punctuation."""
    return "".join(letter for letter in text if not unicodedata.category(letter).startswith("P"))


def _drop_fillers(text: str) -> str:
    """Removes the words uh, umm, um, er and ah; the spaces around them stay."""
    return re.sub(r"\b(?:uh|umm|um|er|ah)\b", "", text).strip()


def _whisper_en_symbols() -> Step:
    """Whisper's English rule without its removal of symbols and diacritics."""
    from types import FunctionType

    from codec_bench.text.whisper import whisper_rules

    rules = whisper_rules()
    body = type(rules).__call__
    # This is the package's own rule, in which that one step returns its input.
    names = {**body.__globals__, "remove_symbols_and_diacritics": lambda text, keep="": text}
    without = FunctionType(body.__code__, names)
    return lambda text: without(rules, text)


def _alphanumeric(text: str) -> str:
    """All characters that are not alphanumeric become spaces, including combining marks; runs of spaces become one."""
    return _squeeze("".join(letter if letter.isalnum() or letter.isspace() else " " for letter in text))


def _newmm() -> Step:
    """Thai cut into words by pythainlp's dictionary."""
    word_tokenize = _import("pythainlp.tokenize", "cutting Thai into words", "pythainlp").word_tokenize
    return lambda text: _squeeze(" ".join(word_tokenize(text, engine="newmm")))


def _empty_word(text: str) -> str:
    """An empty text becomes the word 'empty'."""
    return text or "empty"


_STEPS: dict[str, Callable[[], Step]] = {
    "alphanumeric": lambda: _alphanumeric,
    "apostrophes": lambda: _apostrophes,
    "blank-punctuation": lambda: _blank_punctuation,
    "clean": lambda: _clean,
    "cn-tn": lambda: _cn_tn,
    "delete-punctuation": lambda: _delete_punctuation,
    "digits": lambda: _digits,
    "drop-braces": lambda: _drop_braces,
    "drop-bracketed": lambda: _drop_bracketed,
    "drop-fillers": lambda: _drop_fillers,
    "drop-marked": lambda: _drop_marked,
    "drop-vowel-points": lambda: _drop_vowel_points,
    "empty-word": lambda: _empty_word,
    "halve-spaces": lambda: _halve_spaces,
    "ja-mecab": _ja_mecab,
    "jiwer-english": lambda: _jiwer_english,
    "join-alone": lambda: _join_alone,
    "join-words": lambda: _join_words,
    "lower": lambda: str.lower,
    "newmm": _newmm,
    "nfkc": lambda: _nfkc,
    "no-punctuation": lambda: _no_punctuation,
    "no-spaces": lambda: _no_spaces,
    "num2words-en": _num2words_en,
    "sacrebleu-13a": lambda: _sacrebleu("tokenizer_13a", "Tokenizer13a"),
    "sacrebleu-zh": lambda: _sacrebleu("tokenizer_zh", "TokenizerZh"),
    "small-numbers": lambda: _small_numbers,
    "space-around-cjk": lambda: _space_around_cjk,
    "space-between-cjk": lambda: _space_between_cjk,
    "space-black-characters": lambda: _space_black_characters,
    "space-characters": lambda: _space_characters,
    "squeeze": lambda: _squeeze,
    "strip": lambda: str.strip,
    "thai-am": lambda: _thai_am,
    "turkish-i": lambda: _turkish_i,
    "ultraeval-en": _ultraeval_en,
    "wetext-zh": _wetext_zh,
    "whisper-en-symbols": _whisper_en_symbols,
    "width": lambda: _width,
    "words": lambda: _words,
    "zh-digits": lambda: _zh_digits,
    "zh-cn": lambda: _zhconv("zh-cn"),
    "zh-hans": _simplified,
    "zh-variants": lambda: _zh_variants,
}
