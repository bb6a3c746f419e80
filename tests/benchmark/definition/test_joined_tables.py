"""Rows with texts of another table: which they get, and which rows are excluded."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refuses

from codec_bench.benchmark.definition.questions import QuestionStream
from codec_bench.benchmark.definition.schema import Data


def table(folder, columns):
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "test-00000-of-00001.parquet")


@pytest.fixture
def mirror(tmp_path):
    root = tmp_path / "me" / "twin"
    table(root / "de", {"id": [1, 1, 2, 3, 4], "text": ["eins", "eins", "zwei", "drei", "vier"]})
    # A number may be a float, a key may stand twice, and a text may be missing.
    table(root / "en", {"id": [2.0, 1.0, 2.0, 4.0], "raw": ["two", "one", "second", None]})
    cards = [
        f"- config_name: {name}\n  data_files:\n  - {{split: test, path: {name}/test-*}}\n" for name in ("de", "en")
    ]
    (root / "README.md").write_text("---\nconfigs:\n" + "".join(cards) + "---\n")
    table(tmp_path / "me" / "other" / "data", {"number": ["1", "9"], "words": ["uno", "nueve"]})
    (tmp_path / "me" / "other" / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - {split: test, path: data/test-*}\n---\n"
    )
    return tmp_path


def stream(mirror, join, **options):
    data = Data(
        repository="me/twin", config="de", split="test", columns={"text": "text", "reference": "translation"}, join=join
    )
    return QuestionStream("st", data, constants={}, demanded=frozenset({"text"}), subsets={}, mirror=mirror, **options)


def pairs(questions):
    return [(question.fields["text"], *question.references) for question in questions]


EN = {"config": "en", "key": "id", "columns": {"translation": "raw"}}


def test_every_row_of_a_key_gets_the_first_text_of_that_key(mirror):
    questions = stream(mirror, EN)
    assert questions.total == 5
    assert pairs(questions) == [("eins", "one"), ("eins", "one"), ("zwei", "two"), ("drei",), ("vier",)]
    assert all(question.problem is None for question in questions)


def test_rows_without_a_partner_are_omitted_before_a_limit_counts(mirror):
    out = {**EN, "unmatched": "leave-out"}
    assert stream(mirror, out).total is None
    assert pairs(stream(mirror, out)) == [("eins", "one"), ("eins", "one"), ("zwei", "two"), ("vier",)]
    assert len(list(stream(mirror, out, limit=4))) == 4
    drawn = pairs(stream(mirror, out, limit=3, seed=1))
    assert len(drawn) == 3 and set(drawn) <= set(pairs(stream(mirror, out, limit=4, seed=1)))
    # Questions that are read without their sounds keep their keys.
    assert pairs(stream(mirror, out, texts=True)) == pairs(stream(mirror, out))


def test_the_other_table_may_be_another_data_set(mirror):
    other = {"repository": "me/other", "key": "id", "other_key": "number", "columns": {"translation": "words"}}
    questions = stream(mirror, other)
    assert pairs(questions)[:3] == [("eins", "uno"), ("eins", "uno"), ("zwei",)]
    assert "me/other" in str(questions.revision)


def test_a_column_that_is_not_there_is_named(mirror):
    with refuses("no_such_columns", names=["written"]):
        stream(mirror, {**EN, "columns": {"translation": "written"}})
    with refuses("benchmark_column_missing", column="sentence"):
        stream(mirror, {**EN, "key": "sentence", "other_key": "id"})
