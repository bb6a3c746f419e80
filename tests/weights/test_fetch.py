"""Fetching from ModelScope's interface, URLs, mirrors and folders, all on this machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from refusals import refuses

from codec_bench.weights.fetch import fetch
from codec_bench.weights.find import download_folder, find, lookup
from codec_bench.weights.origin import RECORD
from codec_bench.weights.verify import verify

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = b'{"a": 1}'


def test_modelscope_takes_over_where_the_hub_fails(server, content, catalogue, monkeypatch, the_hub_is, states):
    the_hub_is(server.url)
    monkeypatch.setenv("MODELSCOPE_DOMAIN", server.url)
    server.add_modelscope("iic/asr", {"model.pt": content, "sub/config.yaml": CONFIG, "example.wav": b"x"})
    catalogue("asr", hub="owner/none", modelscope="iic/asr", files=[{"path": "model.pt"}, {"path": "sub/config.yaml"}])
    messages = []
    checkpoint = fetch("asr", notify=messages.append)
    assert any("trying modelscope" in text for text in messages)
    assert checkpoint.used == "iic/asr@master" and checkpoint.folder == download_folder() / "asr"
    assert checkpoint.path.read_bytes() == content and not (checkpoint.folder / "example.wav").exists()
    assert states("asr")["model.pt"] == ("same", "what was recorded when it was fetched")
    assert find("asr") == checkpoint


def test_modelscope_says_what_its_files_must_be(server, content, catalogue, monkeypatch, digest):
    monkeypatch.setenv("MODELSCOPE_DOMAIN", server.url)
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", "secret")
    server.add_modelscope("iic/asr", {"model.pt": content})
    path = "/api/v1/models/iic/asr/repo?Revision=master&FilePath=model.pt"
    server.files[path].content = content[:-1] + b"!" if content[-1:] != b"!" else content[:-1] + b"?"
    catalogue("asr", hub="owner/none", modelscope="iic/asr", files=[{"path": "model.pt"}])
    with refuses("download_digest", expected="03e1ab9f01005715921f41e63177c956d3d644304224bf4aff6432ef7cc08054"):
        fetch("asr", source="modelscope")
    assert lookup("asr") is None
    assert server.requests[-1].headers["Authorization"] == "Bearer secret"


def test_what_is_pinned_for_the_hub_is_not_queried_from_modelscope(
    server, content, catalogue, monkeypatch, digest, states
):
    monkeypatch.setenv("MODELSCOPE_DOMAIN", server.url)
    server.add_modelscope("iic/asr", {"model.pt": content})
    files = [{"path": "model.pt", "sha256": "0" * 64}]
    catalogue("asr", hub="owner/none", revision=COMMIT, modelscope="iic/asr", files=files)
    fetch("asr", source="modelscope")
    assert states("asr")["model.pt"] == ("same", "what was recorded when it was fetched")
    catalogue("asr", modelscope="iic/asr", files=files)
    assert states("asr")["model.pt"] == ("differs", "the catalogue")
    assert verify("asr")[0].reason.endswith(f"{digest(content)}; expected {'0' * 64}")


def test_a_source_that_an_entry_lacks_is_refused(plain):
    with refuses("weights_without_source", source="hub"):
        fetch("net", source="hub")
    with refuses("no_source", source="ftp"):
        fetch("net", source="ftp")


def test_modelscopes_own_cache_is_used(tmp_path, catalogue, states):
    catalogue("asr", modelscope="iic/asr-1.5", files=[{"path": "model.pt"}])
    for folder, used in (
        ("models/iic--asr-1.5/snapshots/master", "iic/asr-1.5@master"),
        ("hub/models/iic/asr-1___5", "iic/asr-1.5"),
    ):
        (tmp_path / "modelscope" / folder).mkdir(parents=True)
        (tmp_path / "modelscope" / folder / "model.pt").write_bytes(b"x")
        checkpoint = find("asr")
        assert (checkpoint.folder, checkpoint.used) == (tmp_path / "modelscope" / folder, used)
        assert states("asr") == {"model.pt": ("unknown", "")}
        shutil.rmtree(tmp_path / "modelscope")


def test_a_url_is_fetched_recorded_and_located(plain, content, digest, states):
    checkpoint = fetch("net")
    assert checkpoint.folder == download_folder() / "net" and checkpoint.path.read_bytes() == content
    assert checkpoint.used == f"net@sha256:{digest(content)[:12]}" and find("net") == checkpoint
    assert states("net") == {"net.pt": ("same", "the catalogue")}
    plain.requests.clear()
    assert fetch("net") == checkpoint and plain.requests == []


def test_an_interrupted_url_is_continued_by_the_same_command(plain, content):
    plain.files["/release/net.pt"].cuts = [200_000, 0]
    with refuses("download_broke_off", bytes=200000):
        fetch("net")
    assert lookup("net") is None, "a part is not taken for the checkpoint"
    assert fetch("net").path.read_bytes() == content
    assert plain.sent("/release/net.pt") == [200_000, 0, len(content) - 200_000]


def test_a_wrong_checksum_leaves_nothing_that_would_be_used(plain, content, digest):
    wrong = bytes(reversed(content))
    plain.files["/release/net.pt"].content = wrong
    with refuses("download_digest", digest=digest(wrong), expected=digest(content)):
        fetch("net")
    assert lookup("net") is None
    assert [path.name for path in (download_folder() / "net").iterdir() if path.name != ".lock"] == []


def test_a_mirror_takes_over_where_the_first_address_fails_or_lies(
    server, serve, content, catalogue, monkeypatch, the_hub_is, digest
):
    the_hub_is(server.url)
    monkeypatch.setenv("HF_TOKEN", "secret")
    serve("/copy/repo/resolve/abc/deep/net.pt", content)
    lying = serve("/lying/net.pt", content[::-1])
    for url in (server.url + "/gone/net.pt", lying):
        mirrors = ["hf://copy/repo@abc/deep/net.pt"]
        catalogue("net", files=[{"path": "net.pt", "url": url, "sha256": digest(content), "mirrors": mirrors}])
        messages = []
        checkpoint = fetch("net", notify=messages.append)
        assert checkpoint.path.read_bytes() == content and any("trying" in text for text in messages)
        assert server.requests[-1].headers["Authorization"] == "Bearer secret", "the mirror lies on the hub"
        shutil.rmtree(checkpoint.folder)


def test_what_must_be_downloaded_by_hand_says_how(catalogue, server):
    catalogue("drive", files=[{"path": "net.pth"}], homepage="https://example.org/net", manual="Press the button.")
    with refuses("by_hand") as caught:
        fetch("drive")
    for item in ("Press the button.", "net.pth", str(download_folder() / "drive"), "CODEC_BENCH_WEIGHTS"):
        assert item in caught.value.hint
    (download_folder() / "drive").mkdir(parents=True)
    (download_folder() / "drive" / "net.pth").write_bytes(b"x")
    assert find("drive").used == "drive@local" and fetch("drive") == find("drive")
    url = server.url + "/none.pth"
    catalogue("both", files=[{"path": "net.pth", "url": url}], manual="Press the button.")
    with refuses("weights_not_fetched", hint="Press the button."):
        fetch("both")


def test_a_folder_stands_in_for_the_network(hub, plain, content, tmp_path, monkeypatch, digest, states):
    for name in ("one", "net"):
        fetch(name, to=tmp_path / "stick")
    hub.close()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    one, net = (fetch(name, mirror=str(tmp_path / "stick")) for name in ("one", "net"))
    assert one.folder == download_folder() / "one" and one.used == f"owner/model@{COMMIT}"
    assert net.used == f"net@sha256:{digest(content)[:12]}"
    assert {state for name in ("one", "net") for state, _ in states(name).values()} == {"same"}
    shutil.rmtree(download_folder())
    broken = tmp_path / "stick" / "one" / "model.safetensors"
    broken.write_bytes(content[::-1])
    with refuses("digest_unexpected", expected="03e1ab9f01005715921f41e63177c956d3d644304224bf4aff6432ef7cc08054"):
        fetch("one", mirror=str(tmp_path / "stick"))
    assert lookup("one") is None


def test_a_hub_cache_and_a_bare_folder_stand_in_too(hub, content, tmp_path, monkeypatch):
    fetch("one")
    cache = tmp_path / "copied"
    shutil.copytree(tmp_path / "hf" / "hub", cache, symlinks=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    assert lookup("one") is None
    assert fetch("one", mirror=str(cache)).used == f"owner/model@{COMMIT}"
    shutil.rmtree(download_folder())
    config = next(cache.rglob("config.json")).resolve()
    config.chmod(0o644)
    config.write_bytes(b'{"a": 2}')
    with refuses("git_id_unexpected"):
        fetch("one", mirror=str(cache))
    config.write_bytes(CONFIG)
    shutil.rmtree(download_folder())
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(cache))
    assert find("one").used == f"owner/model@{COMMIT}"
    monkeypatch.delenv("CODEC_BENCH_WEIGHTS")
    bare = tmp_path / "bare"
    bare.mkdir()
    with refuses("mirror_folder_lacks", names="model.safetensors or pytorch_model.bin, config.json"):
        fetch("one", mirror=str(bare))
    (bare / "pytorch_model.bin").write_bytes(content)
    (bare / "config.json").write_bytes(CONFIG)
    checkpoint = fetch("one", mirror=str(bare))
    assert checkpoint.files == ("pytorch_model.bin", "config.json")
    assert find("one", str(bare)).files == checkpoint.files
    with refuses("no_mirror_folder"):
        fetch("one", mirror=str(tmp_path / "nowhere"), to=tmp_path / "shelf")


def test_a_plain_file_server_stands_in(plain, serve, content, tmp_path, catalogue, monkeypatch, digest):
    catalogue(
        "one",
        hub="owner/model",
        files=[{"path": "model.safetensors", "or": ["m.bin"]}, {"path": "x", "optional": True}],
    )
    serve("/shelf/one/m.bin", content)
    record = {
        "name": "one",
        "source": "owner/model",
        "revision": COMMIT,
        "files": {"m.bin": {"size": len(content), "sha256": digest(content)}},
    }
    serve(f"/shelf/one/{RECORD}", json.dumps(record).encode(), kind="application/json")
    checkpoint = fetch("one", mirror=plain.url + "/shelf")
    assert checkpoint.path.read_bytes() == content and checkpoint.used == f"owner/model@{COMMIT}"
    serve("/shelf/net/net.pt", content)
    assert fetch("net", mirror=plain.url + "/shelf").path.read_bytes() == content
    assert plain.sent("/release/net.pt") == []


def test_a_wrong_file_in_a_folder_of_ones_own_is_left_alone(plain, content, tmp_path, monkeypatch, states):
    mine = tmp_path / "mine" / "net" / "net.pt"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"something else")
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path / "mine"))
    assert states("net")["net.pt"] == ("differs", "the catalogue")
    with refuses("file_not_expected"):
        fetch("net")
    assert mine.read_bytes() == b"something else"


def test_two_processes_do_not_fetch_the_same(plain):
    from filelock import FileLock

    folder = download_folder() / "net"
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"), refuses("weights_being_fetched"):
        fetch("net")


def test_a_folder_that_may_not_be_written_is_named(plain, tmp_path):
    (tmp_path / "file").write_text("")
    with refuses("weights_not_written"):
        fetch("net", to=tmp_path / "file" / "shelf")


def test_a_path_in_the_catalogue_stays_inside(catalogue):
    from pydantic import ValidationError

    for path in ("../x", "/x", "a\\b", "a/../../x"):
        with pytest.raises(ValidationError, match="inside the checkpoint's folder"):
            catalogue("bad", files=[{"path": path}])
    with pytest.raises(ValidationError, match="mirrors need a sha256"):
        catalogue("bad", files=[{"path": "x", "mirrors": ["hf://a/b@c/x"]}])


def test_every_published_entry_is_sound():
    from codec_bench.weights.catalogue import checkpoint, checkpoint_names

    assert "encodec-24khz" in checkpoint_names()
    for name in checkpoint_names():
        entry = checkpoint(name)
        addresses = entry.hub or entry.modelscope or entry.manual or all(f.url or f.mirrors for f in entry.files)
        assert addresses, f"{name} can be had from nowhere"
        assert all(f.url is None or f.url.startswith("https://") for f in entry.files)
        assert Path(entry.files[0].path).suffix != ".json", f"{name}: the first file is the one that counts"
