"""For two pitch tracks, the four metrics equal their definitions and the results of VERSA's code."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import refuses

from codec_bench.audio.resample import prepare
from codec_bench.features.pitch import Pitch
from codec_bench.messages import Diagnostic
from codec_bench.metrics import expand
from codec_bench.metrics.base import Inputs, inputs_or_score
from codec_bench.metrics.pitch import F0Corr, F0Rmse, VoicedInBoth, VuvError
from codec_bench.types import Score

RATE = 16_000


def score(metric, reference, estimate, hop_s=0.01):
    (feature,) = metric.estimate_features
    sides = [{feature: {"f0_hz": np.asarray(f0, np.float32), "hop_s": hop_s}} for f0 in (reference, estimate)]
    item = inputs_or_score(metric, id="x", rate_hz=RATE, reference_features=sides[0], estimate_features=sides[1])
    assert isinstance(item, Inputs)
    (result,) = metric.compute([item])
    return result


def test_an_interval_in_cents_and_in_hz():
    reference = np.array([0, 100, 110, 120, 0])
    up = reference * 2 ** (50 / 1200)
    result = score(F0Rmse(), reference, up)
    assert result.value == pytest.approx(50, abs=1e-3) and result.status == "ok"
    assert result.detail == {"frames": 5, "voiced_in_both": 3}
    assert score(F0Rmse("world"), reference, reference + 3 * (reference > 0)).value == pytest.approx(3)
    assert score(F0Corr(), reference, up).value == pytest.approx(1)
    assert score(VuvError(), reference, up).value == 0


def test_only_frames_voiced_in_both_count_but_for_versa():
    reference = np.array([100.0, 120, 0, 140, 200])
    estimate = np.array([110.0, 0, 90, 130, 200])
    both = [0, 3, 4]
    assert score(F0Rmse("world"), reference, estimate).value == pytest.approx(np.sqrt(200 / 3))
    cents = 1200 * np.log2(estimate[both] / reference[both])
    assert score(F0Rmse(), reference, estimate).value == pytest.approx(np.sqrt(np.mean(cents**2)), rel=1e-5)
    expected = np.corrcoef(np.log(reference[both]), np.log(estimate[both]))[0, 1]
    assert score(F0Corr(), reference, estimate).value == pytest.approx(expected, rel=1e-5)
    assert score(F0Corr("world"), reference, estimate).value == pytest.approx(
        np.corrcoef(reference[both], estimate[both])[0, 1]
    )
    assert score(F0Rmse("versa"), reference, estimate).value == pytest.approx(
        np.sqrt(np.mean((reference - estimate) ** 2))
    )
    assert score(F0Corr("versa"), reference, estimate).value == pytest.approx(np.corrcoef(reference, estimate)[0, 1])
    assert score(VuvError(), reference, estimate).value == pytest.approx(2 / 5)


def test_where_there_is_no_number():
    voiced, silent = np.array([100.0, 150, 0]), np.zeros(3)
    for metric in (F0Rmse(), F0Corr(), F0Rmse("world"), F0Corr("world")):
        for reference, estimate, reason in (
            (voiced, silent, "no frame of the estimate is voiced"),
            (silent, voiced, "no frame of the reference is voiced"),
            (silent, silent, "no frame of the reference and the estimate is voiced"),
            (voiced, [0, 0, 90], "no frame is voiced in both"),
        ):
            result = score(metric, reference, estimate)
            assert (result.status, result.value) == ("undefined", None) and reason in result.reason
    assert score(VuvError(), voiced, silent).value == pytest.approx(2 / 3)
    assert score(VuvError(), silent, silent).value == 0
    assert score(F0Rmse("versa"), silent, silent).value == 0
    assert score(F0Corr("versa"), voiced, silent).reason.as_dict() == {"code": "pitch_constant", "side": "estimate"}


@pytest.mark.parametrize("variant", [None, "world"])
def test_a_correlation_needs_two_frames_and_a_melody(variant):
    assert score(F0Corr(variant), [100, 0], [100, 0]).reason.code == "few_voiced_frames"
    result = score(F0Corr(variant), [100, 110, 120], [100, 100.001, 100])
    assert result.status == "undefined" and Diagnostic("pitch_constant", side="estimate") in result.reason
    assert score(F0Corr(variant), [100, 110, 120], [220, 210, 200]).value == pytest.approx(-1, abs=1e-3)


def test_lengths():
    reference = np.full(100, 120.0)
    result = score(F0Rmse(), reference, np.append(np.full(100, 120.0), np.full(10, 400.0)))
    assert result.value == 0 and result.detail["frames"] == 100
    for estimate, word in ((np.full(111, 120.0), "longer"), (np.full(89, 120.0), "shorter")):
        for metric in (F0Rmse(), F0Corr(), VoicedInBoth(), VuvError()):
            result = score(metric, reference, estimate)
            assert result.status == "refused" and f"0.11 s {word}" in result.reason
    assert score(VuvError("world"), reference, np.full(120, 120.0), hop_s=0.005).status == "ok"
    assert score(VuvError("world"), reference, np.full(121, 120.0), hop_s=0.005).status == "refused"
    assert score(VuvError(), [], []).status == "undefined"


def test_without_a_reference_it_is_refused():
    item = inputs_or_score(F0Rmse(), id="x", rate_hz=RATE, reference_features={}, estimate_features={"pitch": {}})
    assert isinstance(item, Score) and item.status == "refused"


def test_names_units_and_protocols():
    assert [F0Rmse().unit, F0Rmse("world").unit, F0Rmse("versa").unit, F0Corr().unit] == ["cents", "Hz", "Hz", ""]
    metrics = [kind(v) for kind in (F0Rmse, F0Corr, VoicedInBoth, VuvError) for v in (None, "swift", "world")]
    metrics += [F0Rmse("versa"), F0Corr("versa")]
    assert len({metric.protocol for metric in metrics}) == len({metric.name for metric in metrics}) == 14
    assert F0Rmse("versa").estimate_features == ("pitch[world]",)
    assert [m.higher_is_better for m in (F0Rmse(), F0Corr(), VoicedInBoth(), VuvError())] == [False, True, True, False]
    for metric in metrics:
        (name,) = metric.reference_features
        tracker = Pitch(variant=name.partition("[")[2].rstrip("]") or None).protocol.removeprefix("pitch/")
        assert tracker in metric.protocol
    with refuses("no_variant", variant="versa"):
        VuvError("versa")


def test_the_share_of_voiced_frames_accompanies_what_rests_on_them():
    assert expand(["f0_rmse", "f0_corr"]) == ["f0_rmse", "f0_corr", "voiced_in_both"]
    assert expand(["f0_corr[swift]", "stoi"]) == ["f0_corr[swift]", "stoi", "voiced_in_both[swift]"]
    assert expand(["voiced_in_both", "f0_rmse"]) == ["voiced_in_both", "f0_rmse"]
    for over_other_frames in ("f0_rmse[versa]", "f0_corr[versa]", "f0_corr[words]", "vuv_error"):
        assert expand([over_other_frames]) == [over_other_frames]


def test_the_share_of_voiced_frames():
    half = np.full(100, 120.0)
    half[50:] = 0
    assert score(VoicedInBoth(), np.full(100, 120.0), half).value == 0.5
    assert score(VoicedInBoth(), half, np.full(100, 240.0)).value == 1
    assert score(VoicedInBoth(), half, np.zeros(100)).value == 0
    result = score(VoicedInBoth(), np.zeros(100), half)
    assert result.status == "undefined" and result.reason.code == "reference_unvoiced"


@pytest.mark.compares("f0_rmse", "f0_corr", "voiced_in_both", "vuv_error", weights="none")
def test_versas_numbers(embedded):
    pyworld = pytest.importorskip("pyworld", reason="the oracle")
    from scipy.signal import firwin, lfilter
    from scipy.stats import pearsonr

    signal = prepare(embedded[0][1], RATE)[:RATE]
    worse = np.round(signal * 12) / 12  # coarse quantisation spoils the pitch of quiet frames
    tracks = []
    for x in (signal, worse):
        x = lfilter(firwin(255, 70 / 8000, pass_zero=False), 1, np.array(x * 32767, np.float64))
        tracks.append(pyworld.harvest(x, RATE, f0_floor=40, f0_ceil=800, frame_period=5)[0])
    gt, pred = tracks
    features = Pitch(variant="world").compute([signal, worse.astype(np.float32)])
    sides = [f["f0_hz"] for f in features]
    assert score(F0Rmse("versa"), *sides, hop_s=0.005).value == pytest.approx(
        np.sqrt(np.mean((pred - gt) ** 2)), rel=1e-3
    )
    assert score(F0Corr("versa"), *sides, hop_s=0.005).value == pytest.approx(pearsonr(pred, gt)[0], abs=1e-3)
    both = (gt > 0) & (pred > 0)
    assert 0 < both.sum() < (gt > 0).sum()
    result = score(VoicedInBoth("world"), *sides, hop_s=0.005).value
    assert result == pytest.approx(both.sum() / (gt > 0).sum(), abs=0.01)
    assert score(F0Rmse("world"), *sides, hop_s=0.005).value == pytest.approx(
        np.sqrt(np.mean((pred[both] - gt[both]) ** 2)), rel=1e-3
    )


def test_a_copy_is_perfect_and_a_transposition_is_measured(embedded):
    import soxr

    signal = prepare(embedded[0][1], RATE)
    high = soxr.resample(signal, 17_000, RATE, quality="HQ")  # played faster: 105 cents up, and shorter
    slow = Pitch().compute([signal, high])
    copy = slow[0]["f0_hz"]
    assert score(F0Rmse(), copy, copy).value == 0
    assert score(F0Corr(), copy, copy).value == pytest.approx(1)
    assert score(VuvError(), copy, copy).value == 0
    # Frame k of the faster one is the moment 17/16 k of the original.
    places = np.round(np.arange(slow[1]["f0_hz"].size) * 17 / 16).astype(int)
    places = places[places < copy.size]
    result = score(F0Rmse(), copy[places], slow[1]["f0_hz"][: places.size])
    both = (copy[places] > 0) & (slow[1]["f0_hz"][: places.size] > 0)
    apart = 1200 * np.log2(slow[1]["f0_hz"][: places.size][both] / copy[places][both])
    assert np.median(apart) == pytest.approx(1200 * np.log2(17 / 16), abs=3)
    assert result.value == pytest.approx(np.sqrt(np.mean(apart**2)), rel=1e-4)


HZ = {"the": 110.0, "first": 150.0, "word": 130.0, "sounds": 180.0}


def track(times, frames, factor=1.0):
    """A pitch track of words at `(start, end)` in seconds; each glides by two per cent around its own pitch."""
    f0 = np.zeros(frames)
    for (start, end), hz in zip(times, HZ.values(), strict=True):
        actual = slice(round(100 * start), round(100 * end))
        f0[actual] = factor * hz * np.linspace(0.98, 1.02, actual.stop - actual.start)
    return f0


def of_words(reference, estimate, words, estimate_words=None):
    metric = F0Corr("words")
    sides = [{"pitch": {"f0_hz": np.asarray(f0, np.float32), "hop_s": 0.01}} for f0 in (reference, estimate)]
    item = inputs_or_score(
        metric, id="x", rate_hz=RATE, reference_features=sides[0], estimate_features=sides[1], words=words,
        estimate_words=estimate_words,
    )  # fmt: skip
    (result,) = metric.compute([item])
    assert result.protocol == "f0_corr/boersma-ac-60-600hz/10ms/means-of-words/cents"
    return result


TIMES = [(0.0, 0.2), (0.2, 0.5), (0.6, 0.8), (0.8, 1.0)]
SLOWER = [(0.1, 0.6), (0.6, 1.0), (1.0, 1.3), (1.5, 2.0)]
TEXT = [[start, end, word] for (start, end), word in zip(TIMES, HZ)]


def test_words_of_other_timing_have_the_correlation_of_their_means():
    estimated = [150.0, 140.0, 120.0, 200.0]
    f0 = np.zeros(210)
    for (start, end), hz in zip(SLOWER, estimated, strict=True):
        f0[round(100 * start) : round(100 * end)] = hz
    text = [[start, end, word.upper()] for (start, end), word in zip(SLOWER, HZ)]
    result = of_words(track(TIMES, 100), f0, TEXT, text)
    means = [
        np.log(hz * np.linspace(0.98, 1.02, round(100 * (e - s)))).mean() for (s, e), hz in zip(TIMES, HZ.values())
    ]
    assert result.value == pytest.approx(np.corrcoef(means, np.log(estimated))[0, 1], abs=1e-6)
    assert result.detail == {"words": 4, "voiced_words": 4}
    assert of_words(track(TIMES, 100), f0, TEXT).status == "refused"  # without times of its own it is too long


def test_words_of_one_timing_and_as_a_text():
    reference = track(TIMES, 100)
    assert of_words(reference, 1.3 * reference, TEXT).value == pytest.approx(1)
    assert of_words(reference, reference, json.dumps(TEXT)).value == pytest.approx(1)
    unvoiced = reference.copy()
    unvoiced[:18] = 0  # two voiced frames are left of the first word
    assert of_words(reference, unvoiced, TEXT).detail == {"words": 4, "voiced_words": 3}
    unvoiced[60:80] = 0
    result = of_words(reference, unvoiced, TEXT)
    assert (result.status, result.reason) == (
        "undefined", Diagnostic("few_voiced_words", needed=3, words=4, voiced=2),
    )  # fmt: skip
    flat = np.where(reference > 0, 120.0, 0.0)
    assert of_words(reference, flat, TEXT).reason == Diagnostic("pitch_constant_over_words", side="estimate")
    assert of_words(reference, reference, []).status == "undefined"


@pytest.mark.parametrize(
    ("words", "others", "reason"),
    [
        (None, None, "the data have no column 'words'"),
        ("no list", None, "the column 'words' is 'no list'; expected [[START, END, WORD], ...] in seconds"),
        (7, None, "the column 'words' is '7'"),
        ([[0.1, 0.1, "a"]], None, "the word 'a' lasts from 0.1 to 0.1 s"),
        (TEXT, TEXT[1:], "have other words: 4 and 3"),
        (TEXT, [[0, 1]], "the column 'estimate_words' is"),
    ],
)
def test_columns_without_times_are_refused(words, others, reason):
    result = of_words(track(TIMES, 100), track(TIMES, 100), words, others)
    assert result.status == "refused" and reason in result.reason


def test_words_of_a_manifest(tmp_path, embedded):
    """The times of words go from the manifest to the metric, and another time is another data set."""
    from codec_bench import evaluate
    from codec_bench.data import open_source

    sample, audio = max(embedded, key=lambda pair: pair[1].duration_s)
    third = audio.duration_s / 5
    words = [[index * third, (index + 1) * third, f"w{index}"] for index in range(5)]
    manifest = tmp_path / "m.jsonl"
    manifest.write_text(json.dumps({"id": "a", "audio": str(sample.audio), "words": words}), "utf-8")
    run = evaluate(
        codec="unprocessed", data=str(manifest), metrics="f0_corr[words],f0_corr", out=tmp_path / "run", page=False,
        cache=False,
        check=False, workers=1,
    )  # fmt: skip
    scores = {score.metric: score for score in run.scores()}
    assert scores["f0_corr[words]"].value == pytest.approx(1) and scores["f0_corr[words]"].detail["words"] == 5
    before = open_source(str(manifest)).fingerprint
    words[0][1] += 0.01
    manifest.write_text(json.dumps({"id": "a", "audio": str(sample.audio), "words": words}), "utf-8")
    assert open_source(str(manifest)).fingerprint != before
