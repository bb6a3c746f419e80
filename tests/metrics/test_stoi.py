"""STOI and ESTOI are pystoi's, on real signals and at the edges, and obey what an intelligibility measure must."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pystoi import stoi as pystoi
from refusals import refuses

from codec_bench import Audio, load_metric
from codec_bench.audio.resample import prepare
from codec_bench.messages import Diagnostic
from codec_bench.metrics import Inputs, build_metric

MEASURES = pytest.mark.parametrize(("name", "tolerance"), [("stoi", 1e-6), ("estoi", 1e-4)])


def speech(seed, seconds=2.0, rate_hz=16_000):
    """Noise in bursts of a syllable, quiet between them."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(int(seconds * rate_hz)) / rate_hz
    return (0.1 * rng.standard_normal(time_s.size) * (0.02 + np.sin(2 * np.pi * 2 * time_s) ** 2)).astype(np.float32)


def oracle(reference, estimate, rate_hz, name):
    """pystoi's number, or None where it warns that there are too few frames."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = pystoi(reference, estimate, rate_hz, extended=name == "estoi")
    return None if any("Not enough STFT frames" in str(w.message) for w in caught) else value


def check_against_pystoi(pairs, name, tolerance):
    """Compares one by one; returns how many were compared and how many are undefined for both."""
    metric, compared, undefined = build_metric(name), 0, 0
    for pair in pairs:
        score = metric.compute([pair.inputs])[0]
        expected = oracle(pair.reference, pair.estimate, pair.rate_hz, name)
        if expected is None:
            assert score.status == "undefined" and "30 frames" in score.reason, pair.inputs.id
            undefined += 1
        else:
            assert score.value == pytest.approx(expected, abs=tolerance), pair.inputs.id
            compared += 1
    return compared, undefined


@pytest.mark.compares("stoi", "estoi", weights="none")
@MEASURES
def test_equals_pystoi_on_every_clip(spoken_pairs, name, tolerance):
    # One damage of each clip, in turn, and all of those that are cut.
    some = [pair for k, pair in enumerate(spoken_pairs(16_000)) if k % 2 == 0 or pair.reference.size < 8_000]
    compared, undefined = check_against_pystoi(some, name, tolerance)
    assert compared > 30 and undefined > 20  # clips of a third of a second are too short for both


@MEASURES
@pytest.mark.parametrize("rate_hz", [8_000, 10_000, 11_025, 22_050, 24_000, 44_100, 48_000])
def test_equals_pystoi_at_any_rate(name, tolerance, rate_hz):
    reference = speech(1, rate_hz=rate_hz)
    estimate = (reference + 0.02 * np.random.default_rng(2).standard_normal(reference.size)).astype(np.float32)
    score = build_metric(name).compute([Inputs("x", rate_hz, estimate, reference)])[0]
    assert score.value == pytest.approx(pystoi(reference, estimate, rate_hz, extended=name == "estoi"), abs=tolerance)


@pytest.mark.compares("stoi", "estoi", weights="none")
@MEASURES
def test_at_its_own_rate_a_file_has_pystois_number(spoken, name, tolerance):
    """Files of 8 kHz too: the recordings hold such files, and of the others a copy is made."""
    actual, usual = load_metric(f"{name}[own-rate]"), load_metric(name)
    seen, apart = set(), 0.0
    for number, (row, audio) in enumerate(spoken[::3]):
        rate_hz = audio.sample_rate_hz if number % 2 else 8_000
        reference = prepare(audio, rate_hz)
        noise = np.random.default_rng(number).normal(0, 0.3 * reference.std(), reference.size)
        estimate = np.clip(reference + noise, -1, 1).astype(np.float32)
        expected = oracle(reference, estimate, rate_hz, name)
        pair = {"reference": [Audio(reference, rate_hz)], "estimate": [Audio(estimate, rate_hz)]}
        (score,) = (scores[f"{name}[own-rate]"] for scores in actual(**pair))
        assert score.protocol == f"{name}/pystoi-0.4/own-rate"
        if expected is not None:
            seen.add(rate_hz)
            assert score.value == pytest.approx(expected, abs=tolerance), row["id"]
            if rate_hz == 8_000:
                apart = max(apart, abs(usual(**pair)[0][name].value - expected))
    assert {8_000, 16_000} <= seen
    # The metric at 16 kHz is another one for files of 8 kHz, which is why the variant exists.
    assert 10 * tolerance < apart < 0.05


def test_there_is_no_other_variant():
    with refuses("no_variant", variant="own"):
        build_metric("stoi[own]")


@MEASURES
def test_equals_pystoi_at_every_length_around_the_shortest(name, tolerance):
    metric, statuses = build_metric(name), set()
    rng = np.random.default_rng(3)
    for samples in range(6_000, 7_200, 37):
        reference = (0.1 * rng.standard_normal(samples)).astype(np.float32)
        estimate = (reference + 0.1 * rng.standard_normal(samples)).astype(np.float32)
        score = metric.compute([Inputs("x", 16_000, estimate, reference)])[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = pystoi(reference, estimate, 16_000, extended=name == "estoi")
        assert (score.status == "undefined") == (expected == 1e-5)
        if score.value is not None:
            assert score.value == pytest.approx(expected, abs=tolerance)
        statuses.add(score.status)
    assert statuses == {"ok", "undefined"}


@MEASURES
def test_a_score_does_not_depend_on_the_batch(spoken_pairs, name, tolerance):
    items = [pair.inputs for pair in spoken_pairs(16_000)][::2]
    metric = build_metric(name)
    alone = [metric.compute([item])[0].value for item in items]
    together = [score.value for score in metric.compute(items)]
    backwards = [score.value for score in metric.compute(items[::-1])][::-1]
    assert alone == together == backwards  # bit for bit


@MEASURES
def test_a_copy_is_best_and_gain_does_not_matter(spoken_pairs, name, tolerance):
    metric = build_metric(name)
    for pair in spoken_pairs(16_000)[::3]:
        copy, score, quiet = metric.compute(
            [
                Inputs("copy", 16_000, pair.reference, pair.reference),
                pair.inputs,
                Inputs("quiet", 16_000, pair.estimate * np.float32(0.25), pair.reference),
            ]
        )
        if copy.value is None:
            continue
        assert copy.value == pytest.approx(1.0, abs=1e-9)
        assert -1.0 <= score.value < copy.value
        assert quiet.value == pytest.approx(score.value, abs=1e-6)


@MEASURES
def test_more_noise_is_worse(name, tolerance):
    reference, noise = speech(4, 4.0), np.random.default_rng(5).standard_normal(64_000).astype(np.float32)
    items = [Inputs("x", 16_000, reference + level * noise, reference) for level in (0.003, 0.01, 0.03, 0.1, 0.3)]
    values = [score.value for score in build_metric(name).compute(items)]
    assert values == sorted(values, reverse=True)


@MEASURES
def test_signals_without_a_value_state_why(name, tolerance):
    metric, sound = build_metric(name), speech(6)
    silent, short, tiny = metric.compute(
        [
            Inputs("silent", 16_000, sound, np.zeros_like(sound)),
            Inputs("short", 16_000, sound[:800], sound[:800]),
            Inputs("tiny", 16_000, sound[:1], sound[:1]),
        ]
    )
    assert (silent.status, silent.reason) == ("undefined", Diagnostic("reference_silent"))
    assert short.status == tiny.status == "undefined" and short.reason.code == "stoi_too_short"
    assert {silent.protocol, short.protocol} == {metric.protocol}


@MEASURES
def test_mostly_silent_references_are_undefined(name, tolerance):
    reference = np.zeros(32_000, np.float32)
    reference[16_000:20_000] = speech(7)[:4_000]
    score = build_metric(name).compute([Inputs("x", 16_000, reference, reference)])[0]
    assert score.status == "undefined"


@MEASURES
def test_a_silent_estimate_scores_nothing(name, tolerance):
    reference = speech(8)
    score = build_metric(name).compute([Inputs("x", 16_000, np.zeros_like(reference), reference)])[0]
    assert score.value == 0.0


def test_stoi_equals_pystoi_where_the_estimate_drops_out():
    reference = speech(9, 4.0)
    estimate = reference.copy()
    estimate[20_000:44_000] = 0.0
    score = build_metric("stoi").compute([Inputs("x", 16_000, estimate, reference)])[0]
    assert score.value == pytest.approx(pystoi(reference, estimate, 16_000), abs=1e-6)


def test_estoi_is_the_mean_of_pystois_draws_where_the_estimate_drops_out():
    """In this case pystoi's number is random. Ours is always the same and lies in the middle of pystoi's values."""
    reference = speech(10, 4.0)
    estimate = reference.copy()
    estimate[20_000:44_000] = 0.0
    item = Inputs("x", 16_000, estimate, reference)
    values = {build_metric("estoi").compute([item])[0].value for _ in range(3)}
    assert len(values) == 1
    np.random.seed(0)
    draws = np.array([pystoi(reference, estimate, 16_000, extended=True) for _ in range(25)])
    assert draws.std() > 1e-4
    assert values.pop() == pytest.approx(draws.mean(), abs=5 * draws.std() / np.sqrt(draws.size))


@MEASURES
def test_views_and_read_only_signals_are_accepted(name, tolerance):
    """Signals as they come out of shared memory."""
    stereo = np.stack([speech(11), speech(12)], axis=1)
    item = Inputs("x", 16_000, stereo[:, 1], stereo[:, 0])
    frozen = Inputs("x", 16_000, stereo[:, 1].copy(), stereo[:, 0].copy())
    frozen.reference.flags.writeable = frozen.estimate.flags.writeable = False
    first, second = build_metric(name).compute([item, frozen])
    assert (
        first.value
        == second.value
        == pytest.approx(pystoi(stereo[:, 0], stereo[:, 1], 16_000, extended=name == "estoi"), abs=tolerance)
    )
