"""Code of one's own that changes its process changes no other row: other codecs and metrics keep their last bit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import soundfile

from codec_bench.data import open_source

HOSTILE = Path(__file__).parent / "assets" / "hostile_code.py"
RIGHT = (
    "Forks", "ForksBelowPython", "ForksInDecode", "ReplacesTorch", "EmptiesPath", "SeedsAndIgnoresSignals",
    "LeavesThreads",
)  # fmt: skip
FAILS = {"ClosesFiles": "its pipe", "ReplacesFiles": "its pipe", "WritesToPipes": "its pipe", "Ends": "SystemExit"}
EITHER = ("ReplacesNumpy", "ChangesLocale")
METRICS = ("Forks", "ReplacesNumpy", "EmptiesPath", "ClosesFiles", "Ends")
BUILT_IN = ("g711-ulaw", "g722")


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """The first second of two voices."""
    folder = tmp_path_factory.mktemp("clips")
    for sample in list(open_source("embedded"))[::16]:
        samples, rate_hz = soundfile.read(sample.audio)
        soundfile.write(folder / f"{sample.id}.wav", samples[:rate_hz], rate_hz)
    return list(open_source(str(folder)))


@pytest.fixture(scope="module")
def alone(clips, tmp_path_factory):
    """The scores of two built-in codecs that nobody disturbs, and those of a quantiser that disturbs nobody."""
    return _scores(clips, tmp_path_factory.mktemp("alone"), f"{','.join(BUILT_IN)},{HOSTILE}:Quantiser")


def _scores(clips, folder, codec, metrics="stoi,si_sdr,mel_distance,bitrate", **more):
    from codec_bench.api.evaluate import evaluate

    settings = {"page": False, "cache": False, "save_audio": "none", "workers": 1, "check": False, **more}
    run = evaluate(codec=codec, data=clips, metrics=metrics, out=folder / "run", **settings)
    return {(s.system, s.id, s.metric): (s.value, s.status, s.reason) for s in run.scores()}


@pytest.mark.parametrize("names", [RIGHT, tuple(FAILS), EITHER])
def test_codecs_that_change_their_process_change_no_other_row(clips, alone, tmp_path, names):
    before = os.getcwd(), dict(os.environ)
    hostile = [f"{HOSTILE}:{name}" for name in names]
    scores = _scores(clips, tmp_path, ",".join(["g711-ulaw", *hostile, "g722"]), check=names is RIGHT)
    assert (os.getcwd(), dict(os.environ)) == before
    for key, value in alone.items():
        if key[0] in BUILT_IN:
            assert scores[key] == value, key
    for name in names:
        actual = {key[1:]: value for key, value in scores.items() if key[0] == name}
        assert len(actual) == 4 * len(clips)
        if name in RIGHT:
            assert actual == {key[1:]: value for key, value in alone.items() if key[0] == "Quantiser"}, name
        elif name in FAILS:
            assert {status for _, status, _ in actual.values()} == {"failed"}, name
            assert all(FAILS[name] in reason or "given up" in reason for _, _, reason in actual.values()), actual
        else:
            assert all(reason for value, _, reason in actual.values() if value is None), name


def test_metrics_that_change_their_process_change_no_other_score(clips, alone, tmp_path):
    hostile = [f"{HOSTILE}:Metric{name}" for name in METRICS]
    scores = _scores(clips, tmp_path, ",".join(BUILT_IN), ",".join(["stoi,si_sdr", *hostile, "mel_distance,bitrate"]))
    for key, value in alone.items():
        if key[0] in BUILT_IN:
            assert scores[key] == value, key
    known = {key[2] for key in alone}
    for name in METRICS:
        actual = [value for key, value in scores.items() if key[2] not in known and key[2].endswith(f"Metric{name}")]
        assert len(actual) == 2 * len(clips), sorted({key[2] for key in scores})
        assert all(
            (status == "ok") == (name not in ("ClosesFiles", "Ends")) and (reason or status == "ok")
            for _, status, reason in actual
        ), actual


def test_two_codecs_of_ones_own_share_no_process(clips, tmp_path):
    scores = _scores(clips, tmp_path, f"{HOSTILE}:ReplacesNumpy,{HOSTILE}:Quantiser")
    alone = _scores(clips, tmp_path / "alone", f"{HOSTILE}:Quantiser")
    assert {key: value for key, value in scores.items() if key[0] == "Quantiser"} == alone
