"""PLCMOS against the package's own program with the same raters, one signal at a time; and
batches of unequal signals.
"""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
import torch
from glides import glide
from refusals import refuses

from codec_bench import evaluate
from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, load_feature
from codec_bench.features.dnsmos_files import folder_of

SHORTEST = 1281


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("speechmos.plcmos").PLCMOS()


@pytest.fixture(scope="module")
def feature():
    feature = load_feature("plcmos")
    feature.load()  # a test looks at its network
    return feature


def noisy(samples, seed=0):
    return (glide(samples).samples[0] + np.random.default_rng(seed).normal(0, 0.02, samples)).astype(np.float32)


def lossy(signal):
    """The signal with a third of its packets of 10 ms lost, and digital silence in their place."""
    retained = np.random.default_rng(1).random(signal.size // 160 + 1) > 1 / 3
    return signal * np.repeat(retained, 160)[: signal.size].astype(np.float32)


def expected(theirs, signal, seed):
    """The package's score after this seed."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        return theirs.get_mos(signal)
    finally:
        np.random.set_state(before)


@pytest.mark.compares("plcmos", weights="published")
def test_a_batch_gives_the_packages_scores_of_one_by_one(theirs, feature, spoken):
    signals = sorted((prepare(audio, 16_000) for _, audio in spoken), key=len)
    signals = [*signals[:: max(1, len(signals) // 2)], lossy(signals[-1]), noisy(SHORTEST), noisy(20_000)]
    seeds = list(range(len(signals)))
    requested = [expected(theirs, *of) for of in zip(signals, seeds)]
    assert max(requested) - min(requested) > 1
    results = feature.compute(signals, seeds)
    np.testing.assert_allclose([one["mos"] for one in results], requested, atol=5e-6)
    swapped = feature.compute(signals[::-1], seeds[::-1])[::-1]
    np.testing.assert_allclose([one["mos"] for one in swapped], requested, atol=5e-6)


def test_the_scatter_is_that_of_other_seeds(theirs, feature):
    signal = lossy(noisy(12_000))
    results = feature.compute([signal] * 60, range(60))
    scores, scatter = np.array([(one["mos"], one["scatter"]) for one in results]).T
    assert 0.7 < scores.std(ddof=1) / np.sqrt((scatter**2).mean()) < 1.4 and scores.std() > 0.002
    calls = [expected(theirs, signal, seed) for seed in range(100, 110)]
    assert abs(np.mean(calls) - scores.mean()) < 4 * scores.std() * np.sqrt(1 / 10 + 1 / 60)


def test_a_signal_without_a_seed_draws_from_its_samples(feature):
    one, other = noisy(8000), noisy(9000)
    alone = feature.compute([one])[0]["mos"]
    assert feature.compute([other, one])[1]["mos"] == pytest.approx(alone, abs=2e-6)
    assert feature.compute([one], [1])[0]["mos"] != pytest.approx(alone, abs=2e-5)


def test_a_score_depends_on_the_seed_and_the_id_alone(tmp_path):
    """Whatever the order, the batch and the other items."""
    for name, seed in (("a", 1), ("b", 2), ("same as a", 3)):
        soundfile.write(tmp_path / f"{name}.wav", noisy(8000, seed % 3 or 1), 16_000, subtype="FLOAT")

    def score(batch_s, seed, limit=None):
        options = {"metrics": "plcmos", "device": "cpu", "check": False, "batch_s": batch_s}
        run = evaluate(codec="unprocessed", data=tmp_path, seed=seed, limit=limit, **options)
        return {one.id: one.value for one in run.scores("unprocessed", "plcmos")}

    first = score(0.6, 0)
    assert score(60.0, 0) == pytest.approx(first, abs=2e-6) and len(set(first.values())) == 3
    (some,) = score(60.0, 0, limit=1).items()
    assert some[1] == pytest.approx(first[some[0]], abs=2e-6)
    others = score(60.0, 1)
    assert all(abs(others[id] - value) > 2e-5 for id, value in first.items())


def test_signals_of_other_lengths_in_one_pass_change_nothing(feature):
    """On a CPU only equal lengths share a pass, so the test calls the network itself, as on a GPU."""
    signals = [noisy(samples, samples) for samples in (SHORTEST, 16_000, 9001, 1537)]
    waves = torch.zeros(len(signals), 16_000)
    for row, signal in zip(waves, signals):
        row[: signal.size] = torch.from_numpy(signal)
    raters = feature._net.draw(range(len(signals)))
    with torch.inference_mode():
        together = feature._net(waves, raters, [signal.size for signal in signals])[:, 0].tolist()
    alone = [feature.compute([signal], [seed])[0]["mos"] for seed, signal in enumerate(signals)]
    assert np.ptp(alone) > 0.1
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_unusable_audio_is_unavailable_and_harms_nobody(feature):
    fine = noisy(4000)
    short, silent, broken, long, usable = feature.compute(
        [
            fine[:1280],
            np.zeros(4000, np.float32),
            np.full(4000, np.nan, np.float32),
            np.ones(121 * 16_000, np.float32),
            fine,
        ]
    )
    assert all(isinstance(one, Unavailable) for one in (short, silent, broken, long))
    assert str(short) == f"the signal has 1280 samples; PLCMOS needs at least {SHORTEST}"
    assert str(long).startswith("the signal lasts 121 s, and PLCMOS hears a signal as a whole, up to 120 s here")
    assert usable == pytest.approx(feature.compute([fine])[0], rel=1e-6)


def test_another_file_is_one_sentence(tmp_path):
    file = tmp_path / "plcmos_v2.onnx"
    file.write_bytes(b"no network")
    with refuses("weights_not_read"):
        load_feature("plcmos", weights=str(file)).load()
    with refuses("tensors_wrong"):
        load_feature("plcmos", weights=str(folder_of(None) / "model_v8.onnx")).load()
