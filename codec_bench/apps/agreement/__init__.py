"""Agreement of judges, human raters and metrics with one another.

Which file to open
    `api.py`, `metrics_api.py`   the verbs: raters of the same items, and metrics over the same runs.
    `ratings.py`                 files of people's ratings. `material.py` and `raters.py` read runs.
    `panel.py`                   all pairs of raters, by subset, and their majority and mean.
    `coefficients.py`            correlations, kappas and shares of two raters, with their intervals.
    `metric_correlations.py`     the values of metrics as columns, and redundant metrics.
    `p1401.py`                   how well metrics predict people's votes, by ITU-T P.1401.
    `stability.py`               how metrics react to inaudible changes.
    `words.py`, `page/`          tables and notes for the terminal, and the page. `command.py` has the commands.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "agreement": Command(
        "Benchmarks",
        "Measure how well judges agree, also with people.",
        "codec_bench.apps.agreement.command:agreement",
    ),
    "metrics": Command(
        "Look at results",
        "Compare metrics: redundancy, robustness, listeners.",
        "codec_bench.apps.agreement.command:metrics",
    ),
}
VERBS = {
    "agreement": "codec_bench.apps.agreement.api",
    "metric_agreement": "codec_bench.apps.agreement.metrics_api",
    "metric_stability": "codec_bench.apps.agreement.stability",
}
