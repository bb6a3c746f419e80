"""Durations, rates and loudness follow their definitions on signals that are known, and refuse what they cannot
compare.
"""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.features.level import Level
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics import Inputs, build_metric
from codec_bench.metrics.base import inputs_or_score

RATE = 16_000


def tone(seconds, before=0.0, after=0.0):
    """A tone whose loudness rises and falls, between silences."""
    time = np.arange(round(seconds * RATE)) / RATE
    sound = 0.2 * np.sin(2 * np.pi * 200 * time) * (1.2 + np.sin(2 * np.pi * 1.5 * time))
    return np.concatenate([np.zeros(round(before * RATE)), sound, np.zeros(round(after * RATE))]).astype(np.float32)


def score(name, reference, estimate, words=None):
    levels = Level().compute([reference, estimate])
    sides = [{"level": level} for level in levels]
    for role, text in zip(sides, words or (), strict=False):
        role["pocketsphinx"] = {"transcript": text, "language": "en"}
    metric = build_metric(name)
    item = inputs_or_score(
        metric, id="x", rate_hz=RATE, language="en", reference_features=sides[0], estimate_features=sides[1]
    )
    assert isinstance(item, Inputs)
    return metric.compute([item])[0]


@pytest.mark.compares("duration_error", weights="none")
def test_durations():
    reference = tone(2.0, before=0.5)
    assert score("duration_error", reference, reference).value == 0
    longer = score("duration_error", reference, tone(2.0, before=0.5, after=1.0))
    assert longer.value == pytest.approx(0.4) and longer.detail == {"reference_s": 2.5, "estimate_s": 3.5}
    assert score("duration_error", reference, tone(1.0)).value == pytest.approx(0.6)
    # Silence at the ends is no speech, and a frame more or less at each end is the resolution.
    assert score("duration_error[speech]", reference, tone(2.0, after=1.5)).value == pytest.approx(0, abs=0.02)
    assert score("duration_error[speech]", reference, tone(3.0, before=0.2)).value == pytest.approx(0.5, abs=0.03)


def test_no_speech_has_no_length():
    silence = np.zeros(RATE, np.float32)
    result = score("duration_error[speech]", tone(1.0), silence)
    assert result.status == "undefined" and Diagnostic("digital_silence") in result.reason
    assert score("duration_error", tone(1.0), silence).value == 0
    with refuses("no_variant", variant="words"):
        build_metric("duration_error[words]")


@pytest.mark.compares("energy_corr", weights="none")
def test_loudness():
    reference = tone(2.0)
    assert score("energy_corr", reference, reference).value == pytest.approx(1)
    assert score("energy_corr", reference, np.float32(0.01) * reference).value == pytest.approx(1, abs=1e-6)
    time = np.arange(2 * RATE) / RATE
    against = (0.2 * np.sin(2 * np.pi * 200 * time) * (1.2 - np.sin(2 * np.pi * 1.5 * time))).astype(np.float32)
    assert score("energy_corr", reference, against).value < -0.5
    levels = [np.maximum(x["level_db"], x["level_db"].max() - 60) for x in Level().compute([reference, against])]
    result = score("energy_corr", reference, against)
    assert result.value == pytest.approx(np.corrcoef(*levels)[0, 1], abs=1e-6) and result.detail == {"frames": 201}


def test_loudness_that_cannot_be_compared():
    result = score("energy_corr", tone(2.0), tone(2.3))
    assert result.status == "refused" and result.reason.as_dict() == {
        "code": "frames_apart",
        "longer_s": 0.3,
        "tolerance_s": 0.1,
    }
    assert score("energy_corr", tone(2.0), tone(2.09)).status == "ok"
    assert score("energy_corr", tone(1.0), np.zeros(RATE, np.float32)).reason.as_dict() == {
        "code": "level_constant",
        "side": "estimate",
    }
    assert score("energy_corr", tone(0.005), tone(0.005)).reason.code == "few_frames"


@pytest.mark.compares("speaking_rate_error", weights="none")
def test_speaking_rates():
    """Eight words in two seconds against eight in four, six in two, and none."""
    text, fewer = "the farmer put some white eggs down here", "the farmer put some eggs down"
    name = "speaking_rate_error[pocketsphinx]"
    same = score(name, tone(2.0), tone(2.0, before=1.0), (text, text))
    assert same.value == pytest.approx(0, abs=0.02)
    slow = score(name, tone(2.0), tone(4.0), (text, text))
    assert slow.value == pytest.approx(0.5, abs=0.02) and slow.detail["reference_per_s"] == pytest.approx(4, abs=0.1)
    assert score(name, tone(2.0), tone(2.0), (text, fewer)).value == pytest.approx(0.25, abs=0.01)
    assert score(name, tone(2.0), tone(2.0), (text, "")).value == 1
    none = score(name, tone(2.0), tone(2.0), ("", text))
    assert none.status == "undefined" and none.reason.code == "no_speaking_rate"


@pytest.mark.compares("speaking_rate", weights="none")
@pytest.mark.parametrize(
    ("name", "rate"), [("speaking_rate[pocketsphinx]", 4.0), ("speaking_rate[pocketsphinx]@char", 8.0)]
)
def test_the_rate_of_one_signal_is_versas(name, rate):
    """VERSA: words or characters of the transcript over seconds of the file."""
    features = {"pocketsphinx": {"transcript": "we go up on it as is"[:16] + " we"}, "level": {"duration_s": 1.5}}
    words = features["pocketsphinx"]["transcript"]
    features["level"]["duration_s"] = (len(words) if "@" in name else len(words.split())) / rate
    (result,) = build_metric(name).compute([Inputs("x", RATE, estimate_features=features)])
    assert result.value == pytest.approx(rate) and result.detail == {"transcript": words}
    with pytest.raises(UserError):
        build_metric("speaking_rate[pocketsphinx]@phones")


@pytest.mark.parametrize("name", ["lid", "lid[whisper-tiny.en]", "lid[pocketsphinx]"])
def test_a_language_needs_a_multilingual_whisper(name):
    with pytest.raises(UserError):
        build_metric(name)


def test_a_rate_needs_a_recogniser():
    with refuses("recogniser_unnamed"):
        build_metric("speaking_rate_error")
    metric = build_metric("speaking_rate_error[pocketsphinx]")
    assert metric.features_of("en") == (("pocketsphinx", "level"), ("pocketsphinx", "level"))
    assert metric.protocol.endswith("/within-40db") and metric.protocol.startswith("speaking_rate_error/")
