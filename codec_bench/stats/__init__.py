"""What numbers say about the numbers that were not measured: intervals and paired tests.

This room reads numbers only: a caller hands it what the run record holds, sorted by id, so that a result depends on
the items and the seed and not on the order in which they were computed.
"""

from __future__ import annotations

from codec_bench.stats.bootstrap import Interval, bootstrap_interval, cluster_codes
from codec_bench.stats.paired import (
    Comparison,
    PairedDifference,
    ScoreRow,
    SignTest,
    compare_scores,
    paired_bootstrap,
    sign_test,
)

__all__ = [
    "Comparison",
    "Interval",
    "PairedDifference",
    "ScoreRow",
    "SignTest",
    "bootstrap_interval",
    "cluster_codes",
    "compare_scores",
    "paired_bootstrap",
    "sign_test",
]
