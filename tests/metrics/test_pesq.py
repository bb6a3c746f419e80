"""PESQ equals the package's number to the last bit, and signals that its C code cannot hold are never passed to it."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import forked
import numpy as np
import pytest
from pesq import PesqError, pesq
from scipy.signal import butter, sosfilt

from codec_bench.metrics import Inputs, build_metric
from codec_bench.metrics.pesq import MAX_DURATION_S, MAX_UTTERANCES, SAFE_DURATION_S, most_utterances, speech_band

BANDS = pytest.mark.parametrize(("name", "mode", "rate_hz"), [("pesq_wb", "wb", 16_000), ("pesq_nb", "nb", 8_000)])


def bursts(count, rate_hz, *, on_s=0.3, off_s=0.35):
    """This many utterances of noise with silence between them."""
    rng = np.random.default_rng(count)
    on, off = int(on_s * rate_hz), np.zeros(int(off_s * rate_hz))
    parts = [off]
    for _ in range(count):
        parts += [0.3 * rng.uniform(-1, 1, on) * np.hanning(on), off]
    return np.concatenate(parts).astype(np.float32)


def worse(signal, level=0.01):
    return (signal + level * np.random.default_rng(0).standard_normal(signal.size)).astype(np.float32)


def score(name, rate_hz, reference, estimate):
    return build_metric(name).compute([Inputs("x", rate_hz, estimate, reference)])[0]


@pytest.mark.compares("pesq_wb", "pesq_nb", weights="none")
@BANDS
def test_equals_the_package_on_every_clip(spoken_pairs, name, mode, rate_hz):
    metric, statuses = build_metric(name), []
    for pair in spoken_pairs(rate_hz)[::3]:
        result = metric.compute([pair.inputs])[0]
        expected = pesq(rate_hz, pair.reference, pair.estimate, mode, on_error=PesqError.RETURN_VALUES)
        if expected > 0:
            assert result.value == expected, pair.inputs.id
            assert metric.range[0] <= result.value <= metric.range[1]
        else:
            assert result.status == "undefined", (pair.inputs.id, expected)
        statuses.append(result.status)
    assert statuses.count("ok") > 15 and statuses.count("undefined") > 2  # some clips last less than 0.25 s


@BANDS
def test_a_score_does_not_depend_on_the_batch(spoken_pairs, name, mode, rate_hz):
    items = [pair.inputs for pair in spoken_pairs(rate_hz) if pair.reference.size < 5 * rate_hz][::7]
    metric = build_metric(name)
    alone = [metric.compute([item])[0].value for item in items]
    other = build_metric("pesq_nb" if mode == "wb" else "pesq_wb")  # the C code keeps the rate in a global
    other.compute([Inputs("x", other.rate_hz, bursts(3, other.rate_hz), bursts(3, other.rate_hz))])
    assert alone == [results.value for results in metric.compute(items)]
    assert alone == [results.value for results in metric.compute(items[::-1])][::-1]
    assert sum(value is not None for value in alone) > 4


@BANDS
def test_a_copy_is_best_and_more_noise_is_worse(name, mode, rate_hz):
    signal = bursts(4, rate_hz)
    values = [score(name, rate_hz, signal, worse(signal, level)).value for level in (0.0, 1e-3, 1e-2, 1e-1)]
    assert values == sorted(values, reverse=True) and values[0] > 4.5
    assert score(name, rate_hz, signal, signal * np.float32(0.5)).value == pytest.approx(values[0], abs=1e-3)
    # The best score that there is, as P.862.1 and P.862.2 say of a raw score of 4.5: 4.5486 and 4.6439.
    assert 0 <= build_metric(name).range[1] - values[0] < 2e-6


@BANDS
def test_signals_without_a_value_state_why(name, mode, rate_hz):
    signal = bursts(3, rate_hz)
    silence = np.zeros_like(signal)
    cases = {
        "the reference is silent": (silence, signal),
        "the estimate is silent": (signal, silence),
        "too short": (signal[3 * rate_hz // 8 :][: rate_hz // 4 - 1],) * 2,
        "no utterance": (signal * np.float32(1e-30), signal),
    }
    for words, (reference, estimate) in cases.items():
        result = score(name, rate_hz, reference, estimate)
        assert result.status == "undefined" and result.value is None and words in result.reason
    enough = signal[3 * rate_hz // 8 :][: rate_hz // 4]
    assert score(name, rate_hz, enough, enough).status == "ok"


@BANDS
def test_as_many_utterances_as_its_tables_hold_are_scored_and_more_are_refused(name, mode, rate_hz):
    signal = bursts(MAX_UTTERANCES, rate_hz)
    assert signal.size / rate_hz > SAFE_DURATION_S
    assert score(name, rate_hz, signal, worse(signal)).value == pesq(rate_hz, signal, worse(signal), mode)
    for count in (MAX_UTTERANCES + 1, 60):
        signal = bursts(count, rate_hz)
        result = score(name, rate_hz, signal, worse(signal))
        assert result.status == "refused" and str(count) in result.reason


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="how a process dies differs")
def test_the_refusal_is_needed(tmp_path):
    """Without this limit, one long file would crash the process that scores it."""
    program = """
        import numpy as np
        from pesq import pesq
        rng = np.random.default_rng(60)
        gap = np.zeros(2800)
        parts = [gap]
        for _ in range(60):
            parts += [0.3 * rng.uniform(-1, 1, 2400) * np.hanning(2400), gap]
        signal = np.concatenate(parts).astype(np.float32)
        pesq(8000, signal, signal + 0.01 * rng.standard_normal(signal.size).astype(np.float32), "nb")
    """
    (tmp_path / "long.py").write_text(textwrap.dedent(program))
    process = forked.start([sys.executable, str(tmp_path / "long.py")], cwd=tmp_path)
    process.communicate(timeout=240)
    assert process.returncode < 0, "the pesq package survives 60 utterances now: lift the limit"


@BANDS
def test_audio_beyond_the_table_of_bad_intervals_is_refused(name, mode, rate_hz):
    signal = bursts(2, rate_hz, on_s=1.0, off_s=MAX_DURATION_S / 3)
    assert signal.size > MAX_DURATION_S * rate_hz
    result = score(name, rate_hz, signal, signal)
    assert result.status == "refused" and result.reason.code == "pesq_too_long"


@pytest.mark.parametrize("rate_hz", [8_000, 16_000])
def test_the_speech_band_is_that_of_scipys_filter(rate_hz, rng):
    noise = rng.standard_normal(rate_hz)
    sections = butter(4, (300.0, 3000.0), "bandpass", fs=rate_hz, output="sos")
    np.testing.assert_allclose(speech_band(noise, rate_hz), sosfilt(sections, noise), rtol=0, atol=1e-12)


def test_scoring_does_not_import_scipys_filters():
    """They take longer to import than a minute of speech takes to score."""
    program = """
        import sys
        import numpy as np
        from codec_bench import Audio, load_metric
        noise = Audio(np.random.default_rng(0).uniform(-0.1, 0.1, (1, 20 * 16_000)).astype(np.float32), 16_000)
        for name in ("pesq_wb", "pesq_nb"):
            load_metric(name)(estimate=[noise], reference=[noise])
        sys.exit("scipy.signal" in sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


@pytest.mark.parametrize("rate_hz", [8_000, 16_000])
def test_utterances_are_never_counted_too_few(rate_hz):
    """This holds for any level of the bursts, of the hum under them and of the noise between them."""
    rng = np.random.default_rng(1)
    for count in (1, 10, 33):
        signal = bursts(count, rate_hz)
        time_s = np.arange(signal.size) / rate_hz
        hum = 0.2 * np.sin(2 * np.pi * 50 * time_s)
        hiss = 1e-3 * rng.standard_normal(signal.size)
        for level in (1.0, 1e-3):
            assert most_utterances((level * (signal + hum + hiss)).astype(np.float32), rate_hz) >= count


def test_long_speech_is_scored(spoken):
    """The length of LibriSpeech's longest utterances, out of real sentences."""
    from codec_bench.audio.resample import prepare

    speech = [prepare(audio, 8_000) for row, audio in spoken if row.get("language") == "en" and audio.duration_s > 2]
    signal = np.resize(np.concatenate(speech), 35 * 8_000)
    assert score("pesq_nb", 8_000, signal, worse(signal)).value == pesq(8_000, signal, worse(signal), "nb")
