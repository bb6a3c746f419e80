"""`codec-bench compare` and `sample-size`: differences, and the data to show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codec_bench.config.option import SEVERAL
from codec_bench.terminal.options import Json
from codec_bench.terminal.output import console, print_json, table, talk

if TYPE_CHECKING:
    from codec_bench.api.compare import SystemPair
    from codec_bench.api.sample_size import SampleSize


def compare(
    runs: Annotated[list[Path], typer.Argument(help="One run folder, or two.")],
    systems: Annotated[str | None, typer.Option(help="Systems A,B,... or one of both runs."), SEVERAL] = None,
    metrics: Annotated[str | None, typer.Option(help="Only these."), SEVERAL] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap of corpus values such as BLEU.")] = 0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Compare systems or runs with paired tests.

    Each pair is compared over the samples that both have.
    """
    from codec_bench.api.compare import compare as compare_runs

    pairs = compare_runs(runs=runs, systems=systems, metrics=metrics, seed=seed)
    if as_json:
        print_json([pair.as_dict() for pair in pairs])
    else:
        _print_pairs(pairs)


def sample_size(
    run: Annotated[Path, typer.Argument(help="A run folder: the pilot.")],
    metric: Annotated[str, typer.Option(help="The metric of the difference.")],
    difference: Annotated[float, typer.Option(help="The smallest difference that matters, in the metric's unit.")],
    systems: Annotated[str | None, typer.Option(help="Systems A,B; not needed if the run has two."), SEVERAL] = None,
    power: Annotated[float, typer.Option(help="The probability of showing the difference.")] = 0.8,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Estimate how much data shows a difference.

    The estimate rests on a pilot run.
    """
    from codec_bench.api.sample_size import sample_size as size_of

    result = size_of(run=run, metric=metric, difference=difference, systems=systems, power=power)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_sample_size(result)


def _print_pairs(pairs: Sequence[SystemPair]) -> None:
    """Print a table for each pair of systems, with notes."""
    from rich.text import Text

    from codec_bench.messages.errors import plain
    from codec_bench.report.table import comparison_notes, comparison_table
    from codec_bench.stats.paired import undecidable

    out = console()
    compared = [c for pair in pairs for c in pair.comparisons]
    tests = sum(c.test.p is not None for c in compared)
    for pair in pairs:
        out.print(Text(plain(f"A: {pair.a}   B: {pair.b}")))
        out.print(comparison_table(pair.comparisons, adjusted=tests > 1, width=out.width))
        for name, doubts in pair.suspect.items():
            out.print(Text(plain(f"{name} is suspect, so neither is the better one: {doubts}")))
        for why in {} if pair.suspect else dict.fromkeys(c.barred for c in pair.comparisons if c.barred):
            of = ", ".join(c.metric for c in pair.comparisons if c.barred == why)
            out.print(Text(plain(f"{of}: neither is the better one. {why}", most=2_000)))
        for note in (*comparison_notes(pair.comparisons), *(f"{name}: {judge}" for name, judge in pair.judges.items())):
            out.print(Text(plain(note, most=2_000)))
        if pair.other_sounds[0]:
            other, both = pair.other_sounds
            out.print(
                f"Other sounds: for {other:,} of {both:,} ids the audio in the data of B is not that of A. A metric "
                "that reads it may differ for that reason."
            )
        if pair.differences:
            out.print(f"The requests of the two runs differ: B has {' and '.join(pair.differences)}.")
    if tests > 1:
        out.print(f"{tests} tests were made: some p are small by chance. Use p (Holm), which is adjusted for all.")
    if hopeless := [c.metric for c, cannot in zip(compared, undecidable([c.test for c in compared])) if cannot]:
        named = ", ".join(dict.fromkeys(map(plain, hopeless)))
        out.print(
            f"No p of {named} can fall below 0.05 in {tests} tests of so few items. Compare fewer systems or metrics, "
            "or take more items."
        )


def _print_sample_size(result: SampleSize) -> None:
    """Print the plans of a study, and facts of the pilot."""
    pilot, unit = result.pilot, f" {result.unit}" if result.unit else ""
    rows = [(f"{plan.speakers:,}", plan.utterances_per_speaker, f"{plan.utterances:,}") for plan in result.plans]
    columns = ("speakers", "utterances of each", "utterances in all")
    console().print(table(columns, rows, numeric=columns))
    shows = f"each line shows a difference of {result.wanted:g}{unit} with a probability of {100 * result.power:g} %"
    units = f"{pilot.units:,} units (speakers, or utterances of unknown speaker)"
    talk(f"{result.metric}, {result.a} minus {result.b}: {shows}.")
    talk(f"The pilot has {pilot.items:,} utterances in {units}; its difference is {pilot.difference:.3g}{unit}.")
    if pilot.units < 20:
        talk("A pilot of fewer than 20 units knows its spread only roughly; plan for more.")
