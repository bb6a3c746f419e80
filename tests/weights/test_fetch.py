"""Fetching through the real huggingface_hub, ModelScope's interface, URLs, mirrors and folders, all on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from codec_bench.errors import UserError, WeightsError
from codec_bench.weights.find import download_folder, find, lookup
from codec_bench.weights.origin import RECORD, git_id_of
from codec_bench.weights.verify import verify

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = b'{"a": 1}'


def fetch(name, **how):
    from codec_bench.weights.fetch import fetch as get

    return get(name, **how)


def the_hub_is(url, monkeypatch):
    """huggingface_hub reads HF_ENDPOINT when it is imported; the command line's tests set that."""
    monkeypatch.setattr(import_module("codec_bench.weights.fetch"), "_hub_endpoint", lambda: url)


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def hub(server, content, monkeypatch, catalogue):
    """A repository `owner/model` on a local hub, and its entry."""
    the_hub_is(server.url, monkeypatch)
    files = {"model.safetensors": content, "config.json": CONFIG, "README.md": b"hello"}
    server.add_hub("owner/model", files, lfs={"model.safetensors"})
    catalogue(
        "one",
        hub="owner/model",
        files=[{"path": "model.safetensors", "or": ["pytorch_model.bin"]}, {"path": "config.json"}],
    )
    return server


@pytest.fixture
def plain(server, serve, content, catalogue):
    """A file at a URL, and its entry."""
    url = serve("/release/net.pt", content)
    catalogue("net", files=[{"path": "net.pt", "url": url, "size": len(content), "sha256": digest(content)}])
    return server


def states(name):
    return {each.path: (each.state, each.against) for each in verify(name)}


# -------------------------------------------------------------------------------------------------------------- hub


def test_a_hub_repository_lands_in_the_hubs_cache_and_is_found_offline(hub, content, monkeypatch):
    said = []
    found = fetch("one", tell=said.append)
    assert found.used == f"owner/model@{COMMIT}" and found.files == ("model.safetensors", "config.json")
    assert found.path.read_bytes() == content
    assert not (found.folder / "README.md").exists(), "only the entry's files are fetched"
    assert "licence of the weights: MIT" in said[0] and "700 kB" in said[1]
    hub.close()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert find("one") == found and find("one", "owner/model") == found
    by = "what the hub said when it was fetched"
    assert states("one") == {"model.safetensors": ("same", by), "config.json": ("same", by)}
    assert fetch("one") == found, "what is here needs no network"


def test_the_preferred_form_is_fetched_and_the_other_only_without_it(hub, content):
    hub.add_hub("owner/model", {"pytorch_model.bin": content, "config.json": CONFIG}, lfs={"pytorch_model.bin"})
    assert fetch("one").files == ("pytorch_model.bin", "config.json")


def test_both_forms_are_not_fetched(hub, content):
    files = {"pytorch_model.bin": content, "model.safetensors": content[::-1], "config.json": CONFIG}
    hub.add_hub("owner/model", files, lfs={"pytorch_model.bin", "model.safetensors"})
    found = fetch("one")
    assert found.files[0] == "model.safetensors" and not (found.folder / "pytorch_model.bin").exists()


def test_an_interrupted_hub_download_is_continued(hub, content, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)
    served = hub.files[f"/owner/model/resolve/{COMMIT}/model.safetensors"]
    served.cuts = [300_000]
    assert fetch("one").path.read_bytes() == content
    sent = hub.sent(f"/owner/model/resolve/{COMMIT}/model.safetensors")
    assert sent == [300_000, len(content) - (4 << 16)], "four whole chunks had come"


def test_a_hub_checkpoint_goes_into_a_folder(hub, content, tmp_path, monkeypatch):
    found = fetch("one", to=tmp_path / "shelf")
    assert found.folder == tmp_path / "shelf" / "one" and found.path.read_bytes() == content
    assert json.loads((found.folder / RECORD).read_text())["revision"] == COMMIT
    assert lookup("one") is None, "a folder of one's own is used when it is named"
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", os.pathsep.join((str(tmp_path / "none"), str(tmp_path / "shelf"))))
    assert find("one") == found
    assert {state for state, _ in states("one").values()} == {"same"}
    found.path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert states("one")["model.safetensors"][0] == "differs"
    assert fetch("one", to=tmp_path / "shelf").path.read_bytes() == content


def test_a_corrupted_blob_is_found_and_fetched_again(hub, content):
    found = fetch("one")
    blob = found.path.resolve()
    blob.chmod(0o644)
    blob.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    broken = {each.path: each for each in verify("one")}["model.safetensors"]
    assert broken.state == "differs" and digest(content) in broken.reason and digest(blob.read_bytes()) in broken.reason
    config = (found.folder / "config.json").resolve()
    config.chmod(0o644)
    config.write_bytes(b'{"a": 2}')
    broken = {each.path: each for each in verify("one")}["config.json"]
    assert broken.state == "differs" and git_id_of(config) in broken.reason
    assert {state for state, _ in ((c.state, c.path) for c in verify("one", fetch("one")))} == {"same"}
    assert find("one").path.read_bytes() == content


def test_what_the_hub_says_is_not_the_catalogues_file_is_not_fetched(hub, content, catalogue):
    catalogue("pinned", hub="owner/model", revision=COMMIT, files=[{"path": "model.safetensors", "sha256": "0" * 64}])
    with pytest.raises(WeightsError, match=f"SHA-256 {digest(content)}; expected {'0' * 64}"):
        fetch("pinned")
    assert hub.sent(f"/owner/model/resolve/{COMMIT}/model.safetensors") == []


def test_a_pinned_commit_is_fetched_even_where_another_one_is(hub, content, catalogue):
    other = "f" * 40
    fetch("one")
    hub.add_hub("owner/model", {"model.safetensors": content[::-1]}, lfs={"model.safetensors"}, commit=other)
    catalogue("pinned", hub="owner/model", revision=other, files=[{"path": "model.safetensors"}])
    assert find("pinned").used == f"owner/model@{COMMIT}", "what is here is used, under its own name"
    assert fetch("pinned").used == f"owner/model@{other}"
    assert find("pinned").path.read_bytes() == content[::-1] and find("one").path.read_bytes() == content


def test_a_gated_repository_names_the_page_and_the_token(hub, server):
    server.answers["/api/models/owner/model/revision/main"] = (403, {"X-Error-Code": "GatedRepo"}, b"{}")
    server.answers["/api/models/owner/model"] = server.answers["/api/models/owner/model/revision/main"]
    with pytest.raises(WeightsError, match="gated") as caught:
        fetch("one")
    assert f"{server.url}/owner/model" in caught.value.hint and "HF_TOKEN" in caught.value.hint


def test_a_repository_that_is_not_there_is_one_sentence(hub, server, catalogue):
    catalogue("two", hub="owner/other", files=[{"path": "x"}])
    server.answers["/api/models/owner/other"] = (401, {"X-Error-Code": "RepoNotFound"}, b"{}")
    with pytest.raises(WeightsError, match="owner/other' does not exist") as caught:
        fetch("two")
    assert "HF_TOKEN" in caught.value.hint and "\n" not in caught.value.message
    catalogue("three", hub="owner/model", revision="v9", files=[{"path": "x"}])
    server.answers["/api/models/owner/model/revision/v9"] = (404, {"X-Error-Code": "RevisionNotFound"}, b"{}")
    with pytest.raises(WeightsError, match="has no revision 'v9'"):
        fetch("three")
    catalogue("four", hub="owner/model", files=[{"path": "lost.pt", "or": ["lost.bin"]}])
    with pytest.raises(WeightsError, match=r"has no lost\.pt and no lost\.bin"):
        fetch("four")


def test_without_a_network_it_fails_at_once(hub, monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    hub.close()
    with pytest.raises(WeightsError, match="could not be reached") as caught:
        fetch("one")
    assert "--from FOLDER" in caught.value.hint and "\n" not in caught.value.message
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(WeightsError, match="HF_HUB_OFFLINE is set") as caught:
        fetch("one")
    assert "--from FOLDER" in caught.value.hint
    assert sum(slept) == 0  # waiting would not help


def test_a_full_disk_is_found_out_before(hub, monkeypatch):
    from types import SimpleNamespace

    monkeypatch.setattr("codec_bench.weights.download.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(WeightsError, match="'one' needs 700 kB"):
        fetch("one")
    assert hub.sent(f"/owner/model/resolve/{COMMIT}/model.safetensors") == []


# ------------------------------------------------------------------------------------------------------- ModelScope


def test_modelscope_takes_over_where_the_hub_fails(server, content, catalogue, monkeypatch):
    the_hub_is(server.url, monkeypatch)
    monkeypatch.setenv("MODELSCOPE_DOMAIN", server.url)
    server.add_modelscope("iic/asr", {"model.pt": content, "sub/config.yaml": CONFIG, "example.wav": b"x"})
    catalogue("asr", hub="owner/none", modelscope="iic/asr", files=[{"path": "model.pt"}, {"path": "sub/config.yaml"}])
    said = []
    found = fetch("asr", tell=said.append)
    assert any("trying modelscope" in text for text in said)
    assert found.used == "iic/asr@master" and found.folder == download_folder() / "asr"
    assert found.path.read_bytes() == content and not (found.folder / "example.wav").exists()
    assert states("asr")["model.pt"] == ("same", "what was recorded when it was fetched")
    assert find("asr") == found


def test_modelscope_says_what_its_files_must_be(server, content, catalogue, monkeypatch):
    monkeypatch.setenv("MODELSCOPE_DOMAIN", server.url)
    monkeypatch.setenv("MODELSCOPE_API_TOKEN", "secret")
    server.add_modelscope("iic/asr", {"model.pt": content})
    path = "/api/v1/models/iic/asr/repo?Revision=master&FilePath=model.pt"
    server.files[path].content = content[:-1] + b"!" if content[-1:] != b"!" else content[:-1] + b"?"
    catalogue("asr", hub="owner/none", modelscope="iic/asr", files=[{"path": "model.pt"}])
    with pytest.raises(WeightsError, match=f"expected {digest(content)}"):
        fetch("asr", source="modelscope")
    assert lookup("asr") is None
    assert server.requests[-1].headers["Authorization"] == "Bearer secret"


def test_what_is_pinned_for_the_hub_is_not_asked_of_modelscope(server, content, catalogue, monkeypatch):
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
    with pytest.raises(UserError, match="have no source 'hub'"):
        fetch("net", source="hub")
    with pytest.raises(UserError, match="no source 'ftp'"):
        fetch("net", source="ftp")


def test_modelscopes_own_cache_is_used(tmp_path, catalogue):
    catalogue("asr", modelscope="iic/asr-1.5", files=[{"path": "model.pt"}])
    for folder, used in (
        ("models/iic--asr-1.5/snapshots/master", "iic/asr-1.5@master"),
        ("hub/models/iic/asr-1___5", "iic/asr-1.5"),
    ):
        (tmp_path / "modelscope" / folder).mkdir(parents=True)
        (tmp_path / "modelscope" / folder / "model.pt").write_bytes(b"x")
        found = find("asr")
        assert (found.folder, found.used) == (tmp_path / "modelscope" / folder, used)
        assert states("asr") == {"model.pt": ("unknown", "")}
        shutil.rmtree(tmp_path / "modelscope")


# ------------------------------------------------------------------------------------- URLs, mirrors, servers, folders


def test_a_url_is_fetched_recorded_and_found(plain, content):
    found = fetch("net")
    assert found.folder == download_folder() / "net" and found.path.read_bytes() == content
    assert found.used == f"net@sha256:{digest(content)[:12]}" and find("net") == found
    assert states("net") == {"net.pt": ("same", "the catalogue")}
    plain.requests.clear()
    assert fetch("net") == found and plain.requests == []


def test_an_interrupted_url_is_continued_by_the_same_command(plain, content):
    plain.files["/release/net.pt"].cuts = [200_000, 0]
    with pytest.raises(WeightsError, match="broke off after 200000 bytes"):
        fetch("net")
    assert lookup("net") is None, "a part is not taken for the checkpoint"
    assert fetch("net").path.read_bytes() == content
    assert plain.sent("/release/net.pt") == [200_000, 0, len(content) - 200_000]


def test_a_wrong_checksum_leaves_nothing_that_would_be_taken(plain, content):
    wrong = bytes(reversed(content))
    plain.files["/release/net.pt"].content = wrong
    with pytest.raises(WeightsError) as caught:
        fetch("net")
    assert digest(wrong) in caught.value.message and digest(content) in caught.value.message
    assert lookup("net") is None
    assert [path.name for path in (download_folder() / "net").iterdir() if path.name != ".lock"] == []


def test_a_mirror_takes_over_where_the_first_address_fails_or_lies(server, serve, content, catalogue, monkeypatch):
    the_hub_is(server.url, monkeypatch)
    monkeypatch.setenv("HF_TOKEN", "secret")
    serve("/copy/repo/resolve/abc/deep/net.pt", content)
    lying = serve("/lying/net.pt", content[::-1])
    for url in (server.url + "/gone/net.pt", lying):
        mirrors = ["hf://copy/repo@abc/deep/net.pt"]
        catalogue("net", files=[{"path": "net.pt", "url": url, "sha256": digest(content), "mirrors": mirrors}])
        said = []
        found = fetch("net", tell=said.append)
        assert found.path.read_bytes() == content and any("trying" in text for text in said)
        assert server.requests[-1].headers["Authorization"] == "Bearer secret", "the mirror lies on the hub"
        shutil.rmtree(found.folder)


def test_what_must_be_downloaded_by_hand_says_how(catalogue, server):
    catalogue("drive", files=[{"path": "net.pth"}], homepage="https://example.org/net", manual="Press the button.")
    with pytest.raises(WeightsError, match=r"by hand from https://example\.org/net") as caught:
        fetch("drive")
    for part in ("Press the button.", "net.pth", str(download_folder() / "drive"), "CODEC_BENCH_WEIGHTS"):
        assert part in caught.value.hint
    (download_folder() / "drive").mkdir(parents=True)
    (download_folder() / "drive" / "net.pth").write_bytes(b"x")
    assert find("drive").used == "drive@local" and fetch("drive") == find("drive")
    url = server.url + "/none.pth"
    catalogue("both", files=[{"path": "net.pth", "url": url}], manual="Press the button.")
    with pytest.raises(WeightsError, match=r"could not be fetched: .*404") as caught:
        fetch("both")
    assert "Press the button." in caught.value.hint


def test_a_folder_stands_in_for_the_network(hub, plain, content, tmp_path, monkeypatch):
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
    with pytest.raises(WeightsError, match=f"expected {digest(content)}"):
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
    with pytest.raises(WeightsError, match="not what the hub gave"):
        fetch("one", mirror=str(cache))
    config.write_bytes(CONFIG)
    shutil.rmtree(download_folder())
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(cache))
    assert find("one").used == f"owner/model@{COMMIT}"
    monkeypatch.delenv("CODEC_BENCH_WEIGHTS")
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(WeightsError, match=r"no model\.safetensors or pytorch_model\.bin and no config\.json"):
        fetch("one", mirror=str(bare))
    (bare / "pytorch_model.bin").write_bytes(content)
    (bare / "config.json").write_bytes(CONFIG)
    found = fetch("one", mirror=str(bare))
    assert found.files == ("pytorch_model.bin", "config.json")
    assert find("one", str(bare)).files == found.files
    with pytest.raises(WeightsError, match="there is no folder"):
        fetch("one", mirror=str(tmp_path / "nowhere"), to=tmp_path / "shelf")


def test_another_hub_stands_in_by_its_address_and_gets_no_token(hub, content, catalogue, monkeypatch):
    the_hub_is("http://127.0.0.1:9", monkeypatch)
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert fetch("one", mirror=hub.url + "/").path.read_bytes() == content
    assert all("secret" not in str(r.headers) for r in hub.requests), "a mirror is not given the hub's token"
    hub.requests.clear()
    the_hub_is(hub.url, monkeypatch)
    catalogue("two", hub="owner/model", files=[{"path": "README.md"}])
    fetch("two")
    assert hub.requests and all(r.headers["authorization"] == "Bearer secret" for r in hub.requests)


def test_a_plain_file_server_stands_in(plain, serve, content, tmp_path, catalogue, monkeypatch):
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
    found = fetch("one", mirror=plain.url + "/shelf")
    assert found.path.read_bytes() == content and found.used == f"owner/model@{COMMIT}"
    serve("/shelf/net/net.pt", content)
    assert fetch("net", mirror=plain.url + "/shelf").path.read_bytes() == content
    assert plain.sent("/release/net.pt") == []


def test_a_wrong_file_in_a_folder_of_ones_own_is_left_alone(plain, content, tmp_path, monkeypatch):
    mine = tmp_path / "mine" / "net" / "net.pt"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"something else")
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path / "mine"))
    assert states("net")["net.pt"] == ("differs", "the catalogue")
    with pytest.raises(WeightsError, match="a folder of your own"):
        fetch("net")
    assert mine.read_bytes() == b"something else"


def test_two_processes_do_not_fetch_the_same(plain):
    from filelock import FileLock

    folder = download_folder() / "net"
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"), pytest.raises(WeightsError, match="another process is fetching"):
        fetch("net")


def test_a_folder_that_may_not_be_written_is_named(plain, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsError, match="could not be written"):
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
