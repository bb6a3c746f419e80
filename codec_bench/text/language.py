"""One code per language, from its names or from a text's script.

A base code is ISO 639-1 if there is one (`en`, `zh`, `ja`), else ISO 639-3 (`yue`, `fil`). `zh` is Mandarin; Cantonese
is `yue`, also as `zh-HK`.
"""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[\s_]+")
_BY_NAME = {
    "arabic": "ar", "bulgarian": "bg", "cantonese": "yue", "catalan": "ca", "chinese": "zh", "croatian": "hr",
    "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "estonian": "et", "filipino": "fil", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu", "indonesian": "id",
    "italian": "it", "japanese": "ja", "korean": "ko", "latvian": "lv", "lithuanian": "lt", "malay": "ms",
    "mandarin": "zh", "marathi": "mr", "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt",
    "romanian": "ro", "russian": "ru", "slovak": "sk", "slovenian": "sl", "spanish": "es", "swahili": "sw",
    "swedish": "sv", "tagalog": "tl", "tamil": "ta", "telugu": "te", "thai": "th", "turkish": "tr", "ukrainian": "uk",
    "urdu": "ur", "vietnamese": "vi", "welsh": "cy",
}  # fmt: skip
_BY_CODE = {
    # ISO 639-2 and 639-3 codes of the languages above, and codes in use that are not the language's own.
    "ara": "ar", "bul": "bg", "cat": "ca", "ces": "cs", "chi": "zh", "cmn": "zh", "cn": "zh", "cym": "cy", "cze": "cs",
    "dan": "da", "deu": "de", "dut": "nl", "ell": "el", "eng": "en", "est": "et", "fas": "fa", "fin": "fi", "fra": "fr",
    "fre": "fr", "ger": "de", "gre": "el", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "ind": "id", "ita": "it",
    "iw": "he", "jp": "ja", "jpn": "ja", "kor": "ko", "kr": "ko", "lav": "lv", "lit": "lt", "mar": "mr", "may": "ms",
    "msa": "ms", "nb": "no", "nld": "nl", "nn": "no", "nor": "no", "per": "fa", "pol": "pl", "por": "pt", "ron": "ro",
    "rum": "ro", "rus": "ru", "slk": "sk", "slo": "sk", "slv": "sl", "spa": "es", "swa": "sw", "swe": "sv", "tam": "ta",
    "tel": "te", "tgl": "tl", "tha": "th", "tur": "tr", "ukr": "uk", "urd": "ur", "vie": "vi", "zho": "zh", "zhs": "zh",
    "zht": "zh",
}  # fmt: skip
_CANTONESE = ("hk", "mo", "yue")
"""Second parts of a code that turn Chinese into Cantonese: Hong Kong, Macau, and the language's own code."""


def base_language(text: str) -> str:
    """A language's base code: `en` for EN, en-US, eng, English; `yue` for zh-HK.

    An unknown language is returned in lower case, up to the first hyphen.
    """
    parts = _SEPARATORS.sub("-", text.strip().lower()).split("-")
    base = _BY_NAME.get(parts[0]) or _BY_CODE.get(parts[0], parts[0])
    return "yue" if base == "zh" and any(subtag in _CANTONESE for subtag in parts[1:]) else base


ALONE = (
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303C), (0x3040, 0x312F), (0x31A0, 0x31BF),
    (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x1AFF0, 0x1B16F),
    (0x20000, 0x323AF),
)  # fmt: skip
"""Code points that are one item each in mixed text (Han characters, kana, bopomofo), as inclusive ranges."""

ALONE_CLASS = "".join(f"{chr(first)}-{chr(last)}" for first, last in ALONE)
"""The same ranges, as the inside of a character class of a regular expression."""


def script_language(text: str) -> str:
    """The language that a text's script suggests, if none is stated.

    The script with the most items decides. An item is a character in scripts without spaces, else a word. A text with
    kana is Japanese; other Han characters are Chinese; Latin script is English. Scripts of many languages give `und`.
    """
    counts = {language: len(pattern.findall(text)) for language, pattern in _SCRIPTS.items()}
    if counts["ja"]:
        counts["ja"] += counts["zh"]
        counts["zh"] = 0
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else "en"


_SCRIPTS = {
    language: re.compile(letters)
    for language, letters in {
        "en": "[A-Za-z\u00aa-\u024f\u1e00-\u1eff\uff21-\uff5a]+",
        "zh": "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]",
        "ja": "[\u3041-\u30fa\uff66-\uff9d]",
        "ko": "[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]",
        "th": "[\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46]",
        "lo": "[\u0e81-\u0eb0\u0eb2\u0eb3\u0ec0-\u0ec6]",
        "km": "[\u1780-\u17b3]",
        "my": "[\u1000-\u1021]",
        "ar": "[\u0620-\u064a\u0671-\u06d3]+",
        "he": "[\u05d0-\u05ea]+",
        "und": "[\u0370-\u058f\u0700-\u0dff\u0f00-\u0fff\u10a0-\u10ff\u1200-\u139f]+",
    }.items()
}
