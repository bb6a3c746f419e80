"""Definitions: names, matrix, extends, settings, own folders, and errors with file and line."""

import shutil

import pytest
from refusals import Containing, refuses

from codec_bench.benchmark import benchmark_names, has_benchmark, load_benchmark, suite
from codec_bench.benchmark.definition.loader import read_definition
from codec_bench.config import load_yaml_with_lines

CUSTOM_CODE = """\
version: 1
title: Mine
summary: A set of my own.
category: ASR
kind: understanding
language: en
data:
  path: rows.jsonl
  columns: {audio: audio, reference: text}
fields: {language_name: English}
prompt: transcribe
metrics: ["wer[answer]@by-language"]
primary: wer[answer]@by-language
"""


@pytest.fixture
def custom_file(tmp_path):
    def write(text, name="my_bench"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "benchmark.yaml").write_text(text, encoding="utf-8")
        return str(folder)

    return write


@pytest.mark.parametrize(
    "name", ["KeSpeech", "seed_tts_eval_en", "GTZAN", "WenetSpeech-test-net", "cv3_zero_shot_hard_en", "fleurs-ko_kr"]
)
def test_names_of_ultraeval_audio_are_known(name):
    assert load_benchmark(name).name == name.lower().replace("_", "-")
    assert has_benchmark(name) and not has_benchmark(name + "x")


def test_an_unknown_name_suggests_the_nearest():
    with refuses("unknown_name", hint="librispeech-test-clean"):
        load_benchmark("libri-speech-test-clean")


def test_entries_without_settings_of_their_own_have_the_lines_of_the_definition_in_common(custom_file):
    rows = "matrix: [{part: a}, {part: b}, {part: c, set: {title: Other}}]\nname: my-{part}\n"
    one, other, set_apart = read_definition(custom_file(CUSTOM_CODE + rows) + "/benchmark.yaml")
    assert one.lines is other.lines and one.lines["title",] == 2
    assert not any(index[:1] == ("matrix",) for index in one.lines)
    assert set_apart.lines == {**one.lines, ("title",): 14}


def test_what_a_definition_cannot_know_is_none():
    benchmark = load_benchmark("catdog")
    assert (benchmark.licence, benchmark.size, benchmark.spec.paper) == (None, None, None)


def test_settings_reach_the_definition_and_change_what_is_sent():
    plain = load_benchmark("librispeech-dev-clean")
    changed = load_benchmark(
        "librispeech-dev-clean",
        {
            "data.revision": "abc",
            "parameters.max_tokens": 9,
            "metrics": "wer[answer]@none, rouge_l",
            "primary": "rouge_l",
        },
    )
    assert changed.data.revision == "abc" and changed.parameters == {"max_tokens": 9}
    assert changed.metrics == ("rouge_l", "wer[answer]@none")
    assert changed.request_facts != plain.request_facts and changed.scored != plain.scored
    assert load_benchmark("librispeech-dev-clean").request_facts == plain.request_facts


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"data.colums.audio": "x"},
            {"code": "setting_unknown", "setting": Containing("'data.colums.audio': there is no field 'data.colums'")},
        ),
        (
            {"parameters.temperature": -1},
            {"code": "setting_unknown", "setting": Containing("'parameters.temperature'")},
        ),
        ({"title.short": "x"}, {"code": "setting_not_a_mapping", "key": "title"}),
        ({"kind": "asr"}, {"code": "setting_unknown", "setting": Containing("'kind'")}),
    ],
)
def test_a_setting_that_does_not_fit_is_named(settings, says):
    with refuses(**says):
        load_benchmark("librispeech-dev-clean", settings)


def test_lists_are_separated_by_commas():
    assert load_benchmark("speech-hsk", {"data.splits": "hsk1, hsk2"}).data.splits == ["hsk1", "hsk2"]
    assert load_benchmark("meld-emo", {"postprocess": "strip-tags,label"}).process == ("strip-tags", "label")


def test_a_folder_of_ones_own(custom_file):
    folder = custom_file(CUSTOM_CODE)
    with refuses("name_form", line=1, name="my_bench"):
        load_benchmark(folder)
    folder = custom_file("name: mine\n" + CUSTOM_CODE)
    assert load_benchmark(folder).name == "mine" and has_benchmark(folder)
    assert not has_benchmark("./nowhere")


def test_a_matrix_makes_entries_named_by_a_pattern(custom_file):
    folder = custom_file(
        "name: 'mine-{part}'\nmatrix:\n  - {part: a, rows: 5}\n  - {part: b, rows: 6, set: {title: Second}}\n"
        + CUSTOM_CODE.replace("  path:", '  size: "{rows}"\n  path:')
    )
    assert [load_benchmark(f"{folder}:mine-{item}").size for item in "ab"] == [5, 6]
    assert [load_benchmark(f"{folder}:mine-{item}").title for item in "ab"] == ["Mine", "Second"]
    with refuses("several_definitions", benchmarks=2):
        load_benchmark(folder)
    with refuses("unknown_name", hint="mine-a"):
        load_benchmark(f"{folder}:mine-c")


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("name: 'mine-{part}'\nmatrix:\n  - {other: a}\n", {"code": "no_matrix_key", "line": 1, "key": "part"}),
        ("name: mine\nmatrix:\n  - {part: a}\n  - {part: b}\n", {"code": "name_twice", "line": 4, "name": "mine"}),
        ("name: mine\nmatrix: 3\n", {"code": "matrix_form", "line": 2}),
        (
            "name: mine\nextends: nobody\n",
            {"code": "at_line", "line": 2, "cause": {"code": "unknown_name", "name": "nobody"}},
        ),
        ("name: mine\nkinds: x\n", {"code": "at_line", "line": 2, "cause": {"code": "unknown_field", "name": "kinds"}}),
        ("name: mine\ntitel: x\n", {"code": "at_line", "line": 2, "cause": {"code": "unknown_field", "name": "titel"}}),
    ],
)
def test_a_mistake_is_reported_with_file_and_line(custom_file, head, says):
    folder = custom_file(head + CUSTOM_CODE)
    with refuses(**says):
        load_benchmark(folder)


def test_one_definition_extends_another(custom_file):
    folder = custom_file(
        "version: 1\nname: mine\nextends: meld-emo\ntitle: Mine\nupstream: null\ndata: {revision: v2}\npublished: []\n"
    )
    mine, theirs = load_benchmark(folder), load_benchmark("meld-emo")
    assert mine.title == "Mine" and mine.spec.upstream is None and mine.published == ()
    assert mine.data.revision == "v2" and mine.data.columns == theirs.data.columns and mine.metrics == theirs.metrics


def test_a_definition_that_extends_itself_is_refused(custom_file, tmp_path):
    folder = custom_file("name: mine\nextends: ./again\n" + CUSTOM_CODE)
    shutil.copytree(folder, f"{folder}/again")
    (tmp_path / "my_bench" / "again" / "benchmark.yaml").write_text("name: again\nextends: ../\n" + CUSTOM_CODE)
    with refuses("extends_itself"):
        load_benchmark(folder)


def test_a_suite_that_is_not_there():
    with refuses("unknown_name", hint="voicebench"):
        suite("voice-bench")


def test_names_are_canonical():
    assert all(name == name.lower() and "_" not in name for name in benchmark_names())


def test_lines_of_a_document(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("# c\na: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n")
    document, lines = load_yaml_with_lines(file)
    assert document == {"a": 1, "b": ["x", {"c": 2, "d": 3}]}
    assert (lines["a",], lines["b",], lines["b", 1], lines["b", 1, "d"]) == (2, 3, 5, 6)
    file.write_text("")
    assert load_yaml_with_lines(file) == (None, {})


def test_an_alias_that_is_repeated_is_listed_once(tmp_path):
    file = tmp_path / "a.yaml"
    levels = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 10))]
    file.write_text("\n".join(levels) + "\n")
    _, lines = load_yaml_with_lines(file)
    assert lines["a9",] == 10 and len(lines) < 80


def test_a_definition_of_aliases_upon_aliases_is_refused(custom_file):
    bomb = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30))]
    with refuses("at_position", cause=Containing("more than 100,000 values")):
        load_benchmark(custom_file("name: mine\n" + CUSTOM_CODE + "\n".join(bomb) + "\n"))


def test_a_changed_file_of_ones_own_is_read_again(custom_file):
    assert load_benchmark(custom_file("name: mine\n" + CUSTOM_CODE)).title == "Mine"
    assert (
        load_benchmark(custom_file("name: mine\n" + CUSTOM_CODE.replace("title: Mine", "title: Changed"))).title
        == "Changed"
    )


def test_a_constant_that_json_cannot_hold_is_refused(custom_file):
    with refuses("at_line", cause=Containing("JSON cannot")):
        load_benchmark(
            custom_file("name: mine\n" + CUSTOM_CODE.replace("{language_name: English}", "{language_name: 2026-01-01}"))
        )


def test_benchmarks_of_ultraeval_audio_leave_out_what_raised_an_error(tmp_path):
    """Its own rule, unless the definition says another; a definition that is not from there has none."""
    theirs = {"toolkit": "UltraEval-Audio", "counts": "left-out"}
    assert load_benchmark("librispeech-test-clean").described["failures"] == theirs
    assert load_benchmark("audiobench-librispeech-test-clean").described["failures"]["toolkit"] == "AudioBench"
    assert "failures" not in load_benchmark("codec-librispeech-test-clean").described
    ours = load_benchmark("air-bench-chat").data.kinds
    assert load_benchmark("air-chat").data.kinds == ours and ours.field == "group"
