"""DNSMOS as the package speechmos computes it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

RATE = 16_000
SCORES = ("sig", "bak", "ovrl", "p808")


class Remembering:
    """A network in onnxruntime that does not compute the same window twice: clips of one recording share theirs.

    It gives back what a run took. A session would keep 170 MB of each network for as long as it lives. It has one
    thread, because a second one waits by computing.
    """

    def __init__(self, file):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session, self.seen = onnxruntime.InferenceSession(file, options), {}
        self.options = onnxruntime.RunOptions()
        self.options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def run(self, names, inputs):
        """What the session gives."""
        key = hashlib.blake2b(b"".join(x.tobytes() for x in inputs.values())).digest()
        if key not in self.seen:
            self.seen[key] = self.session.run(names, inputs, self.options)
        return self.seen[key]


def speechmos():
    """The package's module; a test that asks for it is skipped without it."""
    return pytest.importorskip("speechmos.dnsmos", reason="the oracle; it needs librosa, onnxruntime and requests")


def speechmos_files():
    """The two networks in the package."""
    folder = Path(speechmos().__file__).parent / "dnsmos_models"
    return folder / "sig_bak_ovr.onnx", folder / "model_v8.onnx"


def speechmos_scores():
    """A function of a signal: what speechmos says, under our names."""
    model = speechmos().DNSMOS(*speechmos_files())
    model.onnx_sess, model.p808_onnx_sess = map(Remembering, speechmos_files())

    def score(signal):
        result = model(signal, RATE, False)
        return {name: float(result[f"{name}_mos"]) for name in SCORES}

    return score


def assert_scores(actual, expected, tolerance=1e-4):
    """That all scores agree."""
    for name in SCORES:
        assert actual[name] == pytest.approx(expected[name], abs=tolerance), name
