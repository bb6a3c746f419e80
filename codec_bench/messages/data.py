"""Codes of data sets, manifests and tables that cannot be used."""

from __future__ import annotations

from codec_bench.messages.general import either


def _sound_count(count: int, one: str, several: str, names: str) -> str:
    return f"{count:,} {one if count == 1 else several}: {names}"


_LAYOUT_FIELDS = {"ljspeech": "ID|TEXT or ID|TEXT|NORMALISED TEXT", "seed_tts": "4 or 5"}
"""Words of the fields of a line, by layout."""


def _row_problem(cause: str, unit: str = "", number: int | str = "", file: str = "", **older: str) -> str:
    named = f"'{number}'" if isinstance(number, str) else f"{number}"
    return f"{older.get('where') or f'{unit} {named} of {file}'} {cause}"


SENTENCES = {
    "info": {
        # The used part of a folder or list.
        "generated_audio_is": "the generated audio of '{system}' is {origin}",
        "files_of_list": "the files that its {name} names",
        "files_of_folder": "the sound files in the folder; its {name} was ignored, because it {cause}",
        "list_of_voices": "names the recordings of voices",
        "list_names_other": "names '{path}', which is not in the folder",
        "list_names_none": "names no file that is in the folder",
        "ignored_in_data": "{data}: {cause}",
        "text_files_unread": lambda count, names: _sound_count(
            count, "text file next to the audio was not read", "text files next to the audio were not read", names
        ),
        "sounds_without_text": lambda count, names: _sound_count(
            count, "sound file has no text", "sound files have no text", names
        ),
        "texts_without_sound": lambda count, names: _sound_count(
            count, "text has no sound", "texts have no sound", names
        ),
        "audio_is_prompt": lambda data, column=None: (
            f"the audio of '{data}' is taken as the prompt of each text: "
            f"{'its list names prompts' if column is None else f'it has the column {column}'}. "
            "--reference sets another role."
        ),
        "trials_excluded": (
            "{trials:,} trials of '{path}' are excluded, because they name a recording that is not in the data "
            "({first})"
        ),
        "trial_unknown": "line {line}: {name}",
        "no_trial_listed": "it is empty",
    },
    "error": {
        "alignments_without_phones": "there is no phone in the alignments '{path}'",
        "no_phone_tier": "the alignments '{path}' have no tier 'phones'; its tiers with intervals are: {known}",
        "no_file_of_alignments": "there are no alignments '{path}'",
        "alignments_unreadable": "the alignments '{path}' cannot be read: {cause}",
        "alignments_no_mapping": (
            "the alignments '{path}' are no mapping of ids to lists of [start, end, phone]: {cause}"
        ),
        "alignments_not_whole": "the alignments '{path}' are no whole TextGrid of Praat's text formats",
        "alignment_line": "{place} is {line!r}; expected ID CHANNEL START DURATION PHONE",
        "alignments_format": "the alignments '{path}' are of an unknown format",
        "limit_not_a_number": "{variable} is '{value}'; expected a number of GiB above 0",
        "archive_damaged": "'{archive}' cannot be unpacked: {cause}",
        "archive_changed": "'{archive}' was changed while it was unpacked",
        "archive_too_large": "'{archive}' unpacks to more than {most_gib:.3g} GiB from {size_bytes:,} bytes",
        "column_text_too_long": (
            "the column '{column}' has a text of more than {most} characters; expected short texts or numbers"
        ),
        "no_column_to_group_by": "{data} has no column '{name}' to break results down by; its columns are {known}",
        "manifest_suffix": "'{path}' ends in '{suffix}'; expected {known}",
        "file_exists": "'{path}' exists already",
        "not_a_data_set_name": "'{name}' is not the name of a data set",
        "other_commit": "'{folder}' holds commit {commit} of '{name}'; expected {revision}",
        "mirror_without_data_set": "the mirror has no data set '{name}': there is no folder '{folder}'",
        "data_set_revision": "the data set '{name}' has no revision '{revision}'",
        "hub_file_not_parquet": "'{path}' of {name} is not Parquet: {cause}",
        "splits_unknown": "the splits and files of the data set '{name}' cannot be determined: {reason}",
        "data_set_is_script": "the data set '{name}' is a loading script, and codec-bench runs no loading scripts",
        "several_configurations": "the data set '{name}' has several configurations",
        "no_configuration": "the data set '{name}' has no configuration '{config}'",
        "conversion_without_folder": "the hub's conversion of '{name}' does not keep the folder '{folder}'",
        "two_layouts": "the folder '{folder}' has files of two layouts: {layouts}",
        "several_lists": "the folder '{folder}' has {count} lists of the layout {layout}: {lists}",
        "not_a_tab_table": "'{listed}' of '{name}' is no table between tabs with {known}",
        "not_a_folder_of_sounds": "'{name}' is no folder, in which the sounds could be looked for",
        "not_a_folder_of_files": "'{name}' is no folder, in which files named '{pattern}' could be looked for",
        "no_files_of_pattern": "'{name}' has no files named '{pattern}'",
        "no_list_of_questions": "'{listed}' of '{name}' holds no list of questions, and no questions by their ids",
        "no_folder": "there is no folder '{path}'",
        "questions_unreadable": "'{listed}' of '{name}' cannot be read: {cause}",
        "no_story_sounds": "'{name}' has no sounds {subset}/NUMBER_STORY_correct.wav",
        "no_subset_folder": "'{name}' has no folder '{subset}'",
        "no_speaker_folder": "'{name}' has no folder of a speaker from {first:04d} to {last:04d}",
        "no_test_recording": "'{name}' has no recording of a test sentence; {expected}",
        "arrow_unreadable": "'{path}' cannot be read as Arrow: {cause}",
        "supervisions_without_recordings": "'{path}' holds supervisions, and no manifest of recordings is next to it",
        "gzip_damaged": "'{path}' is no whole gzip file: {cause}",
        "line_is_utf16": "line 1 of '{name}' is UTF-16; expected UTF-8",
        "line_not_utf8": "line {line} of '{name}' is not UTF-8 (byte {byte})",
        "not_a_manifest": "'{path}' is neither a folder, a sound file nor a manifest ({known})",
        "too_many_columns": "'{path}' has {count} columns; expected up to {most}",
        "two_columns_alike": "'{path}' has two columns called '{column}'",
        "table_not_parquet": "'{path}' cannot be read as Parquet: {cause}",
        "header_unreadable": "the header of '{path}' cannot be read: {cause}",
        "reference_role": "the reference is '{role}'; expected {known}",
        "shard_form": "the shard is {shard!r}; expected K/N, such as 3/8 for the third of eight",
        "shard_range": "the shard is {shard}; expected K/N with K from 1 to N, and N from 1 to {most}",
        "limit_too_low": "the limit is {limit}; expected at least 1",
        "no_usable_sample": "none of the {count} samples of {label} can be used; the first: {reason}",
        "no_data": "there is no data set, folder or manifest '{path}'",
        "folder_of_run": "the folder '{folder}' is a run, and no data set",
        "folder_of_nothing": "the folder '{folder}' holds no sound file and no {known}, and nothing of a known layout",
        "no_sound_below": "there is no sound file below '{url}'",
        "sound_not_a_path": "the audio of sample '{id}' is {type}; expected the path of a file",
        "shard_without_samples": "no sample of '{data}' is in shard {shard}; the data has {samples} samples",
        "data_without_samples": "{label} holds no samples",
        "cache_lacks_files": "the hub's cache lacks {count} files of '{name}' (commit {revision}), such as '{example}'",
        "split_unreadable": "the split '{split}' of '{name}' cannot be read after its first {read} rows: {reason}",
        "no_table": "there is no data set, folder or file '{path}'",
        "file_without_folder": "'{path}' is one file; it has no folder '{data_dir}'",
        "not_a_table": "'{path}' is not a table that can be read; expected {known} or a folder",
        "no_split": "the data set '{name}' has no split '{split}'",
        "no_data_files": "the data set '{name}' has no data files",
        "no_such_columns": lambda data, names: (
            f"the data set '{data}' has no column {' and no '.join(repr(name) for name in names)}"
        ),
        "no_column_for": "the data set '{data}' has no column for {needed}; it has {columns}",
        "two_revisions": "'{path}' names the revision '{pinned}', and '{revision}' was requested as well",
        "file_without_option": "'{path}' is one file; it has no {option} '{value}'",
        "tar_compressed": "'{path}' is compressed, so that no member can be read by itself",
        "tar_numbers": "'{path}' names files from {first} to {last}; expected up to {most} in rising order",
        "tar_unreadable": "the tar file '{file}' cannot be read: {cause}",
        "trials_disagree": "line {line} of the trials '{path}' says of {one} and {other} what another line does not",
        "trial_line": (
            "line {number} of the trials '{path}' is '{line}'; expected '1 ENROLMENT TEST' or '0 ENROLMENT TEST'"
        ),
        "url_lists_no_files": "'{url}' names no manifest and no sound file, and a web server does not list its files",
        "hub_table_not_parquet": "'{path}' of {name} cannot be read as Parquet: {cause}",
        "table_unreadable": "'{local}' cannot be read: {cause}",
        "alignment_times": "the alignments '{path}' of {name}: {cause}; expected a start from 0 and a later end",
        "not_in_hub_cache": (
            "the data set '{name}' ({revision}) is not in the hub's cache, and {variable} forbids fetching it"
        ),
        "not_in_commit_cache": "'{path}' of {name} is not in the hub's cache (commit {revision})",
        "script_not_converted": (
            "the data set '{name}' is a loading script, and the hub has not converted it to Parquet"
        ),
        "terms_not_accepted": "the data set '{name}' is gated: its owners want their terms accepted first",
        "hub_missing": "{subject} does not exist, or you may not see it: the server answered {answer}",
        "hub_not_fetched": "{subject} could not be fetched: the server answered {answer}",
        "hub_unreachable": "{subject} could not be reached: {cause}",
        "hub_disk": "{cause}",
        "list_of_nothing": "'{listed}' of '{name}' holds no sentence",
        "table_lacks_column": "'{path}' of '{name}' has no column {columns}",
        "many_values": "the column '{name}' has {values:,} different values; expected at most {most}",
        "value_each": (
            "the column '{name}' has another value for each of {samples:,} samples; expected values that several share"
        ),
        "tar_damaged": "the tar file '{file}' is cut or damaged: {cause}",
        "column_type": lambda name, path, type, expected: (
            f"the column '{name}' of '{path}' holds {type}; expected {either(expected)}"
        ),
        "no_sentences": "'{name}' has no {file}",
        "no_emotional_recording": (
            "'{speaker}/{speaker}.txt' of '{name}' names no test recording with an emotion; expected lines of a name "
            "such as {speaker}_{first:06d}, words and an emotion"
        ),
        "no_voice_recording": (
            "{listed} names no {style} recording of the test part that can be the voice of '{name}'; expected one of "
            "another sentence{words}"
        ),
        "manifest_lacks_column": "'{path}' has no column for {needed}; it has {known}",
        "no_file_belongs": "none of the {files} generated files belongs to one of the {samples} samples{reason}",
        "list_without_sounds": "the folder '{folder}' holds no sound file, and its {name} {reason}",
        "no_trial_of_data": "no trial of '{path}' is about two samples of the data ({reason})",
        "sound_name_type": "a sound is read from a path, a URL or a locator; got a {type}",
        "row_problem": _row_problem,
        "cell_too_long": "has a {field} of {characters:,} characters; expected up to {most:,}",
        "cell_not_utf8": "has a {field} that is not UTF-8 text",
        "cell_type": "has a {type} as its {field}; expected text",
        "row_lacks": "has no {fields} (its columns are {known})",
        "key_twice": "has the key '{key}' twice",
        "row_not_utf8": "is not UTF-8",
        "row_not_json": lambda cause, column=None: (
            f"is not JSON: {cause}" + (f" (column {column})" if column is not None else "")
        ),
        "row_not_object": "is a JSON {type}; expected an object with the columns as keys",
        "row_not_csv": "is not CSV{span}: {cause}",
        "row_cells": "has {cells} cells where the header has {columns}",
        "row_fields": lambda fields, layout="", **older: (
            f"has {fields} fields between bars; expected {older.get('expected') or _LAYOUT_FIELDS.get(layout, layout)}"
        ),
        "row_without_tab": "has no tab; expected ID<tab>TEXT<tab>EMOTION",
        "row_without_mark": "has neither a tab nor a bar between an id and words",
        "row_without_id": "is no object with an id",
        "id_repeated": lambda id, first, unit="": f"has the id '{id}', which {f'{unit} {first}'.strip()} has already",
        "id_lacking": "line {line} of text has the id '{id}', which {file} lacks",
        "sample_without_audio": "sample {number} ('{id}') has no audio",
        "file_name_not_utf8": "the name of the file '{file}' is not UTF-8",
        "member_kind": "has a member '{member}' that is a link, a device or sparse; expected an ordinary file",
        "member_outside": "has a member '{member}', whose name leads out of the tar file",
        "one_text_for_sounds": "has one text for {sounds} sounds ({names}); expected one sound, or a text for each",
        "member_json_type": "has a .json that holds {type}; expected an object",
        "member_not_utf8": "has a .txt or .json that is not UTF-8",
        "member_json": "has a .json that {cause}",
        "name_outside": "names '{name}', which is outside the folder",
        "name_of_several": "names '{name}', which may be '{one}' or '{other}'",
        "no_sound_of_name": "names '{name}', and there is no such sound file",
        "segment_order": "goes from {begin_s:g} to {end_s:g} s; expected a later end",
        "segment_end": "goes to {end_s:g} s, and '{file}' ends at {length_s:.3f} s",
        "segment_times": "has the offset {offset!r} and duration {duration!r}; expected seconds",
        "segment_form": "line {line} of segments is not UTTERANCE RECORDING BEGIN END",
        "segment_recording": "line {line} of segments names the recording '{recording}', which wav.scp lacks",
        "sound_command": "is a command ('{command}'), which is not run; write the audio to files and name these",
        "sound_archive": "names an archive ('{name}'); expected a sound file",
        "text_without_sound": "'{file}' has no sound",
        "cut_type": "is a cut of the type {type}; write its sound to a file first",
        "cut_times": "has no start and duration in seconds",
        "recording_unknown": "names the recording '{recording}', which no manifest here has",
        "recording_kind": "has a recording that {kind}; expected a file",
        "pair_sides": "a pair of {subset}/gold.csv has {counts}; expected one with correct=1 and one with correct=0",
        "story_lacks_sound": "the story '{story}' has no sound '{sound}'",
        "entry_no_object": "entry {entry} of {file} is no object",
        "text_encoding_unknown": "'{file}' is text neither in UTF-8 nor in Big5",
        "question_no_object": "a question of {listed} is no object",
        "question_lacks": "a question of {listed} has no {fields}",
        "sound_outside": "the audio '{sound}' is outside the folder of its track",
    },
}
