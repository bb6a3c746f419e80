"""Files of ratings, among them such as people make by hand: every line is a rating or is counted as a problem."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.apps.agreement import ratings
from codec_bench.apps.agreement.ratings import read_ratings


@pytest.fixture
def read(tmp_path):
    def read(text, encoding="utf-8", **more):
        path = tmp_path / "human.csv"
        path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        return read_ratings(path, **more)

    return read


def problems(actual):
    return {(p.what, p.rater): p.count for p in actual.problems.all()}


def test_ratings_are_read_as_they_stand(read):
    result = read("id,rater,score,subset,notes\nq1,ann,4,news,fine\nq1,bob,3.5,news,\n\nq2,ann,0,,\n")
    assert result.kind == "rating" and result.raters == ("ann", "bob") and problems(result) == {}
    assert [(r.id, r.rater, r.value, r.subset) for r in result.rows] == [
        ("q1", "ann", 4.0, "news"), ("q1", "bob", 3.5, "news"), ("q2", "ann", 0.0, ""),
    ]  # fmt: skip


def test_no_character_of_a_cell_splits_its_row(read):
    result = read('id,rater,score,notes\nq1,ann,4,one\u2028two\x0cthree\nq2,ann,3,"a\nb"\nq3,ann,9\n', scale=(0, 5))
    assert [(r.id, r.value) for r in result.rows] == [("q1", 4.0), ("q2", 3.0)]
    (problem,) = result.problems.all()
    assert (problem.what, problem.examples) == (ratings.OUT_OF_RANGE, ("line 5: 9 is not from 0 to 5",))


def test_everything_that_is_wrong_is_counted_with_its_line(read):
    result = read(
        "id,rater,score\nq1,ann,4\nq1,ann,5\nq2,ann,3\nq2,ann,3.0\nq3,ann,9\nq4,ann,good\nq5,ann,\nq6,,3\nq7,ann,1,2\n"
        "q8,Ann,2\nq9\n",
        scale=(0, 5),
    )
    assert [(r.id, r.rater, r.value) for r in result.rows] == [("q2", "ann", 3.0), ("q8", "ann", 2.0)]
    assert problems(result) == {
        (ratings.TWICE, "ann"): 2, (ratings.ALIKE, "ann"): 1, (ratings.OUT_OF_RANGE, "ann"): 1,
        (ratings.NO_NUMBER, "ann"): 1,
        (ratings.EMPTY, "ann"): 1, (ratings.EMPTY, ""): 2, (ratings.WIDTH, ""): 1,
    }  # fmt: skip
    assert sum(problems(result).values()) + len(result.rows) == 11, "every line is one or the other"
    options = {p.what: p.examples for p in result.problems.all()}
    assert options[ratings.OUT_OF_RANGE] == ("line 6: 9 is not from 0 to 5",) and options[ratings.TWICE] == (
        "q1: lines 2, 3",
    )


@pytest.mark.parametrize(
    ("message", "value"),
    [("A", 1), ("b", -1), ("tie", 0), ("Equal", 0), ("1", 1), ("0.5", 0), ("0", -1), ("opus", 1), ("Encodec", -1)],
)
def test_preferences_in_every_form(read, message, value):
    result = read(f"id,rater,system,other,score\nq1,ann,opus,encodec,{message}\n")
    assert result.kind == "preference" and result.rows[0].value == value


@pytest.mark.parametrize("row", ["opus,encodec,-1", "opus,encodec,dac", "opus,opus,A", "opus,,A"])
def test_what_is_no_preference_is_counted(read, row):
    result = read(f"id,rater,system,other,score\nq1,ann,opus,encodec,A\nq2,ann,{row}\n")
    assert len(result.rows) == 1 and problems(result) == {(ratings.NO_PREFERENCE, "ann"): 1}


def test_a_pair_that_was_rated_in_both_orders_is_one_rating(read):
    head = "id,rater,system,other,score\nq1,ann,opus,dac,A\n"
    assert problems(read(f"{head}q1,ann,dac,opus,B\n")) == {(ratings.ALIKE, "ann"): 1}
    assert problems(read(f"{head}q1,ann,dac,opus,A\n")) == {(ratings.TWICE, "ann"): 2}


def test_options_are_texts(read):
    result = read("id,rater,score\nq1,ann,B\nq2,ann,a dog barks\n")
    assert result.kind == "option" and [row.chosen for row in result.rows] == ["B", "a dog barks"]
    assert read("id,rater,score,choice\nq1,ann,1,a dog\n", kind="option").rows[0].chosen == "a dog"


def test_the_table_of_listen_import_is_read(read):
    result = read(
        "id,rater,system,score,kind,trial,stimulus,other,choice,given,status\n"
        "q1,ann,opus,0.5,preference,t1,,dac,tie,tie,used\n"
        "q2,ann,opus,,preference,t2,,dac,,,missing\nq3,ann,opus,,preference,t3,,dac,opus,s1,screened\n"
    )
    assert result.kind == "preference" and [row.value for row in result.rows] == [0.0]
    assert problems(result) == {(ratings.NOT_USED, ""): 2}


def test_files_of_spreadsheets(read):
    assert read("\ufeffID; Rater ;SCORE\nq1;ann;3,5\n").rows[0].value == 3.5
    assert read("id\trater\tscore\nq1\tann\t3\n").rows[0].value == 3.0
    (safe,) = read("id,rater,score\n'-q1,'=ann(),3\n").rows
    assert (safe.id, safe.rater) == ("-q1", "=ann()"), "as listen import writes them"
    assert read("id,rater,score\r\nq1,ann,3\r\n").rows[0].value == 3.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", {"code": "ratings_lack_columns", "columns": "id, rater, score"}),
        ("name,rater,score\nq,a,1\n", {"code": "ratings_lack_columns", "columns": "id"}),
        ("id,rater,score,score\nq,a,1,2\n", {"code": "ratings_repeat_columns", "columns": "score"}),
        ("id,rater,score\n", {"code": "file_without_ratings"}),
        ('id,rater,score\n"q1,ann,3\n', {"code": "ratings_line", "line": 2}),
        (
            "id,rater,score,kind\nq,a,1,rating\nq,b,1,preference\n",
            {"code": "ratings_of_kinds", "kinds": "preference, rating"},
        ),
        ("id,rater,score,kind\nq,a,1,review\n", {"code": "ratings_of_kinds", "kinds": "review"}),
        (b"id,rater,score\nq\xe9,a,1\n", {"code": "ratings_not_utf8"}),
    ],
)
def test_what_is_no_file_of_ratings_is_one_sentence(read, text, message):
    with refuses(**message):
        read(text)


def test_a_score_with_a_nul_is_no_number(read):
    result = read(b"id,rater,score\nq1,ann,1\x00\nq2,ann,2\n")
    assert [row.id for row in result.rows] == ["q2"] and problems(result) == {(ratings.NO_NUMBER, "ann"): 1}


def test_a_file_that_is_not_there(tmp_path):
    with refuses("file_not_readable"):
        read_ratings(tmp_path / "no.csv")
