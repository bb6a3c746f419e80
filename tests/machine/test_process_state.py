"""What somebody else's code leaves changed is put back, and a codec finds its own state of torch again."""

from __future__ import annotations

import locale
import os
import signal
import sys
import tempfile
import warnings

import numpy as np
import pytest
import torch

from codec_bench import Audio, load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.machine.process_state import TorchState, preserved_process_state, preserved_torch_state

CODE = """
import numpy as np, torch
from codec_bench import Audio, CodecInfo, Codes, CodeStream

class Leaves:
    info = CodecInfo("leaves", (16000,), (1,), frame_rate_hz=16000)

    def __init__(self):
        torch.set_default_dtype(torch.float64)
        torch.autocast("cpu", torch.bfloat16).__enter__()
        self.seen = []

    def encode(self, batch):
        self.seen.append((torch.zeros(1).dtype, torch.is_autocast_enabled("cpu")))
        values = [np.round((a.samples + 1) * 7).astype(int) for a in batch]
        return [Codes((CodeStream(v, 16, 16000),), a.num_samples, 16000) for v, a in zip(values, batch)]

    def decode(self, codes):
        torch.set_default_dtype(torch.float16)
        return [Audio(c.streams[0].values / 7 - 1, 16000) for c in codes]
"""


@pytest.fixture
def torch_state():
    before = TorchState.read()
    yield before
    before.apply()


def test_a_codec_that_leaves_autocast_and_a_default_type_changes_neither_for_others(tmp_path, torch_state):
    (tmp_path / "own.py").write_text(CODE)
    codec = load_codec(f"{tmp_path}/own.py:Leaves")
    assert TorchState.read() == torch_state
    for _ in range(2):
        reconstruct(codec, [Audio(np.zeros(1600, np.float32), 16000)])
        assert TorchState.read() == torch_state
    assert codec.seen == [(torch.float64, True), (torch.float16, True)], "it finds the state that it left"


def test_an_import_puts_everything_back(torch_state, tmp_path):
    before = (
        os.getcwd(), list(sys.path), dict(os.environ), list(warnings.filters), np.geterr(), np.mean, torch.stft,
        locale.setlocale(locale.LC_ALL), signal.getsignal(signal.SIGTERM), TorchState.read(),
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="at the end"), preserved_process_state():
        os.chdir(tempfile.gettempdir())
        sys.path.clear()
        os.environ["CODEC_BENCH_TEST_LEFT"] = "1"
        del os.environ["PATH"]
        warnings.simplefilter("error")
        np.seterr(all="raise")
        np.mean = torch.stft = None
        locale.setlocale(locale.LC_ALL, "C.UTF-8" if before[7] == "C" else "C")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        torch.set_default_dtype(torch.float64)
        raise RuntimeError("at the end")
    after = (
        os.getcwd(), list(sys.path), dict(os.environ), list(warnings.filters), np.geterr(), np.mean, torch.stft,
        locale.setlocale(locale.LC_ALL), signal.getsignal(signal.SIGTERM), TorchState.read(),
    )  # fmt: skip
    assert after == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_code_forked_ends_where_the_code_returns():
    with preserved_torch_state():
        child = os.fork()
    if child == 0:
        os._exit(9)  # it came back into our code, whose next call would fork again
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
