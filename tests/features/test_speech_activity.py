"""Speech activity against the package's own form for streams, and the metrics on stretches whose overlap is known."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import Unavailable, load_feature
from codec_bench.features import speech_activity as module
from codec_bench.messages import Diagnostic
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

RATE = module.RATE_HZ
needs_the_package = pytest.mark.skipif(
    module.package_version("silero-vad") is None, reason="the extra embedded is not installed"
)


@pytest.mark.compares("speech-activity", weights="published")
@needs_the_package
def test_stretches_are_those_of_the_stream_form(embedded):
    import torch

    threads = torch.get_num_threads()
    feature = load_feature("speech-activity")
    signals = [prepare(audio, RATE) for _, audio in embedded[:3]]
    signals += [
        np.concatenate([np.zeros(RATE, np.float32), signals[0], np.zeros(RATE, np.float32), signals[1]]),
        np.zeros(RATE, np.float32),
    ]
    result = feature.compute(signals)
    assert torch.get_num_threads() == threads
    from silero_vad import get_speech_timestamps, load_silero_vad

    stream = load_silero_vad(onnx=True)
    for signal, one in zip(signals, result, strict=True):
        expected = get_speech_timestamps(torch.from_numpy(signal), stream, sampling_rate=RATE)
        assert [*zip(one["starts"], one["ends"])] == [(item["start"], item["end"]) for item in expected]
        assert one["samples"] == signal.size
    assert len(result[3]["starts"]) >= 2 and not len(result[4]["starts"])
    torch.set_num_threads(threads)


@needs_the_package
def test_unusable_audio_is_unavailable():
    none, broken = load_feature("speech-activity").compute([np.zeros(0, np.float32), np.full(900, np.nan, np.float32)])
    assert isinstance(none, Unavailable) and isinstance(broken, Unavailable)


def test_other_versions_and_weights_are_one_sentence(monkeypatch):
    monkeypatch.setattr(module, "package_version", lambda name: "6.20.1")
    with refuses("package_version_unexpected", package="silero-vad", version="6.2", installed="6.20.1"):
        load_feature("speech-activity")
    with refuses("no_weights_to_replace"):
        load_feature("speech-activity", weights="x")
    monkeypatch.setattr(module, "package_version", lambda name: None)
    with refuses("package_not_installed", package="silero-vad"):
        load_feature("speech-activity")


def result(samples, *stretches):
    starts, ends = (np.array(role, np.int64) for role in zip(*stretches)) if stretches else (np.zeros(0, int),) * 2
    return {"starts": starts, "ends": ends, "samples": samples}


def score(name, estimate, reference=None):
    metric = build_metric(name)
    features = {
        "estimate_features": {"speech-activity": estimate},
        "reference_features": {"speech-activity": reference},
    }
    return metric.compute([Inputs("a", RATE, **features)])[0]


def test_shares_of_known_stretches():
    reference, estimate = result(1000, (100, 300), (500, 700)), result(1000, (200, 400), (500, 600))
    assert score("speech_share", estimate).value == pytest.approx(0.3)
    assert score("speech_kept", estimate, reference).value == pytest.approx(200 / 400)
    assert score("silence_kept", estimate, reference).value == pytest.approx(500 / 600)
    assert score("leading_silence_error", estimate, reference).value == pytest.approx(100 / RATE)
    for name, expected in (("speech_kept", 1), ("silence_kept", 1), ("leading_silence_error", 0)):
        assert score(name, reference, reference).value == expected


def test_lengths_may_differ_by_a_last_frame_only():
    assert score("speech_kept", result(1100, (0, 1100)), result(1000, (0, 1000))).value == 1
    assert score("speech_kept", result(9000), result(1000, (0, 1000))).status == "refused"


def test_without_speech_there_is_no_value():
    silent, speech = result(1000), result(1000, (0, 1000))
    assert score("speech_share", silent).value == 0
    assert score("speech_kept", speech, silent).reason == Diagnostic("reference_without_speech")
    assert score("silence_kept", speech, speech).reason == Diagnostic("reference_without_silence")
    assert score("leading_silence_error", silent, speech).reason == Diagnostic("sides_without_speech", sides="estimate")
    assert score("leading_silence_error", silent, silent).reason == Diagnostic("no_speech_at_all")
