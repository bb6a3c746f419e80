"""Codes of mistakes in definitions, prompts, rows and checked data."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.messages.errors import count_of, first_of

_SHOWN = 3


def _at_place(file: str, line: int | None, cause: str) -> str:
    return f"{file}: {cause}" if line is None else f"{file}:{line}: {cause}"


def _variant(variant: str) -> str:
    return f"the prompt (for {variant})" if variant else "the prompt"


def _unknown_field(name: str, near: Sequence[str] = ()) -> str:
    return f"there is no field '{name}'" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _readable(readable: int, samples: int, minutes: float, texts: int, speakers: int, languages: Sequence[str]) -> str:
    named = f" ({first_of(languages, _SHOWN)})" if languages else ""
    counts = f"{texts} transcripts, {speakers} speakers, {len(languages)} languages{named}"
    return f"{readable} of {samples} samples can be read, {minutes:.1f} min, {counts}"


_CONFIGS = {
    "air-bench": "Foundation or Chat",
    "seed-tts": "the path of a list such as zh/hardcase.lst",
    "zerospeech": "the folder of the sounds such as lexical/dev",
    "story-cloze": "the folder of the sounds such as lexical/dev",
    "listed": "the path of a JSON file such as json/questions.json",
    "transcribed": "the path of a list such as test/trans.txt",
    "tagged": "the path of a table between tabs such as annotations.csv",
}
"""What `config` is for each layout that needs it."""


def _layout_needs(layout: str, field: str, known: Sequence[str] = ()) -> str:
    values = ", ".join(known) if known else _CONFIGS.get(layout, "") if field == "config" else ""
    return f"the layout '{layout}' needs '{field}'" + (f": {values}" if values else "")


SENTENCES = {
    "info": {
        "definition_fits": "the definition, its prompts, steps and metrics fit together",
        "prompt_fits": "its templates can be filled and its steps exist",
        "data_layout": "layout: {layout}",
        "data_readable": _readable,
    },
    "error": {
        "no_batches": "the model '{name}' takes no batches",
        "repeats_in_rotations": "got --repeats {repeats} for '{name}', which is sent once in every rotation",
        "rounds_take_no_batches": "'{name}' has rounds that need earlier answers, and takes no batches",
        "choice_fixed_by_sounds": (
            "'{folder}' gives sounds of other items, chosen among its questions, so that their number cannot change"
        ),
        "limit_lowered": lambda folder, before, limit, unit: (
            f"'{folder}' was started with {f'all {unit}s' if before is None else count_of(before, unit)} and cannot be "
            f"limited to {limit:,}: a limit can only rise"
        ),
        "repeats_lowered": "'{folder}' has {repeats} answers to each question, and {draws} would drop some",
        "question_changed": "the audio of question '{id}' has changed since it was answered in '{folder}'",
        "repeats_form": "repeats is {repeats!r}; expected a whole number from 1 to {most:,}",
        "repeats_of_greedy": (
            "'{benchmark}' is answered greedily, so that all {repeats} answers of '{name}' to a question "
            "would be the same"
        ),
        "option_order": "the order of the options is '{order}'; expected {known}",
        "baseline_without_answers": "the baseline has no answers in '{baseline_folder}'",
        "not_a_baseline": "the baseline '{baseline}' is neither a model of this command nor the folder of a run",
        "baseline_of_several_runs": "the baseline '{baseline}' holds {runs} runs of '{benchmark}'; expected one",
        "control_of_two_sounds": "'{name}' compares two sounds, and neither can be replaced",
        "control_changes_no_sound": "'{name}' gives '{model}' no sound, so that --sound {sound} would change nothing",
        "control_leaves_nothing": (
            "'{name}' gives '{model}' nothing but a sound, so that without it there is nothing to ask"
        ),
        "control_changes_no_question": (
            "'{name}' has no question next to its options: --question {question} would change nothing"
        ),
        "sound_too_short_to_cut": "the audio is {duration_s:.2f} s long, so it has no two pieces of {piece_s:g} s",
        "benchmark_of_codecs": "the benchmark '{name}' is for codecs and asks nothing",
        "no_matrix_key": "'{file}', line {line}: '{{{key}}}' is no key of this row of the matrix",
        "several_definitions": "'{path}' defines {benchmarks} benchmarks",
        "no_pins": "'{pins}' says nothing of '{name}'",
        "extends_itself": "'{file}', line {line}: '{base}' extends itself",
        "setting_unknown": "the benchmark '{name}' does not take {setting}",
        "name_form": "'{file}', line {line}: '{name}' is not a name",
        "name_twice": "'{file}', line {line}: the name '{name}' stands twice",
        "defined_twice": "the benchmark '{name}' is defined in '{other}' and in '{file}'",
        "network_forbidden": "'{name}' cannot be held against the hub: {forbidden} forbids the network",
        "hub_did_not_answer": "'{name}' cannot be held against the hub, which did not answer",
        "first_sound_not_decoded": "the audio in '{name}' of the first row cannot be decoded: {cause}",
        "first_row_without_question": "the first row gives no question: {cause}",
        "wording_form": (
            "'{wording}' is no choice of wordings of a prompt; expected {seeded}, {first}, {each} or a number from 1"
        ),
        "prompt_lacks_part": "the prompt '{name}' has no {reads}, and the model reads {reads}",
        "no_wording": "the prompt '{name}' has no wording '{wording}'",
        "prompt_needs_sound": "the prompt '{name}' needs the audio '{sound}', which '{id}' does not have",
        "prompt_not_rendered": "{subject} cannot be rendered: {cause}",
        "not_a_template": "'{template}' is not a template: {cause}",
        "template_forbidden": "'{template}' uses what a prompt may not use: {kind}",
        "template_loop_in_loop": "'{template}' uses what a prompt may not use: a loop in a loop",
        "no_filter": "prompts have no filter '{name}'",
        "prompt_too_long": "{subject} is longer than {most:,} characters",
        "benchmark_data_empty": "the data '{data}' of the benchmark '{benchmark}' hold no rows",
        "benchmark_column_missing": (
            "the benchmark '{name}' reads '{field}' from the column '{column}', which '{data}' has not"
        ),
        "no_row_of_benchmark": "no row of the data belongs to the benchmark '{name}'",
        "no_rubric_named": "'{name}' names no rubric",
        "rubric_reads_no_column": "the rubric of '{name}' reads '{column}', which no column gives",
        "rubric_reads_rounds": (
            "the rubric of '{name}' reads the {round_field} of each round, and no column gives '{column}'"
        ),
        "no_rubric_file": "there is no rubric '{file}'",
        "rubric_name_form": "the file of the rubric '{file}' names a column of results, and does not fit as a name",
        "rubric_extends_itself": "the rubric '{name}' extends itself: {known}",
        "rubric_base_form": "the rubric '{name}' extends {base!r}; expected the name of a rubric, or a path",
        "rubric_base_faulty": "the rubric '{name}' extends '{base}': {cause}",
        "metric_without_side": "'{text}' does not say whose words are compared",
        "not_a_metric_of_answers": "'{text}' is not a metric of answers",
        "no_variant_of_metric": "'{stem}[{variant}]' is no metric of answers",
        "reads_own_files": "'{name}' reads other files",
        "steps_not_a_list": "the steps are the text '{names}'; expected a list of names",
        "not_a_step": "'{text}' is not a step",
        "step_needs_argument": "the step '{name}' needs an argument",
        "step_without_argument": "the step '{name}' takes no argument; '{text}' gives it '{argument}'",
        "step_order": "the step '{text}' comes after '{names}'",
        "step_without_recogniser": "the step '{text}' names no recogniser",
        "step_without_label": "the step 'label[{listed}]' names no label",
        "step_language": "the step 'qwen-asr' knows en and zh, not '{language}'",
        "same_judge": "the judges '{judges}' and '{judge}' are the same one",
        "not_above_zero": "{name} is {value!r}; expected a number over 0",
        "no_answers_to_score": "'{folder}' holds no answers to score",
        "at_place": _at_place,
        # Fields.
        "wordings_alike": "two of the wordings are the same",
        "last_message_role": "the last message must be the user's",
        "wordings_of_parts": "several parts have wordings; expected one at most",
        "wordings_of_field": "a field has wordings; only a message may have them",
        "rounds_without_sound": "'rounds' is '{sound}', and the last message gives no sound of that name",
        "pattern_no_expression": "the pattern '{pattern}' is no regular expression: {cause}",
        "pattern_groups": "the pattern '{pattern}' has {groups} groups; expected one, which is the speaker",
        "join_without_table": "'join' needs a table of a 'repository'",
        "layout_needs": _layout_needs,
        "configs_of_no_table": "'configs' is for tables, and replaces 'config'",
        "no_base_language": "'{language}' is no base code of a language; expected {expected}",
        "fields_not_json": "'fields' has a value that JSON cannot hold: {cause}",
        "prompt_of_kind": "a benchmark of kind 'codec' must have no prompt, and every other benchmark needs one",
        "not_a_mapping": "expected a mapping of names to values",
        "unknown_field": _unknown_field,
        "missing_field": "the field '{name}' is missing",
        "wrong_field": "{name}: {message}",
        "no_readme": "there is no {name} next to {file}",
        "unused_matrix_key": "the key '{name}' of the matrix is used nowhere",
        # Columns.
        "no_rows_in_data": "'{path}' holds no rows",
        "no_local_data": "there is no '{path}' next to the definition",
        "column_not_in_data": "'{name}' is read from the column '{column}', which '{path}' has not",
        "labels_as_text": "the labels are one text; expected a list",
        "labels_empty": "there are no labels",
        "not_a_column": "'{name}' is none of the columns",
        "not_a_single_column": "'{name}' is no column with one value",
        "subset_without_column": "the subset '{subset}' is of '{name}', which no column gives",
        "codec_without_audio": "a codec benchmark needs the column 'audio'",
        # Prompts and metrics.
        "no_prompt_called": "there is no prompt called '{name}'",
        "prompt_reads": lambda variant, name: f"{_variant(variant)} reads '{name}', which no column gives",
        "prompt_without_sound": lambda variant: (
            f"{_variant(variant)} never sends a sound, and the questions are about the column 'audio'"
        ),
        "not_a_metric": "'{name}' is none of the metrics",
        "passing_out_of_reach": "no answer can pass at {at}: the best value of '{metric}' is {best}",
        "published_not_a_metric": "there are numbers of '{name}', which is none of the metrics",
        "transcript_of_text": "the answer is transcribed, and the benchmark wants text",
        "metric_needs_column": "the metric '{metric}' needs '{name}', which no column gives",
        "metric_needs_reference": "the metric '{metric}' compares with 'reference', which no column gives",
        "rubric_needs_column": "the rubric of '{metric}' needs '{name}', which no column gives",
        "metric_of_sound": "the metric '{metric}' measures sound, and the benchmark wants text",
        # Rows.
        "at_row": "row {number} ('{id}'): {cause}",
        "more_rows": lambda count, cause: f"{count:,} more rows of the same kind: {cause}",
        "label_never_expected": lambda labels: f"no row expects the label {first_of(list(map(repr, labels)), 5)}",
        "no_sound_file": "there is no sound file '{path}'",
        "row_without_reference": "the row has nothing in 'reference'",
        "row_without_choices": "it has no choices",
        "choice_empty": "the choice {letter} is empty",
        "choices_alike": "two of its choices are the same",
        "reference_not_a_label": "it expects '{text}', which is none of the labels",
        "reference_wrong_by_metric": "its expected answer '{text}' would be wrong by '{metric}' after {steps}",
        "samples_unreadable": _readable,
        "not_a_definition": "'{path}' is not the definition of a benchmark",
        "definition_not_a_mapping": "'{file}', line 1: expected a mapping of names to values",
        "matrix_form": "'{file}', line {line}: 'matrix' must be a list of mappings",
        "matrix_set_form": "'{file}', line {line}: 'set' must be a mapping of dotted fields to values",
        "setting_not_a_mapping": "{subject}: '{key}' is not a mapping",
        "rubric_needs_field": "the rubric of '{name}' needs '{column}', which no column gives",
        "rounds_of_answer": "'{id}' has {counts}; expected as many of each as it has rounds",
        "tokeniser_not_made": "sacreBLEU cannot make its tokeniser '{tokeniser}': {type}: {cause}",
        "no_wordnet": "METEOR needs WordNet for synonyms, and it is not on this machine",
        "at_line": "'{file}', line {line}: {cause}",
        "no_benchmark_file": "there is no benchmark '{path}': the file '{file}' does not exist",
        "data_not_obtained": lambda name, folder="": (
            f"the data of '{name}' are on no hub, and they are not on this machine"
            + (f": there is no folder '{folder}'" if folder else "")
        ),
        "answer_missing": "there is no expected answer",
        "answer_not_among_choices": "the expected answer is none of the choices",
        "choice_repeated": "the right choice is among the choices more than once",
        "row_without_sound": lambda field, path: (
            f"the row has no sound in '{field}'{path and f': there is no sound file {path!r}'}"
        ),
        "row_without_value": "the row has nothing in '{field}'",
        "no_other_sound": "no item has another sound to put in its place",
    },
}
