"""`--log`: what is written of a run, read back from TensorBoard, MLflow and Weights & Biases
themselves, all offline.
"""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest
from refusals import refuses

from codec_bench.api.trackers import collect_material, parse_target
from codec_bench.api.tracking import Tracking, track
from codec_bench.engine.running import Running
from codec_bench.report.open_run import open_run
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary

EVAL = (
    "eval",
    "--codec",
    "opus-12k",
    "--data",
    "embedded",
    "--metrics",
    "stoi,bitrate",
    "--limit",
    "4",
    "--workers",
    "1",
    "--no-check",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run that kept its sound."""
    from codec_bench import evaluate

    folder = tmp_path_factory.mktemp("tracked") / "run"
    options = {"limit": 4, "workers": 1, "check": False, "page": False}
    return evaluate(codec="opus-12k", data="embedded", metrics="stoi,bitrate", out=folder, **options).folder


class Retained:
    """A service that keeps its messages."""

    def __init__(self) -> None:
        self.messages, self.closed = [], False

    def write(self, material) -> None:
        self.messages.append(material)

    def close(self) -> None:
        self.closed = True


def test_material_is_the_summary_and_each_sound_once(finished):
    run, written = open_run(finished), set()
    summary = summarise(run).as_dict()
    material = collect_material(run, Summary.from_dict(summary), written)
    entry = summary["systems"]["opus-12k"]["metrics"]["stoi"]
    assert material.values["opus-12k/stoi"] == entry["value"] and material.step == 4
    assert material.values["opus-12k/stoi.low"] == entry["ci95"][0]
    assert {sound.system for sound in material.sounds} == {"reference", "opus-12k"} and len(material.sounds) == 8
    assert collect_material(run, Summary.from_dict(summary), written).sounds == []
    assert all(picture.startswith(b"\x89PNG") for picture in material.plots.values())


def test_a_run_is_followed_and_a_service_that_fails_does_not_stop_it(finished, monkeypatch):
    retained, now, text = Retained(), [0.0], []
    monkeypatch.setattr("codec_bench.api.tracking.open_tracker", lambda *args: retained)
    tracking = Tracking("wandb", text.append, lambda: now[0])
    tracking.tick()
    tracking.on_folder(finished)
    now[0] = 61.0
    tracking.tick()
    tracking.tick()  # not again at once
    assert len(retained.messages) == 1
    retained.write = lambda material: 1 / 0
    tracking.look()
    tracking.look()
    tracking.close()
    assert retained.closed and len(text) == 1 and "ZeroDivisionError" in text[0] and "disabled from here on" in text[0]


def test_what_is_requested_is_checked_before_the_run(monkeypatch):
    with refuses("option_choice", option="--log"):
        parse_target("wanb")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with refuses("package_not_installed", package="mlflow", feature="tracker", name="mlflow"):
        parse_target("mlflow:there")
    with track(None, Running(), print) as running:
        assert running == Running()


def needs(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")


@needs("tensorboard")
def test_tensorboard(command, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    code, out, err = command(*EVAL, "--out", tmp_path / "run", "--log", f"tensorboard:{tmp_path / 'tb'}", "--json")
    assert code == 0 and "disabled" not in err, err
    held = EventAccumulator(str(tmp_path / "tb"), size_guidance={"audio": 0, "images": 0})
    held.Reload()
    value = json.loads(out)["systems"]["opus-12k"]["metrics"]["stoi"]["value"]
    assert held.Scalars("opus-12k/stoi")[-1].value == pytest.approx(value, rel=1e-6)
    assert held.Scalars("progress/finished")[-1].value == 4 and "summary/text_summary" in held.Tags()["tensors"]
    assert len(held.Tags()["audio"]) == 8 and held.Tags()["images"]


@needs("mlflow")
def test_mlflow(command, tmp_path, monkeypatch):
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    code, out, err = command(*EVAL, "--out", tmp_path / "run", "--log", f"mlflow:{tmp_path / 'flow'}", "--json")
    assert code == 0 and "disabled" not in err, err
    client = MlflowClient((tmp_path / "flow").as_uri())
    (experiment,) = [one for one in client.search_experiments() if one.name == "codec-bench"]
    (run,) = client.search_runs([experiment.experiment_id])
    value = json.loads(out)["systems"]["opus-12k"]["metrics"]["stoi"]["value"]
    assert run.data.metrics["opus-12k/stoi"] == pytest.approx(value) and run.info.status == "FINISHED"
    assert {artifact.path for artifact in client.list_artifacts(run.info.run_id)} >= {"summary.json", "sounds"}


@needs("wandb")
def test_wandb(command, tmp_path, monkeypatch):
    from wandb import teardown

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    code, _, err = command(*EVAL, "--out", tmp_path / "run", "--log", "wandb:mine")
    assert code == 0 and "failed and is disabled" not in err, err
    teardown()  # as at a process's end: wandb's service writes the end of its file after finish() has returned
    (folder,) = (tmp_path / "run" / "wandb").glob("offline-run-*")
    tables = {path.name.partition("_")[0]: json.loads(path.read_text()) for path in folder.rglob("*.table.json")}
    assert [row[0] for row in tables["summary"]["data"]] == ["opus-12k"] * 2
    assert len(tables["sounds"]["data"]) == 8
    assert len([path for path in (folder / "files" / "media" / "audio").rglob("*") if path.is_file()]) == 8
    assert list(folder.rglob("*stoi*.png")) and next(folder.glob("run-*.wandb")).stat().st_size > 1000
