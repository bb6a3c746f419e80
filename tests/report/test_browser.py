"""The page in a real browser, opened from disk: it works, shows what the record holds, and loads no other file."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from page_in_browser import choose, click, column_of, complaints, open_page, resize, texts, until

from codec_bench.report.page import write_page
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Audio, Sample, Score


@pytest.fixture(scope="module")
def path(demo_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report with spaces #1.html"
    write_page([demo_run], path)
    return path


@pytest.fixture
def page(browser, path):
    """The demo's page, freshly opened, with the logs empty; afterwards nothing may have gone wrong on it."""
    yield open_page(browser, path)
    assert complaints(browser) == []


def open_sample(browser, text):
    """Searches for a sample, opens its first row and waits until it is decoded and drawn."""
    search(browser, text)
    click(browser, "#sample-table .open")
    until(lambda: browser.execute_script("return document.getElementById('detail').dataset.ready"))


def search(browser, text):
    # The page waits 120 ms until the typing ends. A longer time that is set after it ends after it, however slow the
    # machine is.
    browser.execute_async_script(
        "const e = document.getElementById('by-text'); e.value = arguments[0]; e.dispatchEvent(new Event('input'));"
        "setTimeout(arguments[1], 150)",
        text,
    )


def test_it_opens_from_disk_without_a_word_and_asks_nobody(page, path):
    assert page.title.endswith("codec-bench")
    click(page, "#sample-table .open")
    until(lambda: page.execute_script("return document.getElementById('detail').dataset.ready"))
    requests = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    questions = [r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"]
    assert questions and set(questions) <= {path.as_uri(), "data:,"}


def test_hostile_text_is_shown_and_does_nothing(page, demo_run):
    hostile = demo_run.meta["fingerprint"]["note"]
    search(page, "</script>")
    assert hostile.replace("\u202e", "") in texts(page, "#sample-table .open")[0].replace("\u202e", "")
    open_sample(page, "</script>")
    assert hostile in page.execute_script("return document.getElementById('detail-title').textContent")
    assert page.execute_script("return document.images.length") == 0
    assert "owned" not in page.title
    open_sample_close(page)
    click(page, "#reset")
    choose(page, "#by-metric", column_of(page, "pesq_wb"))
    choose(page, "#by-status", "missing")
    search(page, "utt_0011")
    click(page, "#sample-table .open")
    assert any(hostile in text for text in texts(page, ".remarks li"))
    assert page.execute_script("return document.images.length") == 0


def open_sample_close(browser):
    click(browser, "#detail-close")
    until(lambda: browser.execute_script("return !document.getElementById('detail').open"))


def test_the_summary_sorts_by_mouse_and_by_keyboard(page, demo_run):
    from selenium.webdriver.common.keys import Keys

    summary = summarise(demo_run).as_dict()["systems"]
    order = lambda: [int(n) for n in page.execute_script(  # noqa: E731
        "return [...document.querySelectorAll('#summary-table tbody tr')].map((r) => r.dataset.system)"
    )]  # fmt: skip
    names = list(summary)
    values = lambda metric: [summary[names[n]]["metrics"][metric]["value"] for n in order()]  # noqa: E731
    head = lambda metric: f'#summary-table [data-sort="{column_of(page, metric)}"]'  # noqa: E731
    click(page, head("pesq_wb"))
    assert values("pesq_wb") == sorted(values("pesq_wb"), reverse=True)  # the best first
    click(page, head("pesq_wb"))
    assert values("pesq_wb") == sorted(values("pesq_wb"))
    page.find_element("css selector", head("wer[pocketsphinx]")).send_keys(Keys.ENTER)
    assert values("wer[pocketsphinx]") == sorted(values("wer[pocketsphinx]"))
    assert page.execute_script(
        "return [...document.querySelectorAll('#summary-table [aria-sort]')].map((e) => e.getAttribute('aria-sort'))"
    ) == ["ascending"]
    click(page, head("si_sdr"))
    assert values("si_sdr")[-1] is None  # items without a value come last in both orders
    click(page, head("si_sdr"))
    assert values("si_sdr")[-1] is None
    click(page, head("si_sdr"))
    assert order() == list(range(9))


def test_no_column_is_cut_on_paper(page):
    """Paper does not scroll: the last four of 13 metrics were missing on a printed page."""
    try:
        resize(page, 1047)  # A4, landscape
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        ends = page.execute_script(
            "return [...document.querySelectorAll('table')].map((e) => [e.id, e.getBoundingClientRect().right])"
        )
        clipped = (
            "return [...document.querySelectorAll('.scroll')].filter((e) => getComputedStyle(e).overflowX !== "
            "'visible').length"
        )
        assert len(ends) > 5 and [name for name, right in ends if right > 1048] == []
        assert page.execute_script(clipped) == 0
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_long_text_leaves_room_for_its_sample(browser, tmp_path):
    """It stood in the head, which stays in sight and took the whole screen of a phone; a long
    word widened the dialog.
    """
    text = "W" * 3000
    detail = {"hits": 0, "substitutions": 1, "deletions": 0, "insertions": 0, "reference": text, "hypothesis": "table"}
    score = Score.ok(1.0, "e", numerator=1.0, denominator=1.0, detail={**detail, "unit": "word"})
    writer = RunWriter(tmp_path / "run", {})
    facts = {"error": {"protocol": "e", "higher_is_better": False, "aggregate": "ratio"}}
    writer.begin({"mine": {}}, facts, [Sample("clip", None, text)])
    writer.write([(0, ItemRecord("mine", "clip", "ok", None, {"error": score}, duration_s=1.0))])
    writer.close()
    write_page([Run(tmp_path / "run")], tmp_path / "page.html")
    page = open_page(browser, tmp_path / "page.html")
    read = "const e = document.querySelector(arguments[0]); return [e.offsetHeight, e.scrollWidth - e.clientWidth]"
    for width in (390, 1400):
        resize(page, width)
        click(page, "#sample-table .open")
        assert page.execute_script(read, ".detail-head")[0] < 200, width
        assert page.execute_script(read, "#detail")[1] == 0, width
        assert text in texts(page, "#detail .detail-body")[0] and texts(page, ".words .pair del") == [text]
        open_sample_close(page)
    assert complaints(page) == []


def test_a_heading_explains_its_metric(page):
    c = column_of(page, "dnsmos_ovrl")
    page.execute_script(
        "const e = document.querySelector(arguments[0]); e.dispatchEvent(new PointerEvent('pointerenter', { "
        "pointerType: 'mouse' }))",
        f'#summary-table [data-sort="{c}"]',
    )
    text = texts(page, "#tip")[0]
    assert "What dnsmos_ovrl measures" in text and "dnsmos/speechmos" in text and "Higher is better" in text


def test_the_worst_cases_come_first(page, demo_run):
    data = page.execute_script(
        "const d = JSON.parse(document.getElementById('data').textContent); return [d.systems, d.samples]"
    )
    for metric in ("wer[pocketsphinx]", "stoi", "mel_distance"):
        choose(page, "#by-metric", column_of(page, metric))
        sign = 1 if demo_run.metrics[metric]["higher_is_better"] else -1
        values = {(s.system, s.id): sign * s.value for s in demo_run.scores(metric=metric) if s.status == "ok"}
        rows = page.execute_script(
            "return [...document.querySelectorAll('#sample-table tbody tr')].map((r) => r.dataset.row)"
        )
        shown = [(data[0][int(s)]["label"], data[1][int(n)][0]) for s, n in (row.split() for row in rows)]
        # Ties stand in any order: compare the values.
        assert [values[row] for row in shown] == pytest.approx(sorted(values.values())[:50], rel=1e-4), metric


def test_filters_agree_with_the_record(page, demo_run):
    count = lambda: int(texts(page, "#sample-count")[0].split()[0].replace(",", ""))  # noqa: E731
    assert count() == 9 * 30
    choose(page, "#by-system", list(demo_run.systems).index("g722"))
    assert count() == 30
    choose(page, "#by-metric", column_of(page, "stoi"))
    choose(page, "#by-status", "missing")
    assert count() == 2
    assert sorted(texts(page, "#sample-table .open")) == sorted(
        s.id for s in demo_run.scores("g722", "stoi") if s.status != "ok"
    )
    choose(page, "#by-system", -1)
    assert count() == 2 + 2  # and the two items of mp3-24k that failed
    choose(page, "#by-status", "trouble")
    bad = {(s.system, s.id) for s in demo_run.scores() if s.status != "ok"}
    assert count() == len(bad)
    choose(page, "#by-status", "noted")
    assert count() == 9
    choose(page, "#by-status", "sound")
    assert count() == 9 * 30 - 2
    click(page, "#reset")
    search(page, "UTT_0017")
    assert set(texts(page, "#sample-table .open")) == {"spk1/utt_0017"}
    word = next(s.text for s in demo_run.samples() if s.id == "spk1/utt_0017").split()[:2]
    search(page, " ".join(reversed(word)))
    assert "spk1/utt_0017" in texts(page, "#sample-table .open")
    search(page, "nobody said this")
    assert texts(page, "#sample-table tbody tr") == ["No row matches these filters."]


def test_pages_turn(page):
    first = texts(page, "#sample-table tbody tr")
    click(page, "#page-next")
    second = texts(page, "#sample-table tbody tr")
    assert len(first) == len(second) == 50 and not set(first) & set(second)
    for _ in range(4):
        click(page, "#page-next")
    assert len(texts(page, "#sample-table tbody tr")) == 270 - 250
    assert page.execute_script("return document.getElementById('page-next').disabled")
    click(page, "#page-previous")
    assert texts(page, "#page-now") == ["5 of 6"]


def test_failures_lead_to_their_rows(page):
    reasons = texts(page, "#failure-table tbody tr .reason")
    n = next(n for n, reason in enumerate(reasons) if reason.startswith("only … s are left"))
    page.execute_script("document.querySelectorAll('[data-show]')[arguments[0]].click()", n)
    assert sorted(texts(page, "#sample-table .open")) == ["spk1/utt_0017", "spk2/utt_0018"]
    page.execute_script("document.querySelector('[data-example] button').click()")
    assert texts(page, "#detail-title") == ["spk1/utt_0005"]


def test_every_track_decodes_to_its_own_length_and_draws(page, demo_run):
    open_sample(page, "utt_0009")
    sample = next(s for s in demo_run.samples() if s.id == "spk1/utt_0009")
    tracks = page.execute_script(
        """return [...document.querySelectorAll('.track')].map((t) => {
          const canvas = t.querySelector('canvas');
          const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
          const shades = new Set();
          for (let n = 0; n < pixels.length; n += 4) {
            shades.add(pixels[n] * 65536 + pixels[n + 1] * 256 + pixels[n + 2]);
          }
          return [t.querySelector('strong').textContent, Number(t.dataset.duration), shades.size, canvas.width];
        })"""
    )
    assert tracks[0][0] == "reference"
    assert {name for name, *_ in tracks[1:]} == set(demo_run.systems)
    for name, seconds, shades, width in tracks:
        assert seconds == pytest.approx(sample.duration_s, abs=1e-4), name
        assert shades > 50 and width > 300, name


def test_a_failed_item_says_why_instead_of_playing(page):
    open_sample(page, "utt_0005")
    row = next(t for t in texts(page, ".track") if t.startswith("mp3-24k"))
    assert "failed: the encoder gave no packet" in row


def test_play_and_the_switch_keep_the_position(browser, make_run, tmp_path):
    # Long enough not to end while a busy machine takes its time.
    run = make_run("run", samples=1, systems=["opus-6k", "opus-24k"], longer_s=18.4)
    write_page([run], tmp_path / "report.html")
    page = open_page(browser, tmp_path / "report.html")
    open_sample(page, "")
    position = lambda: float(page.execute_script("return document.getElementById('position').value"))  # noqa: E731
    output = lambda: texts(page, ".track.active strong")  # noqa: E731
    # What the sound card is given, not only what the page says: every track begins at the one position.
    page.execute_script(
        """window.starts = [];
        const start = AudioBufferSourceNode.prototype.start;
        AudioBufferSourceNode.prototype.start = function (when, offset) {
          window.starts.push(offset);
          start.call(this, when, offset);
        }"""
    )
    start = lambda: page.execute_script("return window.starts.splice(0)")  # noqa: E731
    before = output()
    assert before in (["opus-6k"], ["opus-24k"])
    page.execute_script(
        "const e = document.getElementById('position'); e.value = 4; e.dispatchEvent(new Event('input'))"
    )
    assert position() == 4
    click(page, "#play")
    until(lambda: position() > 4.3)
    assert start() == [4, 4, 4]
    since, at = time.monotonic(), position()
    click(page, "#hear-a")
    assert output() == ["reference"]
    assert at <= position() <= at + (time.monotonic() - since) + 0.5  # it went on: it neither stopped nor began again
    page.find_element("id", "detail").send_keys("x")
    assert output() == before
    until(lambda: position() > at + 0.2)
    click(page, "#play")
    stopped = position()
    time.sleep(0.2)
    assert position() == stopped > at
    assert start() == []  # changing the track began nothing anew
    # Another track's own button goes on from there too.
    click(page, ".track:nth-child(3) .listen")
    assert output() == texts(page, ".track:nth-child(3) strong") != before
    until(lambda: texts(page, "#play") == ["Pause"])
    assert start() == pytest.approx([stopped] * 3, abs=2e-3)
    assert position() >= stopped
    # A click on a spectrogram goes there.
    click(page, ".track .picture")
    assert output() == ["reference"]
    assert position() == pytest.approx(20 / 2, abs=2)
    assert complaints(page) == []


def test_playing_ends_and_loops(page):
    open_sample(page, "utt_0004")
    page.execute_script(
        """window.labels = [];
        const added = (record) => [...record.addedNodes].map((n) => n.textContent);
        const note = (records) => records.forEach((r) => window.labels.push(...added(r)));
        new MutationObserver(note).observe(document.getElementById("play"), { childList: true });"""
    )
    changes = "return window.labels.filter((label, n, all) => label !== all[n - 1])"
    labels = lambda: page.execute_script(changes)  # noqa: E731
    click(page, "#play")
    until(lambda: labels()[-2:] == ["Pause", "Play"])
    assert page.execute_script("return document.getElementById('position').value") == "0"
    click(page, "#loop")
    click(page, "#play")
    until(lambda: labels().count("Pause") >= 3)  # it began by itself
    open_sample_close(page)


def test_the_alignment_has_as_many_edits_as_jiwer_counts(page, demo_run):
    jiwer = pytest.importorskip("jiwer")
    scores = {s.system: s for s in demo_run.scores("opus-6k", "wer[pocketsphinx]")}
    details = {
        s.system: s.detail
        for s in demo_run.scores(metric="wer[pocketsphinx]")
        if s.id == "spk0/utt_0008"
    }  # fmt: skip
    assert scores
    open_sample(page, "utt_0008")
    rows = page.execute_script(
        """const text = (e, tag) => e.querySelector(tag).textContent;
        return [...document.querySelectorAll('.alignment')].map((row) => [
          row.querySelector('div').firstChild.textContent,
          [...row.querySelectorAll('.pair')].map((p) => [p.className, text(p, 'del'), text(p, 'ins')]),
        ])"""
    )
    assert {name for name, _ in rows} == set(details)
    for name, pairs in rows:
        measured = jiwer.process_words(details[name]["reference"], details[name]["hypothesis"])
        edits = measured.substitutions + measured.deletions + measured.insertions
        assert sum(kind != "pair same" for kind, *_ in pairs) == edits, name
        assert " ".join(a for _, a, _ in pairs if a != "\u00a0") == details[name]["reference"]
        assert " ".join(b for _, _, b in pairs if b != "\u00a0") == details[name]["hypothesis"]


def test_arrows_walk_through_the_rows(browser, make_run, tmp_path):
    run = make_run("run", samples=4, systems=["g722"], metrics=["stoi"], audio=False, hostile=False)
    write_page([run], tmp_path / "report.html")
    page = open_page(browser, tmp_path / "report.html")
    rows = texts(page, "#sample-table .open")
    click(page, "#sample-table .open")
    assert page.execute_script("return document.getElementById('detail-previous').disabled")
    click(page, "#detail-next")
    click(page, "#detail-next")
    assert texts(page, "#detail-title") == [rows[2]]
    click(page, "#detail-previous")
    assert texts(page, "#detail-title") == [rows[1]]
    from selenium.webdriver.common.keys import Keys

    page.find_element("id", "detail").send_keys(Keys.ESCAPE)
    until(lambda: not page.execute_script("return document.getElementById('detail').open"))
    assert complaints(page) == []


def test_the_plot_shows_every_system_at_its_measured_rate(page, demo_run):
    summary = summarise(demo_run).as_dict()["systems"]
    click(page, f'[data-plot="{column_of(page, "pesq_wb")}"]')
    assert texts(page, "#plot-caption") == ["pesq_wbhigher is better"]
    labels = page.execute_script(
        "return [...document.querySelectorAll('#plot-large g[aria-label]')].map((g) => [g.getAttribute('aria-label'), "
        "g.getBoundingClientRect().x, g.querySelector('.point').getBoundingClientRect().y])"
    )
    assert len(labels) == 8
    coded = {name: s for name, s in summary.items() if name != "unprocessed"}
    for label, _, _ in labels:
        name, _, rest = label.partition(": ")
        assert rest.endswith(f"{coded[name]['bitrate_bps']['value'] / 1000:.1f} kbps")
    by_height = [label.partition(":")[0] for label, _, y in sorted(labels, key=lambda row: row[2])]
    assert by_height == sorted(coded, key=lambda name: -coded[name]["metrics"]["pesq_wb"]["value"])
    x = {label.partition(":")[0]: x for label, x, _ in labels}
    # The axis is logarithmic: 6 to 12 is as far as 12 to 24 kbps.
    assert x["opus-12k"] - x["opus-6k"] == pytest.approx(x["opus-24k"] - x["opus-12k"], rel=0.05)
    assert "unprocessed" in texts(page, "#plot-large text")


def test_it_fits_narrow_screens(page):
    shown = "const d = document.getElementById('detail'); return d.scrollWidth <= d.clientWidth"
    for width in (360, 768):
        narrow(page, width)
        until(lambda: page.execute_script("return innerWidth") == width)  # noqa: B023
        until(lambda: page.execute_script("return document.documentElement.scrollWidth") <= width)  # noqa: B023
        # Text in the plot keeps its size.
        height = "return document.querySelector('#plot-large text').getBoundingClientRect().height"
        until(lambda: page.execute_script(height) > 11)  # noqa: B023
        open_sample(page, "utt_0004")
        assert page.execute_script(shown), width
        open_sample_close(page)


def narrow(browser, width):
    """Gives the page the screen of a phone or a tablet."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def test_text_can_be_read_in_light_and_in_dark(page):
    def luminance(colour):
        channels = np.array([int(item) for item in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
        linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    papers = []
    for scheme in ("light", "dark"):
        page.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        paper = luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
        papers.append(paper)
        for selector in (
            "body",
            ".lead",
            ".grid .spread",
            ".grid .count",
            ".contents a",
            "#failure-table a, .facts a",
            ".variant",
        ):
            ink = luminance(
                page.execute_script("return getComputedStyle(document.querySelector(arguments[0])).color", selector)
            )
            contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
            assert contrast >= 4.5, (scheme, selector, contrast)  # WCAG AA
    assert papers[0] > 0.9 > 0.1 > papers[1]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_spectrograms_show_the_right_frequencies_and_levels(browser, make_run, tmp_path):
    """Tones of known frequency and level, the loudest at 0 dB: the colour at each one's row is the scale's."""
    from codec_bench.audio.encode import write_flac

    run = make_run("run", samples=1, systems=["opus-6k"], hostile=False)
    rate, seconds = 16000, 1.6
    t = np.arange(int(rate * seconds)) / rate
    # Multiples of the bin width (31.25 Hz at 512 samples), so that no level is lost between two bins.
    tones = {1000.0: 0, 3000.0: -40, 6000.0: -60}
    signal = sum(0.5 * 10 ** (db / 20) * np.sin(2 * np.pi * hz * t) for hz, db in tones.items())
    for folder in ("reference", "opus-6k"):
        write_flac(run.folder / "audio" / folder / "0000000.flac", Audio(signal.astype(np.float32), rate))
    write_page([run], tmp_path / "report.html")
    page = open_page(browser, tmp_path / "report.html")
    open_sample(page, "")
    column = np.array(
        page.execute_script(
            """const c = document.querySelector('.track canvas');
            return [...c.getContext('2d').getImageData(Math.floor(c.width / 2), 0, 1, c.height).data]"""
        )
    ).reshape(-1, 4)[:, :3]
    stops = np.array(
        [[0, 0, 4], [28, 16, 68], [79, 18, 123], [129, 37, 129], [181, 54, 122], [229, 80, 100], [251, 135, 97],
            [254, 194, 135], [252, 253, 191]]
    )  # fmt: skip
    scale = np.stack([np.interp(np.linspace(0, 8, 801), np.arange(9), stops[:, k]) for k in range(3)], axis=1)
    db = np.argmin(((column[:, None].astype(float) - scale[None]) ** 2).sum(-1), axis=1) / 10 - 80
    hz = (len(db) - 0.5 - np.arange(len(db))) / len(db) * rate / 2
    for tone, level in tones.items():
        near = np.abs(hz - tone) < 250
        peak = np.argmax(np.where(near, db, -99))
        assert abs(hz[peak] - tone) <= rate / 2 / len(db) + 31.25, tone
        assert db[peak] == pytest.approx(level, abs=1.0), tone
    assert db[np.abs(hz - 4500) < 300].max() < -75
    # The difference of equal sounds is empty.
    click(page, '[data-mode="difference"]')
    shades = page.execute_script(
        """const c = document.querySelectorAll('.track canvas')[1];
        const pixels = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
        return [...new Set(pixels)]"""
    )
    assert len(shades) == 1
    assert complaints(page) == []


def test_several_runs_and_runs_without_bitrates_have_their_plots(browser, make_run, tmp_path):
    one = make_run("one", samples=4, systems=["opus-6k", "g722"], metrics=["stoi", "pesq_wb"], audio=False)
    two = make_run("two", samples=4, systems=["opus-6k"], metrics=["stoi"], audio=False, finish=False, stop_after=2)
    write_page([one, two], tmp_path / "report.html")
    page = open_page(browser, tmp_path / "report.html")
    assert texts(page, "#plots h2") == ["Systems side by side"]
    assert len(texts(page, "#plot-large g")) == 2  # what both runs of the first measured by this metric
    click(page, f'[data-plot="{column_of(page, "stoi")}"]')
    assert len(texts(page, "#plot-large g")) == 3
    assert texts(page, "#sample-count")[0].startswith("10 rows")
    click(page, "#sample-table .open")
    assert texts(page, ".silent") == ["The run saved no sound of this sample."]
    assert complaints(page) == []


def test_ten_thousand_rows_stay_quick(browser, make_run):
    run = make_run("run", samples=1200, audio=False, metrics=["stoi", "pesq_wb"])
    write_page([run], run.folder / "report.html", max_rows=100_000)
    page = open_page(browser, run.folder / "report.html")
    assert texts(page, "#sample-count")[0].startswith("10,800 rows")
    spent = page.execute_script(
        """const start = performance.now();
        const metric = document.getElementById('by-metric');
        metric.value = 1; metric.dispatchEvent(new Event('change'));
        document.querySelector('#sample-table [data-sort="sample"]').click();
        return performance.now() - start"""
    )
    assert spent < 1500  # two filters and sorts over all rows; about 50 ms on a quiet machine
    assert complaints(page) == []
