"""What every test may ask for: real recordings (where the machine has them), the embedded speech, seeded noise."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest

RECORDINGS = "CODEC_BENCH_TEST_RECORDINGS"


@pytest.fixture(scope="session")
def recordings_dir() -> Path:
    """The folder of real recordings with its manifest.jsonl, or a skip that says so."""
    folder = os.environ.get(RECORDINGS)
    if not folder or not (Path(folder) / "manifest.jsonl").is_file():
        pytest.skip(f"no real recordings: {RECORDINGS} does not name a folder with a manifest.jsonl")
    return Path(folder)


@pytest.fixture(scope="session")
def recordings(recordings_dir):
    """Every real recording as (row of the manifest, Audio)."""
    from codec_bench.types import Audio

    rows = [json.loads(line) for line in (recordings_dir / "manifest.jsonl").read_text("utf-8").splitlines()]
    return [(row, Audio.read(recordings_dir / row["audio"])) for row in rows]


@pytest.fixture(scope="session")
def embedded():
    """The embedded speech as (Sample, Audio)."""
    from codec_bench.data import open_source
    from codec_bench.types import Audio

    return [(sample, Audio.read(sample.audio)) for sample in open_source("embedded")]


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator."""
    return np.random.default_rng(20260101)


@pytest.fixture(autouse=True)
def _no_network(request, monkeypatch):
    """Refuses every connection that leaves the machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family == socket.AF_UNIX or (
            isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1", "localhost")
        ):
            return connect(self, address)
        raise OSError(f"a test tried to reach {address}: tests use no network")

    monkeypatch.setattr(socket.socket, "connect", guarded)
