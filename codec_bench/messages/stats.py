"""Codes of values, intervals, tests and verdicts."""

from __future__ import annotations

PURPOSES = {
    "interval": "an interval",
    "test": "a test",
    "rank_interval": "a rank interval",
    "coefficient_interval": "an interval of a correlation or a kappa",
}
"""What needs independent units, by name."""


def _too_few_units(units: int, needed: int, purpose: str = "interval", **older: str) -> str:
    needs = older.get("what") or PURPOSES.get(purpose, purpose)
    return f"{units} independent units (speakers, prompts or items); {needs} needs at least {needed}"


SENTENCES = {
    "info": {
        "other_scale": "its scale is not that of the votes, so there is no error without a mapping",
        "few_voted": "there are {count} {of} with values and two votes or more; this needs {needed}",
        "nothing_to_map": "all values are equal, so there is nothing to map",
        "nothing_to_correlate": "all mapped values or all mean votes are equal, so there is nothing to correlate",
        "perfect_correlation": "the correlation is perfect, so its interval is unknown",
        "no_question_sent": "no question was sent",
        "no_common_answer": "no answer was marked by both",
        "all_equal": "all values are equal",
        "equal_systems": "the two are equal in every unit",
        "constant_difference": "every unit gives the same difference",
        "few_common": lambda common, most: (
            f"the systems have {f'only {common:,} of {most:,}' if common else 'none'} of their samples in common"
        ),
        "few_systems": "fewer than two systems can be compared",
        "few_values": "fewer than two systems have a value over the common samples",
        "beaten": "over the samples of each system, others have better values than over the common ones",
        "other_reasons": "other reasons",
        "chosen_items": "over {items} of {seen} items, chosen by a hash of their names",
    },
    "warning": {
        "few_units": "only {units} independent units (speakers, prompts or items)",
        "dominant_unit": "one speaker or item carries more than half of the variance",
        "ceiling": "{at_bound} of {items} items have the best or least possible value; the interval rests on {rest}",
        "heavy_tail": lambda items: f"{items} {'item has' if items == 1 else 'items have'} an error rate above 100 %",
        "sparse_tail": "few values lie beyond this quantile",
        "too_few_to_compare": (
            "too few independent units to compare: {units}, and a comparison with the best needs {needed}"
        ),
        "excluded_trials": "{excluded:,} of {trials:,} trials are excluded, because an item has no value",
        "few_trials": "it rests on {trials} trials of one speaker",
        "biased_value": (
            "{items} items are few for {dimensions} dimensions: the value is biased upwards; extrapolation: {needed}"
        ),
        "low_rank": (
            "{items} items are few for {dimensions} dimensions: the covariances lack full rank, and the distance from "
            "the references is biased upwards; compare sets of one size"
        ),
        "judge_silent": lambda failed, asked: (
            f"the judge gave no verdict on {failed:,} of {asked:,} answers "
            f"({100 * failed / asked:.1f} %), more than 5 %"
        ),
        # Why a system is not compared.
        "suspect": "its checks found something",
        "few_samples": "it has values for too few samples",
        "speechless": "{speechless:,} of its {n:,} values are of sound that is not the speech that it should be",
    },
    "error": {
        "no_value": "no item has a value",
        "few_of": "there are {units} {of}; an interval needs at least {needed}",
        "few_blocks": "there are {blocks} blocks with items; an interval needs {needed}",
        "singular_covariance": (
            "the covariance of {items} embeddings of {dimensions} dimensions is singular; use more items than "
            "dimensions, or an encoder without constant dimensions"
        ),
        "few_items": "a distance of sets needs at least {needed} items; there are {items}",
        "no_known_trial": "none of {trials:,} listed trials is about two items with a value",
        "no_listed_trial": "no trials were listed (--trials)",
        "one_kind_of_trial": "all listed trials are of one speaker each, or all of two",
        "both_equal": "the estimates are the references and a noise at once, so that there is no score",
        "no_own_trial": (
            "no speaker has {needed} items, so that there is no trial of one speaker; the data must name speakers"
        ),
        "one_speaker": "all items are of one speaker, so that there is no trial of two",
        "few_rows": "{rows} {of} have a cell in both columns; a correlation needs {needed}",
        "few_rows_for_interval": "{rows} {of} have a cell in both columns; an interval needs at least {needed}",
        "constant_column": "the {of} are all equal in one of the two columns, so there is nothing to correlate",
        "same_order": "the two columns order the {of} alike, with an unknown certainty",
        "cancelled": (
            "the ratings of each person and of each sound have nearly the same mean, so the spread of either is unknown"
        ),
        "few_crossed": (
            "there are {size} {of}; an interval over raters and items needs at least {needed}, and the value holds for "
            "these alone"
        ),
        "infinite_strengths": (
            "some systems won or lost all of their comparisons, ties aside, so no finite strength explains them"
        ),
        "infinite_draws": (
            "in {infinite:,} of {draws:,} draws of items some system won or lost all comparisons: no interval"
        ),
        "control_unfinished": "one of the two is not finished",
        "control_differs": lambda fields: f"the two have another {', another '.join(fields)}",
        "control_other_rules": "the two were scored by other rules",
        "other_protocols": "the two were scored by different protocols",
        "zero_denominator": "the denominators (words, for an error rate) add up to 0, so the ratio has no value",
        "one_without_value": "one of the two systems has no value on these items",
        "too_few_units": _too_few_units,
        "single_unit": "without one of the units no value is left, so the spread is unknown",
        "curves_apart": "the curves reach no quality in common: they reach {ranges}",
        "curve_points": "the {curve} curve has {points} points; a delta rate needs at least {least}",
        "curve_not_numbers": (
            "the {curve} curve has a rate or quality that is not a number, or a rate that is not positive"
        ),
        "curve_not_rising": "the {curve} curve is not better at {rate} than at {other}; it must rise with the rate",
        "bounds_form": "the bounds are {bounds}; expected two numbers, the smaller first, or None for an open end",
        "value_beyond_bounds": "the value of item {item} is {value:g}; expected {low:g} to {high:g}",
        "interval_method": "there is no method '{method}'; expected {known}, or None",
        "denominator_count": "there are {denominators} denominators for {items} {name}; expected one for each",
        "denominator_negative": "denominator {item} is {value:g}; expected a number that is not negative",
        "values_shape": "{name} has the shape {shape}; expected one number per item, (items,)",
        "value_not_finite": "{name}[{item}] is {value}; expected finite numbers",
        "value_too_large": "{name}[{item}] is {value:g}; expected numbers of at most {most:g}",
        "clusters_type": "the clusters are a {type}; expected a list with one label for each value",
        "cluster_count": "there are {clusters} clusters for {items} values; expected one label for each value",
        "level_value": "the level is {level!r}; expected a number between 0 and 1, such as 0.95",
        "seed_value": "the seed is {seed!r}; expected a whole number that is not negative",
        "not_numbers": "{name} holds something that is not a number ({cause}); expected one number per item",
        "cluster_type": "the cluster of item {item} is a {type}; expected a text or a number",
        "unpaired_items": "a has {one} values and b has {other}; expected the same items in both",
        "no_comparison": "there is no comparison of two systems",
        "comparisons_apart": "the comparisons fall into groups that were never compared with each other: {groups}",
        "pilot_units": (
            "the pilot has {units} independent units (speakers, prompts or items); expected at least {least}"
        ),
        "difference_value": "the difference is {difference:g}; expected the smallest difference that matters, above 0",
        "difference_needs_more": (
            "a difference of {difference:g} needs more than {speakers:,} speakers with {utterances} utterances each"
        ),
        "set_metric_compared": "{metric} is a value of a whole set, and this compares what each item adds to a value",
        "embeddings_lengths": "'{folder}' holds embeddings of several lengths for {metric}",
        "embeddings_missing": "'{folder}' holds no embeddings of sample {sample} for {metric}",
    },
}
