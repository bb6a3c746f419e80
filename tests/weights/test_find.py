"""What a caller may name as weights, and the message if they are not there."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.weights.find import find, lookup

FILES = [
    {"path": "net.safetensors", "or": ["net.bin"]},
    {"path": "config.json"},
    {"path": "extra.json", "optional": True},
]


@pytest.fixture
def entry(catalogue):
    return catalogue("net", hub="owner/net", files=FILES)


@pytest.fixture
def folder(tmp_path):
    built = tmp_path / "given"
    built.mkdir()
    (built / "config.json").write_text("{}")
    (built / "net.bin").write_bytes(b"x")
    return built


def test_a_folder_a_file_and_a_hub_id(entry, folder, tmp_path):
    checkpoint = find("net", str(folder))
    assert (checkpoint.folder, checkpoint.used, checkpoint.files) == (folder, str(folder), ("net.bin", "config.json"))
    assert checkpoint.path == folder / "net.bin"
    (folder / "extra.json").write_text("{}")
    assert find("net", str(folder)).files == ("net.bin", "config.json", "extra.json")
    mine = folder / "mine.bin"
    mine.write_bytes(b"y")
    assert find("net", str(mine)).path == mine and find("net", str(mine)).files[1] == "config.json"
    repo = tmp_path / "hf" / "hub" / "models--someone--net"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    (repo / "snapshots").mkdir()
    (repo / "snapshots" / "abc").symlink_to(folder)
    assert find("net", "someone/net").used == find("net", "someone/net@abc").used == "someone/net@abc"
    assert lookup("net") is None


def test_what_is_missing_is_named(entry, folder):
    (folder / "config.json").unlink()
    with refuses("weights_folder_lacks", names="config.json"):
        find("net", str(folder))
    with refuses("weights_lack_siblings", names="config.json"):
        find("net", str(folder / "net.bin"))
    (folder / "net.bin").unlink()
    with refuses("weights_folder_lacks", names="net.safetensors or net.bin, config.json"):
        find("net", str(folder))
    with refuses("weights_not_local", hint="hf download some/net --revision v1"):
        find("net", "some/net@v1")
    for text in ("/no/such/folder", "./nothing", "nothing", "a b/c"):
        with refuses("no_such_weights"):
            find("net", text)
    with refuses("weights_missing", names="'net'") as caught:
        find("net")
    for item in ("codec-bench weights fetch net", "hf download owner/net", "CODEC_BENCH_WEIGHTS"):
        assert item in caught.value.hint


def test_a_file_in_a_subfolder_of_a_repository(catalogue, tmp_path):
    catalogue("deep", hub="owner/deep", files=[{"path": "a/b/net.pt"}, {"path": "config.json"}])
    repo = tmp_path / "hf" / "hub" / "models--owner--deep"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    snapshot = repo / "snapshots" / "abc"
    (snapshot / "a" / "b").mkdir(parents=True)
    (snapshot / "a" / "b" / "net.pt").write_bytes(b"x")
    assert lookup("deep") is None
    (snapshot / "config.json").write_text("{}")
    checkpoint = find("deep")
    assert checkpoint.folder == snapshot and checkpoint.path.read_bytes() == b"x"


def test_folders_in_the_variable_come_first_and_in_order(entry, folder, tmp_path, monkeypatch):
    import shutil

    roots = [tmp_path / "first", tmp_path / "second"]
    shutil.copytree(folder, roots[1] / "net")
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", f"{roots[0]}:{roots[1]}")
    assert find("net").folder == roots[1] / "net" and find("net").used == "net@local"
    shutil.copytree(folder, roots[0] / "owner" / "net")
    assert find("net").folder == roots[0] / "owner" / "net"
