"""How certain the numbers of a run are: confidence intervals, paired tests, and the summary of a run.

The callers pass numbers from the run record, sorted by id. So a result depends on the items and the seed, and not on
the order in which the items were computed.

Which file to open
    `intervals.py`      intervals; `paired.py` is differences and their p, `power.py` the size of a run,
                        `correlation.py` columns that order alike, and `bd_rate.py` rates at equal quality. `crossed.py`
                        is means over people and sounds, `quantiles.py` quantiles. `cluster_variance.py` is the error
                        CR2, `bootstrap.py` draws of units, `bounds.py` what an item can be, `notes.py` what stands
                        beside an interval. `bench/bench_intervals.py` shows whether a method holds.
    `summary.py`        the summary of a run; `summary_types.py` is what it holds, and `summary_json.py` its JSON.
                        `recorded.py` reads the record.
    `verdict.py`        which systems are the best, and which are not compared. `data_warnings.py` says where data and
                        metrics meet badly.
    `identity.py`       whether two runs asked the same; `rows_taken.py` of how many rows.
    `breakdown.py`      one metric of one system, by subset; `corpus.py` is values such as BLEU.
    `sets.py`           values of whole sets: `frechet.py`, `kernel_distance.py`, `ttsds.py`, `eer.py`, with what they
                        share in `blocks.py` and `packing.py`.
    `answers.py`        counts and costs of answers; `chance_level.py` is what stands beside their values, `draws.py`
                        several answers to a question, `robustness.py` several wordings, `controls.py` controls and what
                        stands beyond them, and `pairwise_preferences.py` preferences.
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
