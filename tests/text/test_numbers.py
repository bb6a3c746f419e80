"""Numbers as people say them: what is written in digits equals what is spoken, by the rule `by-language`."""

import csv
import time
from pathlib import Path

import pytest

from codec_bench.text import numbers_en, numbers_ko, numbers_zh
from codec_bench.text.rules import get_rule

PAIRS = Path(__file__).parents[1] / "golden" / "text"
LEAST = {"zh": 200, "ko": 190, "en": 45}


@pytest.mark.parametrize("language", LEAST)
def test_written_and_spoken_numbers(language):
    with (PAIRS / f"numbers_{language}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= LEAST[language]
    texts = {role: [row[name] for row in rows] for role, name in (("reference", "spoken"), ("estimate", "written"))}
    compared = get_rule("by-language").compare(**texts, language=[language] * len(rows))
    different = [(row["written"], one.reference, one.estimate) for row, one in zip(rows, compared) if one.counts.errors]
    assert not different


@pytest.mark.parametrize("language", ["zh", "yue", "ko", "en"])
def test_changed_rules_have_another_protocol(language):
    assert get_rule("by-language").protocol(language).startswith("by-language-2")
    assert get_rule("by-language").protocol("de") == "by-language"


@pytest.mark.parametrize(
    "spoken_numbers", [numbers_en.spoken_numbers, numbers_ko.spoken_numbers, numbers_zh.spoken_numbers]
)
@pytest.mark.parametrize("fragment", ["1", "1 ", "1-", "1.", "1, ", "-1~", "12年", "电话1", "1/", "a ", "1:", "0"])
def test_time_is_linear(spoken_numbers, fragment):
    start = time.process_time()
    spoken_numbers(fragment * 20_000)
    assert time.process_time() - start < 1
