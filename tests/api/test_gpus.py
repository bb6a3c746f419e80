"""What `doctor` says of GPUs, each fault of a machine played by what its libraries would answer."""

from __future__ import annotations

import pytest

from codec_bench import features, weights
from codec_bench.api import gpus
from codec_bench.api.doctor import doctor
from codec_bench.engine import device
from codec_bench.kernels import first_launch
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

torch = pytest.importorskip("torch")


@pytest.fixture
def machine(monkeypatch, rng):
    """A machine with two GPUs on which everything works; what each part of it answers can be changed."""
    texts = {"cpu": "it is a fine day", "cuda:0": "it is a fine day", "cuda:1": "it is a fine day"}

    class Whisper:
        rate_hz = 16_000

        def __init__(self, position):
            self.position = position

        def compute(self, signals, languages):
            text = texts[self.position]
            if isinstance(text, Exception):
                raise text
            return [{"transcript": text}]

    real = torch.ones
    monkeypatch.setattr(device, "cuda_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch, "ones", lambda *shape, device: real(*shape))
    monkeypatch.setattr(first_launch, "triton_fault", lambda position: None)
    monkeypatch.setattr(weights, "lookup", lambda name: name == "whisper-base" or None)
    monkeypatch.setattr(features, "load_feature", lambda name, device: Whisper(device))
    return texts


def result(rng_seconds=1.0, listed="two"):
    clip = Audio(torch.zeros(1, int(16_000 * rng_seconds)).numpy(), 16_000)
    return {finding.what: finding for finding in gpus.check_gpus(lambda: clip, listed)}


def test_a_machine_on_which_everything_works(machine):
    findings = result()
    assert [f.state for f in findings.values()] == ["ok"] * 5
    same = findings["Whisper on cuda:1 and on the CPU"].found
    assert (same.code, same.parameters["model"]) == ("same_transcript", "whisper-base")


def test_empty_transcripts_of_one_gpu_are_wrong(machine):
    machine["cuda:1"] = ""
    findings = result()
    assert findings["Whisper on cuda:0 and on the CPU"].state == "ok"
    wrong = findings["Whisper on cuda:1 and on the CPU"]
    assert wrong.state == "wrong" and "driver" in wrong.do


def test_a_word_that_rounding_decides_is_no_fault(machine):
    machine["cuda:0"] = "it is a fine day."
    assert result()["Whisper on cuda:0 and on the CPU"].state == "note"


def test_a_recogniser_that_fails_says_why(machine):
    machine["cuda:0"] = RuntimeError("Library libcublas.so.12 is not found")
    wrong = result()["Whisper on cuda:0 and on the CPU"]
    assert wrong.state == "wrong" and "libcublas" in wrong.found


def test_without_a_checkpoint_nothing_is_compared(machine, monkeypatch):
    monkeypatch.setattr(weights, "lookup", lambda name: None)
    assert result()["Whisper on cuda:0 and on the CPU"].do == "codec-bench weights fetch whisper-tiny-transformers"


def test_triton_without_a_compiler_is_a_note(machine, monkeypatch):
    monkeypatch.setattr(first_launch, "triton_fault", lambda position: "its first launch failed: no C compiler")
    finding = result()["Triton on cuda:0"]
    assert finding.state == "note" and finding.found.code == "triton_fault" and "compiler" in finding.do


def test_a_driver_that_torch_does_not_take_is_wrong(machine, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (finding,) = result().values()
    assert (
        finding.state == "wrong"
        and finding.found == Diagnostic("gpus_not_visible", visible=0, gpus=2)
        and "driver" in finding.do
    )


def test_a_gpu_that_the_process_may_not_use_is_wrong(monkeypatch):
    monkeypatch.setattr(device, "cuda_count", lambda: 0)
    (finding,) = result(listed="NVIDIA H200").values()
    assert finding.state == "wrong" and finding.found == Diagnostic("no_cuda", listed="NVIDIA H200")
    assert not gpus.check_gpus(lambda: None, "none")


def test_doctor_shows_it(machine):
    assert {"torch computes on the GPU", "Triton on cuda:0"} <= {finding.what for finding in doctor()}
