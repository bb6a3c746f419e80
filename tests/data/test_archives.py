"""Archives of sounds: unpacked once, and nothing outside of their folder."""

import io
import json
import random
import tarfile
import zipfile

import pytest
from refusals import refuses

from codec_bench.data.archives import LIMIT_VARIABLE, unpacked
from codec_bench.data.table import open_table
from codec_bench.messages.errors import UserError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))


def a_tar(path, files, links=()):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for name, to in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, to
            tar.addfile(member)
    return path


def test_files_are_unpacked_once_and_anew_when_the_archive_changes(tmp_path):
    path = a_tar(tmp_path / "a.tar.gz", {"./x/1.wav": b"one"})
    folder = unpacked(str(path))
    assert (folder / "x" / "1.wav").read_bytes() == b"one"
    assert unpacked(str(path)) == folder
    a_tar(path, {"x/1.wav": b"another one"})
    assert (unpacked(str(path)) / "x" / "1.wav").read_bytes() == b"another one"


def test_nothing_leaves_the_folder(tmp_path):
    path = a_tar(tmp_path / "a.tar.gz", {"../out": b"1", "/etc/out": b"2", "in": b"3"}, [("link", "/etc/passwd")])
    folder = unpacked(str(path))
    assert [file.name for file in folder.rglob("*")] == ["in"]
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as opened:
        opened.writestr("..\\out", b"1")
        opened.writestr("a/in", b"2")
    assert sorted(file.name for file in unpacked(str(tmp_path / "b.zip")).rglob("*")) == ["a", "in"]


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_a_damaged_archive_is_one_sentence_and_leaves_nothing(tmp_path, name):
    (tmp_path / name).write_bytes(b"no archive at all")
    with refuses("archive_damaged", archive=name):
        unpacked(str(tmp_path / name))
    assert list((tmp_path / "cache" / "unpacked").iterdir()) == []


@pytest.mark.parametrize("sounds", ["speech", "speech.tar.gz"])
def test_a_rows_path_begins_in_a_folder_or_an_archive(tmp_path, sounds):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    if sounds.endswith(".gz"):
        a_tar(tmp_path / sounds, {"a/1.wav": b"RIFF"})
    else:
        (tmp_path / sounds / "a").mkdir(parents=True)
        (tmp_path / sounds / "a" / "1.wav").write_bytes(b"RIFF")
    rows = [{"audio": "a/1.wav"}, {"audio": "a/2.wav"}]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result, missing = (row["audio"] for _, row in open_table(tmp_path, split="test", sounds=sounds))
    with open(result.source, "rb") as file:
        assert file.read() == b"RIFF"
    assert missing.source.endswith("a/2.wav")


def test_an_archive_may_lack_the_folder_that_is_called_as_it_is(tmp_path):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    a_tar(tmp_path / "audio.tar.gz", {"a/1.wav": b"bare", "audio/a/2.wav": b"whole"})
    rows = [{"audio": f"audio/a/{at}.wav"} for at in (1, 2, 3)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    *result, missing = (row["audio"] for _, row in open_table(tmp_path, split="test", sounds="audio.tar.gz"))
    assert [open(clip.source, "rb").read() for clip in result] == [b"bare", b"whole"]
    assert missing.source.endswith("audio/a/3.wav")


@pytest.mark.parametrize("packed", ["gz", "bz2", "xz"])
def test_a_flipped_bit_of_a_compressed_archive_is_noticed(tmp_path, packed):
    """Each is refused in one sentence, or what comes out is the same."""
    rng = random.Random(packed)
    body, path = rng.randbytes(20_000), tmp_path / "a.tar.gz"
    with tarfile.open(path, f"w:{packed}") as tar:
        for name in ("1.wav", "2.wav"):
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    complete, refused = path.read_bytes(), 0
    for number in range(100):
        damaged = bytearray(complete)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (tmp_path / f"{number}.tar.gz").write_bytes(damaged)
        try:
            folder = unpacked(str(tmp_path / f"{number}.tar.gz"))
        except UserError:
            refused += 1
        else:
            assert [file.read_bytes() for file in sorted(folder.iterdir())] == [body, body]
    assert refused > 80


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar", "a.zip"])
def test_a_truncated_archive_is_refused(tmp_path, name, cut):
    path, body = tmp_path / name, random.Random(1).randbytes(30_000)
    if name.endswith("zip"):
        with zipfile.ZipFile(path, "w") as opened:
            opened.writestr("1.wav", body)
    else:
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as tar:
            member = tarfile.TarInfo("1.wav")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    complete = path.read_bytes().rstrip(b"\0") if name == "a.tar" else path.read_bytes()
    path.write_bytes(complete[: int(cut * len(complete))])
    with refuses("archive_damaged", archive=name):
        unpacked(str(path))


def test_what_an_archive_unpacks_to_is_limited(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("1.wav", bytes(40 << 20))
    monkeypatch.setenv(LIMIT_VARIABLE, "0.01")
    with refuses("archive_too_large", archive="a.zip", most_gib=0.01):
        unpacked(str(path))
    assert list((tmp_path / "cache" / "unpacked").iterdir()) == []
    for wrong in ("nan", "-1", "0", "much"):
        monkeypatch.setenv(LIMIT_VARIABLE, wrong)
        with refuses("limit_not_a_number", variable=LIMIT_VARIABLE, value=wrong):
            unpacked(str(path))
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    assert (unpacked(str(path)) / "1.wav").stat().st_size == 40 << 20
