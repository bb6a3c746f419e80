"""Every command, with its options. Whatever costs time is imported by the command that needs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.cli.profile import profile
from codec_bench.cli.run import leaderboard, run
from codec_bench.cli.weights import weights_app
from codec_bench.errors import UserError

if TYPE_CHECKING:
    from codec_bench.store.record import Run

app = typer.Typer(
    name="codec-bench",
    help="Neural audio codecs and speech quality, measured right and fast.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(weights_app, name="weights")
app.command("profile")(profile)
app.command("run")(run)
app.command("leaderboard")(leaderboard)

Out = Annotated[
    Path | None, typer.Option("--out", help="Run folder; the same folder continues the run. Default: runs/...")
]
Metrics = Annotated[
    str | None, typer.Option("--metrics", help="Metrics with commas, such as stoi,dnsmos,wer[pocketsphinx].")
]
Preset = Annotated[str | None, typer.Option("--preset", help="A named choice of metrics (see: list presets).")]
Limit = Annotated[int | None, typer.Option("--limit", help="Take at most so many samples.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the bootstrap and of the part that --limit takes.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda:0, or several GPUs with commas.")]
Workers = Annotated[int | None, typer.Option("--workers", help="CPU worker processes. Default: one per core.")]
BatchS = Annotated[
    float | None, typer.Option("--batch-s", help="Padded seconds of audio per batch. Default: found by trial.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit-s",
        help="Seconds that a batch may take. Default: 600, or 60 per second of audio where that is more.",
    ),
]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep computed features for other runs.")]
SaveAudio = Annotated[
    str | None, typer.Option("--save-audio", help="all, none, or for how many samples to keep audio.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME.OPTION=VALUE for a codec or feature, such as dnsmos.weights=DIR."),
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Run items that failed before again.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        import codec_bench

        typer.echo(codec_bench.__version__)
        raise typer.Exit()


@app.command()
def demo(
    out: Out = None, device: Device = "auto", workers: Workers = None, limit: Limit = None, seed: Seed = 0, cache: Cache = True,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Run the main job on embedded speech: nine rows, every embedded metric, no network."""
    from codec_bench.config import read_config

    preset = read_config("preset", "demo")
    running = _running(device, workers, None, cache, "all", False)
    _evaluate(
        preset["codecs"],
        preset["data"],
        preset["metrics"],
        out or Path("runs/demo"),
        seed,
        limit or preset["limit"],
        {},
        running,
        as_json,
    )


@app.command("eval")
def evaluate(
    codec: Annotated[str, typer.Option("--codec", help="Codecs with commas: opus-12k,encodec-24khz@6,./mine.py:MyCodec,unprocessed.")],
    data: Annotated[str, typer.Option("--data", help="A folder, a manifest (jsonl, csv, tsv, parquet), or embedded.")],
    metrics: Metrics = None, preset: Preset = None, out: Out = None, device: Device = "auto", workers: Workers = None,
    limit: Limit = None, seed: Seed = 0, batch_s: BatchS = None, cache: Cache = True, save_audio: SaveAudio = None,
    settings: Set = None, retry_failed: Retry = False, time_limit_s: TimeLimit = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Send audio through codecs and score what comes out."""
    running = _running(device, workers, batch_s, cache, save_audio, retry_failed, time_limit_s)
    _evaluate(
        codec, data, _metrics(metrics, preset), out, seed, limit, parse_settings(settings or []), running, as_json
    )


@app.command("score")
def score(
    generated: Annotated[str, typer.Option("--generated", help="A folder or manifest of audio made elsewhere, matched by id.")],
    data: Annotated[str, typer.Option("--data", help="What it should be like: transcripts, reference audio, speakers.")],
    metrics: Metrics = None, preset: Preset = None, out: Out = None, device: Device = "auto", workers: Workers = None,
    limit: Limit = None, seed: Seed = 0, batch_s: BatchS = None, cache: Cache = True, save_audio: SaveAudio = None,
    settings: Set = None, retry_failed: Retry = False, time_limit_s: TimeLimit = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Score audio that exists already: speech synthesis, voice conversion, another toolkit's reconstructions."""
    from codec_bench.api import score as score_generated

    running = _running(device, workers, batch_s, cache, save_audio, retry_failed, time_limit_s)
    options = parse_settings(settings or [])
    with _progress() as tell:
        run = score_generated(
            generated=generated, data=data, metrics=_metrics(metrics, preset), out=out, seed=seed, limit=limit, options=options,
            running=_telling(running, tell),
        )  # fmt: skip
    _finish(run, as_json)


def _evaluate(
    codec: Any,
    data: Any,
    metrics: Any,
    out: Path | None,
    seed: int,
    limit: int | None,
    options: Any,
    running: Any,
    as_json: bool,
) -> None:
    from codec_bench.api import evaluate as evaluate_codecs

    with _progress() as tell:
        run = evaluate_codecs(
            codec=codec,
            data=data,
            metrics=metrics,
            out=out,
            seed=seed,
            limit=limit,
            options=options,
            running=_telling(running, tell),
        )
    _finish(run, as_json)


def _running(
    device: str, workers: int | None, batch_s: float | None, cache: bool, save_audio: str | None, retry: bool,
    time_limit_s: float | None = None,
) -> Any:  # fmt: skip
    from codec_bench.api import Running

    if workers is not None and workers < 1:
        raise UserError(f"--workers is {workers}; expected at least 1")
    for option, value in (("--batch-s", batch_s), ("--time-limit-s", time_limit_s)):
        if value is not None and value <= 0:
            raise UserError(f"{option} is {value}; expected more than 0")
    return Running(
        device=device, workers=workers, batch_s=batch_s, time_limit_s=time_limit_s, cache=cache, save_audio=save_audio,
        retry_failed=retry,
    )  # fmt: skip


def _telling(running: Any, tell: Any) -> Any:
    from dataclasses import replace

    return replace(running, progress=tell)


def _progress() -> Any:
    from codec_bench.cli.progress import progress_line

    return progress_line()


def _metrics(metrics: str | None, preset: str | None) -> list[str]:
    from codec_bench.api import names
    from codec_bench.config import read_config

    chosen = names(metrics) if metrics else []
    if preset is not None:
        chosen += [m for m in read_config("preset", preset)["metrics"] if m not in chosen]
    if not chosen:
        raise UserError(
            "no metric was named", hint="--metrics stoi,dnsmos or --preset embedded; see codec-bench list metrics"
        )
    return chosen


def parse_settings(settings: list[str]) -> dict[str, dict[str, Any]]:
    """`["dnsmos.weights=DIR"]` as {"dnsmos": {"weights": "DIR"}}; values are read as YAML scalars.

    Raises:
        UserError: one is not of the form NAME.OPTION=VALUE.
    """
    from codec_bench.config import parse_scalar

    options: dict[str, dict[str, Any]] = {}
    for text in settings:
        path, equals, value = text.partition("=")
        name, dot, option = path.rpartition(".")
        if not (equals and dot and name and option):
            raise UserError(
                f"--set got '{text}'; expected NAME.OPTION=VALUE", hint="for example --set dnsmos.weights=DIR"
            )
        options.setdefault(name, {})[option] = parse_scalar(value)
    return options


def _finish(run: Run, as_json: bool) -> None:
    """Prints a finished run; exits 3 where something failed."""
    from codec_bench.cli.show import print_run
    from codec_bench.stats.summary import summarise

    summary = summarise(run)
    if as_json:
        sys.stdout.write(json.dumps(summary, ensure_ascii=False) + "\n")
    else:
        print_run(run, summary)
    if summary["failures"]["items"] or summary["failures"]["scores"]:
        raise typer.Exit(3)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="One run folder, or two.")],
    systems: Annotated[str | None, typer.Option("--systems", help="Two systems A,B of one run, or one name that both runs have.")] = None,
    metrics: Annotated[str | None, typer.Option("--metrics", help="Only these.")] = None,
    seed: Seed = 0, as_json: Json = False,
) -> None:  # fmt: skip
    """Compare two systems or runs: paired bootstrap and sign test on the samples both have."""
    from codec_bench.cli.show import print_pairs
    from codec_bench.comparison import compare as compare_runs

    pairs = compare_runs(runs=runs, systems=systems, metrics=metrics, seed=seed)
    if as_json:
        sys.stdout.write(json.dumps([pair.as_dict() for pair in pairs], ensure_ascii=False) + "\n")
    else:
        print_pairs(pairs)


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders that hold some; several stand side by side.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The page. Default: report.html in the first run folder.")
    ] = None,
    audio_mb: Annotated[float, typer.Option("--audio-mb", help="Megabytes of audio to put into the page.")] = 25.0,
) -> None:
    """Write the page again, or one page for several runs."""
    from codec_bench.report.page import write_page
    from codec_bench.store.record import open_run, run_folders

    opened = [open_run(found) for folder in runs for found in run_folders(folder)]
    target = out or runs[0] / "report.html"
    write_page(opened, target, audio_mb=audio_mb)
    sys.stdout.write(f"{target}\n")


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    form: Annotated[str, typer.Option("--format", help="csv, jsonl or parquet.")] = "csv",
    out: Annotated[
        Path | None, typer.Option("--out", help="A file. Default: standard output (not for parquet).")
    ] = None,
) -> None:
    """Write one row per system, sample and metric: system,id,metric,value,status,reason,protocol."""
    from codec_bench.store.export import export_run
    from codec_bench.store.record import open_run

    export_run(open_run(run), form, out)


@app.command("list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="codecs, metrics, benchmarks, models, suites, prompts, rubrics, steps, features, rules, data, presets or plugins."
        ),
    ] = "codecs",
    as_json: Json = False,
) -> None:
    """List what there is."""
    from codec_bench.cli.show import print_list

    print_list(what, as_json)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A codec, metric, benchmark, model, feature, data set, preset, suite or run folder.")],
    model: Annotated[str | None, typer.Option("--model", help="Of a benchmark: show the prompt that this model would get.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="With --model: a folder with the data sets, in place of the hub.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Show everything about one name."""
    from codec_bench.cli.benchmarks import print_prompt
    from codec_bench.cli.show import print_name

    if model is not None:
        print_prompt(name, model, data=str(data) if data is not None else None)
    else:
        print_name(name, as_json)


@app.command()
def validate(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Manifests, folders, run folders, codecs, metrics, benchmarks or models (./mine.py:MyCodec)."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Check data, codecs, metrics, benchmarks and models before a long run; exits 2 when something is wrong."""
    from codec_bench.cli.check import print_validation

    if not print_validation(names, as_json):
        raise typer.Exit(2)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check the installation; exits 2 when something is wrong."""
    from codec_bench.cli.check import print_doctor

    if not print_doctor(as_json):
        raise typer.Exit(2)


@app.command("verify-batching")
def verify_batching(
    name: Annotated[str, typer.Argument(help="A codec, feature or metric, your own included.")],
    data: Annotated[str, typer.Option("--data", help="What to try it on.")] = "embedded",
    limit: Annotated[int, typer.Option("--limit", help="How many samples.")] = 12,
    device: Device = "auto", seed: Seed = 0, settings: Set = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Show that results do not depend on the batch: one by one against batches of mixed lengths, in any order."""
    from codec_bench.cli.show import print_verdict
    from codec_bench.exactness import verify_batching as verify

    verdict = verify(
        name=name, data=data, limit=limit, device=device, seed=seed, options=parse_settings(settings or [])
    )
    if as_json:
        sys.stdout.write(json.dumps(verdict.as_dict(), ensure_ascii=False) + "\n")
    else:
        print_verdict(verdict)
    if not verdict.exact:
        raise typer.Exit(2)
