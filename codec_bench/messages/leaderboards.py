"""Codes of leaderboards."""

from __future__ import annotations

from collections.abc import Sequence


def _protocols(column: str, protocols: Sequence[str], systems: Sequence[Sequence[str]]) -> str:
    sides = "; ".join(f"{', '.join(names)} by {protocol}" for protocol, names in zip(protocols, systems))
    return f"{column} was measured by {len(protocols)} protocols, whose values cannot be compared: {sides}"


def _protocols_of_row(row: str, metric: str, protocols: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    sides = "; ".join(f"{', '.join(names)} by {protocol}" for protocol, names in zip(protocols, columns))
    return f"{row} has {metric} by {len(protocols)} protocols, whose values have no common mean: {sides}"


SENTENCES = {
    "info": {
        "board_of_one_benchmark": "there is only one benchmark, so none can be excluded",
        "board_of_one_group": "there is only one group of tasks, so none can be excluded",
        "few_complete_rows": "columns cannot be scaled over fewer than two complete rows",
        "constant_columns": lambda columns: (
            f"the rows are all equal in column {', '.join(columns)}, which counts nothing when columns are scaled"
        ),
        "row_incomplete": "a cell is missing, so the row has no rank",
        "row_without_rank": "the row has no rank",
        "row_without_items": "there are no items of this row, so the interval of its rank is unknown",
        "items_not_separable": lambda columns: (
            f"the items behind {', '.join(columns)} cannot be excluded one by one, so the interval of the rank is "
            "unknown"
        ),
        "run_not_finished": "excluded, because it is not finished (its state is '{state}'): {run}",
        "no_item_of_all_systems": "the systems share no item",
        "few_own_systems": "own systems with a value: {systems}; at least {needed} are needed",
        "run_without_codec": "excluded, because it holds no codec with a value: {run}",
        "failures_in_column": "{failed:,} of {items:,} items of {column} failed",
    },
    "warning": {
        "codec_of_two_values": (
            "{codec} has {metric} {value:.6g} in {run} and {later_value:.6g} in {later_run}, over the same data; "
            "the later one is shown"
        ),
        "column_of_several_protocols": _protocols,
        "row_of_several_protocols": _protocols_of_row,
        "failures_without_worst": (
            "{failed:,} of {items:,} items of {column} failed; the metric has no worst value for them, so the table "
            "shows the value of the others"
        ),
        "codec_failures": lambda codec, metrics, failed, items: (
            f"{codec} failed on {failed:,} of {items:,} items; the table shows the values of the others "
            f"({', '.join(metrics)})"
        ),
        "row_of_several_states": lambda row, states: (
            f"{row} rests on {len(states)} states of its model, as its service named them: {'; '.join(states)}"
        ),
    },
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
        "not_a_leaderboard": "'{path}' is not a leaderboard",
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
            "in '{board}' every sample counts as one, so that a benchmark cannot be excluded or scaled alone"
        ),
        "board_of_one_column": "the board '{board}' has one column, which correlates with no other",
    },
}
