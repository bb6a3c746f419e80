"""The page as a file: what it contains, what it leaves out, and that no text from the data can run as code."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from codec_bench.report.page import write_page
from codec_bench.report.page.sound import choose_clips, is_sound
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score


class Reader(HTMLParser):
    """Reads a page: its tags with attributes, and the text of its scripts and of everything else."""

    def __init__(self, path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.style = self.text = ""
        self._open: list[str] = []
        self.markup = path.read_text("utf-8")
        self.feed(self.markup)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if self._open and self._open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        elif self._open and self._open[-1] == "style":
            self.style += data
        else:
            self.text += data

    @property
    def data(self):
        return json.loads(next(text for attributes, text in self.scripts if attributes.get("id") == "data"))

    @property
    def sounds(self) -> list[bytes]:
        return [base64.b64decode(text) for attributes, text in self.scripts if attributes.get("type") == "text/plain"]


@pytest.fixture(scope="module")
def page(demo_run, tmp_path_factory) -> Reader:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page([demo_run], path)
    return Reader(path)


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attributes in page.tags:
        assert "src" not in attributes and "srcset" not in attributes and "data" not in attributes, tag
        if tag != "a":  # a link is followed by a person, not loaded by the page
            assert attributes.get("href") in (None, "data:,"), (tag, attributes)
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
    assert not {"img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.tags}
    assert "url(" not in page.style and "@import" not in page.style
    code = next(text for attributes, text in page.scripts if not attributes)
    for word in (
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "innerHTML",
        "outerHTML",
        "eval(",
        "http:",
        "https:",
    ):
        assert word not in code, word


def test_the_policy_allows_this_style_and_script_alone(page):
    policy = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv"))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    digest = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()  # noqa: E731
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest(next(text for a, text in page.scripts if not a))}'"
    assert rules["style-src"] == f"'sha256-{digest(page.style)}'"
    assert "unsafe" not in policy and "http" not in policy.replace("http-equiv", "")


def test_hostile_text_is_text(page, demo_run):
    hostile = demo_run.meta["fingerprint"]["note"]
    assert "</script><img" in hostile
    assert hostile not in page.markup
    assert page.markup.lower().count("</script") == len(page.scripts)
    # It is there all the same: escaped in the markup and in the data.
    assert hostile in page.text
    assert any(sample[0] == hostile == sample[1] for sample in page.data["samples"])
    assert any(reason == hostile for *_, reason in page.data["missing"])
    assert "{{ 7*7 }}" in page.text  # what came from data was not taken for a template


def test_the_page_holds_every_score(page, demo_run):
    data = page.data
    places = {name: n for n, name in enumerate(c["name"] for c in data["columns"])}
    systems = {name: n for n, name in enumerate(s["label"] for s in data["systems"])}
    ids = {sample[0]: n for n, sample in enumerate(data["samples"])}
    missing = {(s, n, c): status for s, n, c, status, _ in data["missing"]}
    for score in demo_run.scores():
        s, n, c = systems[score.system], ids[score.id], places[score.metric]
        value = data["values"][s][c][n]
        if score.status == "ok":
            assert value == pytest.approx(score.value, rel=1e-4)
        else:
            assert value is None
            assert missing.get((s, n, c)) == score.status or (s, n, -1) in missing
    details = {(s, n, c): content for s, n, c, content in data["details"]}
    some = next(demo_run.scores("opus-6k", "wer[pocketsphinx]"))
    assert details[systems["opus-6k"], ids[some.id], places[some.metric]] == dict(some.detail)


def test_the_summary_stands_in_the_markup(page, demo_run):
    summary = summarise(demo_run).as_dict()
    for name, system in summary["systems"].items():
        assert name in page.text
        entry = system["metrics"]["dnsmos_ovrl"]
        assert f"{entry['value']:.2f}" in page.text
    assert "27 of 30" in page.text and "2 failed" in page.text
    for facts in demo_run.metrics.values():
        assert facts["protocol"] in page.text and facts["summary"] in page.text
    for word in ("Where the time went", "Example CPU @ 2.0 GHz", "1 min 32 s", "52.8 ×", "seed 7", "whole item"):
        assert word in page.text
    assert "Satterthwaite" in page.text, "the method of its intervals"


def test_sound_is_the_files_own_bytes_and_the_reference_is_there_once(page, demo_run):
    data, sounds = page.data, page.sounds
    assert len(sounds) == len(set(sounds))
    retained = {(item.system, item.id): item.audio for item in demo_run.items() if item.audio}
    output = set()
    for sample, system, n in data["clips"]:
        id = data["samples"][sample][0]
        path = demo_run.reference_audio(id) if system < 0 else retained[data["systems"][system]["label"], id]
        assert sounds[n] == path.read_bytes()
        output.add((sample, system))
    assert len(output) == len(data["clips"])
    reference, unprocessed = (dict(((s, y), n) for s, y, n in data["clips"])[0, y] for y in (-1, 0))
    assert data["systems"][0]["unprocessed"] and reference == unprocessed


@pytest.mark.parametrize("audio_mb", [0.0, 1.0, 3.0])
def test_the_sound_keeps_to_its_budget_in_whole_samples(demo_run, tmp_path, audio_mb):
    write_page([demo_run], tmp_path / "report.html", audio_mb=audio_mb)
    page = Reader(tmp_path / "report.html")
    spent = sum(len(text) for a, text in page.scripts if a.get("type") == "text/plain")
    assert spent <= audio_mb * 1e6
    clips = page.data["clips"]
    for sample in {sample for sample, _, _ in clips}:
        id = page.data["samples"][sample][0]
        retained = [item for item in demo_run.items() if item.id == id and item.audio]
        assert sum(s == sample for s, _, _ in clips) == 1 + len(retained)
    output = len({sample for sample, _, _ in clips})
    if audio_mb:
        assert output and spent > 0.3e6
        assert f"sound of {output} of 30 samples" in page.text
    else:
        assert not clips and "This file holds no sound" in page.text
    # Audio that is not embedded is named, with a link only if the run folder is below the page's folder.
    assert len({s for s, _, _ in page.data["saved"]}) == 30 - output
    assert all(link is None for *_, link in page.data["saved"])


def test_links_to_stored_sound_are_relative_and_escaped(make_run):
    run = make_run("run", samples=3, hostile=False, systems=["opus-6k"])
    write_page([run], run.folder / "report.html", audio_mb=0)
    retained = Reader(run.folder / "report.html").data["saved"]
    assert len(retained) == 6
    for sample, system, link in retained:
        assert link == f"./audio/{'reference' if system < 0 else 'opus-6k'}/{sample:07d}.flac"
        assert (run.folder / link).is_file()


def test_only_sound_is_ever_embedded(tmp_path, make_run):
    secret = tmp_path / "secret.flac"
    secret.write_text("the key is 1234")
    assert not is_sound(secret) and not is_sound(tmp_path / "nowhere.flac")
    writer = RunWriter(tmp_path / "run", {})
    writer.begin({"codec": {}}, {"stoi": {"protocol": "p"}}, [Sample("a", str(secret))])
    retained = tmp_path / "run" / "audio" / "codec"
    retained.mkdir(parents=True)
    (retained / "0000000.flac").write_text("the key is 1234")
    scores = {"stoi": Score.ok(0.5, "p")}
    writer.write([(0, ItemRecord("codec", "a", "ok", None, scores, audio="audio/codec/0000000.flac"))])
    writer.close()
    write_page([Run(tmp_path / "run")], tmp_path / "report.html")
    page = Reader(tmp_path / "report.html")
    assert page.sounds == []
    assert "1234" not in page.markup and base64.b64encode(b"the key").decode()[:8] not in page.markup


def test_samples_that_do_not_fit_are_passed_over(tmp_path):
    sounds = {}
    for n, size in enumerate((3000, 90_000, 3000)):
        path = tmp_path / f"{n}.flac"
        path.write_bytes(b"fLaC" + bytes(size - 4))
        sounds[n] = [(-1, path), (0, path)]
    clips = choose_clips([1, 0, 0, 2, 5], lambda n: sounds.get(n, []), 8000)
    assert [(clip.sample, clip.system) for clip in clips] == [(0, -1), (0, 0), (2, -1), (2, 0)]


def test_a_capped_page_keeps_failures_and_worst_cases_and_says_so(make_run):
    run = make_run("run", samples=300, audio=False, hostile=False)
    write_page([run], run.folder / "report.html", max_rows=50 * 9)
    page = Reader(run.folder / "report.html")
    data = page.data
    shown = {sample[0] for sample in data["samples"]}
    assert len(shown) == 50
    assert "50 of 300 samples" in page.text
    everything = [score for score in run.scores() if score.status == "ok"]
    for item in run.items():
        if item.status != "ok":
            assert item.id in shown
    for metric, facts in run.metrics.items():
        if metric == "bitrate":
            continue
        sign = 1 if facts["higher_is_better"] else -1
        worst = min((s for s in everything if s.metric == metric), key=lambda s: sign * s.value)
        assert worst.id in shown, metric
    # The summary rests on all, and the rest is spread over the data.
    assert all(entry[3] >= 290 for row in data["summary"] for entry in row if entry[0] is not None)
    order = [sample[0] for sample in data["samples"]]
    assert order == sorted(order, key=lambda id: int(id.split("_")[1]))
    spread = np.array([int(id.split("_")[1]) for id in order])
    assert 60 < spread.mean() < 240


def test_runs_stand_side_by_side_under_names_that_distinguish_them(make_run, tmp_path):
    one = make_run("one", samples=5, systems=["unprocessed", "opus-6k"], hostile=False)
    two = make_run("two", samples=5, systems=["unprocessed", "opus-12k"], hostile=False)
    write_page([one, two], tmp_path / "report.html")
    page = Reader(tmp_path / "report.html")
    data = page.data
    assert [s["label"] for s in data["systems"]] == ["one/unprocessed", "opus-6k", "two/unprocessed", "opus-12k"]
    assert data["families"] == ["one/opus", "two/opus"]
    # Samples with one id and text are one sample; each system has its own values of it.
    assert len(data["samples"]) == 5
    pesq = [c["name"] for c in data["columns"]].index("pesq_wb")
    for run, system in ((one, 1), (two, 3)):
        name = data["systems"][system]["label"]
        values = [score.value for score in run.scores(name, "pesq_wb")]
        assert data["values"][system][pesq] == pytest.approx(values, rel=1e-4)
    assert {(s, y) for s, y, _ in data["clips"]} == {(s, y) for s in range(5) for y in (-1, 0, 1, 2, 3)}


def test_samples_of_one_id_and_other_words_are_two(make_run, tmp_path):
    runs = [
        make_run(name, samples=1, systems=["g722"], hostile=False, seed=seed) for name, seed in (("one", 1), ("two", 2))
    ]
    write_page(runs, tmp_path / "report.html")
    page = Reader(tmp_path / "report.html")
    assert len(page.data["samples"]) == 2
    for sample, system, n in page.data["clips"]:
        run = runs[sample]
        item = next(run.items())
        assert page.sounds[n] == (run.reference_audio(item.id) if system < 0 else item.audio).read_bytes()


def test_runs_of_one_folder_name_take_their_parents_into_it(make_run, tmp_path):
    runs = [make_run("run", samples=2, systems=["g722"], audio=False) for _ in range(2)]
    write_page(runs, tmp_path / "report.html")
    labels = [s["label"] for s in Reader(tmp_path / "report.html").data["systems"]]
    assert len(set(labels)) == 2 and all(label.endswith("/run/g722") for label in labels)


def test_numbers_of_two_protocols_never_share_a_column(tmp_path):
    runs = []
    for protocol in ("dnsmos/speechmos", "dnsmos/all-windows"):
        writer = RunWriter(tmp_path / protocol[-5:], {})
        writer.begin({"codec": {}}, {"dnsmos_sig": {"protocol": protocol}}, [Sample("a", None)])
        writer.write([(0, ItemRecord("codec", "a", "ok", None, {"dnsmos_sig": Score.ok(3.0, protocol)}))])
        writer.close()
        runs.append(Run(tmp_path / protocol[-5:]))
    write_page(runs, tmp_path / "report.html")
    data = Reader(tmp_path / "report.html").data
    assert [c["protocol"] for c in data["columns"]] == ["dnsmos/speechmos", "dnsmos/all-windows"]
    assert [c["variant"] for c in data["columns"]] == ["dnsmos/speechmos", "dnsmos/all-windows"], (
        "the heads tell them apart"
    )
    assert [[bool(entry) for entry in row] for row in data["summary"]] == [[True, False], [False, True]]


def test_a_run_in_progress_says_so(make_run):
    run = make_run("run", samples=4, audio=False, finish=False, stop_after=10)
    write_page([run], run.folder / "report.html")
    assert "is not finished: 10 of 36 items so far" in Reader(run.folder / "report.html").text


def test_a_run_that_recorded_nothing_but_its_names_has_a_page(tmp_path):
    writer = RunWriter(tmp_path / "run", {})
    writer.begin({"codec": {}}, {"mine": {"protocol": "mine/1"}}, [Sample("a", None)])
    writer.set_meta(
        config=None, timings={"stages": [{"stage": "x", "steps": {"a": 0.5}}, None]}, data={"unmatched": ["<b>"]}
    )
    writer.close()
    write_page([Run(tmp_path / "run")], tmp_path / "report.html")
    page = Reader(tmp_path / "report.html")
    assert "1 generated file belongs to no sample" in page.text and "<b>" in page.text
    assert "a 0.5 s" in page.text


def test_a_page_is_written_whole_or_not_at_all(demo_run, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("the page before")
    monkeypatch.setattr(importlib.import_module("codec_bench.report.page"), "render", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_page([demo_run], target, audio_mb=0)
    assert target.read_text() == "the page before"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(ValueError, match="no run"):
        write_page([], target)


def test_runs_over_different_data_have_columns_of_their_own(make_run, tmp_path):
    names = ["opus-12k", "opus-24k"]
    runs = [
        make_run(samples=count, systems=names, metrics=["stoi", "bitrate"], audio=False, data=f"folder/{where}")
        for where, count in (("first", 4), ("second", 12))
    ]
    write_page(runs, tmp_path / "page.html")
    page = Reader(tmp_path / "page.html")
    columns = [(column["name"], column["data"]) for column in page.data["columns"]]
    sets = ["first, 4 samples", "second, 12 samples"]
    assert sorted(columns) == sorted((name, data) for name in ("stoi", "bitrate") for data in sets)
    for of_system, system in zip(page.data["summary"], page.data["systems"]):
        held = [data for (_, data), entry in zip(columns, of_system) if entry is not None]
        assert set(held) == {sets[system["run"]]}, "no number stands in a column of other data"
    assert "cannot be compared" in page.text and sets[0] in page.text
    same = [make_run(samples=4, systems=names, metrics=["stoi"], audio=False) for _ in range(2)]
    write_page(same, tmp_path / "same.html")
    assert [c["data"] for c in Reader(tmp_path / "same.html").data["columns"]] == [""]


def test_systems_that_failed_are_compared_over_common_samples(demo_run, page, tmp_path):
    """mp3-24k failed on two samples: the tables of common samples and of counted failures are on the page."""
    assert "Over common samples" in page.text
    entry = summarise(demo_run).as_dict()["systems"]["opus-12k"]["metrics"]["stoi"]
    assert entry["common"]["n"] < entry["n"]
    views = [attributes["data-view"] for _, attributes in page.tags if "data-view" in attributes]
    assert views[:2] == ["Each system over its own samples", "Common samples"]


def test_a_list_that_is_cut_says_how_much_is_excluded():
    from codec_bench.report.page.collect import _detail
    from codec_bench.report.page.exchanges import _cut

    complete = {f"entry {k}": k for k in range(16)}
    assert _detail(complete) == complete
    options = _detail({**complete, "one": 1, "words": ["a"] * 4000})
    assert len(options) == 17 and options["further entries in the record"] == 2
    assert _detail({"words": ["ab"] * 4000})["words"].endswith(" … (7,999 more characters are in the record)")
    assert _cut(["a"] * 20) == ["a"] * 20 and _cut(["a"] * 23) == [*["a"] * 20, "and 3 more"]
