"""The engine: numbers do not depend on how a run is executed, and a fault affects only the item that caused it."""

from __future__ import annotations

import math
import os
import random
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench.api.evaluate import evaluate
from codec_bench.data import Source, open_source
from codec_bench.engine import run as engine_run
from codec_bench.engine.batch import StageState
from codec_bench.engine.pool import Pool, PoolWorker, WorkerBatch
from codec_bench.engine.reading import READING
from codec_bench.engine.run import Engine
from codec_bench.engine.stage import StageSpec
from codec_bench.engine.timings import estimate_left_s
from codec_bench.messages import Diagnostic
from codec_bench.store.writer import RunWriter
from codec_bench.types import Audio, Sample

METRICS = "stoi,si_sdr,mel_distance,bitrate"


@pytest.fixture(scope="module")
def requested():
    """Three systems and every fifth clip of the embedded speech: all voices, 2 to 5 s."""
    return {"codec": "unprocessed,opus-12k,g711-ulaw", "data": list(open_source("embedded"))[::5], "metrics": METRICS}


@pytest.fixture(scope="module")
def undisturbed(requested, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    settings = {"page": False, "cache": False, "check": False, "save_audio": "none", "workers": 1}
    return evaluate(**requested, out=folder / "run", **settings)


@pytest.mark.parametrize("batch_s", [1, 100])
def test_the_batch_budget_changes_no_number(run_it, requested, undisturbed, same, batch_s):
    same(undisturbed, run_it(**requested, batch_s=batch_s))


def test_the_number_of_workers_changes_no_number(run_it, requested, undisturbed, same):
    # One worker gets the threads of two, and a matrix product over two threads may round its last bit otherwise.
    same(undisturbed, run_it(**requested, workers=2), relative=1e-12)


@pytest.mark.usefixtures("fresh")
def test_a_worker_that_tests_fork_gives_the_numbers_of_one_that_the_product_starts(
    run_it, requested, undisturbed, same
):
    same(undisturbed, run_it(**requested))


def test_the_order_of_the_data_changes_no_number(run_it, requested, undisturbed, same):
    samples = list(requested["data"])
    random.Random(3).shuffle(samples)
    run = run_it(**{**requested, "data": samples})
    same(undisturbed, run)
    # ... and no interval either: its units are the same.
    from codec_bench.stats.summary import summarise

    a, b = summarise(undisturbed).as_dict()["systems"], summarise(run).as_dict()["systems"]
    for system in a:
        for metric in a[system]["metrics"]:
            left, right = a[system]["metrics"][metric], b[system]["metrics"][metric]
            if left["ci95"] is None:
                assert right["ci95"] is None
            else:
                assert left["ci95"] == pytest.approx(right["ci95"], rel=1e-9), (system, metric)


def test_unprocessed_audio_is_perfect(undisturbed):
    for score in undisturbed.scores("unprocessed"):
        if score.metric == "stoi":
            assert score.value == pytest.approx(1.0, abs=1e-9)
        if score.metric == "mel_distance":
            assert score.value == 0


def test_metrics_come_out_as_the_reference_implementation_has_them(undisturbed):
    """Through the whole engine: decoding, the codec, resampling, shared memory, workers, the record."""
    pystoi = pytest.importorskip("pystoi", reason="pystoi is a development dependency")
    from codec_bench.audio.resample import prepare
    from codec_bench.codecs import load_codec

    sample = list(undisturbed.samples())[3]
    audio = Audio.read(sample.audio)
    codec = load_codec("opus-12k")
    codes = codec.encode([audio])
    estimate = codec.decode(codes)[0]
    expected = pystoi.stoi(prepare(audio, 16000), prepare(estimate, 16000), 16000)
    by_name = {s.metric: s.value for s in undisturbed.scores("opus-12k") if s.id == sample.id}
    assert by_name["stoi"] == pytest.approx(expected, abs=1e-6)
    assert by_name["bitrate"] == pytest.approx(codes[0].bits / audio.duration_s)


def test_only_a_metric_that_leaves_out_the_scale_reads_beyond_full_scale(tmp_path, run_it):
    """A reference four times as loud as its estimate, in a file of floats: SI-SDR sees the same waveform."""
    import soundfile

    from codec_bench import load_metric, score

    audio = Audio.read(next(iter(open_source("embedded"))).audio)
    noise = np.random.default_rng(5).standard_normal(audio.num_samples).astype(np.float32)
    loud, coded = 4 * audio.samples, audio.samples + 0.01 * noise
    for folder, samples in (("data", loud), ("made", coded)):
        (tmp_path / folder).mkdir()
        soundfile.write(tmp_path / folder / "x.wav", samples.T, audio.sample_rate_hz, subtype="FLOAT")
    run = score(
        generated=tmp_path / "made", data=tmp_path / "data", metrics="si_sdr,mel_distance,stoi", out=tmp_path / "run",
        page=False, cache=False, workers=1,
    )  # fmt: skip
    by_name = {row.metric: row.value for row in run.scores()}
    r, e = audio.samples[0].astype(float), coded[0].astype(float)
    target = r * (r @ e) / (r @ r)
    assert by_name["si_sdr"] == pytest.approx(10 * np.log10((target**2).sum() / ((target - e) ** 2).sum()), abs=1e-6)
    cut = Audio(np.clip(loud, -1, 1), audio.sample_rate_hz)
    for name in ("mel_distance", "stoi"):
        (expected,) = load_metric(name)(reference=[cut], estimate=[Audio(coded, audio.sample_rate_hz)])
        assert by_name[name] == pytest.approx(expected[name].value, rel=1e-9)
    beyond = int((np.abs(loud) > 1).sum())
    assert beyond > 100
    assert [list(item.notes) for item in run.items()] == [
        [f"{beyond} samples beyond full scale were cut in the reference"]
    ]


def test_every_item_is_in_the_record_once(undisturbed):
    counts = undisturbed.counts()
    assert counts["finished"] == counts["items"] == 3 * counts["samples"]
    assert len(list(undisturbed.scores())) == counts["items"] * 4


def test_running_it_again_does_nothing_and_keeps_the_numbers(run_it, same):
    first = run_it(codec="g711-ulaw", data="embedded", metrics="si_sdr", limit=4)
    written = (first.folder / "summary.json").read_bytes()
    again = run_it(codec="g711-ulaw", data="embedded", metrics="si_sdr", limit=4)
    same(first, again)
    assert again.meta["timings"]["items"] == 4, "the timings are those of the run that worked"
    assert (first.folder / "summary.json").read_bytes() == written


def test_a_codec_and_a_metric_of_ones_own(run_it, custom_file):
    run = run_it(codec=custom_file("Quantiser"), data="embedded", metrics=["si_sdr", custom_file("Loudness")], limit=5)
    scores = list(run.scores())
    assert len(scores) == 10
    assert all(s.status == "ok" for s in scores)
    assert {s.metric for s in scores} == {"si_sdr", custom_file("Loudness")}
    assert all(i.bits == pytest.approx(4 * round(s.duration_s * 16000)) for i, s in zip(run.items(), run.samples()))


def test_a_batch_too_large_for_memory_is_halved_until_it_fits(run_it, custom_file):
    kinds = ("Quantiser", "OutOfMemory", "Narrow")
    codecs = [f"{kind}={custom_file(kind)}" for kind in kinds]
    run = run_it(codec=codecs, data="embedded", metrics="si_sdr", limit=9, batch_s=1000)
    roomy, tight, none = ([(s.id, s.value, s.status, s.reason) for s in run.scores(kind)] for kind in kinds)
    assert len(roomy) == 9 and roomy == tight and {status for _, _, status, _ in roomy} == {"ok"}
    assert {row[2:] for row in none} == {("failed", Diagnostic("out_of_memory"))}


@pytest.mark.parametrize(
    ("name", "batch_s", "longest_s", "says"),
    [
        ("RaisesForLong", 1000, 3, r"RuntimeError: cannot take {} s"),
        ("KillsItsWorker", 30, 3.5, r".*worker process died 2 times \(exit code 9\).*"),
    ],
)
def test_one_items_fault_is_its_own_and_the_rest_goes_on(run_it, custom_file, name, batch_s, longest_s, says):
    samples = sorted(open_source("embedded"), key=lambda s: Audio.read(s.audio).duration_s)
    run = run_it(codec=custom_file(name), data=[*samples[:6], *samples[-2:]], metrics="si_sdr", batch_s=batch_s)
    lengths = {s.id: s.duration_s for s in run.samples()}
    assert any(d > longest_s for d in lengths.values()) and any(d <= longest_s for d in lengths.values())
    for score in run.scores():
        assert score.status == ("failed" if lengths[score.id] > longest_s else "ok")
        if score.status == "failed":
            assert re.fullmatch(says.format(re.escape(f"{lengths[score.id]:.2f}")), score.reason)


@pytest.mark.parametrize("batch_s", [0.1, 1000])
def test_results_of_a_metric_of_ones_own_are_written_or_fail_alone(run_it, custom_file, monkeypatch, batch_s):
    samples = list(open_source("embedded").samples)[:3]
    monkeypatch.setenv("CODEC_BENCH_TEST_ITEM", samples[1].id)
    names = ["WithDetail", "WithObject", "WithoutNumber"]
    metrics = [custom_file(name) for name in names]
    run = run_it(codec="unprocessed", data=samples, metrics=metrics, batch_s=batch_s)
    scores = {name: [s for s in run.scores() if s.metric == custom_file(name)] for name in names}
    expected = {"peak": 0.5, "counts": [0, 1, 2], "deep": {"1": [2, None, "x"]}, "bad": None}
    assert [s.detail for s in scores["WithDetail"]] == [expected] * 3
    assert [s.status for s in scores["WithObject"]] == ["ok", "failed", "ok"]
    assert "holds object" in scores["WithObject"][1].reason
    assert [s.status for s in scores["WithoutNumber"]] == ["failed"] * 3


@pytest.mark.parametrize("cache", [True, False])
def test_results_of_a_feature_of_ones_own_are_plain_or_fail_alone(run_it, custom_file, cache):
    request_of_run = {"codec": "unprocessed", "data": "embedded", "limit": 2, "cache": cache}
    for out in ("first", "again"):
        run = run_it(**request_of_run, metrics=f"transcript[{custom_file('GivesOdd')}]", out=out)
        assert [(s.status, s.detail["transcript"]) for s in run.scores()] == [("ok", "one \ufffd two")] * 2
    for name, reason in (("GivesObject", "holds object"), ("GivesText", "returned str")):
        run = run_it(**request_of_run, metrics=f"transcript[{custom_file(name)}],duration_error", out=name)
        scores = list(run.scores())
        assert [s.status for s in scores if s.metric == "duration_error"] == ["ok"] * 2
        assert [reason in s.reason for s in scores if s.metric != "duration_error"] == [True] * 2


def test_an_aggregate_that_no_statistic_has_is_refused(run_it, custom_file):
    name = custom_file("Median")
    with refuses("metric_aggregate", metric=name, aggregate="median", hint="mean, ratio, bleu"):
        run_it(codec="unprocessed", data="embedded", metrics=name, limit=1)


def test_the_unprocessed_audio_alone_has_no_note_on_common_samples(run_it):
    run = run_it(codec="unprocessed", data="embedded", metrics="duration_error", limit=3)
    summary = run.summary()["systems"]["unprocessed"]["metrics"]["duration_error"]
    assert (summary["value"], summary["n"], summary["common"]) == (0.0, 3, None)


def test_a_metric_that_raises_fails_its_item_only(run_it, custom_file):
    run = run_it(codec="unprocessed", data="embedded", metrics=custom_file("RaisesForQuiet"), batch_s=1000)
    by_status = {}
    for score in run.scores():
        peak = np.abs(Audio.read(next(s.audio for s in run.samples() if s.id == score.id)).samples).max()
        by_status.setdefault(score.status, []).append(peak)
    assert all(p < 0.5 for p in by_status.get("failed", []))
    assert all(p >= 0.5 for p in by_status.get("ok", []))
    assert set(by_status) == {"failed", "ok"}, "the embedded speech has quiet and loud utterances"


def test_a_codec_that_breaks_its_contract_is_reported(run_it, custom_file):
    expected = {
        "WrongLength": "output must be as long as input",
        "NotFinite": "not finite",
        "OutOfRange": "expected 0 to 15",
        "LosesItems": "0 items for a batch of 1",
    }
    run = run_it(codec=[f"{k}={custom_file(k)}" for k in expected], data="embedded", metrics="si_sdr", limit=3)
    for name, says in expected.items():
        scores = list(run.scores(name))
        assert len(scores) == 3
        assert all(score.status == "failed" and says in score.reason for score in scores), name


def test_a_worker_that_dies_once_costs_nothing(run_it, custom_file, same, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_TEST_MARKER", str(tmp_path / "marker"))
    run = run_it(out="a", codec=custom_file("DiesOnce"), data="embedded", metrics="si_sdr", limit=6)
    calm = run_it(out="b", codec=custom_file("Quantiser"), data="embedded", metrics="si_sdr", limit=6)
    assert (tmp_path / "marker").exists()
    assert [s.value for s in run.scores()] == [s.value for s in calm.scores()]


@pytest.fixture
def own_clock(tmp_path, monkeypatch):
    """Replaces the clock: no time passes for a working worker, and one that says it is late is over its limit."""
    marks = tmp_path / "late"
    marks.mkdir()
    monkeypatch.setenv("CODEC_BENCH_TEST_LATE", str(marks))

    def time_left_s(worker):
        late = worker.began is not None and (marks / str(worker.process.pid)).exists()
        return -1.0 if late else math.inf

    monkeypatch.setattr(PoolWorker, "time_left_s", property(time_left_s))


def test_the_time_of_a_batch_counts_from_its_beginning(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("codec_bench.engine.pool.monotonic", lambda: now[0])
    worker = PoolWorker("cpu", None, None)
    assert worker.time_left_s == math.inf
    worker.batches = {7: WorkerBatch("codec", [], 1.0, "cpu", 5.0), 8: WorkerBatch("codec", [], 1.0, "cpu", 50.0)}
    assert worker.time_left_s == math.inf  # it is still loading
    worker.began = now[0]
    assert worker.time_left_s == 5.0
    now[0] += 6.5
    assert worker.time_left_s == -1.5


def test_an_item_that_hangs_fails_in_time_and_the_rest_goes_on(run_it, custom_file, own_clock):
    samples = sorted(open_source("embedded"), key=lambda s: Audio.read(s.audio).duration_s)
    requests = {"data": [*samples[:5], *samples[-2:]], "metrics": "si_sdr,bitrate", "batch_s": 30}
    calm = run_it(out="calm", codec=custom_file("Quantiser"), **requests)
    run = run_it(out="hangs", codec=f"g711-ulaw,{custom_file('HangsForLong')}", time_limit_s=2, **requests)
    lengths = {s.id: s.duration_s for s in run.samples()}
    assert any(d > 3.5 for d in lengths.values()) and any(d <= 3.5 for d in lengths.values())
    expected = {(s.id, s.metric): s.value for s in calm.scores()}
    for score in run.scores("quantiser"):
        if lengths[score.id] > 3.5:
            assert score.status == "failed" and score.value is None
            assert score.reason == "quantiser took longer than its limit of 2 s, twice"
        else:
            assert (score.status, score.value) == ("ok", expected[score.id, score.metric])
    assert {s.status for s in run.scores("g711-ulaw")} == {"ok"}
    counts = run.counts()
    assert counts["finished"] == counts["items"] == 2 * counts["samples"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_the_program_that_a_late_codec_waits_for_is_ended_too(run_it, custom_file, monkeypatch):
    seconds = f"3600.{os.getpid()}"  # recognised by its argument
    monkeypatch.setenv("CODEC_BENCH_TEST_SLEEP", seconds)
    long = max(open_source("embedded"), key=lambda s: Audio.read(s.audio).duration_s)
    run = run_it(
        codec=custom_file("HangsForLong"), data=[long], metrics="bitrate", time_limit_s=0.5
    )  # seconds that pass
    assert [s.status for s in run.scores()] == ["failed"]
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if seconds.encode() in _read(p)]
    assert not left


def _read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def test_a_codec_of_which_nothing_comes_back_is_abandoned(run_it, custom_file, own_clock):
    run = run_it(
        codec=f"g711-ulaw,{custom_file('HangsAlways')}",
        data="embedded",
        limit=12,
        metrics="bitrate",
        time_limit_s=0.5,
        workers=2,
    )
    reasons = [s.reason for s in run.scores("quantiser")]
    assert len(reasons) == run.counts()["samples"] > 8
    late = [r for r in reasons if r.endswith("took longer than its limit of 0.5 s, twice")]
    others = [r for r in reasons if r not in late]
    assert 3 <= len(late) <= 4, "three of them, and what the other worker held"
    assert set(others) == {"quantiser was stopped: none of the first 3 items came back within its limit of 0.5 s"}
    assert {s.status for s in run.scores("g711-ulaw")} == {"ok"}


def test_a_metric_that_hangs_fails_its_item_only(run_it, custom_file, monkeypatch, own_clock):
    samples = list(open_source("embedded"))[:4]
    monkeypatch.setenv("CODEC_BENCH_TEST_ITEM", samples[1].id)
    hanging = custom_file("HangsForOne")
    run = run_it(codec="unprocessed", data=samples, metrics=["mel_distance", hanging], time_limit_s=2, batch_s=30)
    by_name = {(s.id, s.metric): (s.status, s.value, s.reason) for s in run.scores()}
    for sample in samples:
        if sample.id == samples[1].id:
            late = ("failed", None, f"{hanging} took longer than its limit of 2 s, twice")
            assert by_name[sample.id, hanging] == late
        else:
            assert by_name[sample.id, hanging] == ("ok", pytest.approx(0, abs=1e-9), None)
        assert by_name[sample.id, "mel_distance"] == ("ok", 0.0, None)


def test_loading_does_not_count_against_the_limit(run_it, custom_file, own_clock):
    run = run_it(
        codec="unprocessed", data="embedded", metrics=custom_file("SlowToLoad"), limit=4, time_limit_s=0.7, workers=2
    )
    assert [s.status for s in run.scores()] == ["ok"] * 4


def test_a_long_batch_has_a_longer_limit():
    from codec_bench.engine.batch import Dispatcher, QueuedItem

    works = [QueuedItem(None, length_s, print, 0) for length_s in (5.0, 30.0)]
    assert Dispatcher(None, None, None, "", None)._limit_s(works) == 60 * 2 * 30
    assert Dispatcher(None, None, None, "", None)._limit_s(works[:1]) == 600
    assert Dispatcher(None, None, 2.5, "", None)._limit_s(works) == 2.5


@pytest.mark.parametrize("codec, slow_s, count", [("unprocessed", 99, 1), ("unprocessed", 0, 3), ("g711-ulaw", 99, 3)])
def test_a_cheap_run_starts_its_other_workers_only_when_it_is_slow(run_it, monkeypatch, codec, slow_s, count):
    monkeypatch.setattr(engine_run, "SLOW_S", slow_s)
    monkeypatch.setattr(engine_run, "SHORT_S", 99)
    starts = []
    monkeypatch.setattr(Pool, "_start", lambda *a, start=Pool._start, **k: starts.append(1) or start(*a, **k))
    run = run_it(codec=codec, data="embedded", metrics="si_sdr", limit=3, workers=3)
    assert run.counts()["items"] == 3
    assert len(starts) == count


def test_work_left_counts_each_sample_once_to_read_and_each_item_to_score():
    reading, metrics, unknown = (StageState(StageSpec(k, k, ()), "cpu", 1.0, False, False) for k in (READING, "m", "n"))
    reading.items, reading.audio_s, reading.busy_s, reading.steps = 50, 50.0, 2.0, {"load": 1.0}
    metrics.items, metrics.audio_s, metrics.busy_s = 40, 80.0, 4.0
    unknown.items, unknown.audio_s, unknown.busy_s = 1, 1.0, 0.05
    stages = {READING: reading, "m": metrics, "n": unknown}
    assert estimate_left_s(stages, 400, 2) == pytest.approx(150 * 0.02 + 360 * 0.1)
    assert estimate_left_s(stages, 10, 2) == 0


def test_a_worker_starts_for_each_two_seconds_of_work_left(monkeypatch):
    pool = SimpleNamespace(longest_batch_s=0.0, spare=5, workers=[1, 2])
    engine = SimpleNamespace(
        _pool=pool, _dispatcher=SimpleNamespace(stages={}), plan=SimpleNamespace(systems=[SimpleNamespace()])
    )
    for left_s, count in ((1.9, 0), (3.9, 0), (4.1, 1), (9.0, 3), (99.0, 5)):
        monkeypatch.setattr(engine_run, "estimate_left_s", lambda *_, left_s=left_s: left_s)
        assert Engine._count_due_workers(engine, 100) == count


def test_rows_that_fail_at_once_wait_for_no_worker(run_it, monkeypatch):
    waits = []
    events = Pool.events

    def recorded(self, timeout_s):
        waits.append(timeout_s if not self.busy else 0.0)
        return events(self, timeout_s)

    monkeypatch.setattr(Pool, "events", recorded)
    rows = Source("rows", [Sample(f"row-{k}", None) for k in range(1000)])
    run = run_it(codec="g711-ulaw", data=rows, metrics="si_sdr")
    assert run.counts()["failed_items"] == 1000
    assert len(waits) > 10 and sum(waits) <= 1.0, waits


def test_a_second_process_is_refused(tmp_path):
    writer = RunWriter(tmp_path / "run", {"a": 1})
    try:
        with refuses("run_locked"):
            RunWriter(tmp_path / "run", {"a": 1})
    finally:
        writer.close()
    RunWriter(tmp_path / "run", {"a": 1}).close()


def test_another_configuration_is_refused_and_the_difference_named(run_it):
    requested = {"codec": "g711-ulaw", "data": "embedded", "metrics": "si_sdr", "limit": 2}
    run_it(**requested)
    for change, says in (
        ({"metrics": "stoi"}, {"code": "other_settings", "differences": Containing("si_sdr was si_sdr")}),
        ({"codec": "opus-24k"}, {"code": "other_settings", "differences": Containing("g711-ulaw")}),
        ({"seed": 1}, {"code": "other_settings", "differences": Containing("seed was 0, now 1")}),
        ({"limit": 1}, {"code": "limit_lowered", "before": 2, "unit": "sample", "limit": 1}),
    ):
        with refuses(**says):
            run_it(**{**requested, **change})


@pytest.mark.parametrize(
    "requested, says",
    [
        ({"metrics": "stio"}, {"code": "unknown_name", "name": "stio", "hint": "stoi"}),
        ({"codec": "opsu-12k"}, {"code": "unknown_name", "name": "opsu-12k", "hint": "opus-12k"}),
        ({"metrics": "stoi,stoi"}, {"code": "metric_named_twice", "metric": "stoi"}),
        ({"codec": "g711-ulaw,g711-ulaw"}, {"code": "named_twice", "systems": Containing("g711-ulaw")}),
        ({"data": "/nowhere/at/all"}, {"code": "no_data", "path": "/nowhere/at/all"}),
        ({"device": "cuda:17"}, {"code": "no_device", "device": "cuda:17"}),
        ({"options": {"utmos": {"weights": "x"}}}, {"code": "unknown_name", "name": "utmos"}),
        ({"metrics": ""}, {"code": "no_metric_named"}),
        ({"save_audio": "some"}, {"code": "save_audio_value", "value": "some"}),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(run_it, tmp_path, requested, says):
    with refuses(**says):
        run_it(**{"codec": "g711-ulaw", "data": "embedded", "metrics": "si_sdr", "limit": 2, **requested})
    assert not (tmp_path / "run" / "run.sqlite").exists()


def test_a_codec_without_facts_is_refused_before_anything_runs(run_it, custom_file, tmp_path):
    with refuses("codec_info"):
        run_it(codec=custom_file("NoInfo"), data="embedded", metrics="si_sdr", limit=2)
    assert not (tmp_path / "run" / "run.sqlite").exists()


def test_features_are_computed_once_and_reused(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    requested = {
        "codec": "unprocessed,g711-ulaw",
        "data": "embedded",
        "metrics": "sim[ge2e]",
        "limit": 4,
        "page": False,
        "workers": 2,
    }
    first = evaluate(out=tmp_path / "a", **requested)  # two workers, which must not both compute one
    # The unprocessed row and every reference share one embedding each: 4 references and 4 estimates, not 16.
    assert first.meta["timings"]["cache"] == {"hits": 0, "misses": 8}
    second = evaluate(out=tmp_path / "b", **{**requested, "workers": 1})
    assert second.meta["timings"]["cache"] == {"hits": 8, "misses": 0}
    assert [s.value for s in first.scores()] == [s.value for s in second.scores()]


def test_failed_items_can_be_run_again(run_it, custom_file, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_TEST_MARKER", str(tmp_path / "marker"))
    requested = {
        "codec": f"unprocessed,{custom_file('NeedsMarker')}",
        "data": "embedded",
        "metrics": "mel_distance",
        "limit": 3,
    }
    first = run_it(**requested)
    assert [s.status for s in first.scores()] == ["ok"] * 3 + ["failed"] * 3
    (tmp_path / "marker").touch()
    assert [s.status for s in run_it(**requested).scores()] == ["ok"] * 3 + ["failed"] * 3, "only when asked for"
    again = run_it(**requested, retry_failed=True)
    assert [s.status for s in again.scores()] == ["ok"] * 6
    assert again.meta["timings"]["items"] == 3


def test_it_can_be_called_from_a_thread_and_twice_at_once(run_it, same):
    runs = {}

    def go(name):
        runs[name] = run_it(out=name, codec="g711-ulaw", data="embedded", metrics="si_sdr", limit=4, workers=1)

    threads = [threading.Thread(target=go, args=(n,)) for n in "ab"]
    [t.start() for t in threads]
    [t.join() for t in threads]
    counts = [r.counts()["finished"] for r in runs.values()]
    assert counts == [4, 4]


def test_weights_of_ones_own_are_another_protocol(tmp_path):
    import importlib.util
    import shutil

    from codec_bench.engine.plan import build_plan

    folder = tmp_path / "mine"
    spec = importlib.util.find_spec("speechmos")
    shutil.copytree(next(iter(spec.submodule_search_locations)) + "/dnsmos_models", folder)
    plain = build_plan(["unprocessed"], ["dnsmos_ovrl"], {})
    mine = build_plan(["unprocessed"], ["dnsmos_ovrl"], {"dnsmos": {"weights": str(folder)}})
    assert plain.metrics["dnsmos_ovrl"].protocol == "dnsmos/speechmos"
    assert mine.metrics["dnsmos_ovrl"].protocol == "dnsmos/speechmos/weights=mine"
    assert plain.features["dnsmos"].cache_id != mine.features["dnsmos"].cache_id
