"""One of each kind of thing is added to a copy of the project, with the files that CONTRIBUTING names and no others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import ROOT, copied, sums

NEW_LINE = {
    "codec_bench/codecs/__init__.py": (
        "TABLE = {\n",
        '    "wordwise": "codec_bench.codecs.classical.wordwise:Wordwise",\n',
    ),
    "codec_bench/metrics/__init__.py": ("TABLE = {\n", '    "loudest": "codec_bench.metrics.loudest:Loudest",\n'),
    "codec_bench/features/__init__.py": ("TABLE = {\n", '    "crest": "codec_bench.features.crest:Crest",\n'),
    "tests/engine/test_silence.py": ("MEANT = {\n", '    "loudest": None,\n'),
    "CHANGELOG.md": ("### Added\n", "- One more of everything.\n"),
}
SCORERS = "codec_bench/features/scorers.yaml"
ROW = re.compile(r"^- feature: distillmos\n(?:  .*\n|\n)+", re.MULTILINE)
ENTRY = re.compile(r"^DistillMOS -- .*\n(?: .*\n)+", re.MULTILINE)
SCORER = (
    "codec_bench/networks/distillmos.py", "configs/weights/distillmos-v7.yaml", "tests/metrics/test_distillmos.py",
    SCORERS, "NOTICE",
)  # fmt: skip
"""A learned scorer of the project itself.

It is taken out of the copy, and put back with these files, as they are in the project.
"""
BY_CHOICE = (
    "tests/cli/test_presets.py", "tests/contract/test_adding.py", "tests/engine/test_worse_estimates.py",
    "tests/gpu/test_features.py",
)  # fmt: skip
"""Tests of presets, of some metrics by choice and of features with lengths of their own, and this one: they name the
scorer when the product no longer does."""
ADDED = {
    "A codec": {
        "codec_bench/codecs/classical/wordwise.py": '''"""Every sample in 16 bits: a codec that shows what one needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.classical.bitstream import BitstreamCodec


class Wordwise(BitstreamCodec):
    """Samples of 16 bits, one packet each piece of sound."""

    def __init__(self) -> None:
        super().__init__(
            CodecInfo("wordwise", sample_rates_hz=(16000,), channels=(1,), nominal_bitrate_bps=256000.0, causal=True)
        )

    def encode_one(self, samples: np.ndarray, rate_hz: int) -> list[bytes]:
        """One packet of 16-bit samples."""
        return [np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes()]

    def decode_one(self, packets: Sequence[bytes], num_samples: int, rate_hz: int, channels: int) -> np.ndarray:
        """The samples of the packet."""
        return np.frombuffer(packets[0], "<i2").astype(np.float32)[None] / 32768
''',
        "configs/codec/wordwise.yaml": """version: 1
adapter: wordwise
summary: Samples of 16 bits
licence: {code: Apache-2.0, weights: null}
paper: none
variants:
  wordwise: {}
""",
    },
    "A metric": {
        "codec_bench/metrics/loudest.py": '''"""Difference of the loudest samples of estimate and reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score


class Loudest(Metric):
    """Difference of the loudest samples. Lower is better."""

    name = "loudest"
    kind = "pair"
    rate_hz = 16000
    higher_is_better = False
    protocol = "loudest/1"
    source = "NumPy"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        peaks = [(np.abs(item.reference).max(), np.abs(item.estimate).max()) for item in batch]
        return [Score.ok(float(abs(a - b)), self.protocol) for a, b in peaks]
''',
        "tests/metrics/test_loudest.py": """import pytest

from codec_bench import Audio, load_metric


@pytest.mark.compares("loudest", weights="none")
def test_the_difference_of_two_peaks():
    (found,) = load_metric("loudest")(estimate=[Audio([0.5, 0.0], 16000)], reference=[Audio([0.0, -0.25], 16000)])
    assert found["loudest"].value == 0.25
""",
    },
    "A feature": {
        "codec_bench/features/crest.py": '''"""The loudest sample of a signal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable


class Crest(Feature):
    """The loudest sample.

    Result: `{"crest": float}`. Reference implementation: `numpy.abs(x).max()`.

    Args:
        device: always computed on the CPU.
        weights: there are none.
        point: there is none.
    """

    name = "crest"
    protocol = "crest/1"
    rate_hz = 16_000
    where = "cpu"

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """One result per signal `(samples,)`."""
        return [{"crest": float(np.abs(s).max())} if s.size else Unavailable("it holds no samples") for s in signals]
''',
        "tests/features/test_crest.py": """import numpy as np
import pytest

from codec_bench.features import load_feature


@pytest.mark.compares("crest", weights="none")
def test_the_loudest_sample():
    assert load_feature("crest").compute([np.array([0.1, -0.5], np.float32)]) == [{"crest": 0.5}]
""",
    },
    "A learned scorer": {file: (ROOT / file).read_text("utf-8") for file in SCORER},
    "A benchmark": {
        "benchmarks/qa/few-capitals/benchmark.yaml": """version: 1
name: few-capitals
title: A few capitals
summary: Spoken questions about capitals.
category: Speech QA
kind: qa
language: en
licence: CC0-1.0
paper: none
data:
  repository: somebody/few-capitals
  split: test
  columns: {audio: audio, reference: answer}
prompt: spoken-question
metrics: ["accuracy[answer-match]"]
primary: "accuracy[answer-match]"
""",
        "benchmarks/qa/few-capitals/README.md": "# A few capitals\n\nSpoken questions about capitals. Licence: "
        "CC0-1.0.\n",
    },
    "A model": {
        "configs/model/my-endpoint.yaml": """version: 1
summary: A chat endpoint of the test
kind: openai-chat
inputs: [text, audio]
outputs: [text]
options: {base_url: 'http://localhost:8000/v1', model: mine}
""",
    },
    "A kernel": {
        "kernels/twice/__init__.py": '"""Every number twice."""\n',
        "kernels/twice/ref.py": '''"""The specification."""

from __future__ import annotations

import numpy as np


def twice(numbers: np.ndarray) -> np.ndarray:
    """Every number times two."""
    return 2 * numbers
''',
        "kernels/twice/cpu.py": '''"""The same with numba."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit
def twice(numbers: np.ndarray) -> np.ndarray:
    """Every number times two."""
    return numbers + numbers
''',
        "tests/kernels/test_twice.py": """import numpy as np

from codec_bench.kernels.twice import cpu, ref


def test_both_agree():
    assert (cpu.twice(np.arange(5.0)) == ref.twice(np.arange(5.0))).all()
""",
        "bench/bench_twice.py": '"""Times `twice` against NumPy and checks that both agree."""\n',
    },
}
TABLES = {
    "A codec": "codec_bench/codecs/__init__.py",
    "A metric": "codec_bench/metrics/__init__.py",
    "A feature": "codec_bench/features/__init__.py",
}
IN_CHANGELOG = ("A codec", "A metric", "A feature", "A learned scorer", "A kernel")


def touched_by(kind: str) -> list[str]:
    """Every file that adding one of a kind makes or changes."""
    return [
        *ADDED[kind],
        *([TABLES[kind]] if kind in TABLES else []),
        *(["tests/engine/test_silence.py"] if kind == "A metric" else []),
        *(["CHANGELOG.md"] if kind in IN_CHANGELOG else []),
    ]


def pattern_of(file: str) -> str:
    """How CONTRIBUTING names a file: the new thing's own name is a placeholder."""
    file = re.sub(r"classical/wordwise|loudest|crest|twice|distillmos(?=\.py)", "<stem>", file)
    return re.sub(r"few-capitals|my-endpoint|wordwise|distillmos-v7", "<name>", file).replace("qa/", "<kind>/")


@pytest.mark.parametrize("kind", ADDED)
def test_the_recipe_names_every_file(kind):
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipe = next(line for line in text.splitlines() if line.startswith(f"| {kind} | "))
    files = touched_by(kind)
    if "NOTICE" in files:
        assert "; one more where it follows somebody's program: `NOTICE`" in recipe
        files.remove("NOTICE")
    assert recipe.startswith(f"| {kind} | {len(files)}: "), recipe[:40]
    for file in files:
        assert f"`{pattern_of(file)}`" in recipe, f"{kind}: {pattern_of(file)}"
    assert ("`make docs`" in recipe) == (kind not in ("A feature", "A kernel"))


def take_out_the_scorer(copy: Path) -> None:
    """Removes all of the learned scorer that is put back, and what names it: presets, its cost, its page and the
    navigation.
    """
    for file in (*SCORER, "docs/metrics/distillmos.md"):
        if file not in (SCORERS, "NOTICE"):
            (copy / file).unlink()
    for file, item in ((SCORERS, ROW), ("NOTICE", ENTRY)):
        text, count = item.subn("", (copy / file).read_text("utf-8"))
        assert count == 1, file
        (copy / file).write_text(text, "utf-8")
    naming = ("docs/.nav.yml", "codec_bench/metrics/costs.csv", "codec_bench/metrics/sensitivity.csv")
    for path in [*(copy / "configs" / "preset").iterdir(), *(copy / file for file in naming)]:
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "distillmos" not in line), "utf-8")
    options = {
        path.relative_to(copy).as_posix()
        for room in ("codec_bench", "configs", "tests", "scripts")
        for path in (copy / room).rglob("*.*")
        if path.suffix in (".py", ".yaml", ".csv", ".json") and "distillmos" in path.read_text("utf-8").lower()
    }
    assert options == set(BY_CHOICE)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A copy of the project with one more of each kind, how it is run, and the files that changed."""
    copy, environment = copied(tmp_path_factory.mktemp("grown"))
    take_out_the_scorer(copy)
    before = sums(copy)
    for kind, files in ADDED.items():
        for file, text in files.items():
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            (copy / file).write_text(text, "utf-8")
        for file in touched_by(kind):
            if file in NEW_LINE:
                behind, line = NEW_LINE[file]
                text = (copy / file).read_text("utf-8")
                assert behind in text, file
                (copy / file).write_text(text.replace(behind, behind + line, 1), "utf-8")

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", *command], cwd=copy, env=environment, capture_output=True, text=True, timeout=600
        )

    written = run("scripts/write_docs.py")
    assert written.returncode == 0, written.stdout + written.stderr
    after = sums(copy)
    assert not before.keys() - after.keys()
    return run, {file for file in after if after[file] != before.get(file)}


@pytest.mark.long
def test_no_other_file_is_touched(grown):
    _, changed = grown
    named = {file for kind in ADDED for file in touched_by(kind)}
    assert {file for file in changed if not file.startswith("docs/")} == named
    pages = {file for file in changed if file.startswith("docs/")}
    assert "docs/reference/codecs.md" in pages, "the table of codecs"
    assert any("wordwise" in file for file in pages), "a page for a codec that no page describes"


NAMED_AFTER_IT = (
    "tests/codecs/test_contract.py", "tests/features/test_contract.py", "tests/features/test_crest.py",
    "tests/metrics/test_loudest.py",
    "tests/kernels/test_twice.py", "tests/contract/test_benchmarks.py",
)  # fmt: skip
OVER_ALL_NAMES = (
    "tests/codecs/test_codecs.py",
    "tests/models/test_models.py",
    "tests/config/test_config.py",
    "tests/test_layout.py",
)
OF_THE_SCORER = (
    "tests/metrics/test_distillmos.py",
    "tests/gpu/test_features.py",
    "tests/engine/test_silence.py",
    "tests/test_notice.py",
)
CHOSEN = (
    "wordwise or crest or loudest or twice or few-capitals or every_entry_of",
    *(Path(file).name for file in OVER_ALL_NAMES),
    "(test_docs.py and (family or links or exist))",
    "distillmos or is_forgotten or every_feature_of or every_network_is or every_repository",
)
ELSEWHERE = "hostile or written_pages or packages_scores or silence_that_is_skipped"
"""What depends on nothing that is added: the tests of the project itself show it."""


@pytest.mark.long
def test_what_was_added_passes(grown):
    """In one process, because each would import torch and all of the project anew."""
    run, _ = grown
    files = (*NAMED_AFTER_IT, *OVER_ALL_NAMES, *OF_THE_SCORER, "tests/test_docs.py")
    done = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", f"({' or '.join(CHOSEN)}) and not ({ELSEWHERE})"
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
