"""Questions from descriptions: by class with options, written by a model, about segments; every drop has its reason."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml
from refusals import Containing, refuses

from codec_bench import build
from codec_bench.apps.building.described import Wordings, wordings_of
from codec_bench.apps.building.recipe import read_recipe
from codec_bench.benchmark import load_benchmark
from codec_bench.config import config_names, read_config
from codec_bench.decoding.decode import decode_bytes
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

from .conftest import RATE_HZ, noise, rows_of

HERE = Path(__file__).parent
CLASSES = {"column": "mood", "wordings": ["Which mood is it?", "How does {{ speaker }} feel?"], "options": 3}


@pytest.fixture
def asking(tmp_path, monkeypatch):
    """Writes recordings with what is known of them, and a recipe; gives the path of the recipe."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))

    def write(*known, **changed):
        (tmp_path / "set").mkdir(exist_ok=True)
        with (tmp_path / "set" / "manifest.jsonl").open("w") as lines:
            for number, row in enumerate(known):
                soundfile.write(tmp_path / "set" / f"r{number}.flac", noise(2.0, number), RATE_HZ)
                lines.write(json.dumps({"id": f"r{number}", "audio": f"r{number}.flac", **row}) + "\n")
        recipe = {
            "version": 1, "kind": "described", "title": "Questions", "summary": "About recordings.", "language": "en",
            "source": {"data": "set", "licences": "MIT"}, "retries": 1, **changed,
        }  # fmt: skip
        if "written" in recipe or recipe.get("classes", {}).get("others") == "written":
            recipe |= {"writer": used("Writer"), "judge": used("Judge")}
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
        return tmp_path / "recipe.yaml"

    def used(name):
        return {"model": f"{HERE / 'writers.py'}:{name}", "options": {"log": str(tmp_path / f"{name}.jsonl")}}

    write.used = used
    return write


def items_in(name, folder):
    path = folder / f"{name}.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def moods(count):
    names = ["calm", "glad", "sad", "cross", "tired"]
    return [{"mood": names[n % 5], "speaker": f"s{n}"} for n in range(count)]


def test_options_are_the_class_and_others_in_an_order_by_seed(asking, tmp_path):
    recipe = asking(*moods(30), classes=CLASSES, description="Mood: {{ mood }}.", group="mood")
    built = build(recipe, out=tmp_path / "out")
    rows = rows_of(built.folder)
    assert built.funnel.usable == 30 and built.funnel.groups["group"] == {mood["mood"]: [6, 6, 6] for mood in moods(5)}
    for row in rows:
        number = int(row["id"][1:])
        assert (
            row["choices"]["ABC".index(row["answer"])]
            == row["answer_text"]
            == moods(30)[number]["mood"]
            == row["group"]
        )
        assert (
            len(set(row["choices"])) == 3
            and row["checked"] == "none"
            and row["description"] == f"Mood: {row['answer_text']}."
        )
        assert row["question"] in ("Which mood is it?", f"How does s{number} feel?")
        audio = Audio(*decode_bytes(row["audio"]["bytes"], row["id"]))
        np.testing.assert_allclose(audio.samples[0], noise(2.0, number), atol=1 / 32_000)
    assert {row["answer"] for row in rows} == {"A", "B", "C"} and len({row["question"] for row in rows}) > 2
    assert len({tuple(row["choices"]) for row in rows}) > 10
    assert rows_of(build(recipe, out=tmp_path / "again").folder) == rows
    assert rows_of(build(recipe, out=tmp_path / "other", seed=1).folder) != rows
    assert load_benchmark(str(built.folder / "benchmark.yaml")).kind == "understanding"


def test_a_recording_that_is_there_twice_is_judged_once(asking, tmp_path):
    recipe = asking(*moods(4), classes=CLASSES, description="{{ mood }}")
    # The same sound in another file.
    soundfile.write(tmp_path / "set" / "r3.flac", noise(2.0, 1), RATE_HZ)
    built = build(recipe, out=tmp_path / "out")
    assert [row["id"] for row in rows_of(built.folder)] == ["r0", "r1", "r2"]
    assert dict(built.funnel.dropped["duplicate"]) == {Diagnostic("same_sound"): 1}
    retained = build(
        asking(*moods(4), classes=CLASSES, description="{{ mood }}", duplicates="keep"), out=tmp_path / "kept"
    )
    assert [row["unit"] for row in rows_of(retained.folder)] == ["r0", "r1", "r2", "r3"]
    soundfile.write(tmp_path / "set" / "r3.flac", noise(2.0, 1), RATE_HZ)
    retained = build(tmp_path / "recipe.yaml", out=tmp_path / "kept twice")
    assert [row["unit"] for row in rows_of(retained.folder)] == ["r0", "r1", "r2", "r1"]
    assert load_benchmark(str(retained.folder / "benchmark.yaml")).data.speaker.column == "unit"


def test_several_questions_about_one_recording_are_one_unit(asking, tmp_path):
    built = build(asking({"text": "one"}, {"text": "two"}, written={"each": 2}), out=tmp_path / "out")
    assert [row["recording"] for row in rows_of(built.folder)] == ["r0", "r0", "r1", "r1"]
    assert load_benchmark(str(built.folder / "benchmark.yaml")).data.speaker.column == "recording"


def test_all_classes_may_be_the_options_under_other_names(asking, tmp_path):
    known = [{"sex": value} for value in ("m", "f", "m", "x", None)]
    classes = {
        "column": "sex",
        "names": {"m": "male", "f": "female"},
        "wordings": "speaker-gender",
        "others": "all",
        "options": 2,
    }
    built = build(asking(*known, classes=classes, description="A person."), out=tmp_path / "out")
    assert [sorted(row["choices"]) for row in rows_of(built.folder)] == [["female", "male"]] * 3
    assert built.funnel.dropped["description"] == {Diagnostic("none_of_the_classes"): 2}


def test_wrong_options_may_be_written_and_are_judged(asking, tmp_path):
    known = [
        {"mood": "calm", "text": text} for text in ("fine", "alike", "unheard", "garbled", "it is bad", "doubtful")
    ]
    classes = {"column": "mood", "wordings": ["Which? {{ text }}"], "options": 4, "others": "written"}
    built = build(asking(*known, classes=classes), out=tmp_path / "out")
    (row,) = rows_of(built.folder)
    assert sorted(row["choices"]) == ["calm", "one", "three", "two"] and row["checked"] == "judge"
    reasons = {
        json.loads(line)["id"]: json.loads(line)["reason_code"]
        for line in (built.folder / "dropped.jsonl").read_text().splitlines()
    }
    assert reasons == {
        "r1": {"code": "equal_options"}, "r2": {"code": "model_without_answer", "role": "writer"},
        "r3": {"code": "reply_without_list"}, "r4": {"code": "judge_rejects"}, "r5": {"code": "judge_undecided"},
    }  # fmt: skip


def test_several_questions_come_from_one_request(asking, tmp_path):
    built = build(asking({"text": "rain"}, {"text": "scarce wind"}, written={"each": 3}), out=tmp_path / "out")
    rows = rows_of(built.folder)
    assert [row["id"] for row in rows] == ["r0-q1", "r0-q2", "r0-q3"]
    assert [row["question"] for row in rows] == [f"Question {n} about rain?" for n in (1, 2, 3)]
    assert {row["answer"] for row in rows} == {"Because of rain."} and rows[0]["choices"] is None
    assert built.funnel.dropped["writing"] == {Diagnostic("too_few_questions"): 3}
    requests = items_in("Writer", tmp_path)
    assert Counter("scarce" in text for text in requests) == {False: 1, True: 2}, "once for each recording and try"
    again = build(asking({"text": "rain"}, {"text": "scarce wind"}, written={"each": 3}), out=tmp_path / "again")
    assert rows_of(again.folder) == rows and len([t for t in items_in("Writer", tmp_path) if "rain" in t]) == 1
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.metrics == ("rating[audiobench-0-5]",) or "rating[audiobench-0-5]" in str(definition.metrics)


def test_what_was_measured_is_checked_by_rule(asking, tmp_path):
    known = [
        {"text": text, "louder": louder, "gap_db": gap}
        for text, louder, gap in (
            ("louder speech", "the speech", 9.0), ("louder mistaken", "the speech", 9.0),
            ("louder slightly", "the speech", -1.0),
            ("louder music", "the music", -9.0), ("bells", "the music", -9.0),
        )
    ]  # fmt: skip
    facts = {"louder": {"is_what": "which sound is louder", "column": "louder", "measure": "gap_db", "least": 3}}
    built = build(asking(*known, written={"each": 1}, facts=facts), out=tmp_path / "out")
    assert {row["id"]: row["checked"] for row in rows_of(built.folder)} == {"r0": "rule", "r4": "judge"}
    assert built.funnel.dropped["rule"] == {
        Diagnostic("answer_without_measured"): 2, Diagnostic("difference_too_small"): 1,
    }  # fmt: skip
    assert len(items_in("Judge", tmp_path)) == 1, "the judge is asked where no rule decides"


def test_a_data_set_of_mixtures_can_be_judged(asking, mixing, sounds):
    mixed = build(mixing(count=8, retries=20), out=sounds / "mix")
    held = {row["id"]: row for row in rows_of(mixed.folder)}
    facts = {"louder": {"is_what": "which sound is louder", "column": "louder", "measure": "gap_db", "least": 3}}
    recipe = asking(
        source={"data": "mix", "licences": "MIT"}, written={"each": 1}, facts=facts, description="{{ reference }}"
    )
    rows = rows_of(build(recipe, out=sounds / "out").folder)
    options = {key for key, row in held.items() if "louder" in row["reference"]}
    right = {key for key in options if held[key]["gap_db"] >= 3}
    assert right and {row["id"] for row in rows if row["checked"] == "rule"} == right
    assert {row["id"] for row in rows if row["checked"] == "judge"} == set(held) - options
    for row in rows:
        assert Audio(*decode_bytes(row["audio"]["bytes"], row["id"])).duration_s == pytest.approx(
            held[row["id"]]["duration_s"], abs=1e-6
        )


def test_long_recordings_are_cut_by_topic(asking, tmp_path):
    lines = [{"start_s": 0.4 * n, "end_s": 0.4 * n + 0.4, "text": f"line {n}."} for n in range(5)]
    known = [
        {"lines": lines},
        {"lines": json.dumps(lines)},
        {"lines": [{**lines[0], "text": "muddled"}, lines[1]]},
        {"lines": lines[::-1]},
    ]
    topics = {"lines": "lines", "by": asking.used("Cutter"), "least_s": 0.5, "most_s": 60}
    recipe = asking(*known, written={"each": 2}, topics=topics, description="{{ segment }}")
    built = build(recipe, out=tmp_path / "out")
    rows = rows_of(built.folder)
    assert [row["id"] for row in rows] == [f"r{r}-s0{s}-q{q}" for r in (0, 1) for s in (1, 2) for q in (1, 2)]
    assert [row["description"] for row in rows[::2]] == ["line 0. line 1.", "line 2. line 3."] * 2
    for row in rows:
        result = Audio(*decode_bytes(row["audio"]["bytes"], row["id"])).samples[0]
        begin = round(row["start_s"] * RATE_HZ)
        np.testing.assert_allclose(result, noise(2.0, int(row["id"][1]))[begin : begin + result.size], atol=1 / 32_000)
        assert row["duration_s"] == pytest.approx(0.8)
    assert built.funnel.dropped["topics"] == {
        Diagnostic("segment_too_short"): 4, Diagnostic("lines_out_of_order"): 2, Diagnostic("lines_not_rising"): 2,
    }  # fmt: skip
    limited = build(recipe, out=tmp_path / "few", limit=3)
    assert limited.funnel.items == 3


def test_people_edit_open_questions(asking, tmp_path):
    from .test_review import save

    recipe = asking({"text": "rain"}, {"text": "wind"}, written={"each": 1})
    build(recipe, out=tmp_path / "out", review=True)
    text = {"r0": ("edit", {"Question": "What falls?", "Expected answer": "Rain falls."}), "r1": ("drop", {})}
    file = save(tmp_path / "out", tmp_path / "a.json", "A", text)
    (row,) = rows_of(build(recipe, out=tmp_path / "out", reviewed=[file]).folder)
    assert (row["question"], row["answer"], row["review"]) == ("What falls?", "Rain falls.", "edited")
    assert "accepted 50.0 % of them" in (tmp_path / "out" / "README.md").read_text()


def test_wrong_recipes_are_refused_before_anything_is_sent(asking, tmp_path):
    known = [{"mood": "calm", "text": "a"}, {"mood": "glad", "text": "b"}]
    for changed, text in (
        ({}, {"code": "at_line", "cause": Containing("'classes' or 'written'")}),
        (
            {"classes": {**CLASSES, "column": "colour", "wordings": ["?"]}},
            {"code": "recordings_lack_columns", "columns": "colour"},
        ),
        ({"classes": CLASSES}, {"code": "recordings_lack_columns", "columns": "speaker"}),
        (
            {"classes": {**CLASSES, "wordings": "speaker-mood"}},
            {"code": "unknown_name", "name": "speaker-mood"},
        ),
        (
            {"written": {"each": 1}, "description": "{{ caption }}"},
            {"code": "recordings_lack_columns", "columns": "caption"},
        ),
        (
            {"classes": {**CLASSES, "wordings": ["?"], "others": "all", "names": dict(zip("abcd", "abcd"))}},
            {"code": "too_few_classes", "classes": 4},
        ),
        ({"classes": {**CLASSES, "wordings": ["?"], "names": {"calm": "calm"}}}, {"code": "one_class_only"}),
    ):
        with refuses(**text):
            build(asking(*known, **changed), out=tmp_path / "out")
    assert not items_in("Writer", tmp_path) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", config_names("wording"))
def test_every_list_has_fifty_wordings(name):
    result = read_config("wording", name, Wordings).wordings
    assert len(result) == 50 == len({text.casefold() for text in result})
    assert all(text[0].isupper() and text.rstrip(".?") != text and "  " not in text for text in result)


def test_the_recipes_of_the_papers_name_lists_and_state_what_was_chosen():
    recipes = [read_recipe(name)[0] for name in config_names("recipe")]
    described = [recipe for recipe in recipes if recipe.kind == "described"]
    assert len(described) == 7 and all(len(recipe.choices) >= 4 and recipe.paper for recipe in described)
    assert sum(len(wordings_of(recipe.classes)) for recipe in described if recipe.classes) == 150
