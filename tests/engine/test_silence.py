"""An estimate that is silent where its reference is not: every metric gives a value that means something, or says why
not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codec_bench import Audio, load_metric
from codec_bench.audio.level_checks import LEAST_SHARE, MISSING_SHARE, NO_SPEECH, is_silent
from codec_bench.data import open_source
from codec_bench.features.scorers import SCORERS
from codec_bench.metrics import TABLE, build_metric, weights_of
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, flag_doubtful
from codec_bench.types import Score

SEVERAL = f"pocketsphinx+{Path(__file__).parent / 'assets' / 'custom_code.py'}:OneWordReader"
NOT_READ = ["bitrate"]
"""It does not rest on the sound."""
FLAGGED = ["dnsmos_sig", "dnsmos_bak", "dnsmos_ovrl", "dnsmos_p808"]
"""They have a value, since their reference implementation does, and it says nothing."""
MEANT = {
    "stoi": 0.0, "estoi": 0.0, "wer[pocketsphinx]": 1.0, "wer_macro[pocketsphinx]": 1.0,
    "wer_above_50[pocketsphinx]": 1.0, "cer[pocketsphinx]": 1.0,
    "dwer[pocketsphinx]": 1.0, "transcript[pocketsphinx]": 0.0, "mel_distance": None, "stft_distance": None,
    "vuv_error": None, "bitrate": None, "snr": None, "snr_seg": None, "log_wmse": None, "lsd": None,
    "duration_error": 0.0,
    "voiced_in_both": 0.0, "speech_kept": 0.0, "speech_share": 0.0, "silence_kept": None, "clipped_share": 0.0,
    "speaking_rate[pocketsphinx]": 0.0, "speaking_rate_error[pocketsphinx]": 1.0, "ttsds2_pitch": None,
    f"wer_mean[{SEVERAL}]": 1.0, f"wer_smallest[{SEVERAL}]": 1.0,
}  # fmt: skip
"""They have a value that means what it says; None for one that depends on the sound."""
WORST = {
    "fwsegsnr": -10.0, "llr": 2.0, "wss": None, "cd": 10.0, "csig": 1.0, "cbak": 1.0, "covl": 1.0, "csii_high": 0.0,
    "csii_mid": 0.0, "csii_low": 0.0, "ncm": 0.0, "sdr": None, "srmr": 0.0,
    "pesq_wb": 1.0, "pesq_nb": 1.0, "sim[ge2e]": -1.0, "f0_corr": -1.0, "energy_corr": -1.0, "si_sdr": None,
    "f0_rmse": None, "leading_silence_error": None, "loudness_error": None, "true_peak": None, "mcd": None,
    "visqol": 1.0, "fad[ge2e]": None, "asv_eer[ge2e]": None, "asv_eer_listed[ge2e]": None, "kad[ge2e]": None,
    "kid[ge2e]": None, "kl[ge2e]": None, "density[ge2e]": None, "coverage[ge2e]": None, "warpq": None,
    f"wer_between[{SEVERAL}]": None,
}  # fmt: skip
"""They have no value for silence, and this worst one; None for a metric whose values have no bound."""
for row in SCORERS:
    for scorer, output in row.scores.items():
        if scorer not in FLAGGED and not weights_of(scorer):
            WORST[scorer] = row.range[0 if output.higher_is_better else 1]
NEEDS_WEIGHTS = {
    *(
        "emotion_accuracy",
        "emotion_heard",
        "emotion_labelled",
        "emotion_sim",
        "event_accuracy",
        "lid",
        "speech_token_distance",
        "speechbertscore",
        "speechbleu",
        "ter",
    ),
    *("clap_score", "noresqa_mos", "per", "squim_mos", "watermark_bits", "watermark_kept"),
    *("ttsds2_wav2vec2", "ttsds2_whisper"),
    *(scorer for row in SCORERS for scorer in row.scores if scorer not in (*FLAGGED, *WORST)),
}
REFUSED = ["hallucinated[pocketsphinx]"]
EXCLUDED = ["wer_below_50[pocketsphinx]"]
"""An item of which nothing is recognised is none of theirs; `wer_above_50` counts it."""


@pytest.fixture(scope="module")
def silent_run(tmp_path_factory):
    """Two short items, of which a codec of one's own gives back the longer one as silence."""
    from codec_bench import evaluate

    samples = list(open_source("embedded"))
    length = {sample.id: Audio.read(sample.audio).duration_s for sample in samples}
    by_length = sorted(length, key=length.__getitem__)
    chosen = [by_length[0], next(id for id in by_length if length[id] > 3)]
    assert length[chosen[0]] <= 3
    run = evaluate(
        codec=f"{Path(__file__).parent / 'assets' / 'custom_code.py'}:FallsSilent",
        data=[s for s in samples if s.id in chosen],
        metrics=[*FLAGGED, *MEANT, *WORST, *REFUSED, *EXCLUDED], out=tmp_path_factory.mktemp("silent") / "run",
        page=False, cache=False,
        check=False, workers=1,
    )  # fmt: skip
    return run, chosen[1]


def test_no_metric_is_forgotten():
    named = {name.partition("[")[0] for name in (*FLAGGED, *MEANT, *WORST, *REFUSED, *EXCLUDED)}
    assert named | NEEDS_WEIGHTS == set(TABLE)


def test_a_silent_estimate_is_a_failure_and_no_absence(silent_run):
    run, silent = silent_run
    scores = {row.metric: row for row in run.scores() if row.id == silent}
    (system,) = run.summary()["systems"].values()
    assert system["silent"] == 1, "the row says how many estimates are silent"
    for name, value in MEANT.items():
        assert scores[name].status == "ok", name
        assert scores[name].detail.get("flag") == (None if name in NOT_READ else SILENT_ESTIMATE), name
        assert value is None or scores[name].value == pytest.approx(value, abs=1e-9), name
    for name in FLAGGED:
        assert (scores[name].status, scores[name].detail["flag"]) == ("ok", SILENT_ESTIMATE), name
    for name, worst in WORST.items():
        entry = system["metrics"][name]
        assert scores[name].status == "undefined" and scores[name].reason, name
        assert (entry["n"], entry["missing"]) == (1, {"undefined": 1}), name
        counting = entry["counting_failures"]
        if worst is None:
            assert counting == {"value": entry["value"], "n": 1, "uncounted": 1}, name
        else:
            mean = (entry["value"] + worst) / 2
            assert counting == {"value": pytest.approx(mean), "n": 2, "uncounted": 0}, name
    assert [scores[name].status for name in REFUSED] == ["refused"]
    assert [scores[name].status for name in EXCLUDED] == ["undefined"]
    assert system["metrics"][REFUSED[0]]["counting_failures"] == {"value": None, "n": 0, "uncounted": 0}


def test_the_summary_names_the_values_that_state_nothing(silent_run):
    run, silent = silent_run
    reasons = [row for row in run.summary()["failures"]["reasons"] if row["status"] == "flagged"]
    flagged_metrics = {*FLAGGED, *MEANT} - {*NOT_READ}
    assert {row["metric"]: (row["reason"], row["count"], row["example"]) for row in reasons} == {
        name: (SILENT_ESTIMATE, 1, silent) for name in flagged_metrics
    }
    (system,) = run.summary()["systems"].values()
    assert {name for name, entry in system["metrics"].items() if entry.get("flagged") == 1} == flagged_metrics


def test_a_metric_that_is_called_says_so_too():
    turning = np.where(np.arange(32_000) % 2, 1, -1).astype(np.float32)
    sounds = [
        np.full(32_000, 1e-5, np.float32),
        np.full(32_000, 0.1, np.float32),
        0.1 + turning * 2 / 32768,
        turning * 4 / 32768,
        np.full(32_000, 1.0, np.float32),
        turning * 14 / 32768,
    ]
    silence = [Audio(sound, 16_000) for sound in sounds]
    assert [is_silent(audio) for audio in silence] == [True] * 5 + [False]
    assert is_silent(Audio(np.zeros((1, 0), np.float32), 16_000)) and is_silent(Audio(sounds[0][:5], 16_000))
    assert not is_silent(Audio(turning[:5], 16_000))
    loud = turning * 14 / 32768
    silence.append(Audio(np.stack([loud, -loud]), 16_000))  # metrics read the mean of the channels
    assert is_silent(silence[-1]) and not is_silent(Audio(np.stack([loud, 0 * loud]), 16_000))
    flags = [scores["dnsmos_sig"].detail.get("flag") for scores in load_metric("dnsmos_sig")(estimate=silence)]
    assert flags == [SILENT_ESTIMATE] * 5 + [None, SILENT_ESTIMATE]


@pytest.mark.parametrize(
    ("name", "estimate", "reference", "flag"),
    [
        ("utmos", True, False, SILENT_ESTIMATE),
        ("utmos", False, True, None),
        ("sim[ge2e]", True, False, SILENT_ESTIMATE),
        ("sim[ge2e]", False, True, SILENT_REFERENCE),
        ("sim[ge2e]", False, False, None),
        ("mel_distance", True, True, None),
        ("mel_distance", True, False, SILENT_ESTIMATE),
        ("bitrate", True, False, None),
    ],
)
def test_uncertain_scores(name, estimate, reference, flag):
    metric = build_metric(name)

    def doubted(score):
        return flag_doubtful(metric, score, estimate_silent=estimate, reference_silent=reference)

    assert doubted(Score.ok(1.0, "p", detail={"frames": 3})).detail == {"frames": 3, **({"flag": flag} if flag else {})}
    assert doubted(Score.undefined("silent", "p")).detail == {}
    assert doubted(Score.ok(1.0, "p", detail={"flag": "other"})).detail == {"flag": "other"}


def test_audio_created_elsewhere_that_lacks_speech_is_flagged_too(tmp_path):
    """Also in metrics that hear the estimate alone, and of another length; what says the text at another speed is not
    flagged.
    """
    from codec_bench import score
    from codec_bench.audio.encode import write_flac

    samples = sorted(open_source("embedded"), key=lambda s: -Path(s.audio).stat().st_size)[1:3]
    sounds = {sample.id: Audio.read(sample.audio) for sample in samples}

    def faint(x):
        return np.random.default_rng(0).integers(-4, 5, x.size) / 32768

    makers = {
        "half": lambda x: np.where(np.arange(x.size) < x.size // 2, x, 0),
        "padded": lambda x: np.concatenate([x, np.zeros(x.size)]),
        "faint": faint,
        "slower": lambda x: np.interp(np.arange(0, x.size, 0.9), np.arange(x.size), x),
    }
    for name, make in makers.items():
        (tmp_path / name).mkdir()
        for id, sound in sounds.items():
            values = make(sound.samples[0]).astype(np.float32)
            write_flac(tmp_path / name / f"{id}.flac", Audio(values, sound.sample_rate_hz))
    generated = {name: tmp_path / name for name in makers}
    run = score(
        generated=generated,
        data=samples,
        metrics=["dnsmos_sig"],
        out=tmp_path / "run",
        page=False,
        cache=False,
        workers=1,
    )
    by_name = {row.system: row.detail.get("flag") for row in run.scores()}
    lacks = NO_SPEECH["lacking"]
    assert by_name == {"half": lacks, "padded": lacks, "faint": SILENT_ESTIMATE, "slower": None}
    reference = sounds[samples[0].id]
    signal = {name: Audio.read(tmp_path / name / f"{samples[0].id}.flac") for name in makers}
    noise = np.random.default_rng(0).normal(0, 0.1, reference.samples.shape).astype(np.float32)
    signal["noise"] = Audio(noise, reference.sample_rate_hz)
    expected = {
        "dnsmos_sig": by_name | {"noise": None},
        # It compares samples, and refuses two lengths.
        "stft_distance": {"half": NO_SPEECH["partial"], "faint": SILENT_ESTIMATE, "noise": NO_SPEECH["unlike"]},
    }
    for metric, flags in expected.items():
        scores = load_metric(metric)(estimate=list(signal.values()), reference=[reference] * len(signal))
        options = {name: of[metric] for name, of in zip(signal, scores)}
        assert {name: of.detail.get("flag") for name, of in options.items() if of.status == "ok"} == flags
    systems = run.summary()["systems"]
    assert {name: (of["silent"], of["partial"], of["unlike"]) for name, of in systems.items()} == {
        "half": (0, 2, 0), "padded": (0, 2, 0), "faint": (2, 0, 0), "slower": (0, 0, 0),
    }  # fmt: skip
    standing = {name: of["metrics"]["dnsmos_sig"]["standing"]["compared"] for name, of in systems.items()}
    assert standing == {"half": False, "padded": False, "faint": False, "slower": True}


def test_estimates_without_speech_are_counted_for_each_system_also_where_no_metric_reads_the_reference(tmp_path):
    """Table, page, summary and the summary as a CSV say it; the samples are chosen so that nothing but the codec is
    silent.
    """
    from codec_bench import evaluate
    from codec_bench.report.paper import COLUMNS, summary_markdown, summary_rows
    from codec_bench.stats.summary import summarise

    actual = Path(__file__).parent / "assets" / "worse_estimates.py"
    samples = sorted(open_source("embedded"), key=lambda s: -Path(s.audio).stat().st_size)[1:3]
    run = evaluate(
        codec=["opus-6k", *(f"{actual}:{name}" for name in ("Faint", "Half", "Noise"))], data=samples,
        metrics=["speech_share"], check=False,
        cache=False, workers=1, out=tmp_path / "run",
    )  # fmt: skip
    summary = run.summary()
    by_name = {
        name: (
            *(system[kind] for kind in ("silent", "partial", "unlike")),
            system["metrics"]["speech_share"].get("flagged", 0),
        )
        for name, system in summary["systems"].items()
    }
    assert by_name == {"opus-6k": (0, 0, 0, 0), "faint": (2, 0, 0, 2), "half": (0, 2, 0, 2), "noise": (0, 0, 2, 2)}
    flags = {(row.system, row.detail.get("flag")) for row in run.scores()}
    assert flags == {
        ("opus-6k", None), ("faint", SILENT_ESTIMATE), ("half", NO_SPEECH["partial"]), ("noise", NO_SPEECH["unlike"]),
    }  # fmt: skip
    assert f"more than {MISSING_SHARE:.0%} of" in NO_SPEECH["partial"]
    assert f"less than {LEAST_SHARE:.0%} of" in NO_SPEECH["lacking"]
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    for text in (
        "2 silent",
        "2 partial",
        "2 unlike",
        "half: 2 estimates are without much of the reference&#39;s sound",
    ):
        assert text in page, text
    details = summarise(run)
    rows = [dict(zip(COLUMNS, row)) for row in summary_rows(details)]
    assert {row["system"]: row["flagged"] for row in rows} == {"opus-6k": 0, "faint": 2, "half": 2, "noise": 2}
    assert (
        "noise: 2 estimates are unlike the reference in the course of its levels; the scores are flagged"
        in summary_markdown(details)
    )
