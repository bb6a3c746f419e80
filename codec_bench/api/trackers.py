"""Write a run to Weights & Biases, MLflow or TensorBoard.

A step is the number of finished items. Values are named `SYSTEM/METRIC`, interval ends `SYSTEM/METRIC.low` and `.high`,
numbers of findings `suspect/SYSTEM`, and progress `progress/...`. Missing values are not written. At most `SOUNDS`
stored sounds per system are written, once each.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from codec_bench.messages.errors import MissingExtra, UserError, optional_package
from codec_bench.report import numbers
from codec_bench.stats.summary_types import Summary
from codec_bench.store.record import Run
from codec_bench.types import Audio

SOUNDS = 8
TRACKERS = ("wandb", "mlflow", "tensorboard")
_HEADS = ("system", "metric", "value", "ci95_low", "ci95_high", "n", "failed", "unit", "protocol", "note", "suspect")
_MLFLOW = re.compile(r"[^\w\-. /]")


@dataclass(frozen=True, slots=True)
class SavedSound:
    """A saved sound: its system (or `reference`), item and file."""

    system: str
    item: str
    file: Path


@dataclass(frozen=True, slots=True)
class TrackerData:
    """The state of a run at one step, for a tracker; `sounds` are new audio files."""

    step: int
    values: Mapping[str, float]
    rows: Sequence[Sequence[Any]]
    sounds: Sequence[SavedSound]
    plots: Mapping[str, bytes]


class Tracker(Protocol):
    """A tracking service: TensorBoard, Weights & Biases or MLflow."""

    def write(self, material: TrackerData) -> None:
        """Write the content."""
        ...

    def close(self) -> None:
        """End the run at the service."""
        ...


def open_tracker(target: str, folder: Path, config: Mapping[str, Any]) -> Tracker:
    """Open the service of `--log`.

    Args:
        target: `wandb[:PROJECT]`, `mlflow[:FOLDER OR ADDRESS]` or `tensorboard[:FOLDER]`. Defaults: the project
            `codec-bench`, MLflow's own setting, and the folder `tensorboard` in the run folder.
        config: the request.

    Raises:
        UserError: there is no such service.
        MissingExtra: its package is not installed.
    """
    name, where = parse_target(target)
    if name == "wandb":
        return _Wandb(where or "codec-bench", folder, config)
    if name == "mlflow":
        return _MLflow(where, folder, config)
    return _TensorBoard(Path(where) if where else folder / "tensorboard")


def parse_target(target: str) -> tuple[str, str]:
    """Split the value of `--log` into (service, location), or raise UserError."""
    name, _, where = target.partition(":")
    if name not in TRACKERS:
        raise UserError(
            "option_choice",
            option="--log",
            value=target,
            known=list(TRACKERS),
            hint="for example --log tensorboard or --log wandb:my-project",
        )
    _package(name)
    return name, where


def collect_material(run: Run, summary: Summary, written: set[Path]) -> TrackerData:
    """Collect a run's values, table, plots and new audio for a tracking service.

    Args:
        written: audio files that were reported before; it gets the new ones.
    """
    values: dict[str, float] = {}
    rows: list[Sequence[Any]] = []
    for name, metric, entry in summary.entries:
        low, high = entry.ci95 or (None, None)
        doubts = numbers.doubts_text(summary.systems[name])
        # A value under a system's name is a result of the system.
        system = f"{name} (control: {summary.control})" if summary.control else name
        numbers_of = (entry.value, low, high, entry.n, entry.failed)
        rows.append((system, metric, *numbers_of, entry.unit, entry.protocol, entry.note and str(entry.note), doubts))
        for end, value in (("", entry.value), (".low", low), (".high", high)):
            if value is not None:
                values[f"{system}/{metric}{end}"] = float(value)
    counts = run.counts()
    values |= {f"suspect/{name}": len(facts.doubts) for name, facts in summary.systems.items() if facts.doubts}
    failed = counts["failed_items"] + counts["failed_scores"]
    values |= {"progress/finished": counts["finished"], "progress/failed": failed}
    return TrackerData(counts["finished"], values, rows, _sounds(run, written), _plots(run, summary))


def _sounds(run: Run, written: set[Path]) -> list[SavedSound]:
    """Audio that was not reported yet, of a few items per system; added to `written`."""
    sounds: list[SavedSound] = []
    for system in run.systems:
        saved = (item for item in run.items(system) if item.audio is not None and item.audio.is_file())
        for item in islice(saved, SOUNDS):
            reference = run.reference_audio(item.id)
            for name, file in (("reference", reference), (system, item.audio)):
                if file is not None and file not in written:
                    written.add(file)
                    sounds.append(SavedSound(name, item.id, file))
    return sounds


def _plots(run: Run, summary: Summary) -> dict[str, bytes]:
    """Draw the report's plots as PNG by name; none if matplotlib is missing."""
    from codec_bench.report.figures.draw import Drawing, figure_of
    from codec_bench.report.figures.plots import plots_of

    try:
        drawing = Drawing()
    except MissingExtra:
        return {}
    pictures = {}
    with drawing.styled():
        for plot in plots_of([run], [summary]):
            picture = io.BytesIO()
            figure_of(plot).savefig(picture, format="png", dpi=150, bbox_inches="tight", pad_inches=0.04)
            pictures[plot.stem] = picture.getvalue()
    return pictures


def _package(name: str) -> Any:
    return optional_package(name, MissingExtra("tracker", name, name, name=name))


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder))

    def write(self, material: TrackerData) -> None:
        """Log values, table, audio and plots to TensorBoard."""
        for name, value in material.values.items():
            self._writer.add_scalar(name, value, material.step)
        lines = [_HEADS, ("---",) * len(_HEADS), *material.rows]
        text = lambda cell: "" if cell is None else str(cell).replace("|", "&#124;")  # noqa: E731
        table = "\n".join(f"| {' | '.join(map(text, line))} |" for line in lines)
        self._writer.add_text("summary", table, material.step)
        for sound in material.sounds:
            audio = Audio.read(sound.file)
            mono = audio.samples.mean(axis=0, keepdims=True)
            self._writer.add_audio(f"{sound.item}/{sound.system}", mono, material.step, audio.sample_rate_hz)
        for name, picture in material.plots.items():
            from matplotlib.image import imread

            self._writer.add_image(name, imread(io.BytesIO(picture))[..., :3], material.step, dataformats="HWC")
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    def __init__(self, project: str, folder: Path, config: Mapping[str, Any]) -> None:
        self._wandb = _package("wandb")
        self._run = self._wandb.init(project=project, name=folder.name, dir=str(folder), config=dict(config))
        self._sound_rows: list[list[Any]] = []

    def write(self, material: TrackerData) -> None:
        """Log values, table, audio and plots to Weights & Biases."""
        wandb = self._wandb
        logged: dict[str, Any] = dict(material.values)
        logged["summary"] = wandb.Table(columns=list(_HEADS), data=[list(row) for row in material.rows])
        if material.sounds:
            for sound in material.sounds:  # each twice: a table copies its sounds
                alone, listed = (
                    wandb.Audio(str(sound.file), caption=f"{sound.item}, {sound.system}") for _ in range(2)
                )
                logged[f"sounds/{sound.system}/{sound.item}"] = alone
                self._sound_rows.append([sound.item, sound.system, listed])
            logged["sounds"] = wandb.Table(columns=["item", "system", "sound"], data=self._sound_rows)
        logged |= {f"plots/{name}": wandb.Image(_picture(picture)) for name, picture in material.plots.items()}
        self._run.log(logged, step=material.step)

    def close(self) -> None:
        self._run.finish()


def _picture(png: bytes) -> Any:
    from matplotlib.image import imread

    return (255 * imread(io.BytesIO(png))[..., :3]).astype("uint8")


class _MLflow:
    def __init__(self, where: str, folder: Path, config: Mapping[str, Any]) -> None:
        self._mlflow = _package("mlflow")
        if where:
            # Without this, MLflow refuses folders from version 3.17 on; databases need packages of the whole MLflow.
            if "://" not in where:
                os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            self._mlflow.set_tracking_uri(where if "://" in where else Path(where).absolute().as_uri())
        self._mlflow.set_experiment("codec-bench")
        self._mlflow.start_run(run_name=folder.name)
        self._mlflow.log_params({name: str(value)[:500] for name, value in config.items()})

    def write(self, material: TrackerData) -> None:
        """Log values, table, audio and plots to MLflow."""
        flow = self._mlflow
        flow.log_metrics({_MLFLOW.sub("_", name): value for name, value in material.values.items()}, step=material.step)
        flow.log_dict({"columns": list(_HEADS), "data": [list(row) for row in material.rows]}, "summary.json")
        for sound in material.sounds:
            flow.log_artifact(str(sound.file), f"sounds/{_MLFLOW.sub('_', sound.system)}")
        for name, picture in material.plots.items():
            with TemporaryDirectory() as folder:
                file = Path(folder) / f"{name}.png"
                file.write_bytes(picture)
                flow.log_artifact(str(file), "plots")

    def close(self) -> None:
        self._mlflow.end_run()
