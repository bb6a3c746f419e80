"""What may be sent between host and worker: any JSON and any sound, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codec_bench.workers import wire

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
SOUNDS = st.builds(
    lambda c, n, rate: {"samples": np.arange(c * n, dtype=np.float32).reshape(c, n), "sample_rate_hz": rate},
    st.integers(1, 3), st.integers(0, 40), st.integers(1, 96_000),
)  # fmt: skip
ITEMS = st.lists(st.dictionaries(st.text(), VALUES | SOUNDS | st.lists(SOUNDS, max_size=3), max_size=4), max_size=4)


def there_and_back(items):
    memory = wire.Memory(wire.new_memory_file())
    try:
        body = wire.read_body(wire.batch_body(3, [wire.pack(item) for item in items], memory))
        assert body["id"] == 3
        return wire.unpack(body["items"], body["sounds"], memory)
    finally:
        memory.close()


def as_lists(value):
    """Sounds in comparable form, sent or received."""
    if isinstance(value, dict):
        if "samples" in value and "sample_rate_hz" in value:
            samples = np.frombuffer(value["samples"], np.float32) if "channels" in value else value["samples"]
            channels = value.get("channels", len(value["samples"]))
            return ["sound", channels, np.asarray(samples).ravel().tolist(), value["sample_rate_hz"]]
        return {k: as_lists(v) for k, v in value.items()}
    return [as_lists(v) for v in value] if isinstance(value, list) else value


@given(ITEMS)
def test_what_is_sent_is_what_comes(items):
    assert as_lists(there_and_back(items)) == as_lists(items)


def test_a_field_that_is_called_like_a_sounds_is_a_field():
    items = [{"fields": {"samples": 5, "other": 1}, "x": {"samples": [1, 2]}}]
    assert there_and_back(items) == items


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, float("nan")])
def test_what_json_does_not_know_is_refused(value):
    if isinstance(value, float):
        assert np.isnan(there_and_back([{"x": value}])[0]["x"])
        return
    with pytest.raises(wire.WireError):
        wire.pack({"x": value})


def test_a_sound_of_another_kind_is_refused():
    for samples in (np.zeros(3, np.float32), [1.0], np.zeros((2, 6), np.float32)[:, ::2], np.zeros((1, 2)), "text"):
        with pytest.raises(wire.WireError):
            wire.pack({"x": {"samples": samples, "sample_rate_hz": 1}})


def test_lengths_that_are_none_are_refused():
    assert wire.length(wire.START.pack(3, wire.BEAT)) == (wire.BEAT, 2)
    for size in (0, wire.FRAME_BYTES + 1, 2**32 - 1):
        with pytest.raises(wire.WireError):
            wire.length(wire.START.pack(size, wire.BEAT))
    with pytest.raises(wire.WireError):
        wire.pack({"x": "x" * (wire.ITEM_BYTES + 1)})


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff", b'"x"'])
def test_bodies_that_are_no_objects_are_refused(body):
    with pytest.raises(wire.WireError):
        wire.read_body(body)


@pytest.mark.parametrize(
    "sound", [[0, ["x"], 1, 1000, 8000, 0], [0, ["y", "z"], 1, 1, 8000, 0], [5, [], 1, 1, 8000, 0],
        [0, ["x"], 1, 1, 8000, -4]]
)  # fmt: skip
def test_sounds_that_lie_nowhere_are_refused(sound):
    memory = wire.Memory(wire.new_memory_file())
    memory.write([np.zeros(8, np.float32)])
    with pytest.raises(wire.WireError):
        wire.unpack([{"x": None}], [sound], memory)
    memory.close()


def test_without_memory_files_a_temporary_file_serves(monkeypatch, tmp_path):
    import os
    import tempfile

    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    items = [{"x": {"samples": np.ones((1, 9), np.float32), "sample_rate_hz": 8000}}]
    assert as_lists(there_and_back(items)) == as_lists(items)
    assert not list(tmp_path.iterdir())


def test_the_files_that_run_elsewhere_need_the_standard_library_alone():
    code = """
import importlib.util, sys
before = set(sys.modules)
for name in ("wire", "child"):
    spec = importlib.util.spec_from_file_location(name, sys.argv[1] + "/" + name + ".py")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
own = {"codec_bench_wire", "codec_bench_memory"}
outside = {m.split(".")[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names) - own
import json; print(json.dumps(sorted(outside)))
"""
    folder = wire.__file__.rpartition("/")[0]
    done = subprocess.run([sys.executable, "-I", "-c", code, folder], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
