"""Write Chinese numbers out as the published error rates do, with their errors.

UltraEval-Audio's Chinese and Cantonese error rates use SpeechIO's text normalisation with every option off: numbers as
spoken, punctuation as spaces. Some readings are wrong: 007 loses a zero, 1000 is four digits, a date with slashes is a
fraction, a minus is dropped, and a number is replaced at its first occurrence, even inside another. The project's own
rule for Chinese uses `wetext`.

Reference: UltraEval-Audio 9b69da6 (Apache-2.0), `audio_evals/lib/text_normalization/cn_tn.py`, a copy of
github.com/speechio/chinese_text_normalization, with its patterns and its lists `CURRENCIES`, `UNITS` and `PUNCTUATION`.
Equal on 586 cases (`tests/golden/text`) and 240,000 random texts.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

DIGITS = "零一二三四五六七八九"
_POWERS = ((44, "载"), (40, "正"), (36, "涧"), (32, "沟"), (28, "穰"), (24, "秭"), (20, "垓"), (16, "京"), (12, "兆"), (8, "亿"),
           (4, "万"), (3, "千"), (2, "百"), (1, "十"))  # fmt: skip

CURRENCIES = "(?:亿|千万|百万|万|千|百|(?:亿|千万|百万|万|千|百)?元|(?:亿|千万|百万|万|千|百)?块|角|毛|分)"
"""Units that make a number an amount of money: `CURRENCY_UNITS` of the published file (`CURRENCY_NAMES` is unused)."""

UNITS = (
    *"匹张座回场尾条个首阙阵网炮顶丘棵只支袭辆挑担颗壳窠曲墙群腔砣客贯扎捆刀令打手罗坡山岭江溪钟队单双对出口头脚板跳枝件贴针线管名位身堂课本页家户层",
    *"丝毫厘分钱两斤铢石钧锱忽", "千克", "毫克", "微克", *"寸尺丈里寻常铺程", "千米", "分米", "厘米", "毫米", "微米", *"撮勺合升斗",
    *"盘碗碟叠桶笼盆盒杯斛锅簋篮罐瓶壶卮盏箩箱煲啖袋钵", *"年月日季刻时周天秒旬纪岁世更夜春夏秋冬代伏辈", *"丸泡粒幢堆根道面片块",
)  # fmt: skip
"""Units that make a number a quantity: `COM_QUANTIFIERS` of the published file, each once.

After other words, four and more digits are read one by one: 9800艘 is 九八零零艘.
"""

PUNCTUATION = (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏·〈〉-"
    + string.punctuation
)
"""Characters that become a space: `PUNCS` of the published file, which lacks some characters of its source."""

_BLANKED = dict.fromkeys(map(ord, PUNCTUATION), " ")
_NUMBER = r"\d+(?:\.\d+)?"
_BETWEEN_LETTERS = re.compile(r"(?<![a-zA-Z])([a-zA-Z]+)二([a-zA-Z]+)")


def normalised(text: str) -> str:
    """The published normalisation: numbers written out, punctuation as spaces."""
    return spoken(text).translate(_BLANKED)


def spoken(text: str) -> str:
    """Write the numbers of a text out; punctuation stays.

    The order is dates, money, telephone numbers, fractions, percentages, quantities, strings of four and more digits,
    all other numbers. At the end, a 二 between Latin letters becomes 2 again, as in B2B.
    """
    # The published file marks both ends of the text, and strips all such marks at the end.
    text = f"^{text}$"
    for pattern, read in _READINGS:
        if pattern is _PERCENTAGE:
            text = text.replace("％", "%")
        for matched in pattern.findall(text):
            text = text.replace(matched, read(matched), 1)
    for before, after in _BETWEEN_LETTERS.findall(text):
        text = text.replace(f"{before}二{after}", f"{before}2{after}", 1)
    return text.lstrip("^").rstrip("$")


def cardinal(number: str) -> str:
    """Read digits, with or without a decimal point, as one number: 225 is 两百二十五.

    Several zeros give an empty text. Zeros before a single digit give one zero; before longer numbers they are dropped.
    """
    integer, point, decimals = number.partition(".")
    parts = list(_parts(integer)) if len(integer) > 1 else [DIGITS[int(integer)]]
    if parts[:2] == ["一", "十"]:
        del parts[0]
    for index, group in enumerate(parts[:-1]):
        # Two is 两 before hundreds and larger units, but not in the tens of a larger unit.
        before, after = parts[index - 1] if index else "", parts[index + 1]
        if group == "二" and after not in f"{DIGITS}十" and (not before or before not in f"{DIGITS}十"):
            parts[index] = "两"
    spelled = "".join(parts) + ("点" + one_by_one(decimals) if point else "")
    return DIGITS[0] + spelled if spelled.startswith("点") else spelled


def one_by_one(digits: str) -> str:
    """Read digits one by one; everything else is omitted."""
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


def _cardinals(amount: str) -> str:
    for number in re.findall(_NUMBER, amount):
        amount = amount.replace(number, cardinal(number))
    return amount


def _date(date: str) -> str:
    year, mark, rest = date.partition("年")
    if not mark:
        year, rest = "", date
    return one_by_one(year) + mark + re.sub(r"\d+", lambda number: cardinal(number[0]), rest)


def _fraction(fraction: str) -> str:
    above, _, below = fraction.partition("/")
    return f"{cardinal(below)}分之{cardinal(above)}"


# The published patterns, except for two changes that make them linear and match the same: one non-digit replaces a
# run of them, and a number begins where its digits begin. The group, if any, is the reading.
_PERCENTAGE = re.compile(rf"(?<!\d){_NUMBER}%")
_READINGS: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (re.compile(r"\D((?:(?:[089]\d|(?:19|20)\d{2})年)?(?:\d{1,2}月(?:\d{1,2}[日号])?)?)"), _date),
    (re.compile(rf"\D({_NUMBER}[多余几]?{CURRENCIES}(?:\d{CURRENCIES}?)?)"), _cardinals),
    (re.compile(r"\D((?:\+?86 ?)?1(?:[38]\d|5[0-35-9]|7[678]|9[89])\d{8})\D"), one_by_one),
    (re.compile(r"\D((?:0(?:10|2[1-3]|[3-9]\d{2})-?)?[1-9]\d{6,7})\D"), one_by_one),
    (re.compile(r"(?<!\d)\d+/\d+"), _fraction),
    (_PERCENTAGE, lambda share: f"百分之{cardinal(share[:-1])}"),
    (re.compile(rf"(?<!\d)({_NUMBER})[多余几]?(?:{'|'.join(UNITS)})"), cardinal),
    (re.compile(r"\d{4,32}"), one_by_one),
    (re.compile(_NUMBER), cardinal),
)
