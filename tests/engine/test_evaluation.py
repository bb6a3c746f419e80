"""Which folder an evaluation goes to, and what it says of itself while it runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import Containing, refuses

from codec_bench import evaluate, score
from codec_bench.data import open_source
from codec_bench.engine.plan import build_plan
from codec_bench.engine.running import Running
from codec_bench.engine.timings import describe_phase
from codec_bench.machine.environment import process_started_at
from codec_bench.store.folders import STARTED, started_fingerprint
from codec_bench.store.writer import RunWriter

REQUESTED = {"codec": "unprocessed,g711-ulaw", "data": "embedded", "metrics": "si_sdr", "limit": 2}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(**changes):
    """Runs; returns the run, the words on its folder, and the stages of its progress with how
    many items were finished.
    """
    words, stages = [], []
    running = Running(
        device="cpu", workers=1, cache=False, check=False, page=False,
        on_folder=lambda folder, message: words.append((str(folder), message)),
        progress=lambda stage, done, *_: stages.append((stage, done)),
        **{k: changes.pop(k) for k in ["retry_failed"] if k in changes},
    )  # fmt: skip
    run = evaluate(**{**REQUESTED, **changes}, running=running)
    return run, words, stages


def unfinished(run):
    """Makes a finished run one that was stopped before its end."""
    path = run.folder / STARTED
    path.write_text(json.dumps({**json.loads(path.read_text()), "finished": None}))
    run.close()


def test_without_a_folder_the_same_call_continues_its_own_run_and_a_finished_one_begins_anew():
    run, words, stages = call()
    assert words == [(str(run.folder), f"run folder: {run.folder} (new)")]
    order = list(dict.fromkeys(stage for stage, _ in stages))
    assert order[0] == "loading the codec g711-ulaw" and order[-2:] == ["running", "writing the report"]
    unfinished(run)
    again, words, stages = call()
    assert again.folder == run.folder and "continues the unfinished run of" in words[0][1]
    assert min(done for stage, done in stages if not stage.startswith("loading")) == 4, "nothing ran again"
    retried, _, _ = call(retry_failed=True)
    assert retried.folder == run.folder, "a finished run is what --retry-failed is for"
    new, words, _ = call()
    assert new.folder != run.folder and f"the same run in {run.folder} is finished" in words[0][1]
    other, _, _ = call(limit=1)
    assert other.folder not in (run.folder, new.folder)


def scores_of(run):
    return {(s.system, s.id, s.metric): (s.value, s.status) for s in run.scores()}


@pytest.fixture
def as_table(tmp_path):
    """The first of the embedded recordings as a data set in the hub's layout."""
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    samples = list(open_source("embedded"))[:9]
    sounds = [{"bytes": Path(sample.audio).read_bytes(), "path": f"{sample.id}.flac"} for sample in samples]
    (tmp_path / "table").mkdir()
    table = pa.table({"id": [sample.id for sample in samples], "audio": sounds})
    pq.write_table(table, tmp_path / "table" / "test-00000-of-00001.parquet")
    return str(tmp_path / "table")


@pytest.mark.parametrize("kind", ["folder", "table"])
def test_a_limit_can_be_raised_in_the_folder_of_a_run(kind, as_table):
    data = {"data": "embedded" if kind == "folder" else as_table, "codec": "unprocessed", "metrics": "mel_distance"}
    small, _, _ = call(out="grows", **data, limit=2)
    retained = scores_of(small)
    small.close()
    larger, _, _ = call(out="grows", **data, limit=5)
    assert larger.meta["timings"]["continued_after_items"] == 2, "the first two samples are not run again"
    complete, _, _ = call(out="at-once", **data, limit=5)
    assert scores_of(larger) == scores_of(complete) and retained.items() <= scores_of(larger).items()
    assert larger.meta["data"]["samples"] == 5 == larger.meta["fingerprint"]["samples"]
    larger.close()
    if kind == "table":
        return
    again, _, stages = call(out="grows", **data, limit=5)
    assert min(done for stage, done in stages if not stage.startswith("loading")) == 5, "nothing runs again"
    again.close()
    with refuses("limit_lowered", folder="grows", before=5, unit="sample", limit=4):
        call(out="grows", **data, limit=4)
    with refuses("other_settings", differences=Containing("seed was 0, now 1")):
        call(out="grows", **data, limit=7, seed=1)
    everything, _, _ = call(out="grows", **data, limit=None)
    assert everything.meta["fingerprint"]["limit"] is None and everything.counts()["failed_scores"] == 0
    everything.close()
    with refuses("limit_lowered", before=None, unit="sample"):
        call(out="grows", **data, limit=4)


def test_the_limit_of_created_audio_can_be_raised_too(tmp_path):
    for name in ("soft", "loud"):
        (tmp_path / name).mkdir()
        for sample in list(open_source("embedded")):
            shutil.copy(sample.audio, tmp_path / name)
    requested = {
        "generated": f"soft={tmp_path / 'soft'},loud={tmp_path / 'loud'}",
        "data": "embedded",
        "metrics": "mel_distance",
    }
    options = {"workers": 1, "page": False, "cache": False, "allow_same": True}
    score(out="grows", limit=2, **requested, **options).close()
    larger = score(out="grows", limit=4, **requested, **options)
    assert scores_of(larger) == scores_of(score(out="at-once", limit=4, **requested, **options))
    assert len(scores_of(larger)) == 8
    larger.close()
    held = next(iter(open_source("embedded", limit=4, seed=0)))
    (tmp_path / "loud" / Path(held.audio).name).write_bytes(b"no sound")
    with refuses("other_settings", differences=Containing("audio")):
        score(out="grows", limit=6, **requested, **options)


def test_a_run_of_something_else_by_the_same_name_is_not_continued():
    run, _, _ = call()
    unfinished(run)
    # What only a loaded codec knows, such as the revision of its weights.
    fingerprint = started_fingerprint(run.folder)
    fingerprint["systems"]["g711-ulaw"]["weights_revision"] = "another"
    RunWriter(run.folder, fingerprint, replacing=["systems"]).close()
    new, words, _ = call()
    assert new.folder != run.folder
    assert words[0][0] == str(run.folder) and "was started with other settings" in words[1][1]
    assert new.counts()["finished"] == 4


def test_the_phase_names_what_is_loaded():
    plan = build_plan(["opus-12k", "g722"], ["wer[pocketsphinx]", "sim[ge2e]", "dnsmos", "stoi"], {}, {"en"})

    def text(loading, waiting=True, finished=0, failed=0):
        return describe_phase(plan, loading, waiting, finished, failed)

    assert text(["pocketsphinx", "pocketsphinx"]) == "loading the recogniser pocketsphinx"
    assert text(["ge2e", "dnsmos"]) == "loading the speaker encoder ge2e, the model dnsmos"
    assert text(["opus-12k", "g722", "signal metrics"]) == "loading the codecs opus-12k, g722"
    assert text(["signal metrics"]) == text([]) == "first batch"
    assert text([], waiting=False) == "reading the first samples"
    assert text(["pocketsphinx"], finished=1) == text([], finished=2, failed=2) == "running"
    # Files that are missing have failed already, and the recogniser still loads.
    assert text(["pocketsphinx"], finished=2, failed=2) == "loading the recogniser pocketsphinx"


def test_timeline():
    before = perf_counter() - process_started_at()
    run = evaluate(codec="g711-ulaw", data="embedded", metrics="si_sdr", limit=2, running=Running(is_command=True))
    wall_s = perf_counter() - process_started_at()
    timings = run.meta["timings"]
    assert list(timings["timeline"]) == ["start", "plan", "load", "first_item", "items", "finish"]
    assert timings["timeline"]["start"] >= before  # the time of a command begins with its process
    assert timings["wall_s"] <= sum(timings["timeline"].values()) <= wall_s + 0.1
    assert min(timings["timeline"].values()) >= 0
