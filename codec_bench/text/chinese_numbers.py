"""Chinese numbers written out as the published error rates write them, including their errors.

UltraEval-Audio's error rates of Chinese and Cantonese use a text normalisation of SpeechIO with every option off: numbers
are written as they are spoken, punctuation becomes spaces, and nothing else changes. Some of its readings are wrong: 007
loses a zero, 1000 is read as four digits, a date with slashes is read as a fraction, and a minus is not read. So this
module is only for compatibility; the project's own rule for Chinese reads numbers with `wetext`.

Reference: UltraEval-Audio 9b69da6, `lib/text_normalization/cn_tn.py` with every option off. The results are equal on 46
texts written for this purpose and on the texts of two error-rate fixtures. There is no published list of the units and
currencies that make a number a quantity; `UNITS` holds the usual ones. They matter for numbers of four and more digits:
without a unit, the digits are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

DIGITS = "零一二三四五六七八九"
_POWERS = ((44, "载"), (40, "正"), (36, "涧"), (32, "沟"), (28, "穰"), (24, "秭"), (20, "垓"), (16, "京"), (12, "兆"), (8, "亿"),
           (4, "万"), (3, "千"), (2, "百"), (1, "十"))  # fmt: skip

CURRENCIES = (
    "人民币 美元 日元 英镑 欧元 马克 法郎 加拿大元 澳元 港币 先令 芬兰马克 爱尔兰镑 里拉 荷兰盾 埃斯库多 比塞塔 印尼盾 林吉特 新西兰元 "
    "比索 卢布 新加坡元 韩元 泰铢 亿 千万 百万 万 千 百 元 块 角 毛 分"
).split()
"""Words after a number that make it an amount of money, which is read as one number."""

UNITS = (
    # People, animals, plants and things.
    *"个只头匹条尾口位名身",
    *"棵颗粒株支枝根朵束丛片块面张页本册件套双对副把辆座栋幢间层户家台部架艘枚盏顶床扇道堵堆排队群班批伙帮项种类篇首幅封节堂课",
    *"阙阵网炮丘袭挑担壳窠曲墙腔砣客贯扎捆刀令打手罗坡山岭江溪钟单出脚板跳贴针线管丸泡",
    # Vessels.
    *"碗杯盘碟盆盒瓶罐桶袋包箱篮箩筐锅壶勺叠笼斛钵煲啖簋卮",
    # Weights and measures.
    *"斤两钱石钧铢锱忽丝毫厘分寸尺丈里寻常铺程合升斗撮",
    *(prefix + unit for unit in ("克", "米") for prefix in "千分厘毫微"),
    # Time.
    *"年月日号天周旬季刻时秒岁世纪代更夜春夏秋冬伏辈届",
    # Events.
    *"场回遍趟顿番",
)
"""Words after a number that make it a quantity, which is read as one number."""

_NUMBER = r"\d+(?:\.\d+)?"
_MORE = "[多余几]?"


def spoken(text: str) -> str:
    """The text with its numbers written out; punctuation stays.

    The order is: dates, money, telephone numbers, fractions, percentages, quantities, strings of four and more digits, and
    then all other numbers.
    """
    for pattern, say in _READINGS:
        text = pattern.sub(say, text)
    return text


def cardinal(number: str) -> str:
    """Digits, with or without a decimal point, as one number: 225 is 两百二十五.

    A number of several zeros gives an empty text. Zeros in front of a single other digit give one zero; zeros in front of
    longer numbers are not read.
    """
    whole, point, decimals = number.partition(".")
    parts = list(_parts(whole)) if len(whole) > 1 else [DIGITS[int(whole)]]
    if parts[:2] == ["一", "十"]:
        del parts[0]
    for place, part in enumerate(parts[:-1]):
        # Two is 两 before hundreds and larger units, but not in the tens of a larger unit.
        before, after = parts[place - 1] if place else "", parts[place + 1]
        if part == "二" and after not in f"{DIGITS}十" and (not before or before not in f"{DIGITS}十"):
            parts[place] = "两"
    return "".join(parts) + ("点" + one_by_one(decimals) if point else "")


def one_by_one(digits: str) -> str:
    """Digits read one by one; everything else is left out."""
    return "".join(DIGITS[int(digit)] for digit in digits if digit.isdecimal())


def _parts(digits: str) -> Iterator[str]:
    """The words of a whole number."""
    significant = len(digits.lstrip("0"))
    if significant == 0:
        return
    if significant == 1:
        if len(digits) > 1:
            yield DIGITS[0]
        yield DIGITS[int(digits[-1])]
        return
    power, word = next((power, word) for power, word in _POWERS if power < significant)
    yield from _parts(digits[:-power])
    yield word
    yield from _parts(digits[-power:])


def _cardinals(match: re.Match[str]) -> str:
    return re.sub(_NUMBER, lambda number: cardinal(number[0]), match[0])


def _date(match: re.Match[str]) -> str:
    year = one_by_one(match["year"]) + "年" if match["year"] else ""
    return year + re.sub(r"\d+", lambda number: cardinal(number[0]), match["rest"] or "")


def _alternatives(words: tuple[str, ...] | list[str]) -> str:
    return "|".join(sorted(set(words), key=len, reverse=True))


_READINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d|[089]\d)年(?P<rest>\d{1,2}月(?:\d{1,2}[日号])?)?"), _date),
    (re.compile(r"(?<!\d)(?P<year>)(?P<rest>\d{1,2}月(?:\d{1,2}[日号])?)"), _date),
    (re.compile(f"{_NUMBER}{_MORE}(?:{_alternatives(CURRENCIES)})"), _cardinals),
    (re.compile(r"(?<!\d)(?:\+?86 ?)?1[3-9]\d{9}(?!\d)"), lambda match: one_by_one(match[0])),
    (re.compile(r"(?<!\d)(?:0(?:10|2[1-3]|[3-9]\d\d)-?)?[1-9]\d{6,7}(?!\d)"), lambda match: one_by_one(match[0])),
    (
        re.compile(r"(\d+)/(\d+)"),
        lambda match: f"{cardinal(match[2])}分之{cardinal(match[1])}",
    ),
    (re.compile(f"({_NUMBER})%"), lambda match: f"百分之{cardinal(match[1])}"),
    (re.compile(f"{_NUMBER}{_MORE}(?:{_alternatives(UNITS)})"), _cardinals),
    (re.compile(r"\d{4,32}"), lambda match: one_by_one(match[0])),
    (re.compile(_NUMBER), lambda match: cardinal(match[0])),
)
