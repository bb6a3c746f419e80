"""Opening every kind of data set: ids, fingerprints, limits, and one sentence for every mistake."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from refusals import refuses

from codec_bench import evaluate
from codec_bench.audio.encode import write_flac
from codec_bench.data import Source, open_source, problem_of
from codec_bench.data.manifest import MOST_CHARACTERS
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Sample


@pytest.fixture
def tree(tmp_path):
    """A folder of sound files with awkward names."""
    names = ["b.wav", "a.flac", "sub/a.flac", "sub/deep er/ünïcode 声.FLAC", "twice.wav", "twice.flac", "x.y.wav"]
    for name in [*names, "notes.txt", ".hidden.wav", ".git/c.wav"]:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "tree"


def test_folder_gives_every_sound_file_by_its_path(tree):
    source = open_source(tree)
    assert [s.id for s in source] == [
        "a", "b", "sub/a", "sub/deep er/ünïcode 声", "twice.flac", "twice.wav", "x.y",
    ]  # fmt: skip
    assert all(os.path.isabs(s.audio) and os.path.isfile(s.audio) for s in source)
    assert source.name == "tree" and len(source) == 7 and not source.problems


def test_folder_ids_stay_distinct_when_a_suffix_is_part_of_a_stem(tmp_path):
    for name in ["a.wav", "a.flac", "a.wav.flac"]:
        (tmp_path / name).write_bytes(b"x")
    assert sorted(s.id for s in open_source(tmp_path)) == ["a.flac", "a.wav", "a.wav.flac"]


def test_links_between_folders_end(tree):
    (tree / "sub" / "up").symlink_to(tree)
    assert len(open_source(tree)) == 7


def test_the_sound_that_runs_keep_below_the_data_is_no_part_of_the_data(tmp_path):
    for n in range(2):
        write_flac(tmp_path / f"{n}.flac", Audio(np.sin(np.arange(4000) / (5 + n)), 16000))
    before = open_source(tmp_path)
    for out in (tmp_path, tmp_path / "runs" / "one"):
        evaluate(codec="g711-ulaw", data=str(tmp_path), metrics="snr", out=out, workers=1, page=False, check=False)
        assert len(list((out / "audio").rglob("*.flac"))) == 4
    assert [s.id for s in before] == ["0", "1"] == [s.id for s in open_source(tmp_path)]
    assert open_source(tmp_path).fingerprint == before.fingerprint


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux")
def test_a_file_name_that_is_not_text_is_a_problem(tree):
    (tree / os.fsdecode(b"caf\xe9.wav")).write_bytes(b"x")
    source = open_source(tree)
    assert source.problems == {r"caf\udce9.wav": r"the name of the file 'caf\udce9.wav' is not UTF-8"}
    json.dumps([s.id for s in source]).encode()
    assert source.fingerprint


def test_manifest_in_a_folder_counts(tree):
    (tree / "manifest.jsonl").write_text('{"audio": "b.wav", "text": "hello"}\n')
    source = open_source(tree)
    assert [(s.id, s.text) for s in source] == [("b", "hello")]
    assert source.name == open_source(tree / "manifest.jsonl").name == "tree"


def test_one_sound_file_is_a_data_set(tree):
    (sample,) = open_source(tree / "b.wav")
    assert (sample.id, sample.audio) == ("b", str(tree / "b.wav"))


def test_samples_are_a_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = open_source([Sample("a", "x/a.wav", text="t"), Sample("b", None, text="t"), Sample("a", "y.wav")])
    assert [s.id for s in source] == ["a", "b", "a#2"]
    assert source.samples[0].audio == str(tmp_path / "x" / "a.wav")
    assert source.problems == {
        "b": "sample 2 ('b') has no audio",
        "a#2": "sample 3 of the samples has the id 'a', which sample 1 has already",
    }
    assert len(open_source(source, limit=1)) == 1


def test_a_huge_text_that_a_small_file_repeats_is_refused_by_its_length(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, text = 500, pa.array(["x " * (MOST_CHARACTERS // 2 + 1), "short"])
    number = pa.array([0] * (rows - 1) + [1], pa.int32())
    table = {
        "audio": ["a.wav"] * rows,
        "id": list(map(str, range(rows))),
        "text": pa.DictionaryArray.from_arrays(number, text),
    }
    pq.write_table(pa.table(table), tmp_path / "m.parquet")
    assert (tmp_path / "m.parquet").stat().st_size < 200_000
    source = open_source(tmp_path / "m.parquet")
    assert len(source.problems) == rows - 1 and source.samples[-1].text == "short"
    assert source.problems["0"] == "row 1 of m.parquet has a text of 500,002 characters; expected up to 500,000"
    assert source.fingerprint and not any(sample.text for sample in source.samples[:-1]), "nothing goes over the texts"


def test_repeated_ids_fail_and_name_both_lines(tmp_path):
    rows = [("x", "1.wav"), ("x#2", "2.wav"), ("y", "3.wav"), ("x", "4.wav"), ("x", "5.wav")]
    lines = [json.dumps({"id": id, "audio": audio}) for id, audio in rows]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    source = open_source(tmp_path / "m.jsonl")
    assert [s.id for s in source] == ["x", "x#2", "y", "x#3", "x#4"]
    assert source.problems == {
        "x#3": "line 4 of m.jsonl has the id 'x', which line 1 has already",
        "x#4": "line 5 of m.jsonl has the id 'x', which line 1 has already",
    }


def test_ids_come_from_paths_whatever_the_order(tmp_path):
    names = ["p/s1/x.wav", "q/s1/x.wav", "p/s2/y.wav", "z.wav", "z.flac", "p/s1/w.wav", "p/s2/w.wav"]
    expected = ["p/s1/x", "q/s1/x", "y", "z.wav", "z.flac", "s1/w", "s2/w"]
    for order in (range(7), reversed(range(7))):
        order = list(order)
        (tmp_path / "m.csv").write_text("audio\n" + "".join(f"{names[i]}\n" for i in order))
        assert [s.id for s in open_source(tmp_path / "m.csv")] == [expected[i] for i in order]
    (tmp_path / "m.csv").write_text("audio\n" + "".join(f"{name}\n" for name in names))
    assert [s.id for s in open_source(tmp_path / "m.csv", limit=2)] == expected[:2]


def test_one_file_twice_without_ids_is_a_repeat(tmp_path):
    (tmp_path / "m.csv").write_text("audio,text\na.wav,one\na.wav,two\n")
    source = open_source(tmp_path / "m.csv")
    assert [s.id for s in source] == ["a", "a#2"]
    assert source.problems == {"a#2": "line 3 of m.csv has the id 'a', which line 2 has already"}


def test_fingerprint_is_of_the_content(tree, tmp_path):
    rows = [{"audio": "b.wav", "text": "hello", "speaker": "s"}, {"audio": "a.flac", "text": "there", "speaker": "s"}]
    manifest = tree / "manifest.jsonl"

    def fingerprint(rows):
        manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return open_source(tree).fingerprint

    first = fingerprint(rows)
    assert fingerprint(rows[::-1]) == first, "order"
    shutil.copytree(tree, tmp_path / "elsewhere")
    assert open_source(tmp_path / "elsewhere").fingerprint == first, "place"
    assert fingerprint([{**rows[0], "text": "hello!"}, rows[1]]) != first
    assert fingerprint([{**rows[0], "text": None}, rows[1]]) != first
    assert fingerprint([{**rows[0], "speaker": "t"}, rows[1]]) != first
    assert fingerprint([{**rows[0], "id": "c"}, rows[1]]) != first
    assert fingerprint([rows[0]]) != first
    assert fingerprint(rows) == first
    (tree / "b.wav").write_bytes(b"another length")
    assert fingerprint(rows) != first
    (tree / "b.wav").unlink()
    assert fingerprint(rows) != first


def test_limit_takes_the_first(tree):
    assert [s.id for s in open_source(tree, limit=3)] == ["a", "b", "sub/a"]
    assert len(open_source(tree, limit=1000)) == 7
    with refuses("limit_too_low", limit=0):
        open_source(tree, limit=0)


def test_a_seeded_part_does_not_depend_on_the_order(tmp_path):
    ids = [f"id{i:03d}" for i in range(200)]

    def item(order, seed):
        path = tmp_path / "m.csv"
        path.write_text("id,audio\n" + "".join(f"{id},{id}.wav\n" for id in order))
        return [s.id for s in open_source(path, limit=20, seed=seed)]

    assert set(item(ids, 1)) == set(item(ids[::-1], 1)) == set(open_part := item(ids, 1))
    assert open_part == sorted(open_part), "the order of the rows stays"
    assert len({tuple(item(ids, seed)) for seed in range(5)}) == 5
    assert set(item(ids, 1)) != set(ids[:20])
    # With the same seed, a larger part contains the smaller one.
    assert set(open_part) < set(s.id for s in open_source(tmp_path / "m.csv", limit=40, seed=1))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("no/such/folder", "there is no data set, folder or manifest 'no/such/folder'"),
        ("embeded", "did you mean embedded"),
        ("hf:org/set:config:split:more", "'hf:org/set:config:split:more' is not the name of a data set"),
        ("hf:", "write hf:OWNER/NAME[:CONFIG][:SPLIT]"),
        ("notes.txt", "neither a folder, a sound file nor a manifest"),
        ("empty", "holds no sound file and no manifest.jsonl"),
        ("empty.jsonl", "'empty.jsonl' holds no samples"),
        ("empty.csv", "'empty.csv' holds no samples"),
    ],
)
def test_what_is_no_data_set_is_reported_in_one_sentence(tmp_path, monkeypatch, data, says):
    monkeypatch.chdir(tmp_path)
    for name in ("notes.txt", "empty.jsonl", "empty.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        open_source(data)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_samples_travel_between_processes(tree):
    source = open_source(tree)
    assert pickle.loads(pickle.dumps(source.samples)) == source.samples


def test_real_data_opens(speech_dir):
    source = open_source(speech_dir)
    rows = [json.loads(line) for line in (speech_dir / "manifest.jsonl").read_text("utf-8").splitlines()]
    assert [(s.id, s.text, s.speaker, s.language) for s in source] == [
        (row["id"], row.get("text"), row.get("speaker"), row.get("language")) for row in rows
    ]
    assert not source.problems and all(os.path.isfile(s.audio) for s in source)


def test_a_hundred_thousand_rows_are_light(tmp_path):
    path = tmp_path / "m.jsonl"
    with path.open("w") as file:
        for i in range(100_000):
            row = {"id": f"speaker{i % 500:03d}/utterance{i:07d}", "audio": f"wavs/{i % 500:03d}/{i:07d}.flac"}
            row |= {"text": f"sentence number {i} of a manifest with a few words in it", "speaker": f"{i % 500}"}
            file.write(json.dumps(row) + "\n")
    code = f"""
        import resource, sys
        from codec_bench.data import open_source
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        source = open_source({str(path)!r})
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert len(source) == 100_000
        sys.stdout.write(str((after - before) / len(source)))
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    kib_per_sample = float(done.stdout)
    assert kib_per_sample < 0.9, "a million samples must fit in a gigabyte"


def test_a_source_says_what_it_is():
    source = open_source("embedded")
    assert isinstance(source, Source) and repr(source) == "Source('embedded', 32 samples, 0 with a problem)"
    assert all(problem_of(s) is None for s in source)


def test_written_audio_is_recovered(tmp_path, rng):
    write_flac(tmp_path / "a b ü.flac", Audio(rng.uniform(-0.5, 0.5, 1600), 16_000))
    (sample,) = open_source(tmp_path)
    assert Audio.read(sample.audio).num_samples == 1600


@pytest.mark.parametrize("named", ["test.parquet", "."], ids=["a manifest", "a folder"])
def test_a_text_that_stands_in_every_row_of_a_table_is_not_held_for_each(named, tmp_path):
    """A file of a few kilobytes, whose texts would take 2 GB if each row were given its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, text = 8000, "x" * (1 << 18)
    indices, values = pa.array([0] * (rows - 1) + [None], pa.int32()), pa.array([text])
    columns = {
        "id": [f"r{n}" for n in range(rows)],
        "audio": [f"{n % 2}.wav" for n in range(rows)],
        "text": pa.DictionaryArray.from_arrays(indices, values),
    }
    pq.write_table(pa.table(columns), tmp_path / "test.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "test.parquet").stat().st_size < 100_000
    before, watched = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(watched)
    try:
        texts = [sample.text for sample in open_source(tmp_path / named)]
    finally:
        pa.set_memory_pool(before)
    assert (
        texts[-1] is None and texts[0] == text and len({id(one) for one in texts}) < rows / 200
    )  # once for some hundred rows
    assert watched.max_memory() < 64 << 20


def test_a_sound_in_the_place_of_its_path_is_refused_by_name(tmp_path):
    with refuses("sound_not_a_path", id="a", type="Audio"):
        open_source([Sample("a", Audio([0.0] * 8, 16_000))])
    (source,) = open_source([Sample("a", tmp_path / "a.wav")])
    assert source.audio == str(tmp_path / "a.wav")
