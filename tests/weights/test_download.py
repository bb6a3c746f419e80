"""One file over HTTP: it is continued and checked, and a wrong file never gets its name."""

from __future__ import annotations

import hashlib
import json

import pytest
from refusals import Containing, refuses

from codec_bench.weights import download as module
from codec_bench.weights.catalogue import readable
from codec_bench.weights.download import Unreachable, WrongContent, check_room, download

PATH = "/file.bin"


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "file.bin"


def left_over(target):
    return sorted(path.name for path in target.parent.glob("file.bin*"))


def test_a_file_is_what_the_server_has(server, serve, content, target):
    serve(PATH, content)
    seen = []
    got = download(server.url + PATH, target, progress=lambda *spoken: seen.append(spoken))
    assert got == digest(content) and target.read_bytes() == content
    assert left_over(target) == ["file.bin"]
    assert seen[-1] == ("file.bin", len(content), len(content))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_broken_connection_is_resumed_where_it_broke(server, serve, content, target):
    serve(PATH, content, cuts=[300_000, 500_000])
    assert download(server.url + PATH, target, sha256=digest(content), size=len(content)) == digest(content)
    assert target.read_bytes() == content
    assert server.sent(PATH) == [300_000, 200_000, len(content) - 500_000]
    assert [r.range for r in server.requests] == [None, "bytes=300000-", "bytes=500000-"]


def test_a_later_command_continues_what_an_earlier_one_began(server, serve, content, target):
    serve(PATH, content, cuts=[300_000, 0])
    with refuses("download_broke_off", bytes=300000):
        download(server.url + PATH, target, sha256=digest(content))
    assert not target.exists() and target.with_name("file.bin.part").stat().st_size == 300_000
    server.requests.clear()
    download(server.url + PATH, target, sha256=digest(content))
    assert target.read_bytes() == content and server.sent(PATH) == [len(content) - 300_000]
    assert left_over(target) == ["file.bin"]


def test_a_file_that_changed_in_between_is_not_glued_together(server, serve, content, target):
    serve(PATH, content, cuts=[300_000, 0])
    with pytest.raises(Unreachable):
        download(server.url + PATH, target)
    other = content[::-1]
    serve(PATH, other, etag='"v2"')
    assert download(server.url + PATH, target) == digest(other)
    assert target.read_bytes() == other


def test_without_a_checksum_or_a_validator_nothing_is_continued(server, serve, content, target):
    serve(PATH, content, cuts=[300_000, 0], etag=None)
    with pytest.raises(Unreachable):
        download(server.url + PATH, target)
    server.requests.clear()
    download(server.url + PATH, target)
    assert server.sent(PATH) == [len(content)] and target.read_bytes() == content


def test_a_server_without_ranges_starts_over(server, serve, content, target):
    serve(PATH, content, cuts=[300_000], ranges=False)
    assert download(server.url + PATH, target, sha256=digest(content)) == digest(content)
    assert server.sent(PATH) == [300_000, len(content)]


def test_a_whole_part_needs_nothing_more(server, serve, content, target):
    serve(PATH, content)
    target.with_name("file.bin.part").write_bytes(content)
    about = {"url": server.url + PATH, "sha256": digest(content), "validator": '"v1"'}
    target.with_name("file.bin.part.json").write_text(json.dumps(about))
    download(server.url + PATH, target, sha256=digest(content))
    assert target.read_bytes() == content and server.sent(PATH) == [0]


def test_a_beginning_of_another_file_is_detected(server, serve, content, target):
    serve(PATH, content)
    target.with_name("file.bin.part").write_bytes(b"x" * 1000)
    about = {"url": server.url + PATH, "sha256": digest(content), "validator": '"v1"'}
    target.with_name("file.bin.part.json").write_text(json.dumps(about))
    with refuses("download_digest", expected="03e1ab9f01005715921f41e63177c956d3d644304224bf4aff6432ef7cc08054"):
        download(server.url + PATH, target, sha256=digest(content))
    assert left_over(target) == []
    download(server.url + PATH, target, sha256=digest(content))
    assert target.read_bytes() == content


def test_a_wrong_checksum_says_both_and_leaves_nothing(server, serve, content, target):
    serve(PATH, content)
    with refuses("download_digest", digest=digest(content), expected="0" * 64) as caught:
        download(server.url + PATH, target, sha256="0" * 64)
    assert isinstance(caught.value, WrongContent)
    assert left_over(target) == []


def test_a_wrong_size_is_detected_before_anything_is_fetched(server, serve, content, target):
    serve(PATH, content)
    with refuses("download_declared", bytes=700001, expected=5):
        download(server.url + PATH, target, size=5)
    assert left_over(target) == []


@pytest.mark.parametrize(
    ("size", "says"),
    [(5, {"code": "download_beyond", "most": 5}), (800_000, {"code": "download_broke_off", "bytes": 700001})],
)
def test_a_wrong_size_is_detected_where_the_server_does_not_declare_it(server, serve, content, target, size, says):
    serve(PATH, content, length=False, ranges=False)
    with refuses(**says):
        download(server.url + PATH, target, size=size)
    assert not target.exists()


def test_a_web_page_is_no_checkpoint(server, serve, target):
    serve(PATH, b"<html>please log in</html>", kind="text/html; charset=utf-8")
    with refuses("download_web_page"):
        download(server.url + PATH, target)
    assert left_over(target) == []


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [(404, "download_missing", "--from"), (403, "download_refused", "HF_TOKEN"), (401, "download_refused", "HF_TOKEN"),
        (503, "not_fetched_status", "later")],
)  # fmt: skip
def test_what_a_server_refuses_is_one_sentence(server, serve, target, status, code, hint):
    serve(PATH, b"", status=status)
    with refuses(code, status=status, hint=hint) as caught:
        download(server.url + PATH, target)
    assert isinstance(caught.value, Unreachable)
    assert left_over(target) == []


def test_a_refused_connection_is_one_sentence(server, target):
    server.close()
    with refuses("host_unreachable", cause="the connection was refused"):
        download(server.url + PATH, target)


def test_a_silent_server_is_abandoned(target, monkeypatch):
    import socket

    monkeypatch.setattr(module, "TIMEOUT_S", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with refuses("host_unreachable", cause="no answer within 0.2 s"):
            download(f"http://127.0.0.1:{silent.getsockname()[1]}/x", target)


def test_only_web_addresses_are_fetched(tmp_path, target):
    with refuses("address_not_web"):
        download((tmp_path / "x").as_uri(), target)


def test_credentials_do_not_follow_a_redirect(server, serve, content, target):
    serve(PATH, content)
    server.answers["/moved"] = (302, {"Location": server.url.replace("127.0.0.1", "localhost") + PATH}, b"")
    download(server.url + "/moved", target, headers={"Authorization": "Bearer secret"})
    first, second = server.requests
    assert first.headers["Authorization"] == "Bearer secret" and "Authorization" not in second.headers
    assert target.read_bytes() == content


def test_a_full_disk_is_named(tmp_path, server, serve, content, target, monkeypatch):
    from types import SimpleNamespace

    serve(PATH, content)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with refuses("no_disk_space", needed="700 kB", free="1 kB"):
        download(server.url + PATH, target)
    with refuses("no_disk_space", needed="3 GB"):
        check_room(tmp_path / "not" / "there", 3_000_000_000, "it")


def test_a_folder_that_cannot_be_written_is_named(server, serve, content, tmp_path):
    serve(PATH, content)
    with refuses("file_not_writable", cause=Containing("No such file")):
        download(server.url + PATH, tmp_path / "gone" / "file.bin")


def test_sizes_as_a_person_reads_them():
    assert [readable(n) for n in (12, 1500, 411_179_119, 3_087_000_000)] == ["12 bytes", "1.5 kB", "411 MB", "3.09 GB"]
