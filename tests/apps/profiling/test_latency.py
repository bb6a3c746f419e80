"""Look-ahead by perturbation, for codecs whose look-ahead is known by construction."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Audio
from codec_bench.apps.profiling import latency
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable


@pytest.mark.parametrize(
    ("name", "ahead", "beyond"),
    [("Pcm", 0, 0), ("Late", -40, -40), ("LooksAhead", 40, 40), ("Averaging", 0, 0), ("Framed", 79, 0)],
)
def test_the_look_ahead_is_what_the_codec_is_configured_to_have(measured, name, ahead, beyond):
    result = measured(latency.measure, name)
    assert (result["lookahead_samples"], result["beyond_frame_samples"]) == (ahead, beyond)
    assert result["lookahead_ms"] == pytest.approx(ahead / 16)
    late = 40 if name == "Late" else 0  # the listener waits for output that is late
    assert result["delay_samples"] == pytest.approx(late, abs=0.02)
    assert result["algorithmic_samples"] == pytest.approx(
        (80 if name == "Framed" else 1 + max(0, beyond)) + late, abs=0.02
    )
    assert not result["whole_signal"]


def test_a_codec_that_looks_at_everything_is_reported(measured):
    result = measured(latency.measure, "Complete")
    assert result["whole_signal"]
    assert result["lookahead_samples"] > 0.6 * 2 * 16000


def test_what_cannot_be_traced_has_no_number(files, odd):
    codec = load_codec(odd("Pcm"))
    rng = np.random.default_rng(0)

    class Noisy(type(codec)):
        def decode(self, codes):
            return [Audio(rng.standard_normal((1, c.num_samples)), 16000) for c in codes]

    with refuses("unsteady_output", error=NotApplicable):
        latency.measure(Noisy(), ProfileClips(files, codec), Settings(latency_s=1.0))
    with refuses("no_change_seen", error=NotApplicable):
        silent = load_codec(odd("Silent"))
        latency.measure(silent, ProfileClips(files, silent), Settings(latency_s=1.0))
