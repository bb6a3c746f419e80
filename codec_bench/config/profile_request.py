"""The options of `profile`, each declared once (see `request.py`)."""

# ruff: noqa: RUF009  # `option` gives the field of a dataclass
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from codec_bench.config.option import Number, PathText, Rows, Settings, Text, Texts, WholeNumber, option
from codec_bench.config.shared_options import SETTINGS, Request


@dataclass(frozen=True, kw_only=True)
class ProfileRequest(Request):
    """The options of `profile`."""

    without: ClassVar = frozenset({"by", "log"})

    codec: Rows = option(
        ...,
        "Codecs with commas; several points of one codec make a curve.",
        python="names and classes as `evaluate` takes them. Several points of one codec make a curve.",
    )
    data: Text = option(
        "embedded", "A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.", python="as for `evaluate`."
    )
    metrics: Texts | None = option(
        None,
        "Metrics that are plotted against bitrate, or none. Default: stoi,pesq_wb,mel_distance,dnsmos.",
        python="names of the metrics and groups that are plotted against bitrate; empty for none.",
    )
    anchor: Text | None = option(
        None,
        "The codec or family that BD-rates are measured against.",
        python="the codec or family that delta rates are measured against; None for none.",
    )
    alignments: PathText | None = option(
        None,
        "When each phone is said: a folder of TextGrid files, or a .TextGrid, .ctm or .json file. The codebooks are "
        "then compared with the phones.",
        python="a folder of TextGrid files, or a .TextGrid, .ctm or .json file, which says when each phone of the samples is said; "
        "then the codebooks are compared with the phones. None for none.",
    )
    out: PathText | None = option(
        None,
        "Folder of profile.json and profile.html. Default: the unfinished profile of the same command under runs/, or "
        "a new folder there.",
        python="a folder; None continues the unfinished profile of the same call under `runs/`, or makes a new folder there.",
    )
    device: Text = option(
        "auto", "auto, cpu or cuda:0.", python="`auto`, `cpu` or `cuda:0`; of several GPUs the first is used."
    )
    limit: WholeNumber | None = option(
        None, "Take at most so many samples.", python="how many samples to take; None for all."
    )
    seed: WholeNumber = option(
        0,
        "Seed of the noise, and of the choice that --limit makes.",
        python="decides which samples `limit` takes, and the noise.",
    )
    clip_s: Number = option(
        10.0,
        "Seconds of the clip that the real-time factor is measured on.",
        of="settings",
        least=0.1,
        python="seconds of speech for the real-time factor at batch 1, and for counting operations.",
    )
    skip: Texts | None = option(
        None,
        "Measurements to leave out, with commas, such as streaming,complexity.",
        python="names of measurements to leave out, of `codec_bench.apps.profiling.steps.OPTIONAL`.",
    )
    reencodings: WholeNumber = option(3, "How often decoded audio is encoded again.", of="settings", least=0)
    lm_steps: WholeNumber = option(
        100,
        "Steps that a small transformer is trained on the codes, 0 for none.",
        of="settings",
        least=0,
        python="how many steps a small transformer is trained on the codes; 0 for none.",
    )
    threads: WholeNumber | None = option(
        None, "Threads of a codec's process. Default: its libraries decide.", of="settings", least=1
    )
    time_limit: Number = option(
        300.0,
        "Seconds that one call of a codec may take before it counts as hanging.",
        of="settings",
        named="time_limit_s",
        least=1.0,
    )
    set: Settings | None = option(
        None,
        SETTINGS,
        named="options",
        python='further arguments of codecs and features, such as {"encodec-24khz@6": {"weights": "random"}}.',
    )
