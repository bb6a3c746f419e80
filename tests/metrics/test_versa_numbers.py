"""`versa/NAME` against a stand-in of VERSA's registry in a real worker process, and against
VERSA itself where it is.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.metrics import Inputs, build_metric, versa
from codec_bench.workers.environment import Environment, read_env

CHECKOUT = os.environ.get("CODEC_BENCH_TEST_VERSA")
STAND_IN = """
class Stoi:
    def __init__(self, options):
        self.gain = options.get("gain", 1.0)
    def compute(self, predictions, references=None, metadata=None):
        assert metadata == {"sample_rate": 8000} and predictions.dtype == "float64"
        if not predictions.any():
            raise ValueError("all zeros")
        return {"stoi": float(self.gain * abs(references - predictions).max()), "words": "a text", "bad": float("nan")}
class VersaScorer:
    class registry:
        get_metric = staticmethod({"stoi": Stoi, "srmr": Stoi}.get)
"""


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """A function that makes this interpreter, with a package `versa` of a folder, VERSA's environment."""
    (tmp_path / "versa").mkdir()
    (tmp_path / "versa" / "__init__.py").write_text("")
    (tmp_path / "versa" / "scorer_shared.py").write_text(STAND_IN)

    def use(folder):
        code = read_env("versa").code.read_text("utf-8").replace("annotations\n", "annotations\nimport sys\n", 1)
        worker = tmp_path / "worker.py"
        worker.write_text(code.replace("import sys\n", f"import sys\nsys.path.insert(0, {str(folder)!r})\n", 1))
        monkeypatch.setattr(versa, "make_environment", lambda spec: Environment(Path(sys.prefix), Path(sys.executable)))
        monkeypatch.setattr(versa, "read_env", lambda name: replace(read_env(name), code=worker))

    use(tmp_path)
    versa._worker.cache_clear()
    yield use
    versa._worker.cache_clear()


def items(rate_hz=8000):
    reference = np.random.default_rng(1).uniform(-0.4, 0.4, rate_hz).astype(np.float32)
    estimates = reference + np.float32(0.25), np.zeros(rate_hz, np.float32), reference + np.float32(1.5)
    return [Inputs(f"i{n}", rate_hz, estimate, reference) for n, estimate in enumerate(estimates)]


def test_numbers_and_failures_of_a_worker(environment, tmp_path):
    near, silent, far = build_metric("versa/stoi").compute(items())
    assert (near.status, near.value) == ("ok", pytest.approx(0.25, abs=1e-7))
    assert (silent.status, silent.code) == ("failed", "versa_raised")
    assert (far.status, far.code) == ("failed", "versa_out_of_range")
    (tmp_path / "options.yaml").write_text("- name: pesq\n- name: stoi\n  gain: 2.0\n")
    scaled = build_metric(f"versa/stoi[{tmp_path}/options.yaml]")
    assert scaled.compute(items()[:1])[0].value == pytest.approx(0.5, abs=1e-7)
    assert scaled.protocol != build_metric("versa/stoi").protocol


def test_what_versa_cannot_do_is_a_failure(environment):
    (score,) = build_metric("versa/srmr").compute(items()[:1])
    assert score.status == "failed"  # the stand-in needs a reference
    (score,) = build_metric("versa/nomad").compute(items()[:1])
    assert score.status == "failed" and score.reason.code == "worker_stopped"


def test_an_environment_that_cannot_be_built(environment, monkeypatch):
    attempts = []

    def fail(spec):
        attempts.append(spec)
        raise UserError("no network")

    monkeypatch.setattr(versa, "make_environment", fail)
    metric = build_metric("versa/stoi")
    for _ in range(2):
        assert [score.status for score in metric.compute(items())] == ["failed"] * 3
    assert len(attempts) == 1


def test_names_and_declarations(tmp_path):
    for name, facts in versa.NUMBERS.items():
        metric = build_metric(f"versa/{name}")
        assert metric.name == f"versa/{name}" and metric.kind == ("pair" if facts.is_pair else "single")
    with pytest.raises(UnknownName):
        build_metric("versa/nonsense")
    (tmp_path / "other.yaml").write_text("- name: pesq\n")
    with refuses("no_versa_entry"):
        build_metric(f"versa/stoi[{tmp_path}/other.yaml]")


@pytest.mark.skipif(CHECKOUT is None, reason="CODEC_BENCH_TEST_VERSA names no checkout of VERSA")
@pytest.mark.parametrize(("name", "ours"), [("stoi", "stoi"), ("estoi", "estoi"), ("pesq", "pesq_wb")])
def test_versas_own_code_gives_our_numbers(environment, name, ours, spoken_pairs):
    environment(CHECKOUT)
    pairs = [pair.inputs for pair in spoken_pairs(16_000) if pair.reference.size > 32_000][:3]
    theirs, expected = (build_metric(key).compute(pairs) for key in (f"versa/{name}", ours))
    assert len(pairs) == 3
    assert [score.value for score in theirs] == pytest.approx([score.value for score in expected], abs=1e-4)
