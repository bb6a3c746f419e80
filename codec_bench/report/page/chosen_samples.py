"""The samples of a page, and those with audio."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.store.statuses import NOT_APPLICABLE

if TYPE_CHECKING:
    from codec_bench.report.page.columns import PageColumn, PageSystem
    from codec_bench.stats.summary_types import Summary


def _worst_first(values: np.ndarray, columns: Mapping[PageColumn, Mapping[str, Any]]) -> Iterator[int]:
    """Yield samples: the worst of every system and metric, the second, ..."""
    orders = []
    for c, (column, facts) in enumerate(columns.items()):
        if column.metric == "bitrate" or facts.get("higher_is_better") is None:
            continue
        for of_system in values[:, c]:
            badness = -of_system if facts["higher_is_better"] else of_system
            order = np.argsort(-badness, kind="stable")
            orders.append(order[np.isfinite(of_system[order])])
    for rank in range(max(map(len, orders), default=0)):
        for order in orders:
            if rank < len(order):
                yield int(order[rank])


def select_examples(values: np.ndarray, columns: Mapping[PageColumn, Any], count: int) -> Iterator[int]:
    """Yield all samples, those to hear first: worst and random ones in turn.

    Args:
        values: `(systems, columns, samples)`, NaN where there is none.
        columns: facts of each metric.
        count: of all samples.
    """
    spread = list(range(count))
    random.Random(0).shuffle(spread)
    seen: set[int] = set()
    worst = _worst_first(values, columns)
    for drawn in spread:
        for sample in (next((w for w in worst if w not in seen), None), drawn):
            if sample is not None and sample not in seen:
                seen.add(sample)
                yield sample


def choose_rows(
    values: np.ndarray,
    columns: Mapping[PageColumn, Mapping[str, Any]],
    summaries: Sequence[Summary],
    systems: Sequence[PageSystem],
    played: Mapping[int, None],
    item_trouble: Iterable[tuple[int, int, str, str | None, Sequence[str]]],
    count: int,
    limit: int,
) -> list[int]:
    """Choose the samples with rows on the page, in the order of the data.

    All if they fit; otherwise those with audio, then failures, the worst, and random ones.

    Args:
        values: `(systems, columns, samples)`, NaN where there is none.
        count: of all samples.
        limit: the most samples, unless more have audio.
    """
    if count <= limit:
        return list(range(count))
    chosen = dict(played)
    broken = [sample for _, sample, status, _, _ in item_trouble if status != "ok"]
    for s, system in enumerate(systems):
        for c, (name, _, _) in enumerate(columns):
            entry = summaries[system.run].systems[system.name].metrics.get(name)
            if entry and entry.n and set(entry.missing).difference(NOT_APPLICABLE):
                broken += np.flatnonzero(np.isnan(values[s, c])).tolist()
    for share, source in ((0.4, broken), (0.8, _worst_first(values, columns)), (1.0, _shuffled(count))):
        for sample in source:
            if len(chosen) >= max(share * limit, len(played)):
                break
            chosen.setdefault(sample)
    return sorted(chosen)


def _shuffled(count: int) -> list[int]:
    order = list(range(count))
    random.Random(1).shuffle(order)
    return order
