"""Packages that write over each other's files are found by `doctor`, whatever is really installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from codec_bench.api import doctor
from codec_bench.machine.environment import ONNXRUNTIMES, own_threads
from codec_bench.messages import Diagnostic


@pytest.fixture
def only(monkeypatch, tmp_path):
    """A function that makes a folder of distributions, by name, the only place where packages are looked for."""

    def make(*names):
        for name in names:
            folder = tmp_path / f"{name.replace('-', '_')}-1.30.0.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.30.0\n")
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
        return tmp_path

    return make


def with_module(folder):
    (folder / "onnxruntime").mkdir()
    (folder / "onnxruntime" / "__init__.py").write_text("")


@pytest.mark.parametrize("other", [name for name in ONNXRUNTIMES if name != "onnxruntime"])
def test_two_are_a_clash_and_the_way_out_names_both(only, other):
    with_module(only("onnxruntime", other))
    finding = doctor._onnxruntime()
    assert finding.state == "wrong"
    assert finding.found == Diagnostic("onnxruntimes_clash", packages=f"onnxruntime 1.30.0 and {other} 1.30.0")
    assert f"pip uninstall -y onnxruntime {other}" in finding.do


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime-gpu"])
def test_one_is_right(only, name):
    with_module(only(name))
    finding = doctor._onnxruntime()
    assert (finding.state, finding.found) == ("ok", f"{name} 1.30.0")


def test_none_is_right(only):
    only("numpy")
    finding = doctor._onnxruntime()
    assert finding.state == "ok" and finding.found.code == "no_onnxruntime"


@pytest.mark.parametrize("remains", [False, True])
def test_one_whose_files_went_with_the_other_is_wrong(only, remains):
    folder = only("onnxruntime-gpu")
    if remains:  # pip leaves files that only the GPU package had
        (folder / "onnxruntime" / "capi").mkdir(parents=True)
        (folder / "onnxruntime" / "capi" / "libonnxruntime_providers_cuda.so").write_bytes(b"")
    finding = doctor._onnxruntime()
    assert finding.state == "wrong" and finding.found.code == "onnxruntime_files_missing"
    assert finding.do == "pip install --force-reinstall --no-deps onnxruntime-gpu"


def test_doctor_says_so_and_fails(tmp_path):
    for name in ("onnxruntime", "onnxruntime-gpu"):
        folder = tmp_path / f"{name.replace('-', '_')}-1.30.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.30.0\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()", "doctor", "--json"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    (finding,) = (row for row in json.loads(done.stdout) if row["what"] == "one onnxruntime")
    assert finding["state"] == "wrong" and finding["found_code"]["code"] == "onnxruntimes_clash"
    assert done.returncode == 2


def test_the_threads_are_those_requested_or_every_core(monkeypatch):
    for text, expected in (("3", 3), ("2,4", 2), ("0", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert own_threads() == expected
    for text in ("", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert own_threads() == len(os.sched_getaffinity(0))
