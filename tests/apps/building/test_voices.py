"""Dialogues: one voice a speaker, of the gender that the source tells, joined with pauses; questions with written
options.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from refusals import refuses

from codec_bench import build
from codec_bench.apps.building.checks import join_sounds, level_sounds
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.benchmark import load_benchmark
from codec_bench.decoding.decode import decode_bytes
from codec_bench.types import Audio

from .conftest import RATE_HZ, noise, rows_of

VOICES = [
    {"name": f"{gender[0]}{number}", "gender": gender, "options": {"voice": f"{gender}{number}"}}
    for gender in ("female", "male")
    for number in range(4)
]
TEXTS = {
    "data": "rows.jsonl", "choices": "choice", "answer_is": "text", "licence": "MIT",
    "dialogue": {"column": "dialogue", "genders": {"W": "female", "M": "male"}, "pause_s": {"uniform": [0.3, 0.7]}},
}  # fmt: skip
TURNS = ["W: What is it?", "M: It is a cat.", "W: I like it."]


def row(*turns, question="What is it?"):
    return {
        "dialogue": list(turns),
        "question": question,
        "choice": ["A cat.", "A dog.", "A bird."],
        "answer": "A dog.",
    }


@pytest.fixture
def dialogues(speaking, tmp_path):
    """Builds rows of dialogues; gives the funnel and the kept rows."""

    def make(*rows, out="set", texts=TEXTS, **changed):
        built = build(speaking(*rows, texts=texts, template=None, **{"voices": VOICES, **changed}), out=tmp_path / out)
        return built, rows_of(built.folder)

    return make


def test_each_speaker_has_a_voice_of_its_gender(dialogues):
    built, rows = dialogues(*(row(*TURNS, f"Paul: Number {n}.") for n in ("one", "two", "three", "four", "five")))
    assert len(rows) == 5 == built.funnel.usable
    for one in rows:
        assert one["speakers"] == ["W", "M", "Paul"]
        female, male, other = one["voices"]
        assert female[0] == "f" and male[0] == "m" and len({female, male, other}) == 3
        created = json.loads(one["provenance"])
        assert created["voices"] == dict(zip(one["speakers"], one["voices"]))
        assert [voice["model"]["voice"][0] for voice in created["synthesiser"]] == [female[0], male[0], other[0]]
        assert len(created["pauses_s"]) == 3 and all(0.3 <= pause <= 0.7 for pause in created["pauses_s"])
        assert len(created["hashes"]["synthesised"]) == 4
        assert one["answer"] == "B" and one["choices"][1] == "A dog." and one["said"].splitlines()[0] == "What is it?"
    assert len({tuple(one["voices"]) for one in rows}) > 1, "voices are drawn"
    counted = built.funnel.groups["voice"]
    assert sum(items for items, _, _ in counted.values()) == 15, "the funnel counts an item under each of its voices"


def test_the_dialogue_is_its_turns_with_pauses_between(dialogues):
    built, (one, other) = dialogues(row(*TURNS), row(*TURNS, question="Who likes it?"))
    audio = Audio(*decode_bytes(one["audio"]["bytes"], one["id"]))
    created = json.loads(one["provenance"])
    assert audio.duration_s == pytest.approx(3.0 + sum(created["pauses_s"]), abs=1e-3)
    position = RATE_HZ
    for pause in created["pauses_s"]:
        length = round(pause * RATE_HZ)
        assert not audio.samples[0, position : position + length].any()
        assert (
            audio.samples[0, position - 10 : position].any()
            and audio.samples[0, position + length : position + length + 10].any()
        )
        position += length + RATE_HZ
    assert loudness_lufs(audio) == pytest.approx(-23, abs=0.05)
    # All questions about a dialogue hear the same recording.
    assert one["audio"]["bytes"] == other["audio"]["bytes"] and one["question"] != other["question"]
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.kind == "understanding" and list(definition.metrics) == ["accuracy[exact]"]
    # Intervals are over dialogues, since questions about one recording are not independent.
    assert definition.data.speaker.column == "dialogue" and one["dialogue"] == other["dialogue"]


def test_a_retry_draws_other_voices(dialogues):
    voices = [{"name": name, "gender": "female", "options": {"voice": name}} for name in ("plain", "other")]
    texts = [row("W: It is mumbled.", f"W: Or {n}.") for n in ("one", "two", "three", "four", "five", "six")]
    built, rows = dialogues(*texts, voices=voices, retries=8)
    assert {tuple(one["voices"]) for one in rows} == {("other",)} and len(rows) == 6 and built.funnel.tries > 6


def test_dialogues_that_cannot_be_built_state_why(dialogues, tmp_path):
    bad = {
        "too_few_voices": row(*TURNS), "row_unusable": row("Hello."), "sign_unreadable": row("W: [thunder] Oh."),
        "nothing_to_say": row("M: ..."), "sound_silent": row("M: Hello.", "M: Very silent."),
        "read_back_differs": row("M: Hello.", "M: One skipped word."),
        "row_unusable ": {**row("M: Hello."), "answer": "A fish."},
    }  # fmt: skip
    built, rows = dialogues(*bad.values(), row("M: Hello.", "Paul: Hello."), voices=VOICES[4:])
    assert len(rows) == 1
    lines = [json.loads(line) for line in (built.folder / "dropped.jsonl").read_text().splitlines()]
    for line, code in zip(lines, bad, strict=True):
        assert line["reason_code"]["code"] == code.strip(), line


def test_voices_come_from_a_file(dialogues, tmp_path):
    (tmp_path / "voices.yaml").write_text(yaml.safe_dump({"voices": VOICES}))
    _, (one,) = dialogues(row(*TURNS), voices="voices.yaml")
    _, (other,) = dialogues(row(*TURNS), out="other")
    assert one["voices"] == other["voices"]
    (tmp_path / "voices.yaml").write_text("voices: [{name: a, sex: female}]")
    with refuses("at_line", file="voices.yaml", line=1):
        dialogues(row(*TURNS), voices="voices.yaml", out="wrong")


def test_voices_are_brought_to_one_loudness_by_one_gain_each():
    quiet, short = noise(1.0, 0, 0.01)[None], noise(0.2, 1, 0.02)[None]
    first, second = level_sounds([Audio(quiet, RATE_HZ), Audio(short, RATE_HZ)], -23.0, -1.0)
    gain = first.samples[0, 100] / quiet[0, 100]
    np.testing.assert_allclose(second.samples, short * gain, rtol=1e-5)
    assert loudness_lufs(join_sounds([first, second], [0.0], RATE_HZ)) == pytest.approx(-23, abs=0.05)


def test_parts_of_other_rates_are_joined_at_one():
    parts = [Audio(noise(1.0, 0)[None], RATE_HZ), Audio(noise(0.5, 1)[None], RATE_HZ // 2)]
    complete = join_sounds(parts, [0.25], RATE_HZ)
    assert complete.sample_rate_hz == RATE_HZ and complete.num_samples == round(2.25 * RATE_HZ)
    assert not complete.samples[0, RATE_HZ : RATE_HZ + RATE_HZ // 4].any()
