"""Fetching through the real huggingface_hub from a hub on this machine."""

from __future__ import annotations

import json
import os

from refusals import Containing, refuses

from codec_bench.weights.fetch import fetch
from codec_bench.weights.find import find, lookup
from codec_bench.weights.origin import RECORD, git_id_of
from codec_bench.weights.verify import verify

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = b'{"a": 1}'


def test_a_hub_repository_lands_in_the_hubs_cache_and_is_available_offline(hub, content, monkeypatch, states):
    messages = []
    checkpoint = fetch("one", notify=messages.append)
    assert checkpoint.used == f"owner/model@{COMMIT}" and checkpoint.files == ("model.safetensors", "config.json")
    assert checkpoint.path.read_bytes() == content
    assert not (checkpoint.folder / "README.md").exists(), "only the entry's files are fetched"
    assert "licence of the weights: MIT" in messages[0] and "700 kB" in messages[1]
    hub.close()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert find("one") == checkpoint and find("one", "owner/model") == checkpoint
    by = "the hub's digest when it was fetched"
    assert states("one") == {"model.safetensors": ("same", by), "config.json": ("same", by)}
    assert fetch("one") == checkpoint, "what is here needs no network"


def test_the_preferred_form_is_fetched_and_the_other_only_without_it(hub, content):
    hub.add_hub("owner/model", {"pytorch_model.bin": content, "config.json": CONFIG}, lfs={"pytorch_model.bin"})
    assert fetch("one").files == ("pytorch_model.bin", "config.json")


def test_both_forms_are_not_fetched(hub, content):
    files = {"pytorch_model.bin": content, "model.safetensors": content[::-1], "config.json": CONFIG}
    hub.add_hub("owner/model", files, lfs={"pytorch_model.bin", "model.safetensors"})
    checkpoint = fetch("one")
    assert checkpoint.files[0] == "model.safetensors" and not (checkpoint.folder / "pytorch_model.bin").exists()


def test_an_interrupted_hub_download_is_continued(hub, content, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)
    served = hub.files[f"/owner/model/resolve/{COMMIT}/model.safetensors"]
    served.cuts = [300_000]
    assert fetch("one").path.read_bytes() == content
    sent = hub.sent(f"/owner/model/resolve/{COMMIT}/model.safetensors")
    assert sent == [300_000, len(content) - (4 << 16)], "four whole chunks had come"


def test_a_hub_checkpoint_goes_into_a_folder(hub, content, digest, tmp_path, monkeypatch, states):
    checkpoint = fetch("one", to=tmp_path / "shelf")
    assert checkpoint.folder == tmp_path / "shelf" / "one" and checkpoint.path.read_bytes() == content
    record = json.loads((checkpoint.folder / RECORD).read_text())
    assert record["revision"] == COMMIT
    assert record["files"]["model.safetensors"] == {"size": len(content), "sha256": digest(content), "url": None}
    assert lookup("one") is None, "a folder of one's own is used when it is named"
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", os.pathsep.join((str(tmp_path / "none"), str(tmp_path / "shelf"))))
    assert find("one") == checkpoint
    assert {state for state, _ in states("one").values()} == {"same"}
    checkpoint.path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert states("one")["model.safetensors"][0] == "differs"
    assert fetch("one", to=tmp_path / "shelf").path.read_bytes() == content


def test_a_corrupted_blob_is_detected_and_fetched_again(hub, content, digest):
    checkpoint = fetch("one")
    blob = checkpoint.path.resolve()
    blob.chmod(0o644)
    blob.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    broken = {each.path: each for each in verify("one")}["model.safetensors"]
    assert broken.state == "differs" and digest(content) in broken.reason and digest(blob.read_bytes()) in broken.reason
    config = (checkpoint.folder / "config.json").resolve()
    config.chmod(0o644)
    config.write_bytes(b'{"a": 2}')
    broken = {each.path: each for each in verify("one")}["config.json"]
    assert broken.state == "differs" and git_id_of(config) in broken.reason
    assert {state for state, _ in ((c.state, c.path) for c in verify("one", fetch("one")))} == {"same"}
    assert find("one").path.read_bytes() == content


def test_what_the_hub_says_is_not_the_catalogues_file_is_not_fetched(hub, content, catalogue, digest):
    catalogue("pinned", hub="owner/model", revision=COMMIT, files=[{"path": "model.safetensors", "sha256": "0" * 64}])
    with refuses(
        "hub_digest_unexpected",
        sha256="03e1ab9f01005715921f41e63177c956d3d644304224bf4aff6432ef7cc08054",
        expected="0000000000000000000000000000000000000000000000000000000000000000",
    ):
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
    with refuses("repository_gated", hint=f"{server.url}/owner/model") as caught:
        fetch("one")
    assert "HF_TOKEN" in caught.value.hint


def test_a_repository_that_is_not_there_is_one_sentence(hub, server, catalogue):
    catalogue("two", hub="owner/other", files=[{"path": "x"}])
    server.answers["/api/models/owner/other"] = (401, {"X-Error-Code": "RepoNotFound"}, b"{}")
    with refuses("hub_missing", subject=Containing("owner/other"), hint="HF_TOKEN") as caught:
        fetch("two")
    assert "\n" not in caught.value.message
    catalogue("three", hub="owner/model", revision="v9", files=[{"path": "x"}])
    server.answers["/api/models/owner/model/revision/v9"] = (404, {"X-Error-Code": "RevisionNotFound"}, b"{}")
    with refuses("repository_revision", revision="v9"):
        fetch("three")
    catalogue("four", hub="owner/model", files=[{"path": "lost.pt", "or": ["lost.bin"]}])
    with refuses("source_lacks", names="lost.pt, lost.bin"):
        fetch("four")


def test_another_hub_stands_in_by_its_address_and_gets_no_token(hub, content, catalogue, monkeypatch, the_hub_is):
    the_hub_is("http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert fetch("one", mirror=hub.url + "/").path.read_bytes() == content
    assert all("secret" not in str(r.headers) for r in hub.requests), "a mirror is not given the hub's token"
    hub.requests.clear()
    the_hub_is(hub.url)
    catalogue("two", hub="owner/model", files=[{"path": "README.md"}])
    fetch("two")
    assert hub.requests and all(r.headers["authorization"] == "Bearer secret" for r in hub.requests)


def test_the_hubs_progress_bars_are_off_while_it_fetches_into_a_log_and_on_again_afterwards(hub, monkeypatch):
    from huggingface_hub import constants
    from huggingface_hub.utils import are_progress_bars_disabled, enable_progress_bars

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", None)
    enable_progress_bars()
    off = []
    fetch("one", notify=lambda text: off.append(are_progress_bars_disabled()))
    assert off[-1] and not are_progress_bars_disabled()


def test_a_server_that_is_broken_is_one_sentence(hub, server):
    server.answers["/api/models/owner/model/revision/main"] = (500, {}, b"{}")
    server.answers["/api/models/owner/model"] = server.answers["/api/models/owner/model/revision/main"]
    with refuses("hub_not_fetched", answer="500", hint="--from URL") as caught:
        fetch("one")
    assert "\n" not in caught.value.message


def test_without_a_network_it_fails_at_once(hub, monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    hub.close()
    with refuses("hub_unreachable", hint="--from FOLDER") as caught:
        fetch("one")
    assert "\n" not in caught.value.message
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refuses("offline", variable="HF_HUB_OFFLINE", hint="--from FOLDER"):
        fetch("one")
    assert sum(slept) == 0  # waiting would not help


def test_a_full_disk_is_detected_before(hub, monkeypatch):
    from types import SimpleNamespace

    monkeypatch.setattr("codec_bench.weights.download.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with refuses("no_disk_space", subject="'one'", needed="700 kB"):
        fetch("one")
    assert hub.sent(f"/owner/model/resolve/{COMMIT}/model.safetensors") == []
