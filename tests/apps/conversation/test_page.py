"""The page: what it shows of runs whose outcome is known, that nothing of a service is taken for markup, and that both
tracks play in step.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from page_in_browser import complaints, open_page, resize, texts, until

from codec_bench.apps.conversation.distributions import summarise
from codec_bench.apps.conversation.full_duplex import WORDS
from codec_bench.apps.conversation.measures import OFFICIAL_15, Value, measure
from codec_bench.apps.conversation.page import RATE_HZ, _both, write_conversation_page

from .server import tone
from .test_measures import event, written

LISTENS = """
window.given = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (...at) {
  window.given.push([at, Array.from(this.buffer.getChannelData(0))]);
  return start.apply(this, at);
};
"""
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def page(tmp_path):
    """Two systems with a session each: one with an interruption, and one that failed."""
    events = [event("turn", (0.5, 1.0)), event("interruption", (2.5, 3.0))]
    good = written([(1.6, 2.8), (3.7, 4.5)], events, duration_s=5.0)
    good.user[round(0.5 * good.rate_hz) : round(1.0 * good.rate_hz)] = tone(0.5, 200.0)
    good.text = HOSTILE
    bad = written([], [], duration_s=1.0)
    bad.status, bad.reason = "failed", HOSTILE
    sessions = {"one": [good], "two": [bad]}
    values = {name: [v for s in held for v in measure(s)] for name, held in sessions.items()}
    values["one"].append(Value("w", 0, f"{OFFICIAL_15}/response_latency_s", 0.25, 1.0))
    systems = {name: summarise(held, values[name]) for name, held in sessions.items()}
    summary = {"title": HOSTILE, "protocol": "p", "systems": systems}
    output = tmp_path / "sessions" / "one" / good.id
    output.mkdir(parents=True)
    chunks = [
        {"text": text, "timestamp": [at, at + 0.2]} for text, at in (("<b>", 1.6), ("there", 1.65), ("again", 3.7))
    ]
    (output / WORDS).write_text(json.dumps({"chunks": chunks}))
    write_conversation_page(tmp_path / "report.html", tmp_path, sessions, values, summary)
    return tmp_path / "report.html", good


def test_what_a_service_says_is_no_markup(page):
    text = page[0].read_text("utf-8")
    assert "<img src=x" not in text and text.count("onerror") == text.count("onerror=&#34;")


def test_both_tracks_are_the_channels_of_one_sound(page):
    both = _both(page[1])
    assert both.shape == (5 * RATE_HZ, 2)
    output = np.abs(both[:, 1]) > 0.01
    assert np.flatnonzero(output)[0] / RATE_HZ == pytest.approx(1.6, abs=0.002) and not output[: RATE_HZ // 2].any()
    assert np.flatnonzero(np.abs(both[:, 0]) > 0.01)[0] / RATE_HZ == pytest.approx(0.5, abs=0.002)


def test_the_page_shows_and_plays(page, browser):
    open_page(browser, page[0])
    table = texts(browser, "#numbers td")
    assert "0.600 / 0.700 / 0.700 (n=2)" in " ".join(table)  # of latencies of 0.6 and 0.7 s
    assert len(browser.find_elements("css selector", ".session")) == 2
    labels = texts(browser, ".talk g text")
    assert labels == ["600 ms", "300 ms", "700 ms"]
    assert texts(browser, ".talk text.word") == ["<b>", "there", "again"]
    places = browser.execute_script(
        "return [...document.querySelectorAll('.talk text.word')].map((t) => [t.x.baseVal[0].value, "
        "t.y.baseVal[0].value])"
    )
    assert [x for x, _ in places] == pytest.approx([320, 330, 740], abs=0.1) and places[0][1] != places[1][1]
    browser.execute_script(LISTENS)
    browser.execute_script("document.querySelector('[data-track=model]').click()")
    until(lambda: browser.execute_script("return document.querySelector('.session').dataset.ready"))
    browser.execute_script("document.querySelector('.play').click()")
    until(lambda: float(browser.execute_script("return document.querySelector('.head').getAttribute('x1')")) > 0)
    # All tracks are given to the loudspeaker at the same moment, and those of either side are its track, sample by
    # sample.
    started = browser.execute_script("return window.given")
    assert len(started) == 3 and len({tuple(at) for at, _ in started}) == 1
    for role in _both(page[1]).T:
        assert any(
            len(sound) == role.size and np.abs(np.asarray(sound) - role).max() <= 1.5 / 32768
            for _, sound in started[1:]
        )
    assert not complaints(browser)


def test_no_table_scrolls_on_a_telephone(page, browser):
    """Of two systems at 390 px, with names as long as the official ones."""
    open_page(browser, page[0])
    resize(browser, 390)
    for details in browser.find_elements("css selector", "details"):
        browser.execute_script("arguments[0].open = true", details)
    wide = (
        "return [...document.querySelectorAll('table')].filter((t) => t.scrollWidth > t.parentElement.clientWidth + "
        "1).length"
    )
    assert any("official/full-duplex-bench-v1.5/" in text for text in texts(browser, "#numbers th"))
    assert browser.execute_script(wide) == 0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
