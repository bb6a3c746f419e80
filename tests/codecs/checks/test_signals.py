"""Alignment, signals, labels and behaviour: what each check says of sounds and codes that are made for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codec_bench import Audio, CodecInfo, Codes, CodeStream
from codec_bench.apps.profiling import latency
from codec_bench.codecs import load_codec
from codec_bench.codecs.adapt import recode
from codec_bench.codecs.checks import faulty_findings, finding, mask_training_checks
from codec_bench.codecs.checks.alignment import align_waves
from codec_bench.codecs.checks.behaviour import probe
from codec_bench.codecs.checks.labels import LabelChecks
from codec_bench.codecs.checks.serialised_codes import from_bytes, to_bytes
from codec_bench.codecs.checks.signals import SignalChecks, count_wraps, level_db
from codec_bench.data import open_source


@pytest.fixture(scope="module")
def clips():
    return [Audio.read(s.audio) for s in list(open_source("embedded"))[:4]]


def moved(samples, by):
    """Samples that are late by `by`, a fraction too, by the phase of their spectrum."""
    turn = np.exp(-2j * np.pi * np.fft.rfftfreq(samples.shape[-1]) * by)
    return np.fft.irfft(np.fft.rfft(samples) * turn, samples.shape[-1])


@pytest.mark.parametrize("by", [-13.0, 0.0, 0.5, 27.25, -0.75])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_delay_is_detected_in_both_directions_and_between_samples(by, sign):
    noise = np.random.default_rng(0).standard_normal((1, 4000))
    measured = align_waves(noise, sign * moved(noise, by), 16000, 100)
    assert measured.delay_samples == pytest.approx(by, abs=0.01)
    assert measured.correlation == pytest.approx(sign, abs=0.02)


def test_silence_has_no_alignment():
    measured = align_waves(np.zeros((1, 100)), np.zeros((1, 100)), 16000, 10)
    assert (measured.delay_samples, measured.correlation) == (0.0, 0.0)


def test_a_low_voice_with_a_turned_phase_is_neither_late_nor_turned_over(clips):
    # All that a speech coder's high pass does to a low voice, and more: everything below 250 Hz is turned by half a
    # period.
    checks = SignalChecks()
    for clip in clips:
        spectrum = np.fft.rfft(clip.samples)
        low = np.fft.rfftfreq(clip.num_samples, 1 / clip.sample_rate_hz) < 250
        turned = np.fft.irfft(np.where(low, -spectrum, spectrum), clip.num_samples)
        checks.add("x", clip, Audio(turned, clip.sample_rate_hz))
    assert {f["check"] for f in checks.findings(16000) if f["state"] != "ok"} == set()


def test_a_delay_is_detected_where_the_waveform_is_not_preserved(clips):
    checks, rng = SignalChecks(), np.random.default_rng(1)
    for clip in clips:
        level = np.convolve(np.abs(clip.samples[0]), np.ones(160) / 160, mode="same")
        noise = np.pad(level, (800, 0))[: level.size] * rng.standard_normal(level.size)  # its level alone, 50 ms late
        checks.add("x", clip, Audio(noise, clip.sample_rate_hz))
    by_name = {f["check"]: f for f in checks.findings(16000)}
    assert by_name["hidden delay"]["state"] == "suspect"
    assert by_name["hidden delay"]["value"] / 16 == pytest.approx(50, abs=5)
    assert by_name["polarity"]["state"] == "not applicable"


def test_a_level_is_that_of_what_is_coded(clips):
    samples = clips[0].samples
    assert level_db(samples, samples / 2, 16000) == pytest.approx(-6.02, abs=0.01)
    spectrum = np.fft.rfft(samples)
    spectrum[:, spectrum.shape[1] // 4 :] = 0  # without what lies above 2 kHz
    assert level_db(samples, np.fft.irfft(spectrum, samples.shape[1]), 16000) == pytest.approx(0.0, abs=0.1)


def labelled(info, *streams, seconds=4, role=None, side_bits=0.0):
    checks = LabelChecks()
    for length in (seconds, seconds / 2):
        output = [CodeStream(np.arange(round(frames * length))[None] % 256, 256, rate) for frames, rate in streams]
        content = {} if role is None else {"sound": np.zeros(round(role * length), np.float32)}
        checks.add(Codes(tuple(output), round(length * 16000), 16000, side=content, side_bits=side_bits * length))
    return {f["check"]: f["state"] for f in checks.findings(info)}


def test_labels_are_compared_with_what_is_sent():
    right = CodecInfo("x", (16000,), frame_rate_hz=50.0, nominal_bitrate_bps=400.0)
    assert labelled(right, (50, 50.0)) == {"bitrate label": "ok"}
    assert labelled(right, (100, 100.0))["bitrate label"] == "suspect"
    assert labelled(replace(right, tokens_per_s=62.5), (12.5, 12.5), (50, 50.0)) == labelled(
        right, (12.5, 12.5), (50, 50.0)
    )
    assert labelled(replace(right, tokens_per_s=50.0), (12.5, 12.5), (50, 50.0))["token label"] == "suspect"
    assert labelled(CodecInfo("x", (16000,), frame_rate_hz=75.0), (50, 50.0))["frame rate"] == "suspect"
    assert labelled(CodecInfo("x", (16000,), frame_rate_hz=50.0), (12.5, 12.5), (50, 50.0)) == {
        "bitrate label": "not applicable"
    }
    assert labelled(right, (200, 50.0))["frame rate"] == "suspect"
    assert labelled(right, (50, 50.0), role=16000)["side information"] == "suspect"
    assert "side information" not in labelled(right, (50, 50.0), role=10, side_bits=320.0)


def test_the_label_of_the_look_ahead_is_compared_with_what_was_measured():
    def state(beyond, **declared):
        measured = {"beyond_frame_samples": beyond, "sample_rate_hz": 16000}
        return latency.label(CodecInfo("x", (16000,), **declared), measured)["state"]

    assert state(0, causal=True) == "ok" and state(480, causal=True) == "suspect"
    assert state(480, causal=True, lookahead_s=0.03) == "ok" and state(480) == "not applicable"


def test_codes_come_back_from_bytes():
    role = {"scale": np.float32(0.5), "shape": (2, 3), "name": "a", "rest": b"\x00\x01", "taps": np.arange(3.0)}
    sent = Codes((CodeStream(np.array([[1, 2]]), 4, 50.0, "x"),), 640, 16000, (b"ab", b""), 32.0, role)
    got = from_bytes(to_bytes(sent))
    assert np.array_equal(got.streams[0].values, [[1, 2]]) and got.bits == sent.bits and got.packets == sent.packets
    assert (got.streams[0].name, got.num_samples, got.side["shape"], got.side["rest"]) == (
        "x",
        640,
        (2, 3),
        b"\x00\x01",
    )
    assert got.side["scale"] == 0.5 and np.array_equal(got.side["taps"], role["taps"]) and got.side["name"] == "a"


def test_the_probe_says_what_raised(clips):
    class Shy:
        info = CodecInfo("shy", (16000,), (1, 2))

        def encode(self, batch):
            if min(audio.num_samples for audio in batch) < 100:
                raise ValueError("too short for me")
            return [Codes((), a.num_samples, 16000, (a.samples.tobytes(),), side={"n": a.channels}) for a in batch]

        def decode(self, codes):
            sounds = [np.frombuffer(c.packets[0], np.float32).reshape(c.side["n"], -1) for c in codes]
            return [Audio(sound[::-1], 16000) for sound in sounds]  # the channels are exchanged

    by_name = {f["check"]: f for f in probe(Shy(), [Audio(c.samples[:, :32000], 16000) for c in clips[:3]])}
    assert by_name["length"]["state"] == "failed"
    assert by_name["length"]["found"] == "1 sample of 1 channel at 16000 Hz: ValueError: too short for me"
    assert by_name["channels"]["state"] == "suspect" and by_name["batch"]["state"] == "ok"


def test_of_weights_that_are_noise_only_what_training_decides_cannot_be_determined(clips):
    checks = SignalChecks()
    for clip in clips:
        checks.add("x", clip, Audio(np.random.default_rng(1).standard_normal(clip.samples.shape), clip.sample_rate_hz))
    results = [*checks.findings(16000), finding("batch", "suspect", "it differs")]
    assert {f["check"] for f in faulty_findings(results)} >= {"level", "clipping", "batch"}
    assert [f["check"] for f in faulty_findings(mask_training_checks(results))] == ["batch"]
    (level,) = [f for f in mask_training_checks(results) if f["check"] == "level"]
    assert level["found"].startswith(
        "unknown, because the weights are random; of these, the level of the estimates is +"
    )


def test_a_lossy_codec_may_overshoot_next_to_the_flat_tops_of_clipped_sound(clips):
    def limited(gain):
        peaks = [gain / np.abs(c.samples).max() for c in clips]
        return [Audio(np.clip(c.samples * by, -1, 1), c.sample_rate_hz) for c, by in zip(clips, peaks)]

    coded = recode(load_codec("opus-12k"), limited(8))[1]
    louder = [Audio(2 * a.samples, a.sample_rate_hz) for a in limited(2)]
    for references, estimates, state in ((limited(8), coded, "ok"), (limited(2), louder, "suspect")):
        checks = SignalChecks()
        for n, pair in enumerate(zip(references, estimates)):
            checks.add(f"{n}", *pair)
        (results,) = [f for f in checks.findings(16000) if f["check"] == "clipping"]
        assert results["value"] > 1e-3 and results["state"] == state


def test_samples_that_wrap_around_differ_from_clipped_and_noisy_ones():
    t = np.arange(16_000) / 16_000
    speech = (0.97 * np.sin(2 * np.pi * 200 * t) * np.sin(2 * np.pi * 3 * t))[None]
    wrapped = (1.1 * speech + 1) % 2 - 1
    noisy = speech + np.random.default_rng(0).normal(0, 0.1, speech.shape)
    assert count_wraps(speech, wrapped) > 20
    assert [count_wraps(speech, other) for other in (speech, np.clip(1.1 * speech, -1, 1), -speech, noisy)] == [0] * 4


@pytest.mark.parametrize("rare, frames, dead", [(0, 60, 1), (9, 1000, 1), (11, 1000, 0), (1, 500, 0), (0, 40, 0)])
def test_a_codebook_with_nearly_one_code_is_dead(rare, frames, dead):
    """The second codebook gives code 5 in all frames but `rare` ones."""
    values = np.stack([np.arange(frames) % 16, np.where(np.arange(frames) < rare, 3, 5)])
    checks = LabelChecks()
    for half in np.array_split(values, 2, axis=1):
        checks.add(Codes((CodeStream(half, 16, 50.0),), 320 * half.shape[1], 16000))
    findings = [one for one in checks.findings(CodecInfo("x", (16000,))) if one["check"] == "constant codebook"]
    assert len(findings) == dead
    if dead:
        figures = findings[0]["found"].parameters
        assert (figures["codebook"], figures["value"]) == (2, 5)
        assert figures["percent"] == pytest.approx(100 * (1 - rare / frames))
