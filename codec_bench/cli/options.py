"""The options that several commands share, and the reading of `--set`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from codec_bench.cli.request import unless, with_settings
from codec_bench.errors import UserError
from codec_bench.registry import names

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Run folder; the same folder continues the run. Default: the unfinished run of the same command under runs/, or a new folder there.",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        help="Metrics and groups of metrics with commas, such as stoi,dnsmos,wer[pocketsphinx] or quality,speaker.",
        callback=unless("preset"),
    ),
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help="A named set of metrics (see: list presets).", callback=unless("metrics")),
]
Limit = Annotated[int | None, typer.Option("--limit", help="Take at most so many samples.")]
Shard = Annotated[
    str | None, typer.Option("--shard", help="Take one part of the samples: K/N, such as 3/8. See merge.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the choice that --limit makes.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda:0, or several GPUs with commas.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", help="CPU worker processes. Default: one per core; beside GPUs, some cores are left free."
    ),
]
PerGpu = Annotated[
    int, typer.Option("--per-gpu", help="Worker processes for each GPU, which share its memory in equal parts.")
]
Graphs = Annotated[
    str,
    typer.Option("--graphs", help="CUDA graphs on a GPU: off, on, or auto, where they are measured to be faster."),
]
Executor = Annotated[
    str, typer.Option("--executor", help="local for this machine, or ray for the machines of a Ray cluster.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        help="HOST:PORT of the Ray cluster's head node. Default: RAY_ADDRESS, or the Ray of this machine.",
    ),
]
Shards = Annotated[
    int | None,
    typer.Option("--shards", help="How many shards --executor ray divides the data into. Default: by the cluster."),
]
Actors = Annotated[
    int | None,
    typer.Option(
        "--actors",
        help="How many Ray actors there are at most. Default: one for each GPU, or as many as the CPUs allow.",
    ),
]
CpusPerActor = Annotated[
    int | None, typer.Option("--cpus-per-actor", help="CPUs of each Ray actor that has no GPU. Default: 4 at most.")
]
CpuActors = Annotated[
    int, typer.Option("--cpu-actors", help="Ray actors on CPUs beside those that have a GPU. Default: none.")
]
BatchS = Annotated[
    float | None, typer.Option("--batch-s", help="Padded seconds of audio per batch. Default: found by trial.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit-s",
        help="Seconds that a batch may take. Default: 600, or 60 per second of audio if that is more.",
    ),
]
CallLimit = Annotated[
    float,
    typer.Option(
        "--time-limit", min=1.0, help="Seconds that one call of a codec may take before it counts as hanging."
    ),
]
MemoryGib = Annotated[
    float | None,
    typer.Option(
        "--memory-gib",
        min=0.1,
        help="Memory that the process of a codec may take. Default: nine tenths of what is free.",
    ),
]
Check = Annotated[
    bool,
    typer.Option("--check/--no-check", help="Check every codec on a few short pieces of the data."),
]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep computed features for other runs.")]
SaveAudio = Annotated[
    str | None, typer.Option("--save-audio", help="all, none, or the number of samples whose audio is kept.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="NAME.OPTION=VALUE for a codec or feature, such as dnsmos.weights=DIR.", callback=with_settings
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        help="Break the results down by columns, with commas: speaker, language, duration, sample_rate, one of the manifest, or a field of a benchmark's questions.",
    ),
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Run items again that failed before.")]
Timings = Annotated[bool, typer.Option("--timings", help="Also print where the time went.")]
Log = Annotated[
    str | None,
    typer.Option(
        "--log",
        help="Also write values, tables, sound and plots to wandb[:PROJECT], mlflow[:FOLDER] or tensorboard[:FOLDER] while the run goes on.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]


def command_group(name: str, help: str) -> typer.Typer:
    """An application of commands that is told what it is for when no command is given, in plain text."""
    return typer.Typer(
        name=name, help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    )  # fmt: skip


def columns(by: list[str] | None) -> list[str] | None:
    """The names of columns that `--by` was given, each time one or several with commas; None without the option.

    Raises:
        UserError: the option was given without a name.
    """
    if by is None:
        return None
    found = [name for text in by for name in names(text)]
    if not found:
        raise UserError("--by got no column", hint="for example --by speaker or --by speaker,duration")
    return found


def parse_settings(settings: list[str]) -> dict[str, dict[str, Any]]:
    """`["dnsmos.weights=DIR"]` as {"dnsmos": {"weights": "DIR"}}; values are read as YAML: a text, a number, a truth value, or a mapping in braces.

    Raises:
        UserError: a setting is not of the form NAME.OPTION=VALUE.
    """
    from codec_bench.config import parse_value

    options: dict[str, dict[str, Any]] = {}
    for text in settings:
        path, equals, value = text.partition("=")
        name, dot, option = path.rpartition(".")
        if not (equals and dot and name and option):
            raise UserError(
                f"--set got '{text}'; expected NAME.OPTION=VALUE", hint="for example --set dnsmos.weights=DIR"
            )
        options.setdefault(name, {})[option] = parse_value(value)
    return options
