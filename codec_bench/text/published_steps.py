"""Steps of published text rules, with their errors; the comments name the sources."""

from __future__ import annotations

import os
import re
import string
import unicodedata
from collections.abc import Callable
from functools import partial

from codec_bench.text.basic_steps import Step, optional, squeeze

CHINESE_PUNCTUATION = "＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､\u3000、〃〈〉《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏﹑﹔·．！？｡。"
"""The characters that zhon 2.1.1 counts as Chinese punctuation, including the ideographic space."""

_CJK = "\u4e00-\u9fff"
_WITHOUT_APOSTROPHE = string.punctuation.replace("'", "")
_DELETED = dict.fromkeys(map(ord, CHINESE_PUNCTUATION + _WITHOUT_APOSTROPHE))
_BLANKED = dict.fromkeys(map(ord, CHINESE_PUNCTUATION + string.punctuation), " ")


# Steps of seed-tts-eval (752f429 `run_wer.py`), and of UltraEval-Audio's copies of it (9b69da6 `evaluator/wer.py`,
# `seed_tts_eval_asr_wer.py`). All of them delete zhon's punctuation and Python's `string.punctuation`.


def _zhconv(locale: str) -> Step:
    convert = optional("zhconv", "chinese_script", "zhconv").convert
    return lambda text: convert(text, locale)


# Steps of UltraEval-Audio (9b69da6 `lib/wer.py`, `lib/text_normalization`, `evaluator/long_tts_eval_asr_wer.py`).


def _ultraeval_en() -> Step:
    """Remove full-width brackets around ASCII letters and spaces, then apply Whisper's English rule."""
    from codec_bench.text.whisper import whisper_en

    whisper = whisper_en()
    return lambda text: whisper(re.sub(r"（[A-Za-z\s]+）", "", text))


def _cn_tn(text: str) -> str:
    """Write Chinese numbers out, and punctuation as spaces (see `chinese_numbers`)."""
    from codec_bench.text.chinese_numbers import normalised

    return normalised(text)


def _sacrebleu(module: str, name: str) -> Step:
    tokeniser = getattr(optional(f"sacrebleu.tokenizers.{module}", f"the tokeniser {module}", "sacrebleu"), name)()
    return lambda text: " ".join(tokeniser(text).split())


def _ja_mecab() -> Step:
    optional("MeCab", "japanese_words", "mecab-python3")
    optional("ipadic", "japanese_words", "ipadic")
    return _sacrebleu("tokenizer_ja_mecab", "TokenizerJaMecab")


def _num2words_en() -> Step:
    """Write runs of digits as English words between spaces. If num2words fails on one run, all stay digits."""
    num2words = optional("num2words", "number_words", "num2words").num2words

    def spoken(text: str) -> str:
        try:
            return re.sub(r"\d+", lambda match: f" {num2words(int(match[0]), lang='en')} ", text)
        except (OverflowError, ValueError, NotImplementedError):
            return text

    return spoken


# Steps of AudioBench (e991641 `src/dataset_src/text_normalizer/preprocess_text.py`), with its numbers and fillers.
# Its contractions are omitted: Whisper's rule, which comes first, has written all of them out.

_SMALL_NUMBERS = dict(
    zip(
        map(str, [*range(21), *range(30, 100, 10)]),
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety".split(),
    )
)


def _jiwer_english(text: str) -> str:
    """Collapse white space, write English contractions out, and remove Kaldi's marks, as in jiwer."""
    text = re.sub(r"\s\s+", " ", text)
    for pattern, words in _JIWER_CONTRACTIONS:
        text = re.sub(pattern, words, text)
    return re.sub(r"[<\[][^>\]]*[>\]]", "", text)


_JIWER_CONTRACTIONS = (
    ("won't", "will not"), ("can't", "can not"), ("let's", "let us"), ("n't", " not"), ("'re", " are"), ("'s", " is"),
    ("'d", " would"), ("'ll", " will"), ("'t", " not"), ("'ve", " have"), ("'m", " am"),
)  # fmt: skip


def _no_punctuation(text: str) -> str:
    """Remove Unicode punctuation."""
    return "".join(letter for letter in text if not unicodedata.category(letter).startswith("P"))


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
    """Turn everything but letters and digits into spaces, combining marks too."""
    return squeeze("".join(letter if letter.isalnum() or letter.isspace() else " " for letter in text))


def _newmm() -> Step:
    """Cut Thai into words by pythainlp's dictionary, without its folder in the user's home."""
    if "PYTHAINLP_READ_MODE" not in os.environ:  # it refuses both names at once
        os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    word_tokenize = optional("pythainlp.tokenize", "thai_words", "pythainlp").word_tokenize
    return lambda text: squeeze(" ".join(word_tokenize(text, engine="newmm")))


STEPS: dict[str, Callable[[], Step]] = {
    "alphanumeric": lambda: _alphanumeric,
    # Chinese and ASCII punctuation become spaces, and so does the apostrophe.
    "blank-punctuation": lambda: lambda text: text.translate(_BLANKED),
    "cn-tn": lambda: _cn_tn,
    # Removes Chinese and ASCII punctuation, except the straight apostrophe; no space takes its place.
    "delete-punctuation": lambda: lambda text: text.translate(_DELETED),
    # Removes bracketed text, unless it contains an n, a backslash or another round or square bracket.
    "drop-braces": lambda: partial(re.sub, r"[\[({<][^n\\()\[\]]*?[\])}>]", ""),
    # Removes the words uh, umm, um, er and ah; the spaces around them stay.
    "drop-fillers": lambda: lambda text: re.sub(r"\b(?:uh|umm|um|er|ah)\b", "", text).strip(),
    # An empty text becomes the word 'empty'.
    "empty-word": lambda: lambda text: text or "empty",
    # Two spaces become one, once: three spaces become two.
    "halve-spaces": lambda: lambda text: text.replace("  ", " "),
    "ja-mecab": _ja_mecab,
    "jiwer-english": lambda: _jiwer_english,
    "newmm": _newmm,
    "no-punctuation": lambda: _no_punctuation,
    "num2words-en": _num2words_en,
    "sacrebleu-13a": lambda: _sacrebleu("tokenizer_13a", "Tokenizer13a"),
    "sacrebleu-zh": lambda: _sacrebleu("tokenizer_zh", "TokenizerZh"),
    # Writes 0 to 20 and the tens to 90 as words between word boundaries, also next to a decimal point.
    "small-numbers": lambda: partial(re.sub, r"\b\d{1,2}\b", lambda match: _SMALL_NUMBERS.get(match[0], match[0])),
    # Puts a space on both sides of each character from U+4E00 to U+9FFF; then runs of white space become one space.
    "space-around-cjk": lambda: lambda text: squeeze(re.sub(f"([{_CJK}])", r" \1 ", text)),
    # Puts a space between neighbouring characters from U+4E00 to U+9FFF, and none next to a letter or a digit.
    "space-between-cjk": lambda: partial(re.sub, f"(?<=[{_CJK}])(?=[{_CJK}])", " "),
    # Removes white space, then puts a space between all characters.
    "space-black-characters": lambda: lambda text: " ".join("".join(text.split())),
    # Puts a space between all characters, and spaces count as characters.
    "space-characters": lambda: " ".join,
    "ultraeval-en": _ultraeval_en,
    "whisper-en-symbols": _whisper_en_symbols,
    "zh-cn": lambda: _zhconv("zh-cn"),
}
"""Each step by its name, as a function that builds it."""
