"""Codes of options, of files that hold them, and of the systems that they name."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.messages.general import VALUES, either, words_of


def _does_not_fit(path: str, mistakes: str | Sequence[str], more: int = 0) -> str:
    listed = [mistakes] if isinstance(mistakes, str) else mistakes
    return f"'{path}' does not fit: " + "; ".join([*listed, *([f"and {more} more"] if more else [])])


def _one_of(fields: Sequence[str]) -> str:
    *others, last = (f"'{field}'" for field in fields)
    return (
        f"expected either {others[0]} or {last}"
        if len(fields) == 2
        else f"expected one of {', '.join(others)} and {last}"
    )


def _any_of(fields: Sequence[str]) -> str:
    *others, last = (f"'{field}'" for field in fields)
    return f"expected {', '.join(others)}, {last} or both"


def _out_of_range(
    option: str, value: float, least: float | None = None, most: float | None = None, over: float | None = None
) -> str:
    low = f"more than {over:g}" if over is not None else f"at least {least:g}" if most is None else f"{least:g}"
    return f"{option} is {value:g}; expected {low}" + ("" if most is None else f" to {most:,}")


SENTENCES = {
    "error": {
        "one_of_fields": _one_of,
        "any_of_fields": _any_of,
        "option_value": lambda option, value, expected: (
            f"{option} is {value}; expected {VALUES.get(expected, expected)}"
        ),
        "option_holds": lambda option, value, expected: (
            f"{option} holds {value}; expected {VALUES.get(expected, expected)}"
        ),
        "option_choice": lambda option, value, known: f"{option} is {value!r}; expected {either(known)}",
        "option_out_of_range": _out_of_range,
        "not_an_option": "'{option}' is no option of {command}",
        "other_command": "this is a request for '{requested}', and the command is '{command}'",
        "at_position": "'{path}', line {line}, column {column}: {cause}",
        "line_not_utf8_text": "'{path}', line {line}: it is not UTF-8 text (byte {byte})",
        "name_or_system_missing": "'{text}' lacks a name or a system; expected NAME=SYSTEM",
        "named_twice": "the same {kind} is named twice: {systems}",
        "setting_type": (
            "'{path}': the value of {setting} is {type}; expected a text, a number, true, false, a mapping or a list"
        ),
        "model_or_all_expected": "expected the name of a model, or --all",
        "pins_without_hub": "--pins writes what the hub has",
        "nothing_named_to_check": "nothing was named to check",
        "file_too_long_for_yaml": "'{path}' has {bytes} bytes; a YAML file may have {most}",
        "does_not_fit": _does_not_fit,
        "yaml_character": (
            "'{path}', line {line}, column {column}: the character U+{character:04X} is not allowed in YAML"
        ),
        "name_type": "expected a name as a text, got {type}",
        "unknown_option": "'{name}' does not take '{option}'",
        "not_a_name": "'{name}' is not a name",
        "not_imported": "'{path}' cannot be imported: {type}: {cause}",
        "module_taken": "'{path}' imports '{name}', which is '{near}', but '{loaded}' is loaded under this name",
        "file_without_attribute": "'{path}' has no '{name}'",
        "added_twice": lambda room, name, one, other: (
            f"two packages add the {words_of(room)} '{name}': {one} and {other}"
        ),
        "options_expected": (
            "'{path}', line 1, column 1: expected a mapping of options to values, such as 'metrics: [stoi]'"
        ),
        "samples_of_python": "the run of '{path}' has its samples from Python, which a file cannot name",
        "ray_client_address": (
            "the Ray address is '{address}', that of a Ray client; expected HOST:PORT of the head node"
        ),
        "same_name_as_stage": "'{system}' is called '{name}', which is also the name of another stage of this run",
        "custom_weights_unsupported": "{metric} takes no custom weights for '{name}': {reason}",
        "option_of_object": "the option '{option}' is for '{name}', an object that is built already",
        "running_and_options": "got running= and {options}; expected one of the two",
        "save_audio_value": "save_audio is '{value}'; expected all, none or a number of samples",
        "name_empty": "the name of '{system}' is {name!r}; expected a text that is not empty",
        "name_too_long": "the name of '{system}' has {length} characters ('{begin}...'); expected at most {most}",
        "name_of_unprocessed": "'{system}' is called '{name}', which is the name of the unchanged audio",
        "name_characters": (
            "the name of '{system}' is {name!r}; expected one without commas, control characters and spaces around it"
        ),
        "no_codec_named": "no codec was named",
        "no_audio_named": "no generated audio was named",
        "codec_type": (
            "the codec is {codec!r:.60} ({type}); expected a name, a class, an object with encode and decode, or a "
            "list of these"
        ),
        "name_of_registered_codec": "'{name}' is the name of a registered codec, and '{system}' has it too",
        "generated_type": "the generated audio is {audio!r:.60} ({type}); expected a folder, a manifest or samples",
        "unprocessed_renamed": "'{system}' got the name '{name}'; the row of the unchanged audio keeps its own name",
        "name_of_two_rows": "'{name}' would be the name of two rows: '{one}' and '{other}'",
        "got_both": "got both '{one}' and '{other}'",
        "value_missing": "{option} needs a value, and '{word}' follows",
        "output_encoding": "standard output is written as {encoding}, which has no {character!a}",
        "by_without_column": "--by got no column",
        "setting_form": "--set got '{setting}'; expected NAME.OPTION=VALUE",
    },
}
