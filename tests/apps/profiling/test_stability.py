"""Agreement of tokens under re-encoding, gain and shift."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench import Codes, CodeStream
from codec_bench.apps.profiling import stability


def test_agreement_counts_per_codebook_and_missing_frames_as_different():
    one = Codes((CodeStream(np.array([[1, 2, 3, 4], [1, 2, 3, 4]]), 8, 50.0),), 4, 16000)
    other = Codes((CodeStream(np.array([[1, 2, 0, 4], [0, 0, 0, 4]]), 8, 50.0),), 4, 16000)
    short = Codes((CodeStream(np.array([[1, 2], [1, 0]]), 8, 50.0),), 4, 16000)
    assert stability.agreement([one], [other]) == [0.75, 0.25]
    assert stability.agreement([one], [short]) == [0.5, 0.25]
    assert stability.agreement([Codes((), 4, 16000)], [Codes((), 4, 16000)]) is None


def test_samples_survive_re_encoding_and_a_shift(measured):
    found = measured(stability, "Pcm", reencodings=2)
    assert [entry["with_first"] for entry in found["reencoding"]] == [[1.0], [1.0]]
    assert found["shift"]["wave_snr_db"] > 80
    assert all(entry["wave_snr_db"] > 60 and entry["agreement"][0] < 0.9 for entry in found["gain"])


def test_what_is_lost_in_every_round_drifts(measured):
    found = measured(stability, "Quieter", reencodings=3)
    with_first = [entry["with_first"][0] for entry in found["reencoding"]]
    assert with_first[0] < 0.5 and with_first[1] <= with_first[0] + 0.05
    assert found["reencoding"][2]["with_previous"][0] > with_first[2]  # the codes of silence no longer change


def test_only_the_codebook_that_carries_the_level_changes_with_it(measured):
    found = measured(stability, "GainShy", gains_db=(-6.0, 3.0))
    assert [entry["gain_db"] for entry in found["gain"]] == [-6.0, 3.0]
    for entry in found["gain"]:
        assert entry["agreement"][0] == 1.0 and entry["agreement"][1] < 0.9


def test_a_codec_of_packets_has_waves_to_compare_and_no_codes(files):
    from codec_bench.apps.profiling.settings import Settings
    from codec_bench.codecs import load_codec
    from codec_bench.codecs.checks.material import Material

    codec = load_codec("opus-12k")
    found = stability.measure(codec, Material(files, codec), Settings(robust_clips=1, robust_s=1.0))
    assert found["reencoding"] == [] and "packets" in found["tokens_reason"]
    assert found["shift"]["agreement"] is None and found["shift"]["wave_snr_db"] == pytest.approx(15, abs=10)
