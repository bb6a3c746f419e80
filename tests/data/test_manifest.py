"""Manifests of four kinds say the same thing, and no bad row goes missing."""

from __future__ import annotations

import csv
import io
import json
import time
from datetime import date
from decimal import Decimal

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_time import is_proportional
from refusals import refuses

from codec_bench.data import open_source, problem_of
from codec_bench.data.manifest import _TsvLines

ROWS = [
    {"id": "one", "audio": "wavs/one.wav", "text": 'He said "go", and went.', "speaker": "ann", "language": "en"},
    {"id": "two words", "audio": "wavs/zwei wörter.flac", "text": "広州市", "speaker": "bob", "language": "zh"},
    {"id": "3", "audio": "/data/three.ogg", "text": '"Whole sentence in quotes."', "speaker": "ann", "language": "en"},
]


def write(path, rows):
    """Writes rows as the kind that the suffix says, with the libraries that people use for it."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet"])
def test_four_kinds_agree(tmp_path, kind):
    source = open_source(write(tmp_path / f"set.{kind}", ROWS))
    assert [s.id for s in source] == ["one", "two words", "3"]
    assert [s.audio for s in source] == [
        str(tmp_path / "wavs" / "one.wav"), str(tmp_path / "wavs" / "zwei wörter.flac"), "/data/three.ogg",
    ]  # fmt: skip
    # A sentence that is quoted as a whole is the one thing TSV cannot tell from a quoted cell, if it was not escaped.
    assert [s.text for s in source] == [row["text"] for row in ROWS]
    assert [(s.speaker, s.language) for s in source] == [("ann", "en"), ("bob", "zh"), ("ann", "en")]
    assert not source.problems and all(not s.extra for s in source)


def test_tsv_without_escaping_keeps_quotes_inside_a_cell(tmp_path):
    path = tmp_path / "plain.tsv"
    path.write_text('path\tsentence\na.mp3\t"Hello," he said\nb.mp3\tfive " inches\n', "utf-8")
    assert [s.text for s in open_source(path)] == ['"Hello," he said', 'five " inches']


BREAKS = [
    {"id": "1", "audio": "a.wav", "text": "two\nlines", "note": 'and "three"\n\nmore'},
    {"id": "2", "audio": "b.wav", "text": "a\ttab", "note": '"in quotes"'},
    {"id": "3", "audio": "c.wav", "text": "one\u2028two", "note": "x"},
]


@pytest.mark.parametrize("separator", [",", "\t"])
def test_quoted_line_breaks_are_read_as_by_csv_and_pandas(tmp_path, separator):
    path = tmp_path / ("set.csv" if separator == "," else "set.tsv")
    pandas.DataFrame(BREAKS).to_csv(path, sep=separator, index=False)
    for known in (pandas.read_csv(path, sep=separator, dtype=str), csv.DictReader(path.open(), delimiter=separator)):
        assert (known.to_dict("records") if isinstance(known, pandas.DataFrame) else list(known)) == BREAKS
    source = open_source(path)
    assert [(s.id, s.text, s.extra["note"]) for s in source] == [(r["id"], r["text"], r["note"]) for r in BREAKS]
    assert not source.problems
    with path.open("a") as file:
        file.write(f"4{separator}d.wav\n")
    assert list(open_source(path).problems.values()) == [f"line 8 of {path.name} has 2 cells where the header has 4"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['a.mp3\t"He said', 'b.mp3\tgo"'], ['"He said', 'go"']),
        (['a.mp3\t"Never closed', "b.mp3\tx"], ['"Never closed', "x"]),
        (['a.mp3\t"It is 5" wide', 'b.mp3\tx"'], ['"It is 5" wide', 'x"']),
        (['a.mp3\t"one', 'two"', 'b.mp3\t"x"'], ["one\ntwo", "x"]),
    ],
)
def test_stray_quotes_of_tsv_join_no_rows_that_are_complete(tmp_path, lines, expected):
    """Common Voice does not escape its sentences, and pandas would join two of them."""
    path = tmp_path / "plain.tsv"
    path.write_text("\n".join(["path\tsentence", *lines, ""]), "utf-8")
    assert [s.text for s in open_source(path)] == expected


def test_quotes_of_tsv_that_never_close_take_time_in_proportion_to_their_number():
    for line in ('x"\t"y', '"a', 'a\t"""b', '"\t""'):

        def read(length, line=line):
            lines = _TsvLines(io.StringIO("a\tb\n" + f"{line}\n" * (length // len(line))))
            assert sum(1 for _ in lines) and lines.line_num == length // len(line) + 1

        assert is_proportional(read), line


@pytest.mark.parametrize("audio", ["audio", "path", "wav", "audio_path", "audio_filepath", "Audio", " WAV "])
@pytest.mark.parametrize("text", ["text", "transcript", "transcription", "sentence"])
def test_aliases_of_columns(tmp_path, audio, text):
    path = write(tmp_path / "set.csv", [{audio: "x.wav", text: "hi", "spk": "s", "lang": "de", "generated": "g/x.wav"}])
    (sample,) = open_source(path)
    assert (sample.id, sample.audio, sample.text) == ("x", str(tmp_path / "x.wav"), "hi")
    assert (sample.speaker, sample.language, sample.estimate) == ("s", "de", str(tmp_path / "g" / "x.wav"))
    assert not sample.extra


def test_a_column_of_its_own_name_counts_before_an_alias(tmp_path):
    (sample,) = open_source(write(tmp_path / "set.jsonl", [{"path": "p.wav", "audio": "a.wav", "id": "i"}]))
    assert sample.audio == str(tmp_path / "a.wav")
    assert sample.extra == {"path": "p.wav"}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet"])
def test_further_columns_are_stored(tmp_path, kind):
    (sample,) = open_source(write(tmp_path / f"s.{kind}", [{"audio": "a.wav", "problem": "noisy", "snr": "5"}]))
    assert problem_of(sample) is None, "a column of the user's that is called 'problem' is not a problem"
    assert sample.extra == {"problem_": "noisy", "snr": "5"}


def test_missing_values_are_none_and_an_empty_text_stays_empty(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text('{"audio": "a.wav", "text": null, "speaker": NaN}\n{"audio": "b.wav", "text": "", "speaker": ""}\n')
    first, second = open_source(path)
    assert (first.text, first.speaker) == (None, None)
    assert (second.text, second.speaker) == ("", None)


def test_numbers_are_used_as_names(tmp_path):
    path = write(tmp_path / "set.parquet", [{"id": 17, "audio": "a.wav", "speaker": 3}])
    (sample,) = open_source(path)
    assert (sample.id, sample.speaker) == ("17", "3")


def test_bad_lines_of_jsonl_stay_as_problems(tmp_path):
    path = tmp_path / "manifest.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"id": "good", "audio": "a.wav"}\n'
        b'{"id": "cut", "audio": \n'
        b"\n"
        b'["a.wav"]\n'
        b'{"id": "latin", "audio": "\xe9.wav"}\n'
        b'{"id": "half", "audio": "a.wav", "text": "\\ud800"}\n'
        b'{"id": "mute", "text": "no audio here"}\n'
        b'{"id": "list", "audio": ["a.wav"]}\n'
        b'{"id": {}, "audio": "a.wav"}\n' + b'{"a":' * 100_000 + b'\n{"id": "last", "audio": "z.wav"}'
    )
    source = open_source(tmp_path)
    assert [s.id for s in source if problem_of(s) is None] == ["good", "last"]
    assert all(s.audio is None and s.estimate is None for s in source if problem_of(s))
    expected = {
        "manifest.jsonl:2": "line 2 of manifest.jsonl is not JSON: Expecting value (column 23)",
        "manifest.jsonl:4": "line 4 of manifest.jsonl is a JSON list; expected an object with the columns as keys",
        "manifest.jsonl:5": "line 5 of manifest.jsonl is not UTF-8",
        "half": "line 6 of manifest.jsonl has a text that is not UTF-8 text",
        "mute": "line 7 of manifest.jsonl has no audio (its columns are id, text)",
        "list": "line 8 of manifest.jsonl has a list as its audio; expected text",
        "manifest.jsonl:9": "line 9 of manifest.jsonl has a dict as its id; expected text",
    }
    assert {id: source.problems[id] for id in expected} == expected
    assert source.problems["manifest.jsonl:10"].startswith("line 10 of manifest.jsonl is not JSON: ")
    assert len(source) == 10


@pytest.mark.parametrize(
    "row", ['{"audio": "b.wav", "text": "no", "text": "yes"}', '{"audio": "b.wav", "text": "no", "Text ": "yes"}']
)
def test_a_key_that_stands_twice_is_a_problem_of_its_line(tmp_path, row):
    """Of the two values nobody knows which one counts. The case of names does not matter, as in a table's header."""
    (tmp_path / "set.jsonl").write_text(f'{{"audio": "a.wav", "text": "fine"}}\n{row}\n')
    good, bad = open_source(tmp_path / "set.jsonl")
    assert good.text == "fine" and problem_of(good) is None
    assert "line 2" in problem_of(bad) and "'text' twice" in problem_of(bad) and bad.audio is None
    (tmp_path / "set.csv").write_text("audio,text,Text \na.wav,no,yes\n")
    with refuses("two_columns_alike"):
        open_source(tmp_path / "set.csv")


def test_bad_lines_of_csv_stay_as_problems(tmp_path):
    path = tmp_path / "set.csv"
    path.write_bytes(
        b"audio,text\n"
        b"a.wav,fine\n"
        b"b.wav,one, two\n"
        b'c.wav,"stray" quote\n'
        b"d.wav,caf\xe9\n"
        b",lost\n"
        b"e.wav,fine too\n"
        b'f.wav,"never closed\n'
        b"g.wav,swallowed\n"
    )
    source = open_source(path)
    assert [s.id for s in source if problem_of(s) is None] == ["a", "e"]
    reasons = list(source.problems.values())
    assert reasons[0] == "line 3 of set.csv has 3 cells where the header has 2"
    assert reasons[1].startswith("line 4 of set.csv is not CSV: ")
    assert reasons[2] == "line 5 of set.csv has a text that is not UTF-8 text"
    assert reasons[3] == "line 6 of set.csv has no audio (its columns are audio, text)"
    assert reasons[4].startswith("line 8 of set.csv is not CSV (up to line 9): ")


def test_lines_of_quoted_cells_are_counted_right(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text('audio,text\na.wav,"two\nlines"\nb.wav,"x",y\n')
    assert list(open_source(path).problems.values()) == ["line 4 of set.csv has 3 cells where the header has 2"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_no_audio_column_names_the_columns_there_are(tmp_path, kind):
    path = write(tmp_path / f"set.{kind}", [{"name": "a", "file": "a.wav"}])
    with refuses("manifest_lacks_column", needed="audio", known="name, file", hint="audio, path, wav"):
        open_source(path)


def test_no_audio_key_in_any_line_names_the_columns_there_are(tmp_path):
    path = write(tmp_path / "set.jsonl", [{"name": "a", "file": "a.wav"}, {"name": "b", "file": "b.wav"}])
    with refuses("no_usable_sample", count=2):
        open_source(path)


def test_a_column_twice_is_refused(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("audio,text,Text\na.wav,x,y\n")
    with refuses("two_columns_alike", column="text"):
        open_source(path)


def test_sound_inside_parquet_is_named_by_its_row(tmp_path):
    cells = [{"bytes": b"RIFF", "path": "deep/one.flac"}, None, {"bytes": b"RIFF", "path": None}]
    path = tmp_path / "set.parquet"
    pq.write_table(pa.table({"audio": cells, "text": ["a", "b", "c"]}), path, row_group_size=2)
    source = open_source(path)
    assert [(s.id, s.audio, s.text) for s in source] == [
        ("one", f"{path}::audio::0", "a"), ("set.parquet:2", None, "b"), ("set.parquet:3", f"{path}::audio::2", "c"),
    ]  # fmt: skip
    assert source.problems == {"set.parquet:2": "row 2 of set.parquet has no audio (its columns are audio, text)"}


def test_sound_inside_parquet_as_generated_audio(tmp_path):
    path = tmp_path / "set.parquet"
    pq.write_table(pa.table({"id": ["x"], "audio": ["a.wav"], "generated": [b"RIFF"]}), path)
    (sample,) = open_source(path)
    assert (sample.audio, sample.estimate) == (str(tmp_path / "a.wav"), f"{path}::generated::0")


def test_a_column_of_dates_or_decimals_is_text(tmp_path):
    columns = {"audio": ["a.wav"], "day": [date(2020, 1, 2)], "price": [Decimal("1.50")]}
    pq.write_table(pa.table(columns), tmp_path / "set.parquet")
    (sample,) = open_source(tmp_path / "set.parquet")
    assert sample.extra == {"day": "2020-01-02", "price": "1.50"}


@pytest.mark.parametrize("held", [[1.5], {"x": 1}, [["a.wav"]]])
def test_a_column_that_is_neither_text_nor_sound_is_refused_with_its_type(tmp_path, held):
    pq.write_table(pa.table({"audio": [held]}), tmp_path / "hub.parquet")
    with refuses("column_type", name="audio", expected=["text", "sound"]):
        open_source(tmp_path / "hub.parquet")


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_text("audio\na.wav\n")
    with refuses("table_not_parquet"):
        open_source(tmp_path / "x.parquet")


def test_texts_do_for_scoring_generated_speech(tmp_path):
    path = write(tmp_path / "set.csv", [{"id": "a", "text": "hello"}, {"id": "b", "text": ""}])
    source = open_source(path, require_audio=False)
    assert next((s.id, s.audio, s.text) for s in source) == ("a", None, "hello")
    assert list(source.problems) == ["b"]


cell = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(cell, min_size=1, max_size=8),
    kind=st.sampled_from(["jsonl", "csv", "tsv", "parquet"]),
)
def test_what_was_written_is_read(tmp_path_factory, texts, kind):
    rows = [{"id": f"r{i}", "audio": f"{i}.wav", "text": text} for i, text in enumerate(texts)]
    path = write(tmp_path_factory.mktemp("written") / f"set.{kind}", rows)
    assert [(s.id, s.text) for s in open_source(path)] == [(row["id"], row["text"]) for row in rows]


@pytest.mark.parametrize("kind, between", [("csv", ","), ("tsv", "\t")])
def test_a_table_of_too_many_columns_is_refused_at_once(tmp_path, kind, between):
    names = ["audio", *(f"c{n}" for n in range(300_000))]
    (tmp_path / f"wide.{kind}").write_text(between.join(names) + "\n" + between.join(names) + "\n")
    start = time.process_time()
    with refuses("too_many_columns", count=300001, most=10000):
        open_source(str(tmp_path / f"wide.{kind}"))
    assert time.process_time() - start < 5


def test_a_name_of_a_sound_that_is_no_text_is_no_name(tmp_path):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.binary())])
    cells = pa.array([{"bytes": b"RIFF", "path": b"a.wav"}, {"bytes": b"RIFF", "path": b"b.wav"}], kind)
    pq.write_table(pa.table({"audio": cells}), tmp_path / "set.parquet")
    assert [sample.id for sample in open_source(tmp_path / "set.parquet")] == ["set.parquet:1", "set.parquet:2"]
