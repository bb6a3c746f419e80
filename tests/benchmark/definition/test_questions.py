"""Rows of data as questions: references, problems, ids, kinds, expansion."""

import json

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench.benchmark import load_benchmark
from codec_bench.benchmark.definition.questions import QuestionStream
from codec_bench.benchmark.definition.schema import Data


@pytest.fixture
def stream(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(1600), 16_000)

    def build(rows, columns, *, demanded=("audio",), constants=None, subsets=None, limit=None, language="en", **data):
        lines = [json.dumps({"audio": "a.wav", **row}) for row in rows]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return QuestionStream(
            "mine",
            Data.model_validate({"path": "rows.jsonl", "columns": columns, **data}),
            constants=constants or {},
            demanded=frozenset(demanded),
            subsets=subsets or {},
            language=language,
            limit=limit,
            folder=tmp_path,
        )

    return build


@pytest.mark.parametrize(
    ("value", "references"),
    [
        ("yes", ("yes",)),
        (3, ("3",)),
        (3.0, ("3",)),
        (2.5, ("2.5",)),
        (["a", "", None, "b"], ("a", "b")),
        ('["a", "b"]', ("a", "b")),
        ("['it''s', \"b\"]", ("its", "b")),
        ("[laughter]", ("[laughter]",)),
        (None, ()),
        ("  ", ("",)),
        ([" "], ()),
        ([], ()),
        (False, ("False",)),
    ],
)
def test_references(stream, value, references):
    (question,) = stream([{"answer": value}], {"audio": "audio", "reference": "answer"})
    assert question.references == references and question.problem is None
    assert "reference" not in question.fields


def test_a_sound_that_is_missing_between_others_is_reported_and_not_omitted(stream):
    lists = [["a.wav", "a.wav"], ["a.wav", None, "a.wav"], [None, "a.wav"], ["a.wav", "", None], [None, ""]]
    requests = list(stream([{"said": text} for text in lists], {"audio": ["said.0", "said.1", "said.2"]}))
    messages = "the row has no sound in 'audio'"
    assert [question.problem for question in requests] == [None, messages, messages, None, messages]
    assert [len(requests[at].fields["audio"]) for at in (0, 3)] == [2, 1]


@pytest.mark.parametrize(
    ("speaker", "cells", "speakers"),
    [
        ("who", ["ann", " bob ", 17, 3.0], ["ann", "bob", "17", "3"]),
        ("who", ["", " ", None, "None", "N/A", "unknown", "nan", ["ann"]], [None] * 8),
        ({"column": "who", "pattern": r"(?:^|[/\\])(\d+)-\d+-\d+\.\w+$"},
         ["a/b/1089-134686-0000.flac", "61-70968-0001.wav", "x-1089-134686-0000.flac", "", None],
            ["1089", "61", None, None, None]),
        ({"column": "who", "pattern": r"BAC009(S\d{4})W\d+"}, ["BAC009S0764W0121.wav", "S0764"], ["S0764", None]),
        (None, ["ann", "bob"], [None, None]),
    ],
)  # fmt: skip
def test_speakers(stream, speaker, cells, speakers):
    rows = [{"q": "why?", "who": cell} for cell in cells]
    questions = list(stream(rows, {"audio": "audio", "question": "q"}, speaker=speaker))
    assert [question.speaker for question in questions] == speakers
    assert not any("who" in q.fields or "speaker" in q.fields for q in questions), "who speaks is not asked about"


def test_every_question_of_a_row_has_its_speaker(stream):
    expand = {"field": "style", "columns": {"A": "a", "B": "b"}}
    rows = [{"a": "calm", "b": "loud", "who": "ann"}, {"a": "slow", "b": None, "who": "bob"}]
    questions = list(stream(rows, {"audio": "audio"}, speaker="who", expand=expand))
    assert [question.speaker for question in questions] == ["ann", "ann", "bob"]


def test_a_speaker_s_column_that_is_missing_is_an_error_unless_it_is_optional(stream):
    with refuses("benchmark_column_missing", field="speaker", column="who"):
        stream([{"q": "why?"}], {"audio": "audio"}, speaker="who")
    (question,) = stream([{"q": "why?"}], {"audio": "audio"}, speaker="who", optional=["speaker"])
    assert question.speaker is None


def test_a_row_without_what_the_prompt_reads_stays_as_a_problem(stream):
    rows = [{"q": "why?"}, {"q": None}, {"q": " "}, {"q": "how?", "audio": None}]
    questions = list(stream(rows, {"audio": "audio", "question": "q"}, demanded=("audio", "question")))
    assert [question.problem for question in questions] == [
        None,
        "the row has nothing in 'question'",
        "the row has nothing in 'question'",
        "the row has no sound in 'audio'",
    ]
    assert len({question.id for question in questions}) == 4


def test_what_may_be_missing_is_omitted(stream):
    columns = {"audio": "audio", "question": "q", "note": "n"}
    with refuses("benchmark_column_missing", name="mine", field="note", column="n", data="rows"):
        stream([{"q": "why?"}], columns)
    (question,) = stream([{"q": "why?"}], columns, optional=["note"], subsets={"note": "note"})
    assert "note" not in question.fields and question.subsets == {}


def test_constants_languages_and_subsets(stream):
    rows = [{"lang": "German", "place": 3}, {"lang": None, "place": 4}]
    columns = {"audio": "audio", "language": "lang", "room": "place"}
    first, second = stream(rows, columns, constants={"labels": ["a"]}, subsets={"where": "room"})
    assert (first.language, second.language) == ("de", "en")
    assert first.fields["labels"] == ["a"] and first.subsets == {"where": "3"}


def test_a_list_of_columns_leaves_out_what_is_null(stream):
    rows = [{"a": "one", "b": None, "c": "three"}, {"a": None, "b": None, "c": None}]
    first, second = stream(rows, {"audio": "audio", "choices": ["a", "b", "c"]}, demanded=("choices",))
    assert first.fields["choices"] == ["one", "three"]
    assert second.problem == "the row has nothing in 'choices'"


def test_some_columns_of_a_list_may_be_missing_and_not_all(stream):
    columns = {"audio": "audio", "choices": ["a", "b", "c"]}
    (question,) = stream([{"a": "one"}], columns, optional=["choices"])
    assert question.fields["choices"] == ["one"]
    with refuses("benchmark_column_missing", column="a"):
        stream([{"options": "one"}], columns, optional=["choices"])


def test_ids_of_a_column_stay_unique(stream):
    rows = [{"name": "x"}, {"name": "x"}, {"name": None}]
    ids = [question.id for question in stream(rows, {"audio": "audio"}, id="name")]
    assert ids[0] == "x" and ids[1].startswith("x#") and len(set(ids)) == 3


def test_a_row_expands_into_several_questions_and_a_limit_counts_those(stream):
    rows = [{"A": f"a{n}", "B": None if n == 1 else f"b{n}", "id": n} for n in range(4)]
    expand = {"field": "instruction", "columns": {"A": "A", "B": "B"}, "subset": "type"}
    everything = list(stream(rows, {"audio": "audio"}, id="id", expand=expand))
    assert [question.id for question in everything] == ["0-A", "0-B", "1-A", "2-A", "2-B", "3-A", "3-B"]
    assert everything[1].fields["instruction"] == "b0"
    limited = stream(rows, {"audio": "audio"}, id="id", expand=expand, subsets={"type": "type"}, limit=3)
    assert [question.subsets["type"] for question in limited] == ["A", "B", "A"]
    assert limited.total is None


def test_kinds_of_rows_have_constants_of_their_own(stream):
    kinds = {"column": "id", "names": {"navigate": {"labels": ["yes", "no"]}, "hyper": {"labels": ["(a)", "(b)"]}}}
    rows = [{"id": "navigate_1"}, {"id": "hyper_2"}, {"id": "other"}]
    questions = list(stream(rows, {"audio": "audio", "id": "id"}, kinds=kinds))
    assert [question.fields.get("labels") for question in questions] == [["yes", "no"], ["(a)", "(b)"], None]
    assert [question.fields.get("kind") for question in questions] == ["navigate", "hyper", None]


def test_the_script_of_a_text_tells_its_language(stream):
    texts = ["每天两次播国歌。", "コロッケはお店で買うに限る", "뭐하는건가요?", "Every dog has its day.", "", None]
    messages = stream(
        [{"said": text} for text in texts], {"audio": "audio", "prompt_text": "said"}, optional=["prompt_text"],
        scripts={"voice": "prompt_text"}, subsets={"voice": "voice"},
    )  # fmt: skip
    assert [question.subsets.get("voice") for question in messages] == ["zh", "ja", "ko", "en", None, None]


def test_questions_can_be_read_again_and_nothing_is_decoded(stream, tmp_path):
    questions = stream([{"q": "1"}, {"q": "2"}], {"audio": "audio"})
    (tmp_path / "a.wav").write_bytes(b"no sound at all")
    assert [question.id for question in questions] == [question.id for question in questions]
    assert questions.total in (2, None)


def test_a_limit_that_is_none_is_refused():
    with refuses("limit_too_low"):
        load_benchmark("librispeech-dev-clean").questions(limit=0)


@pytest.mark.parametrize(
    "kind", ["a manifest", "a folder of files", "a hub table", "a hub table with splits", "several configurations"]
)
def test_a_larger_limit_holds_every_smaller_one_in_the_same_order(tmp_path, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"q": f"question {n}"} for n in range(40)]
    position = {"path": "rows.jsonl"}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if kind != "a manifest":
        root = tmp_path / "mirror" / "OWNER" / "NAME"
        for split, item in (("test", rows[:25]), ("train", rows[25:])):
            for shard, of in enumerate((item[:10], item[10:])):
                file = root / "data" / f"{split}-{shard:05d}-of-00002.parquet"
                file.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.Table.from_pylist(of), file)
        splits = {"splits": ["test", "train"]} if kind == "a hub table with splits" else {}
        position = (
            {"path": "mirror/OWNER/NAME"} if kind == "a folder of files" else {"repository": "OWNER/NAME", **splits}
        )
    if kind == "several configurations":
        (root / "README.md").write_text(
            "---\nconfigs:\n"
            + "".join(f"- config_name: {one}\n  data_files: data/{one}-*\n" for one in ("test", "train"))
            + "---\n"
        )
        position["configs"] = "train,test"
    data = Data.model_validate({**position, "columns": {"question": "q"}})

    def parameters(limit, seed=3):
        about = {"constants": {}, "demanded": frozenset(), "subsets": {}, "mirror": tmp_path / "mirror"}
        return [q.id for q in QuestionStream("mine", data, limit=limit, seed=seed, folder=tmp_path, **about)]

    every, larger = parameters(None), parameters(40)
    assert len(every) == len(set(every)) == 40 and larger == every
    for limit in (31, 18, 7, 2):
        smaller = parameters(limit)
        assert len(smaller) == limit and [id for id in larger if id in smaller] == smaller
        larger = smaller
    assert parameters(7) != parameters(7, seed=4)


def test_a_column_inside_a_column(stream):
    rows = [
        {"answer": {"text": "four", "audio": None}, "other": {"deep": {"task": "sum"}}},
        {"answer": {}, "other": None},
    ]
    columns = {"audio": "audio", "reference": "answer.text", "task": "other.deep.task"}
    first, second = stream(rows, columns, optional=["task"])
    assert first.references == ("four",) and first.fields["task"] == "sum"
    assert second.references == () and "task" not in second.fields
    # A column whose name has a dot comes first.
    (question,) = stream(
        [{"answer.text": "whole", "answer": {"text": "part"}}], {"audio": "audio", "reference": "answer.text"}
    )
    assert question.references == ("whole",)
    with refuses("benchmark_column_missing", field="reference", column="reply.text"):
        stream([{"answer": {"text": "four"}}], {"audio": "audio", "reference": "reply.text"})


def test_only_the_rows_that_have_a_text_are_sent(stream):
    rows = [{"q": f"{n}?", "kind": "cat" if n % 3 else "dog", "of": n % 2} for n in range(30)]
    columns = {"audio": "audio", "question": "q", "kind": "kind", "of": "of"}
    cats = [q.fields["question"] for q in stream(rows, columns, where={"kind": "cat"})]
    assert cats == [f"{n}?" for n in range(30) if n % 3]
    assert len(list(stream(rows, columns, where={"kind": ["cat", "dog"]}))) == 30
    # Numbers are compared as they are written, and several columns must all fit.
    assert {q.fields["of"] for q in stream(rows, columns, where={"kind": "cat", "of": "1"})} == {1}
    assert [q.fields["question"] for q in stream(rows, columns, where={"kind": "cat"}, limit=3)] == cats[:3]
    assert stream(rows, columns, where={"kind": "cat"}).total is None


def test_data_of_which_no_row_belongs_to_the_benchmark_are_an_error(stream, tmp_path):
    columns = {"audio": "audio", "kind": "kind"}
    with refuses("no_row_of_benchmark", name="mine") as error:
        list(stream([{"kind": "dog"}], columns, where={"kind": ["cat", "cow"]}, unless={"kind": "dog"}))
    assert error.value.hint == "it takes rows with kind: cat, cow; not kind: dog"
    with refuses("benchmark_data_empty", data="rows", benchmark="mine"):
        (tmp_path / "rows.jsonl").write_text("")
        QuestionStream(
            "mine", Data.model_validate({"path": "rows.jsonl", "columns": columns}), constants={}, demanded=frozenset(),
            subsets={}, folder=tmp_path
        )  # fmt: skip
