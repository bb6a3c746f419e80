"""Codes of gates."""

from __future__ import annotations

SENTENCES = {
    "error": {
        "run_of_other_system": "'{folder}' holds the system '{system}'; expected '{expected}', as in '{other_folder}'",
        "baseline_without_values": "no metric of '{baseline}' has a value",
        "not_an_error_rate": "items_above_50 of {metric} is for error rates only",
        "no_run_to_gate": "no run is named",
        "run_named_twice": "the run '{folder}' is named twice; expected different repeats",
        "run_differs_from_baseline": "'{run}' differs from the baseline in its {field}",
        "run_lacks_metric": "'{run}' has no metric {metric}, which the baseline has",
        "run_of_other_protocol": "'{run}' has {metric} by the protocol {protocol}; the baseline has {expected}",
        "run_of_other_judge": "'{run}' has {metric} by the judge {judge}; the baseline has {expected}",
        "run_of_other_items": (
            "'{run}' {difference} {count} items, such as '{item}'; the baseline has {baseline_count} items"
        ),
        "items_changed_since_baseline": (
            "{count} items of '{run}' have other audio or text than in the baseline, such as '{item}'"
        ),
        "several_systems": "'{folder}' has {count} systems: {systems}",
        "run_incomplete": "'{folder}' is not complete: {finished} of {items} items are finished",
        "run_without_gate_metric": "'{folder}' has no metric whose items have scores and a direction",
        "no_baseline": "there is no baseline '{path}'",
        "baseline_not_parquet": "'{path}' is not a complete Parquet file",
        "baseline_lacks_columns": "'{path}' does not have the columns of a baseline",
        "baseline_changed": "'{path}' was changed after it was written: its checksum differs",
        "baseline_repeats_item": "'{path}' holds the item '{item}' twice for {metric}",
        "not_a_gate_baseline": "'{path}' is no baseline of a gate",
        "baseline_schema": "'{path}' has the baseline schema {schema}; expected {expected}",
        "too_few_items_for_gate": "{metric} has scores of {count} items in every run; a gate needs {needed}",
    },
}
