"""Data as toolkits leave them: every layout gives the texts, speakers, languages and sounds that it holds."""

from __future__ import annotations

import numpy as np
import pytest
from layout_miniatures import MINIATURES, clips

from codec_bench.data import open_source
from codec_bench.types import Audio


@pytest.mark.parametrize("name", MINIATURES)
def test_a_layout_gives_what_it_holds(tmp_path, name):
    layout, build = MINIATURES[name]
    expected = build(tmp_path)
    source = open_source(tmp_path)
    assert source.report is not None and source.report.layout == layout
    assert {s.id: (s.text, s.speaker, s.language) for s in source} == expected
    assert not source.problems and not source.report.absent and not source.report.unlisted
    said = {text: audio for text, audio in clips()}
    for sample in source:
        if name == "seed_tts":  # the sound is another text's
            continue
        audio = Audio.read(sample.audio)
        original = said[sample.text]
        if name == "common_voice":  # MP3 is lossy
            assert abs(audio.duration_s - original.duration_s) < 0.2
            continue
        assert audio.samples.shape == original.samples.shape
        assert np.abs(audio.samples - original.samples).max() < 1e-4
