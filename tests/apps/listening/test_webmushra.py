"""webMUSHRA: the configuration names files that are there and tells nothing; its results are read as its service writes
them.
"""

from __future__ import annotations

import csv

import pytest
import soundfile
import yaml
from refusals import Containing, refuses

import codec_bench
from codec_bench.apps.listening.key import REFERENCE, read_key
from codec_bench.apps.listening.webmushra import read_results


@pytest.fixture(scope="module")
def build(codec_run, tmp_path_factory):
    return codec_bench.export_listening(
        runs=codec_run, kind="mushra", form="webmushra", out=tmp_path_factory.mktemp("w") / "site", items=3, training=1,
        seed=2,
        title="A & B", instructions="Listen <well>.\n\nRate.",
    )  # fmt: skip


def test_the_configuration_is_one_that_webmushra_reads(build):
    key = read_key(build.key)
    (config,) = (build.page / "configs").glob("*.yaml")
    text = config.read_text("utf-8")
    held = yaml.safe_load(text)
    assert held["testId"] == key.sheet and held["testname"] == "A &amp; B"
    first, practice, shuffled, last = held["pages"]
    assert (first["type"], last["type"], shuffled[0]) == ("generic", "finish", "random")
    assert first["content"] == "<p>Listen &lt;well&gt;.</p><p>Rate.</p>" and last["writeResults"] is True
    pages = [practice, *shuffled[1:]]
    assert [page["id"] for page in pages] == [trial.id for trial in key.trials]
    for page, trial in zip(pages, key.trials):
        assert set(page["stimuli"]) == {one.id for one in trial.stimuli if one.system != REFERENCE}
        assert not page["createAnchor35"] and page["type"] == "mushra"
        files = [build.page / path for path in (page["reference"], *page["stimuli"].values())]
        facts = {(info.samplerate, info.frames, info.channels) for info in map(soundfile.info, files)}
        assert facts == {(48_000, 19_200, 1)} and len({path.stat().st_size for path in files}) == 1
    everything = text + " ".join(str(path) for path in build.page.rglob("*"))
    assert [name for name in ("zebra", "quagga", "narwhal") if name in everything] == []
    assert not list(build.page.rglob("*.key.json")) and build.key.parent == build.page.parent


def results(path, key, sessions, head=("rater",)):
    """A table as `service/write.php` writes it: one row for each stimulus of each page of each session."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "session_test_id",
                *head,
                "session_uuid",
                "trial_id",
                "rating_stimulus",
                "rating_score",
                "rating_time",
                "rating_comment",
            ]
        )
        for session, (names, score) in enumerate(sessions):
            for trial in key.trials:
                for one in trial.stimuli:
                    named = "reference" if one.system == REFERENCE else one.id
                    value = 100 if one.system == REFERENCE else score
                    writer.writerow([key.sheet, *names, f"uuid-{session}", trial.id, named, value, 12_345, ""])
    return path


def test_results_are_read_back(build, tmp_path):
    key = read_key(build.key)
    path = results(tmp_path / "mushra.csv", key, [(("Ann",), 60), (("Bob",), 80), (("Cleo",), 70)])
    outcome = codec_bench.import_listening(path, key=build.key)
    values = {one.system: one.value for one in outcome.systems}
    assert values == {REFERENCE: 100, "zebra-codec": 70, "quagga-codec": 70, "(3.5k anchor)": 70, "(7k anchor)": 70}
    assert [one.rater for one in outcome.raters] == ["Ann", "Bob", "Cleo"] and not outcome.problems
    assert outcome.raters[0].minutes == pytest.approx(4 * 12.345 / 60)
    assert sum(row.status == "training" for row in outcome.ratings) == 3 * 5


def test_who_a_rater_is_and_anchors_that_webmushra_creates(build, tmp_path):
    key = read_key(build.key)
    path = results(tmp_path / "mushra.csv", key, [(("", "7"), 60), (("x@example.org", "8"), 61)], head=("email", "age"))
    assert [rater for _, rater, _ in read_results(path)] == ["7", "x@example.org"]
    anchor = next(one.id for one in key.counted[0].stimuli if one.system == "(3.5k anchor)")
    path.write_text(path.read_text().replace(f",{anchor},", ",anchor35,"))
    assert not codec_bench.import_listening(path, key=build.key).problems


def test_a_table_of_something_else_or_of_nothing_is_refused(build, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with refuses("not_a_webmushra_table", columns=Containing("session_test_id, trial_id")):
        read_results(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("session_test_id,trial_id,rating_stimulus,rating_score\n")
    with refuses("no_answers_to_test", causes=Containing("a.csv' holds no rating")):
        codec_bench.import_listening(tmp_path / "a.csv", key=build.key)
