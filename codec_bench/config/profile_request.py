"""The options of `profile`, each declared once (see `request.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from codec_bench.config.option import Number, Option, Place, Rows, Settings, Text, Texts, Whole
from codec_bench.config.shared_options import SETTINGS, Request


@dataclass(frozen=True, kw_only=True)
class ProfileRequest(Request):
    """The options of `profile`."""

    without: ClassVar = frozenset({"by", "log"})

    codec: Annotated[
        Rows,
        Option(
            "Codecs with commas; several points of one codec make a curve.",
            python="names and classes as `evaluate` takes them. Several points of one codec make a curve.",
        ),
    ]
    data: Annotated[
        Text, Option("A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.", python="as for `evaluate`.")
    ] = "embedded"
    metrics: Annotated[
        Texts | None,
        Option(
            "Metrics that are plotted against bitrate, or none. Default: stoi,pesq_wb,mel_distance,dnsmos.",
            python="names of the metrics and groups that are plotted against bitrate; empty for none.",
        ),
    ] = None
    anchor: Annotated[
        Text | None,
        Option(
            "The codec or family that BD-rates are measured against.",
            python="the codec or family that delta rates are measured against; None for none.",
        ),
    ] = None
    alignments: Annotated[
        Place | None,
        Option(
            "When each phone is said: a folder of TextGrid files, or a .TextGrid, .ctm or .json file. The codebooks are then compared with the phones.",
            python="a folder of TextGrid files, or a .TextGrid, .ctm or .json file, which says when each phone of the samples is said; "
            "then the codebooks are compared with the phones. None for none.",
        ),
    ] = None
    out: Annotated[
        Place | None,
        Option(
            "Folder of profile.json and profile.html. Default: the unfinished profile of the same command under runs/, or a new folder there.",
            python="a folder; None continues the unfinished profile of the same call under `runs/`, or makes a new folder there.",
        ),
    ] = None
    device: Annotated[
        Text, Option("auto, cpu or cuda:0.", python="`auto`, `cpu` or `cuda:0`; of several GPUs the first is used.")
    ] = "auto"
    limit: Annotated[
        Whole | None, Option("Take at most so many samples.", python="how many samples to take; None for all.")
    ] = None
    seed: Annotated[
        Whole,
        Option(
            "Seed of the noise, and of the choice that --limit makes.",
            python="decides which samples `limit` takes, and the noise.",
        ),
    ] = 0
    clip_s: Annotated[
        Number,
        Option(
            "Seconds of the clip that the real-time factor is measured on.",
            of="settings",
            least=0.1,
            python="seconds of speech for the real-time factor at batch 1, and for counting operations.",
        ),
    ] = 10.0
    reencodings: Annotated[Whole, Option("How often decoded audio is encoded again.", of="settings", least=0)] = 3
    threads: Annotated[
        Whole | None, Option("Threads of a codec's process. Default: its libraries decide.", of="settings", least=1)
    ] = None
    time_limit: Annotated[
        Number,
        Option(
            "Seconds that one call of a codec may take before it counts as hanging.",
            of="settings",
            named="time_limit_s",
            least=1.0,
        ),
    ] = 300.0
    set: Annotated[
        Settings | None,
        Option(
            SETTINGS,
            named="options",
            python='further arguments of codecs and features, such as {"encodec-24khz@6": {"weights": "random"}}.',
        ),
    ] = None
