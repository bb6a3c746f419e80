"""Spoken texts: what is kept, the reason of what is dropped, and that nothing is synthesised twice."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml
from refusals import Containing, refuses

from codec_bench import build
from codec_bench.apps.building.checks import longest_pause_s
from codec_bench.audio.encode import flac_bytes
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.benchmark import load_benchmark
from codec_bench.decoding.decode import decode_bytes
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

from .conftest import rows_of, same_bytes
from .killed import build_through_kills

pytest.importorskip("num2words")
HERE = Path(__file__).parent


def transcripts_in(folder):
    return [json.loads(line)["said"] for line in (folder / "said.jsonl").read_text().splitlines()]


def test_what_is_read_back_is_stored_at_one_loudness(speaking, tmp_path):
    built = build(speaking("What has 2 colours?", "Which is warm?"), out=tmp_path / "My_Set (1)")
    rows = rows_of(built.folder)
    assert [row["said"] for row in rows] == [
        "What has two colours? A: red. B: blue.", "Which is warm? A: red. B: blue.",
    ]  # fmt: skip
    for row in rows:
        audio = Audio(*decode_bytes(row["audio"]["bytes"], row["id"]))
        assert loudness_lufs(audio) == pytest.approx(-23, abs=0.05) and row["loudness_lufs"] == pytest.approx(
            -23, abs=0.01
        )
        assert row["error_rate"] == 0 and row["answer"] == "B" and row["group"] == "colours"
        assert json.loads(row["provenance"])["voice"] == row["voice"]
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.kind == "qa" and definition.size == 2 and definition.name == "spoken"


def test_every_drop_has_its_reason(speaking, tmp_path):
    row = {"question": "Which?", "choices": ["red", "blue"], "answer": "A", "subject": "colours"}
    bad = {
        "": "nothing_to_say", "What is x^2?": "sign_unreadable", "Is it a broken line?": "synthesis_error",
        "Is it a broken number?": "synthesis_error", "Is it hurried?": "sound_too_short",
        "Is it silent?": "sound_silent",
        "Is it paused?": "sound_long_pause", "Is it shouted?": "sound_clipped", "Is it skipped?": "read_back_differs",
        "Is it repeated?": "read_back_differs", "Is it fading?": "read_back_differs",
        "Is it unheard?": "recogniser_error",
        "Is it \U0001f600?": "sign_unreadable", "Is 水 it?": "letter_of_other_script",
        "Is f(x) it?": "formula_unreadable",
    }  # fmt: skip
    more = {
        "answer_names_no_option": {"answer": "C"}, "answer_names_no_option ": {"answer": ""},
        "options_sound_alike": {"choices": ["8", "eight"]}, "options_sound_alike ": {"choices": ["A", "8"]},
        "nothing_to_say": {"choices": ["", "8"]}, "row_unusable": {"choices": "red"},
    }  # fmt: skip
    rows = [*bad, *({**row, **wrong} for wrong in more.values()), "Is it fine?"]
    funnel = build(speaking(*rows), out=tmp_path / "set").funnel
    assert funnel.items == 22 and funnel.usable == 1
    lines = [json.loads(line) for line in (tmp_path / "set" / "dropped.jsonl").read_text().splitlines()]
    for line, code in zip(lines, [*bad.values(), *more], strict=True):
        assert line["reason_code"]["code"] == code.strip(), line
    assert sum(count for _, _, reason, count in funnel.rows() if reason) == 21
    assert funnel.groups["group"]["colours"][:2] == [21, 1]


def test_sounds_of_several_channels_are_stored_in_one(speaking, tmp_path):
    (row,) = rows_of(build(speaking("Is it surrounding?"), out=tmp_path / "set").folder)
    assert Audio(*decode_bytes(row["audio"]["bytes"], row["id"])).channels == 1


def test_a_retry_takes_another_voice(speaking, tmp_path):
    built = build(
        speaking(*(f"Is it mumbled, {name}?" for name in ("Anna", "Bert", "Carl", "Dora"))), out=tmp_path / "set"
    )
    assert built.funnel.usable == 4 and {row["voice"] for row in rows_of(built.folder)} == {"other"}
    assert built.funnel.tries > 4, "the seed gives some of the four the other voice first"


def test_a_threshold_by_name_keeps_what_is_read_back_nearly(speaking, tmp_path):
    recipe = yaml.safe_load(speaking("Is it skipped?").read_text())
    checks = {**recipe["checks"], "error_rate": 0.4}
    built = build(speaking("Is it skipped?", checks=checks), out=tmp_path / "set")
    (row,) = rows_of(built.folder)
    assert 0 < row["error_rate"] <= 0.4
    # What was kept by a looser check says so wherever it is named.
    assert row["check"] == json.loads(row["provenance"])["check"] == "cer<=0.4"
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.title == "Spoken (cer<=0.4)" and definition.name == "spoken-cer-0-4"
    assert "# Spoken (cer<=0.4)\n" in (built.folder / "README.md").read_text()
    assert "Spoken (cer&lt;=0.4)" in (built.folder / "build.html").read_text()


def test_instructions_without_options_are_spoken_and_rated(speaking, tmp_path):
    rows = [{"do": "Name a color.", "about": "It is warm.", "out": "Red."},
        {"do": "Say hello.", "about": "", "out": "Hello."},
            {"do": "Say nothing.", "about": "", "out": ""}]  # fmt: skip
    texts = {
        "data": "rows.jsonl",
        "question": "do",
        "choices": None,
        "answer": "out",
        "fields": {"about": "about"},
        "licence": "MIT",
    }
    template = "{{ question }}{% if about %} {{ about }}{% endif %}"
    built = build(speaking(*rows, texts=texts, template=template, prompt="reworded-follow"), out=tmp_path / "set")
    retained = rows_of(built.folder)
    assert [(row["said"], row["answer"]) for row in retained] == [
        ("Name a color. It is warm.", "Red."),
        ("Say hello.", "Hello."),
    ]
    assert "choices" not in retained[0]
    (line,) = (json.loads(line) for line in (built.folder / "dropped.jsonl").read_text().splitlines())
    assert line["reason_code"] == {"code": "no_reference_answer"}
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert list(definition.metrics) == ["rating[audiobench-0-5]"]
    assert yaml.safe_load((built.folder / "benchmark.yaml").read_text())["data"]["columns"]["question"] == "said", (
        "the judge is given what the model hears"
    )


def test_the_provenance_tells_everything_that_an_item_depends_on(speaking, tmp_path):
    built = build(speaking("Is it blue?", seed=7), out=tmp_path / "set")
    (row,) = rows_of(built.folder)
    created = json.loads(row["provenance"])
    assert created["source"]["row"] == row["id"] and created["source"]["name"] and "revision" in created["source"]
    assert created["seed"] == 7 and created["try"] == created["draw"] == 0 and "{{ question }}" in created["template"]
    (voice,) = created["synthesiser"]
    assert voice["name"] == row["voice"] and voice["model"]["voice"] == voice["options"]["voice"] == row["voice"]
    (output,) = created["recognisers"]
    assert (
        output["recogniser"] == "listener" and output["model"]["listener"] == 1 and output["protocol"].endswith("/char")
    )
    assert output["error_rate"] == 0 and output["transcript"] == row["transcripts"][0]
    audio = Audio(*decode_bytes(row["audio"]["bytes"], row["id"]))
    assert created["hashes"]["said"] == hashlib.blake2b(row["said"].encode(), digest_size=20).hexdigest()
    # The kept sound is that of the file, up to the rounding to 16 bits, and not the one that was synthesised.
    assert len({created["hashes"]["kept"], *created["hashes"]["synthesised"]}) == 2 and audio.sample_rate_hz == 16_000
    assert created["loudness"] == "bs1770-4" and created["check"] == row["check"] == "cer=0"


def test_every_recogniser_must_read_an_item_back(speaking, tmp_path):
    recipe = yaml.safe_load(speaking("Is it blue?").read_text())
    (one,) = recipe["checks"]["recognisers"]
    checks = {"recognisers": [one, {**one, "options": {**one["options"], "deaf": "green"}}]}
    built = build(speaking("Is it blue?", "Is it green?", checks=checks), out=tmp_path / "set")
    (row,) = rows_of(built.folder)
    created = json.loads(row["provenance"])["recognisers"]
    assert [one["recogniser"] for one in created] == ["listener", "listener-deaf"] and len(row["transcripts"]) == 2
    (line,) = map(json.loads, (built.folder / "dropped.jsonl").read_text().splitlines())
    detail = line["tries"][0]["detail_code"]
    assert (detail["code"], detail["recogniser"]) == ("transcribed", "listener-deaf")
    assert "NOTHING" in detail["transcripts"][0]


def test_nothing_is_synthesised_twice_and_bytes_are_equal(speaking, tmp_path):
    recipe = speaking(*(f"Is it number {n}?" for n in range(6)))
    first = build(recipe, out=tmp_path / "a", limit=3)
    assert first.funnel.items == 3
    complete, again = build(recipe, out=tmp_path / "b"), build(recipe, out=tmp_path / "c")
    assert set(Counter((tmp_path / "said.jsonl").read_text().splitlines()).values()) == {1}
    assert len(transcripts_in(tmp_path)) == 6 + 1, "the other of the two voices says the first text too, for its rate"
    same_bytes(complete.folder, again.folder)


def test_a_text_that_stands_twice_is_synthesised_once(speaking, tmp_path):
    one = [{"name": "plain"}]
    speaker = {
        "model": f"{HERE / 'scripted.py'}:Speaker",
        "options": {"log": str(tmp_path / "said.jsonl"), "wait_s": 0.05},
    }
    recipe = speaking(*["Is it blue?"] * 6, voices=one, synthesiser=speaker, duplicates="keep")
    built = build(recipe, out=tmp_path / "set")
    assert built.funnel.usable == 6 and len(transcripts_in(tmp_path)) == 1


def test_a_voice_imitates_a_recording(speaking, tmp_path):
    noise = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    (tmp_path / "voice.flac").write_bytes(flac_bytes(Audio(noise, 16_000)))
    output = {}
    for name, voice in (("own", {}), ("imitated", {"recording": "voice.flac"})):
        built = build(speaking("Is it blue?", voices=[{"name": name, **voice}]), out=tmp_path / name)
        output[name] = rows_of(built.folder)[0]["audio"]["bytes"]
    assert output["own"] != output["imitated"]
    with refuses("voice_recording_missing"):
        build(speaking("Is it blue?", voices=[{"name": "gone", "recording": "gone.flac"}]), out=tmp_path / "gone")


@pytest.mark.long
def test_twenty_kills_change_nothing(speaking, tmp_path):
    speaker = {
        "model": f"{HERE / 'scripted.py'}:Speaker",
        "options": {"log": str(tmp_path / "said.jsonl"), "wait_s": 0.05},
    }
    questions = [f"Is it mumbled, number {n}?" if n % 3 else f"Is it number {n}?" for n in range(200)]
    recipe = speaking(*questions, synthesiser=speaker)
    log = tmp_path / "said.jsonl"
    log.touch()
    build_through_kills(recipe, tmp_path / "killed", kills=20, built=lambda: len(transcripts_in(tmp_path)), more=8)
    text = Counter((line["said"], line["key"]) for line in map(json.loads, log.read_text().splitlines()))
    assert sum(text.values()) - len(text) <= 20 * 8, "only what was in flight at a kill is said again"
    shutil.rmtree(tmp_path / "cache")
    same_bytes(build(recipe, out=tmp_path / "whole").folder, tmp_path / "killed")


def test_wrong_recipes_are_refused_before_anything_is_spoken(speaking, tmp_path):
    for changed, text in (
        ({"template": "{{ subject }}"}, {"code": "text_template_fields", "fields": "subject"}),
        (
            {"texts": {"data": "rows.jsonl", "licence": "MIT", "answer": "key"}},
            {"code": "texts_lack_columns", "columns": "key"},
        ),
        (
            {"texts": {"data": "rows.jsonl"}},
            {"code": "at_line", "cause": {"code": "missing_field", "name": Containing("licence")}},
        ),
        ({"voices": [{"name": "plain"}, {"name": "plain"}]}, {"code": "at_line", "cause": Containing("same name")}),
        ({"voices": "nowhere.yaml"}, {"code": "no_voice_file"}),
        ({"template": None}, {"code": "at_line", "cause": Containing("either 'template' or 'texts.dialogue'")}),
        ({"checks": {}}, {"code": "at_line", "cause": Containing("recognisers")}),
        (
            {"prompt": "spoken-questions"},
            {"code": "recipe_makes_no_benchmark", "causes": "there is no prompt called 'spoken-questions'"},
        ),
        ({"metrics": ["accuracy[exakt]"]}, {"code": "recipe_makes_no_benchmark", "causes": Containing("exakt")}),
    ):
        with refuses(**text):
            build(speaking("Is it fine?", **changed), out=tmp_path / "set")
    assert not (tmp_path / "said.jsonl").exists()


def test_a_pause_is_measured():
    sound = np.random.default_rng(0).normal(0, 0.1, 16_000)
    paused = Audio(np.concatenate([sound, np.zeros(8_000), sound]), 16_000)
    assert longest_pause_s(paused) == pytest.approx(0.5, abs=0.03)
    assert longest_pause_s(Audio(sound, 16_000)) == 0


def test_flite_speaks_and_pocketsphinx_reads_back(speaking, tmp_path):
    if shutil.which("flite") is None:
        pytest.skip("flite is not installed")
    pytest.importorskip("pocketsphinx")
    recogniser = {"recognisers": [{"model": "pocketsphinx"}], "error_rate": 0.5, "unit": "word"}
    recipe = speaking(
        "What is the color of the sky?", checks=recogniser, template="{{ question }}", retries=0,
        synthesiser={"model": f"{HERE / 'flite.py'}:Flite"}, voices=[{"name": "slt"}],
    )  # fmt: skip
    (row,) = rows_of(build(recipe, out=tmp_path / "set").folder)
    assert row["error_rate"] <= 0.5 and "color" in row["transcripts"][0]


def test_a_row_that_stands_twice_is_stored_once(speaking, tmp_path):
    row = {"question": "Is it 2?", "choices": ["red", "blue"], "answer": "A", "subject": "numbers"}
    rows = [
        "Is it blue?",
        row,
        {**row, "question": "Is it two ?", "answer": "B"},
        "is it  Blue",
        {**row, "choices": ["red", "green"]},
    ]
    built = build(speaking(*rows), out=tmp_path / "set")
    assert [one["id"] for one in rows_of(built.folder)] == ["rows-0", "rows-1", "rows-4"]
    assert dict(built.funnel.dropped["row"]) == {Diagnostic("same_text"): 2}
    assert built.funnel.groups["group"] == {"colours": [2, 1, 2], "numbers": [3, 2, 3]}
    lines = [json.loads(line) for line in (built.folder / "dropped.jsonl").read_text().splitlines()]
    assert lines[0]["tries"][0]["detail_code"] == {"code": "another_answer", "item": "rows-1"}
    assert lines[1]["tries"][0]["detail"] == "rows-0"
    assert len(set(transcripts_in(tmp_path))) == 3 and len(transcripts_in(tmp_path)) == 3 + 1, (
        "a duplicate is not synthesised"
    )


def test_rows_that_stand_twice_are_one_unit_where_they_are_stored(speaking, tmp_path):
    built = build(speaking("Is it blue?", "Is it red?", "is it  Blue", duplicates="keep"), out=tmp_path / "set")
    assert [one["unit"] for one in rows_of(built.folder)] == ["rows-0", "rows-1", "rows-0"]
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.data.speaker.column == "unit" and built.funnel.usable == definition.size == 3


def test_voices_of_different_rates_are_brought_to_one(speaking, tmp_path):
    voices = [{"name": f"at {rate}", "options": {"voice": f"at {rate}", "rate_hz": rate}} for rate in (16_000, 22_050)]
    questions = [f"Is it number {n}?" for n in range(6)]
    # The scripted recogniser knows no sound that was resampled, so that anything is let pass.
    read_back = {**yaml.safe_load(speaking().read_text())["checks"], "error_rate": 1}
    built = build(speaking(*questions, voices=voices, checks=read_back), out=tmp_path / "set")
    rows = rows_of(built.folder)
    sounds = [Audio(*decode_bytes(row["audio"]["bytes"], row["id"])) for row in rows]
    assert {row["voice"] for row in rows} == {"at 16000", "at 22050"} and {s.sample_rate_hz for s in sounds} == {16_000}
    for row, sound in zip(rows, sounds):
        # The duration stays, and the power reaches up to the same frequency whichever the voice is.
        assert sound.duration_s == pytest.approx(1.0, abs=1e-3), row["voice"]
        power = np.abs(np.fft.rfft(sound.samples[0])) ** 2
        assert 0.01 < power[7_000:7_200].mean() / power[1_000:1_200].mean() < 10, row["voice"]
    assert "rate_hz: 16000" in (built.folder / "README.md").read_text()
    stated = build(speaking(*questions, voices=voices, checks=read_back, rate_hz=22_050), out=tmp_path / "stated")
    assert {
        Audio(*decode_bytes(row["audio"]["bytes"], row["id"])).sample_rate_hz for row in rows_of(stated.folder)
    } == {22_050}
    assert stated.funnel.failed["sound"][Diagnostic("sound_low_rate", subject="sound")] > 0
    assert stated.funnel.groups["voice"]["at 16000"][:2] == [0, 0]
    assert "the voice 'at 16000' was never usable" in "".join(stated.funnel.never_usable())


def test_an_own_model_that_raises_fails_its_items_and_is_closed(speaking, tmp_path):
    breaking = {"model": f"{HERE / 'scripted.py'}:Breaking", "options": {"log": str(tmp_path / "said.jsonl")}}
    built = build(speaking("Is it blue?", synthesiser=breaking), out=tmp_path / "set")
    (line,) = [json.loads(line) for line in (tmp_path / "set" / "dropped.jsonl").read_text().splitlines()]
    assert built.funnel.usable == 0 and line["reason_code"] == {"code": "synthesis_error"}
    assert "RuntimeError: it is broken" in json.dumps(line)
    assert sorted(path.name for path in tmp_path.glob("closed *")) == ["closed other", "closed plain"]


@pytest.mark.parametrize("role", ["recogniser", "synthesiser"])
def test_a_model_that_does_not_know_the_language_is_refused_first(speaking, tmp_path, role):
    pytest.importorskip("wetext")
    recipe = yaml.safe_load(speaking().read_text())
    changed = {"language": "zh", "checks": {"recognisers": [{"model": "whisper-tiny.en"}]}}
    named = "whisper-tiny.en"
    if role == "synthesiser":
        changed, named = {**changed, "checks": recipe["checks"], "synthesiser": {"model": "mms-tts-eng"}}, "mms-tts-eng"
        changed["voices"] = [{"name": "one"}]
    row = {"question": "天是什么颜色？", "choices": ["蓝", "红"], "answer": "A", "subject": "天"}
    with refuses("model_lacks_language", model=named, known="en", language="zh"):
        build(speaking(row, **changed), out=tmp_path / "set")
    assert not (tmp_path / "said.jsonl").exists()
    actual = tmp_path / "mine.yaml"
    actual.write_text("version: 1\nsummary: Mine.\nkind: recogniser\noptions: {feature: whisper-tiny.en}\n")
    with refuses("model_lacks_language", known="en"):
        build(speaking(row, language="zh", checks={"recognisers": [{"model": str(actual)}]}), out=tmp_path / "own")
