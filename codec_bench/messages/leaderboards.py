"""Codes of leaderboards."""

from __future__ import annotations

SENTENCES = {
    "error": {
        "columns_alike": "two columns have the name {columns}",
        "mean_of_no_group": "means names the group '{group}', which no column is in",
        "view_of_no_column": "the view '{view}' names no column {columns}",
        "view_of_units": "the view '{view}' takes the mean of columns in different units",
        "board_benchmark_unknown": (
            "'{file}': the column '{column}' names the benchmark '{benchmark}', which is missing"
        ),
        "board_metric_unknown": (
            "'{file}': the column '{column}' names the metric '{metric}', which the benchmark '{benchmark}' "
            "does not have"
        ),
        "no_published_rows": "there is no file '{file}' with the published rows of the board",
        "question_count_unknown": "the benchmark '{benchmark}' does not say how many questions it has",
        "no_codec_to_show": "there is no codec to show",
        "options_of_ranks": (
            "--robustness, --correlations and --groups are for boards with ranks, and '{board}' has none"
        ),
        "options_of_codecs": "--axis, --metrics and --anchor are for '{codecs}', and the board is '{board}'",
        "figures_without_correlations": "--figures draws the correlations of a board",
        "board_without_groups": "the board '{board}' names no groups of columns to take means of",
        "board_without_average": "the board '{board}' has no average, so its rows have no ranks",
        "board_counts_samples": (
            "in '{board}' every sample counts as one, so that a benchmark cannot be left out or scaled alone"
        ),
        "board_of_one_column": "the board '{board}' has one column, which correlates with no other",
    },
}
