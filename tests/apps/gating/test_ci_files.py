"""The files of continuous integration in `examples/gate`, whose commands run as they are in a fresh folder.

Needs a package index and several GB; run by hand: `pytest -m install tests/apps/gating/test_ci_files.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "gate"
CODEC = (ROOT / "examples" / "small_codec.py").read_text("utf-8") + "\n\nclass Codec(Small):\n    bands = BANDS\n"
AGENT = '#!/bin/sh\n[ "$1" = annotate ] && cat > annotation.md\n'
"""Buildkite's program, which a step calls."""

pytestmark = pytest.mark.install


def steps_of(name):
    """The commands of a file, each with the environment of its step."""
    document = yaml.safe_load((EXAMPLES / name).read_text("utf-8"))
    if name == "buildkite.yml":
        (step,) = document["steps"]
        return step["commands"], step["env"]
    return [step["run"] for step in document["jobs"]["gate"]["steps"] if "run" in step], {}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    (folder / "source").mkdir()
    subprocess.run(["tar", "-x", "-C", folder / "source"], input=archive, check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, folder / "source"],
        check=True,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment without packages, whose pip finds this package's wheel beside the index."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (folder / "bin" / "buildkite-agent").write_text(AGENT)
    (folder / "bin" / "buildkite-agent").chmod(0o755)
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**variables, "PATH": path, "PIP_FIND_LINKS": str(wheel.parent)}


@pytest.mark.parametrize("name", ["github-actions.yml", "buildkite.yml"])
def test_the_commands_run_and_find_a_regression(name, environment, tmp_path):
    commands, more = steps_of(name)
    summary = tmp_path / "annotation.md"
    env = {**environment, **more, "HOME": str(tmp_path), "GITHUB_STEP_SUMMARY": str(summary)}

    def run(command):
        """As a runner does: bash, which ends at the first command that fails."""
        return subprocess.run(["bash", "-e", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True)

    shutil.copytree(ROOT / "codec_bench" / "data" / "embedded", tmp_path / "data")
    lines = (tmp_path / "data" / "manifest.jsonl").read_text("utf-8").splitlines()
    rows = [{**row, "audio": f"data/{row['audio']}"} for row in map(json.loads, lines[::2])]
    (tmp_path / "testset.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "my_codec.py").write_text(CODEC.replace("BANDS", "64"))
    install, evaluate, check = commands
    assert (done := run(install)).returncode == 0, done.stderr
    base = evaluate.replace("runs/pr", "runs/base").replace("runs/build", "runs/base")
    freeze = (
        "codec-bench gate freeze runs/base --out baseline.parquet && codec-bench gate calibrate baseline.parquet --out "
        "gate.yaml"
    )
    for command in (base, freeze, evaluate, check):
        assert (done := run(command)).returncode == 0, (command, done.stdout, done.stderr)
    assert "passed" in summary.read_text("utf-8")
    assert all((tmp_path / f"gate.{kind}").stat().st_size for kind in ("xml", "html"))
    (tmp_path / "my_codec.py").write_text(CODEC.replace("BANDS", "32"))
    shutil.rmtree(tmp_path / "runs")
    assert (done := run(evaluate)).returncode == 0, done.stderr
    assert run(check).returncode == 1
    assert "regressed" in summary.read_text("utf-8")
