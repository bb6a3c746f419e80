"""The page of a build: what it shows of a build whose outcome is known, that nothing of the data is taken for markup,
and how it looks.
"""

from __future__ import annotations

import re

import pytest
from page_in_browser import complaints, open_page, resize, texts

from codec_bench import build
from codec_bench.apps.building.page import picture

from .conftest import RATE_HZ, noise

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">{{ 7*7 }}"


@pytest.fixture
def page(mixing, sounds):
    """A build with items of all kinds: kept at once, kept after retries, dropped with and without a sound."""
    import soundfile

    soundfile.write(sounds / "speech" / "speech_3.flac", 0 * noise(1.5, 3), RATE_HZ)
    questions = {"louder": {"wordings": [f"Which is louder? {HOSTILE[:-9]}"], "least": 8}}
    return build(mixing(title=HOSTILE, retries=0, count=16, questions=questions), out=sounds / "out")


def test_a_histogram_counts_every_value():
    bars = picture("gap_db", [0.0, 1.0, 1.0, 3.0]).bars
    counts = [int(text.rpartition(": ")[2]) for _, text in bars]
    assert sum(counts) == 4 and max(height for height, _ in bars) == 100 and counts[0] == 1 and counts[-1] == 1
    assert [bar for bar in picture("gap_db", [2.0, 2.0]).bars if bar[0]] == [(100.0, "2: 2")]
    assert picture("gap_db", [2.0, 2.0]).title == "gap, dB" and picture("error_rate", [2.0]).title == "error rate"
    both = picture("first", [0.0, 0.0], [0.0, 1.0])
    assert (both.low, both.high) == ("0", "1") and both.bars[0][1].endswith(": 2")


def test_the_page_says_what_the_funnel_says(page):
    text = (page.folder / "build.html").read_text("utf-8")
    assert "<img src=x" not in text and "49" not in re.findall(r"owned.{0,40}", text)[0]
    assert not re.search(r"(src|href)=\"https?:", text)
    assert f"{page.funnel.usable} of 16 items" in text
    reasons = [reason for _, _, reason, _ in page.funnel.rows() if reason]
    assert len(reasons) == 2 and all(reason in text for reason in reasons)
    worst, _, best = text.partition('id="best"')
    assert worst.count("data:audio/flac") == min(10, page.funnel.usable)
    # Mixtures without a question can be played; one with a silent source does not exist.
    assert best.count("data:audio/flac") == min(10, page.funnel.dropped["question"].total())


def test_what_came_nearest_to_the_limit_stands_first(page):
    text = (page.folder / "build.html").read_text("utf-8").partition('id="worst"')[2].partition('id="best"')[0]
    shares = [int(results) for results in re.findall(r"(\d+) % of the way", text)]
    assert shares == sorted(shares, reverse=True) and len(shares) > 2 and all(0 < share <= 100 for share in shares)


def test_the_page_works_in_a_browser(page, browser):
    open_page(browser, page.folder / "build.html")
    assert not complaints(browser) and browser.title.startswith("Build of </script>")
    assert texts(browser, "h2") == [
        "What became of the items", "Numbers", "Groups", "Worst usable items", "Best dropped", "Sources",
    ]  # fmt: skip
    ready = "return [...document.querySelectorAll('audio')].every((one) => one.error === null)"
    assert browser.execute_script(ready)
    for scheme in ("light", "dark"):
        for width in (390, 1400):
            resize(browser, width, scheme=scheme)
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (width, scheme)
