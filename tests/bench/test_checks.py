"""The check of every bench fails on an error that is planted in what it times, and passes without one."""

from __future__ import annotations

import asyncio
import importlib
import math
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import common
import numpy as np
import pytest

from codec_bench.types import Score

BENCHES = {path.stem for path in Path(common.__file__).parent.glob("bench_*.py")}
ERRORS = [0.3, math.nan]
"""What is added to one number of the implementation under test; 0 adds nothing."""


class Reached(Exception):
    """The bench found no error, and goes on to time."""


@pytest.fixture
def bench(monkeypatch):
    """Loads a bench that cannot write rows, and that stops when it begins to time."""
    monkeypatch.setattr(sys, "argv", ["bench"])
    monkeypatch.setattr(common, "append_rows", None)
    monkeypatch.delenv("CODEC_BENCH_TEST_RECORDINGS", raising=False)

    def load(name: str):
        module = importlib.import_module(name)
        for timing in ("interleaved", "race"):
            if hasattr(module, timing):
                monkeypatch.setattr(module, timing, reached)
        return module

    return load


def reached(*args, **options):
    raise Reached


def passes(call, *args, **options) -> None:
    """The check lets this pass: it returns, or the bench begins to time."""
    try:
        call(*args, **options)
    except Reached:
        return


def fails(call, *args, **options) -> None:
    """The check stops the bench here."""
    with pytest.raises((SystemExit, ValueError)) as stopped:  # a ValueError where one side has fewer items
        call(*args, **options)
    assert stopped.value.code not in (None, 0) if isinstance(stopped.value, SystemExit) else True


def test_every_bench_has_a_planted_error():
    here = Path(__file__).read_text("utf-8")
    here += Path(__file__).with_name("test_coverage.py").read_text("utf-8")
    assert {name for name in BENCHES if f'bench("{name}")' not in here and f"from {name}" not in here} == set()


def test_distances_that_are_no_numbers_or_none_at_all_fail():
    assert common.worst([(1.0, 1.0), (2.0, 2.5)], 0.5, "x") == 0.5
    for pairs in (
        [],
        [(1.0, 1.6)],
        [(1.0, math.nan)],
        [(math.nan, 1.0)],
        [(1.0, 1.0), (1.0, math.nan)],
        [(1.0, math.inf)],
    ):
        fails(common.worst, pairs, 0.5, "x")
    fails(common.worst, [(np.zeros(3), np.zeros(2))], 0.5, "x")
    fails(common.worst, [(np.zeros(2), np.array([0.0, math.nan]))], math.inf, "x")


# --- codecs: codes and waves


def coded(error: float = 0.0, flips: int = 0, fewer: int = 0):
    """Codes and waves of two items, with an error in the second's."""
    codes = [[np.arange(40).reshape(4, 10)], [np.arange(60).reshape(4, 15)]]
    waves = [np.zeros((1, 100), np.float32), np.ones((1, 150), np.float32)]
    codes[1][0].ravel()[:flips] += 1
    waves[1][0, 70] += error
    waves[1] = np.pad(waves[1], ((0, 0), (0, 10)))[:, : 150 - fewer]
    return codes, waves


def test_codes_and_waves():
    passes(common.codes_and_waves, *coded(), coded())
    passes(common.codes_and_waves, *coded(flips=1), coded())  # a near tie
    codes, waves = coded()
    codes[1][0][:, 7] += 1  # the same tie, as the later codebooks of its frame see it
    passes(common.codes_and_waves, codes, waves, coded())
    passes(common.codes_and_waves, *coded(fewer=8), coded(), fewer_samples=8)
    for planted in (coded(0.01), coded(math.nan), coded(flips=2), coded(fewer=9), coded(fewer=-1)):
        fails(common.codes_and_waves, *planted, coded(), fewer_samples=8 if planted[1][1].shape[1] != 150 else 0)
    codes, waves = coded()
    fails(common.codes_and_waves, codes[:1], waves[:1], coded())
    fails(common.codes_and_waves, [codes[0], [codes[1][0][:, :-1]]], waves, coded())
    for item in codes:
        item[0][0, 0] += 1
    fails(common.codes_and_waves, codes, waves, coded())


class Doubling:
    """A codec whose codes are its samples; in batches its waves are `error` away from those alone."""

    info = SimpleNamespace(sample_rates_hz=(8_000,), channels=(1,), nominal_bitrate_bps=6_000.0, frame_rate_hz=75.0)
    batch_s = 100.0
    error = 0.0

    def encode(self, items):
        self.together = len(items)
        return [
            SimpleNamespace(streams=[SimpleNamespace(values=np.round(a.samples * 99).astype(int))], a=a) for a in items
        ]

    def decode(self, codes):
        from codec_bench import Audio

        error = self.error if len(codes) > 1 else 0.0
        return [Audio(np.where(c.a.samples > 2, 0, c.a.samples + np.float32(error)), 8_000) for c in codes]


def two_items():
    from codec_bench import Audio

    return [Audio(np.full((1, size), 0.25, np.float32), 8_000) for size in (400, 500)]


@pytest.mark.parametrize("error", [0.0, *ERRORS])
def test_codecs(bench, monkeypatch, error):
    codec = Doubling()
    codec.error = error
    options = SimpleNamespace(device="cpu", full=False, utterances=2, threads=1, repeats=1)
    module = bench("bench_codecs")
    monkeypatch.setattr(module, "load_codec", lambda *args, **details: codec)
    monkeypatch.setattr(module, "utterances", lambda *args: [item.samples for item in two_items()])
    alone = module.as_arrays(*module.ours(codec, two_items(), [[0], [1]]))
    monkeypatch.setattr(module, "transformers", lambda *args: alone)
    (passes if error == 0 else fails)(module.measure, "encodec", options)


def test_quantisers(bench, monkeypatch):
    import torch

    module = bench("bench_rvq")
    expected = torch.zeros(1, 8, 1_000, dtype=torch.long)
    one, two = expected.clone(), expected.clone()
    one[0, 3, 5], two[0, 3, 5:7] = 1, 1
    passes(common.same_codes, module.streams(one), module.streams(expected))
    fails(common.same_codes, module.streams(two), module.streams(expected))
    fails(common.same_codes, module.streams(expected[:, :7]), module.streams(expected))

    monkeypatch.setattr(module, "CASES", (("x", "encodec", 75.0, 4, 8),))
    options = SimpleNamespace(device="cpu", items=1, seconds=13.4, threads=1)
    monkeypatch.setattr(common, "parse_options", lambda *args, **details: options)
    monkeypatch.setattr(module, "product_rate", lambda device: 1.0)
    monkeypatch.setattr(module, "quantizer", lambda family: torch.nn.Identity())
    monkeypatch.setattr(module, "theirs", lambda *args: expected)
    monkeypatch.setattr(module, "operations", reached)
    for codes in (expected, two):
        planted = SimpleNamespace(
            adopt=lambda net: None, search=lambda *args, c=codes: SimpleNamespace(value=c, implementation="x")
        )
        monkeypatch.setattr(module, "dispatch", planted)
        (passes if codes is expected else fails)(module.main)


# --- metrics


def speech(*args):
    return "noise", [np.random.default_rng(seed).normal(0, 0.1, 17_000).astype(np.float32) for seed in (0, 1)]


@pytest.mark.parametrize("error", [0.0, *ERRORS, None])
def test_stoi(bench, monkeypatch, error):
    module = bench("bench_stoi")
    monkeypatch.setattr(module, "clips", speech)
    real = module.build_metric("stoi")

    def compute(items):
        scores = real.compute(items)
        last = None if error is None else scores[-1].value + error
        return [*scores[:-1], SimpleNamespace(value=last)]

    monkeypatch.setattr(module, "build_metric", lambda name: SimpleNamespace(compute=compute))
    (passes if error == 0 else fails)(module.main)


@pytest.mark.parametrize("error", [0, 1])
@pytest.mark.parametrize("name", ["error_rate", "error_rates"])
def test_error_rate(bench, monkeypatch, name, error):
    module = bench("bench_error_rate")
    monkeypatch.setattr(sys, "argv", ["bench", "--words", "200", "--utterances", "20"])
    real = getattr(module, name)

    def planted(**options):
        result = real(**options)
        several = result if isinstance(result, list) else [result]
        wrong = SimpleNamespace(
            **{n: getattr(several[-1], n) for n in ("hits", "substitutions", "deletions", "insertions")}
        )
        wrong.substitutions += error
        return [*several[:-1], wrong] if isinstance(result, list) else wrong

    monkeypatch.setattr(module, name, planted)
    (passes if error == 0 else fails)(module.main)
    if name == "error_rates":
        monkeypatch.setattr(module, name, lambda **options: real(**options)[:-1])
        fails(module.main)


@pytest.mark.parametrize("error", [0.0, *ERRORS])
def test_dnsmos(bench, monkeypatch, error):
    module = bench("bench_dnsmos")
    right = dict.fromkeys(module.SCORES, 3.0)
    planted = [{**right, "windows": 1}, {**right, "bak": 3.0 + error, "windows": 1}]
    theirs = [{f"{name}_mos": value for name, value in right.items()}] * 2
    monkeypatch.setattr(module, "clips", speech)
    monkeypatch.setattr(module, "ours", lambda threads: lambda signals: planted[-len(signals) :])
    monkeypatch.setattr(module, "speechmos", lambda threads: lambda signals: theirs[: len(signals)])
    (passes if error == 0 else fails)(module.main)


# --- recognisers, speakers, naturalness


def test_visqol(bench):
    module = bench("bench_visqol")
    right = np.array([3.0, 3.5])
    passes(module.compare, right, right + 1e-7)
    for wrong in (np.array([3.0, 3.501]), np.array([3.0, math.nan]), right[:1]):
        fails(module.compare, right, wrong)
    fails(module.compare, np.ones(2), np.ones(2))


def test_metrics(bench):
    module = bench("bench_metrics")
    right = [{"stoi": Score.ok(0.9, "p")}, {"stoi": Score.ok(0.8, "p")}, {"stoi": Score.undefined("too short", "p")}]
    passes(module.check, "stoi", right)
    refused = {"stoi": Score.undefined("silent", "p")}
    fails(module.check, "stoi", [refused, refused, right[0]])
    fails(module.check, "stoi", [])


@pytest.mark.parametrize("error", [0.0, *ERRORS])
def test_model_scorers(bench, error):
    module = bench("bench_model_scorers")
    for scorer in module.SCORERS:
        (passes if error == 0 else fails)(
            module.compare, {"wer": [(0.5, 0.5)], scorer: [(0.5, 0.5), (0.5, 0.5 + error)]}, exact=True
        )
    (fails if math.isnan(error) else passes)(module.compare, {"sim": [(0.5, 0.5 + error)]}, exact=False)


# --- whole runs


@pytest.mark.parametrize("error", [0.0, *ERRORS, None])
def test_evaluate(bench, error):
    module = bench("bench_evaluate")
    parts = {"sig_mos": 3.0, "bak_mos": 3.0, "ovrl_mos": 3.0, "p808_mos": 3.0}
    plain = {
        "wer": 0.25,
        "rows": [
            {"id": "a", "pesq_wb": None, "stoi": 1e-5, "dnsmos": parts},
            {"id": "b", "pesq_wb": 2.0, "stoi": 0.9, "dnsmos": parts},
        ],
    }
    by_name = {("a", "pesq_wb"): None, ("a", "stoi"): None, ("b", "pesq_wb"): 2.0, ("b", "stoi"): 0.9}
    by_name |= {(id, f"dnsmos_{item}"): 3.0 for id in "ab" for item in ("sig", "bak", "ovrl", "p808")}
    passes(module.compare, by_name, 0.25, plain)
    for key in (("b", "pesq_wb"), ("b", "stoi"), ("a", "dnsmos_p808")):
        value = None if error is None else by_name[key] + error
        (passes if error == 0 else fails)(module.compare, {**by_name, key: value}, 0.25, plain)
    (passes if error == 0 else fails)(module.compare, by_name, None if error is None else 0.25 + error, plain)
    fails(module.compare, {**by_name, ("a", "stoi"): 0.5}, 0.25, plain)


def test_records(bench, tmp_path, capsys):
    module = bench("bench_records")
    measured = module.measured(tmp_path, 20)
    assert measured["SQLite"][0] > 0 and "MiB" in measured["compare"][2]
    (_, record), (_, parquet) = module.from_record(tmp_path / "run"), module.from_parquet(tmp_path / "rows.parquet")
    passes(module.check, record, parquet, 20)
    fails(module.check, record, parquet + 1e-12, 20)
    fails(module.check, record[:19], parquet[:19], 20)
    fails(module.check, np.where(np.arange(20) == 3, math.nan, record), parquet, 20)
    fails(common.in_own_process, common.MAIN, "report", tmp_path / "nothing")


def test_million(bench, tmp_path):
    module = bench("bench_million")
    scores = [(system, metric, sample, 0.5 * metric) for system in (0, 1) for metric in (0, 1, 2) for sample in (0, 1)]

    def record(out, items=4, scores=scores, status="ok"):
        out.mkdir()
        with sqlite3.connect(out / "run.sqlite") as db:
            db.execute("CREATE TABLE items (status)")
            db.execute("CREATE TABLE scores (system, metric, sample, value, status)")
            db.executemany("INSERT INTO items VALUES (?)", [("ok",)] * items)
            db.executemany("INSERT INTO scores VALUES (?, ?, ?, ?, ?)", [(*score, status) for score in scores])
        return out

    passes(module.check, record(tmp_path / "good"), 2)
    fails(module.check, record(tmp_path / "fewer", items=3), 2)
    fails(module.check, record(tmp_path / "without", scores=scores[1:]), 2)
    fails(module.check, record(tmp_path / "failed", status="failed"), 2)
    module.CLIPS = 1  # both samples are links to one clip
    fails(module.check, record(tmp_path / "different", scores=[*scores[:-1], (1, 2, 1, 0.7)]), 2)


# --- models


@pytest.mark.parametrize("error", ERRORS)
def test_start(bench, monkeypatch, tmp_path, error):
    module = bench("bench_start")
    monkeypatch.setattr(module, "used", lambda *command, **variables: (1.0, 1.0, "20.0"))
    for shift, expected in ((0.0, passes), (error, fails)):
        monkeypatch.setattr(module, "mean_of", lambda run, shift=shift: 20.0 + shift)
        expected(module.score, tmp_path / str(shift), 1, 1)


@pytest.mark.parametrize("error", ERRORS)
def test_peers(bench, monkeypatch, error):
    module = bench("bench_peers")
    clip = np.random.default_rng(0).normal(0, 0.1, module.RATE_HZ).astype(np.float32)
    pairs = [(clip, np.round(clip * 8).astype(np.float32) / 8)]
    case = "si_sdr, torchmetrics"
    passes(module.compare, case, pairs, "noise", 1)
    metric, package, peer, tolerance = module.PEERS[case]
    monkeypatch.setitem(
        module.PEERS, case, (metric, package, lambda pairs: [value + error for value in peer(pairs)], tolerance)
    )
    fails(module.compare, case, pairs, "noise", 1)


def test_peers_of_whisper(bench, monkeypatch):
    module = bench("bench_peers")
    import whisper_folder

    monkeypatch.setitem(whisper_folder.SIZES, "tiny", whisper_folder.SIZES["reduced"])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    rng, build = np.random.default_rng(0), module.load_feature
    signals = [rng.normal(0, 0.1 * level, module.RATE_HZ).astype(np.float32) for level in (1, 2)]
    passes(module.whisper, signals, "noise", 1)

    def other(name, *, weights):
        feature = build(name, weights=weights)
        right = feature.compute
        feature.compute = lambda *arguments: [
            one | {"transcript": one["transcript"] + " w1"} for one in right(*arguments)
        ]
        return feature

    monkeypatch.setattr(module, "load_feature", other)
    fails(module.whisper, signals, "noise", 1)


def test_device(bench, monkeypatch):
    module = bench("bench_device")
    import simulated_device

    monkeypatch.setattr(common, "append_rows", lambda *rows: None)
    outcome = simulated_device.Outcome(1.0, 0.5, 0.1, 6000, 0, {})
    for failed, expected in ((0, passes), (1, fails)):
        monkeypatch.setattr(simulated_device, "simulate", lambda run, n=failed: replace(outcome, failed=n))
        expected(module.main)


@pytest.mark.parametrize("right", [True, False])
def test_endpoint(bench, monkeypatch, right):
    module = bench("bench_endpoint")

    async def nothing():
        pass

    async def send_requests(model, requests, cache):
        for request in requests:
            yield request, SimpleNamespace(attempts=1, text="question 0" if not right else f"question {request.id[1:]}")

    model = SimpleNamespace(start=nothing, close=nothing)
    monkeypatch.setattr(module, "load_model", lambda *args: model)
    monkeypatch.setattr(module, "send_requests", send_requests)
    requests = [SimpleNamespace(id=f"q{n}") for n in range(3)]
    (passes if right else fails)(lambda: asyncio.run(module.ask("http://localhost", requests)))
