"""The options of `profile`, each declared once (see `request.py`)."""

# ruff: noqa: RUF009  # `option` gives the field of a dataclass
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codec_bench.config.option import Number, PathText, Rows, Settings, Text, Texts, WholeNumber, option
from codec_bench.config.shared_options import SETTINGS, CommandOptions


@dataclass(frozen=True, kw_only=True)
class ProfileRequest(CommandOptions):
    """The options of `profile`."""

    without: ClassVar = frozenset({"by", "log"})

    codec: Rows = option(
        ...,
        "Codecs with commas; several points of one codec make a curve.",
        python="names and classes as `evaluate` takes them. Several points of one codec make a curve.",
    )
    data: Text = option("embedded", "A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.")
    metrics: Texts | None = option(
        None,
        "Metrics that are plotted against bitrate, or none. Default: stoi,pesq_wb,mel_distance,dnsmos.",
        python="names of the metrics and groups that are plotted against bitrate; empty for none.",
    )
    anchor: Text | None = option(None, "The codec or family that BD-rates are measured against.")
    alignments: PathText | None = option(
        None,
        "Phone alignments: a folder of TextGrid files, or a .TextGrid, .ctm or .json file. The codebooks are then "
        "compared with the phones.",
    )
    out: PathText | None = option(
        None,
        "Folder of profile.json and profile.html. Default: the unfinished profile of the same command under runs/, or "
        "a new folder there.",
        python="a folder; None continues the unfinished profile of the same call under `runs/`, or creates a new one.",
    )
    device: Text = option("auto", "auto, cpu or cuda:0; of several GPUs the first is used.")
    limit: WholeNumber | None = option(None, "Take at most so many samples.")
    seed: WholeNumber = option(0, "Seed of the noise, and of the choice of `limit` samples.")
    clip_s: Number = option(
        10.0,
        "Seconds of the clip for the real-time factor at batch 1, and for counting operations.",
        of="settings",
        least=0.1,
    )
    skip: Texts | None = option(
        None,
        "Measurements to leave out, with commas, such as streaming,complexity.",
        python="names of measurements to leave out, of `codec_bench.apps.profiling.steps.OPTIONAL`.",
    )
    reencodings: WholeNumber = option(3, "How often decoded audio is encoded again.", of="settings", least=0)
    lm_steps: WholeNumber = option(
        100, "Training steps of a small transformer on the codes, 0 for none.", of="settings", least=0
    )
    threads: WholeNumber | None = option(
        None, "Threads of a codec's process. Default: its libraries decide.", of="settings", least=1
    )
    time_limit: Number = option(
        300.0, "Time limit of one call of a codec, in seconds.", of="settings", named="time_limit_s", least=1.0
    )
    set: Settings | None = option(
        None,
        SETTINGS,
        named="options",
        python='further arguments of codecs and features, such as {"encodec-24khz@6": {"weights": "random"}}.',
    )
