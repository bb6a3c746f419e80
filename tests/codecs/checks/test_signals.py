"""Delay, clipping, silence, level and labels: codecs made to be wrong in one way each."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench import Audio, CodecInfo
from codec_bench.codecs import load_codec
from codec_bench.profiling import sanity
from codec_bench.profiling.material import Material, recode


def looked(name, files):
    codec = load_codec(name)
    material, counter = Material(files, codec), sanity.SanityCounter()
    for (sample, _), piece in zip(files, material.few):
        counter.add(sample, piece, recode(codec, [piece])[1][0])
    return {f["check"]: f for f in counter.findings(16000)}


WRONG = {
    "Pcm": {},
    "Late": {"hidden delay": 40.0},
    "Quieter": {"level": -12.04},
    "Loud": {"clipping": None, "level": None},
    "Silent": {"silence": 4.0},
}


@pytest.mark.parametrize("name", WRONG)
def test_only_what_is_wrong_is_suspect(files, odd, name):
    found = looked(odd(name), files)
    assert {check for check, f in found.items() if f["state"] == "suspect"} == set(WRONG[name])
    for check, value in WRONG[name].items():
        if value is not None:
            assert found[check]["value"] == pytest.approx(value, abs=0.05)


def test_a_delay_is_found_where_the_waveform_is_not_kept(files, odd, rng):
    codec = load_codec(odd("Pcm"))
    counter = sanity.SanityCounter()
    for piece in Material(files, codec).few:
        level = np.convolve(np.abs(piece.samples[0]), np.ones(160) / 160, mode="same")
        noise = np.pad(level, (800, 0))[: level.size] * rng.standard_normal(level.size)  # its level alone, 50 ms late
        counter.add("x", piece, Audio(noise, 16000))
    (delay,) = (f for f in counter.findings(16000) if f["check"] == "hidden delay")
    assert delay["state"] == "suspect" and delay["value"] / 16 == pytest.approx(50, abs=5)


def test_delay_of_finds_both_directions(rng):
    noise = rng.standard_normal(4000)
    for lag in (-13, 0, 27):
        assert sanity.delay_of(noise, np.roll(noise, lag), 100) == (lag, pytest.approx(1.0, abs=0.02))
    assert sanity.delay_of(np.zeros(100), np.zeros(100), 10) == (0, 0.0)


def test_a_right_codec_passes_the_probe(files, odd):
    codec = load_codec(odd("Framed"))
    assert {f["check"]: f["state"] for f in sanity.probe(codec, Material(files, codec))} == {
        "length": "ok", "digital silence": "ok", "repeatable": "ok", "batch": "ok",
    }  # fmt: skip


def test_the_probe_says_what_is_wrong(files, odd):
    codec = load_codec(odd("Pcm"))

    class Wrong(type(codec)):
        calls = 0

        def encode(self, batch):
            if min(a.num_samples for a in batch) < 100:
                raise ValueError("too short for me")
            return super().encode(batch)

        def decode(self, codes):
            self.calls += 1
            return [Audio(a.samples + 0.01 * self.calls * len(codes), 16000) for a in super().decode(codes)]

    found = {f["check"]: f for f in sanity.probe(Wrong(), Material(files, codec))}
    assert found["length"]["state"] == "failed" and "too short for me" in found["length"]["found"]
    assert {found[c]["state"] for c in ("digital silence", "repeatable", "batch")} == {"suspect"}


def labelled(info, nominal, beyond):
    rate = {"nominal_bps": nominal, "measured_bps": nominal, "streams": [{"frame_rate_hz": 50.0}]}
    latency = {"lookahead_samples": beyond, "beyond_frame_samples": beyond, "sample_rate_hz": 16000}
    return {f["check"]: f["state"] for f in sanity.labels(info, rate, latency)}


def test_labels_are_compared_with_what_was_measured():
    said = {"frame_rate_hz": 50.0, "nominal_bitrate_bps": 2000.0, "causal": True}
    right = CodecInfo("x", (16000,), **said)
    assert labelled(right, 2000.0, 0) == {"bitrate label": "ok", "causal label": "ok"}
    assert labelled(right, 4000.0, 0)["bitrate label"] == "suspect"
    assert labelled(right, 2000.0, 480)["causal label"] == "suspect"
    ahead = CodecInfo("x", (16000,), **{**said, "lookahead_s": 0.03})
    assert labelled(ahead, 2000.0, 480)["causal label"] == "ok"
    # Who declares nothing has declared nothing wrong.
    nothing = {"bitrate label": "not applicable", "causal label": "not applicable"}
    assert labelled(CodecInfo("x", (16000,)), 2000.0, 0) == nothing
    assert labelled(CodecInfo("x", (16000,), **{**said, "frame_rate_hz": 75.0}), 2000.0, 0)["frame rate"] == "suspect"
