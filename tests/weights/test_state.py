"""Reading tensors: what is whole is read, and what is not is one sentence, without much memory."""

from __future__ import annotations

import time
import zipfile

import pytest
import torch
from refusals import refuses

from codec_bench.features.dnsmos_pro import tensors_of
from codec_bench.weights import state
from codec_bench.weights.pretrained import load_pretrained
from codec_bench.weights.state import load_into, load_state, unfilled


def bomb(path):
    """An archive of torch.save whose one tensor of 256 MiB of zeros is compressed to a few hundred kilobytes."""
    torch.save({"w": torch.zeros(16)}, path)
    with zipfile.ZipFile(path) as plain:
        entries = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in entries.items():
            with out.open(name, "w") as entry:
                for _ in range(256 if name.endswith("data/0") else 0):
                    entry.write(bytes(1 << 20))
                entry.write(data)
    return path


def test_tensors_are_read(tmp_path):
    tensors = {"a": torch.arange(5.0), "zeros": torch.zeros(100_000)}
    torch.save({"model": tensors, "epoch": 3}, tmp_path / "x.pt")
    read = load_state(tmp_path / "x.pt", key="model")
    assert read.keys() == tensors.keys() and all(torch.equal(read[name], tensors[name]) for name in tensors)
    torch.save(tensors, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert torch.equal(load_state(tmp_path / "old.pt")["a"], tensors["a"])


def test_an_archive_that_grows_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = bomb(tmp_path / "bomb.pt")
    assert path.stat().st_size < 1 << 20
    with monkeypatch.context() as patched:
        patched.setattr(torch, "load", lambda *_a, **_k: pytest.fail("it was unpacked"))
        start = time.process_time()
        with refuses("weights_unpack_too_large", path="bomb.pt", size=261908, unpacked=268435733):
            load_state(path)
        assert time.process_time() - start < 1.0
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / "pytorch_model.bin")
    with refuses("weights_unpack_too_large"):
        load_pretrained(None, str(folder), {})


def test_an_archive_whose_directory_lies_of_its_size_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = bomb(tmp_path / "bomb.pt")
    size = (256 << 20) + 64  # of the tensor, as its entry in the directory says
    data = path.read_bytes()
    assert data.count(size.to_bytes(4, "little")) >= 1
    path.write_bytes(data.replace(size.to_bytes(4, "little"), (64).to_bytes(4, "little")))
    monkeypatch.setattr(torch, "load", lambda *_a, **_k: pytest.fail("it was unpacked"))
    for read in (load_state, tensors_of):
        with refuses("tensors_compressed", path="bomb.pt"):
            read(path)


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04 cut", b"\x80\x04.", b"{}", bytes(5000), b"PK\x05\x06" + bytes(18), b"PK\x05\x06"
        + b"\xff" * 18]
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_what_is_no_checkpoint_is_one_sentence(tmp_path, data, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(data)
    with refuses("weights_not_read", path=path.name):
        load_state(path)


def test_the_limit_is_above_what_torch_writes(tmp_path):
    torch.save({str(n): torch.zeros(1) for n in range(200)}, tmp_path / "x.pt")
    with zipfile.ZipFile(tmp_path / "x.pt") as archive:
        assert (
            sum(e.file_size for e in archive.infolist()) < (tmp_path / "x.pt").stat().st_size < state.MOST_GROWTH * 1e6
        )


@pytest.mark.parametrize("new", [True, False])
def test_a_word_without_end_is_refused_before_torch_reads_it(tmp_path, monkeypatch, new):
    torch.save({"w" * 20_000: torch.zeros(1)}, tmp_path / "x.pt", _use_new_zipfile_serialization=new)
    monkeypatch.setattr(torch, "load", lambda *_a, **_k: pytest.fail("torch read it"))
    with refuses("word_too_long", most=2048):
        load_state(tmp_path / "x.pt")


def test_a_name_that_is_never_closed_is_refused_before_torch_reads_it(tmp_path, monkeypatch):
    torch.save({"w": torch.zeros(1)}, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
    complete = (tmp_path / "x.pt").read_bytes()
    cut = complete.index(b"FloatStorage")
    (tmp_path / "x.pt").write_bytes(complete[:cut] + b"Long" + b"x" * 20_000)
    monkeypatch.setattr(torch, "load", lambda *_a, **_k: pytest.fail("torch read it"))
    with refuses("word_too_long", most=2048):
        load_state(tmp_path / "x.pt")


def test_a_module_without_memory_keeps_its_constants_and_is_filled_from_the_file(tmp_path):
    class Net(torch.nn.Module):
        def __init__(self, device):
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)
            self.register_buffer("constant", torch.ones(2, device=device), persistent=False)
            self.register_buffer("index", torch.arange(2))

    net = unfilled(lambda: Net(None))
    assert net.layer.weight.is_meta and net.constant.tolist() == [1, 1]
    tensors = {
        "layer.weight": torch.full((3, 2), 2, dtype=torch.int8),
        "layer.bias": torch.zeros(3).half(),
        "index": torch.ones(2),
    }
    load_into(net, tensors, path=tmp_path)
    assert [value.dtype for value in net.state_dict().values()] == [torch.int64, torch.float32, torch.float32], (
        "whatever the file has"
    )
    assert net.layer(net.constant).tolist() == [4, 4, 4]
    with pytest.raises(AssertionError, match="constant"):
        unfilled(lambda: Net("meta"))
