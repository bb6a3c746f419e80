"""`codec-bench build` on the command line: what it prints, and how it ends."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile

from codec_bench.apps.building.recipe import read_recipe
from codec_bench.config import config_names

RECIPE = """
version: 1
kind: mixture
title: Two sounds
summary: Which is louder.
count: 2
first: {data: sounds, is_what: the one, ids: [a], licences: MIT}
second: {data: sounds, is_what: the other, ids: [b], licences: MIT}
gap_db: 6
questions: {louder: {wordings: ["Which is louder?"], least: LEAST}}
"""


@pytest.fixture
def recipe(tmp_path):
    def write(least="1"):
        (tmp_path / "sounds").mkdir(exist_ok=True)
        for name in "ab":
            noise = np.random.default_rng(ord(name)).normal(0, 0.1, 32_000)
            soundfile.write(tmp_path / "sounds" / f"{name}.flac", noise, 16_000)
        (tmp_path / "recipe.yaml").write_text(RECIPE.replace("LEAST", least))

    return write


def test_a_data_set_is_built(cli, recipe):
    recipe()
    code, out, err = cli("build", "recipe.yaml", "--out", "set", "--json")
    assert code == 0, err
    assert json.loads(out)["kept"] == 2 and "2 of 2 items are usable" in err
    code, out, err = cli("build", "recipe.yaml", "--out", "set")
    assert code == 0 and "kept" in out


def test_sheets_are_written_and_what_cannot_be_is_one_sentence(cli, recipe, tmp_path):
    recipe()
    code, out, err = cli("build", "recipe.yaml", "--out", "set", "--review", "--json")
    assert code == 0 and "review sheet: " in err, err
    (sheet,) = json.loads(out)["sheets"]
    assert (tmp_path / sheet).is_file() and json.loads(out)["pushed"] is None
    (tmp_path / "answers.json").write_text("{}")
    for options, text in (
        (("--private",), "none is pushed"),
        (("--push", "me/set"), "names no licence"),
        (("--reviewed", "answers.json"), "no file holds an answer"),
        (("--reviewed", "nothing.json"), "no file holds an answer"),
    ):
        code, _, err = cli("build", "recipe.yaml", "--out", "set", *options)
        assert code == 2 and text in err and "Traceback" not in err, err
    code, _, err = cli("build", "recipe.yaml", "--script", "lines.csv", "--review")
    assert code == 2 and "--script makes no data set" in err


def test_a_script_sheet_is_written_in_place_of_a_data_set(cli, tmp_path):
    (tmp_path / "exam.csv").write_text("question,stem,A,B,answer\nWhich?,a.wav,red,blue,A\n")
    joined = """
version: 1
kind: joined
title: Exam
summary: Heard questions.
language: en
texts: {data: exam.csv, choices: [A, B], licence: MIT}
stems: {folder: stems, licence: MIT}
line: "{{ letter }}: {{ choice }}."
recorded: {folder: options, licence: MIT}
checks: {recognisers: []}
"""
    (tmp_path / "recipe.yaml").write_text(joined)
    code, out, err = cli("build", "recipe.yaml", "--script", "lines.csv", "--json")
    assert code == 0 and json.loads(out)["lines"] == 2 and "2 lines to read" in err
    assert (tmp_path / "lines.csv").read_text("utf-8-sig").splitlines()[2].endswith(",B,B: blue.")
    code, _, err = cli("build", "recipe.yaml")
    assert code == 2 and "either --out or --script" in err


def test_an_empty_data_set_is_a_failure(cli, recipe):
    recipe(least="20")
    code, out, err = cli("build", "recipe.yaml", "--out", "set")
    assert code == 3 and "differences are too small" in " ".join(out.split())
    assert (
        "0 of 2 items are usable, so no benchmark.yaml was written; most were dropped at the step 'question' (2)" in err
    )
    assert "codec-bench run" not in err


def test_less_than_was_requested_is_a_failure(cli, recipe, tmp_path):
    recipe()
    text = (
        (tmp_path / "recipe.yaml")
        .read_text()
        .replace("count: 2", "count: 5")
        .replace("gap_db: 6", "gap_db: {choice: [6, 0.1]}")
    )
    (tmp_path / "recipe.yaml").write_text(text + "retries: 0\n")
    code, out, err = cli("build", "recipe.yaml", "--out", "set", "--json")
    retained = json.loads(out)["kept"]
    assert code == 3 and 0 < retained < 5 and json.loads(out)["wanted"] == 5
    assert f"the recipe asks for 5 items, and {retained} are usable; most were dropped at the step 'question'" in err
    assert "codec-bench run" in err


def test_voices_that_were_never_usable_are_reported(cli, speaking, tmp_path):
    pytest.importorskip("num2words")
    voices = [{"name": name, "options": {"voice": name}} for name in ("plain", "other")]
    speaking(*(f"Is it mumbled, {name}?" for name in ("Anna", "Bert", "Carl", "Dora")), voices=voices)
    code, _, err = cli("build", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "set"))
    assert code == 0 and "the voice 'plain' was never usable: 1 try failed because it was not read back" in err
    assert "| plain | 0 | 0 | 1 |" in (tmp_path / "set" / "README.md").read_text()
    speaking("Is it a broken line?", "Is it a broken number?", "Is it a broken line or not?", voices=voices)
    code, _, err = cli("build", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "none"))
    assert code == 3 and "0 of 3 items are usable, so no benchmark.yaml was written" in err
    assert "step 'synthesis' (3), because the synthesiser gave an error" in err
    assert "the voice 'other' was never usable" in err and "the voice 'plain' was never usable" in err


def test_a_wrong_recipe_is_reported_with_its_line(cli, recipe, tmp_path):
    recipe()
    text = (tmp_path / "recipe.yaml").read_text()
    for wrong, texts in (
        (text.replace("gap_db: 6", "gab_db: 6"), "gab_db"),
        (text.replace("kind: mixture", "kind: soup"), "soup"),
        (text.replace("count: 2", "count: 0"), "line 6"),
        (text.replace("Which is louder?", "{{ first"), "template"),
        (text.replace("data: sounds", "data: nowhere"), "nowhere"),
        ("", "NoneType"),
    ):
        (tmp_path / "recipe.yaml").write_text(wrong)
        code, _, err = cli("build", "recipe.yaml", "--out", "set")
        assert code == 2 and texts in " ".join(err.split()), err
    code, _, err = cli("build", "air-mix-musik", "--out", "set")
    assert code == 2 and "air-mix-music" in err


@pytest.mark.parametrize("name", config_names("recipe"))
def test_the_recipes_of_the_project_can_be_read(name):
    recipe, _ = read_recipe(name)
    assert recipe.choices, "a recipe says what its paper leaves open"
