"""All commands with their options. Modules that are slow to import are imported by the command that needs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.cli.agreement import agreement
from codec_bench.cli.answers import answers_app
from codec_bench.cli.build import build
from codec_bench.cli.cluster import progress, slurm
from codec_bench.cli.evaluate import demo, evaluate, score
from codec_bench.cli.imports import import_app
from codec_bench.cli.leaderboard import leaderboard
from codec_bench.cli.listen import listen_app
from codec_bench.cli.metrics import metrics
from codec_bench.cli.options import (
    By,
    CallLimit,
    Device,
    Json,
    MemoryGib,
    Seed,
    Set,
    columns,
    command_group,
    parse_settings,
)
from codec_bench.cli.output import talk
from codec_bench.cli.profile import profile
from codec_bench.cli.record import merge, rescue, verify
from codec_bench.cli.run import run
from codec_bench.cli.site import site
from codec_bench.cli.weights import weights_app
from codec_bench.errors import UserError

app = command_group("codec-bench", "Neural audio codecs and speech quality, measured right and fast.")

app.add_typer(weights_app, name="weights")
app.add_typer(answers_app, name="answers")
app.add_typer(listen_app, name="listen")
app.add_typer(import_app, name="import")
app.command("profile")(profile)
app.command("run")(run)
app.command("leaderboard")(leaderboard)
app.command("site")(site)
app.command("build")(build)
app.command("agreement")(agreement)
app.command("metrics")(metrics)
app.command("verify")(verify)
app.command("rescue")(rescue)
app.command("merge")(merge)
app.command("slurm", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(slurm)
app.command("progress")(progress)
app.command("demo")(demo)
app.command("eval")(evaluate)
app.command("score")(score)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        import codec_bench

        sys.stdout.write(f"{codec_bench.__version__}\n")
        raise typer.Exit()


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="One run folder, or two.")],
    systems: Annotated[str | None, typer.Option("--systems", help="Two or more systems A,B,... of one run, or one name that both runs have. Default: all.")] = None,
    metrics: Annotated[str | None, typer.Option("--metrics", help="Only these.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random exchanges of the test.")] = 0, as_json: Json = False,
) -> None:  # fmt: skip
    """Compare systems or runs pair by pair, over the samples that both have, with intervals and an exact test."""
    from codec_bench.api.compare import compare as compare_runs
    from codec_bench.cli.show import print_pairs

    pairs = compare_runs(runs=runs, systems=systems, metrics=metrics, seed=seed)
    if as_json:
        sys.stdout.write(json.dumps([pair.as_dict() for pair in pairs], ensure_ascii=False) + "\n")
    else:
        print_pairs(pairs)


@app.command("sample-size")
def sample_size(
    run: Annotated[Path, typer.Argument(help="A run folder: the pilot.")],
    metric: Annotated[str, typer.Option("--metric", help="The metric whose difference is to be shown.")],
    difference: Annotated[float, typer.Option("--difference", help="The smallest difference that matters, in the metric's unit.")],
    systems: Annotated[str | None, typer.Option("--systems", help="Two systems A,B; not needed if the run has only two.")] = None,
    power: Annotated[float, typer.Option("--power", help="The probability with which the difference is to be shown.")] = 0.8,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Say how many speakers and utterances are needed to show a difference, judged from a pilot run."""
    from codec_bench.api.sample_size import sample_size as size_of
    from codec_bench.cli.show import print_sample_size

    found = size_of(run=run, metric=metric, difference=difference, systems=systems, power=power)
    if as_json:
        sys.stdout.write(json.dumps(found.as_dict(), ensure_ascii=False) + "\n")
    else:
        print_sample_size(found)


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders that hold some; several runs are shown side by side.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The page. Default: report.html in the first run folder.")
    ] = None,
    audio_mb: Annotated[float, typer.Option("--audio-mb", help="Megabytes of audio to put into the page.")] = 25.0,
    by: By = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", help="Also write every plot into this folder: as SVG, as PDF, and its data as CSV."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the summary as JSON, of several runs a list of them, in place of tables."),
    ] = False,
) -> None:
    """Write the page of a run again, or one page for several runs."""
    from codec_bench.cli.breakdown import print_breakdowns
    from codec_bench.report.page import write_page
    from codec_bench.stats.summary import summarise
    from codec_bench.store.files import write_json
    from codec_bench.store.folders import run_folders
    from codec_bench.store.record import open_run

    opened = [open_run(found) for folder in runs for found in run_folders(folder)]
    summaries = [summarise(run, columns(by)) for run in opened]
    target = out or runs[0] / "report.html"
    try:
        write_page(opened, target, audio_mb=audio_mb, summaries=summaries)
    except OSError as error:
        raise UserError(f"'{target}' cannot be written: {error.strerror}", hint="give another --out") from error
    if out is None and len(opened) == 1:
        write_json(opened[0].folder / "summary.json", summaries[0])
    if figures is not None:
        from codec_bench.report.figures import write_figures

        written = write_figures(opened, figures, summaries=summaries)
        talk("\n".join([f"{len(written.files)} files of figures: {figures}", *written.notes]))
    if as_json:
        sys.stdout.write(json.dumps(summaries if len(opened) > 1 else summaries[0], ensure_ascii=False) + "\n")
        return
    for one, summary in zip(opened, summaries if by else []):
        if len(opened) > 1:
            sys.stdout.write(f"{one.folder}\n")
        print_breakdowns(summary)
    sys.stdout.write(f"{target}\n")


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    form: Annotated[str, typer.Option("--format", help="csv, jsonl or parquet; with --summary: csv, markdown or latex; for the Hugging Face hub: hf-eval-results or model-index; for other harnesses: lm-eval, lmms-eval or inspect.")] = "csv",
    out: Annotated[Path | None, typer.Option("--out", help="A file. Default: standard output (not for parquet).")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Write the table of systems and metrics in place of the scores.")] = False,
    safe_csv: Annotated[bool, typer.Option("--safe-csv", help="Put an apostrophe before texts that a spreadsheet would take for formulas.")] = False,
    system: Annotated[str | None, typer.Option("--system", help="For the hub and other harnesses: the system. Needed where the run has several.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="For the hub: only this metric.")] = None,
) -> None:  # fmt: skip
    """Write every score as a row, with --summary the table for a paper, or the results for a model's repository."""
    from codec_bench.errors import UserError
    from codec_bench.report import harnesses
    from codec_bench.report.hugging_face import FORMATS, export_hugging_face
    from codec_bench.report.paper import export_summary
    from codec_bench.store.export import export_run
    from codec_bench.store.record import open_run

    if form in (*FORMATS, *harnesses.FORMATS):
        if summary or safe_csv:
            raise UserError(
                f"--summary and --safe-csv are for tables, and the format is '{form}'", hint="leave them out"
            )
        if form in harnesses.FORMATS and metric is not None:
            raise UserError(f"--metric is for {' and '.join(FORMATS)}", hint="leave it out")
        if form in harnesses.FORMATS:
            left = harnesses.export_harness(open_run(run), form, out, system=system)
        else:
            left = export_hugging_face(open_run(run), form, out, system=system, metric=metric)
        if left:
            talk(f"left out, because they have no value: {', '.join(left)}")
        return
    if system is not None or metric is not None:
        raise UserError(f"--system and --metric are for {' and '.join(FORMATS)}", hint="leave them out")
    (export_summary if summary else export_run)(open_run(run), form, out, safe=safe_csv)


@app.command("list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="codecs, metrics, benchmarks, models, suites, prompts, rubrics, steps, features, rules, data, presets, recipes or plugins."
        ),
    ] = "codecs",
    groups: Annotated[
        bool, typer.Option("--groups", help="Of metrics: the groups that --metrics takes, and their metrics.")
    ] = False,
    by: Annotated[str | None, typer.Option("--by", help="Of metrics: their order, about, needs or cost.")] = None,
    as_json: Json = False,
) -> None:
    """List the names of one kind of thing."""
    from codec_bench.cli.show import print_list

    print_list(what, as_json, groups=groups, by=by)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A codec, metric, benchmark, model, feature, data set, preset, suite or run folder.")],
    model: Annotated[str | None, typer.Option("--model", help="For a benchmark: show the prompt that this model would get.")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="With --model or --data-statistics: a folder with the data sets, used in place of the hub.")] = None,
    data_statistics: Annotated[bool, typer.Option("--data-statistics", help="For a benchmark: read its data, and show how many questions and hours of sound it has and what is wrong in it.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", help="With --data-statistics: read at most so many questions.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Show everything about one name."""
    from codec_bench.cli.benchmarks import print_prompt, print_statistics
    from codec_bench.cli.show import print_name

    if data_statistics:
        print_statistics(name, data=str(data) if data is not None else None, limit=limit, as_json=as_json)
    elif model is not None:
        print_prompt(name, model, data=str(data) if data is not None else None)
    else:
        print_name(name, as_json)


@app.command()
def validate(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Manifests, folders, run folders, codecs, metrics, benchmarks, prompts or models (./mine.py:MyCodec)."
        ),
    ],
    time_limit: CallLimit = 300.0, memory_gib: MemoryGib = None, settings: Set = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Check data, codecs, metrics, benchmarks, prompts and models before a long run; exits with 2 if something is wrong."""
    from codec_bench.cli.check import print_validation
    from codec_bench.profiling.settings import Settings

    how = Settings(time_limit_s=time_limit, memory_gib=memory_gib)
    if not print_validation(names, as_json, how, parse_settings(settings or [])):
        raise typer.Exit(2)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check the installation; exits with 2 if something is wrong."""
    from codec_bench.cli.check import print_doctor

    if not print_doctor(as_json):
        raise typer.Exit(2)


@app.command("verify-batching")
def verify_batching(
    name: Annotated[str, typer.Argument(help="A codec, feature or metric, also your own.")],
    data: Annotated[str, typer.Option("--data", help="The audio for the check, as for eval.")] = "embedded",
    limit: Annotated[int, typer.Option("--limit", help="How many samples.")] = 12,
    device: Device = "auto", seed: Seed = 0, time_limit: CallLimit = 300.0, memory_gib: MemoryGib = None, settings: Set = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Check that results do not depend on the batch: each clip alone, and batches of mixed lengths in other orders."""
    from codec_bench.api.verify_batching import verify_batching as verify
    from codec_bench.cli.show import print_verdict
    from codec_bench.profiling.settings import Settings

    verdict = verify(
        name=name,
        data=data,
        limit=limit,
        device=device,
        seed=seed,
        options=parse_settings(settings or []),
        settings=Settings(time_limit_s=time_limit, memory_gib=memory_gib),
    )
    if as_json:
        sys.stdout.write(json.dumps(verdict.as_dict(), ensure_ascii=False) + "\n")
    else:
        print_verdict(verdict)
    if not verdict.exact:
        raise typer.Exit(2)
