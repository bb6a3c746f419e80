"""`codec-bench demo`, `eval` and `score`: audio through codecs, or audio that exists already, and its scores."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.cli.options import (
    Actors,
    BatchS,
    By,
    Cache,
    Check,
    CpuActors,
    CpusPerActor,
    Device,
    Executor,
    Graphs,
    Json,
    Limit,
    Log,
    Metrics,
    Out,
    PerGpu,
    Preset,
    RayAddress,
    Retry,
    SaveAudio,
    Seed,
    Set,
    Shard,
    Shards,
    TimeLimit,
    Timings,
    Workers,
    columns,
    parse_settings,
)
from codec_bench.cli.output import talk
from codec_bench.cli.request import Config
from codec_bench.errors import UserError

if TYPE_CHECKING:
    from codec_bench.store.record import Run


def demo(
    out: Out = None, device: Device = "auto", workers: Workers = None, limit: Limit = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the choice of utterances.")] = None,
    cache: Cache = True, timings: Timings = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Run the main job on embedded speech: nine rows, every embedded metric, no network."""
    from codec_bench.api.evaluate import evaluate as evaluate_codecs
    from codec_bench.config import read_config

    preset = read_config("preset", "demo")
    folder = out or Path("runs/demo")
    asked = {
        "codec": preset["codecs"], "data": preset["data"], "metrics": preset["metrics"], "out": folder,
        "seed": preset["seed"] if seed is None else seed, "limit": limit or preset["limit"],
    }  # fmt: skip
    how = {"device": device, "workers": workers, "cache": cache, "save_audio": "all"}
    _run(evaluate_codecs, asked, how, as_json, timings)
    if not as_json:
        talk(_what_next(folder))


def _what_next(folder: Path) -> str:
    """What somebody who has seen the demo can try, with the command as it was typed here."""
    from codec_bench.cli.stopping import program

    typed = program()
    return f"""
What to try next:
  Look and listen: open {folder / "report.html"} in a browser.
  Your own audio, a folder of sound files:
    {typed} eval --codec unprocessed,opus-12k,mp3-32k --data FOLDER --preset embedded
  Your own codec, a class with encode and decode in a file:
    {typed} profile --codec ./mine.py:MyCodec"""


def evaluate(
    codec: Annotated[str, typer.Option("--codec", help="Codecs with commas: opus-12k,encodec-24khz@6,./mine.py:MyCodec,unprocessed. NAME=CODEC names the row.")],
    data: Annotated[str, typer.Option("--data", help="A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.")],
    config: Config = None, metrics: Metrics = None, preset: Preset = None, out: Out = None, device: Device = "auto",
    workers: Workers = None, limit: Limit = None, seed: Seed = 0, shard: Shard = None, batch_s: BatchS = None, cache: Cache = True, save_audio: SaveAudio = None,
    settings: Set = None, by: By = None, retry_failed: Retry = False, time_limit_s: TimeLimit = None, check: Check = True,
    timings: Timings = False, per_gpu: PerGpu = 1, graphs: Graphs = "off", executor: Executor = "local", ray_address: RayAddress = None,
    shards: Shards = None, actors: Actors = None, cpus_per_actor: CpusPerActor = None, cpu_actors: CpuActors = 0,
    log: Log = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Send audio through codecs and score what comes out."""
    from codec_bench.api.evaluate import evaluate as evaluate_codecs

    asked = {
        "codec": codec, "data": data, "metrics": metrics, "preset": preset, "out": out, "seed": seed, "limit": limit, "shard": shard,
        "options": parse_settings(settings or []), "by": columns(by),
    }  # fmt: skip
    how = {
        "device": device, "workers": workers, "batch_s": batch_s, "cache": cache, "save_audio": save_audio,
        "retry_failed": retry_failed, "time_limit_s": time_limit_s, "per_gpu": per_gpu, "graphs": graphs,
        "check": check, "executor": _executor(executor, address=ray_address, shards=shards, actors=actors, cpus=cpus_per_actor, cpu_actors=cpu_actors),
    }  # fmt: skip
    _run(evaluate_codecs, asked, how, as_json, timings, log)


def score(
    generated: Annotated[str, typer.Option("--generated", help="A folder or manifest of audio made elsewhere; a file belongs to the sample with its stem as id. Several systems: NAME=FOLDER with commas.")],
    data: Annotated[str, typer.Option("--data", help="What the audio is compared with: transcripts, reference audio, speakers.")],
    config: Config = None, metrics: Metrics = None, preset: Preset = None, out: Out = None, device: Device = "auto",
    workers: Workers = None, limit: Limit = None, seed: Seed = 0, shard: Shard = None, batch_s: BatchS = None, cache: Cache = True, save_audio: SaveAudio = None,
    settings: Set = None, by: By = None, retry_failed: Retry = False, time_limit_s: TimeLimit = None, timings: Timings = False,
    allow_same: Annotated[bool, typer.Option("--allow-same", help="Score audio that is the reference audio itself, as that of a lossless system.")] = False,
    per_gpu: PerGpu = 1, graphs: Graphs = "off", executor: Executor = "local", ray_address: RayAddress = None,
    shards: Shards = None, actors: Actors = None, cpus_per_actor: CpusPerActor = None, cpu_actors: CpuActors = 0,
    log: Log = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Score audio that exists already: speech synthesis, voice conversion, another toolkit's reconstructions."""
    from codec_bench.api.score import score as score_generated

    asked = {
        "generated": generated, "data": data, "metrics": metrics, "preset": preset, "out": out, "seed": seed, "limit": limit, "shard": shard,
        "options": parse_settings(settings or []), "by": columns(by), "allow_same": allow_same,
    }  # fmt: skip
    how = {
        "device": device, "workers": workers, "batch_s": batch_s, "cache": cache, "save_audio": save_audio,
        "retry_failed": retry_failed, "time_limit_s": time_limit_s, "per_gpu": per_gpu, "graphs": graphs,
        "executor": _executor(executor, address=ray_address, shards=shards, actors=actors, cpus=cpus_per_actor, cpu_actors=cpu_actors),
    }  # fmt: skip
    _run(score_generated, asked, how, as_json, timings, log)


def _run(
    verb: Callable[..., Run], asked: Mapping[str, Any], how: Mapping[str, Any], as_json: bool, timings: bool,
    log: str | None = None,
) -> None:  # fmt: skip
    """Calls `evaluate` or `score` with a progress line and prints the run; exits with 3 if something failed.

    Args:
        verb: the function. asked: its arguments. how: the fields of `Running`. as_json, timings: what is printed.
        log: the service that is told of the run, or None.
    """
    from codec_bench.api.progress import progress_line
    from codec_bench.api.tracking import tracked
    from codec_bench.cli.stopping import stopping
    from codec_bench.engine.running import Running
    from codec_bench.report.results import SUMMARY
    from codec_bench.store.files import read_json

    _check_numbers(how)
    with stopping() as stop:
        with progress_line() as progress:
            plain = Running(**how, progress=progress.tell, on_folder=stop.on_folder)
            with tracked(log, plain, talk) as running:
                run = verb(**asked, running=running)
        summary = read_json(run.folder / SUMMARY)  # it was just written, and is not computed twice
    print_finished(run, summary, as_json, timings)


def print_finished(run: Run, summary: Mapping[str, Any], as_json: bool, timings: bool) -> None:
    """Prints a run that is finished; exits with 3 if something failed."""
    from codec_bench.cli.show import print_run

    if as_json:
        sys.stdout.write(json.dumps(summary, ensure_ascii=False) + "\n")
    else:
        print_run(run, summary, timings=timings)
    if summary["failures"]["items"] or summary["failures"]["scores"]:
        raise typer.Exit(3)


def _executor(name: str, **cluster: Any) -> Any:
    """What `Running.executor` is given.

    Args:
        name: that was typed. cluster: the options of a Ray cluster, as `OnRay` takes them.

    Raises:
        UserError: there is no such executor, or options of Ray were given to another.
    """
    from codec_bench.engine.executor import OnRay, read_executor

    given = {option: value for option, value in cluster.items() if value}
    if read_executor(name) is None:
        if given:
            raise UserError(
                f"options of a Ray cluster were given ({', '.join(given)}) without --executor ray",
                hint="add --executor ray, or leave them out",
            )
        return name
    return OnRay(**{option: value for option, value in cluster.items() if value is not None})


def _check_numbers(how: Mapping[str, Any]) -> None:
    """Raises UserError if an option that counts something is too small, or there is no such mode of graphs."""
    from codec_bench.registry import checked_graphs

    checked_graphs(how.get("graphs", "off"))
    for option, name in (("--workers", "workers"), ("--per-gpu", "per_gpu")):
        if how.get(name) is not None and how[name] < 1:
            raise UserError(f"{option} is {how[name]}; expected at least 1")
    for option, name in (("--batch-s", "batch_s"), ("--time-limit-s", "time_limit_s")):
        if how.get(name) is not None and how[name] <= 0:
            raise UserError(f"{option} is {how[name]}; expected more than 0")
