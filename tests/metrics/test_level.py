"""Level: loudness and true peak against FFmpeg's meter and EBU Tech 3341, clipping against a count by hand."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from codec_bench import Audio, evaluate
from codec_bench.data import open_source
from codec_bench.data.source import Sample
from codec_bench.metrics import Inputs, build_metric


def score(name, estimate, reference=None, rate_hz=48_000):
    metric = build_metric(name)
    return metric.compute([Inputs("x", rate_hz, metric.prepare_signal(estimate), reference)])[0]


def sine(parts_of_rate, degrees, amplitude, samples=48_000):
    phase = 2 * np.pi * np.arange(samples) / parts_of_rate + np.deg2rad(degrees)
    return (amplitude * np.sin(phase)).astype(np.float32)


@pytest.fixture(scope="module")
def rough():
    """Noise whose level changes from block to block, 5 s at 44.1 kHz."""
    rng = np.random.default_rng(3)
    return (rng.uniform(-1, 1, 44_100 * 5) * np.repeat(10 ** rng.uniform(-1.5, -0.1, 50), 4_410)).astype(np.float32)


def ffmpeg(signal, rate_hz, folder):
    """The loudness in LUFS and the true peak in dB of full scale by FFmpeg's meter."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    import soundfile

    soundfile.write(folder / "a.wav", signal, rate_hz, subtype="FLOAT")
    words = ["ffmpeg", "-hide_banner", "-nostats", "-i", str(folder / "a.wav"), "-filter_complex", "ebur128=peak=true"]
    output = subprocess.run([*words, "-f", "null", "-"], capture_output=True, text=True, check=True).stderr
    return [float(re.findall(pattern, output)[-1]) for pattern in (r"I:\s+(-?[\d.]+) LUFS", r"Peak:\s+(-?[\d.]+) dBFS")]


@pytest.mark.parametrize(
    ("parts", "degrees", "amplitude", "expected"),
    [(4, 0, 0.5, -6.0), (4, 45, 0.5, -6.0), (6, 60, 0.5, -6.0), (8, 67.5, 0.5, -6.0), (4, 45, 1.41, 3.0)],
    ids=["case 15", "case 16", "case 17", "case 18", "case 19"],
)
def test_the_synthetic_peaks_of_ebu_tech_3341(parts, degrees, amplitude, expected):
    signal = sine(parts, degrees, amplitude)
    signal[:480] *= np.linspace(0, 1, 480, dtype=np.float32)  # the cases fade in, so that nothing rings
    signal[-480:] *= np.linspace(1, 0, 480, dtype=np.float32)
    assert expected - 0.4 <= score("true_peak", signal).value <= expected + 0.2


@pytest.mark.compares("loudness_error", weights="none")
@pytest.mark.compares("true_peak", weights="none")
def test_ffmpegs_meter_says_the_same(rough, tmp_path):
    other = np.clip(3 * rough, -0.9, 0.9)
    (loud, peak), (other_loud, other_peak) = (ffmpeg(role, 44_100, tmp_path) for role in (rough, other))
    result = score("loudness_error", other, rough, 44_100)
    assert result.value == pytest.approx(abs(other_loud - loud), abs=0.15)
    assert result.detail["louder_lu"] == pytest.approx(other_loud - loud, abs=0.15) and other_loud > loud
    # White noise reaches up to half the rate, where no two interpolators agree.
    assert score("true_peak", rough, rate_hz=44_100).value == pytest.approx(peak, abs=0.5)
    assert score("true_peak", other, rate_hz=44_100).value == pytest.approx(other_peak, abs=0.5)
    for sample in list(open_source("embedded"))[:3]:
        speech = 4 * Audio.read(sample.audio).samples[0]
        expected = ffmpeg(speech, 16_000, tmp_path)[1]
        assert score("true_peak", speech, rate_hz=16_000).value == pytest.approx(expected, abs=0.1)


def test_a_gain_counts_whole_and_either_way(rough):
    for gain_db in (-6, 6):
        quiet = (rough / 8).astype(np.float32)
        result = score("loudness_error", quiet * np.float32(10 ** (gain_db / 20)), quiet, 44_100)
        assert result.value == pytest.approx(6, abs=0.01) and result.detail["louder_lu"] == pytest.approx(
            gain_db, abs=0.01
        )
    assert score("loudness_error", rough, rough, 44_100).value == 0


@pytest.mark.compares("clipped_share", weights="none")
def test_clipped_samples_are_counted_in_runs():
    signal = np.zeros(100, np.float32)
    signal[3:5] = 1.0  # two: a peak
    signal[10:13] = 1.0  # three
    signal[20:22], signal[22:24] = 1.0, -1.0  # two on each side
    signal[40:44] = -1.2  # four, beyond full scale
    signal[97:] = 32767 / 32768  # three, up to the end
    assert score("clipped_share", signal).value == pytest.approx(10 / 100)
    assert score("clipped_share", 0.99 * np.ones(50, np.float32)).value == 0


def test_what_has_no_value_says_why():
    nothing = np.zeros(48_000, np.float32)
    assert score("loudness_error", nothing, sine(100, 0, 0.5)).reason.as_dict() == {
        "code": "too_quiet",
        "side": "estimate",
    }
    assert score("loudness_error", sine(100, 0, 0.5), nothing).reason.as_dict() == {
        "code": "too_quiet",
        "side": "reference",
    }
    assert score("true_peak", nothing).reason.code == "digital_silence"
    assert score("clipped_share", np.zeros(0, np.float32)).status == "undefined"


LOUD = """
from codec_bench import Audio, CodecInfo, Codes


class Loud:
    info = CodecInfo("loud", (16000,), (1,), frame_rate_hz=50)

    def encode(self, batch):
        self.kept = batch
        return [Codes((), audio.num_samples, audio.sample_rate_hz) for audio in batch]

    def decode(self, codes):
        return [Audio(2 * audio.samples, audio.sample_rate_hz) for audio in self.kept]
"""


def test_a_run_reads_what_lies_beyond_full_scale(tmp_path):
    """The cut at full scale that other metrics need does not reach these two."""
    import soundfile

    (tmp_path / "own.py").write_text(LOUD)
    soundfile.write(tmp_path / "a.wav", sine(160, 0, 0.9, 16_000), 16_000, subtype="FLOAT")
    run = evaluate(
        codec=f"{tmp_path / 'own.py'}:Loud", data=[Sample("a", str(tmp_path / "a.wav"))], out=tmp_path / "run",
        page=False,
        metrics=["true_peak", "clipped_share", "loudness_error"], cache=False, check=False, workers=1,
    )  # fmt: skip
    rows = {row.metric: row for row in run.scores()}
    assert rows["true_peak"].value == pytest.approx(20 * np.log10(1.8), abs=0.05)
    assert rows["clipped_share"].value == pytest.approx(
        np.mean(np.abs(1.8 * np.sin(2 * np.pi * np.arange(160) / 160)) >= 1), abs=0.02
    )
