"""Results by the values of a column, on the page: every table is there without the script, and the script shows one of
them.
"""

from __future__ import annotations

import re

import pytest

from codec_bench.report.breakdown.rows import MOST_ROWS, WITHOUT, break_down, columns_of
from codec_bench.report.page import write_page
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import MetricSummary, Subset

SYSTEMS = ["unprocessed", "opus-12k", "mp3-24k"]
METRICS = ["bitrate", "wer[pocketsphinx]", "stoi"]


@pytest.fixture(scope="module")
def run(make_run):
    """Three systems with two failed items, and one speaker whose name is hostile."""
    return make_run("broken down", systems=SYSTEMS, metrics=METRICS, audio=False)


@pytest.fixture(scope="module")
def path(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page([run], path, summaries=[summarise(run, "speaker,duration")])
    return path


def entry(value, n=3, failed=0, note=None, ends=None):
    return Subset(value, ends, note, n, failed)


def broken_down(column, parts):
    return MetricSummary(subsets={column: parts})


def test_rows_state_what_the_summary_says():
    parts = {"a\u202eb": entry(0.5, ends=[0.4, 0.6]), "": entry(None, 0, 2, "there is no value")}
    entries = [
        broken_down("room", parts),
        None,
        broken_down("room", {"a\u202eb": entry(0.25, 2, 1, "few", [0.2, 0.3])}),
    ]
    assert columns_of(entries) == ["room"]
    result = break_down("room", entries, 10.0)
    assert [(row.name, row.samples) for row in result.rows] == [("a�b", 3), (WITHOUT, 2)]
    first, missing, last = result.rows[0].cells
    assert (first.value, first.spread, first.n) == ("5.00", "±1.00", 3) and missing is None
    assert (last.value, last.spread, last.n, last.failed) == ("2.50", "±0.50*", 2, 1)
    assert result.rows[1].cells[0].value == "–" and result.rows[1].cells[2] is None
    assert result.notes == ["* interval (a�b): few"], "a group without any value needs no note"


def test_a_long_column_is_cut_and_says_so():
    parts = {f"spk{n:03d}": entry(0.5, 1, note="one unit") for n in range(MOST_ROWS + 7)}
    result = break_down("speaker", [broken_down("speaker", parts)], 1.0)
    assert (len(result.rows), result.hidden_rows) == (MOST_ROWS, 7)
    assert result.notes == ["interval missing: one unit"]


def test_every_table_is_on_the_page_without_the_script(path, run):
    text = path.read_text("utf-8")
    titles = re.findall(r'data-breakdown="(\w+)" data-metric="\d+" data-title="([^"]+)"', text)
    assert titles == [(column, metric) for column in ("speaker", "duration") for metric in METRICS]
    assert '<div class="controls" id="breakdown-choice" hidden>' in text
    assert "&lt;/script&gt;&lt;img" in text and "<img src=x" not in text
    held = summarise(run, "duration").as_dict()["systems"]["opus-12k"]["metrics"]["stoi"]["subsets"]["duration"][
        "under 2 s"
    ]
    table = text[text.index('data-title="stoi"', text.index('data-breakdown="duration"')) :]
    assert f'<span class="value">{held["value"]:.3f}</span>' in table[: table.index("</table>")]


def test_a_page_without_a_breakdown_has_no_such_section(run, tmp_path):
    write_page([run], tmp_path / "plain.html")
    text = (tmp_path / "plain.html").read_text("utf-8")
    assert 'id="breakdown"' not in text and 'href="#breakdown"' not in text


def test_one_table_is_shown_at_a_time(browser, path):
    browser.get_log("browser")
    browser.get(path.as_uri())
    shown = (
        "return [...document.querySelectorAll('[data-breakdown]')].filter((e) => !e.hidden)"
        ".map((e) => [e.dataset.breakdown, e.dataset.title])"
    )
    pick = (
        "const e = document.getElementById(arguments[0]); e.value = [...e.options].find((o) => o.text === "
        "arguments[1]).value;"
        "e.dispatchEvent(new Event('change'))"
    )
    # The script has run when the page has loaded. The bitrate is not what one looks for first.
    assert browser.execute_script(shown) == [["speaker", "wer[pocketsphinx]"]]
    browser.execute_script(pick, "breakdown-metric", "stoi")
    assert browser.execute_script(shown) == [["speaker", "stoi"]]
    browser.execute_script(pick, "breakdown-column", "duration")
    assert browser.execute_script(shown) == [["duration", "stoi"]], "the metric stays"
    rows = browser.execute_script(
        "return [...document.querySelectorAll('[data-breakdown]')].find((e) => !e.hidden).querySelectorAll('tbody "
        "tr').length"
    )
    assert rows == 2
    frames = "return [...document.querySelectorAll('#breakdown .scroll')].map((e) => e.scrollHeight - e.clientHeight)"
    assert max(browser.execute_script(frames)) <= 0, "a short table needs no bar to scroll it down"
    assert browser.get_log("browser") == []
