"""The step `numbers-ko`, before `cardinals-ko`: words around digits.

It writes months with irregular readings (6월 is 유월), percent, units, currencies, signs, fractions, ratios, clock times
and ranges. Telephone numbers and numbers with leading zeros are read digit by digit, with 공 for zero. Other digits
stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_DIGITS = "공일이삼사오육칠팔구"
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_LARGE = r"(?:\s*(?:[십백천]?[만억조]|[백천]))?"
_UNITS = {
    "km/h": "킬로미터", "kg": "킬로그램", "mg": "밀리그램", "km": "킬로미터", "cm": "센티미터", "mm": "밀리미터", "ml": "밀리리터", "mL": "밀리리터",
    "m2": "제곱미터", "m²": "제곱미터", "L": "리터", "l": "리터", "g": "그램", "m": "미터", "°C": "도", "℃": "도", "%": "퍼센트",
}  # fmt: skip
_CURRENCIES = {"$": "달러", "€": "유로", "¥": "엔", "£": "파운드", "₩": "원"}
_RANGED = "년|월|일|명|개|시|분|초|세|살|도|원|주|회|배|km|kg|cm|mm|m(?![a-z])|%"
_ABOUT = {
    "한두": "일이", "두세": "이삼", "두서너": "이삼", "서너": "삼사", "네다섯": "사오", "너댓": "사오", "대여섯": "오육", "예닐곱": "육칠",
    "일고여덟": "칠팔", "여덟아홉": "팔구", "오륙": "오육",
}  # fmt: skip
"""Words for a number or the next, with the digits of both, as in 2~3일 (이삼 일)."""
_COUNTED = "명|사람|살|마리|개|시간|잔|병|달|가지|번|년|일|주|분|배|권|장|대|곳|군데"

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def spoken_numbers(text: str) -> str:
    """Write the units and signs around numbers as words."""
    for pattern, read in _RULES:
        text = pattern.sub(read, text)
    return text


def _one_by_one(digits: str) -> str:
    return "".join(_DIGITS[int(digit)] for digit in digits if digit.isdecimal())


def _range(match: re.Match[str]) -> str:
    first, last = match[1], match[2]
    if len(first) == len(last) == 1 and int(last) == int(first) + 1:
        return f" {_one_by_one(first)}{_one_by_one(last)} "
    return f"{first}에서 {last}"


def _ratio(match: re.Match[str]) -> str:
    hours, minutes = match[1], match[2]
    if len(minutes) == 2 and int(minutes) < 60 and int(hours) <= 24:
        return f"{int(hours)}시" + (f" {int(minutes)}분" if int(minutes) else "")
    return f"{hours} 대 {minutes}"


_RULES: tuple[Rule, ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        (r"(?<![\d-])(?:0\d{1,2}[- ]?\d{3,4}-?|1[5-9]\d\d-)\d{4}(?![\d-])", lambda m: _one_by_one(m[0])),
        (r"(?<!\w)[영공일이삼사오육칠팔구]{3,}(?!\w)", lambda m: m[0].replace("영", "공")),
        (r"(?<!\d)0?6월", lambda m: "유월"),
        (r"(?<!\d)10월", lambda m: "시월"),
        (r"(?<![\d.,])0(?=\d\s*[월일시분초])", lambda m: ""),
        (r"(?<![\d.,:])0\d+(?![\d.,:])", lambda m: _one_by_one(m[0])),
        (r"(?<!\d)1\s*번째", lambda m: "첫번째"),
        (rf"({'|'.join(map(re.escape, _CURRENCIES))})\s*({_NUMBER}{_LARGE})", lambda m: f"{m[2]} {_CURRENCIES[m[1]]}"),
        (rf"(?<![\w.-])[-−](?={_NUMBER}\s*(?:도|℃|°C))", lambda m: "영하 "),
        (rf"(?<![\w.-])[-−](?={_NUMBER})", lambda m: "마이너스 "),
        (r"(?<![\d/])(\d+)/(\d+)(?![\d/])", lambda m: f"{m[2]}분의 {m[1]}" if int(m[1]) < int(m[2]) else m[0]),
        (r"(?<![\d:])(\d+):(\d+)(?![\d:])", _ratio),
        (rf"(?<![\d.,-])({_NUMBER})\s*[~∼〜～]\s*({_NUMBER})", _range),
        (rf"(?<![\d.,-])({_NUMBER})\s*[-–]\s*({_NUMBER})(?=\s*(?:{_RANGED}))", _range),
        (r"(?<=[%년월일시분도원명개세살])\s*[~∼〜～]\s*(?=\d)", lambda m: "에서 "),
        (rf"(?<=\d)\s*({'|'.join(map(re.escape, _UNITS))})(?![A-Za-z\d])", lambda m: f" {_UNITS[m[1]]}"),
        (rf"(?<!\w)({'|'.join(_ABOUT)})(?=\s*(?:{_COUNTED}))", lambda m: _ABOUT[m[1]]),
    )
)  # fmt: skip
