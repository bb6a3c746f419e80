"""A site in a real browser, opened from disk and over HTTP: it shows the record's numbers, plays, and can be used with
the keyboard.
"""

from __future__ import annotations

import json
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from page_in_browser import click, complaints, go, open_page, resize, rows, texts, until

from codec_bench.api.compare import compare
from codec_bench.apps.site.api import site
from codec_bench.apps.site.folder import SiteFolder

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
METRICS = ("bitrate", "wer[pocketsphinx]", "stoi", "pesq_wb")


@pytest.fixture(scope="module")
def runs(make_run):
    output = make_run(
        "first <b>run",
        samples=9,
        systems=("unprocessed", "opus-6k", "opus-12k", "mp3-24k"),
        metrics=METRICS,
        longer_s=4.0,
    )
    return [
        output,
        make_run(
            "second", samples=9, systems=("g722", "opus-12k"), audio=False, metrics=("bitrate", "stoi"), hostile=True
        ),
    ]


@pytest.fixture(scope="module")
def build(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("site #1 %41") / "a site"
    site([run.folder for run in runs], out=out, title="Voices <i>here</i>")
    return SiteFolder(out)


@pytest.fixture(scope="module")
def server(build):
    """The site behind a plain server of files, in a folder below its root."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(build.path.parent))) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}/a%20site/index.html"
        serving.shutdown()


@pytest.fixture
def page(browser, build):
    """The first page, opened from disk; afterwards nothing may have gone wrong on it."""
    yield open_page(browser, build.path / "index.html")
    assert complaints(browser) == []


def board_key(build) -> str:
    (board,) = build.read_data("index")["boards"]
    return board["key"]


VIEWS = (
    "",
    "published/codecs",
    "board/{}",
    "samples/{}",
    "compare/{}",
    "systems",
    "system/opus-12k",
    "metrics",
    "metric/stoi",
    "benchmarks",
    "runs",
    "checks",
)


UNNAMED = """
const named = (e) => (e.labels && e.labels.length) || e.getAttribute("aria-label") || e.textContent.trim();
const controls = [...document.querySelectorAll("input, select, button, a, [role=img]")];
return controls.filter((e) => !named(e)).map((e) => e.outerHTML);
"""


def test_every_view_opens_from_disk_names_its_controls_and_loads_nothing_else(page, build):
    key = board_key(build)
    for view in VIEWS:
        go(page, f"#/{view.format(key)}")
        (heading,) = texts(page, "main h1")
        assert heading and "cannot be shown" not in heading, view
        assert page.title.endswith("– Voices <i>here</i>")
        assert page.execute_script(UNNAMED) == [] and len(texts(page, "h1")) == 1, view
    requests = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"]
    assert urls and all(url.startswith(build.path.as_uri()) or url == "data:," for url in urls)


def test_the_first_page_draws_the_front_of_the_newest_leaderboard_with_bitrates(page, build):
    key = build.read_data("index")["front"]
    assert key == board_key(build)
    names = set(texts(page, "main figure svg text"))
    assert {"opus-6k", "opus-12k"} <= names
    click(page, "main figure ~ p a, main div + p a")
    until(lambda: f"board/{key}" in page.execute_script("return location.hash"))


def test_it_is_the_same_over_http(browser, build, server):
    key = board_key(build)
    address = f"#/board/{key}?sort=2&down=1&cols=0.2&q=opus&runs=all"
    shown = []
    for start in (build.path.joinpath("index.html").as_uri(), server):
        browser.get("about:blank")
        browser.get(start + address)
        until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
        shown.append(rows(browser, "#board-table"))
    assert shown[0] == shown[1] and len(shown[0]) == 3  # opus-6k, and opus-12k of both runs
    assert [len(row) for row in shown[0]] == [3, 3, 3]
    assert complaints(browser) == []


def test_a_leaderboard_is_sorted_filtered_and_remembered_in_the_address(page, build):
    go(page, f"#/board/{board_key(build)}")
    board = build.read_data(f"boards/{board_key(build)}")
    c = [column["name"] for column in board["columns"]].index("stoi")
    click(page, f'[data-sort="{c}"] button')
    order = [row[c + 1].split("\n")[0] for row in rows(page, "#board-table")]
    assert order == sorted(order, reverse=True) and len(order) == 5
    first = rows(page, "#board-table")
    page.find_element("css selector", "main input[type=search]").send_keys("opus")
    until(lambda: len(rows(page, "#board-table")) == 2)
    page.find_element("css selector", "#most-kbps").send_keys("9")
    until(lambda: [row[0] for row in rows(page, "#board-table")] == ["opus-6k"])
    page.find_element("css selector", "#most-kbps").send_keys("9")
    click(page, "details.columns summary")
    click(page, "details.columns label:nth-of-type(2) input")
    assert len(texts(page, "#board-table thead th")) == len(board["columns"])
    address = page.execute_script("return location.href")
    page.get("about:blank")
    page.get(address)
    until(lambda: page.execute_script("return document.documentElement.dataset.ready"))
    assert len(rows(page, "#board-table")) == 2 and page.execute_script(
        "return document.querySelector('[aria-sort=descending]').dataset.sort"
    ) == str(c)
    assert {row[0] for row in rows(page, "#board-table")} <= {row[0] for row in first}


def test_a_number_leads_to_its_run_protocol_and_command(page, build, runs):
    go(page, f"#/board/{board_key(build)}")
    click(page, '#board-table tr[data-row$=":opus-6k"] a.value')
    until(lambda: texts(page, "section.asked"))
    messages = page.execute_script("return document.querySelector('section.asked').innerText")
    assert messages.startswith("bitrate of opus-6k: ") and "bitrate/payload-1" in messages and "run.json" in messages
    assert texts(page, "main h1") == ["first <b>run"]


def test_two_systems_are_compared_as_the_command_compares_them(page, build, runs):
    key = board_key(build)
    of = {entry["name"]: entry["key"] for entry in build.entries()}
    go(page, f"#/compare/{key}?a={of['first <b>run']}:opus-6k&b={of['first <b>run']}:opus-12k")
    shown = {row[0]: row for row in rows(page)}
    ((pair,),) = ([p for p in compare(runs=[runs[0]], systems="opus-6k,opus-12k")],)
    board = build.read_data(f"boards/{key}")
    columns = {column["name"]: column for column in board["columns"]}
    assert shown.keys() == {c.metric for c in pair.comparisons} == set(METRICS)
    for c in pair.comparisons:
        column = columns[c.metric]
        difference = f"{c.test.difference * column['factor']:.{min(4, column['places'] + 1)}f}".replace("-", "−")
        assert shown[c.metric][3] == f"{difference}\n{c.test.units} independent units"
        assert shown[c.metric][4] == f"{c.wins} / {c.ties} / {c.losses}" and shown[c.metric][5] == str(c.pairs)
    click(page, '[data-metric]:not([aria-pressed="true"])')
    until(lambda: texts(page, "main h2")[-1].endswith(page.execute_script("return document.activeElement.textContent")))


def test_groups_and_the_furthest_samples_of_a_comparison_are_the_records(page, build, runs):
    run, key = runs[0], board_key(build)
    of = next(entry["key"] for entry in build.entries() if entry["name"] == "first <b>run")
    c = [column["name"] for column in build.read_data(f"boards/{key}")["columns"]].index("stoi")
    go(page, f"#/compare/{key}?a={of}:opus-6k&b={of}:opus-12k&metric={c}")
    page.execute_script("document.querySelectorAll('main details').forEach((d) => (d.open = true))")
    values = {
        name: {score.id: score.value for score in run.scores(name, "stoi") if score.value is not None}
        for name in ("opus-6k", "opus-12k")
    }
    apart = {id: values["opus-6k"][id] - values["opus-12k"][id] for id in values["opus-6k"]}
    speakers = {sample.id: sample.speaker for sample in run.samples()}
    groups = {row[0]: row for row in rows(page, "[aria-label='By speaker'] table")}
    assert groups.keys() == set(speakers.values())
    for speaker, row in groups.items():
        members = [by for id, by in apart.items() if speakers[id] == speaker]
        shown = row[3].split("\n")[0].replace("−", "-")
        assert float(shown) == pytest.approx(sum(members) / len(members), abs=1e-3) and row[4] == str(len(members))
        assert "1 independent unit" in row[3]
    for role, sign in (("A", 1), ("B", -1)):
        expected = sorted((sign * by for by in apart.values() if sign * by > 0), reverse=True)[:8]
        label = f"Samples on which {role} is better"
        results = [row[3] for row in rows(page, f"[aria-label='{label}'] table")] if expected else []
        assert [abs(float(text.replace("−", "-"))) for text in results] == pytest.approx(expected, abs=1e-3)
    if button := page.find_elements("css selector", "[aria-label='Samples on which B is better'] .link"):
        button[0].send_keys(Keys.ENTER)
        until(lambda: page.execute_script("return document.getElementById('detail').open"))
        assert len(page.find_elements("css selector", "#detail audio")) == 3  # the reference and both


def test_systems_of_two_runs_are_compared_as_the_command_compares_them(page, build, runs):
    of = {entry["name"]: entry["key"] for entry in build.entries()}
    board = build.read_data(f"boards/{board_key(build)}")
    columns = {column["name"]: column for column in board["columns"]}
    go(page, f"#/compare/{board_key(build)}?a={of['first <b>run']}:opus-6k&b={of['second']}:g722")
    shown = {row[0]: row for row in rows(page)}
    (pair,) = compare(runs=runs, systems="opus-6k,g722")
    assert shown.keys() == {c.metric for c in pair.comparisons} == {"bitrate", "stoi"}
    for c in pair.comparisons:
        digits = 10.0 ** -min(4, columns[c.metric]["places"] + 1)
        result = float(shown[c.metric][3].split("\n")[0].replace("−", "-"))
        assert result == pytest.approx(columns[c.metric]["factor"] * c.test.difference, abs=0.51 * digits)


@pytest.mark.parametrize("variant", ["disk", "server that sends whole files only"])
def test_sounds_share_one_clock(browser, build, server, variant):
    key = next(entry["key"] for entry in build.entries() if entry["name"] == "first <b>run")
    chosen = "|".join(f"{key}:{name}" for name in ("opus-6k", "opus-12k", "mp3-24k"))
    open_page(browser, build.path / "index.html")
    if variant != "disk":
        browser.get("about:blank")
        browser.get(f"{server}#/samples/{board_key(build)}")
        until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
    go(browser, f"#/samples/{board_key(build)}?q=utt_0001&systems={chosen}")
    browser.find_element("css selector", "#samples-table .link").send_keys(Keys.ENTER)
    until(lambda: browser.execute_script("return document.getElementById('detail').open"))
    state = (
        "return [...document.querySelectorAll('#detail audio')].map((a) => [a.paused, a.muted, a.currentTime, "
        "a.duration])"
    )
    until(lambda: all(duration and duration > 1 for *_, duration in browser.execute_script(state)))
    tracks = len(browser.execute_script(state))
    assert tracks == 4  # the reference and three systems
    assert [muted for _, muted, *_ in browser.execute_script(state)] == [False, True, True, True]
    slider = browser.find_element("css selector", "#detail input[type=range]")
    assert slider.is_enabled() == (variant == "disk")
    click(browser, "#detail .play")

    def together():
        times = [t for *_, t, _ in browser.execute_script(state)]
        return min(times) > 0.2 and max(times) - min(times) < 0.06

    until(together)
    browser.switch_to.active_element.send_keys("c")
    now = browser.execute_script(state)
    assert [muted for _, muted, *_ in now] == [True, True, False, True] and not any(paused for paused, *_ in now)
    until(together)
    click(browser, "#detail .play")  # pauses, and goes on from there
    held = [t for *_, t, _ in browser.execute_script(state)]
    click(browser, "#detail .play")
    until(lambda: min(t for *_, t, _ in browser.execute_script(state)) > min(held))
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(lambda: not browser.execute_script("return document.getElementById('detail').open"))
    until(lambda: browser.execute_script("return [...document.querySelectorAll('audio')].every((a) => a.paused)"))
    assert complaints(browser) == []


def test_hostile_text_is_shown_and_does_nothing(page, build, runs):
    hostile = runs[0].meta["fingerprint"]["note"]
    go(page, f"#/samples/{board_key(build)}?q=%3C%2Fscript")
    assert hostile.split("\u202e")[0] in texts(page, "#samples-table .link")[0]
    click(page, "#samples-table .link")
    until(lambda: page.execute_script("return document.getElementById('detail').open"))
    assert hostile in page.execute_script("return document.getElementById('detail-title').textContent")
    assert page.execute_script("return document.title") != "owned" and not texts(page, "main img, #detail img")
    for address in (
        "#/system/%3Cimg%20src=x%20onerror=alert(1)%3E",
        "#/board/__proto__",
        "#/%",
        "#/run/../../x",
        "#/metric/constructor",
        "#/published/toString",
    ):
        go(page, address)
        assert texts(page, "main h1")[0] in ("This page cannot be shown", "There is no such page"), address


def test_a_point_of_ones_own_stands_among_the_others(page, build):
    go(page, f"#/board/{board_key(build)}?plot=2")
    fields = [page.find_element("css selector", index) for index in ("#own-rate", "#own-value")]
    fields[0].send_keys("5")
    fields[1].send_keys("0.999")
    lead = "return document.querySelector('main p[role=status].lead').textContent"
    text = lambda: page.execute_script(lead)  # noqa: E731
    until(lambda: "on the front" in text())
    assert len(page.find_elements("css selector", "#pareto .own")) == 1 and "own=5%2C0.999" in page.execute_script(
        "return location.hash"
    )
    fields[1].clear()
    fields[1].send_keys("0.1")
    fields[0].clear()
    fields[0].send_keys("30")
    until(lambda: "as good or better" in text())


def test_the_history_of_a_system_is_drawn(page):
    go(page, "#/system/opus-12k")
    assert "History" in texts(page, "main h3")
    until(lambda: len(page.find_elements("css selector", ".plot .point")) == 2)


def test_it_is_used_with_the_keyboard(page, build):
    go(page, f"#/board/{board_key(build)}")
    body = page.find_element("css selector", "body")
    body.send_keys(Keys.TAB)
    expected = {"INPUT search", "SUMMARY Columns", "A opus-6k", "INPUT checkbox"}
    for _ in range(60):
        expected.discard(
            page.execute_script(
                "const e = document.activeElement; return `${e.tagName} ${e.textContent || e.type}`",
            )
        )
        if not expected:
            break
        page.switch_to.active_element.send_keys(Keys.TAB)
    assert not expected
    boxes = page.find_elements("css selector", "#board-table input[type=checkbox]")
    for box in boxes[:2]:
        box.send_keys(Keys.SPACE)
    page.find_element("xpath", "//button[text()='Compare two']").send_keys(Keys.ENTER)
    until(lambda: texts(page, "main h1") == ["Compare two systems"])
    assert page.execute_script("return document.activeElement.id") == "main"  # a new view begins at its beginning


@pytest.mark.parametrize("width", [390, 1400, 2560])
def test_nothing_is_wider_than_the_screen(page, build, width):
    resize(page, width, scheme="dark")
    for view in VIEWS:
        go(page, f"#/{view.format(board_key(build))}")
        assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth"), view


@pytest.mark.install
def test_axe_finds_nothing(page, build, tmp_path):
    """Every view in light and dark, by axe-core from npm."""
    subprocess.run(["npm", "pack", "axe-core@4.14.1", "--silent"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["tar", "xzf", "axe-core-4.14.1.tgz"], cwd=tmp_path, check=True)
    axe = (tmp_path / "package" / "axe.min.js").read_text("utf-8")
    for scheme in ("light", "dark"):
        resize(page, 1400, scheme=scheme)
        for view in (*VIEWS, "run/{}?system=opus-12k&metric=stoi"):
            go(page, f"#/{view.format(build.keys()[0] if view.startswith('run/') else board_key(build))}")
            page.execute_script("document.querySelector('#samples-table .link')?.click()")
            page.execute_script(axe)
            result = page.execute_async_script(
                "axe.run(document, { preload: false }).then((r) => arguments[0](r.violations.map((v) => [v.id, "
                "v.nodes.map((n) => n.html)])))"
            )
            assert result == [], (scheme, view)
