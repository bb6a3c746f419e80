"""Leaderboards: published rows with own ones, and the certainty of ranks.

Which file to open
    `api.py`, `codecs.py`   the verbs: a leaderboard of models, and codecs by quality and cost with delta rates.
    `board.py`              the arithmetic of a board: columns, groups, the average.
    `user_rows.py`           rows of the user's runs; `raters.py` their judges.
    `rank_uncertainty.py`   ranks under other rules and with other items, from `ranking.py`.
    `command.py`, `codecs_command.py`   the commands; the latter with the picture of quality and cost.
    `formats.py`            a board in LaTeX, with best rows and significance letters, and as a heat map.
    `json_values.py`        a board as JSON, with the items that separate systems.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "leaderboard": Command(
        "Benchmarks",
        "Show a published leaderboard with your runs in it.",
        "codec_bench.apps.leaderboards.command:leaderboard",
        common=True,
    )
}
VERBS = {"leaderboard": "codec_bench.apps.leaderboards.api"}
