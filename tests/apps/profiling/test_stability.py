"""Agreement of tokens under re-encoding, gain and shift."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench import Audio, Codes, CodeStream
from codec_bench.apps.profiling import stability
from codec_bench.apps.profiling.settings import Settings


def test_agreement_counts_per_codebook_and_missing_frames_as_different():
    one = Codes((CodeStream(np.array([[1, 2, 3, 4], [1, 2, 3, 4]]), 8, 50.0),), 4, 16000)
    other = Codes((CodeStream(np.array([[1, 2, 0, 4], [0, 0, 0, 4]]), 8, 50.0),), 4, 16000)
    short = Codes((CodeStream(np.array([[1, 2], [1, 0]]), 8, 50.0),), 4, 16000)
    assert stability.agreement([one], [other]) == [0.75, 0.25]
    assert stability.agreement([one], [short]) == [0.5, 0.25]
    assert stability.agreement([Codes((), 4, 16000)], [Codes((), 4, 16000)]) is None


def test_samples_survive_re_encoding_and_a_shift(measured):
    result = measured(stability.measure, "Pcm", reencodings=2)
    assert [entry["with_first"] for entry in result["reencoding"]] == [[1.0], [1.0]]
    options = {entry["change"]: entry for entry in result["changes"]}
    assert options["1 sample later"]["wave_snr_db"] > 80
    for name in ("6 dB softer", "6 dB louder"):
        assert options[name]["wave_snr_db"] > 60 and options[name]["agreement"][0] < 0.9


def test_what_decays_in_every_round_drifts(measured):
    result = measured(stability.measure, "Quieter", reencodings=3)
    with_first = [entry["with_first"][0] for entry in result["reencoding"]]
    assert with_first[0] < 0.5 and with_first[1] <= with_first[0] + 0.05
    assert result["reencoding"][2]["with_previous"][0] > with_first[2]  # the codes of silence no longer change


def test_only_the_codebook_that_carries_the_level_changes_with_it(measured):
    result = measured(stability.measure, "GainShy", gains_db=(-6.0, 3.0))
    options = {entry["change"]: entry for entry in result["changes"]}
    for name in ("6 dB softer", "3 dB louder"):
        assert options[name]["agreement"][0] == 1.0 and options[name]["agreement"][1] < 0.9


def test_a_codec_of_packets_has_waves_to_compare_and_no_codes(files):
    from codec_bench.codecs import load_codec
    from codec_bench.codecs.checks.material import ProfileClips

    codec = load_codec("opus-12k")
    measured = stability.measure(codec, ProfileClips(files, codec), Settings(robust_clips=1, robust_s=1.0))
    assert measured["reencoding"] == [] and "packets" in measured["tokens_reason"]
    later = next(entry for entry in measured["changes"] if entry["change"] == "1 sample later")
    assert later["agreement"] is None and later["wave_snr_db"] == pytest.approx(15, abs=10)
    values = {entry["change"]: entry["quality"]["stoi"]["value"] for entry in measured["changes"]}
    assert len(values) == 10 and all(value > 0.6 for value in values.values())
    assert values["after another rate"] == pytest.approx(measured["unchanged"]["stoi"]["value"], abs=0.02)


def test_codes_that_flip_under_noise_are_distinguished_at_equal_quality(measured):
    """Both give back the samples that they were given, to 16 bits; the codes of one hold them, those of the other
    change with any noise.
    """
    steady, flipping = (measured(stability.measure, name) for name in ("Coarse", "Dithered"))
    for one, other in zip(steady["changes"], flipping["changes"]):
        assert one["quality"]["stoi"]["value"] == pytest.approx(other["quality"]["stoi"]["value"], abs=0.01)
        if one["noise_db"] == 20.0:
            assert one["agreement"][0] > other["agreement"][0] + 0.3
    assert steady["unchanged"]["stoi"]["value"] == pytest.approx(flipping["unchanged"]["stoi"]["value"], abs=0.01)


def test_changes_are_as_named():
    rate = 16000
    clip = Audio(0.1 * np.sin(2 * np.pi * 440 * np.arange(2 * rate) / rate), rate)
    for snr_db in (20.0, 0.0):
        noise = stability.with_noise(clip, 1, snr_db=snr_db, seed=3).samples.astype(float) - clip.samples
        assert 10 * np.log10(np.mean(clip.samples.astype(float) ** 2) / np.mean(noise**2)) == pytest.approx(
            snr_db, abs=0.01
        )
        spectrum = np.abs(np.fft.rfft(noise[0])) ** 2
        assert spectrum[: rate // 2].mean() == pytest.approx(spectrum[rate // 2 :].mean(), rel=0.1)  # it is white
    room = stability.impulse_response(rate, 0)
    assert room[0] == 1.0 and 10 * np.log10(1 / np.sum(room[1:] ** 2)) == pytest.approx(5.0)
    # Schroeder's decay curve falls by 60 dB in the stated half second: by 30 dB in its first half.
    decay = 10 * np.log10(np.cumsum(room[:0:-1] ** 2)[::-1])
    assert decay[0] - decay[rate // 4] == pytest.approx(30.0, abs=1.0)
    wet = stability.with_reverberation(clip, 0, seed=0)
    assert (
        np.mean(wet.samples**2) == pytest.approx(np.mean(clip.samples**2), rel=1e-4)
        and wet.num_samples == clip.num_samples
    )
    built = {change.name: change for change in stability.changes(Settings(), 50.0)}
    half = built["half a frame later"].make(clip, 0)
    np.testing.assert_array_equal(half.samples[:, 160:], clip.samples[:, :-160])
    for name in ("after MP3", "after another rate"):
        back = built[name].make(clip, 0)
        error = back.samples - clip.samples
        assert 0 < np.mean(error[:, 800:-800] ** 2) < 0.01 * np.mean(clip.samples**2)
    assert "half a frame later" not in {change.name for change in stability.changes(Settings(), None)}


def test_a_change_that_cannot_be_coded_is_one_sentence(measured, monkeypatch):
    def broken(*_):
        raise ValueError("no such room")

    monkeypatch.setattr(stability, "impulse_response", broken)
    result = measured(stability.measure, "Pcm", robust_metrics=("si_sdr",))
    options = {entry["change"]: entry for entry in result["changes"]}
    assert (
        options["with reverberation"]["reason"] == "ValueError: no such room" and options["after MP3"]["reason"] is None
    )
