"""The step `numbers-zh`: Chinese numbers as people read them, before wetext.

    decimals, which wetext takes for dates (12.5); versions and addresses (1.2.3, 192.168.1.1); ranges (2-3年, 10-20,
    5%-10%, 18-25岁) and scores after 比分; four digits before 年 that count years (距今5000年), unlike 2024年, which is read
    digit by digit; telephone numbers, codes and names that are read digit by digit (13882366638, 验证码4521, 985高校); 2
    before a measure word (2次, 2点), fractions in one character (½), and English ordinals (1st).

Ranges of two months, days or clock times, and all money, are left to wetext.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from codec_bench.text.chinese_numbers import cardinal, one_by_one

_NUMBER = r"\d+(?:\.\d+)?"
_ALONE = r"(?<![\d.])"
_DATE = r"(?:1\d|20)\d\d([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?![\d.])"
_MONEY = "[¥￥$€£₩]"
_CALLED = (
    "电话|手机|座机|热线|传真|号码|账号|帐号|卡号|编号|学号|工号|单号|订单号|尾号|车牌号?|邮编|验证码|密码|代码|门牌号|身份证号?|"
    "QQ号?|微信号?|qq号?"
)
_MEASURES = (
    "个|只|位|名(?!额)|天|次|倍|人(?!称)|家|种|本|条|张|件|场|周(?!岁)|块|元|吨|斤|公里|公斤|米|辆|台|部|架|艘|座|栋|间|套|岁|"
    "把|双|对|批|项|份|颗|棵|匹|杯|瓶|碗|盒|箱|包|袋|页|句|首|段|篇|遍|趟|轮|组|排|串|枚|节|堂|门|所|类|样|顿|步|支|根|片|幅|"
    "封|滴|口|头|群|阵|星期|小时|分钟|秒|刻钟|年(?!级)|点(?![零一二三四五六七八九]|\\d+(?![\\d分]))"
)
_WON = "击败|战胜|战平|获胜|取胜|险胜|大胜|完胜|领先|落后|逆转|力克|不敌|负于"
_SPOKEN_CODES = {
    "(?:高校|大学|院校|工程)": ("985", "211"), "晚会": ("315",), "事件": ("911", "918"), "(?:大促|购物节|年中)": ("618",),
    "(?:工作制|加班|模式)": ("996", "007"),
}  # fmt: skip

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def spoken_numbers(text: str) -> str:
    """Write these numbers of a text in characters."""
    for pattern, read in _RULES:
        text = pattern.sub(read, text)
    return text


def _decimal(number: str) -> str:
    integer, point, decimals = number.partition(".")
    return _integer(integer) + (f"点{one_by_one(decimals)}" if point else "")


def _integer(digits: str) -> str:
    """A whole number; leading zeros are read (007)."""
    is_code = len(digits) > 1 and digits[0] == "0"
    return one_by_one(digits) if is_code else cardinal(digits) or "零"


def _dotted(match: re.Match[str]) -> str:
    """Read a version by its numbers, and an address (four parts, one of three digits) digit by digit."""
    groups = match[0].split(".")
    is_address = len(groups) == 4 and any(len(group) == 3 for group in groups)
    return "点".join(map(one_by_one if is_address else _integer, groups))


def _range(match: re.Match[str]) -> str:
    """Spell a range of numbers in Chinese, as years, ordinals, percent or counts."""
    first, last = match["first"], match["last"]
    if match["percent"]:
        return f"百分之{_decimal(first)}到{'百分之' if match['both'] else ''}{_decimal(last)}"
    if _is_year(first) and _is_year(last):
        return f"{one_by_one(first)}到{one_by_one(last)}"
    if match["ordinal"]:
        return f"第{_decimal(first)}到{_decimal(last)}"
    read = {"2": "两"}
    unit = match.string[match.end() : match.end() + 1]
    if re.match("[A-Za-z℃°]", unit):  # wetext reads it with its number
        return f"{read.get(first) or _decimal(first)}到{last}"
    return f"{read.get(first) or _decimal(first)}到{read.get(last) or _decimal(last)}"


def _is_year(digits: str) -> bool:
    return len(digits) == 4 and digits[:2] in ("18", "19", "20")


def _years(match: re.Match[str]) -> str:
    """Read counted years: numbers that name no year, and whole centuries next to certain words."""
    number = int(match["years"])
    names_a_year = 1000 <= number <= 2100
    is_counted = (number % 100 == 0 and match["before"]) or (number % 1000 == 0 and match["after"])
    read = one_by_one if names_a_year and not is_counted else cardinal
    return f"{match['before'] or ''}{read(match['years'])}"


def _called(match: re.Match[str]) -> str:
    return match["name"] + re.sub(r"[- ]", "", one_by_one(match["digits"]))


def _fraction(match: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", match[0]).partition("\u2044")
    return f"{cardinal(below)}分之{cardinal(above)}" if above and below else match[0]


def _digits(match: re.Match[str]) -> str:
    return one_by_one(match[0])


_RULES: tuple[Rule, ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        ("[¼½¾⅐-⅞]", _fraction),
        # Names that are read digit by digit.
        (rf"(?P<name>(?:{_CALLED})(?:号码|号)?(?:分别)?[是为:：]?\s*)(?P<digits>\d[\d -]{{2,}}\d)(?![\d.])", _called),
        (rf"{_ALONE}(?:\+?86[- ]?)?1[3-9]\d{{9}}(?!\d)", _digits),
        (rf"{_ALONE}(?:0\d{{2,3}}[- ][2-9]\d{{6,7}}|[48]00[- ]\d{{3}}[- ]?\d{{4}})(?![\d.])", _digits),
        *((rf"{_ALONE}(?:{'|'.join(codes)})(?=[、和]?\d*{word})", _digits) for word, codes in _SPOKEN_CODES.items()),
        (r"(?<![\d.])(\d+)(?=(?:st|nd|rd|th)(?![a-zA-Z]))", lambda m: cardinal(m[1])),
        # Ranges, but of dates and of what is subtracted.
        (rf"比分(?:是|为|锁定在)?\d+-\d+|(?<![\d.-])\d+-\d+(?={_WON})", lambda m: m[0].replace("-", "比")),
        (rf"(?<![A-Za-z\d_.{_MONEY[1:-1]}+×*/-])(?!{_DATE})(?P<ordinal>第)?(?P<first>{_NUMBER})(?P<both>%)?"
         rf"\s*[-–—~～]+\s*(?P<last>{_NUMBER})(?P<percent>%)?(?![\d.:/%+×*-]|月|[日号]|\s*=)", _range),
        (r"(?<=[年月日号])\s*[-–—~～]+\s*(?=\d)", lambda m: "到"),
        (r"第(\d+)(?![\d.])", lambda m: f"第{_integer(m[1])}"),
        (rf"{_ALONE}({_NUMBER})\s*×\s*({_NUMBER})(?![\d.]|\s*=)", lambda m: f"{_decimal(m[1])}乘{_decimal(m[2])}"),
        # Years that are counted.
        (r"(?P<before>距今(?:约|已有?)?|长达|历时|将近|接近|超过|持续)?(?<!\d)(?P<years>[1-9]\d{3})"
         r"(?=年(?P<after>前|历史|的历史|之久|以来|来|左右)?)", _years),
        # Decimals, but of money, of units in Latin letters, and of dates in three parts.
        (rf"{_ALONE}(?!{_DATE})\d+(?:\.\d+){{2,}}(?![\d.])", _dotted),
        (rf"(?<![\d.{_MONEY[1:-1]}])\d+\.\d+(?![\d.%a-zA-Z℃°/:])", lambda m: _decimal(m[0])),
        (rf"(?<![\d.第:/点])2(?=(?:{_MEASURES}))", lambda m: "两"),
    )
)  # fmt: skip
