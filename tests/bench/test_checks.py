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
import torch

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
    monkeypatch.delenv("CODEC_BENCH_TEST_RECORDINGS", raising=False)

    def load(name: str):
        module = importlib.import_module(name)
        monkeypatch.setattr(module, "append_rows", None)
        if hasattr(module, "interleaved"):
            monkeypatch.setattr(module, "interleaved", reached)
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
    assert {name for name in BENCHES if f'bench("{name}")' not in here} == set()


def test_distances_that_are_no_numbers_or_none_at_all_fail():
    assert common.worst([(1.0, 1.0), (2.0, 2.5)], 0.5, "x") == 0.5
    assert common.worst([(100.0, 101.0)], 0.0, "x", relative=0.01) == 1.0
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
    options = SimpleNamespace(
        device="cpu", full=False, utterances=2, threads=1, repeats=1, weights="random", recordings=None
    )
    options.batches, options.seconds = [2], 1.0
    for module in (bench("bench_codecs"), bench("bench_masked_codecs"), bench("bench_encodec")):
        monkeypatch.setattr(module, "load_codec", lambda *args, **told: codec)
        monkeypatch.setattr(
            module, "utterances" if hasattr(module, "utterances") else "items_of", lambda *args: two_items()
        )
    codecs, masked, encodec = (
        importlib.import_module(f"bench_{name}") for name in ("codecs", "masked_codecs", "encodec")
    )
    alone = codecs.as_arrays(*codecs.ours(codec, two_items(), [[0], [1]]))
    monkeypatch.setattr(codecs, "transformers", lambda *args: alone)
    monkeypatch.setattr(codecs, "FlopCounterMode", reached)
    monkeypatch.setattr(
        encodec, "parsed", lambda *args, **told: SimpleNamespace(**vars(options), model="24khz", kbps=6)
    )
    codec._net = SimpleNamespace(state_dict=dict)
    net = SimpleNamespace(to=lambda device: None)
    monkeypatch.setattr(encodec, "package_net", lambda *args: net)
    monkeypatch.setattr(encodec, "package", lambda *args: alone)
    judged = passes if error == 0 else fails
    judged(codecs.measure, "encodec", options, 1.0)
    judged(masked.measure, "any", options)
    judged(encodec.main)


def test_quantisers(bench, monkeypatch):
    import torch

    module = bench("bench_rvq")
    expected = torch.zeros(1, 8, 1_000, dtype=torch.long)
    one, two = expected.clone(), expected.clone()
    one[0, 3, 5], two[0, 3, 5:7] = 1, 1
    passes(module.compare_codes, "x", one, expected)
    fails(module.compare_codes, "x", two, expected)
    fails(module.compare_codes, "x", expected[:, :7], expected)

    latents = torch.ones(1, 4, 1_000)
    monkeypatch.setattr(module, "CASES", (("x", "encodec", 75.0, 4, 8),))
    monkeypatch.setattr(
        module, "parsed", lambda *args, **told: SimpleNamespace(device="cpu", items=1, seconds=13.4, threads=1)
    )
    monkeypatch.setattr(module, "product_rate", lambda device: 1.0)
    monkeypatch.setattr(module, "quantizer", lambda family: torch.nn.Identity())
    monkeypatch.setattr(module, "theirs", lambda *args: expected)
    monkeypatch.setattr(module, "their_latents", lambda *args: latents)
    monkeypatch.setattr(module, "operations", lambda *args: 1.0)
    monkeypatch.setattr(module, "codebook_bytes", reached)
    for codes, error in ((expected, 0.0), (two, 0.0), (expected, 0.3), (expected, math.nan)):
        found = latents.clone()
        found[0, 1, 7] += error
        planted = SimpleNamespace(
            adopt=lambda net: None,
            search=lambda *args, c=codes: SimpleNamespace(value=c),
            lookup=lambda *args, f=found: SimpleNamespace(value=f),
        )
        monkeypatch.setattr(module, "dispatch", planted)
        (passes if codes is expected and error == 0 else fails)(module.main)


# --- sets


@pytest.mark.parametrize("error", [0.0, *ERRORS])
@pytest.mark.parametrize("state", ["FrechetSums", "KernelSample"])
def test_sets(bench, monkeypatch, state, error):
    """The error is planted in one of the two distances."""
    module = bench("bench_sets")
    monkeypatch.setattr(module, "CHECKED", (420, 8))
    monkeypatch.setattr(sys, "argv", ["bench", "--items", "64", "--dimensions", "4"])
    real = getattr(module, state)

    def planted(*given):
        made = real.of(*given)
        found = made.found()
        wrong = replace(found, value=found.value + error * abs(found.value))
        return SimpleNamespace(value=lambda: wrong.value, found=lambda: wrong)

    monkeypatch.setattr(module, state, SimpleNamespace(of=planted))
    (passes if error == 0 else fails)(module.main)


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
        found = real(**options)
        several = found if isinstance(found, list) else [found]
        wrong = SimpleNamespace(
            **{n: getattr(several[-1], n) for n in ("hits", "substitutions", "deletions", "insertions")}
        )
        wrong.substitutions += error
        return [*several[:-1], wrong] if isinstance(found, list) else wrong

    monkeypatch.setattr(module, name, planted)
    (passes if error == 0 else fails)(module.main)
    if name == "error_rates":
        monkeypatch.setattr(module, name, lambda **options: real(**options)[:-1])
        fails(module.main)


@pytest.mark.parametrize("error", [0.0, *ERRORS])
def test_ge2e(bench, monkeypatch, error):
    module = bench("bench_ge2e")
    right = np.full(256, 0.06)
    encoder = SimpleNamespace(embed_utterance=lambda signal: right)
    audio = SimpleNamespace(normalize_volume=lambda signal, level, increase_only: signal)
    package = SimpleNamespace(VoiceEncoder=lambda *args, **options: encoder, audio=audio)
    wrong = right.copy()
    wrong[3] += error
    planted = SimpleNamespace(compute=lambda signals: [{"embedding": right}, {"embedding": wrong}])
    monkeypatch.setattr(module, "clips", speech)
    monkeypatch.setattr(module, "resemblyzer", lambda: package)
    monkeypatch.setattr(module, "load_feature", lambda name: planted)
    (passes if error == 0 else fails)(module.main)


@pytest.mark.parametrize("error", [0.0, *ERRORS])
def test_dnsmos(bench, monkeypatch, error):
    module = bench("bench_dnsmos")
    right = dict.fromkeys(module.SCORES, 3.0)
    planted = [{**right, "windows": 1}, {**right, "bak": 3.0 + error, "windows": 1}]
    theirs = [{f"{name}_mos": value for name, value in right.items()}] * 2
    monkeypatch.setattr(module, "signals", lambda folder: dict(zip("ab", speech()[1])))
    monkeypatch.setattr(module, "ours", lambda threads: lambda clips: planted[-len(clips) :])
    monkeypatch.setattr(module, "speechmos", lambda threads: lambda clips: theirs[: len(clips)])
    monkeypatch.setattr(module, "products_per_second", lambda: 1.0)
    features = {name: SimpleNamespace(compute=lambda clips, f=found: f) for name, found in (("right", [planted[0]] * 2), ("wrong", planted))}  # fmt: skip
    named = lambda name, device=None: features["wrong" if "torch" in name else "right"]  # noqa: E731
    monkeypatch.setattr(module, "load_feature", named)
    monkeypatch.setattr(module, "_matrix_products_per_second", lambda device: 1.0)
    ways = module.ways
    judged = passes if error == 0 else fails
    monkeypatch.setattr(module, "ways", lambda clips: [])
    judged(module.main)
    monkeypatch.setattr(module, "interleaved", lambda calls, **options: {name: np.ones(1) for name in calls})
    judged(ways, speech()[1])


@pytest.mark.parametrize("planted", [1.0, 1.01, 0.0, math.nan])
def test_pitch(bench, monkeypatch, planted):
    module = bench("bench_pitch")
    time_s = np.arange(16_000) / 16_000
    tone = sum(np.sin(2 * np.pi * 150 * k * time_s) / k for k in range(1, 8)).astype(np.float32) * 0.1
    real = module.cpu.track
    monkeypatch.setattr(module.cpu, "track", lambda signal: real(signal) * planted)
    (passes if planted == 1 else fails)(module.check_praat, tone)
    if planted == 1:
        fails(module.check_praat, np.zeros(16_000, np.float32))  # nothing voiced: nothing compared


@pytest.mark.parametrize("error", [0, 1])
def test_rules(bench, monkeypatch, error):
    module = bench("bench_rules")
    made = module.utterances("de", 12)
    real = module.get_rule

    def planted(name):
        def compare(**options):
            pairs = list(real(name).compare(**options))
            pairs[-1] = SimpleNamespace(
                counts=SimpleNamespace(errors=pairs[-1].counts.errors + error * (name == module.NOW))
            )
            return pairs

        return SimpleNamespace(compare=compare)

    monkeypatch.setattr(module, "get_rule", planted)
    texts = [text for text, _ in made]
    (passes if error == 0 else fails)(module.check, "de", made, texts)
    monkeypatch.setattr(module, "get_rule", lambda name: SimpleNamespace(compare=lambda **options: []))
    fails(module.check, "de", made, texts)


@pytest.mark.parametrize("error", [0.0, *ERRORS])
def test_intervals(bench, monkeypatch, error):
    module = bench("bench_intervals")
    rng = np.random.default_rng(0)
    words = rng.integers(3, 41, 1_000).astype(float)
    a, b = (np.stack([rng.poisson(0.05 * words).astype(float), words], axis=1) for _ in range(2))
    judged = passes if error == 0 else fails
    mine, difference = (
        module.interval_of(module.ratios, a, None),
        module.paired_parts(module.ratios, a, b, None, seed=0),
    )
    for low, high in ((mine.low, mine.high + error), (mine.low + error, mine.high)):
        found = SimpleNamespace(low=low, high=high)
        monkeypatch.setattr(module, "interval_of", lambda *args, f=found, **options: f)
        judged(module.compare, a, b, None)
    monkeypatch.setattr(module, "interval_of", lambda *args, **options: mine)
    found = SimpleNamespace(low=difference.low, high=difference.high + error, p=difference.p)
    monkeypatch.setattr(module, "paired_parts", lambda *args, **options: found)
    judged(module.compare, a, b, None)
    found.high, found.p = difference.high, 0.0 if error else difference.p
    judged(module.compare, a, b, None)


@pytest.mark.parametrize("error", [0, *ERRORS])
def test_agreement(bench, monkeypatch, error):
    """The error is planted in one coefficient, and then in the end of its interval."""
    module = bench("bench_agreement")
    first, second = module.ratings(True, 2_000)
    found = module.agreement_of(reference=first, rater=second, codes=None)
    judged = passes if error == 0 else fails
    for name in module.PEERS:
        mine = found.coefficients[name]
        for wrong in (replace(mine, value=mine.value + error), replace(mine, high=mine.high - error)):
            held = replace(found, coefficients={**found.coefficients, name: wrong})
            monkeypatch.setattr(module, "agreement_of", lambda h=held, **options: h)
            judged(module.compare, first, second)


# --- recognisers, speakers, naturalness


def test_whisper(bench):
    module = bench("bench_whisper")
    passes(module.compare, [[1, 2], [3]], [[1, 2], [3]], exact=True)
    passes(module.compare, [[1, 2], [4]], [[1, 2], [3]], exact=False)
    for found, expected in (([[1, 2], [4]], [[1, 2], [3]]), ([[1, 2]], [[1, 2], [3]]), ([[], []], [[], []])):
        fails(module.compare, found, expected, exact=True)


def test_paraformer(bench):
    module = bench("bench_paraformer")
    passes(module.compare, ["a", "b"], ["a", "b"], 0)
    for found, expected in ((["a", "c"], ["a", "b"]), (["a"], ["a", "b"]), (["", ""], ["", ""])):
        fails(module.compare, found, expected, 0)


def test_pocketsphinx(bench):
    module = bench("bench_pocketsphinx")
    passes(module.compare, ["a b", ""], ["a b", ""])
    for found, expected in ((["a b", "c"], ["a b", ""]), (["a b"], ["a b", ""]), (["", ""], ["", ""])):
        fails(module.compare, found, expected)


def test_utmos(bench):
    module = bench("bench_utmos")
    right = np.array([3.0, 3.5])
    passes(module.compare, {"one by one": right, "batched": right + 1e-6}, right)
    for wrong in (np.array([3.0, 3.501]), np.array([3.0, math.nan])):
        fails(module.compare, {"one by one": right, "batched": wrong}, right)
    fails(module.compare, {"one by one": np.ones(2), "batched": np.ones(2)}, np.ones(2))
    fails(module.compare, {"batched": right}, np.array([3.0, math.nan]))


def test_references(bench):
    module = bench("bench_references")
    right = [np.array([3.0]), np.array([3.5])]
    passes(module.compare, right, [right[0] + 1e-7, right[1]], 1e-4, "a measure")
    for wrong in ([right[0], np.array([3.501])], [right[0], np.array([math.nan])], right[:1], [right[0], np.ones(2)]):
        fails(module.compare, wrong, right, 1e-4, "a measure")
    fails(module.compare, [right[0]] * 2, [right[0]] * 2, 1e-4, "a measure")


def test_products(bench):
    module = bench("bench_products")
    rows, weight, bias = torch.randn(4, 8), torch.randn(6, 8), torch.randn(6)
    right = rows @ weight.T + bias
    passes(module.compare, right, rows, weight, bias, "a product")
    wrong = right.clone()
    wrong[1, 2] += 0.01
    lost = right.clone()
    lost[0, 0] = math.nan
    for found in (wrong, lost, right[:2], right - bias):
        fails(module.compare, found, rows, weight, bias, "a product")


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


def test_precision(bench):
    module = bench("bench_precision")
    limits = module.PROMISED["float16"]
    rng = np.random.default_rng(0)
    right = [*rng.normal(0, 1, (6, 8))]
    passes(module.drifts, right, [x * (1 + 1e-6) for x in right], limits, "x")
    scores = np.array([3.0, 3.5])
    passes(module.drifts, scores, scores + 1e-3, limits, "x")
    for wrong in (right[:5], [*right[:5], right[5] + 0.3], [*right[:5], right[5] * math.nan]):
        fails(module.drifts, right, wrong, limits, "x")
    for wrong in (scores + 0.02, scores * math.nan, scores[:1]):
        fails(module.drifts, scores, wrong, limits, "x")
    fails(module.drifts, [right[0]] * 6, [right[0]] * 6, limits, "x")  # alike, so that nothing would be shown
    fails(module.drifts, np.ones(2), np.ones(2), limits, "x")


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_tensor_cores_multiply_as_torch_does(bench, kind):
    module = bench("bench_precision")
    torch, dtype = module.torch, getattr(module.torch, kind)
    torch.manual_seed(0)
    a, b, c = (torch.randn(2, 3, 16, 8).to(dtype), torch.randn(24, 8).to(dtype), torch.randn(4, 24).to(dtype))
    wave, taps = torch.randn(1, 8, 20).to(dtype), torch.randn(4, 8, 3).to(dtype)
    calls = (
        lambda: module.F.linear(a, b),
        lambda: a[0, 0] @ b.T,
        lambda: c.clone().addmm_(c[:, :8], b.T),
        lambda: module.F.conv1d(wave, taps),
        lambda: module.F.scaled_dot_product_attention(a, a, a, attn_mask=torch.zeros(2, 1, 1, 16, dtype=dtype)),
    )  # fmt: skip
    for call in calls:
        own = call()
        with module.TensorCores():
            found = call()
        assert found.dtype == own.dtype == dtype
        torch.testing.assert_close(found, own, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)


def test_wavlm_sv(bench):
    module = bench("bench_wavlm_sv")
    right = [np.array([1.0, -4.0]), np.array([2.0, 3.0])]
    passes(module.compare, "x", [right[0], right[1] + 1e-5], right, 1e-4)
    for wrong in (right[1] + [0, 0.01], np.array([math.nan, 3.0])):
        fails(module.compare, "x", [right[0], wrong], right, 1e-4)
    fails(module.compare, "x", right[:1], right, 1e-4)


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
    plain = {"wer": 0.25, "rows": [{"id": "a", "pesq_wb": None, "stoi": 1e-5, "dnsmos": parts}, {"id": "b", "pesq_wb": 2.0, "stoi": 0.9, "dnsmos": parts}]}  # fmt: skip
    found = {("a", "pesq_wb"): None, ("a", "stoi"): None, ("b", "pesq_wb"): 2.0, ("b", "stoi"): 0.9}
    found |= {(id, f"dnsmos_{part}"): 3.0 for id in "ab" for part in ("sig", "bak", "ovrl", "p808")}
    passes(module.compare, found, 0.25, plain)
    for key in (("b", "pesq_wb"), ("b", "stoi"), ("a", "dnsmos_p808")):
        value = None if error is None else found[key] + error
        (passes if error == 0 else fails)(module.compare, {**found, key: value}, 0.25, plain)
    (passes if error == 0 else fails)(module.compare, found, None if error is None else 0.25 + error, plain)
    fails(module.compare, {**found, ("a", "stoi"): 0.5}, 0.25, plain)


@pytest.mark.parametrize("error", [0.0, *ERRORS, None])
def test_example(bench, error):
    module = bench("bench_example")

    def entry(value, low, high):
        return {"value": value, "ci95": None if low is None else [low, high], "n": 0 if value is None else 4}

    def summary(**changed):
        own = {"stoi": entry(1.0, 1.0, 1.0), "si_sdr": entry(None, None, None), "pesq_wb": entry(4.64, None, None)}
        return {"failures": {"items": 0}, "systems": {"unprocessed": {"metrics": {**own, **changed}}}}

    passes(module.compare, summary())
    value = None if error is None else 1.0 + error
    planted = {"value": value, "ci95": None, "n": 4}
    (passes if error == 0 else fails)(module.compare, summary(stoi=planted))
    fails(module.compare, summary(pesq_wb=entry(4.6, 4.7, 4.8)))
    fails(module.compare, summary(pesq_wb=entry(4.6, math.nan, 4.8)))
    fails(module.compare, summary() | {"failures": {"items": 1, "reasons": []}})


@pytest.mark.parametrize("error", [0.0, *ERRORS, None])
def test_sweep(bench, error):
    module = bench("bench_sweep")
    apart = {"stoi": {"value": 0.9}, "si_sdr": {"value": 120.0}, "none": {"value": None}}
    for metric in ("stoi", "si_sdr"):
        value = None if error is None else apart[metric]["value"] + error
        (passes if error == 0 else fails)(module.compare, "x", {**apart, metric: {"value": value}}, apart)
    fails(module.compare, "x", {"stoi": {"value": 0.9}}, apart)


def test_engine(bench):
    module = bench("bench_engine")
    good = {"counts": {"failed_items": 0, "finished": 4}, "scores": 24, "good": 20, "none": 4}
    passes(module.compare, good, 4)
    for wrong in (
        {"good": 19},
        {"counts": {"failed_items": 1, "finished": 4}},
        {"counts": {"failed_items": 0, "finished": 3}},
        {"good": 4, "none": 20},
    ):
        fails(module.compare, {**good, **wrong}, 4)


def test_device_sim(bench):
    module = bench("bench_device_sim")
    good = importlib.import_module("device_sim").Outcome(100.0, 0.9, 5.0, 4, 0)
    passes(module.compare, good, 4)
    for wrong in ({"items": 3}, {"failed": 1}, {"busy": math.nan}, {"busy": 1.2}, {"wall_s": 4.0}):
        fails(module.compare, replace(good, **wrong), 4)


def test_startup(bench):
    module = bench("bench_startup")
    python = [sys.executable, "-S", "-c"]
    passes(module.call, "x", [*python, "pass"])
    fails(module.call, "x", [*python, "raise SystemExit(3)"])
    fails(module.call, "x", [*python, "pass", "--help"])  # a help that says nothing


def test_table(bench):
    module = bench("bench_table")
    whole = [0.1, 0.2, 10, 10, True, 900]
    passes(module.compare, "x", [whole, whole], 10, None)
    passes(module.compare, "x", [[0.1, 0.2, 10, 10, False, 900]], 10, 1)
    for wrong in ([0.1, 0.2, 9, 9, True, 900], [0.1, 0.2, 10, 9, True, 900], [0.1, 0.2, 10, 10, False, 900]):
        fails(module.compare, "x", [whole, wrong], 10, None)


def test_build(bench, tmp_path):
    from codec_bench import Audio
    from codec_bench.audio.encode import flac_bytes

    module = bench("bench_build")

    def spoken(number, sounds=None):
        sound = module.tone(number if sounds is None else sounds)
        flac = flac_bytes(Audio(sound[None], module.RATE_HZ))
        return {"id": f"{number}", "said": module.said(number), "audio": {"bytes": flac}}

    rows = [spoken(number) for number in range(12)]
    passes(module.check_spoken, rows, 12)
    fails(module.check_spoken, rows[:11], 12)
    fails(module.check_spoken, [*rows[:11], spoken(11, sounds=10)], 12)
    fails(module.check_spoken, [*rows[:10], rows[11], rows[10]], 12)
    module.PAIR_S, module.SOUNDS = 1.0, 2
    module.write_noise(tmp_path)
    _, compared = module.mixed(tmp_path, 2)
    assert compared == 1
    row, other = module.rows_of(tmp_path / "mixed-2")
    passes(module.check_mixed, [row, other], tmp_path, 2, 1)
    fails(module.check_mixed, [row], tmp_path, 2)
    fails(module.check_mixed, [row, {**other, "provenance": row["provenance"]}], tmp_path, 2, 1)
    fails(module.check_mixed, [row, {**other, "offset_s": other["offset_s"] + 1 / module.RATE_HZ}], tmp_path, 2, 1)


def test_merge(bench, tmp_path):
    module = bench("bench_merge")
    source = module.Source("made", [module.Sample(f"u{number}", None) for number in range(3)])
    fewer = module.Source("made", source.samples[:2])
    for name, data in (("whole", source), ("same", source), ("fewer", fewer)):
        module.write(tmp_path / name, data)
    passes(module.compare, tmp_path / "same", tmp_path / "whole")
    fails(module.compare, tmp_path / "fewer", tmp_path / "whole")
    with sqlite3.connect(tmp_path / "same" / "run.sqlite") as db:
        db.execute("UPDATE scores SET value = value + 1e-12 WHERE sample = 2 AND metric = 1 AND system = 0")
    fails(module.compare, tmp_path / "same", tmp_path / "whole")
    passes(module.timed_reading, tmp_path / "whole", 6)
    fails(module.timed_reading, tmp_path / "whole", 7)


def test_shards(bench):
    module = bench("bench_shards")
    whole = [("opus-12k", "a", "stoi", 0.5, "ok"), ("opus-12k", "b", "stoi", None, "failed")]
    passes(module.compare, list(whole), whole)
    for wrong in (whole[:1], [whole[0], (*whole[1][:3], 0.1, "ok")], []):
        fails(module.compare, wrong, whole)
    fails(module.compare, [], [])


def test_records(bench, tmp_path, capsys):
    module = bench("bench_records")
    found = module.measured(tmp_path, 20)
    assert found["SQLite"][0] > 0 and "MiB" in found["compare"][2]
    (_, record), (_, parquet) = module.from_record(tmp_path / "run"), module.from_parquet(tmp_path / "rows.parquet")
    passes(module.check, record, parquet, 20)
    fails(module.check, record, parquet + 1e-12, 20)
    fails(module.check, record[:19], parquet[:19], 20)
    fails(module.check, np.where(np.arange(20) == 3, math.nan, record), parquet, 20)
    fails(module.timed, "report", tmp_path / "nothing")


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

    assert module.check(record(tmp_path / "good"), 2) == 12
    fails(module.check, record(tmp_path / "fewer", items=3), 2)
    fails(module.check, record(tmp_path / "without", scores=scores[1:]), 2)
    fails(module.check, record(tmp_path / "failed", status="failed"), 2)
    module.CLIPS = 1  # both samples are links to one clip
    fails(module.check, record(tmp_path / "different", scores=[*scores[:-1], (1, 2, 1, 0.7)]), 2)


def test_site(bench, tmp_path):
    module = bench("bench_site")
    folders = [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(folders):
        module.write(folder, number, 6)
    made = importlib.import_module("codec_bench.api.site").site(folders, out=tmp_path / "site").folder
    site = module.SiteFolder(made)
    assert module.check(site, folders) == 2 * 2 * 6 * len(module.METRICS)
    assert module.first_page(site) > 50_000
    fails(module.check, site, folders[:1])
    key = site.keys()[0]
    scores = site.read_data(f"runs/{key}/values-1")
    board = next((made / "data" / "boards").glob("*.js")).stem
    rows = site.read_data(f"boards/{board}")
    for name, payload, cells in (
        (f"runs/{key}/values-1", scores, scores["systems"][0]["above"]),
        (f"boards/{board}", rows, rows["rows"][0]["cells"][1]),
    ):
        kept = cells[2]
        for wrong in [] if kept is None else [kept + 1e-3, None]:
            cells[2] = wrong
            site.write_data(name, payload)
            fails(module.check, site, folders)
        cells[2] = kept
        site.write_data(name, payload)
    passes(module.check, site, folders)


def test_cluster_sim(bench):
    module = bench("bench_cluster_sim")
    passes(module.check, "1/2", {"finished": 4, "failed_scores": 0}, 4)
    for wrong in ({"finished": 3, "failed_scores": 0}, {"finished": 4, "failed_scores": 1}):
        fails(module.check, "1/2", wrong, 4)


def test_ray(bench):
    module = bench("bench_ray")
    passes(module.compare, [("a", 1.0), ("b", 2.0)], [("a", 1.0), ("b", 2.0)])
    for wrong in ([("a", 1.0)], [("a", 1.0), ("b", 2.0000001)]):
        fails(module.compare, wrong, [("a", 1.0), ("b", 2.0)])
    fails(module.compare, [], [])


# --- models


@pytest.mark.parametrize("right", [True, False])
def test_endpoint(bench, monkeypatch, right):
    module = bench("bench_endpoint")

    async def nothing():
        pass

    async def ask_all(model, requests, cache):
        for request in requests:
            yield request, SimpleNamespace(attempts=1, text="question 0" if not right else f"question {request.id[1:]}")

    model = SimpleNamespace(start=nothing, close=nothing, client=SimpleNamespace(gate=SimpleNamespace(limit=64)))
    monkeypatch.setattr(module, "load_model", lambda *args: model)
    monkeypatch.setattr(module, "ask_all", ask_all)
    requests = [SimpleNamespace(id=f"q{n}") for n in range(3)]
    (passes if right else fails)(lambda: asyncio.run(module.ask("http://localhost", 1, requests)))


@pytest.mark.parametrize("error", [0.0, *ERRORS])
def test_runner(bench, error):
    module = bench("bench_runner")
    right = [(6 / 7, 7, 0), (0.1, 7, 0)]
    judged = passes if error == 0 else fails
    judged(module.compare, [right, [right[0], (0.1 + error, 7, 0)]], 7)
    judged(module.compare, [[(6 / 7 + error, 7, 0), right[1]]] * 2, 7)


@pytest.mark.parametrize("error", [0, *ERRORS])
def test_judging(bench, error):
    module = bench("bench_judging")
    ratings = {f"q{n}": float(module.worth(n)) for n in range(7)}
    judged = passes if error == 0 else fails
    judged(module.check, {**ratings, "q3": ratings["q3"] + error}, 7, "a judge")
    if error:
        fails(module.check, {**ratings, "q3": None}, 7, "a judge")
        fails(module.check, {id: value for id, value in ratings.items() if id != "q3"}, 7, "a judge")


def test_inprocess(bench):
    module = bench("bench_inprocess")

    def answer(text: str, status: str = "ok") -> SimpleNamespace:
        return SimpleNamespace(status=status, text=text, finish="stop", usage={"output_tokens": 2})

    passes(module.compare, [answer("a"), answer("b")], [answer("a"), answer("b")], exact=True)
    passes(module.compare, [answer("a")], [answer("b")], exact=False)
    fails(module.compare, [answer("a"), answer("b")], [answer("a"), answer("c")], exact=True)
    fails(module.compare, [answer("a"), answer("b")], [answer("a")], exact=True)
    fails(module.compare, [answer("a", "failed")], [answer("a", "failed")], exact=False)


def test_worker(bench):
    module = bench("bench_worker")
    sound = np.array([[0.5, -0.5, 0.0]], np.float32)
    passes(module.compare, "x", sound.tobytes(), sound)
    for wrong in (sound + np.float32(1e-7), sound * math.nan, sound[:, :-1]):
        fails(module.compare, "x", wrong.tobytes(), sound)


@pytest.mark.parametrize("error", [0, 1])
def test_ranking(bench, monkeypatch, error):
    module = bench("bench_ranking")
    case = module.Case(6, 5, 200)
    found, drawn = module.robustness(case.points), module.rank_draws(case.points.averages(), case.left_out())
    judged = passes if error == 0 else fails
    low, high = found[-1].leave_one_group_out
    for planted in ({"rank": found[-1].rank + error}, {"leave_one_group_out": (low, high + error)}):
        monkeypatch.setattr(module, "robustness", lambda points, p=planted: [*found[:-1], replace(found[-1], **p)])
        judged(module.check, case)
    monkeypatch.setattr(module, "robustness", lambda points: found)
    above = drawn.above.copy()
    above[0, 1] += 0.3 * error
    monkeypatch.setattr(module, "rank_draws", lambda *args, **options: replace(drawn, above=above))
    judged(module.check, case)
