"""Probes of codes that are known to tell something, or nothing."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Audio, Codes, CodeStream
from codec_bench.apps.profiling import classifiers, probes
from codec_bench.apps.profiling.probe_rows import probes_section
from codec_bench.apps.profiling.probes import TASKS, Labels, measure
from codec_bench.apps.profiling.token_model import TokenCorpus
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment

RATE, FRAMES, CLIPS, ENTRIES = 50, 40, 6, 16
SPEAKERS = ("ann", "bob", "cy", "dee")
PITCHES = {"ann": 110.0, "bob": 116.0, "cy": 122.0, "dee": 128.0}
TILTS = {"ann": 0.3, "bob": 1.0, "cy": 2.0, "dee": 3.0}


def names():
    return [(f"{speaker}-{n}", speaker, n) for speaker in SPEAKERS for n in range(CLIPS)]


def pitch(speaker, clip):
    return PITCHES[speaker] * 1.15**clip


def sounds():
    """Tones with overtones, by which speakers differ; the pitch is 15 % higher with each clip."""
    time = np.arange(16_000 * FRAMES // RATE) / 16_000
    for name, speaker, n in names():
        overtones = [np.sin(2 * np.pi * k * pitch(speaker, n) * time) / k ** TILTS[speaker] for k in range(1, 6)]
        wave = sum(overtones) / 5
        yield name, Audio(wave[None].astype(np.float32), 16_000)


def corpus(spell):
    """A corpus whose codes `say(rng, speaker, clip)` gives, `(codebooks, frames)`."""
    rng, output = np.random.default_rng(0), TokenCorpus()
    for name, speaker, n in names():
        stream = CodeStream(spell(rng, speaker, n), ENTRIES, float(RATE))
        output.add(name, Codes((stream,), 16_000 * FRAMES // RATE, 16_000))
    return output


def labels(**more):
    return Labels(speakers={name: speaker for name, speaker, _ in names()}, **more)


def white(rng, speaker, clip):
    return rng.integers(0, ENTRIES, (2, FRAMES))


def voice(rng, speaker, clip):
    """The second codebook leans to entries of the speaker."""
    codes = white(rng, speaker, clip)
    leans = rng.random(FRAMES) < 0.8
    codes[1, leans] = 3 * SPEAKERS.index(speaker)
    return codes


@pytest.fixture(scope="module")
def uninformative():
    """The probes of white codes."""
    return measure(corpus(white), labels(), sounds(), seed=0)["tasks"]


@pytest.fixture
def probe(monkeypatch):
    """Runs one probe alone."""

    def run(task, built, labels):
        monkeypatch.setattr(probes, "TASKS", (task,))
        return measure(built, labels, sounds(), seed=0)["tasks"][task]

    return run


def test_codes_that_carry_no_speaker_are_at_chance_and_others_above_it(uninformative, probe):
    nothing, something = uninformative["speaker"], probe("speaker", corpus(voice), labels())
    assert (nothing["items"], nothing["classes"], nothing["folds"], nothing["units"]) == (24, 4, 5, 24)
    assert nothing["chance"] == pytest.approx(0.25, abs=0.1)
    for probe in ("linear", "hidden"):
        low, high = nothing["codes"][probe]["ci95"]
        assert low <= 0.25 <= high
        assert something["codes"][probe]["accuracy"] > 0.9 and something["codes"][probe]["ci95"][0] > 0.5
        assert something["mel"][probe] == nothing["mel"][probe]  # of the sound, whatever the codes say


def test_codes_that_are_sent_once_a_clip_are_read(probe):
    built = corpus(white)
    for name, speaker, _ in names():
        built.once[name] = [(np.array([[SPEAKERS.index(speaker)]]), ENTRIES)]
    assert probe("speaker", built, labels())["codes"]["linear"]["accuracy"] == 1.0


def test_a_phone_is_read_on_unseen_speakers(probe):
    aligned = {name: Alignment.of([(0, 0.4, "A"), (0.4, 0.8, "B")]) for name, *_ in names()}
    half = np.repeat([0, 1], FRAMES // 2)
    spoken = lambda rng, speaker, n: np.stack([half, rng.integers(0, ENTRIES, FRAMES)])  # noqa: E731
    actual = lambda rng, speaker, n: (half + 2 * SPEAKERS.index(speaker))[None]  # noqa: E731
    measured = probe("phone", corpus(spoken), labels(alignments=aligned))
    assert measured["codes"]["linear"]["accuracy"] == 1.0 and measured["folds"] == 4 and measured["units"] == 4
    assert measured["chance"] == pytest.approx(0.5, abs=0.1)
    # Speaker-specific codes predict the phone only for speakers of the training folds.
    alone = probe("phone", corpus(actual), labels(alignments=aligned))
    assert alone["codes"]["linear"]["accuracy"] < 0.7


def test_pitch_is_read_from_codes_that_follow_it_and_not_from_white_ones(uninformative, probe):
    follows = lambda rng, speaker, n: np.full((1, FRAMES), int(np.log2(pitch(speaker, n) / 100) * 9))  # noqa: E731
    known = probe("pitch", corpus(follows), labels())
    assert known["classes"] == 5 and known["codes"]["linear"]["accuracy"] > 0.5
    assert uninformative["pitch"]["codes"]["linear"]["accuracy"] < 0.35


def test_an_emotion_is_read_where_it_is_named(probe):
    moods = {name: ("glad", "sad")[n % 2] for name, _, n in names()}
    shown = lambda rng, speaker, n: np.full((1, FRAMES), n % 2)  # noqa: E731
    measured = probe("emotion", corpus(shown), labels(emotions=moods))
    assert measured["codes"]["hidden"]["accuracy"] == 1.0 and measured["units"] == 4


def test_what_a_probe_lacks_is_reported_and_the_others_go_on():
    alone = Labels(speakers={name: "ann" for name, *_ in names()})
    measured = measure(corpus(white), alone, sounds(), seed=0)
    assert list(measured["tasks"]) == list(TASKS) and all(
        t["state"] == "not applicable" for t in measured["tasks"].values()
    )
    message = {task: entry["reason"] for task, entry in measured["tasks"].items()}
    assert message["speaker"].code == "too_few_clips_of_speakers" and message["pitch"].as_dict() == {
        "code": "too_few_speakers",
        "speakers": 1,
    }
    assert message["emotion"].code == "too_few_emotions" and message["phone"].code == "no_aligned_speakers"
    cells = [row.cells[0] for row in probes_section({"x": {"probes": {"state": "ok", **measured}}}).rows]
    assert len(cells) == 8 and all(cell.text == "–" and cell.reason for cell in cells)
    with refuses("no_frame_rate", error=NotApplicable):
        measure(TokenCorpus(), labels(), sounds(), seed=0)


def test_chance_is_what_uninformative_codes_reach_where_speakers_differ():
    """Each speaker has a pitch class of its own most of the time, so the commonest class of the rest misleads."""
    rng, speakers = np.random.default_rng(0), np.repeat(np.arange(5), 120)
    classes = np.where(rng.random(600) < 0.8, speakers, rng.integers(0, 5, 600))
    reached, chances = [], []
    for draw in range(6):
        codes = probes._sparse(np.ones(600), np.arange(600), rng.integers(0, 32, 600), 600)
        task = probes._ProbeItems(codes, np.zeros((600, 2)), classes, speakers, [str(one) for one in speakers])
        reached.append(classifiers.predict_correct(codes, classes, speakers, hidden=0, seed=draw).mean())
        chances.append(probes._chance_accuracy(task, draw, lambda: None))
    assert np.mean(reached) < 0.12 < np.bincount(classes).max() / 600, "the share of the commonest class is no chance"
    assert np.mean(chances) == pytest.approx(np.mean(reached), abs=0.015)
