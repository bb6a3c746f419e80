"""One code for each language, from the many ways in which manifests and data sets name it.

Conventions
    A base code is ISO 639-1 where there is one (`en`, `zh`, `ja`), else ISO 639-3 (`yue`, `fil`). `zh` is Mandarin;
    Cantonese is `yue`, also when it is written `zh-HK`.
"""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[\s_]+")
_BY_NAME = {
    "arabic": "ar", "bulgarian": "bg", "cantonese": "yue", "catalan": "ca", "chinese": "zh", "croatian": "hr", "czech": "cs",
    "danish": "da", "dutch": "nl", "english": "en", "estonian": "et", "filipino": "fil", "finnish": "fi", "french": "fr",
    "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu", "indonesian": "id", "italian": "it",
    "japanese": "ja", "korean": "ko", "latvian": "lv", "lithuanian": "lt", "malay": "ms", "mandarin": "zh", "marathi": "mr",
    "norwegian": "no", "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "slovak": "sk",
    "slovenian": "sl", "spanish": "es", "swahili": "sw", "swedish": "sv", "tagalog": "tl", "tamil": "ta", "telugu": "te",
    "thai": "th", "turkish": "tr", "ukrainian": "uk", "urdu": "ur", "vietnamese": "vi", "welsh": "cy",
}  # fmt: skip
_BY_CODE = {
    # ISO 639-2 and 639-3 codes of the languages above, and codes in use that are not the language's own.
    "ara": "ar", "bul": "bg", "cat": "ca", "ces": "cs", "chi": "zh", "cmn": "zh", "cn": "zh", "cym": "cy", "cze": "cs", "dan": "da",
    "deu": "de", "dut": "nl", "ell": "el", "eng": "en", "est": "et", "fas": "fa", "fin": "fi", "fra": "fr", "fre": "fr", "ger": "de",
    "gre": "el", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "ind": "id", "ita": "it", "iw": "he", "jp": "ja", "jpn": "ja",
    "kor": "ko", "kr": "ko", "lav": "lv", "lit": "lt", "mar": "mr", "may": "ms", "msa": "ms", "nb": "no", "nld": "nl", "nn": "no",
    "nor": "no", "per": "fa", "pol": "pl", "por": "pt", "ron": "ro", "rum": "ro", "rus": "ru", "slk": "sk", "slo": "sk", "slv": "sl",
    "spa": "es", "swa": "sw", "swe": "sv", "tam": "ta", "tel": "te", "tgl": "tl", "tha": "th", "tur": "tr", "ukr": "uk", "urd": "ur",
    "vie": "vi", "zho": "zh", "zhs": "zh", "zht": "zh",
}  # fmt: skip
_CANTONESE = ("hk", "mo", "yue")
"""Second parts of a code that turn Chinese into Cantonese: Hong Kong, Macau, and the language's own code."""


def base_language(text: str) -> str:
    """The base code of a language: `en` for en, EN, en-US, en_GB, eng and English; `yue` for zh-HK and Cantonese.

    An unknown language is returned in lower case, up to the first hyphen.
    """
    parts = _SEPARATORS.sub("-", text.strip().lower()).split("-")
    base = _BY_NAME.get(parts[0]) or _BY_CODE.get(parts[0], parts[0])
    return "yue" if base == "zh" and any(part in _CANTONESE for part in parts[1:]) else base
