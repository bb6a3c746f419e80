"""Confidence intervals, paired tests, and the summary of a run.

Callers pass numbers from the run record, sorted by id, so results depend on the items and the seed alone.

Which file to open
    `intervals.py`      intervals; `paired.py` differences and their p; `power.py` the size of a run; `correlation.py`
                        and `bd_rate.py` other values. They share `cluster_variance.py`, `bootstrap.py`, `bounds.py` and
                        `notes.py`.
    `summary.py`        the summary of a run, of the types in `summary_types.py`, written by `summary_json.py`;
                        `recorded.py` reads the record, `breakdown.py` folds one metric, also by subset.
    `verdict.py`        which systems are the best; `data_warnings.py` where data and metrics meet badly;
                        `row_counts.py` how much of a benchmark was sent.
    `sets.py`           values of whole sets: `frechet.py`, `kernel_distance.py`, `ttsds.py`, `eer.py`, over
                        `blocks.py` of embeddings (`embeddings.py`: as text); `corpus.py` BLEU.
    `answers.py`        counts and costs of answers; `chance_level.py`, `draws.py`, `robustness.py`, `controls.py` and
                        `pairwise_preferences.py` what is special to them.
"""

from __future__ import annotations

from codec_bench.stats.intervals import Interval, interval
from codec_bench.stats.paired import Comparison, ItemParts, PairedTest, compare_items, holm, paired_test

__all__ = ["Comparison", "Interval", "ItemParts", "PairedTest", "compare_items", "holm", "interval", "paired_test"]
