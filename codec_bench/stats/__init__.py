"""How certain the numbers of a run are: confidence intervals, paired tests, and the summary of a run.

The callers pass numbers from the run record, sorted by id. So a result depends on the items and the seed, and not on
the order in which the items were computed.
"""

from __future__ import annotations

from codec_bench.stats.intervals import Interval, interval
from codec_bench.stats.paired import Comparison, ItemParts, PairedTest, compare_items, holm, paired_test

__all__ = [
    "Comparison",
    "Interval",
    "ItemParts",
    "PairedTest",
    "compare_items",
    "holm",
    "interval",
    "paired_test",
]
