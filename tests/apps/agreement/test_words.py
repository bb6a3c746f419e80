"""The page of an agreement: its tables, its sounds, and text from data that is never markup."""

from __future__ import annotations

import base64
import re

import pytest
from judged_runs import judged_run
from page_in_browser import complaints, texts, until

from codec_bench import agreement, open_run
from codec_bench.apps.agreement.page import write_agreement_page

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp;</b>{{ 7*7 }}"


@pytest.fixture
def build(tmp_path):
    """A run of forty answers, of which the judges differ on six; three questions have a sound. (found, run, page)."""
    verdicts = {"gpt-4": [n % 5 for n in range(40)], "llama": [min(5, n % 5 + 2 * (n % 7 == 0)) for n in range(40)]}
    position = judged_run(
        tmp_path / "run", "mine", verdicts, sounds=8, answer=lambda n: HOSTILE if n == 7 else f"answer {n}"
    )
    run = open_run(position)
    outcome = agreement(runs=run)
    page = tmp_path / "agreement.html"
    write_agreement_page(outcome, [run], page)
    yield outcome, run, page
    run.close()


def test_the_page_holds_the_findings(build):
    result, run, page = build
    text = page.read_text()
    value = result.pairs[0].overall.coefficients["spearman"].value
    assert f"{value:.3f}" in text and "{{ 7*7 }}" in text and "<img" not in text
    sounds = re.findall(r'src="data:audio/flac;base64,([^"]+)"', text)
    held = [base64.b64decode(sound) for sound in sounds]
    files = [run.folder / f"audio/questions/{n:07d}.flac" for n in (0, 7)]
    assert held == [path.read_bytes() for path in files], "of the items that differ, two have a sound"
    assert "Reply of llama" in text and 'http-equiv="Content-Security-Policy"' in text


def test_no_more_sound_than_was_requested(build, tmp_path):
    result, run, _ = build
    write_agreement_page(result, [run], tmp_path / "silent.html", audio_mb=0)
    assert "data:audio" not in (tmp_path / "silent.html").read_text()


def test_in_a_browser_with_the_keyboard(browser, build):
    """The items open and play by the keyboard alone, nothing is loaded, and hostile text stays text."""
    _, _, page = build
    browser.get_log("browser")
    browser.get(page.as_uri())
    until(lambda: browser.execute_script("return document.readyState") == "complete")
    assert complaints(browser) == [] and browser.title.startswith("Agreement on mine")
    summaries = browser.find_elements("css selector", "details.apart > summary")
    assert len(summaries) == 6
    summaries[1].send_keys("\n")
    assert browser.execute_script("return document.querySelectorAll('details.apart')[1].open")
    assert HOSTILE in texts(browser, "details.apart dd")
    seconds = until(lambda: browser.execute_script("return document.querySelector('audio').duration"))
    assert seconds == pytest.approx(0.5, abs=0.05), "the browser decodes the sound"
    wide = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
