"""Values of whole sets in a run's record, computed from all items' embeddings.

A metric of a set names its statistic as `aggregate`; its single scores say how far an item's embedding moved.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from codec_bench.messages.errors import DamagedRecord, UserError
from codec_bench.stats.blocks import SetValue
from codec_bench.stats.bounds import declared_bounds
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.eer import Trials, equal_error_rates, listed_error_rates
from codec_bench.stats.embeddings import KEY, unpack_embeddings
from codec_bench.stats.frechet import frechet_distance, kl_divergence
from codec_bench.stats.intervals import Fold, ratios
from codec_bench.stats.kernel_distance import coverage, cubic, density, kernel_distance, neighbour_value
from codec_bench.stats.paired import Comparison, ItemParts, compare_items
from codec_bench.stats.ttsds import ttsds
from codec_bench.store.record import Run

Statistic = Callable[[np.ndarray, Sequence[str], Sequence[str]], SetValue]
"""Value of embeddings `(items, sides, dimensions)`, mostly pairs, with names and units of the items."""


def pairs_of(run: Run, system: str, metric: str, sides: int = 2) -> dict[int, np.ndarray]:
    """Read a metric's embeddings, float32 `(sides, dimensions)`, by sample number."""
    out: dict[int, np.ndarray] = {}
    width = None
    for number, text in _details(run, system, metric, KEY):
        try:
            out[number] = unpack_embeddings(text, sides)
        except (TypeError, ValueError, binascii.Error) as error:
            raise DamagedRecord("embeddings_missing", folder=run.folder, sample=number, metric=metric) from error
        width = width or out[number].size
        if out[number].size != width:
            raise DamagedRecord("embeddings_lengths", folder=run.folder, metric=metric)
    return out


def _details(run: Run, system: str, metric: str, key: str) -> list[tuple[int, str]]:
    return run.query(
        "SELECT c.sample, json_extract(c.detail, ?) FROM scores c JOIN systems s ON s.number = c.system "
        "JOIN metrics m ON m.number = c.metric WHERE s.name = ? AND m.name = ? AND c.status = 'ok'",
        (f"$.{key}", system, metric),
    )


SETS: dict[str, Statistic] = {
    "frechet": frechet_distance,
    "kernel": kernel_distance,
    "kernel-cubic": partial(kernel_distance, kernel=cubic),
    "density": partial(neighbour_value, of=density),
    "coverage": partial(neighbour_value, of=coverage),
    "divergence": kl_divergence,
    "ttsds": ttsds,
    "eer": equal_error_rates,
    "eer-listed": listed_error_rates,
}
"""Statistic by the `aggregate` of a metric."""


def check_aggregate(name: str, aggregate: str) -> None:
    """Raise UserError if no statistic combines the scores of a metric.

    Args:
        name: of the metric. aggregate: as the metric declares it.
    """
    known = ["mean", "ratio", *FOLDS, *SETS]
    if aggregate not in known:
        raise UserError("metric_aggregate", metric=name, aggregate=aggregate, hint=f"use {', '.join(known)}")


def statistic_of(run: Run, system: str, metric: str, aggregate: str) -> Statistic:
    """The statistic of a metric in a run, with its listed trials if any."""
    if aggregate == "eer-listed":
        return partial(listed_error_rates, trials=_trials_of(run, system, metric))
    return SETS[aggregate]


def _trials_of(run: Run, system: str, metric: str) -> Trials:
    """Read the trials of a verification metric: enrolment, test and label."""
    numbers = dict(run.query("SELECT id, number FROM samples"))
    return [
        (f"item {numbers.get(enrolment)}", f"item {test}", bool(same))
        for test, text in _details(run, system, metric, "trials")
        for enrolment, same in json.loads(text or "[]")
    ]


def compare_metric(
    a_items: Iterable[ItemParts], b_items: Iterable[ItemParts], metric: str, facts: Mapping[str, Any], seed: int
) -> Comparison:
    """Compare two systems on a metric by its recorded facts, as `compare_items`."""
    unit, fold = facts.get("unit", ""), item_fold(metric, facts.get("aggregate", ""))
    better, bounds = facts.get("higher_is_better"), declared_bounds(facts)
    return compare_items(
        a_items, b_items, metric=metric, unit=unit, higher_is_better=better, seed=seed, fold=fold, bounds=bounds
    )


def item_fold(metric: str, aggregate: str) -> Fold:
    """The fold of a metric's parts; a `UserError` for a value of a whole set."""
    if aggregate in SETS:
        raise UserError(
            "set_metric_compared",
            metric=metric,
            hint="leave it out with --metrics; its interval is in the run's summary",
        )
    return FOLDS.get(aggregate, ratios)
