"""What others published, on a site: leaderboards whose own cells lead to their runs, codecs in tables of their own,
pages of benchmarks.
"""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from page_in_browser import click, complaints, go, open_page, resize, rows, texts, until

from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.leaderboards.codecs import codec_board
from codec_bench.apps.site.api import site
from codec_bench.apps.site.folder import SiteFolder
from codec_bench.apps.site.published import published_board
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

MODELS = ("model", "other <i>model")


@pytest.fixture(scope="module")
def codec_site(make_run, tmp_path_factory):
    run = make_run("codecs", samples=4, audio=False, hostile=False, metrics=["bitrate", "stoi"], systems=["g722"])
    out = tmp_path_factory.mktemp("codecs") / "out"
    site([run.folder], out=out)
    return SiteFolder(out)


@pytest.fixture(scope="module")
def send(tmp_path_factory):
    """A site of two models that answered two benchmarks of a published leaderboard."""
    path = tmp_path_factory.mktemp("asked")
    columns = leaderboard("ultraeval-understanding").columns[-2:]
    for column in columns:
        for n, name in enumerate(MODELS):
            facts = {
                "title": f"Title of {column.benchmark}", "summary": "What it <b>asks</b>.", "category": "SER",
                "language": "en", "size": 1200,
                "primary": column.metric, "licence": "CC-BY-4.0", "paper": "https://arxiv.org/abs/0000.00000",
                "published": [{"model": "theirs", "metric": column.metric, "value": 41.25, "source": "the paper"}],
            }  # fmt: skip
            write_answered(path / "runs" / column.benchmark / str(n), name, column, (0.25, 0.75)[n], facts)
    site([path / "runs"], out=path / "out", title="Models")
    return SiteFolder(path / "out")


def write_answered(folder, system, column, value, facts):
    metrics = {column.metric: {"protocol": "p", "unit": "", "higher_is_better": True, "aggregate": "mean"}}
    with closing(RunWriter(folder, {"asked": str(folder)})) as writer:
        writer.begin({system: {}}, metrics, [Sample(f"q{n}", None, "question") for n in range(9)])
        spread = [value + 0.01 * n for n in range(-4, 4)]
        writer.write(
            [
                (n, ItemRecord(system, f"q{n}", "ok", None, {column.metric: Score.ok(v, "p")}))
                for n, v in enumerate(spread)
            ]
            + [(8, ItemRecord(system, "q8", "ok", None, {column.metric: Score.failed("down", "p")}))]
        )
        writer.set_meta(
            benchmark={"name": column.benchmark, **facts}, config={"command": "run"}, state="finished", versions={},
            machine={},
            started="2026-11-20T18:40:00+00:00", finished="2026-11-20T18:41:00+00:00",
        )  # fmt: skip


def test_a_leaderboard_of_one_metric_opens_ranked_by_it(browser, send):
    (key,) = (one["key"] for one in send.read_data("index")["boards"] if one["benchmark"] == "meld-emo")
    open_page(browser, send.path / "index.html")
    go(browser, f"#/board/{key}")
    assert [row[0] for row in rows(browser, "#board-table")] == ["other <i>model", "model"]
    assert texts(browser, "[aria-sort=descending]") and not texts(browser, "[aria-sort=ascending]")
    main = "document.querySelector('main')"
    assert browser.execute_script(f"return [...{main}.childNodes].every((node) => node.nodeType === 1)")
    address = browser.execute_script("return location.href")
    click(browser, '[data-sort="0"] button')  # ascending
    assert [row[0] for row in rows(browser, "#board-table")] == ["model", "other <i>model"]
    click(browser, '[data-sort="0"] button')  # the order of the runs
    unsorted = [row[0] for row in rows(browser, "#board-table")]
    assert not texts(browser, "[aria-sort=descending], [aria-sort=ascending]")
    browser.refresh()
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    assert [row[0] for row in rows(browser, "#board-table")] == unsorted
    click(browser, '[data-sort="0"] button')
    assert browser.execute_script("return location.href") == address
    assert complaints(browser) == []


def test_a_benchmark_has_a_page(browser, send):
    open_page(browser, send.path / "index.html")
    go(browser, "#/benchmarks")
    assert [row[:3] for row in rows(browser)] == [
        [f"Title of {name}", "What it <b>asks</b>.", "SER"] for name in ("covost2-zh-en", "meld-emo")
    ]
    click(browser, "main tbody tr:last-child a")
    until(lambda: texts(browser, "main h1") == ["Title of meld-emo"])
    messages = browser.execute_script("return document.querySelector('main').innerText")
    for text in (
        "meld-emo",
        "SER",
        "1,200",
        "CC-BY-4.0",
        "codec-bench show meld-emo",
        "https://arxiv.org/abs/0000.00000",
    ):
        assert text in messages
    assert rows(browser, "[aria-label='Published by others'] table")[0][::2] == ["theirs", "41.25"]
    click(browser, "main dl a[href*='#/board/']")
    until(lambda: texts(browser, "#board-table tbody th"))
    assert set(texts(browser, "#board-table tbody th")) == set(MODELS)
    assert complaints(browser) == []


def test_a_cell_of_a_published_leaderboard_leads_to_its_run(browser, send):
    open_page(browser, send.path / "index.html")
    resize(browser, 390)
    go(browser, "#/published/ultraeval-understanding")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert len(rows(browser)) == 14 and len(browser.find_elements("css selector", "main tbody td a")) == 4
    # The mirror holds a few questions of each benchmark.
    assert any("own, a part of a benchmark" in row[0] and "incomplete" in row[0] for row in rows(browser))
    remarks = texts(browser, "main .remarks li")
    assert any("no value for " in text for text in remarks)
    assert sum("1 of 9 items of " in text and " failed; the metric has no worst value" in text for text in remarks) == 4
    last = browser.find_elements("css selector", "main tbody td a")[-1]  # of the emotions, in per cent
    value = float(last.text)
    browser.execute_script("arguments[0].click()", last)
    until(lambda: texts(browser, "section.asked"))
    (shown_value,) = texts(browser, ".asked-value")
    assert float(shown_value.split(": ")[1]) * 100 == pytest.approx(value, abs=0.01)
    resize(browser, 1400)
    assert complaints(browser) == []


def test_a_published_leaderboard_is_searched_sorted_and_remembered_in_the_address(browser, send):
    open_page(browser, send.path / "index.html")
    go(browser, "#/published/ultraeval-understanding")
    board = send.read_data("published/ultraeval-understanding")
    at = [column["name"] for column in board["columns"]].index("tedlium")
    click(browser, f'[data-sort="{at + 1}"] button')  # the average comes first
    known = [float(row["cells"][at]) for row in board["rows"] if row["cells"][at] is not None]
    shown = [row[at + 2] for row in rows(browser, "#published-table")]
    assert (
        shown == [f"{value:.2f}" for value in sorted(known)] + ["–"] * 2
    )  # an error rate: the lowest first, own rows lack it
    browser.find_element("css selector", "main input[type=search]").send_keys("gemini")
    until(lambda: len(rows(browser, "#published-table")) == 4)
    click(browser, "details.columns summary")
    click(browser, "details.columns label:nth-of-type(1) input")
    address = browser.current_url
    browser.get("about:blank")
    browser.get(address)
    until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    again = rows(browser, "#published-table")
    assert [float(row[at + 1]) for row in again] == sorted(float(row[at + 1]) for row in again) and len(again[0]) == 14
    assert complaints(browser) == []


def test_published_codecs_are_shown_one_source_at_a_time(browser, codec_site):
    open_page(browser, codec_site.path / "index.html")
    key = codec_site.read_data("index")["boards"][0]["key"]
    go(browser, f"#/board/{key}")
    click(browser, "main .links a[href='#/published/codecs']")
    until(lambda: texts(browser, "main h1") == ["Published codecs"])
    payload = codec_site.read_data("published/codecs")
    choice = browser.find_element("css selector", "#codecs-of")
    for n, table in enumerate(payload["tables"]):
        browser.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", choice, str(n)
        )
        assert texts(browser, "main h2")[0] == table["data"]
        assert [row[0] for row in rows(browser)] == [row["system"] for row in table["rows"]]
        until(lambda: browser.find_elements("css selector", "#pareto .point"))
    browser.find_element("css selector", "#own-rate").send_keys("0.1")
    browser.find_element("css selector", "#own-value").send_keys("1")
    until(lambda: "own=0.1%2C1" in browser.current_url)
    assert f"of={len(payload['tables']) - 1}" in browser.current_url
    assert complaints(browser) == []


def test_published_codecs_stand_in_tables_of_their_own(codec_site):
    assert "codecs" in codec_site.read_data("index")["published"]
    payload = codec_site.read_data("published/codecs")
    tables = codec_board().tables
    held = {(one["source"], one["data"]): one for one in payload["tables"]}
    assert {source for source, _ in held} == {table.source for table in tables}
    seen = 0
    for table in tables:
        one = held[table.source, table.data]
        (c,) = [
            n
            for n, head in enumerate(one["columns"])
            if (head["name"], head["protocol"]) == (table.metric, table.protocol)
        ]
        rows = {row["system"]: row for row in one["rows"]}
        for point in table.points:
            row = rows[point.name]
            assert [row["cells"][0], row["cells"][c]] == [[point.costs["bitrate"]], [point.value]]
            assert (c in row["front"]) == point.on_front
            seen += 1
    assert seen == sum(1 for one in payload["tables"] for row in one["rows"] for cell in row["cells"][1:] if cell)
    assert not {"g722"} & {row["system"] for one in payload["tables"] for row in one["rows"]}


def test_a_cell_of_an_own_row_names_its_run(send):
    columns = leaderboard("ultraeval-understanding").columns
    keys = {(entry["benchmark"]["name"], *entry["systems"]): entry["key"] for entry in send.entries()}
    board = send.read_data("published/ultraeval-understanding")
    actual = [row for row in board["rows"] if not row["published"]]
    assert {row["name"] for row in actual} == {f"{model} (parts of the questions)" for model in MODELS}
    for row in actual:
        model = row["name"].removesuffix(" (parts of the questions)")
        linked = {c.name: [keys[c.benchmark, model], model, c.metric] for c in columns[-2:]}
        assert row["links"] == [linked.get(column.name) for column in columns]
    assert all(row["links"] == [] for row in board["rows"] if row["published"])


def test_a_published_leaderboard_says_how_much_to_trust_it(tmp_path):
    board = leaderboard("ultraeval-understanding", robustness=True, correlations=True)
    payload = json.loads(json.dumps(published_board(board, {})))
    assert len(payload["rows"]) == len(board.rows) and payload["trusted"]
    for row, messages, trust in zip(board.rows, payload["rows"], board.trust.robustness, strict=True):
        assert (
            messages["name"] == row.name
            and messages["rank"] == trust.rank
            and messages["average"] == (None if row.shown_average is None else str(row.shown_average))
        )
        assert messages["ranks"][0] == (
            None if trust.leave_one_benchmark_out is None else list(trust.leave_one_benchmark_out)
        )
    assert len(payload["like"]["pairs"]) == len(board.columns) * (len(board.columns) - 1) / 2
