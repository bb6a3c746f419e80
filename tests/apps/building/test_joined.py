"""Joined recordings: the script sheet, the checks of what readers recorded, and the variant whose options are
synthesised.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml
from refusals import Containing, refuses

from codec_bench import build
from codec_bench.apps.building.joined import write_script
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.benchmark import load_benchmark
from codec_bench.decoding.decode import decode_bytes
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

from .conftest import HERE, RATE_HZ, noise, rows_of
from .scripted import key_of

LEVELS = ("one", "two")


@pytest.fixture
def exam(tmp_path, monkeypatch):
    """Writes a recipe of joined recordings with its stems; called with the number of questions and fields of the
    recipe.
    """
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "stems").mkdir()
    (tmp_path / "options").mkdir()

    def write(count=2, **changed):
        with (tmp_path / "exam.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["level", "stem", "A", "B", "C", "D", "answer"])
            for number in range(count):
                last = "" if number % 2 else "a mouse"
                rows.writerow([LEVELS[number % 2], f"{number}.flac", "a cat", f"dog {number}", "a bird", last, "B"])
                soundfile.write(tmp_path / "stems" / f"{number}.flac", noise(1.0, 100 + number), RATE_HZ)
        recipe = {
            "version": 1, "kind": "joined", "title": "Exam", "summary": "Heard questions.", "language": "en",
            "texts": {"data": "exam.csv", "question": None, "choices": ["A", "B", "C", "D"], "group": "level",
                "licence": "MIT"},
            "stems": {"folder": "stems", "licence": "CC0"}, "line": "{{ letter }}: {{ choice }}.",
            "recorded": {"folder": "options", "readers": ["Ann", "Bob"], "licence": "CC BY 4.0"}, "pause_s": 0.5,
            "checks": {"recognisers": [], "least_s": 0.4, "most_s": 5, "least_rate_hz": 16000},
        }  # fmt: skip
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({**recipe, **changed}))
        return tmp_path / "recipe.yaml"

    return write


def sheet_of(recipe, **options):
    """The lines of the script sheet."""
    path = recipe.parent / "lines.csv"
    messages = write_script(recipe, path, **options)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file)), messages


def record(recipe, *, output=None):
    """Records every line of the sheet as noise; `output` gets the lines of a log for the scripted recogniser."""
    lines, _ = sheet_of(recipe)
    for number, line in enumerate(lines):
        samples = noise(0.6, number)
        soundfile.write(recipe.parent / "options" / line["file"], samples, RATE_HZ, subtype="FLOAT")
        if output is not None:
            output.append(json.dumps({"heard": line["line"], "key": key_of(samples)}))
    return lines


def test_the_sheet_lists_every_line_with_its_file_and_reader(exam):
    lines, (count, excluded) = sheet_of(exam(6))
    assert count == len(lines) == 4 * 3 + 3 * 3 and not excluded
    assert lines[5]["line"] == "B: dog one." and lines[5]["option"] == "B" and lines[5]["item"].endswith("-1")
    assert lines[5]["file"].startswith(f"{lines[5]['item']}_B_") and len({line["file"] for line in lines}) == count
    readers = {line["item"]: line["reader"] for line in lines}
    assert Counter(readers.values()) == {"Ann": 3, "Bob": 3}
    assert sheet_of(exam(6), seed=3)[0] != lines, "who reads what is drawn"
    again, _ = sheet_of(exam(6, line="{{ letter }}. {{ choice }}."))
    assert again[5]["file"] != lines[5]["file"], "another line is another file"


def test_lines_that_cannot_be_read_are_not_on_the_sheet(exam):
    _, (count, excluded) = sheet_of(exam(2, line="{{ letter }} = {{ choice }}"))
    assert count == 0 and excluded == {Diagnostic("sign_unreadable"): 2}
    with refuses("line_fields", fields="subject"):
        sheet_of(exam(2, line="{{ subject }}"))


def test_stem_and_options_are_joined_with_pauses(exam, tmp_path):
    recipe = exam(2)
    lines = record(recipe)
    built = build(recipe, out=tmp_path / "set")
    rows = rows_of(built.folder)
    assert [row["level"] for row in rows] == list(LEVELS) and built.funnel.groups["level"] == {
        "one": [1, 1, 1],
        "two": [1, 1, 1],
    }
    for row, options in zip(rows, (4, 3)):
        audio = Audio(*decode_bytes(row["audio"]["bytes"], row["id"]))
        assert audio.num_samples == round((1.0 + options * (0.6 + 0.5)) * RATE_HZ)
        for number in range(options):
            begin = RATE_HZ + round(number * 1.1 * RATE_HZ)
            assert not audio.samples[0, begin : begin + RATE_HZ // 2].any()
            assert audio.samples[0, begin + RATE_HZ // 2 : begin + RATE_HZ // 2 + 10].any()
        assert loudness_lufs(audio) == pytest.approx(-23, abs=0.05)
        created = json.loads(row["provenance"])
        actual = [line for line in lines if line["item"] == row["id"]]
        assert (
            created["files"] == [Path(line["file"]).stem for line in actual]
            and created["reader"] == actual[0]["reader"]
        )
        assert (
            len(created["hashes"]["options"]) == options
            and row["check"] == "not read back"
            and row["error_rate"] is None
        )
        assert row["licence"] == "texts: MIT; stem: CC0; options: CC BY 4.0" and row["answer"] == "B"
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.kind == "qa" and definition.title == "Exam" and "level" in definition.subsets
    assert definition.data.speaker.column == "stem", "questions that share a stem are not independent"


def flawed(path, kind):
    """Puts a flawed recording in the place of a good one."""
    samples = noise(0.6, 0)
    if kind == "missing":
        path.unlink()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "no sound file":
        path.write_text("these are notes")
    elif kind == "twice":
        soundfile.write(path.with_suffix(".flac"), samples, RATE_HZ)
    else:
        changed = {
            "silent": np.zeros_like(samples), "shouted": np.sign(samples), "short": samples[:3_000],
            "long": noise(6.0, 0),
            "paused": np.concatenate([samples, np.zeros(40_000), samples]), "coarse": samples[:4_800],
        }  # fmt: skip
        soundfile.write(path, changed[kind], 8_000 if kind == "coarse" else RATE_HZ)


FLAWS = {
    "missing": "recording_missing", "empty": "sound_unreadable", "no sound file": "sound_unreadable",
    "twice": "recording_twice",
    "silent": "sound_silent", "shouted": "sound_clipped", "short": "sound_too_short", "long": "sound_too_long",
    "paused": "sound_long_pause", "coarse": "sound_low_rate",
}  # fmt: skip


def test_each_flaw_of_a_recording_is_a_reason(exam, tmp_path):
    recipe = exam(len(FLAWS) + 3)
    lines = record(recipe)
    items = list(dict.fromkeys(line["item"] for line in lines))
    for item, kind in zip(items, FLAWS):
        file = next(line["file"] for line in lines if line["item"] == item and line["option"] == "C")
        flawed(tmp_path / "options" / file, kind)
    (tmp_path / "stems" / f"{len(FLAWS)}.flac").unlink()
    soundfile.write(tmp_path / "stems" / f"{len(FLAWS) + 1}.flac", np.zeros(RATE_HZ), RATE_HZ)
    built = build(recipe, out=tmp_path / "set")
    assert built.funnel.usable == 1
    dropped = [json.loads(line) for line in (built.folder / "dropped.jsonl").read_text().splitlines()]
    for line, code in zip(dropped, [*FLAWS.values(), "stem_missing", "sound_silent"], strict=True):
        assert line["reason_code"]["code"] == code and line["tries"][0]["detail"], line
    assert sum(count for _, _, reason, count in built.funnel.rows() if reason) == len(FLAWS) + 2


def test_what_readers_speak_is_transcribed_where_a_recogniser_is_named(exam, tmp_path):
    log = {"log": str(tmp_path / "said.jsonl")}
    checks = {"recognisers": [{"model": f"{HERE / 'scripted.py'}:Listener", "options": log}]}
    received = []
    recipe = exam(2, checks=checks)
    record(recipe, output=received)
    wrong = json.loads(received[1])
    received[1] = json.dumps({**wrong, "heard": "B: another line."})
    (tmp_path / "said.jsonl").write_text("\n".join(received))
    built = build(recipe, out=tmp_path / "set")
    (row,) = rows_of(built.folder)
    assert (
        row["check"] == "cer=0" and row["error_rate"] == 0 and row["transcripts"] == ["A: A CAT\nB: DOG ONE\nC: A BIRD"]
    )
    (line,) = map(json.loads, (built.folder / "dropped.jsonl").read_text().splitlines())
    assert line["step"] == "recognition" and "ANOTHER LINE" in line["tries"][0]["detail"]


def test_synthesised_options_are_another_data_set(exam, tmp_path):
    log = {"log": str(tmp_path / "said.jsonl")}
    scripted = {
        "recorded": None, "retries": 2, "synthesiser": {"model": f"{HERE / 'scripted.py'}:Speaker", "options": log},
        "voices": [{"name": "plain", "options": {"voice": "plain"}}, {"name": "other", "options": {"voice": "other"}}],
        "checks": {"recognisers": [{"model": f"{HERE / 'scripted.py'}:Listener", "options": log}]},
    }  # fmt: skip
    built = build(exam(3, **scripted, line="{{ letter }}, mumbled: {{ choice }}."), out=tmp_path / "set")
    rows = rows_of(built.folder)
    assert len(rows) == 3 and {row["reader"] for row in rows} == {"other"} and built.funnel.tries > 3
    assert rows[0]["licence"].endswith("options: synthesised")
    definition = load_benchmark(str(built.folder / "benchmark.yaml"))
    assert definition.title == "Exam (options synthesised)" and definition.name == "exam-options-synthesised"
    for changed, reason in (
        ({**scripted, "checks": {"recognisers": []}}, {"code": "at_line", "cause": Containing("read back")}),
        ({"recorded": None}, {"code": "at_line", "cause": Containing("'recorded'")}),
        ({"stems": {"folder": "nowhere", "licence": "CC0"}}, {"code": "no_recorded_folder", "subject": "stems"}),
    ):
        with refuses(**reason):
            build(exam(1, **changed), out=tmp_path / "wrong")
    with refuses("options_synthesised"):
        sheet_of(exam(1, **scripted))


def test_a_sheet_is_for_joined_recordings_alone(tmp_path, speaking):
    with refuses("nothing_read_aloud"):
        write_script(speaking("Is it blue?"), tmp_path / "lines.csv")


def test_items_that_stand_twice_are_read_and_joined_once(exam, tmp_path):
    recipe = exam(2)
    table = tmp_path / "exam.csv"
    header, first, second = table.read_text().splitlines()
    # The first row again; and the second with a stem that is the same recording in another file.
    table.write_text("\n".join([header, first, second, first, second.replace("1.flac", "copy.flac")]) + "\n")
    (tmp_path / "stems" / "copy.flac").write_bytes((tmp_path / "stems" / "1.flac").read_bytes())
    lines, (count, excluded) = sheet_of(recipe)
    assert excluded == {Diagnostic("same_text"): 1} and count == len(lines) == 4 + 3 + 3
    # The copy's options are read as those of the second row are.
    record(recipe)
    for line in lines[7:]:
        read = tmp_path / "options" / lines[4 + "ABC".index(line["option"])]["file"]
        (tmp_path / "options" / line["file"]).write_bytes(read.read_bytes())
    funnel = build(recipe, out=tmp_path / "set").funnel
    assert funnel.usable == 2 and funnel.dropped["row"].total() == 1 and funnel.dropped["duplicate"].total() == 1
