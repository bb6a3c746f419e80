"""`codec-bench run`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from codec_bench.cli.options import By, Log, columns, parse_settings
from codec_bench.cli.output import talk
from codec_bench.cli.request import Config, unless, with_settings
from codec_bench.errors import UserError

if TYPE_CHECKING:
    from codec_bench.api.run_benchmark import Outcome, Phase


def run(
    benchmark: Annotated[str | None, typer.Argument(help="Benchmarks with commas (see: list benchmarks), or ./folder of your own.", callback=unless("suite"))] = None,
    config: Config = None,
    model: Annotated[str, typer.Option("--model", help="Models with commas (see: list models), ./mine.yaml or ./mine.py:Class.", callback=unless("codec"))] = "",
    codec: Annotated[str | None, typer.Option("--codec", help="In place of models: codecs with commas, for benchmarks of codecs.", callback=unless("model"))] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="A named list of benchmarks (see: list suites).", callback=unless("benchmark"))] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder; the same folder continues the run. Default: the unfinished run of the same command under runs/, or a new folder there.")] = None,
    phase: Annotated[str, typer.Option("--phase", help="both, answers (only asks the model), or scores (only scores recorded answers).")] = "both",
    judge: Annotated[str | None, typer.Option("--judge", help="The model that judges answers, for benchmarks that need one; several with commas (see: agreement).")] = None,
    data: Annotated[Path | None, typer.Option("--data", help="A folder with the data sets as OWNER/NAME, used in place of the hub.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Take at most so many questions of each benchmark.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the choice that --limit makes, and of what a model draws at random.")] = 0,
    shard: Annotated[str | None, typer.Option("--shard", help="Take one part of the questions: K/N, such as 3/8. See merge.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Draw so many answers to each question, where the model does not answer greedily.")] = 1,
    prompts: Annotated[str, typer.Option("--prompts", help="Where a prompt has several wordings: seeded (seed and id choose one), first, a number from 1, or each (every question in all of them).")] = "seeded",
    choices: Annotated[str, typer.Option("--choices", help="The order of the options of a question: given, shuffled (by seed and id), or all-rotations (every question in every rotation of its options).")] = "given",
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda:0, or several GPUs with commas.")] = "auto",
    workers: Annotated[int | None, typer.Option("--workers", help="CPU worker processes that score audio. Default: one per core; beside GPUs, some cores are left free.")] = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep answers and computed features for other runs.")] = True,
    save_audio: Annotated[str | None, typer.Option("--save-audio", help="all, none, or the number of questions whose sound is kept.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="NAME.OPTION=VALUE for a model, benchmark or feature.", callback=with_settings)] = None,
    by: By = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask questions again that failed before.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for a service that takes no requests for as long as it takes, also for a quota of the day. With --batch: stay until the batches are answered.")] = False,
    batch: Annotated[bool, typer.Option("--batch", help="Submit the questions as batches of the service: half the price, within a day. The same command collects the answers.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Ask a model although its config says that its service has shut it down.")] = False,
    reuse_answers: Annotated[bool, typer.Option("--reuse-answers", help="Take the answers of other runs, although the service may serve another checkpoint under the same name by now.")] = False,
    max_cost_usd: Annotated[float | None, typer.Option("--max-cost-usd", help="Ask nothing more once this command has spent so much on answers and verdicts, by the prices of the models and judges.")] = None,
    max_hours: Annotated[float | None, typer.Option("--max-hours", help="Ask nothing more after so many hours.")] = None,
    rescore: Annotated[bool, typer.Option("--rescore", help="Make the scores again, from the recorded answers.")] = False,
    log: Log = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
) -> None:  # fmt: skip
    """Ask models the questions of benchmarks and score their answers, or send a benchmark's audio through codecs."""
    from codec_bench.api.progress import progress_line
    from codec_bench.api.run_benchmark import run_benchmark, run_codecs
    from codec_bench.api.tracking import tracked
    from codec_bench.benchmark import suite as read_suite
    from codec_bench.benchmark.run import Terms
    from codec_bench.cli.stopping import stopping
    from codec_bench.engine.running import Running
    from codec_bench.registry import names

    wanted = names(benchmark or "") + (list(read_suite(suite)) if suite is not None else [])
    if not wanted:
        raise UserError(
            "no benchmark was named", hint="codec-bench run NAME --model NAME; see codec-bench list benchmarks"
        )
    if bool(names(model)) == bool(codec):
        raise UserError(
            "got both models and codecs, or neither; expected one of them",
            hint="--model NAME (see: list models) or --codec NAME (see: list codecs)",
        )
    options = regrouped(parse_settings(settings or []), [*wanted, *names(model), *names(judge or "")])
    plain = Running(device=device, workers=workers, cache=cache, save_audio=save_audio, retry_failed=retry_failed)
    with (
        stopping() as stop,
        progress_line() as progress,
        tracked(log, replace(plain, progress=progress.tell, on_folder=stop.on_folder), talk) as running,
    ):
        common: dict[str, Any] = {
            "benchmark": list(dict.fromkeys(wanted)), "out": out, "data": data, "seed": seed, "limit": limit, "shard": shard, "options": options,
            "by": columns(by), "running": running,
        }  # fmt: skip
        if codec:
            if repeats != 1:
                raise UserError("--repeats is for models: a codec gives the same output each time", hint="leave it out")
            outcome = run_codecs(codec=codec, **common)
        else:
            asked = cast("Phase", phase)  # `run_benchmark` refuses what is no phase
            terms = Terms(wait, reuse_answers, anyway, max_cost_usd, max_hours, batch)
            outcome = run_benchmark(
                model=model, phase=asked, judge=judge, rescore=rescore, terms=terms, repeats=repeats, prompts=prompts, choices=choices,
                **common,
            )  # fmt: skip
    if print_outcome(outcome, as_json, broken_down=by is not None):
        raise typer.Exit(3)


def regrouped(options: dict[str, dict[str, Any]], names: list[str]) -> dict[str, dict[str, Any]]:
    """Settings by the names in the run: `gpt-4o.parameters` with `temperature` is `gpt-4o` with `parameters.temperature`."""
    from codec_bench.models import own_name

    # An own file can also be named by its stem.
    called = {**{own_name(name): name for name in names}, **{name: name for name in names}}
    out: dict[str, dict[str, Any]] = {}
    for key, values in options.items():
        known = max((n for n in called if key == n or key.startswith(f"{n}.")), key=len, default=key)
        name, head = called.get(known, known), key[len(known) + 1 :]
        out.setdefault(name, {}).update({f"{head}.{k}" if head else k: value for k, value in values.items()})
    return out


def print_outcome(outcome: Outcome, as_json: bool, *, broken_down: bool) -> bool:
    """Prints the results, and those by the values of columns if that was asked for; returns whether anything failed."""
    overview = json.loads((outcome.folder / "summary.json").read_text("utf-8"))
    if as_json:
        sys.stdout.write(json.dumps(overview, ensure_ascii=False) + "\n")
    else:
        _print_tables(outcome, overview)
        if broken_down:
            _print_breakdowns(outcome)
    failed = any(
        row["failures"]["items"] or row["failures"]["scores"] or (row["answers"] or {}).get("failed")
        for row in overview["benchmarks"]
    )
    return failed or bool(outcome.left_out)


def _print_breakdowns(outcome: Outcome) -> None:
    from codec_bench.cli.breakdown import print_breakdowns
    from codec_bench.stats.summary import summarise

    runs = {run.folder: run for run in outcome.runs.values()}  # one for all codecs of a benchmark
    for folder, run in runs.items():
        if len(runs) > 1:
            sys.stdout.write(f"\n{folder}\n")
        print_breakdowns(summarise(run))


def _print_tables(outcome: Outcome, overview: dict[str, Any]) -> None:
    from codec_bench.cli.output import console, table, talk
    from codec_bench.cli.robustness import print_choices, print_robustness
    from codec_bench.report.answers import answer_notes, judge_notes
    from codec_bench.report.beside import beside_notes, chance_text
    from codec_bench.report.numbers import draw_notes, interval_notes
    from codec_bench.report.table import failures_table

    out = console()
    # Before the answers are scored, there are neither values nor failures.
    scored = [
        (row, name, entry)
        for row in overview["benchmarks"]
        for name, entry in row["metrics"].items()
        if entry["n"] or entry["failed"]
    ]
    guessed = any(chance_text(entry) for _, _, entry in scored)
    columns = (
        "benchmark",
        "model",
        "metric",
        "value",
        "95 %",
        *(("chance",) if guessed else ()),
        "n",
        "failed",
        "counting failures",
    )
    if scored:
        out.print(table(columns, [_line(*one, guessed=guessed) for one in scored], numeric=columns[3:]))
    named = [(row["model"], f"{row['benchmark']} {name}", entry) for row, name, entry in scored]
    for note in (*beside_notes(named), *draw_notes(named), *interval_notes(named)):
        out.print(note, markup=False)
    for row in overview["benchmarks"]:
        about = f"{row['benchmark']} with {row['model']}"
        print_robustness(about, row["metrics"], row["answers"])
        print_choices(about, (row["answers"] or {}).get("choices"))
        if row["failures"]["reasons"]:
            out.print(f"{row['benchmark']} with {row['model']}", markup=False)
            out.print(failures_table({"systems": {row["model"]: {}}, "failures": row["failures"]}))
        if row["answers"] is not None:
            talk(f"{row['benchmark']} with {row['model']}: {_told(row['answers'])}")
            for note in answer_notes(row["answers"]):
                talk(f"{row['benchmark']} with {row['model']}: {note}")
            if left := _not_scored(row):
                talk(
                    f"{left:,} answer{'s are' if left != 1 else ' is'} recorded and not scored yet; --phase scores scores them"
                )
    for note in judge_notes(named):
        talk(note)
    for benchmark, model, reason in outcome.left_out:
        talk(f"left out: {benchmark} with {model}: {reason}")
    talk(f"folder: {outcome.folder}; pages: {outcome.folder}/BENCHMARK/MODEL/report.html")


def _not_scored(row: dict[str, Any]) -> int:
    """How many recorded answers have not been scored yet."""
    scored = max((entry["n"] + entry["failed"] for entry in row["metrics"].values()), default=0)
    return max(0, row["answers"]["asked"] - scored) if row["answers"] is not None else 0


def _told(answers: dict[str, Any]) -> str:
    """How many answers there are, and what asking cost, in one line."""
    usage = {name: amount for name, amount in answers["usage"].items() if amount}
    cost, draws = answers["cost_usd"], answers.get("draws", 1)
    rotated = (answers.get("choices") or {}).get("how") == "all-rotations"
    each = f" ({'up to ' if rotated else ''}{draws} to each question)" if draws > 1 else ""
    parts = [
        f"{answers['asked']} answers{each}, {answers['cached']} of them from the cache",
        f"{sum(answers['failed'].values())} failed" if answers["failed"] else "",
        f"{answers['latency_s']['p50']:.3g} s each (p95 {answers['latency_s']['p95']:.3g} s)"
        if answers["latency_s"]
        else "",
        ", ".join(f"{amount:,.0f} {name.replace('_', ' ')}" for name, amount in usage.items()),
        f"{cost:.4g} USD" if cost else "",
    ]
    return "; ".join(part for part in parts if part)


def _line(row: dict[str, Any], name: str, entry: dict[str, Any], *, guessed: bool) -> tuple[Any, ...]:
    from codec_bench.report.beside import chance_text
    from codec_bench.report.numbers import decimals, number, shown_unit
    from codec_bench.stats.judging import failing

    factor, unit = shown_unit(entry["unit"])
    places, interval = decimals([entry], factor), entry["ci95"]
    shown = lambda value: number(None if value is None else factor * value, places)  # noqa: E731
    counting = (entry.get("counting_failures") or {}).get("value")
    return (
        row["benchmark"],
        row["model"],
        " ".join(filter(None, (name, unit, "(primary)" if name == row["primary"] else ""))),
        shown(entry["value"]),
        " to ".join(map(shown, interval)) + ("*" if entry.get("note") else "") if interval else "",
        *((chance_text(entry).removeprefix("chance "),) if guessed else ()),
        entry["n"],
        f"{entry['failed']} (judge)" if failing(entry.get("judging")) else entry["failed"],
        shown(counting) if counting is not None and entry["failed"] else "",
    )
