"""Frames in which tables scroll: they show where more lies, keep the first column and the
head, and obey the keyboard.
"""

from __future__ import annotations

import numpy as np
import pytest
from page_in_browser import click, complaints, open_page, resize, texts, until

from codec_bench.report.page import write_page
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
SUMMARY = "#summary-table"
LONG_ID = "librispeech_test_clean/speaker_1089/chapter_134686/utterance_{:04d}_of_a_long_recording"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A page of 52 systems and 20 metrics, with long ids."""
    return written(tmp_path_factory.mktemp("wide"), 52)


def written(folder, count):
    """The page of a run of so many systems."""
    rng = np.random.default_rng(0)
    metrics = ["bitrate", *(f"quality_number_{n}" for n in range(19))]
    systems = [f"codec-{n // 4}@{2 ** (n % 4)}" for n in range(count - 1)] + [
        "./codecs/convnet_with_a_name.py:Convolutional"
    ]
    writer = RunWriter(folder / "run", {})
    facts = {name: {"protocol": "p", "higher_is_better": name != "bitrate"} for name in metrics}
    facts["bitrate"].update(unit="bps", aggregate="ratio")
    samples = [Sample(LONG_ID.format(n), None, speaker=f"speaker {n}") for n in range(6)]
    writer.begin({name: {} for name in systems}, facts, samples)
    for n, sample in enumerate(samples):
        rows = []
        for s, system in enumerate(systems):
            scores = {name: Score.ok(float(rng.random()), "p") for name in metrics}
            scores["bitrate"] = Score.ok(1000.0 * (s + 1), "p", numerator=1000.0 * (s + 1), denominator=1.0)
            rows.append((n, ItemRecord(system, sample.id, "ok", None, scores, duration_s=1.0)))
        writer.write(rows)
    writer.close()
    write_page([Run(folder / "run")], folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def page(browser, path):
    """The page, drawn once for several tests, with nothing scrolled or focused."""
    if browser.current_url.partition("#")[0] != path.as_uri():
        open_page(browser, path)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_script(
        """document.activeElement.blur();
        scrollTo(0, 0);
        for (const scroll of document.querySelectorAll(".scroll")) {
          scroll.scrollTo({ left: 0, top: 0, behavior: "instant" });
        }"""
    )
    yield browser
    assert complaints(browser) == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def frame_of(browser, table):
    """What the frame of a table says, and what is true of it."""
    return browser.execute_script(
        """const scroll = document.querySelector(arguments[0]).closest(".scroll"), frame = scroll.parentElement;
        const shade = (side) => Number(getComputedStyle(frame, side).opacity);
        return {
          said: ["left", "right", "below"].filter((side) => frame.classList.contains(`more-${side}`)),
          right: scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft, left: scroll.scrollLeft,
          shade: [shade("::after"), shade("::before")], stop: scroll.tabIndex, wide: scroll.clientWidth,
        }""",
        table,
    )


def scroll_to(browser, table, left):
    browser.execute_async_script(
        """const scroll = document.querySelector(arguments[0]).closest(".scroll");
        scroll.scrollLeft = arguments[1];
        setTimeout(arguments[2], 300)""",
        table,
        left,
    )


@pytest.mark.parametrize("width", [390, 1400, 2560])
def test_every_frame_says_where_more_of_its_table_is(page, width):
    resize(page, width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    frames = page.execute_script(
        """return [...document.querySelectorAll(".frame")].filter((f) => f.offsetWidth).map((frame) => {
          const scroll = frame.querySelector(".scroll");
          return [scroll.getAttribute("aria-label"),
            scroll.scrollWidth > scroll.clientWidth + 1, frame.classList.contains("more-right"),
            scroll.scrollHeight > scroll.clientHeight + 1, frame.classList.contains("more-below"),
            scroll.tabIndex === 0];
        })"""
    )
    assert {"Summary table", "Table of samples", "Metrics"} <= {label for label, *_ in frames}
    for label, wider, reported_wider, higher, reported_higher, stop in frames:
        assert (reported_wider, reported_higher, stop) == (wider, higher, wider or higher), label


def test_the_shadow_moves_with_the_scrolling_and_the_first_column_stays(page):
    resize(page, 1400)
    until(lambda: frame_of(page, SUMMARY)["shade"] == [1, 1])
    assert frame_of(page, SUMMARY)["said"] == ["right", "below"]
    position = lambda: page.execute_script(  # noqa: E731
        """const box = (e) => e.getBoundingClientRect().left;
        const row = document.querySelector("#summary-table tbody tr");
        return [box(row.cells[0]), box(row.cells[1])]"""
    )
    name, value = position()
    scroll_to(page, SUMMARY, 150)
    assert frame_of(page, SUMMARY)["said"] == ["left", "right", "below"]
    assert position() == [name, value - 150]
    edge = (
        "return Number(getComputedStyle(document.querySelector('#summary-table td, #summary-table th'), "
        "'::after').opacity)"
    )
    until(lambda: page.execute_script(edge) == 1)
    scroll_to(page, SUMMARY, 10_000)
    frame = frame_of(page, SUMMARY)
    assert frame["said"] == ["left", "below"] and abs(frame["right"]) < 1
    until(lambda: frame_of(page, SUMMARY)["shade"] == [0, 1])


def test_the_head_stays_above_the_rows(page):
    resize(page, 1400)
    tops = page.execute_async_script(
        """const scroll = document.querySelector("#summary-table").closest(".scroll"), done = arguments[0];
        const head = scroll.querySelector("thead th");
        const top = () => head.getBoundingClientRect().top - scroll.getBoundingClientRect().top;
        const before = top();
        scroll.scrollTop = 700;
        setTimeout(() => done([before, top(), scroll.scrollTop, scroll.clientHeight < innerHeight]), 100)"""
    )
    assert tops == [0, 0, 700, True]


def test_the_keyboard_reaches_and_scrolls_a_frame(page):
    resize(page, 1400)
    page.execute_script("document.querySelector('.contents a:last-child').focus()")
    page.switch_to.active_element.send_keys(Keys.TAB)
    focused = page.switch_to.active_element
    assert focused.get_attribute("aria-label") == "Summary table"
    for _ in range(3):
        focused.send_keys(Keys.ARROW_RIGHT)
    until(lambda: frame_of(page, SUMMARY)["left"] > 60)
    places = [-1]

    def rests() -> bool:  # a key that comes while the frame still glides may be lost
        places.append(frame_of(page, SUMMARY)["left"])
        return places[-1] == places[-2]

    until(rests)
    focused.send_keys(Keys.END)
    until(lambda: page.execute_script("return document.activeElement.scrollTop") > 500)
    # The next stops are the headings of the columns; none of them lies under the fixed column.
    for _ in range(8):
        page.switch_to.active_element.send_keys(Keys.TAB)
        clear = page.execute_script(
            """const box = document.activeElement.getBoundingClientRect(), inner = document.activeElement.closest("th");
            const seen = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
            return inner !== null && inner.contains(seen)"""
        )
        assert clear, page.switch_to.active_element.text


@pytest.mark.parametrize("width", [390, 1400])
def test_names_stay_on_one_line_and_keep_their_ends(page, width):
    resize(page, width)
    click(page, "#reset")
    heights = page.execute_script(
        """const line = (e) => parseFloat(getComputedStyle(e).lineHeight);
        const names = [...document.querySelectorAll("#sample-table .id, #summary-table .id")];
        return names.map((e) => e.getBoundingClientRect().height / line(e))"""
    )
    assert heights and max(heights) < 1.5
    assert LONG_ID.format(5) in texts(page, "#sample-table .open")  # the whole name is there for copies and readers
    first, room = page.execute_script(
        """const cell = document.querySelector("#sample-table tbody th"), id = cell.querySelector(".id");
        const range = document.createRange();
        range.selectNodeContents(id.lastChild);
        const frame = cell.closest(".scroll").getBoundingClientRect(), box = cell.getBoundingClientRect();
        return [range.getBoundingClientRect().right < box.right, box.width / frame.width]"""
    )
    assert first and room < 0.6  # its end is seen, and the values have room beside it


def test_headings_break_between_words_only(page):
    resize(page, 1400)
    pieces = page.execute_script(
        """const words = [...document.querySelectorAll("#summary-table .metric .word")];
        return words.map((e) => [e.textContent, e.getClientRects().length])"""
    )
    assert {lines for _, lines in pieces} == {1}
    assert {"bitrate", "quality_", "number_", "18"} <= {text for text, _ in pieces}


def test_a_table_of_some_systems_is_as_tall_as_its_rows(browser, tmp_path):
    page = open_page(browser, written(tmp_path, 40))
    resize(page, 1400, 900)
    heights = page.execute_script(
        """const table = document.querySelector("#summary-table"), scroll = table.closest(".scroll");
        return [scroll.clientHeight, scroll.scrollHeight, table.offsetHeight, innerHeight]"""
    )
    assert heights[0] == heights[1] == heights[2] > 2 * heights[3]
    assert frame_of(page, SUMMARY)["said"] == ["right"]
