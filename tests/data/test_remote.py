"""Manifests and folders behind URLs, and a run over sound behind URLs."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import fsspec
import pytest
from refusals import Containing, refuses

from codec_bench import evaluate
from codec_bench.data import data_name, open_source
from codec_bench.decoding import remote
from codec_bench.engine import recorded_sounds

CLIPS = [Path(sample.audio) for sample in open_source("embedded", limit=4)]
OPTIONS = {
    "codec": "unprocessed",
    "metrics": "si_sdr,stoi",
    "workers": 1,
    "page": False,
    "check": False,
    "save_audio": "none",
    "cache": False,
}


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remote, "_pause", lambda seconds: None)
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def manifest(names):
    return "".join(
        json.dumps({"id": f"c{n}", "audio": name, "text": "x"}) + "\n" for n, name in enumerate(names)
    ).encode()


def test_a_manifest_behind_a_url_names_files_next_to_it_and_elsewhere(folders, tmp_path):
    folders.pipe("/set/manifest.jsonl", manifest(["wav/a.flac", "../b.flac", "https://host/c.flac", "/root.flac"]))
    source = open_source("memory://set/manifest.jsonl")
    assert [sample.audio for sample in source] == [
        "memory://set/wav/a.flac", "memory://b.flac", "https://host/c.flac", "memory:///root.flac",
    ]  # fmt: skip
    assert source.name == "set"
    (tmp_path / "m.jsonl").write_bytes(manifest(["s3://b/a.flac", "here.flac"]))
    assert [one.audio for one in open_source(tmp_path / "m.jsonl")] == ["s3://b/a.flac", str(tmp_path / "here.flac")]
    folders.pipe("/set/manifest.jsonl", manifest(["wav/a.flac", "other.flac"]))
    assert open_source("memory://set/manifest.jsonl").fingerprint != source.fingerprint


def test_a_folder_behind_a_url(folders):
    for name in ("x/a.flac", "x/y/b.wav", "x/notes.txt", "x/.hidden.flac"):
        folders.pipe(f"/{name}", b"?")
    source = open_source("memory://x")
    assert [(one.id, one.audio) for one in source] == [("a", "memory:///x/a.flac"), ("y/b", "memory:///x/y/b.wav")]
    with refuses("no_sound_below", url="memory://none"):
        open_source("memory://none")
    with refuses("url_lists_no_files"):
        open_source("https://host/folder")


def test_a_run_over_urls_is_that_over_files_and_counts_what_is_missing(folders, tmp_path):
    names = [f"{n}.flac" for n in range(3)]
    for name, clip in zip(names, CLIPS):
        folders.pipe(f"/set/{name}", clip.read_bytes())
        (tmp_path / name).write_bytes(clip.read_bytes())
    (tmp_path / "m.jsonl").write_bytes(manifest([*names, "none.flac"]))
    folders.pipe("/set/m.jsonl", manifest([*names, "none.flac"]))
    run = evaluate(**OPTIONS, data="memory://set/m.jsonl", out=tmp_path / "there")
    here = evaluate(**OPTIONS, data=tmp_path / "m.jsonl", out=tmp_path / "here")
    rows = lambda one: [(row.id, row.metric, row.value, row.status) for row in one.rows()]  # noqa: E731
    assert rows(run) == rows(here) and run.counts()["failed_items"] == 1 == here.counts()["failed_items"]
    (failed,) = [item for item in run.items() if item.status != "ok"]
    assert "memory://set/none.flac" in failed.reason
    assert run.meta["config"]["data"] == "memory://set/m.jsonl"


@pytest.mark.parametrize("state", [None, "unchanged"])
def test_a_continued_run_reads_urls_again_unless_their_server_states_a_checksum(folders, tmp_path, monkeypatch, state):
    names = [f"{n}.flac" for n in range(2)]
    for name, clip in zip(names, CLIPS):
        folders.pipe(f"/set/{name}", clip.read_bytes())
    folders.pipe("/set/m.jsonl", manifest(names))
    monkeypatch.setattr(recorded_sounds, "remote_state", lambda url: state)
    again = lambda: evaluate(**OPTIONS, data="memory://set/m.jsonl", out=tmp_path / "run")  # noqa: E731
    assert again().counts() == again().counts()
    for name, clip in zip(names, reversed(CLIPS[:2])):
        folders.pipe(f"/set/{name}", clip.read_bytes())
    if state is None:
        with refuses("sound_changed", path="memory://set/0.flac"):
            again()
    else:
        again()
    monkeypatch.setattr(recorded_sounds, "remote_state", lambda url: "changed")
    with refuses("sound_changed", path="memory://set/0.flac"):
        again()


def test_the_record_holds_no_signature(tmp_path, folders):
    assert data_name("https://host/m.jsonl?X-Amz-Signature=secret") == "https://host/m.jsonl"
    (tmp_path / "m.jsonl").write_bytes(
        manifest([str(CLIPS[0]), "abc://host/x.flac?X-Amz-Signature=secret", "https://me:secret@host/y.flac"])
    )
    evaluate(**OPTIONS, data=tmp_path / "m.jsonl", out=tmp_path / "run")
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"secret" not in path.read_bytes(), path


@pytest.fixture
def bucket(monkeypatch):
    """A server of S3 that is moto's, with a bucket."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL
    )  # fmt: skip
    try:
        end = time.monotonic() + 60
        while True:
            with closing(socket.socket()) as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < end and server.poll() is None, "moto's server did not start"
            time.sleep(0.05)
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        system = fsspec.filesystem("s3")
        system.mkdir("speech")
        yield system
        s3fs.S3FileSystem.clear_instance_cache()
    finally:
        server.kill()
        server.wait()


@pytest.mark.skipif(
    find_spec("s3fs") is None or find_spec("moto") is None,
    reason="s3fs, moto or flask is not installed (the extra remote)",
)
def test_s3(bucket, tmp_path, monkeypatch):
    for number, clip in enumerate(CLIPS[:2]):
        bucket.pipe(f"speech/set/{number}.flac", clip.read_bytes())
        (tmp_path / f"{number}.flac").write_bytes(clip.read_bytes())
    bucket.pipe("speech/set/manifest.jsonl", manifest(["0.flac", "s3://speech/set/1.flac", "none.flac"]))
    run = evaluate(**OPTIONS, data="s3://speech/set/manifest.jsonl", out=tmp_path / "run")
    here = evaluate(**OPTIONS, data=[*open_source(tmp_path)], out=tmp_path / "here")
    values = lambda one: [row.value for row in one.rows() if row.status != "failed"]  # noqa: E731
    assert values(run) == values(here) and run.counts()["failed_items"] == 1
    assert [one.id for one in open_source("s3://speech/set")] == ["0", "1"]
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"a-secret" not in path.read_bytes(), path
    with refuses("url_refused", url="s3://nobody/m.jsonl", cause="remote_missing"):
        open_source("s3://nobody/m.jsonl")
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as tar:
        for number in range(2):
            tar.add(tmp_path / f"{number}.flac", f"{number}.flac")
    bucket.pipe("speech/tars/t-0.tar", body.getvalue())
    tars = evaluate(**OPTIONS, data="s3://speech/tars/t-0.tar", out=tmp_path / "tars")
    assert values(tars) == values(here)
    # From now on the server asks who it is, and knows nobody.
    ask = urllib.request.Request(
        f"{os.environ['AWS_ENDPOINT_URL']}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}
    )
    urllib.request.urlopen(ask).close()
    for path in ("set/manifest.jsonl", "set", "tars/t-0.tar"):
        type(bucket).clear_instance_cache()
        with refuses("url_refused", url=Containing(f"s3://speech/{path}"), cause="remote_forbidden"):
            open_source(f"s3://speech/{path}")
    type(bucket).clear_instance_cache()
    (tmp_path / "one.jsonl").write_bytes(manifest([str(CLIPS[0]), "s3://speech/set/1.flac"]))
    refused = evaluate(**OPTIONS, data=tmp_path / "one.jsonl", out=tmp_path / "refused")
    assert refused.counts()["failed_items"] == 1
    assert any("may not be read" in str(row.reason) for row in refused.rows())
    for name in list(os.environ):
        if name.startswith("AWS_") and name != "AWS_ENDPOINT_URL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    type(bucket).clear_instance_cache()
    with refuses("url_refused", url="s3://speech/set/manifest.jsonl", cause="remote_credentials"):
        open_source("s3://speech/set/manifest.jsonl")
