"""Results in the forms of other harnesses: structure and values here; with `-m install`, opened by each tool itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
import yaml

from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

ITEMS = 12
VALUES = np.random.default_rng(0).random(ITEMS)


@pytest.fixture
def run(tmp_path):
    """A run of two systems with a mean over independent items, and a metric that has no value for the first item."""
    facts = {"unit": "", "higher_is_better": True, "aggregate": "mean"}
    with closing(
        RunWriter(tmp_path / "run", {"asked": {"data": {"repository": "org/data", "split": "test"}}})
    ) as writer:
        samples = [Sample(f"s{n}", None, text=f"text {n}") for n in range(ITEMS)]
        writer.begin(
            {"a": {}, "b": {}},
            {"stoi": {**facts, "protocol": "stoi/1"}, "pesq": {**facts, "protocol": "pesq/1"}},
            samples,
        )
        for system in "ab":
            for n, sample in enumerate(samples):
                pesq = Score.ok(2.0, "pesq/1") if n else Score.failed("too short", "pesq/1")
                scores = {"stoi": Score.ok(VALUES[n], "stoi/1"), "pesq": pesq}
                writer.write([(n, ItemRecord(system, sample.id, "ok", None, scores))])
        writer.set_meta(
            state="finished", started="2026-11-22T22:00:00+00:00", finished="2026-11-22T22:23:40+00:00",
            config={"command": "run", "limit": None, "seed": 0}, versions={"codec-bench": "0.1.0"},
            benchmark={"name": "mine", "primary": "stoi", "kind": "understanding"},
            data={"name": "x", "fingerprint": "f"},
        )  # fmt: skip
    return tmp_path / "run"


def exported(command, run, form, out):
    code, _, err = command("export", run, "--format", form, "--system", "a", "--out", out)
    assert code == 0, err
    return json.loads(out.read_text("utf-8"))


@pytest.mark.parametrize("form", ["lm-eval", "lmms-eval"])
def test_harness_results(command, run, tmp_path, form):
    held = exported(command, run, form, tmp_path / "r.json")
    values = held["results"]["mine"]
    assert values["stoi,none"] == pytest.approx(VALUES.mean())
    assert values["stoi_stderr,none"] == pytest.approx(VALUES.std(ddof=1) / ITEMS**0.5)
    assert held["n-samples"]["mine"] == {"original": ITEMS, "effective": ITEMS}
    assert held["higher_is_better"]["mine"]["stoi"] is True and held["model_name"] == "a"
    for table in ("configs", "versions", "n-shot", "group_subtasks"):
        assert set(held[table]) == {"mine"}
    assert held["configs"]["mine"]["metadata"]["codec_bench"]["pesq"]["failed"] == 1


def test_inspect_log(command, run, tmp_path):
    held = exported(command, run, "inspect", tmp_path / "r.json")
    assert held["version"] == 2 and held["status"] == "success" and held["eval"]["model"] == "codec-bench/a"
    assert [sample["id"] for sample in held["samples"]] == sorted(f"s{n}" for n in range(ITEMS))
    first = held["samples"][0]
    assert first["scores"]["stoi"]["value"] == VALUES[0] and "pesq" not in first["scores"]
    assert first["metadata"]["without_value"]["pesq"] == {"status": "failed", "reason": "too short"}
    (stoi,) = [score for score in held["results"]["scores"] if score["name"] == "stoi"]
    assert stoi["metrics"]["value"]["value"] == pytest.approx(VALUES.mean())


@pytest.mark.parametrize("form", ["lm-eval", "lmms-eval", "inspect"])
def test_what_was_exported_is_imported_as_it_was(command, run, tmp_path, form):
    exported(command, run, form, tmp_path / "r.json")
    code, _, err = command(
        "import", f"{form}-results", tmp_path / "r.json", "--out", tmp_path / "again", "--system", "a"
    )
    assert code in (0, 3), err
    with closing(Run(run)) as before, closing(Run(tmp_path / "again")) as after:
        held = {
            name: [(s.id, s.value, s.status, s.reason) for s in after.scores("a", f"{name}[imported/{form}]")]
            for name in ("stoi", "pesq")
        }
        if form == "inspect":  # the other forms hold the values of the whole alone
            options = {name: [(s.id, s.value, s.status, s.reason) for s in before.scores("a", name)] for name in held}
            assert {name: sorted(rows) for name, rows in held.items()} == {
                name: sorted(rows) for name, rows in options.items()
            }
        else:
            assert [rows[0][1] for rows in held.values()] == [pytest.approx(VALUES.mean(), abs=1e-15), 2.0]


def test_hugging_face_through_the_command_line(command, run, tmp_path):
    from huggingface_hub import parse_eval_result_entries
    from huggingface_hub.repocard_data import model_index_to_eval_results

    files = {form: tmp_path / f"{form}.yaml" for form in ("hf-eval-results", "model-index")}
    for form, out in files.items():
        code, _, err = command("export", run, "--format", form, "--system", "a", "--out", out)
        assert code == 0, err
    (entry,) = parse_eval_result_entries(yaml.safe_load(files["hf-eval-results"].read_text("utf-8")))
    assert entry.value == pytest.approx(VALUES.mean()) and entry.dataset_id == "org/data"
    _, results = model_index_to_eval_results(yaml.safe_load(files["model-index"].read_text("utf-8"))["model-index"])
    assert {result.metric_name: result.metric_value for result in results}["stoi"] == pytest.approx(VALUES.mean())


def test_what_cannot_be_written_is_reported(command, run, tmp_path):
    code, _, err = command("export", run, "--format", "lm-eval")
    assert code == 2 and "--system" in err
    code, _, err = command("export", run, "--format", "inspect", "--system", "a", "--out", tmp_path / "r.log")
    assert code == 2 and ".json" in err
    code, _, err = command("export", run, "--format", "lm-eval", "--system", "a", "--metric", "stoi")
    assert code == 2 and "--metric" in err
    code, _, err = command("export", run, "--format", "lm-eval", "--summary")
    assert code == 2 and "--summary" in err


READERS = {
    "lm-eval": (
        ["lm_eval==0.4.13", "pytablewriter", "requests", "numpy", "pyyaml", "jinja2", "typing_extensions"],
        "import json, sys; from lm_eval.utils import make_table; print(make_table(json.load(open(sys.argv[1]))))",
    ),
    "lmms-eval": (
        ["lmms_eval==0.7.3", "pytablewriter", "loguru", "pytz", "pyyaml", "jinja2", "numpy", "transformers", "torch"],
        "import json, sys; from lmms_eval.utils import make_table; print(make_table(json.load(open(sys.argv[1]))))",
    ),
    "inspect": (
        ["inspect_ai==0.3.285"],
        "import sys; from inspect_ai.log import read_eval_log; log = read_eval_log(sys.argv[1])\n"
        "for s in log.results.scores: print(s.name, format(s.metrics['value'].value, '.4f'))\n"
        "assert len(log.samples) == 12 and log.status == 'success' and log.samples[0].scores['stoi'].value > 0",
    ),
}
"""By form, the packages that its own reader needs, and a program that reads a file with it. lmms-eval pins another av.
"""


@pytest.mark.install
@pytest.mark.parametrize("form", list(READERS))
def test_the_tool_itself_opens_it(command, run, tmp_path, form):
    exported(command, run, form, tmp_path / "r.json")
    packages, program = READERS[form]
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--python", sys.executable, tmp_path / "env"], check=True, capture_output=True)
    python = tmp_path / "env" / "bin" / "python"
    complete = form == "inspect"  # the other two need few of the packages that they name to read a file
    for expected, alone in (([packages[0]], not complete), (packages[1:], False)):
        if expected:
            more = ["--no-deps"] if alone else []
            subprocess.run(
                [*uv, "pip", "install", "--python", python, *more, *expected], check=True, capture_output=True
            )
    environment = {**os.environ, "PYTHONPATH": "", "HOME": str(tmp_path)}
    command_line = [python, "-c", program, tmp_path / "r.json"]
    done = subprocess.run(command_line, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = re.search(r"stoi\D*([0-9.]+)", done.stdout)  # a table leaves out zeros at the end
    assert shown is not None and float(shown[1]) == pytest.approx(VALUES.mean(), abs=5e-5), done.stdout
