"""Regression gates: whether a system is worse than its baseline, beyond chance.

Which file to open
    `api.py`           the verbs `gate_freeze`, `gate_calibrate` and `gate_check`.
    `run_scores.py`    a gate's input: scores of one system of a run, and the Parquet file of a baseline.
    `repeats.py`       the statistics: differences against a margin, the spread of repeats, detectable regressions.
    `verdicts.py`      the YAML file with margins and limits; the verdict on each metric.
    `words.py`         sentences of codes, the table, JUnit XML and Markdown.
    `page/`            the page, with the audio of the items that moved most.
    `command.py`       the command line. `pytest_plugin.py` is the fixture `codec_bench_gate`.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "gate": Command(
        "Look at results",
        "Fail a build when quality regresses.",
        "codec_bench.apps.gating.command:gate_app",
    )
}
VERBS = {
    "gate_calibrate": "codec_bench.apps.gating.api",
    "gate_check": "codec_bench.apps.gating.api",
    "gate_freeze": "codec_bench.apps.gating.api",
}
