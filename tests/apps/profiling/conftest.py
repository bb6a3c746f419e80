"""Codecs with known answers, loaded without being registered, and material to measure them on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from codec_bench.apps.profiling.api import profile
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.data import open_source
from codec_bench.engine.pool import PoolWorker

ODD = Path(__file__).parent / "assets" / "odd_codecs.py"


@pytest.fixture
def odd():
    """The name of one of the codecs of the assets."""
    return lambda name: f"{ODD}:{name}"


@pytest.fixture(scope="session")
def files():
    """The first embedded clips as (id, path)."""
    return tuple((sample.id, sample.audio) for sample in list(open_source("embedded"))[:4])


@pytest.fixture
def measured(files):
    """Runs one measurement on one of the codecs of the assets, with small settings."""

    def run(measure, name, **settings):
        codec = load_codec(f"{ODD}:{name}")
        small = {"clip_s": 1.0, "latency_s": 2.0, "stream_s": 1.0, "robust_clips": 2, "robust_s": 1.5, **settings}
        return measure(codec, ProfileClips(files, codec), Settings(**small))

    return run


SMALL = {
    "clip_s": 0.5,
    "repeats": 2,
    "latency_s": 1.0,
    "stream_s": 0.5,
    "robust_clips": 1,
    "robust_s": 1.0,
    "loss_clips": 1,
    "loss_s": 1.0,
    "bit_errors": 2,
    "players": 2,
    "lm_steps": 0,
}


@pytest.fixture
def profiled(tmp_path, monkeypatch):
    """Profiles the first embedded clips without page and quality by default."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))

    def run(*names, settings=None, **more):
        arguments = {
            "data": "embedded",
            "limit": 3,
            "metrics": "",
            "device": "cpu",
            "page": False,
            "out": tmp_path / "out",
            **more,
        }
        return profile(codec=list(names), settings=Settings(**{**SMALL, "threads": 1, **(settings or {})}), **arguments)

    return run


@pytest.fixture
def hanging(tmp_path, monkeypatch):
    """Lets the time limit pass exactly when a codec of the assets says that it hangs, however fast the machine is.

    Returns:
        The limits of the batches and of the loading that were waited for in vain, in seconds.
    """
    marks, limits = tmp_path / "hangs", []
    marks.mkdir()
    monkeypatch.setenv("CODEC_BENCH_TEST_HANGS", str(marks))

    def time_left_s(worker):
        if not (marks / str(worker.process.pid)).exists():
            return math.inf
        began = worker.began is not None
        limits.append(next(iter(worker.batches.values())).limit_s if began else worker.loading_s)
        return 0.0 if limits[-1] < math.inf else math.inf

    monkeypatch.setattr(PoolWorker, "time_left_s", property(time_left_s))
    return limits


@pytest.fixture
def custom_code():
    """The faulty codecs that the engine's tests have."""
    return lambda name: f"tests/engine/assets/custom_code.py:{name}"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[3])
