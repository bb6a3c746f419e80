"""Tar files in WebDataset's form: what a sample is, where its bytes are, and tar files that are not whole."""

from __future__ import annotations

import io
import json
import tarfile
import time
from pathlib import Path

import fsspec
import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench.config import file_content
from codec_bench.data import open_source, tars
from codec_bench.data.tars import expanded
from codec_bench.types import Audio

CLIPS = [Path(sample.audio) for sample in open_source("embedded", limit=4)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))


def packed(members) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return body.getvalue()


def members_of(number):
    """The members of one tar file: two clips, the first with JSON, the second with a text."""
    first, second = CLIPS[2 * number], CLIPS[2 * number + 1]
    about = {"text": "wörter", "speaker": 7, "id": "another", "audio": "/etc/passwd", "room": "big", "deep": {"x": 1}}
    return [
        (f"s/{number}a.flac", first.read_bytes()),
        (f"s/{number}a.json", json.dumps(about).encode()),
        ("README", b"left out"),
        (f"s/{number}b.txt", b"some words\n"),
        (f"s/{number}b.mic1.FLAC", second.read_bytes()),
        (f"s/{number}b.cls", b"3"),
    ]


@pytest.fixture
def folder(tmp_path):
    for number in range(2):
        (tmp_path / f"t-{number:02d}.tar").write_bytes(packed(members_of(number)))
    return tmp_path


def test_samples_with_their_fields_and_sound(folder):
    source = open_source(str(folder / "t-{00..01}.tar"))
    assert [sample.id for sample in source] == ["s/0a", "s/0b", "s/1a", "s/1b"] and not source.problems
    first, second = source.samples[:2]
    assert (first.text, first.speaker, dict(first.extra)) == ("wörter", "7", {"room": "big"})
    assert second.text == "some words"
    for sample, clip in zip(source, CLIPS):
        assert np.array_equal(Audio.read(sample.audio).samples, Audio.read(clip).samples)


def test_places_are_looked_for_once(folder, monkeypatch):
    name = str(folder / "t-00.tar")
    monkeypatch.setattr(file_content, "TICK_NS", 0)  # it counts as a file that was not changed a moment ago
    before = open_source(name)
    monkeypatch.setattr(tars, "_scan", lambda file: pytest.fail("it was looked through again"))
    again = open_source(name)
    assert [one.audio for one in again] == [one.audio for one in before] and again.fingerprint == before.fingerprint
    monkeypatch.undo()
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(folder / "cache"))
    Path(name).write_bytes(packed(members_of(1)))
    assert [one.id for one in open_source(name)] == ["s/1a", "s/1b"]
    assert open_source(name).fingerprint != before.fingerprint


def test_behind_a_url(folder):
    memory = fsspec.filesystem("memory")
    for number in range(2):
        memory.pipe(f"/tars/t-{number:02d}.tar", (folder / f"t-{number:02d}.tar").read_bytes())
    here, there = (open_source(f"{where}/t-{{00..01}}.tar") for where in (folder, "memory://tars"))
    assert [one.id for one in here] == [one.id for one in there] and here.fingerprint == there.fingerprint
    assert np.array_equal(Audio.read(there.samples[3].audio).samples, Audio.read(CLIPS[3]).samples)
    with refuses("url_refused", url="memory://tars/none.tar", cause="remote_missing"):
        open_source("memory://tars/none.tar")


def test_samples_that_cannot_be_used_are_counted(tmp_path):
    clip = CLIPS[0].read_bytes()
    members = [
        ("a.json", b"{"),
        ("a.flac", clip),
        ("b.json", b"[1]"),
        ("b.flac", clip),
        ("c.txt", b"\xff"),
        ("d.txt", b"d"),
        ("e.flac", clip),
        ("a.wav", clip),
    ]
    (tmp_path / "x.tar").write_bytes(packed(members))
    source = open_source(str(tmp_path / "x.tar"))
    message = {id: reason for id, reason in source.problems.items()}
    assert len(source) == 6 and sorted(message) == ["a", "a#2", "b", "c", "d"]
    assert message["a"].parameters["cause"].code == "member_json" and message["b"].as_dict() == {
        "code": "row_problem",
        "unit": "sample",
        "number": "b",
        "file": "x.tar",
        "cause": {"code": "member_json_type", "type": "list"},
    }
    assert (
        message["c"].as_dict()
        == {
            "code": "row_problem",
            "unit": "sample",
            "number": "c",
            "file": "x.tar",
            "cause": {"code": "member_not_utf8"},
        }
        and message["d"].as_dict()
        == {
            "code": "row_problem",
            "unit": "sample",
            "number": "d",
            "file": "x.tar",
            "cause": {"code": "row_lacks", "fields": "audio", "known": "audio, text"},
        }
        and message["a#2"].as_dict()
        == {
            "code": "row_problem",
            "unit": "sample",
            "number": 6,
            "file": "x.tar",
            "cause": {"code": "id_repeated", "id": "a", "unit": "sample", "first": 1},
        }
    )


@pytest.mark.parametrize("path", ["in the sound", "in the last header", "in the last member", "behind the last member"])
def test_a_tar_file_that_is_cut_is_refused(tmp_path, path):
    complete = packed(members_of(0)[:2])
    members = 512 * (-(-len(CLIPS[0].read_bytes()) // 512) + 3)  # the sound, the JSON, and a header before each
    retained = {"in the sound": 700, "in the last header": members - 700, "in the last member": members - 100}.get(
        path, members
    )
    (tmp_path / "x.tar").write_bytes(complete[:retained])
    with refuses("tar_damaged", file="x.tar"):
        open_source(str(tmp_path / "x.tar"))


def test_other_files_are_refused_in_a_sentence(tmp_path):
    (tmp_path / "x.tar").write_bytes(b"no tar file at all" * 100)
    with refuses("tar_damaged"):
        open_source(str(tmp_path / "x.tar"))
    with refuses("file_not_readable", cause=Containing("No such file")):
        open_source(str(tmp_path / "y.tar"))
    with refuses("tar_compressed"):
        open_source("s3://b/x.tar.gz")


def test_braces():
    assert expanded("a-{08..10}-{1..2}.tar") == [f"a-{n}-{k}.tar" for n in ("08", "09", "10") for k in (1, 2)]
    assert expanded("a-{8..10}.tar") == ["a-8.tar", "a-9.tar", "a-10.tar"] and expanded("a.tar") == ["a.tar"]
    for wrong in ("a-{3..1}.tar", "a-{0..100000}.tar"):
        with refuses("tar_numbers"):
            expanded(wrong)


def test_a_member_is_read_by_its_place_and_never_by_its_name(tmp_path):
    """The name of a member may be a path to a file of this machine, or only hold `..` inside the tar file."""
    clip, other = CLIPS[0].read_bytes(), CLIPS[1]
    (tmp_path / "data").mkdir()
    (tmp_path / "priv.flac").write_bytes(other.read_bytes())
    complete = packed([("x/../ok.flac", clip), ("../../priv.flac", clip), (str(tmp_path / "priv.flac"), clip)])
    (tmp_path / "data" / "x.tar").write_bytes(complete)
    source = open_source(str(tmp_path / "data" / "x.tar"))
    assert np.array_equal(Audio.read(source.samples[0].audio).samples, Audio.read(CLIPS[0]).samples)
    assert len(source.problems) == 2
    assert all("whose name leads out of the tar file" in text for text in source.problems.values())


def test_a_name_like_a_locator_is_a_name(tmp_path):
    (tmp_path / "x.tar").write_bytes(packed([("a::0+44::b.flac", CLIPS[0].read_bytes())]))
    (sample,) = open_source(str(tmp_path / "x.tar"))
    assert np.array_equal(Audio.read(sample.audio).samples, Audio.read(CLIPS[0]).samples)


def test_a_size_that_no_file_has_is_one_sentence_at_once(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for size in ("400", str(10**18)):
            info = tarfile.TarInfo("a.flac")
            info.size, info.pax_headers = 400, {"size": size}
            tar.addfile(info, io.BytesIO(bytes(400)))
    start = time.process_time()
    with refuses("tar_unreadable", file="x.tar") as caught:
        open_source(str(tmp_path / "x.tar"))
    assert caught.value.hint == "copy it again" and time.process_time() - start < 3


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused_by_name(tmp_path, kind):
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(CLIPS[0], "a.flac")
        info = tarfile.TarInfo("b.flac")
        info.type, info.linkname = kind, str(CLIPS[1])
        tar.addfile(info)
    source = open_source(str(tmp_path / "x.tar"))
    assert [sample.id for sample in source.samples if sample.id not in source.problems] == ["a"]
    assert "has a member 'b.flac' that is a link, a device or sparse" in source.problems["b"]


def test_several_sounds_of_one_key_are_as_many_samples(tmp_path):
    sounds = [clip.read_bytes() for clip in CLIPS]
    members = [(f"clip.{number}.flac", sound) for number, sound in enumerate(sounds)]
    (tmp_path / "dots.tar").write_bytes(packed([*members, ("clip.2.txt", b"\xef\xbb\xbfthe third\n")]))
    source = open_source(str(tmp_path / "dots.tar"))
    assert [sample.id for sample in source] == [f"clip.{number}" for number in range(4)]
    assert [sample.text for sample in source] == [None, None, "the third", None]
    for sample, clip in zip(source, CLIPS):
        assert (Audio.read(sample.audio).samples == Audio.read(clip).samples).all()


def test_one_text_of_several_sounds_is_refused_by_name(tmp_path):
    members = [("a.0.flac", CLIPS[0].read_bytes()), ("a.1.flac", CLIPS[1].read_bytes()), ("a.txt", b"whose?")]
    (tmp_path / "shared.tar").write_bytes(packed([*members, ("b.flac", CLIPS[2].read_bytes())]))
    first, second = tars.tar_rows(str(tmp_path / "shared.tar"), require_audio=True)
    assert "a.0.flac, a.1.flac" in first.problem and (second.id, second.problem) == ("b", None)
