"""Triton is used where a first launch worked; elsewhere torch computes, and the reason is reported once."""

from __future__ import annotations

import warnings

import pytest
import torch

from codec_bench.kernels import first_launch
from codec_bench.kernels.rvq import dispatch

gpu = pytest.importorskip(
    "codec_bench.kernels.first_launch.gpu", reason="Triton is not installed: pip install 'codec-bench[gpu]'"
)


@pytest.fixture(autouse=True)
def untried():
    first_launch.triton_fault.cache_clear()
    yield
    first_launch.triton_fault.cache_clear()


def chosen(device="cuda:0"):
    return dispatch.implementation(device, dispatch.Euclidean(torch.zeros(1, 4, 8)))


def without_compiler(_):
    raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable")


@pytest.mark.parametrize(
    ("launch", "reason"),
    [(without_compiler, "RuntimeError: Failed to find C compiler. Please"), (lambda _: False, "gave wrong numbers")],
)
def test_where_the_first_launch_fails_torch_computes_and_says_why_once(monkeypatch, launch, reason):
    monkeypatch.setattr(gpu, "adds_one", launch)
    with pytest.warns(UserWarning, match=f"Triton does not work on 'cuda:0'.*{reason}"):
        assert chosen() == "torch"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chosen() == "torch"


def test_every_device_is_tried_once(monkeypatch):
    tried = []
    monkeypatch.setattr(gpu, "adds_one", lambda device: tried.append(device) or True)
    assert [chosen(device) for device in ("cuda:0", "cuda:1", "cuda:0", "cpu")] == [
        "triton",
        "triton",
        "triton",
        "blas",
    ]
    assert tried == ["cuda:0", "cuda:1"]


@pytest.mark.gpu
def test_on_a_gpu():
    assert first_launch.triton_fault("cuda:0") is None
