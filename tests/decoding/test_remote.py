"""Sound behind URLs: what is tried again, what is given up, and what is shown of a URL."""

from __future__ import annotations

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import fsspec
import numpy as np
import pytest
from refusals import refuses

from codec_bench.data import open_source
from codec_bench.decoding import remote
from codec_bench.decoding.remote import is_url, read_remote, shown
from codec_bench.types import Audio

web = pytest.mark.skipif(find_spec("aiohttp") is None, reason="aiohttp is not installed (the extra remote)")


class Refusal(Exception):
    """An error as the packages behind fsspec raise them."""

    def __init__(self, status):
        super().__init__("https://host/x?secret=1 refused")
        self.status = status


class NoCredentialsError(Exception):
    pass


class Faulty:
    """A file system that fails some times and then does not."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def cat_file(self, url, start=None, end=None):
        if self.errors:
            raise self.errors.pop(0)
        return b"0123456789"[start:end]


@pytest.fixture
def pauses(monkeypatch):
    parameters = []
    monkeypatch.setattr(remote, "_pause", parameters.append)
    return parameters


def faulty(monkeypatch, *errors):
    held = Faulty(*errors)
    monkeypatch.setattr(remote, "filesystem", lambda url: held)
    return held


@pytest.mark.parametrize(
    "error", [Refusal(503), Refusal(429), TimeoutError(), ConnectionResetError("reset"), OSError("?")]
)
def test_what_may_pass_is_tried_again(monkeypatch, pauses, error):
    faulty(monkeypatch, error, error)
    assert read_remote("s3://b/x") == b"0123456789" and pauses == list(remote.PAUSES_S[:2])
    left = faulty(monkeypatch, *[error] * 10)
    with refuses("url_unreadable", url="s3://b/x", tries=4) as caught:
        read_remote("s3://b/x")
    assert len(left.errors) == 10 - remote.TRIES and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError("x"), {"code": "url_refused", "cause": "remote_missing"}),
        (Refusal(404), {"code": "url_refused", "cause": "remote_missing"}),
        (PermissionError("x"), {"code": "url_refused", "cause": "remote_forbidden"}),
        (Refusal(403), {"code": "url_refused", "cause": "remote_forbidden"}),
        (NoCredentialsError(), {"code": "url_refused", "cause": "remote_credentials"}),
        (Refusal(400), {"code": "url_refused", "cause": "remote_status"}),
    ],
)
def test_what_does_not_pass_is_not_tried_again(monkeypatch, pauses, error, message):
    faulty(monkeypatch, error)
    with refuses(**message):
        read_remote("s3://b/x")
    assert not pauses


def test_parts_of_a_file(monkeypatch, pauses):
    faulty(monkeypatch)
    assert read_remote("s3://b/x", 2, 5) == b"234"
    with refuses("url_unreadable"):
        read_remote("s3://b/x", 8, 14)
    monkeypatch.setattr(Faulty, "cat_file", lambda self, url, start, end: b"0123456789")
    assert read_remote("s3://b/x", 2, 5) == b"234", "a server may take no ranges"


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://me:word@host:8/a/b.flac?X-Amz-Signature=1#x", "https://host:8/a/b.flac"),
        ("s3://bucket/a?b#c.flac", "s3://bucket/a?b#c.flac"),
        ("s3://key:secret@bucket/a.flac", "s3://bucket/a.flac"),
        ("/folder/a?b.flac", "/folder/a?b.flac"),
    ],
)
def test_what_is_shown_of_a_url_holds_no_secret(url, seen):
    assert shown(url) == seen and is_url(url) == (url[0] != "/")


def test_urls_that_cannot_be_read_are_one_sentence(monkeypatch):
    with refuses("url_with_password") as caught:
        read_remote("https://me:word@host/x.flac")
    assert "word@" not in str(caught.value)
    with refuses("url_protocol_unknown", protocol="abc"):
        read_remote("abc://x/y.flac")
    for protocol in ("ftp", "sftp", "file", "local", "smb", "zip", "simplecache", "reference", "git"):
        with refuses("url_protocol", protocol=protocol):
            read_remote(f"{protocol}://127.0.0.1/x.wav")

    def missing(protocol):
        raise ImportError("Install s3fs to access S3", name="s3fs")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with refuses("package_not_installed", package="s3fs") as lacking:
        read_remote("s3://b/x.flac")
    assert "codec-bench[remote]" in lacking.value.hint
    with refuses("package_not_installed", package="gcsfs"):
        read_remote("gs://b/x.flac")


def test_a_sound_behind_a_url_is_that_of_the_file(embedded_clip):
    fsspec.filesystem("memory").pipe("/sounds/a.flac", embedded_clip.read_bytes())
    here, there = Audio.read(embedded_clip), Audio.read("memory://sounds/a.flac")
    assert here.sample_rate_hz == there.sample_rate_hz and np.array_equal(here.samples, there.samples)
    with refuses("url_refused", url="memory://sounds/none.flac", cause="remote_missing"):
        Audio.read("memory://sounds/none.flac")


@pytest.fixture
def embedded_clip():
    return Path(open_source("embedded", limit=1).samples[0].audio)


@pytest.fixture
def server(monkeypatch, embedded_clip, pauses):
    """A web server whose first answers are bad: `/503`, `/breaks` and `/stalls`; `/403` always refuses."""
    body, seen, over = embedded_clip.read_bytes(), Counter(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            kind = self.path.strip("/").partition(".")[0]
            seen[kind] += 1
            first = seen[kind] == 1
            if kind == "403" or (kind == "503" and first):
                self.send_error(int(kind))
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if kind == "stalls" and first:
                over.wait(30)
            elif kind == "breaks" and first:
                self.wfile.write(body[: len(body) // 2])
            else:
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    held = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held.daemon_threads = True
    threading.Thread(target=held.serve_forever, daemon=True).start()
    monkeypatch.setattr(remote, "STALL_S", 0.3)
    yield f"http://127.0.0.1:{held.server_port}", seen
    over.set()
    held.shutdown()
    held.server_close()


@web
def test_a_web_server_that_breaks_off_stalls_and_answers_503(server, embedded_clip):
    address, seen = server
    for kind in ("503", "breaks", "stalls", "good"):
        assert read_remote(f"{address}/{kind}.flac?key=secret") == embedded_clip.read_bytes()
    assert seen == {"503": 2, "breaks": 2, "stalls": 2, "good": 1}
    with refuses("url_refused", cause="remote_forbidden") as refused:
        read_remote(f"{address}/403.flac?key=secret")
    assert seen["403"] == 1 and "secret" not in str(refused.value)
