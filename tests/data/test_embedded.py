"""The embedded speech is what its manifest says, and the kept script makes it again."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from codec_bench.apps.listening.checks import EMBEDDED as DIGITS
from codec_bench.data import REGISTERED, open_source
from codec_bench.stats.verdict import FEWEST_TO_COMPARE
from codec_bench.types import Audio

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_embedded_speech.py"


def test_it_is_enough_speech_in_little_space(embedded):
    assert len(embedded) >= 24
    assert len({sample.speaker for sample, _ in embedded}) >= 3
    assert sum(audio.duration_s for _, audio in embedded) >= 90
    assert sum(file.stat().st_size for file in REGISTERED["embedded"].iterdir()) < 3_000_000


def test_every_file_is_mono_at_16_khz_and_has_a_row(embedded):
    assert {(audio.sample_rate_hz, audio.channels) for _, audio in embedded} == {(16_000, 1)}
    assert {Path(s.audio).name for s, _ in embedded} == {p.name for p in REGISTERED["embedded"].glob("*.flac")}
    assert not open_source("embedded").problems


def test_every_utterance_is_audible_and_not_clipped(embedded):
    for sample, audio in embedded:
        assert 0.1 < np.abs(audio.samples).max() < 1.0, sample.id
        assert 2.0 < audio.duration_s < 5.0, sample.id


def test_every_sentence_is_read_once(embedded):
    texts = [sample.text for sample, _ in embedded]
    assert len(set(texts)) == len(texts)
    assert all(len(text.split()) >= 8 and text.isascii() for text in texts)


def test_the_demo_has_two_utterances_of_enough_voices_to_compare_with_the_best():
    source, folder = open_source("embedded-voices"), REGISTERED["embedded-voices"]
    assert not source.problems and {Path(s.audio).name for s in source} == {p.name for p in folder.glob("*.flac")}
    spoken = Counter(sample.speaker for sample in source)
    assert len(spoken) > FEWEST_TO_COMPARE and set(spoken.values()) == {2}
    for sample in source:
        audio = Audio.read(sample.audio)
        assert (audio.sample_rate_hz, audio.channels) == (16_000, 1) and 1.5 < audio.duration_s < 3.0
        assert 0.1 < np.abs(audio.samples).max() < 1.0, sample.id
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1_000_000


def load_script():
    spec = importlib.util.spec_from_file_location("make_embedded_speech", SCRIPT)
    built = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(built)
    return built


def installed(voice: str) -> bool:
    """Whether the program of a voice is there."""
    if voice.startswith("pico"):
        return importlib.util.find_spec("py_nanotts") is not None
    return shutil.which("text2wave" if voice == "ked" else "flite") is not None


@pytest.mark.programs
@pytest.mark.parametrize("voice", ["awb", "kal16", "ked", "pico-gb", "pico-us", "rms", "slt"])
def test_the_script_makes_the_same_voices_again(voice, tmp_path):
    if not installed(voice):
        pytest.skip(f"the program of {voice} is not installed")
    rows = [sample for sample in open_source("embedded-voices") if sample.speaker == voice]
    assert load_script().make(tmp_path, {voice: [row.text for row in rows]}) > 3
    for row in rows:
        again = Audio.read(tmp_path / Path(row.audio).name)
        np.testing.assert_array_equal(again.samples, Audio.read(row.audio).samples, row.id)


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
def test_the_script_makes_the_same_samples_again(tmp_path, embedded):
    script = load_script()
    assert script.make(tmp_path) == pytest.approx(sum(audio.duration_s for _, audio in embedded))
    script.make_digits(tmp_path / "digits")
    for digit in range(10):
        name = f"{digit}.flac"
        np.testing.assert_array_equal(
            Audio.read(tmp_path / "digits" / name).samples, Audio.read(DIGITS / name).samples, name
        )
    retained = REGISTERED["embedded"]
    assert (tmp_path / "manifest.jsonl").read_text("utf-8") == (retained / "manifest.jsonl").read_text("utf-8")
    for line in (retained / "manifest.jsonl").read_text("utf-8").splitlines():
        name = json.loads(line)["audio"]
        np.testing.assert_array_equal(Audio.read(tmp_path / name).samples, Audio.read(retained / name).samples, name)
