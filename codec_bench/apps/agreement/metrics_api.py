"""Redundant metrics of runs, and their agreement with listeners."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from codec_bench.apps.agreement.metric_correlations import LEAST, MetricAgreement, Scored, metric_agreement_of, scored
from codec_bench.apps.agreement.p1401 import Standard, Values, Votes, p1401, ranges_of
from codec_bench.apps.agreement.raters import open_runs
from codec_bench.apps.agreement.ratings import (
    UNCLEAR,
    UNKNOWN_ID,
    UNKNOWN_SYSTEM,
    Problems,
    RatingRow,
    Ratings,
    read_ratings,
)
from codec_bench.config.option import names
from codec_bench.messages.errors import UserError
from codec_bench.store.record import Run

LISTENERS = "listeners"
"""The name of the column of people's ratings."""


def metric_agreement(
    *,
    runs: Run | str | os.PathLike[str] | Sequence[Run | str | os.PathLike[str]],
    metrics: str | Sequence[str] | None = None,
    human: str | os.PathLike[str] | None = None,
    least: float = LEAST,
) -> MetricAgreement:
    """Correlate the metrics of runs with each other, over items and over systems.

    Metrics that are better when lower are negated. Items without a value of one of two metrics are excluded from the
    pair, and counted.

    Args:
        runs: runs or their folders; a folder that contains several selects all of them. Items match by benchmark or
            data, system and id, also across runs.
        metrics: only these, as names or one string with commas; None for all that the runs have.
        human: a CSV file of ratings as `codec-bench listen import` writes it, with the columns `id`, `rater` and
            `score` and where needed `system` and `benchmark`. Mean ratings are the column `listeners`, and `standard`
            has each metric's prediction of them (ITU-T P.1401).
        least: Spearman's correlation over items from which two metrics are redundant, between -1 and 1.

    Returns:
        A `MetricAgreement`. Its correlations have intervals where the method holds, and otherwise the reason.

    Raises:
        UserError: a run, a metric or the file is wrong, or there are not two columns to compare.

    Examples:
        >>> from codec_bench import metric_agreement
        >>> found = metric_agreement(runs="runs/small")  # the run of evaluate's example
        >>> round(found.pair("stoi", "snr").items.coefficients["spearman"].value, 1)
        0.7
    """
    if not -1 <= least <= 1:
        raise UserError("correlation_limit", value=least, example=LEAST)
    opened = open_runs(runs)
    people = None if human is None else _read_ratings(human)
    columns = scored(opened, names(metrics or ""), {} if people is None else {LISTENERS: True})
    if len(columns.names) < 2:
        have = ", ".join(columns.names) or "none"
        raise UserError("too_few_columns", known=have, hint="name runs with two metrics or more, or give --with FILE")
    standard = None
    if people is not None:
        standard = _standard(columns, opened, people, _add_people(columns, people, Path(human or "")))
    problems = [] if people is None else [asdict(problem) for problem in people.problems.all()]
    judges = {
        name: words for run in opened for name in run.metrics if name in columns.names and (words := run.judge(name))
    }
    return replace(metric_agreement_of(columns, least=least, problems=problems, standard=standard), judges=judges)


def _read_ratings(path: str | os.PathLike[str]) -> Ratings:
    """Read a file of ratings; raises UserError if they are preferences or options."""
    people = read_ratings(path)
    if people.kind != "rating":
        raise UserError(
            "ratings_of_no_sound",
            path=path,
            kind=people.kind,
            hint="codec-bench agreement RUN --with FILE compares preferences and options",
        )
    return people


def _add_people(columns: Scored, people: Ratings, path: Path) -> Votes:
    """Fill the column `listeners` with mean ratings, and return the single votes.

    Ratings of unknown items become problems; raises UserError if no rating is left.
    """
    index = columns.names.index(LISTENERS)
    sums, counts = np.zeros((2, len(columns.systems), len(columns.samples)))
    ratings: list[tuple[int, float]] = []
    for row in people.rows:
        at = _item(columns, row, people.problems)
        if at is not None and row.value is not None:
            sums[at] += row.value
            counts[at] += 1
            ratings.append((at[0] * len(columns.samples) + at[1], row.value))
    if not counts.any():
        raise UserError("no_usable_rating", path=path, reasons=people.problems.summary)
    rated = counts > 0
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=rated)
    columns.values[index] = means
    for row_of, (values, there) in enumerate(zip(means, rated)):
        if there.any():
            columns.of_systems[row_of, index] = values[there].mean()
    return Votes(np.array([file for file, _ in ratings]), np.array([vote for _, vote in ratings], np.float64))


def _standard(columns: Scored, runs: Sequence[Run], people: Ratings, votes: Votes) -> Standard:
    """Apply P.1401 to the columns; a condition is a system of one benchmark."""
    facts = {name: about for run in reversed(runs) for name, about in run.metrics.items()}
    prefix = {name: f"{name}/" if len(columns.benchmarks) > 1 else "" for name in columns.benchmarks}
    metrics = []
    for index, name in enumerate(columns.names):
        if name != LISTENERS:
            values = np.array(columns.values[index], np.float64).ravel()
            values[np.isinf(values)] = np.nan
            metrics.append(Values(name, values, columns.better[index], ranges_of(facts, name)))
    files = [f"{prefix[benchmark]}{system}/{id}" for system in columns.systems for benchmark, id in columns.samples]
    conditions = [f"{prefix[benchmark]}{system}" for system in columns.systems for benchmark, _ in columns.samples]
    return p1401(metrics, votes, files, conditions, people.scale)


def _item(columns: Scored, row: RatingRow, problems: Problems) -> tuple[int, int] | None:
    """Return (system, sample) indices of a rating; None after adding a problem."""
    where = f"line {row.line}: {row.id}"
    held = [row.benchmark] if row.benchmark else columns.benchmarks
    matches = [columns.samples[benchmark, row.id] for benchmark in held if (benchmark, row.id) in columns.samples]
    if len(matches) != 1:
        problems.add(UNCLEAR if matches else UNKNOWN_ID, where, rater=row.rater)
        return None
    if row.system not in columns.systems and (row.system or len(columns.systems) > 1):
        problems.add(UNKNOWN_SYSTEM, f"{where} of {row.system or 'no system'}", rater=row.rater)
        return None
    return columns.systems.index(row.system) if row.system else 0, matches[0]
