"""`codec-bench run`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import typer

from codec_bench.config.run_request import RunRequest
from codec_bench.terminal.output import print_json, talk
from codec_bench.terminal.request import command, values_of

if TYPE_CHECKING:
    from rich.console import Console

    from codec_bench.api.run_benchmark import RunOutcome
    from codec_bench.stats.controls import Controlled
    from codec_bench.stats.summary_types import Answers, MetricSummary


@command(RunRequest)
def run(request: RunRequest) -> None:
    """Run benchmarks on models and codecs, and score them."""
    from codec_bench.api.read_arguments import resolve_verb
    from codec_bench.api.tracking import track
    from codec_bench.terminal.progress import progress_line
    from codec_bench.terminal.stopping import stopping

    verb, arguments, plain = resolve_verb(request, values_of(request))
    with (
        stopping() as stop,
        progress_line() as progress,
        track(
            request.log, replace(plain, progress=progress.update, on_folder=stop.on_folder, on_estimate=talk), talk
        ) as running,
        redirect_stdout(sys.stderr),  # output of models is no result
    ):
        outcome = verb(**arguments, running=running)
    if request.dry_run:
        _print_previews(outcome, request.json)
        return
    if print_outcome(outcome, request.json, broken_down=request.by is not None):
        raise typer.Exit(3)


def print_outcome(outcome: RunOutcome, as_json: bool, *, broken_down: bool) -> bool:
    """Print the results; return whether anything failed or a row has no value."""
    from codec_bench.benchmark.runs_overview import metrics_of
    from codec_bench.cli.finished import valueless_words
    from codec_bench.stats.summary_types import valueless

    overview = json.loads((outcome.folder / "summary.json").read_text("utf-8"))
    runs = (*outcome.runs.values(), *outcome.controls.values())
    folders = {os.path.relpath(run.folder, outcome.folder) for run in runs}
    others = [row["folder"] for row in overview["benchmarks"] if row["folder"] not in folders]
    if not as_json:
        overview["benchmarks"] = [row for row in overview["benchmarks"] if row["folder"] in folders]
    empty = False
    for row in overview["benchmarks"]:
        if words := valueless_words(valueless(metrics_of(row).values())):
            talk(f"{row['benchmark']} with {_model(row)}: {words}")
            empty = True
    if as_json:
        print_json(overview)
    else:
        _print_tables(outcome, overview)
        if others:
            text = f"{len(set(others))} other run{'s' if len(set(others)) > 1 else ''}"
            talk(f"the folder also holds {text}: codec-bench report {outcome.folder}")
        if broken_down:
            _print_breakdowns(outcome)
    failed = any(
        row["failures"]["items"] or row["failures"]["scores"] or (row["answers"] or {}).get("failed")
        for row in overview["benchmarks"]
    )
    return failed or empty or bool(outcome.excluded)


def _print_previews(outcome: RunOutcome, as_json: bool) -> None:
    """Print the requests and costs of a dry run, as JSON or text."""
    if as_json:
        print_json([asdict(one) for one in outcome.previews])
    for one in outcome.previews if not as_json else ():
        sys.stdout.write(f"{one.benchmark} with {one.model}: {one.cost}\n")
        for number, content in enumerate(one.requests, 1):
            sys.stdout.write(f"\nrequest {number}\n{content}\n")
    for benchmark, model, reason in outcome.excluded:
        talk(f"skipped: {benchmark} with {model}: {reason}")


def _print_breakdowns(outcome: RunOutcome) -> None:
    """Print the breakdowns of each run once."""
    from codec_bench.cli.finished import print_breakdowns
    from codec_bench.stats.summary import summarise

    runs = {run.folder: run for run in outcome.runs.values()}  # all codecs of a benchmark share one
    for folder, run in runs.items():
        if len(runs) > 1:
            sys.stdout.write(f"\n{folder}\n")
        print_breakdowns(summarise(run))


def _print_tables(outcome: RunOutcome, overview: dict[str, Any]) -> None:
    """Print scores and failures of all runs, with their notes."""
    from codec_bench.benchmark.runs_overview import controls_of, metrics_of
    from codec_bench.report.answers import judge_notes
    from codec_bench.report.chance_level import metric_notes
    from codec_bench.report.numbers import draw_notes, interval_notes
    from codec_bench.store.integrity import PAGE
    from codec_bench.terminal.output import console

    out = console()
    # Unscored answers have no values or failures.
    scored = [
        (row, name, entry)
        for row in overview["benchmarks"]
        for name, entry in metrics_of(row).items()
        if entry.n or entry.failed
    ]
    if scored:
        out.print(_metrics_table(scored))
    for row in overview["benchmarks"]:
        _print_controls(f"{row['benchmark']} with {row['model']}", controls_of(row))
    named = [(_model(row), f"{row['benchmark']} {name}", entry) for row, name, entry in scored]
    for note in (*metric_notes(named), *draw_notes(named), *interval_notes(named)):
        out.print(note, markup=False)
    for row in overview["benchmarks"]:
        _print_row(row, out)
    for note in judge_notes(named):
        talk(note)
    for benchmark, model, reason in outcome.excluded:
        talk(f"skipped: {benchmark} with {model}: {reason}")
    pages = [page for page in {run.folder / PAGE: None for run in outcome.runs.values()} if page.is_file()]
    pages_text = f"; page: {pages[0]}" if len(pages) == 1 else f", with {len(pages)} pages" if pages else ""
    talk(f"folder: {outcome.folder}{pages_text}")


def _metrics_table(scored: Sequence[tuple[dict[str, Any], str, MetricSummary]]) -> Any:
    """Build the table of scores, with the chance level if there is one."""
    from codec_bench.report.chance_level import chance_text
    from codec_bench.terminal.output import table

    guessed = any(chance_text(entry) for *_, entry in scored)
    chance = ("chance",) if guessed else ()
    columns = ("benchmark", "model", "metric", "value", "95 %", *chance, "n", "failed", "counting failures")
    return table(columns, [_metric_cells(*one, guessed=guessed) for one in scored], numeric=columns[3:])


def _print_row(row: dict[str, Any], out: Console) -> None:
    """Print the notes, answers and failures of one run."""
    from codec_bench.benchmark.runs_overview import answers_of, failures_of, metrics_of, rows_of, warned_of
    from codec_bench.report.answers import answer_notes
    from codec_bench.report.data_warnings import warned_text
    from codec_bench.report.numbers import rows_notes
    from codec_bench.report.robustness.rows import choice_notes
    from codec_bench.report.table import failures_table

    about = f"{row['benchmark']} with {_model(row)}"
    answers, failures = answers_of(row), failures_of(row)
    for note in (*rows_notes(rows_of(row), row.get("other_data") or ()), *map(warned_text, warned_of(row))):
        out.print(f"{about}: {note}", markup=False)
    print_wordings(about, metrics_of(row), answers)
    for note in choice_notes(answers.choices if answers else None):
        out.print(f"{about}: {note}", markup=False)
    if failures.reasons:
        out.print(about, markup=False)
        out.print(failures_table(failures.reasons, 1, width=out.width))
    if answers:
        talk(f"{about}: {_answers_line(answers)}")
        for note in answer_notes(answers):
            talk(f"{about}: {note}")
        if left := max(0, answers.asked - max((e.n + e.failed for e in metrics_of(row).values()), default=0)):
            are = "s are" if left != 1 else " is"
            talk(f"{left:,} answer{are} recorded and not scored yet; --phase scores scores them")


def _model(row: Mapping[str, Any]) -> str:
    return f"{row['model']} (control: {row['control']})" if row.get("control") else str(row["model"])


def _print_controls(about: str, controls: Sequence[Controlled]) -> None:
    """Print the table of a model's controls; nothing without controls."""
    from rich.text import Text

    from codec_bench.report.controls.rows import HEADS, beyond_notes, control_rows
    from codec_bench.report.table import wide_table
    from codec_bench.terminal.output import console

    if not controls:
        return
    out = console()
    out.print(Text(f"\n{about} and its controls", style="bold"))
    out.print(wide_table(HEADS, [row[:-1] for row in control_rows(controls)], out.width))
    for note in beyond_notes(controls):
        out.print(Text(f"{about}: {note}"))


def print_wordings(title: str, metrics: Mapping[str, MetricSummary], answers: Answers) -> None:
    """Print the results by wording, if all questions had all wordings."""
    from rich.text import Text

    from codec_bench.report.robustness.rows import robustness_of, wording_heads, wording_rows
    from codec_bench.report.table import wide_table
    from codec_bench.terminal.output import console

    robustness, out = robustness_of(metrics, answers), console()
    if robustness is not None and robustness.same:
        out.print(Text(f"\n{title} by wording (! stands out)", style="bold"))
        out.print(wide_table(wording_heads(robustness), wording_rows(robustness), out.width))
    for sentence in robustness.sentences if robustness is not None else ():
        out.print(Text(f"{title}: {sentence}"))


def _answers_line(answers: Answers) -> str:
    """Describe the answers of a run: number, failures, latency, usage and cost."""
    from codec_bench.report.answers import cost_text

    usage = {name: amount for name, amount in answers.usage.items() if amount}
    rotated = (answers.choices or {}).get("how") == "all-rotations"
    each = f" ({'up to ' if rotated else ''}{answers.draws} to each question)" if answers.draws > 1 else ""
    seconds = answers.latency_s
    parts = [
        f"{answers.asked} answers{each}, {answers.cached} of them from the cache",
        f"{sum(answers.failed.values())} failed" if answers.failed else "",
        f"{seconds.p50:.3g} s each (p95 {seconds.p95:.3g} s)" if seconds else "",
        f"RTFx {answers.rtfx:.4g}" if answers.rtfx else "",
        ", ".join(f"{amount:,.0f} {name.replace('_', ' ')}" for name, amount in usage.items()),
        cost_text(answers),
    ]
    return "; ".join(phrase for phrase in parts if phrase)


def _metric_cells(row: dict[str, Any], name: str, entry: MetricSummary, *, guessed: bool) -> tuple[Any, ...]:
    """Format the cells of one metric's line."""
    from codec_bench.report.chance_level import chance_text
    from codec_bench.report.numbers import decimals, number, shown_unit
    from codec_bench.stats.chance_level import failing

    factor, unit = shown_unit(entry.unit)
    places, interval = decimals([entry], factor), entry.ci95
    scaled = lambda value: number(value, places, factor)  # noqa: E731
    counting = entry.counting_failures.of_all if entry.counting_failures else None
    return (
        row["benchmark"],
        _model(row),
        " ".join(filter(None, (name, unit, "(primary)" if name == row["primary"] else ""))),
        scaled(entry.value),
        " to ".join(map(scaled, interval)) + ("*" if entry.note else "") if interval else "",
        *((chance_text(entry).removeprefix("chance "),) if guessed else ()),
        entry.n,
        f"{entry.failed} (judge)" if failing(entry.judging) else entry.failed,
        scaled(counting) if counting is not None and entry.failed else "",
    )
