"""A sample's language is passed to the features that need it, and it decides which features are computed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from codec_bench.data import open_source

CUSTOM_CODE = Path(__file__).parent / "assets" / "custom_recogniser.py"
LISTENER = f"{CUSTOM_CODE}:Listener"


@pytest.fixture
def marks(monkeypatch, tmp_path):
    file = tmp_path / "heard"
    file.touch()
    monkeypatch.setenv("HEARD", str(file))
    return lambda: Counter(file.read_text().split())


def spoken(languages, text="in de"):
    return [replace(s, language=language, text=text) for s, language in zip(open_source("embedded"), languages)]


def test_a_feature_gets_the_base_code_and_foreign_items_are_never_recognised(run_it, marks):
    run = run_it(codec="unprocessed", data=spoken(["de-AT", "English", "zh", None]), metrics=f"wer[{LISTENER}]")
    scores = sorted(run.scores(), key=lambda s: s.id)
    by_status = Counter(s.status for s in scores)
    assert by_status == {"ok": 3, "refused": 1}
    (refused,) = [s for s in scores if s.status == "refused"]
    assert "'zh'" in refused.reason
    assert marks() == {"de": 1, "en": 1, "None": 1}
    assert sorted(s.value for s in scores if s.status == "ok") == [0.0, 0.5, 0.5]


def test_items_without_a_transcript_are_never_recognised(run_it, marks):
    run = run_it(codec="unprocessed", data=spoken(["de", "de"], text=None), metrics=f"wer[{LISTENER}]")
    assert Counter(s.status for s in run.scores()) == {"refused": 2}
    assert not marks()


def test_dwer_reads_both_sides_once(run_it, marks):
    run = run_it(codec="unprocessed,opus-12k", data=spoken(["de", "en"], text=None), metrics=f"dwer[{LISTENER}]")
    assert {s.value for s in run.scores()} == {0.0}
    # The reference, which `unprocessed` shares, and one estimate, of two samples.
    assert marks() == {"de": 2, "en": 2}


def test_another_language_is_another_entry_of_the_cache(run_it, marks, monkeypatch, tmp_path):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    for number, language in enumerate(["de", "de", "en"]):
        run_it(out=f"run{number}", codec="unprocessed", data=spoken([language]), metrics=f"wer[{LISTENER}]", cache=True)
    assert marks() == {"de": 1, "en": 1}


def test_weights_that_do_not_fit_fail_every_item_and_are_read_once_per_worker(run_it, marks):
    run = run_it(codec="unprocessed", data=spoken(["de"] * 6), metrics=f"wer[{CUSTOM_CODE}:Broken],stoi", workers=2)
    scores = list(run.scores())
    broken = [s for s in scores if s.metric != "stoi"]
    assert {s.status for s in broken} == {"failed"} and "encoder.layers.0.fc1.weight" in broken[0].reason
    assert {s.status for s in scores if s.metric == "stoi"} == {"ok"}
    assert marks()["load"] <= 2
