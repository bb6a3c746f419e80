"""No metric prefers silence, half silence, a constant, noise or another utterance to coded speech without a status or a
flag.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import soundfile

from codec_bench.audio.level_checks import NO_SPEECH
from codec_bench.data import open_source
from codec_bench.metrics import TABLE, build_metric
from codec_bench.metrics.base import SILENT_ESTIMATE, ComparedLevels, flag_doubtful
from codec_bench.types import Score

CUSTOM_CODE = Path(__file__).parent / "assets" / "worse_estimates.py"
PAGE = Path(__file__).parents[2] / "docs" / "silence.md"
WORSE = ("Silence", "Faint", "Constant", "Half", "Noise", "Foreign")
CODED = "opus-6k"
METRICS = (
    "pesq_wb", "pesq_nb", "visqol", "stoi", "estoi", "si_sdr", "snr", "snr_seg", "log_wmse", "warpq", "warpq[versa]",
    "lsd", "mel_distance", "stft_distance",
    "loudness_error", "true_peak", "clipped_share", "fwsegsnr", "llr", "wss", "cd", "csig", "cbak", "covl", "csii_high",
    "csii_mid", "csii_low", "ncm", "sdr",
    "srmr", "energy_corr", "f0_rmse", "f0_corr", "voiced_in_both", "vuv_error", "duration_error", "speech_share",
    "speech_kept", "silence_kept",
    "leading_silence_error", "ttsds2_pitch", "sim[ge2e]", "fad[ge2e]", "kad[ge2e]", "kid[ge2e]", "kl[ge2e]",
    "density[ge2e]", "coverage[ge2e]",
    "dnsmos_sig", "dnsmos_bak", "dnsmos_ovrl", "dnsmos_p808", "plcmos", "distillmos", "wer[pocketsphinx]",
    "wer_macro[pocketsphinx]",
    "wer_above_50[pocketsphinx]", "cer[pocketsphinx]", "dwer[pocketsphinx]", "speaking_rate[pocketsphinx]",
    "speaking_rate_error[pocketsphinx]",
)  # fmt: skip
NO_ROW = (
    "asv_eer",
    "asv_eer_listed",
    "bitrate",
    "hallucinated",
    "mcd",
    "transcript",
    "wer_below_50",
    "wer_between",
    "wer_mean",
    "wer_smallest",
)
"""Metrics without a row for another reason than their weights: slow, about sets of trials, or about texts alone."""


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """By (system, id, metric), the scores of one run."""
    from codec_bench import evaluate

    folder = tmp_path_factory.mktemp("clip")
    (sample,) = [sample for sample in open_source("embedded") if sample.id == "rms_05"]
    signal, rate = soundfile.read(sample.audio)
    soundfile.write(folder / "clip.wav", signal[int(0.5 * rate) : int(2.2 * rate)], rate)
    clips = [replace(sample, audio=str(folder / "clip.wav"))]
    run = evaluate(
        codec=[CODED, *(f"{CUSTOM_CODE}:{name}" for name in WORSE)], data=clips, metrics=list(METRICS), check=False,
        page=False,
        cache=False, workers=1, out=tmp_path_factory.mktemp("worse") / "run",
    )  # fmt: skip
    return {(row.system, row.id, row.metric): row for row in run.scores()}, [s.id for s in clips]


def verdict(coded, score, better):
    """What a row of a worse estimate is beside that of coded speech."""
    if score.status != "ok":
        return "no value"
    if "flag" in score.detail:
        return "flagged"
    if coded.value is None or (score.value - coded.value) * (1 if better else -1) > 0:
        return "BETTER"
    return "worse"


@pytest.fixture(scope="module")
def table(scores):
    rows, ids = scores
    metrics = {}
    for metric in METRICS:
        better, cells = build_metric(metric).higher_is_better, []
        for name in WORSE:
            by_name = {verdict(rows[CODED, id, metric], rows[name.lower(), id, metric], better) for id in ids}
            cells.append(" or ".join(sorted(by_name)))
        metrics.setdefault(tuple(cells), []).append(f"`{metric}`")
    lines = ["| metrics | " + " | ".join(name.lower() for name in WORSE) + " |", "|---" * (1 + len(WORSE)) + "|"]
    lines += [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in metrics.items()]
    return "\n".join(lines)


def test_nothing_worse_has_a_better_value_without_a_word(table):
    assert "BETTER" not in table, f"\n{table}"


def test_the_documentation_shows_the_table(table):
    assert table in PAGE.read_text("utf-8"), f"docs/silence.md must hold:\n{table}"


def test_metrics_whose_weights_are_missing_here_are_flagged_by_levels_too():
    """The flags rest on levels, so they need no network."""
    others = sorted(set(TABLE) - {name.partition("[")[0] for name in METRICS} - set(NO_ROW))
    assert len(others) > 40
    mismatched = ComparedLevels(NO_SPEECH["unlike"])
    for name in others:
        metric = build_metric("lid[whisper-tiny]" if name == "lid" else name)
        score = Score.ok(1.0, metric.protocol)
        silent = flag_doubtful(metric, score, estimate_silent=True, reference_silent=False)
        assert silent.detail["flag"] == SILENT_ESTIMATE, name
        other = flag_doubtful(metric, score, estimate_silent=False, reference_silent=False, comparison=mismatched)
        assert other.detail["flag"] == NO_SPEECH["unlike"], name
