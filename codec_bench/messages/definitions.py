"""Codes of mistakes in definitions, prompts, rows and checked data."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.errors import first_of

_SHOWN = 3


def _at_place(file: str, line: int | None, cause: str) -> str:
    return f"{file}: {cause}" if line is None else f"{file}:{line}: {cause}"


def _variant(variant: str) -> str:
    return f"the prompt (for {variant})" if variant else "the prompt"


def _readable(readable: int, samples: int, minutes: float, texts: int, speakers: int, languages: Sequence[str]) -> str:
    named = f" ({first_of(languages, _SHOWN)})" if languages else ""
    counts = f"{texts} transcripts, {speakers} speakers, {len(languages)} languages{named}"
    return f"{readable} of {samples} samples can be read, {minutes:.1f} min, {counts}"


SENTENCES = {
    "info": {
        "definition_fits": "the definition, its prompts, steps and metrics fit together",
        "prompt_fits": "its templates can be filled and its steps exist",
        "data_layout": "layout: {layout}",
        "data_readable": _readable,
    },
    "error": {
        "at_place": _at_place,
        # Fields.
        "not_a_mapping": "expected a mapping of names to values",
        "unknown_field": "there is no field '{name}'",
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
        "reference_not_a_choice": "it expects '{text}', which is none of its choices",
        "reference_wrong_by_metric": "its expected answer '{text}' would be wrong by '{metric}' after {steps}",
        "samples_unreadable": _readable,
    },
}
