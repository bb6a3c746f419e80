"""Reading the number of an answer, exactly. An answer with two numbers has none that can be read."""

from __future__ import annotations

from fractions import Fraction

import pytest

from codec_bench.benchmark.reading import Parsed, Unparsed, load_steps
from codec_bench.benchmark.reading.number import read_number, write_number


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("12", "12"), ("The answer is 12.", "12"), ("about 1,234.50 apples", "1234.5"), ("1/2", "0.5"),
        ("1/3", "1/3"), ("1e3", "1000"), ("-5 degrees", "-5"),
        ("−7", "-7"), ("１２", "12"), ("五 or 5", "5"), ("#### 42", "42"), ("2+3=5, so \\boxed{5}", "5"),
        ("The answer is 5 because 2+3=5", "5"), ("$15", "15"),
        ("50%", "50"), ("**19**", "19"), ("1,000,000", "1000000"), ("007", "7"), (".5", "0.5"), ("答案是 3", "3"),
        ("7 and 7.0", "7"),
        ("3 and 4", None), ("5-3", None), ("12:30", None), ("The answer is 3. The answer is 4.", None),
        ("twelve", None), ("", None), ("5/0", None), ("v2", None),
    ],
)  # fmt: skip
def test_a_number(answer, number):
    read = load_steps(["number"])(answer, {})
    assert read == Parsed(number) if number else isinstance(read, Unparsed), read


@pytest.mark.parametrize("value", ["0", "-0.125", "1/7", "123456789.000001", "-2/3", "1e30", "0.1"])
def test_a_number_is_read_as_it_is_written(value):
    number = read_number(value)
    assert number == (Fraction(value)) and read_number(write_number(number)) == number


@pytest.mark.parametrize("text", ["a 1", "1 2", "", "nan", "inf", "1_0", "0x1", "1.2.3"])
def test_what_is_no_number(text):
    assert read_number(text) is None
