"""Prints a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from codec_bench.messages.errors import count_of, first_of
from codec_bench.terminal.output import console, print_json, table, talk

if TYPE_CHECKING:
    from codec_bench.stats.summary_types import Summary
    from codec_bench.store.record import Run


def print_finished(run: Run, summary: Summary, as_json: bool, timings: bool) -> None:
    """Print a finished run; exits with 3 after failures or fully refused metrics.

    Metrics of a preset may be refused, because it serves all kinds of data.
    """
    from codec_bench.stats.summary_types import valueless

    if words := valueless_words(valueless(entry for _, _, entry in summary.entries)):
        talk(words)
    refused = _refused_metrics(run, summary)
    for metric, reason in refused.items():
        talk(f"{metric}: every score was refused: {reason}")
    if as_json:
        print_json(summary.as_dict())
    else:
        _print_run(run, summary, timings=timings)
    chosen = (run.meta.get("arguments") or {}).get("metrics")
    if summary.failures.items or summary.failures.scores or words or (refused and chosen):
        raise typer.Exit(3)


def _print_run(run: Run, summary: Summary, *, timings: bool = False) -> None:
    """Print a run's summary: table, notes, breakdowns, failures and times."""
    from rich.text import Text

    from codec_bench.messages.errors import plain
    from codec_bench.report.table import failures_table, summary_notes, summary_table

    out = console()
    out.print(summary_table(summary, width=out.width))
    for note in summary_notes(summary):
        out.print(Text(plain(note)))
    print_breakdowns(summary)
    counts = run.counts()
    if summary.failures.reasons:
        out.print(failures_table(summary.failures.reasons, len(summary.systems), width=out.width))
    recorded = run.meta.get("timings", {})
    if timings and recorded:
        out.print(_time_table(recorded, summary))
    failures = summary.failures
    words = f"{counts['finished']:,} of {count_of(counts['items'], 'item')} ({count_of(counts['samples'], 'sample')})"
    talk(f"{words}; {count_of(failures.items, 'item')} and {count_of(failures.scores, 'score')} failed")
    unmatched = run.meta.get("data", {}).get("unmatched", [])
    if unmatched:
        talk(f"{len(unmatched)} generated files belong to no sample and were ignored: {first_of(unmatched, 3)}")
    page = run.folder / "report.html"
    talk(f"run folder: {run.folder}" + (f"\npage: {page}" if page.is_file() else ""))


def _refused_metrics(run: Run, summary: Summary) -> dict[str, str]:
    """Map each metric that refused every item to a reason."""
    refused = {}
    for metric in summary.metrics:
        entries = [entry for _, name, entry in summary.entries if name == metric]
        if all(not entry.n and set(entry.missing) == {"refused"} for entry in entries):
            refused[metric] = next((s.reason or "" for s in run.scores(metric=metric, without_value=True)), "")
    return refused


def valueless_words(counts: Mapping[str, int]) -> str:
    """Return the counts by status where no score has a value, or ""."""
    counted = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
    return f"none of {sum(counts.values())} scores has a value: {counted}" if counts else ""


def print_breakdowns(summary: Summary) -> None:
    """Print the tables of results by the values of columns, if any."""
    from rich.text import Text

    from codec_bench.report.breakdown.rows import terminal_tables
    from codec_bench.report.table import wide_table

    out = console()
    for breakdown in terminal_tables(summary):
        out.print(Text(f"\n{breakdown.title}", style="bold"))
        out.print(wide_table(breakdown.heads, breakdown.rows, out.width))
        for note in breakdown.notes:
            out.print(Text(note))


def _time_table(timings: Mapping[str, Any], summary: Summary) -> Any:
    """Return a table of the stages' times, shares of all workers, and idle share.

    A system with failed items has no speed: these items distort its time.
    """
    failing = {name for name, system in summary.systems.items() if system.without_estimate}
    rows = []
    for stage in timings["stages"]:
        share = stage.get("share")
        audio_s, busy_s = stage.get("audio_s"), stage["busy_s"]
        speed = f"{audio_s / busy_s:.1f}x" if audio_s and busy_s and stage["stage"] not in failing else ""
        percent = f"{100 * share:.1f} %" if share is not None else ""
        rows.append(
            (stage["stage"], stage.get("items"), f"{audio_s:.0f}" if audio_s else "", f"{busy_s:.2f}", speed, percent)
        )
        steps = {k: v for k, v in stage.get("steps", {}).items() if v >= 0.01 * max(busy_s, 1e-9)}
        if len(steps) > 1:
            rows += [(f"  {k}", "", "", f"{v:.2f}", "", "") for k, v in sorted(steps.items(), key=lambda e: -e[1])]
    rows.append(("idle workers", "", "", "", "", f"{100 * (1 - timings['worker_use']):.1f} %"))
    columns = ("where the time went", "items", "audio s", "busy s", "speed", "of workers")
    time_table = table(columns, rows, numeric=columns[1:])
    speed = timings["audio_s"] / max(timings["wall_s"], 1e-9)
    time_table.caption = f"{timings['wall_s']:.1f} s on {timings['workers']} workers; {speed:.1f}x real time"
    return time_table
