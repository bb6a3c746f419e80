"""Seven careful people and five lazy ones at the page of a real browser: what the lazy ones do is marked, and left out
by the rule named before.
"""

from __future__ import annotations

import json
from statistics import fmean
from zlib import crc32

import numpy as np
import pytest
from page_in_browser import complaints, open_page

import codec_bench
from codec_bench.apps.listening.checks import CHECKS
from codec_bench.apps.listening.key import read_key
from codec_bench.audio.encode import write_flac
from codec_bench.types import Audio

LEVELS = {"zebra-codec": 4, "quagga-codec": 2}
PERSON = """
const [name, plan, hasty, done] = arguments;
const until = (holds) => new Promise((met) => {
  const look = () => (holds() ? met() : setTimeout(look, 10));
  look();
});
(async () => {
  const sheet = document.getElementById("sheet");
  const found = (id) => document.getElementById(id);
  if (!found("rater")) [...document.querySelectorAll("button")].find((b) => b.textContent === "To the start").click();
  found("rater").value = name;
  found("begin").click();
  let seen = "";
  for (;;) {
    await until(() => found("go-on") || found("save") || (sheet.dataset.trial || seen) !== seen);
    if (found("save")) break;
    if (found("go-on")) { rests.push(clockAhead); found("go-on").click(); continue; }
    seen = sheet.dataset.trial;
    for (const button of document.querySelectorAll(".sounds [data-plays], .side [data-plays]")) {
      button.click();
      await until(() => button.getAttribute("aria-pressed") === "true" && found("play").textContent === "Pause");
    }
    if (!hasty) clockAhead += 1000;  // whoever hears a sound to its end takes its time
    const wanted = String(plan[seen]);
    const digits = found("digits");
    if (digits) { digits.value = wanted; digits.dispatchEvent(new Event("input")); found("next").click(); continue; }
    const choices = [...document.querySelectorAll(".choices input")];
    (choices.find((one) => one.value === wanted) || choices.at(wanted === "second" ? 1 : 0)).click();
    document.getElementById("next").click();
  }
  const made = URL.createObjectURL;
  URL.createObjectURL = (blob) => (blob.text().then(done), made(blob));
  document.getElementById("save").click();
  URL.createObjectURL = made;
})();
"""


@pytest.fixture
def sit_down(browser, tmp_path):
    """Lets a person take the test on an opened page: `plan` has the value of each trial; gives the saved file."""

    def person(name, plan, *, hasty=False):
        path = tmp_path / f"{name}.json"
        path.write_text(browser.execute_async_script(PERSON, name, plan, hasty), encoding="utf-8")
        return path

    return person


def begin(browser, built):
    open_page(browser, built.page)
    browser.execute_script(
        "window.clockAhead = 0; window.rests = []; const real = performance.now.bind(performance); performance.now = "
        "() => real() + clockAhead;"
    )


def drawn(*kind):
    return crc32(" ".join(map(str, kind)).encode())


def test_seven_people_count_and_five_lazy_ones_are_omitted_as_planted(browser, codec_run, tmp_path, sit_down):
    rng = np.random.default_rng(0)
    write_flac(tmp_path / "g.flac", Audio(rng.uniform(-0.1, 0.1, (1, 8_000)).astype(np.float32), 16_000))
    (tmp_path / "gold.csv").write_text("audio,answer\n" + "g.flac,5\n" * 2)
    built = codec_bench.export_listening(
        runs=codec_run, kind="rating", systems=",".join(LEVELS), items=3, training=1, repeats=2, traps=2,
        gold=tmp_path / "gold.csv",
        checks="qualification,hearing", session=4, scale="1-5", screening="constant,hasty,repeats,trap,gold",
        out=tmp_path / "t.html",
    )  # fmt: skip
    key = read_key(built.key)

    def careful(name, trial):
        if trial.check:
            return "".join(map(str, trial.right)) if trial.check == "hearing" else trial.right[0]
        return LEVELS[trial.stimuli[0].system] + drawn(name, trial.repeat_of or trial.id) % 2

    def planted(name, trial):
        if name == "constant" and trial.check not in CHECKS:
            return 3
        if name == "repeats" and trial.repeat_of:
            return 1 if careful(name, trial) > 3 else 5
        if name in ("trap", "gold") and trial.check == name:
            return 1 if trial.right[0] > 3 else 5
        return careful(name, trial)

    begin(browser, built)
    people = [f"Rater {n}" for n in range(7)]
    lazy = ["constant", "hasty", "repeats", "trap", "gold"]
    files = [
        sit_down(name, {t.id: planted(name, t) for t in key.trials}, hasty=name == "hasty") for name in people + lazy
    ]
    assert complaints(browser) == [] and len({json.loads(file.read_text())["person"] for file in files}) == 12
    outcome = codec_bench.import_listening(files, key=built.key)
    assert not outcome.problems and {one.rater for one in outcome.raters if one.left_out} == set(lazy)
    marks = {name: {one.rule for one in outcome.screened if one.rater == name and one.marked} for name in people + lazy}
    assert all(not marks[name] for name in people)
    assert {name: name in marks[name] for name in lazy} == dict.fromkeys(lazy, True)
    assert marks["constant"] <= {"constant", "trap", "gold"} and all(marks[name] == {name} for name in lazy[1:])
    for one in outcome.systems:
        actual = [careful(name, t) for name in people for t in key.counted if t.stimuli[0].system == one.system]
        assert one.value == pytest.approx(fmean(actual)) and one.raters == 7 and one.interval.method == "crossed"
    everybody = codec_bench.import_listening(files, key=built.key, keep="screened")
    assert {one.raters for one in everybody.systems} == {12} and {
        r.rater for r in everybody.raters if r.left_out
    } == set(lazy)


def test_whoever_always_takes_the_first_is_marked_and_counts(browser, codec_run, tmp_path, sit_down):
    built = codec_bench.export_listening(
        runs=codec_run,
        kind="preference",
        systems=",".join(LEVELS),
        items=7,
        session_minutes=0.05,
        out=tmp_path / "t.html",
    )
    key = read_key(built.key)
    begin(browser, built)
    zebra = {t.id: next(one.id for one in t.stimuli if one.system == "zebra-codec") for t in key.trials}
    zebra[key.trials[0].id] = "second"  # each page draws its order, in which all of them may be first
    messages = browser.execute_script("return document.querySelector('#sheet').textContent")
    assert "After every 0.05 minutes you get a break." in messages
    outcome = codec_bench.import_listening([sit_down("Careful", zebra), sit_down("First", {})], key=built.key)
    assert [one.marked for one in outcome.raters] == [(), ("always-first: the first was chosen in all of 7 choices",)]
    assert outcome.systems[0].raters == 2 and not any(one.left_out for one in outcome.raters), (
        "no rule was named to leave anybody out"
    )
    rests = browser.execute_script("return rests")
    assert rests and all(b - a <= 4000 for a, b in zip([0, *rests], rests)), "3 s, to the end of the trial"
