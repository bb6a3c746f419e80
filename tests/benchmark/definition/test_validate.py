"""Every mistake of a definition at once, each with its line."""

import pytest
from refusals import refuses

from codec_bench.benchmark.definition.validate import validate_benchmark, validate_prompt
from codec_bench.benchmark.judge.metric import check_rating

WRONG = """\
version: 1
name: "mine-{part}"
matrix:
  - {part: a, unused: 3}
  - {part: b}
title: Mine
summary: A set of my own.
category: ASR
kind: understanding
language: en
data:
  path: nowhere.jsonl
  columns: {audio: audio, question: q, reference: text}
  optional: [qestion]
prompt:
  messages:
    - content:
        - audio: audio
        - "{{ questoin }}"
        - "{{ question.upper() }}"
prompts:
  kimi: trancribe
postprocess: [opton-letter, json-field]
metrics:
  - accuracy[exat]
  - utmos
  - ifeval[strict]
  - {name: rouge_l, postprocess: [first-lin]}
primary: accuracy[exact]
subsets: {kind: sort}
published:
  - {source: me, metric: wer, values: {x: 1}}
"""


def write(tmp_path, text, readme=True):
    (tmp_path / "benchmark.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "a.wav").write_bytes(b"RIFF")  # it is looked for and not read
    if readme:
        (tmp_path / "README.md").write_text("# Mine\n")
    return str(tmp_path)


def line_of(text):
    return next(number for number, line in enumerate(WRONG.splitlines(), 1) if text in line)


def test_all_mistakes_come_at_once_with_their_lines(tmp_path):
    result = validate_benchmark(write(tmp_path, WRONG, readme=False))
    text = {(finding.line, finding.message) for finding in result}
    expected = {
        (line_of("unused: 3"), "the key 'unused' of the matrix is used nowhere"),
        (line_of("nowhere.jsonl"), "there is no 'nowhere.jsonl' next to the definition"),
        (line_of("optional:"), "'qestion' is none of the columns"),
        (line_of("questoin"), "the prompt reads 'questoin', which no column gives"),
        (line_of("upper"), "'{{ question.upper() }}' uses what a prompt may not use: Call"),
        (line_of("kimi:"), "there is no prompt called 'trancribe'"),
        (line_of("opton-letter"), "there is no post-processing step called 'opton-letter'"),
        (line_of("json-field"), "the step 'json-field' needs an argument"),
        (line_of("accuracy[exat]"), "there is no rule of accuracy called 'exat'"),
        (line_of("- utmos"), "the metric 'utmos' measures sound, and the benchmark wants text"),
        (line_of("ifeval[strict]"), "the metric 'ifeval[strict]' needs 'instruction_id_list', which no column gives"),
        (line_of("first-lin]"), "there is no post-processing step called 'first-lin'"),
        (line_of("primary:"), "'accuracy[exact]' is none of the metrics"),
        (line_of("subsets:"), "the subset 'kind' is of 'sort', which no column gives"),
        (line_of("source: me"), "there are numbers of 'wer', which is none of the metrics"),
        (None, "there is no README.md next to benchmark.yaml"),
    }
    assert text == expected
    hints = {finding.message: finding.hint for finding in result}
    assert "transcribe" in hints["there is no prompt called 'trancribe'"]
    assert "question" in hints["'qestion' is none of the columns"]


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ('name: "mine-{part}"', "name: My Set", "is not a name"),
        ('name: "mine-{part}"', 'name: "mine-{prat}"', "'{prat}' is no key of this row"),
        ("title: Mine", "titel: Mine", "the field 'title' is missing"),
        ("kind: understanding", "kind: hearing", "kind: Input should be"),
        ("language: en", "langauge: en", "there is no field 'langauge'"),
    ],
)
def test_one_mistake_hides_no_others(tmp_path, right, wrong, says):
    before = {(f.line, f.message) for f in validate_benchmark(write(tmp_path, WRONG))}
    after = {(f.line, f.message) for f in validate_benchmark(write(tmp_path, WRONG.replace(right, wrong)))}
    hidden = {one for one in before - after if "'part'" not in one[1]}
    assert not hidden and any(says in message for _, message in after - before)


@pytest.mark.parametrize(
    ("right", "wrong", "seen"),
    [
        (
            "  columns: {audio: audio, question: q, reference: text}",
            "  columns: 3",
            ("accuracy[exat]", "opton-letter", "upper"),
        ),
        ("metrics:", "metrics: 3\nmetricks:", ("opton-letter", "nowhere.jsonl", "questoin")),
    ],
)
def test_a_field_that_cannot_be_read_hides_only_what_rests_on_it(tmp_path, right, wrong, seen):
    result = validate_benchmark(write(tmp_path, WRONG.replace(right, wrong)))
    for text in seen:
        assert any(text.split("[")[-1].rstrip("]") in f.message for f in result), text
    assert not any("which no column gives" in f.message and "columns: 3" in wrong for f in result)
    assert not any("is none of the metrics" in f.message and wrong.startswith("metrics") for f in result)


def test_columns_that_the_data_next_to_it_lack_are_mistakes(tmp_path):
    (tmp_path / "nowhere.jsonl").write_text('{"audio": "a.wav", "questions": "Who?", "texts": "I"}\n')
    by_name = {f.message: f for f in validate_benchmark(write(tmp_path, WRONG))}
    for name, column in (("question", "q"), ("reference", "text")):
        one = by_name[f"'{name}' is read from the column '{column}', which 'nowhere.jsonl' has not"]
        assert one.line == line_of("columns:")
    assert one.hint == "did you mean texts?"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("version: 1\ntitle: [\n", 3, "expected"),
        ("- a list\n", 1, "expected a mapping"),
        ("version: 1\nname: 'x-{part}'\n", 2, "'{part}' is no key of this row"),
        ("version: 1\nversion: 2\n", 2, "twice"),
        ("version: 1\nname: Upper Case\n", 2, "is not a name"),
    ],
)
def test_a_file_that_is_no_definition(tmp_path, text, line, says):
    result = validate_benchmark(write(tmp_path, text))
    assert any(one.line == line and says in one.message for one in result)


def test_a_metric_that_is_mistyped_may_have_been_meant_as_one_of_answers(tmp_path):
    text = WRONG.replace("  - utmos\n", "  - acuracy[label]\n")
    result = validate_benchmark(write(tmp_path, text))
    assert next(one for one in result if one.message.parameters.get("kind") == "metric").hint.startswith(
        "did you mean accuracy"
    )


def test_every_field_that_does_not_fit(tmp_path):
    text = WRONG.replace("title: Mine", "titel: Mine").replace("kind: understanding", "kind: hearing")
    result = validate_benchmark(write(tmp_path, text))
    texts = {(finding.line, finding.message.split(":")[0]) for finding in result if finding.line}
    line = line_of("title:")
    assert {(line, "there is no field 'titel'"), (line_of("kind: understanding"), "kind")} <= texts
    assert any(finding.message == "the field 'title' is missing" for finding in result)
    assert next(finding for finding in result if "titel" in finding.message).hint.startswith("did you mean title")


@pytest.mark.parametrize(
    ("added", "name", "hint"),
    [
        ("size: 4\n", "size", "'size' is a field of 'data'"),
        ("passing: {extends: x}\n", "passing.extends", "'extends' is a field of the top of the file"),
        ("column: text\n", "column", "'column' is a field of 'data.kinds' and of 'data.speaker'"),
    ],
)
def test_a_field_in_the_wrong_place_is_reported_where_it_belongs(tmp_path, added, name, hint):
    (results,) = [
        f for f in validate_benchmark(write(tmp_path, WRONG + added)) if f.message == f"there is no field '{name}'"
    ]
    assert results.hint.startswith(hint), results


def test_a_python_file_is_no_definition(tmp_path):
    (tmp_path / "mk.py").write_text("class Mine: ...")
    for name in ("mk.py", "mk.py:Mine"):
        with refuses("not_a_definition", hint="it is a Python file; expected a folder with benchmark.yaml"):
            validate_benchmark(f"{tmp_path}/{name}")


def test_names_that_are_not_there():
    with refuses("unknown_name", hint="librispeech"):
        validate_benchmark("libriispeech-dev-clean")
    with refuses("no_benchmark_file"):
        validate_benchmark("./nowhere")
    with refuses("unknown_name", hint="transcribe"):
        validate_prompt("trancribe")


def test_validate_knows_the_names_of_prompts(tmp_path, monkeypatch):
    from codec_bench import validate as verb
    from codec_bench.benchmark.definition import prompt, validate

    assert [(f.what, f.state) for f in verb("transcribe")] == [("prompt transcribe", "ok")]
    folder = tmp_path / "benchmarks" / "prompts"
    folder.mkdir(parents=True)
    (folder / "broken.yaml").write_text(
        "version: 1\nsummary: Broken.\nmessages:\n  - content:\n      - text: '{{ question'\nanswer: [no-such-step]\n"
    )
    for module in (prompt, validate):
        monkeypatch.setattr(module, "files", lambda package: tmp_path)
    result = verb("broken")
    assert [f.state for f in result] == ["wrong", "wrong"]
    assert ["{{ question" in f.found or "no-such-step" in f.found for f in result] == [True, True]
    assert [f"broken.yaml:{line}: " in f.found for f, line in zip(result, (5, 6))] == [True, True]


@pytest.mark.parametrize(
    ("speaker", "message"),
    [
        ("{column: who, pattern: '(\\d+'}", "is no regular expression"),
        ("{column: who, pattern: '\\d+'}", "has 0 groups; expected one"),
        ("{column: who, pattern: '(a)(b)'}", "has 2 groups; expected one"),
        ("{name: who}", "column"),
    ],
)
def test_a_speaker_is_a_column_and_a_pattern_with_one_group(tmp_path, speaker, message):
    text = WRONG.replace("optional: [qestion]", f"speaker: {speaker}")
    result = validate_benchmark(write(tmp_path, text))
    assert any(message in finding.message for finding in result), [finding.message for finding in result]


def test_only_a_speaker_that_is_named_may_be_optional(tmp_path):
    texts = lambda text: [f.message for f in validate_benchmark(write(tmp_path, text))]  # noqa: E731
    assert "'speaker' is none of the columns" in texts(WRONG.replace("[qestion]", "[speaker]"))
    named = WRONG.replace("optional: [qestion]", "speaker: who\n  optional: [speaker]")
    assert "'speaker' is none of the columns" not in texts(named)


YES_NO = """\
version: 1
name: mine
title: Mine
summary: A set of my own.
category: Sound
kind: understanding
language: en
data:
  path: rows.jsonl
  columns: {audio: file, reference: said}
fields:
  labels: ["yes", "no"]
prompt:
  messages: [{content: [{audio: audio}, "Is it speech? Answer yes or no."]}]
postprocess: [label]
metrics: ["accuracy[label]"]
primary: accuracy[label]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line", "says", "hint"),
    [
        ('["yes", "no"]', "[yes, no]", 11, "fields: 'labels' holds True; YAML reads yes, no, on and off as true", None),
        ("language: en", "language: no", 7, "language: Input should be a valid string; got False",
            "put such words in quotes"),
        ("reference: said", "refrence: said", 16, "'accuracy[label]' compares with 'reference', which no column gives",
            "did you mean refrence?"),
        ("language: en", "language: English", 7, "language: 'English' is no base code of a language; expected en",
            None),
        ("language: en", "language: klingon", 7,
            "language: 'klingon' is no base code of a language; expected one such as en, or null", None),
        (", reference: said", "", 16, "'accuracy[label]' compares with 'reference', which no column gives",
            "data.columns: {reference: COLUMN}"),
        ("kind: understanding", "kind: asr", 6, "'qa' or 'codec'; got 'asr'", None),
        ('["accuracy[label]"]', '["wer[whisper]"]', 16, "there is no feature called 'whisper'",
            "did you mean whisper-"),
    ],
)  # fmt: skip
def test_what_newcomers_write_is_reported_with_its_line(tmp_path, right, wrong, line, says, hint):
    (tmp_path / "rows.jsonl").write_text('{"file": "a.wav", "said": "yes"}\n')
    assert validate_benchmark(write(tmp_path, YES_NO)) == []
    results = [f for f in validate_benchmark(write(tmp_path, YES_NO.replace(right, wrong))) if says in f.message]
    assert [f.line for f in results] == [line]
    assert hint in results[0].hint if hint else results[0].hint is None


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("range: [1, 5]", "range: [5, 1]", "the range is [5.0, 1.0]; expected the least verdict and then the greatest"),
        ("reply: rating", "reply: official/nobody", "there is no reader 'official/nobody'"),
        ("prompt:", "promt:", "there is no field 'promt'; did you mean prompt?"),
        ("range: [1, 5]", "range: 1-5", "range: Input should be a valid tuple; got '1-5'"),
        ("{{ answer }}", "{{ anwser }}", "the rubric of 'rating[./mine.yaml]' reads 'anwser', which no column gives"),
        ("{{ answer }}", "{{ answer }", "is not a template"),
        (
            "version: 1",
            "version: 1\nneeds: [tone]",
            "the rubric of 'rating[./mine.yaml]' needs 'tone', which no column",
        ),
        ("version: 1", "- version", "mine.yaml', line 2"),
        ("version: 1", "version: 1\nextends: nobody", "extends 'nobody': there is no judge config called 'nobody'"),
        ("version: 1", "version: 1\nextends: 3", "extends 3; expected the name of a rubric, or a path"),
        ("version: 1", "version: 1\nextends: ./mine.yaml", "extends itself"),
        ("{{ answer }}", "{% if more is defined %}{{ more }}{% endif %}", None),
        ("{{ answer }}", "", "the prompt shows no answer to the judge; expected {{ answer }} in it"),
        (
            "reply: rating",
            "reply: rating\nparameters: {temprature: 0}",
            "parameters: 'parameters' does not fit: there is no field 'temprature'; did you mean temperature?",
        ),
        (
            "{{ answer }}",
            "{% for one in rounds %}{{ one.question }}{{ one.answer }}{% endfor %}",
            "reads the question of each round, and no column gives 'questions'",
        ),
    ],
)
def test_mistakes_of_a_rubric_are_located_at_the_metric_that_names_it(tmp_path, right, wrong, says):
    rubric = (
        'version: 1\nsummary: Mine.\nprompt: "{{ question }} {{ answer }} Rating: N"\nreply: rating\nrange: [1, 5]\n'
    )
    (tmp_path / "rows.jsonl").write_text('{"file": "a.wav", "said": "yes", "asked": "Who?"}\n')
    text = YES_NO.replace("accuracy[label]", "rating[./mine.yaml]").replace(
        "audio: file", "audio: file, question: asked"
    )
    (tmp_path / "mine.yaml").write_text(rubric)
    assert validate_benchmark(write(tmp_path, text), check_rating) == []
    (tmp_path / "mine.yaml").write_text(rubric.replace(right, wrong))
    result = validate_benchmark(write(tmp_path, text), check_rating)
    assert [f.line for f in result] == ([16] if says else [])
    assert says is None or says in result[0].message


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("./mine.yaml", "mine.yaml'"),
        ("./benchmark[1].yaml", "is not a name"),
        ("./rows.jsonl", "does not fit as a name"),
        ("./my rubric.yaml", "does not fit as a name"),
    ],
)
def test_a_file_that_is_no_rubric_is_reported_with_its_path(tmp_path, path, says):
    (tmp_path / "rows.jsonl").write_text('{"file": "a.wav", "said": "yes"}\n')
    (tmp_path / "my rubric.yaml").write_text("version: 1")
    text = YES_NO.replace("accuracy[label]", f"rating[{path}]")
    result = validate_benchmark(write(tmp_path, text), check_rating)[0]
    assert says in result.message and result.hint


def test_data_next_to_the_definition_without_a_row_are_reported(tmp_path):
    (tmp_path / "rows.jsonl").write_text("")
    (result,) = validate_benchmark(write(tmp_path, YES_NO))
    assert (result.message, result.line) == ("'rows.jsonl' holds no rows", 9)


def test_a_csv_with_semicolons_is_reported_as_one(tmp_path):
    (tmp_path / "rows.csv").write_text("file;said\na.wav;yes\n")
    result = validate_benchmark(write(tmp_path, YES_NO.replace("rows.jsonl", "rows.csv")))
    assert {f.hint for f in result} == {
        "its columns are separated by ';'; expected commas in a .csv, or tabs in a .tsv"
    }


@pytest.mark.parametrize(("at", "is_reachable"), [(1, True), (0.5, True), (1.5, False), (4, False)])
def test_a_passing_value_that_no_answer_reaches_is_a_mistake(tmp_path, at, is_reachable):
    (tmp_path / "rows.jsonl").write_text('{"file": "a.wav", "said": "yes"}\n{"file": "a.wav", "said": "no"}\n')
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    result = validate_benchmark(write(tmp_path, YES_NO + f"passing: {{at: {at}}}\n"))
    assert [one.message.code for one in result] == [] if is_reachable else ["passing_out_of_reach"]


def test_mistakes_are_codes_with_parameters(tmp_path):
    codes = {one.message.code: one.located.as_dict() for one in validate_benchmark(write(tmp_path, WRONG))}
    assert codes["not_a_metric"]["code"] == "at_place" and codes["not_a_metric"]["cause"]["code"] == "not_a_metric"
