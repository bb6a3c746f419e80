"""Codes of the screening of raters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from codec_bench.messages.general import either


def _answers(count: int, examples: Sequence[str], problem: str) -> str:
    more = f" and {count - len(examples):,} more" if count > len(examples) else ""
    return f"{count:,} {problem}: {', '.join(examples)}{more}"


SENTENCES = {
    "info": {
        "no_rating_in_file": "'{path}' holds no rating",
        "answers_to_other_test": lambda sheet, expected: (
            f"it answers the test {sheet or 'of no id'}, and the key is of {expected}"
        ),
        "checksum_of_answers": "its checksum does not match its content",
        "raters_of_one_name": "{people} people wrote this name, and each counts as a rater",
        "later_answers_used": lambda later, changed, answers: (
            (repr(later) if later else "another session of this file")
            + f" was saved later and is used; {changed} of {answers} answers of this file are missing there, or differ"
        ),
        "answers_not_usable": partial(_answers, problem="answers that cannot be used"),
        "answers_missing": partial(_answers, problem="missing answers"),
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
        "item_left_out": "{cause} (excluded)",
        "more_items_left_out": "{items:,} more are excluded",
        "few_usable_items": ("{requested:,} items are requested, and {usable:,} are usable: {training:,} for practice"),
        "screening_changed": lambda before, rules: (
            f"the test was written with the screening {', '.join(before) or 'none'}; {', '.join(rules) or 'none'} was "
            "named afterwards"
        ),
        "rule_without_trials": "this test has nothing for the rule {rule}",
    },
    "error": {
        "not_a_rater_file": "'{path}' is no file of answers that a listening test saved",
        "rater_file_incomplete": "'{path}' holds no list of answers, or does not name its rater",
        "test_without_run": "the listening test needs a run",
        "gold_needs_scale": (
            "gold questions and traps are for kinds with a scale for each sound, and this test is of the kind {kind}"
        ),
        "kind_needs_reference": "a test of the kind {kind} compares with a reference",
        "kind_without_reference": "a test of the kind {kind} plays no open reference",
        "digits_without_check": "the digits belong to the check hearing, which is not selected",
        "loudness_out_of_range": "the loudness is {value:g} LUFS; expected more than -70 and at most 0",
        "listening_count": "{name} is {value:g}; expected at least {least:g}",
        "no_key_named": "expected the key of the test, or the run folder that it is in",
        "no_answer_file": lambda paths: (
            f"there is no file {either([repr(path) for path in paths]) if paths else 'of answers'}"
        ),
        "no_answers_to_test": "none of the files holds answers to the test {sheet} ({causes})",
        "digit_files": (
            "the folder of digits '{folder}' has {count} sound files of the digit {digit}; expected one for "
            "each of 0 to 9"
        ),
        "digit_silent": "the digit '{path}' is silent",
        "gold_unreadable": "the gold questions '{path}' cannot be read: {cause}",
        "gold_lacks_column": "the gold questions '{path}' have no column '{column}'",
        "gold_without_answer": "{place} has no answer",
        "gold_answer_out_of_scale": (
            "{place} has the answer '{answer}'; a test of the kind {kind} expects {low} to {high}"
        ),
        "gold_without_sound": "{place} has no sound: '{path}' is no file",
        "audio_form": "--audio got '{text}'; expected SYSTEM=FOLDER",
        "not_a_key": "'{path}' is no key of a listening test",
        "key_version": "{key} is of version {version}; expected {expected}",
        "key_changed": "{key} was changed: its checksum does not fit",
        "key_damaged": "{key} is not whole: {type}: {cause}",
        "no_key_in_run": lambda run, sheets: (
            f"'{run}' holds no key of the test {either(sheets) if sheets else 'that these files answer'}"
        ),
        "scale_unknown": "the scale is '{scale}'; expected {known}",
        "scale_of_other_kind": "the scale is '{scale}', and a test of the kind {kind} {scale_of_kind}",
        "runs_of_two_kinds": "some of the runs are of codecs and some of benchmarks; expected one kind of run",
        "not_a_benchmark_run": "'{folder}' is no run of a benchmark, so it holds no questions and answers",
        "runs_of_several_benchmarks": "the runs are of different benchmarks: {benchmarks}",
        "runs_named_alike": "two of the runs have folders of one name and systems of one name",
        "no_item_for_sheet": lambda reasons: f"no item can be taken ({'; '.join(reasons)})",
        "times_excluded": "{times:,} times: {cause}",
        "run_without_items": "the run holds none",
        "checks_need_sounds": "the checks of a rater are for tests with sounds",
        "kind_needs_two_systems": "a {kind} needs two systems; there is {count}",
        "comparison_needs_reference": "{subject} sounds with a reference, which the answers of a benchmark do not have",
        "too_many_signals": "a trial would have {count} signals; ITU-R BS.1534-3 recommends at most {most}",
        "sound_lengths_differ": (
            "the sounds of '{id}' differ in length by half a second or more; expected versions of one sound"
        ),
        "page_too_large": (
            "the audio of {items:,} items takes more than {most_mb:g} MB of the page; that of {fitting:,} fits"
        ),
        "channels_differ": (
            "'{path}' has {channels} channels and another sound of the item has {other_channels}; expected one "
            "number, or 1"
        ),
        "anchor_needs_rate": (
            "an anchor of {cutoff_khz:g} kHz needs sound of more than {needed_hz:g} samples a second; this has "
            "{rate_hz}"
        ),
        "webmushra_kind": "webMUSHRA is written for tests of the kind mushra; this one is of the kind {kind}",
        "webmushra_without_checks": "webMUSHRA has no checks of raters, gold questions, traps or sessions",
        "not_csv": "'{path}' is no CSV ({cause})",
        "not_a_webmushra_table": "'{path}' is no table of webMUSHRA's ratings: it has no column {columns}",
        "no_same_sample": "another of the runs does not have the same sample",
        "no_audio_of": "there is no audio of {systems}",
        "no_same_question": "another of the runs does not have the same question",
        "no_answer_of": "{system} gave no answer",
        "sound_unusable": "its sound cannot be used",
        "item_too_long": "longer than {limit_s:g} s",
        "item_without_reference": "there is no reference audio",
        "no_options": "the question has no options",
    },
}
