"""Codecs that have passed for right, each named by the check that it fails; and codecs that
are right and must not be.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from codec_bench import Audio
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks import TO_DO, faulty_findings
from codec_bench.codecs.checks.quick import quick_check
from codec_bench.codecs.checks.rates_and_channels import check_formats
from codec_bench.codecs.checks.serialised_codes import CHECK, unpack
from codec_bench.codecs.checks.steps import Checking, CheckJob
from codec_bench.config.limits import Limits
from codec_bench.data import open_source

WRONG = Path(__file__).parent / "assets" / "wrong_codecs.py"
PLANTED = WRONG.parent / "planted_codecs.py"
LOW = WRONG.parent / "low_bitrate_codecs.py"
FILES = tuple((s.id, s.audio) for s in list(open_source("embedded"))[::11])  # of three voices

# The checks that name a codec in full, and those of them that the cheap form makes.
NAMED = {
    "TurnedOver": ({"polarity"}, {"polarity"}),
    "Late": ({"hidden delay"}, {"hidden delay"}),
    "FourKbpsLate": ({"hidden delay"}, {"hidden delay"}),
    "LateByHalf": ({"hidden delay", "causal label"}, {"hidden delay"}),
    "SixTimes": ({"level", "clipping"}, {"level", "clipping"}),
    "Silent": ({"silence"}, {"silence"}),
    "Overspends": ({"bitrate label"}, {"bitrate label"}),
    "SaysFewerFrames": ({"frame rate"}, {"frame rate"}),
    "CountsFramesAsTokens": ({"token label"}, {"token label"}),
    "PassesAside": ({CHECK}, {CHECK}),
    "PassesInSide": ({"side information"}, {"side information"}),
    "LeaksItsBatch": ({"batch", "causal label"}, {"batch"}),
    "LeaksAFrame": ({"batch"}, {"batch"}),
    "Reverses": ({"batch", "level"}, {"batch"}),
    "WritesIntoItsInput": ({"input"}, {"input"}),
    "NeverTheSame": ({"repeatable", "digital silence", CHECK}, {"repeatable", CHECK}),
}
# Those that only a wider look finds, with what each must be named by; some defects show in other checks too.
PLANTED_IN = {
    "OtherThread": {"thread"},
    "ShortClipsExact": {"length of clips"},
    "LoudClipsCoarse": {"loudness of clips"},
    "CachesByLength": {"repeatable"},
    "Drifts": {"clock"},
    "ClipsAtMinus1": {"clipping"},
    "LosesALastFrame": {"last frame"},
    "SwapsInBatches": {"batch"},
    "HeldByTheEncoder": {CHECK},
    "DeclaresATenth": {"bitrate label"},
    "AddsAConstant": {"constant"},
    "FoldsToMono": {"channels"},
    "LeaksBetweenChannels": {"channels"},
    "SwapsChannels": {"channels"},
    "LateAt44100": {"hidden delay"},
    "LateInStereo": {"hidden delay"},
    "TurnsEverySeventh": {"repeatable"},
    "TurnsQuietClips": {"polarity"},
    "SilentAfter3s": {"silence"},
    "SendsSideAsText": {"side information"},
    "PassesOnDisk": {"file"},
    "SaysCausal": {"causal label"},
    "LeaksOverLongClips": {"batch"},
}
# Codecs that pass comparisons of outputs, of one clip coded twice, and without a stream, with all their findings.
ALONE_IN = {
    "LosesTheLastFrame": {"last frame"},
    "LosesTwoFrames": {"last frame"},
    "LosesHalfASecond": {"last frame", "dropouts"},
    "LosesAPartialFrame": {"last frame"},
    "KeepsWholeSeconds": {"last frame", "dropouts"},
    "LosesTheSecondSecond": {"last frame", "dropouts"},
    "LosesTheFirstFrame": {"first frame"},
    "LosesEveryFiftiethFrame": {"last frame", "dropouts"},
    "NormalisesLoudness": {"loudness of clips", "length of clips"},
    "TurnsTheRightChannel": {"polarity"},
    "RightChannelLate": {"hidden delay"},
    "RightChannelQuiet": {"channels"},
    "FoldsAtHalfTheBitrate": {"channels"},
    "KeepsABuffer": {"repeatable", CHECK},
    "CountsItsCalls": {"repeatable", CHECK},
    "TiedToItsOrder": {"repeatable"},
    "DropsCallsAtRandom": {"repeatable"},
    "DrawsItsCodes": {"repeatable"},
    "ConstantCodebook": {"constant codebook"},
    "SilencesEveryFiftiethStep": {"stream"},
    "StreamsTurnedOver": {"stream"},
    "StreamEndsEarly": {"stream"},
}
RIGHT = ("opus-6k", "amr-nb-4.75k", "g723.1", "g722", "g726-16k", "mp3-16k", "aac-24k", "sbc-64k", "aptx-44k")


@pytest.fixture(scope="module")
def clips():
    return [Audio.read(path) for _, path in FILES]


def by_step(name, options=None):
    """The findings of each step, without a process for each."""
    steps = tuple(CheckJob.SECTIONS)
    options = options or {}
    checking = Checking(CheckJob(name, FILES, "cpu", Limits(), steps, options), lambda: None)
    for step in steps[:-1]:
        sections = checking.step(step)
        yield [f for section in sections.values() for f in section.get("findings", ())]
    yield [elsewhere(name, checking.serialised, options)]


@cache
def in_full(name, **options):
    """The findings of all steps."""
    return list(chain.from_iterable(by_step(name, options)))


def elsewhere(name, serialised, options=None):
    """The finding of another codec than the one that has encoded."""
    try:
        return unpack(load_codec(name, **(options or {})), serialised)
    except Exception as error:
        return {"check": CHECK, "state": "failed", "found": str(error), "value": None}


def checks(findings):
    named = {f["check"] for f in faulty_findings(findings)}
    assert named <= TO_DO.keys(), "a faulty check has no advice"
    return named


@pytest.mark.parametrize("name", NAMED)
def test_every_wrong_codec_is_named_by_what_is_wrong(name, clips):
    assert checks(in_full(f"{WRONG}:{name}")) == NAMED[name][0]


@pytest.mark.parametrize("name", PLANTED_IN)
def test_every_planted_codec_is_named_by_its_defect(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    named = set()
    assert any(PLANTED_IN[name] <= (named := named | checks(results)) for results in by_step(f"{PLANTED}:{name}")), (
        named
    )


@pytest.mark.parametrize("name", ALONE_IN)
def test_a_codec_is_named_by_the_cause_and_not_by_what_follows_from_it(name):
    assert checks(in_full(f"{PLANTED}:{name}")) == ALONE_IN[name]


def test_random_dropouts_are_not_repeatable_and_no_matter_of_the_batch():
    named = checks(in_full(f"{PLANTED}:DropsFramesAtRandom"))
    assert "repeatable" in named and "batch" not in named


def test_what_is_dropped_at_the_end_is_measured():
    for name, seconds in (("LosesTheLastFrame", 0.02), ("LosesTwoFrames", 0.04), ("LosesAPartialFrame", 0.0162)):
        (one,) = (f for f in in_full(f"{PLANTED}:{name}") if f["check"] == "last frame")
        assert one["value"] == pytest.approx(seconds, abs=0.003), name


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in range(1, 5))])
@pytest.mark.parametrize("kind, bps", [("MdctRvq", 600), ("MdctRvq", 800), ("MelRvq", 600), ("MelRvq", 800)])
def test_sound_codecs_of_600_and_800_bit_per_second_are_not_accused(kind, bps, seed):
    options = {"bps": bps, "seed": seed}
    assert not checks(in_full(f"{LOW}:{kind}", **options))
    codec = load_codec(f"{LOW}:{kind}", **options)
    listed = list(open_source("embedded"))
    for first in range(0, len(listed), 8):
        result, _ = quick_check(codec, [Audio.read(listed[(first + 9 * k) % len(listed)].audio) for k in range(4)])
        assert not checks(result)


@pytest.mark.parametrize("name", ["Wide", "FloatsOf64", "Denormals", "Streams"])
def test_a_right_codec_of_several_rates_and_channels_has_no_finding(name):
    assert not checks(in_full(f"{PLANTED}:{name}"))


@pytest.mark.parametrize("name", NAMED)
def test_the_cheap_form_sees_it_too(name, clips):
    result, serialised = quick_check(load_codec(f"{WRONG}:{name}"), clips)
    assert checks([*result, elsewhere(f"{WRONG}:{name}", serialised)]) == NAMED[name][1]


@pytest.mark.parametrize("name", ["Right", "UsesUpCodes"])
def test_a_right_codec_has_no_finding(name):
    result = in_full(f"{WRONG}:{name}")
    assert not checks(result) and {f["check"] for f in result if f["state"] == "ok"} == {
        "polarity", "hidden delay", "clipping", "silence", "level", "constant", "dropouts", "bitrate label", "length",
        "every rate", "last frame", "causal label", "file", "digital silence", "input", "repeatable", "batch", CHECK,
    }  # fmt: skip


def test_a_right_codec_of_a_low_bitrate_has_none_either_and_its_delay_and_sign_are_reported():
    by_name = {f["check"]: f for f in in_full(f"{WRONG}:FourKbps")}
    assert not faulty_findings(by_name.values()) and by_name["polarity"]["state"] == "ok"
    assert by_name["hidden delay"]["state"] == "ok" and abs(by_name["hidden delay"]["value"]) < 1


@pytest.mark.parametrize("name", RIGHT)
def test_classical_codecs_at_low_bitrates_are_not_accused(name, clips):
    music = np.sin(2 * np.pi * np.outer([220.0, 277.2, 329.6], np.arange(32000) / 16000)).sum(axis=0)
    hard = [clips[0], Audio(0.2 * music, 16000), Audio(np.zeros((2, 16000)), 16000)]
    for sounds in (clips, hard):
        result, serialised = quick_check(load_codec(name), sounds)
        assert not checks([*result, elsewhere(name, serialised)])


def test_codes_that_cannot_be_sent_are_no_fault(clips):
    result, reason = quick_check(load_codec(f"{WRONG}:Live"), clips)
    assert not checks(result) and reason == "its codes hold side['codec'], which cannot be sent as bytes: Live"


def test_the_first_failure_is_reported_and_not_the_last(clips):
    (result,) = check_formats(load_codec(f"{PLANTED}:RaisesAboveMono16k"), clips)
    assert result["state"] == "failed" and result["found"].startswith("at 44100 Hz, 1 channel: ")


def test_where_the_delay_is_unknown_a_right_finding_states_it(clips):
    for name, text in (
        (f"{PLANTED}:NoiseAt44100", "; the delay is unknown at 44100 Hz, 1 channel; 44100 Hz, 2 channels"),
        (f"{WRONG}:LevelAlone", "; the delay is unknown at 16000 Hz, 1 channel"),
        (f"{PLANTED}:Wide", "come back as they should"),
    ):
        (result,) = check_formats(load_codec(name), clips)
        assert result["state"] == "ok" and result["found"].endswith(text), name
