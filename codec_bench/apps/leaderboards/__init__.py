"""Leaderboards: published rows with the user's, codecs next to published ones, and the certainty of ranks.

Which file to open
    `api.py`, `codecs.py`          the verbs: a leaderboard of models, and codecs by quality and cost with delta rates.
    `definition.py`                the YAML of a board. `board.py` is its arithmetic: columns, groups, the average.
    `own_rows.py`                  rows of the user's runs; `raters.py` their judges.
    `rank_uncertainty.py`          ranks under other rules and with other items, from `ranking.py` and
    `leave_one_out.py`.
    `item_discrimination.py`       items that separate systems.
    `pareto.py`                    the front of quality and cost. `fronts.py` and `heatmap.py` are the pictures.
    `best.py`                      the best rows of a column.
    `latex.py`                     the table of a board in LaTeX, with significance letters.
    `command.py`, `codecs_command.py`, `json_values.py`   the commands, and their output.
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
