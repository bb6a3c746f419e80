"""`codec-bench profile`: everything about one or several codecs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.cli.request import Config, with_settings
from codec_bench.errors import UserError


def profile(
    codec: Annotated[str, typer.Option("--codec", help="Codecs with commas; several points of one codec make a curve.")],
    config: Config = None,
    data: Annotated[str, typer.Option("--data", help="A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.")] = "embedded",
    metrics: Annotated[str | None, typer.Option("--metrics", help="Metrics that are plotted against bitrate, or none. Default: stoi,pesq_wb,mel_distance,dnsmos.")] = None,
    anchor: Annotated[str | None, typer.Option("--anchor", help="The codec or family that BD-rates are measured against.")] = None,
    alignments: Annotated[Path | None, typer.Option("--alignments", help="When each phone is said: a folder of TextGrid files, or a .TextGrid, .ctm or .json file. The codebooks are then compared with the phones.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of profile.json and profile.html. Default: the unfinished profile of the same command under runs/, or a new folder there.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda:0.")] = "auto",
    limit: Annotated[int | None, typer.Option("--limit", help="Take at most so many samples.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the noise, and of the choice that --limit makes.")] = 0,
    clip_s: Annotated[float, typer.Option("--clip-s", help="Seconds of the clip that the real-time factor is measured on.")] = 10.0,
    reencodings: Annotated[int, typer.Option("--reencodings", help="How often decoded audio is encoded again.")] = 3,
    threads: Annotated[int | None, typer.Option("--threads", help="Threads of a codec's process. Default: its libraries decide.")] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds that one call of a codec may take before it counts as hanging.")] = 300.0,
    settings: Annotated[list[str] | None, typer.Option("--set", help="NAME.OPTION=VALUE for a codec or feature, such as dnsmos.weights=DIR.", callback=with_settings)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
) -> None:  # fmt: skip
    """Profile codecs: bitrate, codebooks, speed, size, latency, stability, quality curves, and checks for common mistakes."""
    from codec_bench.api.profile import METRICS
    from codec_bench.api.profile import profile as profile_codecs
    from codec_bench.api.progress import progress_line
    from codec_bench.cli.options import parse_settings
    from codec_bench.cli.output import console, talk
    from codec_bench.cli.stopping import stopping
    from codec_bench.profiling.settings import Settings
    from codec_bench.registry import names

    for name, value, least in (
        ("--clip-s", clip_s, 0.1), ("--time-limit", time_limit, 1.0), ("--reencodings", reencodings, 0), ("--threads", threads, 1),
    ):  # fmt: skip
        if value is not None and value < least:
            raise UserError(f"{name} is {value:g}; expected at least {least:g}")
    chosen = METRICS if metrics is None else "" if metrics.strip() == "none" else metrics
    thorough = Settings(clip_s=clip_s, reencodings=reencodings, threads=threads, time_limit_s=time_limit, seed=seed)
    count = len(names(codec))
    with stopping(lambda folder: _held(folder, count)) as stop, progress_line("steps", estimates=False) as progress:
        made = profile_codecs(
            codec=codec, data=data, metrics=chosen, anchor=anchor, out=out, device=device, limit=limit, seed=seed,
            options=parse_settings(settings or []), settings=thorough, alignments=alignments, on_folder=stop.on_folder,
            progress=lambda name, step, done, total: progress.tell(f"{name}: {step}", done, total, 0, 0.0),
        )  # fmt: skip
    if as_json:
        sys.stdout.write(json.dumps(made.as_dict(), ensure_ascii=False) + "\n")
    else:
        from codec_bench.report.profile_table import profile_tables

        shown = console()
        shown.print(profile_tables(made.facts, width=shown.width))
    for name, faults in made.faults.items():
        for fault in faults:
            talk(f"{name}: {fault}")
    talk(f"profile: {made.folder / 'profile.json'}\npage: {made.page}")
    if made.faults:
        raise typer.Exit(3)


def _held(folder: Path, count: int) -> str:
    """What an unfinished profile keeps."""
    from codec_bench.profiling.together import codecs_measured

    measured = len(codecs_measured(folder))
    return f"{measured} of {count} codecs are measured and kept in {folder}"
