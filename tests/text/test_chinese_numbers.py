"""Chinese number words mean the numbers they are made from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_bench.text.chinese_numbers import DIGITS, cardinal, one_by_one, spoken

VALUES = {word: value for value, word in enumerate(DIGITS)} | {"两": 2}
SMALL = {"十": 10, "百": 100, "千": 1000}
LARGE = {"万": 10**4, "亿": 10**8, "兆": 10**12}


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


@given(st.integers(0, 10**16 - 1))
def test_a_cardinal_means_its_number(number):
    assert meaning(cardinal(str(number))) == number


@given(st.integers(0, 9999), st.text("0123456789", min_size=1, max_size=6))
def test_decimals_are_read_one_by_one(whole, decimals):
    said, _, after = cardinal(f"{whole}.{decimals}").partition("点")
    assert meaning(said) == whole
    assert [VALUES[digit] for digit in after] == list(map(int, decimals))


@settings(deadline=None)
@given(st.integers(1, 10**8 - 1))
def test_amounts_are_wetexts_but_for_two(number):
    normalizer = pytest.importorskip("wetext").Normalizer(lang="zh", operator="tn")
    theirs = normalizer.normalize(f"{number}元")
    assert spoken(f"{number}元").replace("两", "二") == theirs.replace("两", "二")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("98年5月", "九八年五月"),
        ("12345678元", "一千两百三十四万五千六百七十八元"),
        ("3000个", "三千个"),
        ("2024/01/02", "零一分之两千零二十四/零二"),
        ("没有数字", "没有数字"),
    ],
)
def test_readings(text, said):
    assert spoken(text) == said


@given(st.text(max_size=20))
def test_no_digit_is_left(text):
    assert not [letter for letter in spoken(text) if letter.isdecimal()]


def test_digits_one_by_one_leave_out_the_rest():
    assert one_by_one("010-6278") == "零一零六二七八"
