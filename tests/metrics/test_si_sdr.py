"""SI-SDR equals torchmetrics' in double precision, and is undefined where only an epsilon gives that a value."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Audio, load_metric
from codec_bench.metrics import Inputs, build_metric
from codec_bench.metrics.si_sdr import CEILING_DB


def torchmetrics_db(reference, estimate, dtype=np.float64):
    import torch
    from torchmetrics.functional.audio import scale_invariant_signal_distortion_ratio

    sides = [torch.from_numpy(np.array(role, dtype)) for role in (estimate, reference)]
    return float(scale_invariant_signal_distortion_ratio(*sides))


def score(reference, estimate, rate_hz=16_000):
    return build_metric("si_sdr").compute([Inputs("x", rate_hz, estimate, reference)])[0]


def noise(seed, samples=16_000):
    return (0.1 * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


@pytest.mark.compares("si_sdr", weights="none")
def test_equals_torchmetrics_on_every_clip(spoken_pairs):
    pairs = spoken_pairs(None)
    assert len(pairs) > 30
    for pair in pairs:
        result = build_metric("si_sdr").compute([pair.inputs])[0]
        assert result.value == pytest.approx(torchmetrics_db(pair.reference, pair.estimate), abs=1e-4), pair.inputs.id
        # What people run is float32, whose epsilon and rounding show; on audible signals they stay small.
        assert result.value == pytest.approx(torchmetrics_db(pair.reference, pair.estimate, np.float32), abs=0.05)


@pytest.mark.parametrize("level_db", [-140, -59, 3, 58, 62, 139])
def test_every_level_is_as_precise_as_extended_precision(level_db):
    x = np.random.default_rng(5).standard_normal(52_001)
    y = x + 10 ** (-level_db / 20) * np.random.default_rng(6).standard_normal(x.size)
    reference, estimate = x.astype(np.longdouble), y.astype(np.longdouble)
    target = (estimate @ reference) / (reference @ reference) * reference
    expected = 10 * np.log10((target @ target) / ((target - estimate) @ (target - estimate)))
    assert score(x, y).value == pytest.approx(float(expected), abs=1e-6)


def test_the_reference_keeps_its_own_rate():
    assert build_metric("si_sdr").rate_hz is None


def test_a_score_does_not_depend_on_the_batch(spoken_pairs):
    items = [pair.inputs for pair in spoken_pairs(None)]
    metric = build_metric("si_sdr")
    alone = [metric.compute([item])[0].value for item in items]
    assert alone == [results.value for results in metric.compute(items)]
    assert alone == [results.value for results in metric.compute(items[::-1])][::-1]


@pytest.mark.parametrize("gain", [1e-3, 0.3, -1.0, 7.0])
def test_gain_does_not_matter(gain):
    reference, estimate = noise(1), noise(1) + noise(2)
    expected = score(reference, estimate).value
    assert score(reference, estimate * np.float32(gain)).value == pytest.approx(expected, abs=1e-4)
    assert score(reference * np.float32(gain), estimate).value == pytest.approx(expected, abs=1e-4)


def test_it_is_the_ratio_that_went_in():
    """Noise made orthogonal to the reference at a known ratio."""
    reference, other = noise(3).astype(np.float64), noise(4).astype(np.float64)
    other -= reference * (other @ reference) / (reference @ reference)
    other *= np.sqrt((reference @ reference) / (other @ other))
    for ratio_db in (-20.0, 0.0, 35.0):
        estimate = reference + other * 10 ** (-ratio_db / 20)
        assert score(reference, estimate).value == pytest.approx(ratio_db, abs=1e-9)


def test_a_very_good_estimate_is_not_held_down_by_an_epsilon():
    """A quiet signal stored at 16 bits: in float32, torchmetrics' epsilon of 1.2e-7 is most of the error's energy."""
    reference = noise(5) * np.float32(0.01)
    estimate = (reference + 3e-7 * np.random.default_rng(6).standard_normal(reference.size)).astype(np.float32)
    true_db = 10 * np.log10((reference.astype(float) ** 2).sum() / ((estimate - reference).astype(float) ** 2).sum())
    assert score(reference, estimate).value == pytest.approx(true_db, abs=1e-3)
    assert torchmetrics_db(reference, estimate, np.float32) < true_db - 10


@pytest.mark.parametrize("gain", [0.3, 0.9, 3.0, 1e-4, 0.1, -0.7])
@pytest.mark.parametrize("seed", [11, 12])
def test_a_copy_that_was_rounded_to_float32_has_no_value(gain, seed):
    """The bound is exact arithmetic: no rounding of a copy can lie below it, whatever the signal."""
    reference = noise(seed)
    estimate = reference * np.float32(gain)
    scaled = reference.astype(np.float64) * np.float64(np.float32(gain))
    errors = (estimate.astype(np.float64) - scaled) ** 2
    assert (errors <= 2.0**-48 * scaled**2).all()
    rounding_db = 10 * np.log10((scaled**2).sum() / errors.sum())
    assert CEILING_DB < 149 < rounding_db < 156
    result = score(reference, estimate)
    assert result.status == "undefined" and "rounding" in result.reason
    # Only rounding is excluded: a sixteen-bit copy of the same signal has its value.
    coarse = np.round(scaled * 32768) / 32768
    true_db = 10 * np.log10((scaled**2).sum() / ((coarse - scaled) ** 2).sum())
    if np.abs(coarse).max() > 0.01:
        assert score(reference, coarse).value == pytest.approx(true_db, abs=0.01)


@pytest.mark.parametrize(
    ("ratio_db", "status"), [(140.0, "ok"), (144.4, "ok"), (144.6, "undefined"), (170.0, "undefined")]
)
def test_values_end_at_the_ceiling(ratio_db, status):
    reference, other = noise(3).astype(np.float64), noise(4).astype(np.float64)
    other -= reference * (other @ reference) / (reference @ reference)
    other *= np.sqrt((reference @ reference) / (other @ other))
    estimate = reference + other * 10 ** (-ratio_db / 20)
    result = score(reference, estimate)
    assert result.status == status
    assert result.value == (pytest.approx(ratio_db, abs=1e-3) if status == "ok" else None)
    (versa,) = build_metric("si_sdr[versa]").compute([Inputs("x", 16_000, estimate, reference)])
    assert versa.value == pytest.approx(ratio_db, abs=0.1)
    assert (versa.protocol, result.protocol) == ("si_sdr/no-zero-mean", "si_sdr/no-zero-mean/uncut/float32-ceiling")


@pytest.mark.parametrize("role", ["reference", "estimate"])
def test_a_signal_beyond_full_scale_is_not_cut(role):
    signal = 4 * noise(8)
    coded = signal + 0.3 * noise(9)
    sides = {"reference": Audio(signal, 16_000), "estimate": Audio(coded, 16_000)}
    expected = torchmetrics_db(signal, coded)
    assert np.abs(signal).max() > 1.2
    quiet = {**sides, role: Audio(sides[role].samples / 8, 16_000)}
    for options in (sides, quiet):
        (scores,) = load_metric("si_sdr")(**{name: [audio] for name, audio in options.items()})
        assert scores["si_sdr"].value == pytest.approx(expected, abs=1e-4)
        (scores,) = load_metric("si_sdr[versa]")(**{name: [audio] for name, audio in options.items()})
        cut = [np.clip(options[name].samples[0], -1, 1) for name in ("reference", "estimate")]
        assert scores["si_sdr[versa]"].value == pytest.approx(torchmetrics_db(*cut), abs=1e-4)
        assert scores["si_sdr[versa]"].value != pytest.approx(expected, abs=0.01)


def test_there_is_one_variant():
    with refuses("no_variant", name="si_sdr", hint="si_sdr[versa]"):
        build_metric("si_sdr[files]")


def test_signals_without_a_value_state_why():
    sound, silence = noise(7), np.zeros(16_000, np.float32)
    for words, (reference, estimate) in {
        "the reference is silent": (silence, sound),
        "the estimate is silent": (sound, silence),
        "scaled copy": (sound, sound),
        "scaled copy of": (sound, sound * np.float32(-0.5)),
        "nothing of the reference": (np.repeat(sound[:2], 2), np.tile(np.float32([1, -1]), 2)),
    }.items():
        result = score(reference, estimate)
        assert result.status == "undefined" and words in result.reason


def test_one_sample_late_is_far_off(spoken):
    """What the documentation warns of: it compares waveforms."""
    from codec_bench.audio.resample import prepare

    speech = next(prepare(audio, None) for row, audio in spoken if row.get("language") == "en")
    late = np.concatenate([np.zeros(1, np.float32), speech[:-1]])
    assert score(speech, late).value < 20
