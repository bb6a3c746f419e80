"""Rows of tables: every kind of file gives the same rows, exactly the chosen ones. No sound is decoded."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tracemalloc
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import Containing, refuses

from codec_bench.audio.clip import Clip
from codec_bench.data import open_source, problem_of
from codec_bench.data.table import open_table, row_problem
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio

from .conftest import RATE, encoded, rows, shards, tone, write_parquet


def plain(row):
    """A row with its sounds as the number of their samples."""
    return {name: value.read().num_samples if isinstance(value, Clip) else value for name, value in row.items()}


def test_all_splits_of_the_default_configuration(layout):
    table = open_table("hf:OWNER/NAME", mirror=layout.parent.parent)
    assert (table.name, table.total, table.revision) == ("OWNER/NAME", 31, None)
    assert table.columns == ("id", "audio", "text", "n", "split")
    by_name = dict(table)
    assert list(by_name) == [*(f"test/{at}" for at in range(25)), *(f"train/{at}" for at in range(6))]
    for key, row in by_name.items():
        split, at = key.split("/")
        number = int(at) + (30 if split == "train" else 0)
        assert {k: v for k, v in row.items() if k != "audio"} == {
            "id": f"u{number:03d}", "text": f"sentence {number}", "n": number, "split": split,
        }  # fmt: skip
        audio = row["audio"].read()
        assert audio.sample_rate_hz == RATE
        if number % 3 != 2:  # MP3 pads its ends
            assert abs(audio.samples[0] - tone(number)).max() <= 1 / 32768
    assert dict(table).keys() == by_name.keys(), "a table can be read twice"


@pytest.mark.parametrize(
    ("where", "options", "keys"),
    [
        ("hf:OWNER/NAME:main:train", {}, [f"train/{at}" for at in range(6)]),
        ("hf:OWNER/NAME:train", {}, [f"train/{at}" for at in range(6)]),
        ("hf:OWNER/NAME:other", {}, [f"test/{at}" for at in range(7)]),
        ("hf:OWNER/NAME", {"config": "other", "split": "test"}, [f"test/{at}" for at in range(7)]),
        ("hf:OWNER/NAME", {"split": "test", "limit": 12}, [f"test/{at}" for at in range(12)]),
    ],
)
def test_configurations_and_splits(layout, monkeypatch, where, options, keys):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(layout.parent.parent))
    assert [key for key, _ in open_table(where, **options)] == keys
    folder = where.replace("hf:OWNER/NAME", str(layout))
    if ":" not in folder:
        assert [key for key, _ in open_table(folder, **options)] == keys


@pytest.mark.parametrize(
    ("where", "options", "says"),
    [
        ("hf:OWNER/NAME", {"config": "nope"}, "no configuration 'nope' (hint: there are: main, other)"),
        ("hf:OWNER/NAME", {"split": "dev"}, "no split 'dev' (hint: there are: test, train)"),
        ("hf:OWNER/NAME:nope", {}, "no split 'nope' (hint: there are: test, train)"),
        ("hf:OWNER/NAME", {"columns": ["text", "answer"]},
            "no column 'answer' (hint: its columns are id, audio, text, n, split)"),
        ("hf:OWNER/OTHER", {}, "the mirror has no data set 'OWNER/OTHER'"),
        ("hf:OWNER/NAME@v1", {"revision": "v2"}, "names the revision 'v1', and 'v2' was requested as well"),
        ("hf:../NAME", {}, "is not the name of a data set"),
        ("hf:OWNER/NAME", {"limit": 0}, "the limit is 0; expected at least 1"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_reported_with_what_there_is(layout, where, options, says):
    with pytest.raises(UserError) as caught:
        open_table(where, mirror=layout.parent.parent, **options)
    assert says in str(caught.value)


def test_several_configurations_without_a_default_are_requested(layout):
    card = layout / "README.md"
    card.write_text(card.read_text().replace("  default: true\n", ""))
    with refuses("several_configurations"):
        open_table(layout)


def test_only_the_columns_requested_in_their_order(layout):
    table = open_table(layout, split="test", columns=["n", "id"], limit=2)
    assert table.columns == ("n", "id")
    assert [row for _, row in table] == [{"n": 0, "id": "u000"}, {"n": 1, "id": "u001"}]
    (row,) = [row for _, row in open_table(layout, split="train", columns=["audio"], limit=1)]
    assert list(row) == ["audio"] and row["audio"].read().num_samples > 0


def test_nothing_of_the_sound_is_read_before_it_is_requested(layout, monkeypatch):
    requests = []
    iter_batches = pq.ParquetFile.iter_batches

    def noting(self, *args, columns, **options):
        requests.extend(columns)
        return iter_batches(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noting)
    results = [row for _, row in open_table(layout, split="test")]
    assert set(requests) == {"id", "audio.path", "text", "n"}
    assert all(isinstance(row["audio"], Clip) and isinstance(row["audio"].source, str) for row in results)


@pytest.mark.parametrize("seed", [0, 7])
def test_a_random_part_does_not_depend_on_the_files_nor_on_their_order(tmp_path, seed):
    pytest.importorskip("datasets")
    held = rows(0, 40, "FLAC")
    parts = []
    for number, sizes in enumerate(([40], [3, 30, 7], [10, 10, 10, 10])):
        folder = tmp_path / f"layout{number}"
        shards(folder, "test", held, sizes)
        parts.append([(key, plain(row)) for key, row in open_table(folder, limit=9, seed=seed)])
    assert parts[0] == parts[1] == parts[2]
    assert len(parts[0]) == 9 and all(row["audio"] == 800 + int(key.split("/")[1]) for key, row in parts[0])
    complete = [key for key, _ in open_table(tmp_path / "layout1", limit=20, seed=seed)]
    assert {key for key, _ in parts[0]} < set(complete), "a larger part holds the smaller"
    assert [int(key.split("/")[1]) for key in complete] == sorted(int(key.split("/")[1]) for key in complete)
    other = [key for key, _ in open_table(tmp_path / "layout1", limit=9, seed=seed + 1)]
    assert other != [key for key, _ in parts[0]]


def test_a_random_part_is_uniform(tmp_path):
    write_parquet(tmp_path / "t.parquet", [{"n": at} for at in range(50)])
    counts = [0] * 50
    for seed in range(300):
        for _, row in open_table(tmp_path / "t.parquet", limit=10, seed=seed):
            counts[row["n"]] += 1
    # 300 draws of a fifth: 60 each with a standard deviation of 6.9; five of them on either side.
    assert min(counts) > 25 and max(counts) < 95


def test_a_text_that_the_file_does_not_hold_is_one_sentence(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": ["a", "b", "c"]}), path, compression="none")
    # Three numbers of two bits each, 0, 1 and 2; the last becomes 3, and the file has texts 0 to 2.
    numbers = b"\x02\x03\x24"
    assert path.read_bytes().count(numbers) == 1
    path.write_bytes(path.read_bytes().replace(numbers, b"\x02\x03\x34"))
    with refuses("hub_table_not_parquet", cause="a row names text 3 of a list of 3 texts"):
        list(open_table(path))


def test_a_limit_never_touches_later_files(layout):
    second, third = sorted((layout / "data").glob("test-*"))[1:]
    second.write_bytes(b"broken")
    third.unlink()
    assert [key for key, _ in open_table(layout, split="test", limit=10)] == [f"test/{at}" for at in range(10)]
    table = open_table(layout, split="test", limit=10)
    assert table.total == 10
    with refuses("hub_file_not_parquet", path="test-00001-of-00003.parquet"):
        list(open_table(layout, split="test", limit=11, seed=1))
    read = iter(open_table(layout, split="test", limit=11))
    for _ in range(10):
        next(read)
    with refuses("hub_table_not_parquet"):
        next(read)


def test_a_row_without_sound_is_a_row(tmp_path):
    cells = [{"bytes": encoded(0), "path": "a"}, None, {"bytes": None, "path": None}, {"bytes": b"x", "path": "a"}]
    path = write_parquet(tmp_path / "test.parquet", [{"audio": cell, "n": at} for at, cell in enumerate(cells)])
    by_name = dict(open_table(path))
    assert list(by_name) == ["test/0", "test/1", "test/2", "test/3"]
    assert by_name["test/1"] == {"audio": None, "n": 1}
    for key, says in (
        ("test/2", {"code": "cell_null", "locator": Containing("audio")}),
        ("test/3", {"code": "not_a_sound"}),
    ):
        with refuses(**says):
            by_name[key]["audio"].read()


def test_lists_of_sounds_arrays_and_other_media(tmp_path):
    features = {
        "audio": {"_type": "Audio"},
        "picture": {"_type": "Image"},
        "several": {"feature": {"_type": "Audio"}, "_type": "List"},
    }
    held = {
        "several": [[{"bytes": encoded(at), "path": "a"}] * at for at in range(3)],
        "picture": [{"bytes": b"png", "path": "p.png"}] * 3,
        "audio": pa.array([[0.5] * (at + 1) for at in range(3)], pa.list_(pa.float32())),
        "sampling_rate": [8000, 8001, 8002],
        "embedding": pa.array([[0.5, 1.0]] * 3, pa.list_(pa.float32())),
    }  # fmt: skip
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(pa.table(held).replace_schema_metadata(about), tmp_path / "t.parquet")
    results = [row for _, row in open_table(tmp_path / "t.parquet")]
    assert [[clip.read().num_samples for clip in row["several"]] for row in results] == [[], [800 + 1], [800 + 2] * 2]
    assert [row["audio"].read().sample_rate_hz for row in results] == [8000, 8001, 8002]
    assert results[0]["picture"] == {"bytes": b"png", "path": "p.png"} and results[0]["embedding"] == [0.5, 1.0]


def test_dates_times_and_decimals_are_text_that_json_can_hold(tmp_path):
    held = {
        "day": [date(2020, 1, 2), None],
        "at": [datetime(2020, 1, 2, 10, 30)] * 2,
        "length": [timedelta(seconds=90)] * 2,
        "price": [Decimal("1.50")] * 2,
        "days": [[date(2020, 1, 2), None]] * 2,
        "entry": [{"by": "a", "at": time(7, 5)}] * 2,
        "repeated": pa.array([date(2020, 1, 2)] * 2).dictionary_encode(),
    }
    pq.write_table(pa.table(held), tmp_path / "t.parquet")
    first, second = [row for _, row in open_table(tmp_path / "t.parquet")]
    assert first == {
        "day": "2020-01-02", "at": "2020-01-02T10:30:00", "length": "0:01:30", "price": "1.50",
        "days": ["2020-01-02", None], "entry": {"by": "a", "at": "07:05:00"}, "repeated": "2020-01-02",
    }  # fmt: skip
    assert second["day"] is None and json.dumps([first, second])


def test_text_that_names_sound_files(tmp_path):
    (tmp_path / "wavs").mkdir()
    for at in range(2):
        (tmp_path / "wavs" / f"{at}.wav").write_bytes(encoded(at, "WAV"))
    held = [
        {"prompt": f"wavs/{at}.wav", "audio": f"wavs/{at}.wav", "file": f"{at}.wav", "text": "x.wav is a file"}
        for at in range(3)
    ]
    write_parquet(tmp_path / "t.parquet", held)
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in held))
    for name in ("t.parquet", "t.jsonl"):
        results = [row for _, row in open_table(tmp_path / name)]
        assert [results[at][column].read().num_samples for at in range(2) for column in ("audio", "prompt")] == [
            800
        ] * 2 + [801] * 2
        assert results[0]["file"] == "0.wav" and results[0]["text"] == "x.wav is a file"
        with refuses("no_file", path="2.wav"):
            results[2]["audio"].read()


def test_text_stays_text_and_what_is_declared_as_sound_is_sound(tmp_path):
    (tmp_path / "sounds").mkdir()
    (tmp_path / "sounds" / "one").write_bytes(encoded(1, "WAV"))
    features = {"said": {"_type": "Audio"}, "text": {"_type": "Value", "dtype": "string"}}
    held = pa.table({"said": [None, "", "sounds/one"], "text": ["", None, "b"], "audio": ["", "no sound", "c.wav"]})
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(held.replace_schema_metadata(about), tmp_path / "t.parquet")
    results = [row for _, row in open_table(tmp_path / "t.parquet")]
    assert [(row["text"], row["audio"]) for row in results] == [("", ""), (None, "no sound"), ("b", "c.wav")]
    assert [row["said"] for row in results[:2]] == [None, None] and results[2]["said"].read().num_samples == 801


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet"])
def test_files_of_every_kind_agree(tmp_path, kind):
    held = [{"question": f"why {at}?", "answer": f"b{at}"} for at in range(30)]
    path = tmp_path / f"test.{kind}"
    if kind == "parquet":
        write_parquet(path, held)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in held))
    else:
        mark = "," if kind == "csv" else "\t"
        path.write_text("\n".join(mark.join(cells) for cells in (held[0], *(row.values() for row in held))))
    table = open_table(path)
    assert table.columns == ("question", "answer")
    assert list(table) == [(f"test/{at}", row) for at, row in enumerate(held)]
    item = list(open_table(path, limit=7, seed=3, columns=["answer"]))
    assert len(item) == 7 and item == [(key, {"answer": f"b{key[5:]}"}) for key, _ in item]
    # The same keys hash to the same part, whatever the kind of file: this is that of a Parquet file.
    write_parquet(tmp_path / "ref" / "test.parquet", held)
    assert [key for key, _ in item] == [
        key for key, _ in open_table(tmp_path / "ref" / "test.parquet", limit=7, seed=3)
    ]


def test_a_bad_line_is_a_row_with_a_problem(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text('{"q": "a"}\n{"q": \n{"q": "c", "more": 1}\n')
    first, second, third = [row for _, row in open_table(path)]
    assert (first, third) == ({"q": "a"}, {"q": "c", "more": 1})
    assert second == {} and row_problem(second).startswith("line 2 of set.jsonl is not JSON: Expecting value")
    assert row_problem(first) is None


def test_a_folder_whose_file_breaks_in_the_middle_says_where(tmp_path):
    pytest.importorskip("datasets")
    with gzip.open(tmp_path / "test.jsonl.gz", "wt") as file:
        file.write('{"q": "a"}\n{"q": "b"}\nno json\n')
    with refuses("split_unreadable", split="test"):
        list(open_table(tmp_path, split="test"))


@pytest.mark.parametrize("kind", ["audiofolder", "jsonl", "csv"])
def test_folders_that_are_not_parquet(tmp_path, kind):
    pytest.importorskip("datasets")
    root = tmp_path / "set"
    (root / "test").mkdir(parents=True)
    for at in range(6):
        (root / "test" / f"{at}.wav").write_bytes(encoded(at, "WAV"))
    if kind == "audiofolder":
        lines = [json.dumps({"file_name": f"{at}.wav", "text": f"t{at}"}) for at in range(6)]
        (root / "test" / "metadata.jsonl").write_text("\n".join(lines))
    else:
        column, name = ("audio", "test/meta.jsonl") if kind == "jsonl" else ("wav", "test/meta.csv")
        held = [{column: f"test/{at}.wav", "text": f"t{at}"} for at in range(6)]
        lines = (
            [json.dumps(row) for row in held]
            if kind == "jsonl"
            else [",".join(c) for c in (held[0], *(r.values() for r in held))]
        )
        (root / name).write_text("\n".join(lines))
        (root / "README.md").write_text(
            f"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: {name}\n---\n"
        )
    table = open_table(root, split="test")
    by_name = dict(table)
    column = "wav" if kind == "csv" else "audio"
    assert set(table.columns) == {column, "text"}
    assert {key: (row[column].read().num_samples, row["text"]) for key, row in by_name.items()} == {
        f"test/{at}": (800 + at, f"t{at}") for at in range(6)
    }
    assert [key for key, _ in open_table(root, split="test", limit=2)] == ["test/0", "test/1"]
    item = {key: row["text"] for key, row in open_table(root, split="test", limit=3, seed=4)}
    assert item == {key: by_name[key]["text"] for key in item} and len(item) == 3


def test_sound_in_archives_is_decoded_when_requested(tmp_path):
    pytest.importorskip("datasets")
    import io
    import tarfile

    with tarfile.open(tmp_path / "test-00000.tar", "w") as archive:
        for at in range(4):
            for name, content in (
                (f"{at:03d}.flac", encoded(at) if at != 2 else b"broken"),
                (f"{at:03d}.json", b'{"text": "t%d"}' % at),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    results = [row for _, row in open_table(tmp_path, split="test")]
    assert [row["json"]["text"] for row in results] == ["t0", "t1", "t2", "t3"]
    assert [results[at]["flac"].read().num_samples for at in (0, 1, 3)] == [800, 801, 803]
    with refuses("not_a_sound|not_decoded"):
        results[2]["flac"].read()


def test_a_loading_script_is_not_run(tmp_path):
    pytest.importorskip("datasets")
    root = tmp_path / "OWNER" / "NAME"
    root.mkdir(parents=True)
    (root / "NAME.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with refuses("data_set_is_script"):
        open_table("hf:OWNER/NAME", mirror=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_mirror_tells_the_commit_it_was_downloaded_at(layout):
    note = layout / ".cache" / "huggingface" / "download" / "README.md.metadata"
    note.parent.mkdir(parents=True)
    note.write_text("a" * 40 + "\netag\n1700000000.0\n")
    mirror = layout.parent.parent
    assert open_table("hf:OWNER/NAME", mirror=mirror).revision == "a" * 40
    assert open_table("hf:OWNER/NAME", mirror=mirror, revision="a" * 40).total == 31
    with refuses(
        "other_commit",
        folder="NAME",
        commit="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        name="OWNER/NAME",
        revision="bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    ):
        open_table("hf:OWNER/NAME", mirror=mirror, revision="b" * 40)


def test_memory_does_not_grow_with_the_rows(tmp_path):
    def peak(count):
        path = tmp_path / f"{count}.parquet"
        # Built outside of the measurement. This test measures Python's memory; the bench also measures Arrow's.
        cells = {"audio": [{"bytes": b"x" * 50, "path": f"{at}.wav"} for at in range(count)], "n": list(range(count))}
        pq.write_table(pa.table(cells), path, row_group_size=1000)
        list(zip(range(10), open_table(path)))
        pool = pa.default_memory_pool()
        base = pool.bytes_allocated()
        arrow = 0
        tracemalloc.start()
        for _ in open_table(path):
            arrow = max(arrow, pool.bytes_allocated() - base)
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return python, arrow

    small, large = peak(2_000), peak(20_000)
    # Ten times the rows; what may grow is the footer (a few hundred bytes a row group, of which there are 18 more).
    assert large[0] < small[0] + 200_000 and large[1] < small[1] + 500_000


def test_a_source_of_the_hub(layout, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(layout.parent.parent))
    source = open_source("hf:OWNER/NAME:test")
    assert source.name == "OWNER/NAME" and not source.problems and source.complete
    assert [(s.id, s.text) for s in source] == [(f"u{at:03d}", f"sentence {at}") for at in range(25)]
    assert source.samples[13].extra == {"n": 13}
    assert all(Audio.read(s.audio).sample_rate_hz == RATE for s in source)
    both = open_source("hf:OWNER/NAME")
    assert [both.samples[at].id for at in (0, 25)] == ["test/u000", "train/u030"]
    assert both.samples[0].extra == {"n": 0, "split": "test"}
    item = open_source("hf:OWNER/NAME:test", limit=6, seed=2)
    assert {s.id for s in item} < {s.id for s in source} and len(item) == 6 and not item.complete
    assert item.fingerprint != source.fingerprint
    assert (
        open_source(str(layout), limit=6, seed=2).fingerprint
        == open_source("hf:OWNER/NAME", limit=6, seed=2).fingerprint
    )


def test_the_fingerprint_does_not_depend_on_where_the_tables_lie(layout, tmp_path):
    first = open_source(str(layout)).fingerprint
    moved = layout.rename(tmp_path / "elsewhere")
    assert open_source(str(moved)).fingerprint == first
    held = rows(0, 25)
    held[3]["text"] = "another"
    shards(moved, "test", held, [10, 8, 7])
    assert open_source(str(moved)).fingerprint != first


def test_ids_that_are_numbers_do_not_name_rows(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    held = [{"id": at // 2, "audio": {"bytes": encoded(at), "path": "x"}, "transcription": "a"} for at in range(4)]
    shards(tmp_path / "O" / "N", "test", held, [4])
    monkeypatch.setenv("CODEC_BENCH_DATA", str(tmp_path))
    source = open_source("hf:O/N")
    assert [s.id for s in source] == [f"test/{at}" for at in range(4)] and not source.problems
    assert [s.text for s in source] == ["a"] * 4


def test_a_row_of_the_hub_without_sound_is_a_problem(tmp_path):
    pytest.importorskip("datasets")
    held = rows(0, 3)
    held[1]["audio"] = None
    shards(tmp_path / "N", "test", held, [3])
    source = open_source(tmp_path / "N")
    assert source.problems == {"u001": "row 'test/1' of N has no audio (its columns are id, audio, text, n, split)"}
    assert problem_of(source.samples[0]) is None


def test_a_table_without_a_column_of_sound_is_refused_with_the_columns_there_are(tmp_path):
    pytest.importorskip("datasets")
    shards(tmp_path / "N", "test", [{"question": "q", "answer": "a"}], [1])
    with refuses("no_column_for", needed="audio", columns="question, answer, split"):
        open_source(tmp_path / "N")


def test_generated_sounds_in_a_table_are_matched_by_id(layout, tmp_path):
    from codec_bench.data import match_estimates

    held = [
        {"id": f"u{at:03d}", "audio": {"bytes": encoded(at), "path": None}}
        for at in random.Random(1).sample(range(25), 25)
    ]
    write_parquet(tmp_path / "generated.parquet", held)
    source = match_estimates(open_source(f"{layout}", limit=25), tmp_path / "generated.parquet")
    assert not source.problems
    assert all(Audio.read(s.estimate).num_samples == 800 + s.extra["n"] for s in source)


def test_a_folder_of_a_repository_read_alone(tmp_path):
    path = tmp_path / "OWNER" / "NAME"
    for number, item in enumerate(("ASR-PART1-Test", "ASR-PART2-Test")):
        write_parquet(path / item / "train-00000-of-00001.parquet", rows(3 * number, 3 * number + 3))
    results = [
        row["id"] for _, row in open_table("hf:OWNER/NAME", mirror=tmp_path, data_dir="ASR-PART2-Test", split="train")
    ]
    assert results == ["u003", "u004", "u005"]
    assert [row["id"] for _, row in open_table(path, data_dir="ASR-PART1-Test")] == ["u000", "u001", "u002"]
    with refuses("splits_unknown"):
        open_table(path, data_dir="ASR-PART3-Test")
    with refuses("file_without_folder", data_dir="x"):
        open_table(path / "ASR-PART1-Test" / "train-00000-of-00001.parquet", data_dir="x")


def test_a_readme_that_is_no_card_is_not_spoken_of(tmp_path):
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"text": ["a", "b"]}), tmp_path / "data" / "test-00000-of-00001.parquet")
    (tmp_path / "README.md").write_text("What the benchmark measures.\n")
    code = f"from codec_bench.data.table import open_table; print(open_table({str(tmp_path)!r}).total)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (output.stdout.strip(), output.stderr) == ("2", "")
