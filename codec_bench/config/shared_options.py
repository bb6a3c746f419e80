"""The options that several commands have, each declared once (see `request.py`)."""

# ruff: noqa: RUF009  # `option` gives the field of a dataclass
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codec_bench.config.option import Columns, Flag, Number, Retention, Text, WholeNumber, option

SETTINGS = "NAME.OPTION=VALUE for a codec or feature, such as dnsmos.weights=DIR."


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """The options that all of these commands have."""

    without: ClassVar[frozenset[str]] = frozenset()
    """Inherited options that a command does not have."""

    by: Columns | None = option(
        None,
        "Break the results down by columns, with commas: speaker, language, duration, sample_rate, one of the "
        "manifest, or a field of a benchmark's questions.",
        python="columns to break the results down by: `speaker`, `language`, `duration`, `sample_rate` or a column of "
        "the manifest. They change no score, and a continued run keeps its own.",
    )
    log: Text | None = option(
        None,
        "Also write values, tables, audio and plots to wandb[:PROJECT], mlflow[:FOLDER] or tensorboard[:FOLDER] during "
        "the run.",
        of="terminal",
    )
    json: Flag = option(False, "Print JSON in place of tables.", of="terminal")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningOptions:
    """Command-line fields of `Running`; none of them changes a number."""

    device: Text = option("auto", "auto, cpu, cuda:0, or several GPUs with commas.", of="running")
    workers: WholeNumber | None = option(
        None, "CPU worker processes. Default: one per core, fewer with GPUs.", of="running", least=1
    )
    per_gpu: WholeNumber = option(
        1,
        "Worker processes for each GPU, which share its memory in equal parts.",
        of="running",
        least=1,
        python="worker processes for each GPU. Several share its memory in equal parts: one computes while another "
        "prepares its batch.",
    )
    batch_s: Number | None = option(
        None, "Padded seconds of audio per batch, for every stage. Default: by trial.", of="running", over=0
    )
    time_limit_s: Number | None = option(
        None,
        "Seconds that a batch may take. Default: 600, or 60 per second of audio if that is more.",
        of="running",
        over=0,
        python="seconds that a batch may take without loading. Then its worker is ended, and its items run again one "
        "by one. None for 600, or 60 per padded second of the batch if that is more.",
    )
    cache: Flag = option(True, "Keep computed features and scores of signals for other runs.", of="running")
    save_audio: Retention | None = option(
        None,
        "all, none, or the number of samples whose audio is saved. Without a value: all.",
        alone="all",
        of="running",
        python="`all`, `none`, or how many samples' audio to keep; None keeps all of a small run, 24 of a large one.",
    )
    retry_failed: Flag = option(False, "Run items again that failed before.", of="running")
    check: Flag = option(
        True, "Check every codec on a few short clips, for mistakes that its scores do not show.", of="running"
    )
