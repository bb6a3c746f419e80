"""What the tests of runs share: a folder for a benchmark of the test's own, and its models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.benchmark.run_request import run_folder


@dataclass
class OwnBenchmark:
    """A benchmark `mine` in `folder`, the file of its models, and what these write into their `log`."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "mine"

    @property
    def log(self) -> Path:
        return self.root / "log"

    def run(self, model: str, out: str, options=(), **settings) -> tuple[Path, list[str]]:
        """Runs one of the models; the run's folder and what the model wrote in this call."""
        self.log.write_text("")
        name = f"{self.root / 'models.py'}:{model}"
        outcome = run_benchmark(
            benchmark=str(self.folder), model=name, out=self.root / out, workers=1,
            options={name: {"log": str(self.log), **dict(options)}}, **{"page": False, **settings},
        )  # fmt: skip
        for done in outcome.runs.values():
            done.close()
        return run_folder(self.root / out, "mine", model.lower()), self.log.read_text().splitlines()


@pytest.fixture
def own_benchmark(tmp_path, monkeypatch, request) -> OwnBenchmark:
    """The benchmark's folder, with the models of the test module's `MODEL`. The cache is empty."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models.py").write_text(request.module.MODEL)
    built = OwnBenchmark(tmp_path)
    built.folder.mkdir()
    return built
