"""`codec-bench agreement`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from codec_bench.config.option import SEVERAL
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.store.files import write_text
from codec_bench.terminal.options import By, Json
from codec_bench.terminal.output import print_lines, print_wide, talk
from codec_bench.terminal.request import columns

if TYPE_CHECKING:
    from codec_bench.apps.agreement.metric_correlations import MetricAgreement
    from codec_bench.apps.agreement.p1401 import Standard
    from codec_bench.apps.agreement.panel import Agreement
    from codec_bench.apps.agreement.ratings import Kind

METRIC_FORMATS = ("table", "json", "csv")
_MOST_PAIRS = 40
_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:-|to|,|\.\.)\s*(-?\d+(?:\.\d+)?)")
_SHOWN, _MOST_ROWS = 8, 40


def agreement(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.")],
    human: Annotated[Path | None,
        typer.Option("--with", help="A CSV file with the ratings of people: columns id, rater, score, and where needed "
                                    "system, other, choice, subset, benchmark.")] = None,
    judges: Annotated[str | None,
        typer.Option("--judges", help="Only these judges A,B,...; the first is the reference. Default: all of the "
                                      "runs."), SEVERAL] = None,
    metrics: Annotated[str | None,
        typer.Option("--metric", help="What is compared: rating[RUBRIC], or any metric of the runs. Default: the "
                                      "rubric of the primary metric."), SEVERAL] = None,
    kind: Annotated[str | None,
        typer.Option("--kind",
            help="What the people gave: rating, preference or option. Default: as the file looks.")] = None,
    scale: Annotated[str | None,
        typer.Option("--scale", help="The scale of the people, such as 1-5. Default: that of the judges.")] = None,
    ties: Annotated[str,
        typer.Option("--ties", help="Where people have no majority: left-out, any (whoever gives one of the most "
                                    "frequent values agrees), or equal (of preferences: neither).")] = "left-out",
    equal_within: Annotated[float,
        typer.Option("--equal-within",
            help="Scores of a judge that differ by no more prefer neither of two systems.")] = 0.0,
    by: By = None,
    out: Annotated[Path | None,
        typer.Option("--out", help="The page. Default: agreement.html in the first folder.")] = None,
    audio_mb: Annotated[float, typer.Option("--audio-mb", help="Megabytes of audio to put into the page.")] = 25.0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Measure how well judges agree, also with people.

    People rated the same answers or sounds.
    """
    from codec_bench.apps.agreement.api import agreement as agreement_of
    from codec_bench.apps.agreement.page import write_agreement_page
    from codec_bench.apps.agreement.raters import open_runs
    from codec_bench.apps.agreement.words import standard_csv

    opened = open_runs(runs)
    result = agreement_of(
        runs=opened,
        human=human,
        judges=judges,
        metrics=metrics,
        kind=cast("Kind | None", kind),  # `agreement` refuses other kinds
        scale=_scale(scale),
        ties=ties,
        equal_within=equal_within,
        by=columns(by),
    )
    target = out or runs[0] / "agreement.html"
    write_agreement_page(result, opened, target, audio_mb=audio_mb)
    if result.standard is not None:
        write_text(target.with_name(f"{target.stem}-p1401.csv"), standard_csv(result.standard))
    if as_json:
        _write(result, "json")
    else:
        _print(result)
        sys.stdout.write(f"{target}\n")


def _write(result: Any, form: str, as_csv: Callable[[Any], str] | None = None) -> bool:
    """Write a result as JSON or CSV; returns whether it did."""
    if form == "json":
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, allow_nan=False) + "\n")
    elif form == "csv" and as_csv is not None:
        sys.stdout.write(as_csv(result))
    return form != "table"


def _print_standard(standard: Standard | None) -> None:
    """Print the tables and notes of ITU-T P.1401; nothing for None."""
    if standard is None:
        return
    from codec_bench.apps.agreement import words as written

    print_lines(["against the votes, by ITU-T P.1401"])
    for heads, rows in (written.fit_rows(standard), written.against_rows(standard)):
        if rows:
            print_wide(heads, rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            talk(f"{len(rows) - _MOST_ROWS:,} more rows are in the data that are printed as JSON")
    print_lines(written.standard_notes(standard))


def _scale(text: str | None) -> tuple[float, float] | None:
    """Parse a scale such as `1-5`; None without one, UserError if malformed."""
    if text is None:
        return None
    match = _SCALE.fullmatch(text.strip())
    if match is None:
        raise UserError("scale_form", text=text, hint="for example --scale 1-5")
    return float(match[1]), float(match[2])


def _print(result: Agreement) -> None:
    """Print the tables and notes of an agreement."""
    from codec_bench.apps.agreement import words as written

    print_wide(*written.rater_rows(result))
    (reference, rater, *heads), rows = written.pair_rows(result)
    # A wrapped table repeats its first column, which must name both.
    print_wide([f"{reference} and {rater}", *heads], [[f"{a} and {b}", *cells] for a, b, *cells in rows])
    print_lines(written.agreement_notes(result))
    for column in written.columns_of(result):
        heads, rows = written.subset_rows(result, column)
        print_wide(heads, rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            talk(f"{len(rows) - _MOST_ROWS:,} more rows by {column} are on the page")
    print_lines(written.subset_notes(result))
    _print_standard(result.standard)
    first = written.confusion_pairs(result)[0]
    print_lines([f"rows: {first.reference}; columns: {first.rater}"])
    print_wide(*written.confusion_rows(first))
    if result.apart:
        heads, rows = written.apart_rows(result)
        print_lines([f"the items on which they differ most ({len(rows[:_SHOWN])} of {len(rows)} that the page shows)"])
        print_wide(heads, rows[:_SHOWN])
    if result.problems:
        print_wide(*written.problem_rows(result))
        count = sum(one["count"] for one in result.problems)
        talk(f"{count:,} ratings of the file were not used or need a look; the table above says which")


def metrics(
    runs: Annotated[list[Path] | None,
        typer.Argument(help="Run folders, or folders that hold some, for --agree.")] = None,
    agree: Annotated[bool, typer.Option("--agree", help="Correlate the metrics of the runs with each other.")] = False,
    stability: Annotated[bool,
        typer.Option("--stability", help="Say what metrics do when nothing that a listener would mind has changed: "
                                         "silence around, another level, rate or container. Needs no runs.")] = False,
    only: Annotated[str | None,
        typer.Option("--metrics", help="Only these, with commas. Default: all of the runs, or for --stability all that "
                                       "can be measured here."), SEVERAL] = None,
    human: Annotated[Path | None,
        typer.Option("--with", help="A CSV file of listeners' ratings, as listen import writes it (ratings.csv): one "
                                    "more column, by sample and system.")] = None,
    least: Annotated[float,
        typer.Option("--least", help="Spearman's correlation over items from which two metrics say the same.")] = 0.9,
    data: Annotated[str, typer.Option("--data", help="The clips that --stability changes.")] = "embedded",
    limit: Annotated[int, typer.Option("--limit", help="How many clips --stability takes.")] = 3,
    form: Annotated[str, typer.Option("--format", help="table, json or csv.")] = "table",
) -> None:  # fmt: skip
    """Compare metrics: redundancy, robustness, listeners.

    It shows which metrics of runs say the same, how well they agree with listeners, and what else moves them.
    """
    if agree == stability:
        raise UserError(
            "agree_and_stability" if agree else "agree_or_stability",
            hint="codec-bench metrics --agree RUN, or codec-bench metrics --stability; codec-bench list metrics lists "
            "all metrics",
        )
    if form not in METRIC_FORMATS:
        raise UnknownName("format", form, METRIC_FORMATS)
    if stability:
        if runs or human:
            raise UserError("stability_takes_no_runs", hint="leave them out")
        _stability(only, data, limit, form)
    else:
        _agreement_of_metrics(runs or [], only, human, least, form)


def _stability(only: str | None, data: str, limit: int, form: str) -> None:
    """Measure the robustness of metrics, and print it as table, JSON or CSV (`form`)."""
    from codec_bench.apps.agreement.stability import metric_stability
    from codec_bench.apps.agreement.words import stability_csv, stability_rows

    stability = metric_stability(only or "all-offline", data=data, limit=limit)
    if _write(stability, form, stability_csv):
        return
    for metric in dict.fromkeys(row.metric for row in stability.rows):
        print_wide(*stability_rows(stability, metric))
    note = (
        f"{len(stability.clips)} clips through {', '.join(stability.systems)}. A spread is the standard deviation of "
        "the metric's means over these codecs. A place changes if that codec alone were changed so."
    )
    print_lines([note])


def _agreement_of_metrics(runs: list[Path], only: str | None, human: Path | None, least: float, form: str) -> None:
    """Correlate the metrics of runs, and print the result as table, JSON or CSV."""
    from codec_bench.apps.agreement.metrics_api import metric_agreement
    from codec_bench.apps.agreement.ratings import RatingProblem, in_words
    from codec_bench.apps.agreement.words import metric_agreement_csv

    if not runs:
        raise UserError("agree_without_runs", hint="codec-bench metrics --agree RUN")
    result = metric_agreement(runs=runs, metrics=only, human=human, least=least)
    if not _write(result, form, metric_agreement_csv):
        _print_metrics(result)
    if result.problems:
        talk(f"ratings that were not used or need a look: {in_words(RatingProblem(**one) for one in result.problems)}")


def _print_metrics(result: MetricAgreement) -> None:
    """Print the tables of correlated metrics, the redundant ones, and notes."""
    from codec_bench.apps.agreement import words as written

    print_wide(*written.metric_rows(result))
    print_wide(*written.matrix_rows(result))
    heads, rows = written.metric_pair_rows(result)
    print_wide(heads, rows[:_MOST_PAIRS])
    if len(rows) > _MOST_PAIRS:
        talk(f"{len(rows) - _MOST_PAIRS:,} more pairs, which agree less, are in --format csv")
    for cluster in result.clusters:
        if len(cluster) > 1:
            print_lines([f"say the same (from {result.least:g}): {', '.join(cluster)}"])
    print_lines(written.metric_agreement_notes(result))
    _print_standard(result.standard)
