"""Codes of agreement between raters and metrics."""

from __future__ import annotations

_TIES = {
    "left-out": "they are excluded from the comparisons with the majority",
    "any": "a rater who gives one of the most frequent values agrees",
    "equal": "no system counts as preferred",
}
"""What the rules for ties do."""


SENTENCES = {
    "info": {
        "benchmarks_of_scales": "the benchmarks are rated on different scales, so they are compared one by one only",
        "items_without_majority": lambda items, ties: (
            f"{items:,} items have no majority; by the rule '{ties}', {_TIES.get(ties, ties)}"
        ),
        "many_people": "{people} people rated, so they are not compared with each other one by one",
        "scale_of_people_unknown": (
            "the scale of the people is not known, so no rating counts as out of range; --scale LOW-HIGH says it"
        ),
        "metrics_without_direction": lambda metrics: (
            f"without a direction, so a rising mapping has little meaning: {', '.join(metrics)}"
        ),
        "files_taken_as_independent": (
            "over files, intervals and tests take the files as independent, which files of one sentence or speaker are "
            "not"
        ),
        "p_times_pairs": lambda pairs: (
            f"each p is multiplied by the {pairs} pair{'s' if pairs > 1 else ''} of metrics; the tests of the standard "
            "take the two metrics as independent, and Williams' test does not"
        ),
        "mean_of_raters": "the mean of several raters is rarely a value of the scale",
        "raters_of_scales": lambda first, second: (
            f"the two rate on different scales: {first or 'an unknown scale'} and {second or 'an unknown scale'}"
        ),
    },
    "error": {
        "scale_reversed": "the scale is {low:g} to {high:g}; expected the lower end first",
        "no_usable_rating": "none of the ratings in '{path}' can be used: {reasons}",
        "ties_of_preferences": "the rule 'equal' is for preferences, and these are of the kind '{kind}'",
        "too_few_raters": "there are not two raters to compare: {known}",
        "run_without_answers": "'{folder}' holds no answers, so no option was read",
        "ratings_shapes": "the ratings have the shapes {shape} and {other_shape}; expected one number per item in both",
        "rating_not_finite": "a rating is not finite; expected one number per item",
        "scale_form": "--scale got '{text}'; expected two numbers",
        "stability_takes_no_runs": "--stability changes clips of --data; it takes no runs and no --with",
        "agree_without_runs": "--agree needs runs",
        "metric_of_two_protocols": (
            "'{metric}' is '{protocol}' in the run '{folder}' and '{other_protocol}' in another one, so that "
            "its values make no column"
        ),
        "correlation_limit": (
            "the least correlation is {value:g}; expected a number between -1 and 1, such as {example:g}"
        ),
        "too_few_columns": "there are not two columns to compare: {known}",
        "ratings_of_no_sound": (
            "'{path}' holds {kind}s, which are no values of a sound that metrics could be correlated with"
        ),
        "several_rubrics": "the answers of '{folder}' were judged by several rubrics: {rubrics}",
        "ratings_of_kinds": "'{path}' holds ratings of the kinds {kinds}; expected one of {known}",
        "file_without_ratings": "'{path}' holds no rating",
        "ratings_not_utf8": "'{path}' is not text in UTF-8: {cause}",
        "ratings_line": "'{path}', line {line}: {cause}",
        "ratings_lack_columns": "'{path}' has no column {columns}; its first line is: {header}",
        "ratings_repeat_columns": "'{path}' has several columns called {columns}; expected each once",
        "too_few_clips_with_sound": "there are {count} clips with sound; expected two or more",
        "no_value_for_one_clip": (
            "'{metric}' has no value for one clip; expected metrics that score each clip by itself"
        ),
        "agree_and_stability": "--agree and --stability are two questions",
        "agree_or_stability": "metrics needs --agree or --stability",
        "constant_rater": "one of the two raters gives the same value to every item, so there is nothing to correlate",
        "no_spread": "every item adds the same, so nothing is known of the spread",
        "constant_raters": (
            "both raters give every item the same value, so agreement cannot be distinguished from chance"
        ),
        "no_shared_item": "no item was rated by both",
    },
}
