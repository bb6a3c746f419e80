"""Leaderboards: published rows with one's own among them, codecs beside published codecs, and how much to trust an
order.

Which file to open
    `api.py`, `codecs.py`          the verbs: a leaderboard of models, and codecs side by side, quality against cost
                                   with delta rates.
    `definition.py`                what a board's YAML may say. `board.py` is its arithmetic: columns, groups, the
                                   average.
    `own_rows.py`                  rows made of one's own runs; `raters.py` says which judge marked them.
    `rank_uncertainty.py`          ranks under other rules and with other items, from `ranking.py` and
                                   `leave_one_out.py`.
    `item_discrimination.py`       which items tell systems apart.
    `pareto.py`                    which codecs are on the front of quality and cost. `fronts.py` and `heatmap.py` are
                                   the pictures.
    `best.py`                      which rows of a column are the best.
    `latex.py`                     the table of a board in LaTeX, with letters for rows that cannot be told apart.
    `command.py`, `codecs_command.py`, `json_values.py`   what is typed, and what is printed.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "leaderboard": Command(
        "Benchmarks",
        "Show a published leaderboard with your runs among its rows.",
        "codec_bench.apps.leaderboards.command:leaderboard",
        common=True,
    ),
}
VERBS = {"leaderboard": "codec_bench.apps.leaderboards.api"}
