"""Chinese number words mean the numbers they are made from."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_bench.text.chinese_numbers import DIGITS, UNITS, cardinal, normalised, one_by_one, spoken

VALUES = {word: value for value, word in enumerate(DIGITS)} | {"两": 2}
SMALL = {"十": 10, "百": 100, "千": 1000}
LARGE = {word: 10 ** (4 * (index + 1)) for index, word in enumerate("万亿兆京垓秭穰沟涧正载")}


def meaning(words):
    """The number that Chinese number words name: an independent reading, unit by unit."""
    total = section = digit = 0
    for word in words:
        if word in VALUES:
            digit = VALUES[word]
        elif word in SMALL:
            section += (digit or 1) * SMALL[word]
            digit = 0
        else:
            total += (section + digit) * LARGE[word]
            section = digit = 0
    return total + section + digit


@given(st.integers(0, 10**16 - 1) | st.integers(0, 10**48 - 1))
def test_a_cardinal_means_its_number(number):
    assert meaning(cardinal(str(number))) == number


@pytest.mark.parametrize("word", LARGE)
def test_every_power_has_its_word(word):
    assert cardinal(str(LARGE[word])) == f"一{word}"


@given(st.integers(0, 9999), st.text("0123456789", min_size=1, max_size=6))
def test_decimals_are_read_one_by_one(complete, decimals):
    text, _, after = cardinal(f"{complete}.{decimals}").partition("点")
    assert meaning(text) == complete
    assert [VALUES[digit] for digit in after] == list(map(int, decimals))


@settings(deadline=None)
@given(st.integers(1, 10**8 - 1))
def test_amounts_are_wetexts_but_for_two(number):
    normalizer = pytest.importorskip("wetext").Normalizer(lang="zh", operator="tn")
    theirs = normalizer.normalize(f"{number}元")
    assert spoken(f"{number}元").replace("两", "二") == theirs.replace("两", "二")


# What `normalize_nsw` of UltraEval-Audio 9b69da6 (audio_evals/lib/text_normalization/cn_tn.py) gives for these texts.
PUBLISHED = {
    "她生于05年3月8日。": "她生于零五年三月八日。",
    "他00年5月走了": "他零零年五月走了",
    "他87年12月25号毕业。": "他八七年十二月二十五号毕业。",
    "会议定在10月1号。": "会议定在十月一号。",
    "请拨+86 13512345678。": "请拨八六一三五一二三四五六七八。",
    "请拨8613912345678。": "请拨八六一三九一二三四五六七八。",
    "热线010-62784567。": "热线零一零六二七八四五六七。",
    "打0755-26001234找我。": "打零七五五二六零零一二三四找我。",
    "我有10多个苹果。": "我有十多个苹果。",
    "3000多个人": "三千多个人",
    "2000余名学生": "两千余名学生",
    "1500多元": "一千五百多元",
    "跑了42.195千米。": "跑了四十二点一九五千米。",
    "等了1500秒": "等了一千五百秒",
    "用了90秒。": "用了九十秒。",
    "2000世": "两千世",
    "第1024页": "第一千零二十四页",
    "002个": "零二个",
    "22222元": "两万两千两百二十二元",
    "120000元": "十二万元",
    "1020000块": "一百零二万块",
    "10010元5角": "一万零一十元五角",
    "3000万元": "三千万元",
    "比例3/4": "比例四分之三",
    "增长62.5%": "增长百分之六十二点五",
    "3.1415": "三.一四一五",
    "0.25": "零点二五",
    "007": "零七",
    "2002": "二零零二",
    "110": "一百一十",
    "220": "两百二十",
    "7200小时": "七二零零小时",
    "39年": "三十九年",
    "09年": "零九年",
    "2月29": "二月二十九",
}


@pytest.mark.parametrize("text", PUBLISHED)
def test_readings_are_the_published_ones(text):
    assert spoken(text) == PUBLISHED[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("98年5月", "九八年五月"),
        ("12345678元", "一千两百三十四万五千六百七十八元"),
        ("3000个", "三千个"),
        ("2024/01/02", "零一分之两千零二十四/零二"),
        ("00.2", "零点二"),
        ("100000000和1000家", "一千零零零零零和一零零零家"),
        ("^B2B和a二b$", "B2B和a2b"),
        ("约25％", "约百分之二十五"),
        ("没有数字", "没有数字"),
    ],
)
def test_readings(text, message):
    assert spoken(text) == message


@given(st.text(max_size=20))
def test_no_digit_is_left_but_between_letters(text):
    assert not re.search(r"(?<![a-zA-Z])\d|\d(?![a-zA-Z])", spoken(text))


def test_the_published_units_are_those_of_the_cases():
    """Each unit makes a number of four digits a quantity, and the words that nobody published do not."""
    assert len(UNITS) == len(set(UNITS)) == 160
    assert all(spoken(f"第9800{unit}") == f"第九千八百{unit}" for unit in UNITS)
    for word in (*"台号部项届套艘株遍幅批班", "人民币", "芬兰马克"):
        assert spoken(f"第9800{word}") == f"第九八零零{word}"


@pytest.mark.parametrize("segment", ["1", "a", "1.1", "你", "5元", "B二"])
def test_long_texts_take_linear_time(segment):
    # Quadratic time would be minutes here.
    assert normalised(segment * 20_000) is not None


def test_digits_one_by_one_leave_out_the_rest():
    assert one_by_one("010-6278") == "零一零六二七八"
