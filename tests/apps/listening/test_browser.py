"""The page in a real browser, used with the keyboard alone: what is saved is what was rated."""

from __future__ import annotations

import json

import pytest
from page_in_browser import complaints, open_page, resize, texts, until

import codec_bench
from codec_bench.apps.listening.key import REFERENCE, read_key


class Keyboard:
    """A person at the keyboard, who sees what is on the page."""

    def __init__(self, browser, folder):
        from selenium.webdriver.common.action_chains import ActionChains

        self.browser, self.folder, self.actions = browser, folder, ActionChains
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def press(self, *keys):
        self.actions(self.browser).send_keys(*keys).perform()

    def run(self, script):
        return self.browser.execute_script(f"return {script}")

    def trial(self, before=""):
        """The id of the trial, once its sounds can be played and it is another one than before."""
        return until(
            lambda: self.run(
                f"(document.getElementById('sheet').dataset.trial || '').replace('{before or 'none'}', '')"
            )
        )

    def next_slider(self, number):
        """The stimulus of a version, once its slider has the focus."""
        until(lambda: self.run("document.activeElement.getAttribute('aria-label')") == f"Version {number}")
        return self.focused()

    def focused(self):
        return self.run(
            "document.activeElement.dataset.stimulus || document.activeElement.id || document.activeElement.value"
        )

    def begin(self, name):
        from selenium.webdriver.common.keys import Keys

        assert self.focused() == "rater"
        self.press(name, Keys.ENTER)
        return self.trial()

    def saved(self):
        """The file that the focused button saves."""
        from selenium.webdriver.common.keys import Keys

        assert self.focused() == "save"
        self.press(Keys.ENTER)
        return self.written()

    def written(self):
        """The file that the browser has written; before that it makes an empty one of the same name."""
        return until(lambda: next((file for file in self.folder.glob("answers-*.json") if file.stat().st_size), None))


@pytest.fixture
def keyboard(browser, tmp_path):
    (tmp_path / "saved").mkdir()
    return Keyboard(browser, tmp_path / "saved")


def opened(keyboard, run, folder, kind, **more):
    built = codec_bench.export_listening(runs=run, kind=kind, out=folder / f"{kind}.html", title="A test", **more)
    open_page(keyboard.browser, built.page)
    return built, {trial.id: trial for trial in read_key(built.key).trials}


LEVELS = {REFERENCE: 100, "zebra-codec": 90, "quagga-codec": 11, "(3.5k anchor)": 0, "(7k anchor)": 20}


def test_a_mushra_test_is_rated_with_the_keyboard_stored_and_saved(keyboard, codec_run, tmp_path):
    from selenium.webdriver.common.keys import Keys

    built, trials = opened(keyboard, codec_run, tmp_path, "mushra", items=2)
    at = keyboard.begin("Zoë Õ")
    for index in range(2):
        assert texts(keyboard.browser, "h1") == [f"Trial {index + 1} of 2"]
        systems = {one.id: one.system for one in trials[at].stimuli}
        keyboard.press("r", " ")
        for n in range(5):
            keyboard.press(str(n + 1))
            level = LEVELS[systems[keyboard.next_slider(n + 1)]]
            moves = (
                [Keys.END]
                if level == 100
                else [Keys.HOME, *[Keys.PAGE_UP] * (level // 10), *[Keys.ARROW_RIGHT] * (level % 10)]
            )
            keyboard.press(*moves)
            assert keyboard.run("document.activeElement.value") == str(level)
        if index == 0:  # the browser keeps what there is
            keyboard.browser.refresh()
            until(lambda: keyboard.run("document.documentElement.dataset.ready"))
            assert "has answered 1 of 2 trials" in texts(keyboard.browser, ".resume")[0]
            keyboard.run("document.querySelector('.continue').focus()")
            keyboard.press(Keys.ENTER)
            at = keyboard.trial(at)
    keyboard.press(Keys.ENTER)
    assert texts(keyboard.browser, "h1") == ["All trials are answered"]
    file = keyboard.saved()
    outcome = codec_bench.import_listening(file, key=built.key)
    assert not outcome.problems and outcome.raters[0].rater == "Zoë Õ" and outcome.raters[0].answered == 10
    assert {one.system: one.value for one in outcome.systems} == LEVELS
    assert complaints(keyboard.browser) == []
    held = json.loads(file.read_text("utf-8"))
    assert held["complete"] is True and all(row["ms"] > 0 for row in held["answers"])


PAIR = "zebra-codec,quagga-codec"


@pytest.mark.parametrize(
    "kind,plays,answers,text",
    [
        ("rating", "q", "4", {"4"}), ("dcr", "rq", "2", {"2"}), ("p835", "q", "254", {"2", "5", "4"}),
        ("p804", "q", "1234554", set("12345")),
        ("ccr", "ab", "7", {"-3"}), ("cmos", "ab", "2", {"2"}), ("preference", "ab", "2", set(PAIR.split(","))),
        ("abx", "abx", "1", {"(reference)", "zebra-codec"}),
        ("options", "", "2", {"Paris"}), ("review", "", "d", {"drop"}),
    ],
)  # fmt: skip
def test_the_other_kinds_are_rated_with_the_keyboard(
    keyboard, codec_run, answer_run, tmp_path, kind, plays, answers, text
):
    from selenium.webdriver.common.keys import Keys

    run = answer_run if kind in ("options", "review") else codec_run
    more = {"systems": PAIR if kind in ("preference", "cmos") else "zebra-codec"} if run is codec_run else {}
    built, trials = opened(keyboard, run, tmp_path, kind, items=1, **more)
    count, at = len(trials), ""
    for index in range(count):
        at = keyboard.begin("Ann") if index == 0 else keyboard.trial(at)
        for key in plays:
            keyboard.press(key)
            until(lambda: keyboard.run("document.getElementById('play').textContent") == "Pause")
        until(lambda: not keyboard.run("document.querySelector('.choices').disabled"))
        keyboard.press(*answers)
        assert keyboard.run("document.querySelectorAll('.choices input:checked').length") == len(answers)
        if kind == "review":
            keyboard.press("wörds", Keys.ESCAPE)
        keyboard.press("n")
    outcome = codec_bench.import_listening(keyboard.saved(), key=built.key)
    assert not outcome.problems and outcome.raters[0].answered == count * len(answers)
    assert {row.choice or str(row.given) for row in outcome.ratings} <= text
    if kind == "review":
        assert json.loads(outcome.ratings[0].text) == {"Why it is dropped": "wörds"}
    assert complaints(keyboard.browser) == [] and keyboard.browser.title.startswith("A test")


def test_a_half_done_test_goes_on_from_its_file(keyboard, codec_run, tmp_path):
    from selenium.webdriver.common.keys import Keys

    _, trials = opened(keyboard, codec_run, tmp_path, "rating", items=1, seed=5)
    at = keyboard.begin("Ann")
    keyboard.press("q")
    until(lambda: not keyboard.run("document.querySelector('.choices').disabled"))
    keyboard.press("5")
    keyboard.run("document.getElementById('save-now').focus()")
    keyboard.press(Keys.ENTER)
    file = keyboard.written()
    assert json.loads(file.read_text("utf-8"))["complete"] is False
    keyboard.browser.refresh()
    keyboard.run("localStorage.clear()")
    keyboard.browser.refresh()
    assert texts(keyboard.browser, ".resume") == []
    loads = keyboard.browser.find_element("css selector", "#file")
    (tmp_path / "other.json").write_text(file.read_text("utf-8").replace('"sheet": "', '"sheet": "0'))
    loads.send_keys(str(tmp_path / "other.json"))
    assert until(lambda: texts(keyboard.browser, ".banner")) == ["This file holds the answers to another test."]
    keyboard.browser.find_element("css selector", "#file").send_keys(str(file))
    assert keyboard.trial() in trials.keys() - {at} and texts(keyboard.browser, "h1") == ["Trial 2 of 3"]
    keyboard.press("p")
    assert keyboard.run("document.querySelector('.choices input:checked').value") == "5"
    keyboard.browser.refresh()  # another rater in the same browser takes nothing away
    assert keyboard.begin("Bob") and texts(keyboard.browser, "h1") == ["Trial 1 of 3"]
    keyboard.browser.refresh()
    assert [text.split(" in this")[0] for text in texts(keyboard.browser, ".resume")] == [
        "Ann has answered 1 of 3 trials", "Bob has answered 0 of 3 trials",
    ]  # fmt: skip
    assert keyboard.begin("Ann") and texts(keyboard.browser, "h1") == ["Trial 2 of 3"]


def test_no_trial_is_wider_than_a_narrow_screen(keyboard, codec_run, tmp_path):
    opened(keyboard, codec_run, tmp_path, "mushra", items=1)
    resize(keyboard.browser, 360)
    keyboard.begin("Ann")
    assert keyboard.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    keyboard.press("p", "n")
    assert texts(keyboard.browser, "h1") == ["Not everything is answered"]


def test_of_two_versions_one_gets_the_highest_grade(keyboard, codec_run, tmp_path):
    from selenium.webdriver.common.keys import Keys

    built, trials = opened(keyboard, codec_run, tmp_path, "bs1116", items=1, systems="zebra-codec")
    systems = {one.id: one.system for one in trials[keyboard.begin("Ann")].stimuli}
    for n in range(2):
        keyboard.press(str(n + 1))
        hidden = systems[keyboard.next_slider(n + 1)] == REFERENCE
        keyboard.press(*([Keys.ARROW_RIGHT] * 3 if not hidden else [Keys.END, Keys.ARROW_LEFT]))
    assert texts(keyboard.browser, ".status-line") == ["Give 5.0 to the version that is the reference."]
    position = next(
        n
        for n in range(2)
        if keyboard.run(f"document.querySelectorAll('.mushra input')[{n}].dataset.stimulus")
        in {i for i, s in systems.items() if s == REFERENCE}
    )
    keyboard.press(str(position + 1))
    keyboard.next_slider(position + 1)
    keyboard.press(Keys.END)
    assert texts(keyboard.browser, ".status-line") == [""]
    keyboard.press("n")
    outcome = codec_bench.import_listening(keyboard.saved(), key=built.key)
    assert [(one.system, one.value) for one in outcome.systems] == [("zebra-codec", pytest.approx(1.3 - 5.0))]
    assert outcome.raters[0].answered == 2 and complaints(keyboard.browser) == []


def test_digits_behind_noise_are_written_with_the_keyboard(keyboard, codec_run, tmp_path):
    from selenium.webdriver.common.keys import Keys

    built, trials = opened(keyboard, codec_run, tmp_path, "rating", items=1, systems="zebra-codec", checks="hearing")
    at = keyboard.begin("Ann")
    for index in range(5):
        assert texts(keyboard.browser, "h1") == [f"Check {index + 1} of 5"]
        keyboard.press("q")
        until(lambda: not keyboard.run("document.getElementById('digits').disabled"))
        text = "".join(map(str, trials[at].right))
        keyboard.press(text[:2])
        assert texts(keyboard.browser, ".status-line")[0].startswith("Write three digits")
        keyboard.press(text[2])
        assert texts(keyboard.browser, ".status-line") == [""] and keyboard.focused() == "digits"
        keyboard.press(Keys.ENTER)
        at = keyboard.trial(at)
    keyboard.press("n", "n")
    until(lambda: keyboard.run("document.activeElement.id") == "save")
    outcome = codec_bench.import_listening(keyboard.saved(), key=built.key)
    (hearing,) = [one for one in outcome.screened if one.rule == "hearing"]
    assert hearing.marked is False and hearing.told.as_dict() == {
        "code": "checks_right",
        "right": 5,
        "answers": 5,
        "needed": 3,
    }
    assert complaints(keyboard.browser) == []
