"""Codes of tests of judges."""

from __future__ import annotations

from collections.abc import Sequence


def figure_text(value: float | None, low: float | None, high: float | None) -> str:
    """A figure with its interval as text: `0.62 [0.50, 0.70]`."""
    if value is None:
        return "unknown"
    ends = f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else ""
    return f"{value:.2f}{ends}".replace("-0.00", "0.00")


def _judge_tested(
    date: str,
    j: float | None,
    low: float | None,
    high: float | None,
    tested: Sequence[str] = (),
    served: Sequence[str] = (),
) -> str:
    """Describe a judge's test: date, Youden's J and the tested models."""
    tests = f" of {' and '.join(tested)}, and {' and '.join(served)} gave these verdicts" if tested else ""
    return f"judge tested {date}: J {figure_text(j, low, high)}{tests}"


SENTENCES = {
    "info": {
        "judge_tested": _judge_tested,
        "judge_without_hearing": lambda judge, inputs: f"'{judge}' takes {' and '.join(inputs)}, and no sound",
        "two_channel_sounds": "its sounds have two channels, and a model is sent one",
    },
    "warning": {
        "judge_not_tested": "this judge was not tested",
        "judge_not_tested_on_sounds": "this judge was not tested on sounds",
        "judge_not_tested_by_rubric": "this judge was not tested with this rubric",
    },
    "error": {
        "sounds_of_kind": "the number of sounds of each kind is {count}; expected 4, 8, 12 or another multiple of 4",
        "question_repeats": "the number of repeats is {count}; expected 1 or more",
        "answers_no_text_question": "'{model}' takes no questions that it answers in text, so it is no judge",
        "judge_hearing_untestable": "{cause}, so its hearing cannot be tested",
        "rubric_not_for_injected": "the injected errors do not fit the rubric '{rubric}'",
        "folder_of_other_check": "'{folder}' holds a check with another '{field}' ({value})",
        "judges_to_compare": "{count} judges were named; expected the old one and the new one",
        "no_verdicts_of_judge": "'{folder}' holds no verdicts of the judge '{judge}'",
        "verdicts_next_to_baseline": (
            "the verdicts in '{folder}' compare with the answers of the baseline '{baseline}', which a new judge "
            "is not given here"
        ),
        "benchmark_of_folder_missing": "there is no benchmark called '{benchmark}', as '{folder}' needs",
        "answers_differ": "the answers in '{folder}' are not those in '{copy}'",
        "pair_compared_twice": "two runs compare '{system}' with '{baseline}' on '{benchmark}'",
        "no_pair_verdicts": "the runs have no verdicts on pairs of answers",
        # Mistakes of rubrics.
        "rubric_prompt_missing": "a rubric needs a 'prompt', and one whose reply is 'nearest' has none",
        "rubric_shows_no_answer": "the prompt shows no answer to the judge; expected {{{{ answer }}}} in it",
        "rubric_range_order": "the range is [{low}, {high}]; expected the least verdict and then the greatest",
        "rubric_range_of_reply": "no reply meets the range [{low}, {high}]: '{reply}' gives 0 or 1",
        "rubric_range_of_prompt": (
            "no reply meets the range [{low}, {high}]: the prompt asks for {least:g} to {most:g}"
        ),
        "reader_unknown": "there is no reader '{reader}'; known: {known}",
        "reader_needs_metric": (
            "the reader '{reader}' needs 'also: {metric}', which decides about the rule; the rubric '{rubric}' does "
            "so with the reply 'rating'"
        ),
        "reader_needs_column": "the reader '{reader}' needs the column '{column}' among 'needs'",
        "reader_of_one_answer": "'compares' is true, and the reply '{reader}' rates one answer",
        "reader_of_two_answers": "the reply '{reader}' rates two answers; expected 'compares: true'",
        "reader_of_letters": "the reply 'letter' and the field 'aligns' need each other",
        "reader_of_all_replies": "the reply '{reader}' is read once for each answer, so '{field}' has no effect",
        "no_strengths": "{benchmark}: {cause}",
    },
}
