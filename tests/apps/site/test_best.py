"""Who is marked on a site: the best over one run and over several, suspects, and systems that failed on everything."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compared_runs import FINDING, SUSPECT, recorded
from page_in_browser import complaints, go, open_page, texts

from codec_bench.apps.site.api import site
from codec_bench.apps.site.folder import SiteFolder
from codec_bench.audio.level_checks import SILENT_ESTIMATE

GOOD = np.linspace(0.5, 0.9, 19)
RATES = {"silent": 1.0, "side": 2.0, "few": 1.0, "a": 6.0, "b": 9.0, "c": 6.0, "d": 9.0}


def two_runs(tmp_path):
    first = recorded(tmp_path / "first", {"side": GOOD + 0.3, "a": GOOD, "b": GOOD - 0.1}, checks=SUSPECT, kbps=RATES)
    values = {
        "few": [0.99, 0.98, *[None] * 17],
        "c": GOOD + 0.1,
        "d": GOOD + 0.1 + 0.001 * np.cos(np.arange(19)),
        "gone": [None] * 19,
    }
    return first, recorded(tmp_path / "second", values, kbps=RATES)


def marked(folder, mark="best") -> dict[str, list[str]]:
    (board,) = (folder.read_data(f"boards/{board['key']}") for board in folder.read_data("index")["boards"])
    names = [column["name"] for column in board["columns"]]
    return {row["system"]: [names[c] for c in row.get(mark, ())] for row in board["rows"]}


def test_the_best_of_one_run_and_of_several(tmp_path):
    first, second = two_runs(tmp_path)
    site([first.folder], out=tmp_path / "site")
    assert marked(SiteFolder(tmp_path / "site")) == {"side": [], "a": ["m"], "b": []}
    site([second.folder], out=tmp_path / "site")
    assert marked(SiteFolder(tmp_path / "site")) == {
        "side": [],
        "a": [],
        "b": [],
        "few": [],
        "c": [],
        "d": ["m"],
        "gone": [],
    }


def test_what_is_not_distinguishable_from_the_best_is_marked_over_one_run_and_several(tmp_path):
    near = GOOD + 0.1 + 0.01 * np.cos(np.arange(19))
    one = recorded(tmp_path / "one", {"a": GOOD, "c": GOOD + 0.1, "d": near}, kbps=RATES)
    site([one.folder], out=tmp_path / "of_one")
    two = [
        recorded(tmp_path / "two", {"a": GOOD, "c": GOOD + 0.1}, kbps=RATES),
        recorded(tmp_path / "three", {"d": near}, kbps=RATES),
    ]
    site([run.folder for run in two], out=tmp_path / "of_two")
    for built in ("of_one", "of_two"):
        best, alike = (marked(SiteFolder(tmp_path / built), mark) for mark in ("best", "alike"))
        assert best == {"a": [], "c": [], "d": ["m"]} and alike == {"a": [], "c": ["m"], "d": []}


def test_a_system_whose_sound_is_no_speech_is_never_the_best(tmp_path):
    """In a run of several systems, and in one of its own, which is set beside others here alone."""
    silent = {"silent": (19, SILENT_ESTIMATE)}
    first = recorded(tmp_path / "first", {"silent": GOOD + 0.3, "a": GOOD, "b": GOOD - 0.1}, flags=silent, kbps=RATES)
    site([first.folder], out=tmp_path / "one")
    assert marked(SiteFolder(tmp_path / "one")) == {"silent": [], "a": ["m"], "b": []}
    alone = recorded(tmp_path / "alone", {"silent": GOOD + 0.3}, flags=silent, kbps=RATES)
    others = recorded(tmp_path / "others", {"a": GOOD, "b": GOOD - 0.1}, kbps=RATES)
    site([alone.folder, others.folder], out=tmp_path / "two")
    assert marked(SiteFolder(tmp_path / "two")) == {"silent": [], "a": ["m"], "b": []}


def test_many_systems_without_numbers_do_not_fill_the_first_page(tmp_path, browser):
    run = recorded(tmp_path / "run", {"a": GOOD, **{f"gone{n:02d}": [None] * 19 for n in range(30)}}, kbps=RATES)
    open_page(browser, site([run.folder], out=tmp_path / "site").folder / "index.html")
    text = texts(browser, ".banner li")
    assert len(text) == 13 and text[-1] == "18 more systems failed on every item: see the runs."


def test_the_pages_name_suspects_and_systems_without_numbers(tmp_path, browser):
    first, second = two_runs(tmp_path)
    built = site([first.folder, second.folder], out=tmp_path / "site")
    open_page(browser, built.folder / "index.html")
    assert texts(browser, ".banner li") == ["gone failed on all 19 items of second, so it has no numbers."]
    states = {"second": "finished; gone failed on every item", "first": "finished"}
    result = browser.execute_script(
        "return [...document.querySelectorAll('tr')].map((tr) => [...tr.children].map((cell) => cell.innerText))"
    )
    assert {row[0]: row[3] for row in result if row[0] in states} == states
    (key,) = (board["key"] for board in SiteFolder(built.folder).read_data("index")["boards"])
    go(browser, f"#/board/{key}")
    order = [name.split("\n")[0] for name in texts(browser, "#board-table tbody th")]
    opens = zip(order, ("side", "few", "d", "c", "a", "b"))
    assert all(name.startswith(begin) for name, begin in opens), "it opens in the order of its only metric"
    assert browser.execute_script(
        "return document.querySelector('#board-table th[aria-sort=descending]').innerText"
    ).startswith("m")
    assert [name.split("\n")[0] for name in texts(browser, "tr:has(td.best) th")] == ["d"]
    assert any("suspect: side information" in name for name in texts(browser, "#board-table tbody th"))
    assert f"side is suspect: side information is suspect: {FINDING['found']}" in texts(browser, ".remarks li")
    # Both are cheaper than the others and have better values, and yet the front begins with the cheapest of the others.
    x = {
        label.split(",")[0]: at
        for label, at in browser.execute_script(
            "return [...document.querySelectorAll('#pareto [role=img]')].map((g) => [g.ariaLabel,"
            " Number(g.querySelector('.point').getAttribute('transform').match(/translate\\(([\\d.]+)/)[1])])"
        )
    }
    front = browser.execute_script("return document.querySelector('#pareto path.front').getAttribute('d')")
    begins = float(re.match(r"M([\d.]+)", front)[1])
    assert x["few"] < x["side (suspect)"] < begins == pytest.approx(x["c"], abs=0.01)
    # Nor do they take a place: the better ones of both runs are the first and the second of four.
    position = (
        "return [...document.querySelectorAll('main tbody tr')].find((tr) => "
        "tr.innerText.includes('m/1')).cells[3].innerText"
    )
    places = {}
    for name in ("d", "few", "side"):
        go(browser, f"#/system/{name}")
        places[name] = browser.execute_script(position)
    assert places == {"d": "1 of 4", "few": "–", "side": "–"}
    assert "compared with no other" in texts(browser, ".banner")[0]
    runs = {row["system"]: row["run"] for row in SiteFolder(built.folder).read_data(f"boards/{key}")["rows"]}
    go(browser, f"#/compare/{key}?a={runs['d']}:d&b={runs['side']}:side")
    assert any("neither is the better one" in text for text in texts(browser, ".banner")) and "–" in texts(
        browser, "td"
    )
    assert complaints(browser) == []
