"""Codes of the screening of raters."""

from __future__ import annotations

SENTENCES = {
    "info": {
        "few_answers": "there are {answers} answers; the rule needs {needed}",
        "constant_answers": "all {answers} answers are {answer}",
        "no_trial_times": "no file says how long the trials took",
        "hasty_trials": "{hasty} of {trials} trials took less time than their sound lasts",
        "few_repeats": "{repeats} answers are repeated; the rule needs {needed}",
        "repeats_differ": "repeated answers differ by {mean:.3g} on average; the limit is {limit:.3g}",
        "few_choices_of_side": "there are {choices} choices of a side; the rule needs {needed}",
        "one_side_chosen": "the {side} was chosen in all of {choices} choices",
        "checks_unanswered": "none was answered",
        "checks_wrong": "{wrong:g} of {answers} answers are wrong",
        "checks_right": "{right:g} of {answers} answers are right; {needed} must be",
        "reference_low": "the hidden reference was below {limit} in {low} of {trials} trials",
        "no_anchor_rated": "the test has no anchor of 7 kHz, or nobody rated it",
        "uninformative_items": (
            "{void} of {items} items do not count, because more than a quarter of the raters put the 7 kHz anchor "
            "above {limit} there"
        ),
        "anchor_unrated": "the 7 kHz anchor was not rated",
        "anchor_high": "the 7 kHz anchor was above {limit} in {high} of {trials} trials",
        "few_difference_grades": "there are {grades} difference grades; the rule needs {needed}",
        "difference_grade": "the mean difference grade is {mean:.2f} (p = {p:.3f} that it is not below 0)",
        "rule_finding": "{rule}: {cause}",
        "rule_not_applied": "the rule {rule} could not be applied to {count} of {raters} raters: {cause}",
        "rule_without_trials": "this test has nothing for the rule {rule}",
    },
}
