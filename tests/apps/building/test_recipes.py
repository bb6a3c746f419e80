"""The project's recipes of speech, built from a few rows in the form of their sources, with scripted models in place of
the real ones.
"""

from __future__ import annotations

import csv
import json
from importlib.resources import files

import pytest
import soundfile
import yaml

from codec_bench import build
from codec_bench.apps.building.data_set import check_benchmark
from codec_bench.apps.building.joined import write_script
from codec_bench.apps.building.recipe import read_recipe
from codec_bench.benchmark import load_benchmark

from .conftest import HERE, RATE_HZ, noise, rows_of, same_bytes
from .scripted import key_of

DREAM = [
    {"id": 1, "dialogue_id": "4-199", "dialogue": ["W: It begins at 7:30 p.m.", "M: We must hurry."],
        "question": "When does it begin?",
     "choice": ["At seven.", "At half past seven.", "At eight."], "answer": "At half past seven."},
    {"id": 2, "dialogue_id": "1-5", "dialogue": ["Paul: Oh. [thunder]", "Sara: Yes."], "question": "What is heard?",
     "choice": ["Rain.", "Thunder.", "Wind."], "answer": "Thunder."},
]  # fmt: skip
ALPACA = [
    {"instruction": "Give three tips for staying healthy.", "input": "", "output": "Eat well.", "text": "..."},
    {
        "instruction": "Name the odd one out.",
        "input": "Twitter, Instagram, Telegram",
        "output": "Telegram",
        "text": "...",
    },
    {"instruction": "Solve x^2 = 4.", "input": "", "output": "2", "text": "..."},
]
CMMLU = [
    {"Subject": "history", "Question": "一年有多少个月？", "A": "10", "B": "11", "C": "12", "D": "13", "Answer": "C"},
    {"Subject": "maths", "Question": "x^2=4, x=?", "A": "1", "B": "2", "C": "3", "D": "4", "Answer": "B"},
]
HSK = [
    {"level": "hsk1", "stem": "1.wav", "A": "三点", "B": "四点", "C": "五点", "D": "", "answer": "A"},
    {"level": "hsk6", "stem": "6.wav", "A": "他很高兴", "B": "他累了", "C": "他饿了", "D": "他走了", "answer": "D"},
]


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Writes a recipe of the project with rows of the test's own and scripted models; gives its path."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    log = {"log": str(tmp_path / "said.jsonl")}

    def write(name, rows):
        recipe = yaml.safe_load((files("codec_bench") / "configs" / "recipe" / f"{name}.yaml").read_text("utf-8"))
        if any(isinstance(value, list) for value in rows[0].values()):
            data = "rows.jsonl"
            (tmp_path / data).write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            data = "rows.csv"
            with (tmp_path / data).open("w", encoding="utf-8", newline="") as file:
                table = csv.DictWriter(file, list(rows[0]))
                table.writeheader()
                table.writerows(rows)
        texts = {key: value for key, value in recipe["texts"].items() if key != "split"}
        recipe["texts"] = {**texts, "data": data}
        if "synthesiser" in recipe:
            recipe["synthesiser"] = {"model": f"{HERE / 'scripted.py'}:Speaker", "options": log}
            recipe["voices"] = [
                {"name": gender, "gender": gender, "options": {"voice": gender}} for gender in ("female", "male")
            ]
        assert recipe["checks"]["recognisers"], "what a recipe of the project makes is read back"
        recipe["checks"]["recognisers"] = [{"model": f"{HERE / 'scripted.py'}:Listener", "options": log}]
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe, allow_unicode=True), encoding="utf-8")
        return tmp_path / "recipe.yaml"

    return write


def dropped_in(folder):
    return [
        json.loads(line)["reason_code"]["code"] for line in (folder / "dropped.jsonl").read_text("utf-8").splitlines()
    ]


def test_dream_tts(prepared, tmp_path):
    pytest.importorskip("num2words")
    built = build(prepared("dream-tts", DREAM), out=tmp_path / "set")
    (row,) = rows_of(built.folder)
    assert row["said"] == "It begins at seven thirty p.m.\nWe must hurry." and row["answer"] == "B"
    assert row["speakers"] == ["W", "M"] and row["voices"] == ["female", "male"] and row["check"] == "wer<=0.1"
    assert dropped_in(built.folder) == ["sign_unreadable"]
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.title == "Spoken dialogues (wer<=0.1)" and list(definition.metrics) == ["accuracy[exact]"]


def test_spoken_instructions(prepared, tmp_path):
    pytest.importorskip("num2words")
    built = build(prepared("spoken-instructions", ALPACA), out=tmp_path / "set")
    rows = rows_of(built.folder)
    assert [row["said"] for row in rows] == [
        "Give three tips for staying healthy.", "Name the odd one out. Twitter, Instagram, Telegram",
    ]  # fmt: skip
    assert [row["answer"] for row in rows] == ["Eat well.", "Telegram"] and rows[0]["check"] == "wer=0"
    assert dropped_in(built.folder) == ["sign_unreadable"]
    assert load_benchmark(str(built.folder / "benchmark.yaml")).primary == "rating[audiobench-0-5]"


def test_speech_cmmlu(prepared, tmp_path):
    pytest.importorskip("wetext")
    pytest.importorskip("opencc")
    built = build(prepared("speech-cmmlu", CMMLU), out=tmp_path / "set")
    (row,) = rows_of(built.folder)
    assert row["said"] == "请回答下面的单项选择题。一年有多少个月？选项A，十。选项B，十一。选项C，十二。选项D，十三。"
    assert row["answer"] == "C" and row["group"] == "history" and row["check"] == "cer=0"
    assert dropped_in(built.folder) == ["sign_unreadable"]
    assert load_benchmark(str(built.folder / "benchmark.yaml")).title == "Spoken CMMLU"


@pytest.mark.parametrize("name", ["speech-hsk", "speech-hsk-synthesised"])
def test_speech_hsk(prepared, tmp_path, name):
    pytest.importorskip("wetext")
    pytest.importorskip("opencc")
    recipe = prepared(name, HSK)
    for folder in ("stems", "options"):
        (tmp_path / folder).mkdir()
    for number in (1, 6):
        soundfile.write(tmp_path / "stems" / f"{number}.wav", noise(1.5, number), RATE_HZ)
    if name == "speech-hsk":
        write_script(recipe, tmp_path / "lines.csv")
        lines = list(csv.DictReader((tmp_path / "lines.csv").read_text("utf-8-sig").splitlines()))
        with (tmp_path / "said.jsonl").open("w") as log:
            for number, line in enumerate(lines):
                samples = noise(0.6, number)
                soundfile.write(tmp_path / "options" / line["file"], samples, RATE_HZ, subtype="FLOAT")
                log.write(json.dumps({"heard": line["line"], "key": key_of(samples)}) + "\n")
        assert [line["line"] for line in lines[:3]] == ["A，三点。", "B，四点。", "C，五点。"] and len(lines) == 7
    built = build(recipe, out=tmp_path / "set")
    rows = rows_of(built.folder)
    assert [row["level"] for row in rows] == ["hsk1", "hsk6"] and [row["answer"] for row in rows] == ["A", "D"]
    assert rows[0]["said"] == "A，三点。\nB，四点。\nC，五点。" and rows[0]["check"] == "cer=0"
    title = load_benchmark(str(built.folder / "benchmark.yaml")).title
    assert title == ("Spoken HSK" if name == "speech-hsk" else "Spoken HSK (options synthesised)")
    same_bytes(built.folder, build(recipe, out=tmp_path / "again").folder)


def test_the_hub_library_has_no_complaint_about_the_definition(mixing, monkeypatch):
    from huggingface_hub import repocard

    warned = []
    monkeypatch.setattr(repocard.logger, "warning", lambda *args, **more: warned.append(args))
    check_benchmark(read_recipe(str(mixing()))[0])
    assert warned == []
