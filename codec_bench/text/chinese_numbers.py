"""Chinese numbers written out as the published error rates write them, including their errors.

UltraEval-Audio's error rates of Chinese and Cantonese use a text normalisation of SpeechIO with every option off:
numbers are written as they are spoken, punctuation becomes spaces, and nothing else changes. Some of its readings are
wrong: 007 loses a zero, 1000 is read as four digits, a date with slashes is read as a fraction, and a minus is not
read. It finds all numbers of a kind first and then replaces the first place where each occurs, which may be inside
another number. So this module is only for compatibility; the project's own rule for Chinese reads numbers with
`wetext`.

Reference: UltraEval-Audio 9b69da6 (Apache-2.0), `audio_evals/lib/text_normalization/cn_tn.py` with every option off,
which says that it is a copy of github.com/speechio/chinese_text_normalization. The lists `CURRENCIES`, `UNITS` and
`PUNCTUATION` below are that file's, and so are the patterns. The results are equal on 586 cases (`tests/golden/text`)
and were on 240,000 random texts.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

DIGITS = "零一二三四五六七八九"
_POWERS = ((44, "载"), (40, "正"), (36, "涧"), (32, "沟"), (28, "穰"), (24, "秭"), (20, "垓"), (16, "京"), (12, "兆"), (8, "亿"),
           (4, "万"), (3, "千"), (2, "百"), (1, "十"))  # fmt: skip

CURRENCIES = "(?:亿|千万|百万|万|千|百|(?:亿|千万|百万|万|千|百)?元|(?:亿|千万|百万|万|千|百)?块|角|毛|分)"
"""What after a number makes it an amount of money, which is read as one number: `CURRENCY_UNITS` of the published file.

That file also lists names of currencies (`CURRENCY_NAMES`), and uses them nowhere.
"""

UNITS = (
    *"匹张座回场尾条个首阙阵网炮顶丘棵只支袭辆挑担颗壳窠曲墙群腔砣客贯扎捆刀令打手罗坡山岭江溪钟队单双对出口头脚板跳枝件贴针线管名位身堂课本页家户层",
    *"丝毫厘分钱两斤铢石钧锱忽", "千克", "毫克", "微克", *"寸尺丈里寻常铺程", "千米", "分米", "厘米", "毫米", "微米", *"撮勺合升斗",
    *"盘碗碟叠桶笼盆盒杯斛锅簋篮罐瓶壶卮盏箩箱煲啖袋钵", *"年月日季刻时周天秒旬纪岁世更夜春夏秋冬代伏辈", *"丸泡粒幢堆根道面片块",
)  # fmt: skip
"""What after a number makes it a quantity, which is read as one number: `COM_QUANTIFIERS` of the published file, each
once.

After any other word, a number of four and more digits is read digit by digit: 9800艘 is 九八零零艘.
"""

PUNCTUATION = (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏·〈〉-"
    + string.punctuation
)
"""What becomes a space:

`PUNCS` of the published file, which lacks some characters of the list that it names as its source.
"""

_BLANKED = dict.fromkeys(map(ord, PUNCTUATION), " ")
_NUMBER = r"\d+(?:\.\d+)?"
_BETWEEN_LETTERS = re.compile(r"(?<![a-zA-Z])([a-zA-Z]+)二([a-zA-Z]+)")


def normalised(text: str) -> str:
    """The text with its numbers written out and its punctuation as spaces: the whole published normalisation."""
    return spoken(text).translate(_BLANKED)


def spoken(text: str) -> str:
    """The text with its numbers written out; punctuation stays.

    The order is: dates, money, telephone numbers, fractions, percentages, quantities, strings of four and more digits,
    and then all other numbers. At the end, a 二 between Latin letters becomes 2 again, as in B2B.
    """
    # The published file marks both ends of the text, and takes away every such mark at the end.
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
    """Digits, with or without a decimal point, as one number: 225 is 两百二十五.

    A number of several zeros gives an empty text. Zeros in front of a single other digit give one zero; zeros in front
    of longer numbers are not read.
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
    """Digits read one by one; everything else is omitted."""
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


# The published patterns, with two changes that find the same and take linear time: one character that is no digit
# stands for a run of them, and a number begins where its digits begin. Each has at most one group: what is read.
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
