"""Codes of requests that cannot be answered."""

from __future__ import annotations

from codec_bench.messages.general import VALUES, either

_OUTPUTS = {"rows": "every score as a row", "tables": "tables"}
"""Words of what `export` writes."""
_ITEMS = {"request": "the request", "item": "an item"}
"""Words of what has a wrong type; other names are fields and arguments."""


SENTENCES = {
    "error": {
        "runs_of_two_benchmarks": "the runs are of two benchmarks: {one} and {other}",
        "questions_differ": "{questions:,} questions differ between the runs, such as '{question}'",
        "recognisers_differ": "the runs read spoken answers by different protocols: {protocols}",
        "one_system": "the run '{folder}' has one system ({systems}); expected two or more",
        "option_for": lambda options, kind, requested: f"{either(options)} is for {kind}, not for {requested}",
        "option_of_format": lambda options, known, format: (
            f"{either(options)} is for "
            f"{_OUTPUTS.get(known, known) if isinstance(known, str) else ' and '.join(known)}, "
            f"not for the format '{format}'"
        ),
        "item_type": lambda name, type, expected: (
            f"{_ITEMS.get(name, name)} is a {type}; expected {VALUES.get(expected, expected)}"
        ),
        "item_count": "there are {items} {name} for {count} items; expected one each",
        "pilot_too_small": "{samples} samples have a value of {metric} for both {systems}; expected a pilot of several",
        "same_words_needed": "{metrics}: each needs a recording of the same words, and the reference audio is a prompt",
        "of_system": "'{system}': {cause}",
        "no_cached_answers": "the cache has no answers of a model '{model}'",
        "runs_to_compare": "got {runs} runs to compare; expected one or two",
        "different_systems_expected": "expected two or more different systems, got {systems}",
        "no_system_shared": "the runs share no system: {one} and {other}",
        "no_metric_shared": "the runs share no metric: {one} and {other}",
        "protocols_differ": "'{metric}' was measured by different protocols: {one} and {other}",
        "not_pins": "'{path}' is no file of pins: expected a mapping of benchmarks",
        "holds_a_run": "'{folder}' holds a run already",
        "run_of_benchmark": "'{folder}' is a run of the benchmark '{benchmark}', which has its own metrics only",
        "foreign_items": "{items} of {samples} items of '{path}' are not in '{folder}', such as '{example}'",
        "by_and_groups": "--by is the order of metrics, and --groups lists groups",
        "not_benchmark_run": "'{folder}' is no benchmark run, and others are",
        "pair_cannot_run": lambda cause, advice: f"{cause} (hint: {advice})" if advice else str(cause),
        "no_benchmark_named": "no benchmark was named",
        "models_or_codecs": "got both models and codecs, or neither; expected one of them",
        "ray_options": "got options of a Ray cluster ({options}) without --executor ray",
        "inside_event_loop": (
            "run_benchmark was called inside an event loop, such as that of a notebook, and needs a separate one"
        ),
        "control_and_controls": "got the control '{control}' and --controls, which chooses controls itself",
        "repeats_with_wordings": "got --repeats with every wording, and each wording is sent once",
        "no_model_named": "no model was named",
        "no_options_to_order": (
            "the order of the options is to be '{order}', and no question of '{benchmark}' comes with options of its "
            "own"
        ),
        "judge_needed": "'{benchmark}' needs a judge, and none was named",
        "likelihood_needed": (
            "'{benchmark}' asks how likely sounds are, and the model '{model}' has no method log_likelihood"
        ),
        "output_needed": "'{benchmark}' needs answers in {needed}, and the model '{model}' gives {output}",
        "no_sample_in_shard": "no sample of the benchmarks is in shard {shard}",
        "benchmark_of_models": "'{benchmark}' asks a model, not a codec",
        "codec_benchmark_for_model": "'{benchmark}' is a benchmark of codecs, and '{model}' was named as a model",
        "two_systems_expected": "expected two systems, got {count} ({systems})",
        "power_value": "the power is {power:g}; expected a probability from 0.5 to below 1, such as 0.8",
        "one_sample_decides": "without one of the samples {metric} has no value, so nothing is known of its spread",
        "estimates_are_references": (
            "{files} of {estimates} estimates are the files of their references, such as that of '{example}'"
        ),
        "estimates_equal_references": (
            "{equal} of the {compared} estimates that were looked at equal their references sample by sample"
        ),
        "is_the_reference": "'{system}' is the reference audio: {cause}",
        "shape_of_channels": "{name} has shape {shape}, which would be a sound of {channels} channels",
        "shape_unexpected": "{name} has shape {shape}; expected one, two or three dimensions",
        "audio_with_length": "{name} {index} is Audio, which knows its length",
        "length_beyond": "{name} {index} has {samples} samples, and its length is stated as {length}",
        "no_rate_stated": "{name} is an array without a rate",
        "takes_no_settings": "'{name}' takes no settings",
        "no_file_or_folder": "there is no file or folder '{path}'",
        "batch_without_value": "the {kind} '{name}' gave no value for any of {clips} clips: {reason}",
        "few_usable_clips": "'{data}' has {clips} usable clips; a batch needs at least 2",
        "codec_not_run": "the codec '{codec}' cannot be run: {reason}",
    },
}
