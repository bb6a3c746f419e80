"""Codes of records of other programs."""

from __future__ import annotations


def _merged_run_partial(shards: int, missing: int = 0, unfinished: int = 0) -> str:
    gaps = [f"{missing} of {shards} shards are missing"] if missing else []
    gaps += [f"{unfinished} are not finished"] if unfinished else []
    return f"the merged run is partial: {' and '.join(gaps)}"


SENTENCES = {
    "info": {
        "imported_no_word": "the reference has no word",
    },
    "warning": {
        "merged_run_partial": _merged_run_partial,
    },
    "error": {
        "order_changed": "'{folder}' cannot grow: its order changed",
        "control_no_result": "'{run}' is a control and no result",
        "not_a_json_object": "'{path}' holds {type}; expected a JSON object",
        "not_json": "'{path}' is not JSON ({cause})",
        "holds_no_run": "'{folder}' is not a run folder and holds none",
        "packed_log": "'{path}' is a packed log",
        "imported_no_score": "'{path}' holds no score",
        "imported_no_key": "'{path}', line {number}: there is no 'key' that names the utterance",
        "imported_twice": "'{path}', line {number}: the utterance '{key}' is in the file twice",
        "imported_no_mapping": "'{path}', line {number}: expected a mapping with 'type', 'id' and 'data'",
        "imported_several_tasks": "'{path}' holds several tasks, such as '{id}' and '{task}'",
        "imported_two_values": "the item '{id}' has two values of '{name}'",
        "imported_not_json": "'{path}', line {number}: expected a JSON object; it begins with '{line}'",
        "imported_no_doc_id": "'{path}', line {number}: there is no 'doc_id' that names the item",
        "imported_metrics": "'{path}', line {number}: 'metrics' holds {names}; expected names of scores",
        "text_not_utf8": "it holds text that is not UTF-8",
        "pages_without_tables": "it has no tables, and {pages} pages of something",
        "cell_not_json": "{cell} is not JSON ({cause})",
        "cell_without_code": "{cell}: {cause}",
        "record_begins_otherwise": "it has {bytes} bytes and does not begin as a run record does",
        "header_form_unknown": "its header names a form of SQLite's files that there is not",
        "record_size": "it has {bytes} bytes, and its header says {expected}",
        "closed_without_tables": "it was closed, and it has no tables",
        "table_missing": "its table '{table}' is missing, or its definition is not as it was written",
        "table_row_count": "its table '{table}' has {rows} rows where {expected} were written",
        "table_row_changed": "row {row} of its table '{table}' is not as this run wrote it",
        "seal_broken": "it is not as it was when it was closed ({seal})",
        "shard_entry": "its shard is {entry}",
        "entry_no_mapping": "its entry '{entry}' is not a mapping",
        "facts_changed": "the facts of the {kind} '{name}' are not as a run writes them",
        "sound_elsewhere": "it keeps a sound at '{sound}', which is not in its folder",
        "notes_no_list": "the notes of '{sample}' are no list",
        "detail_no_mapping": "the detail of '{sample}' is not a mapping",
        "record_damaged": "the run record '{path}' is damaged: {fault}",
        "not_a_seal": "'{path}' does not hold the seal of a run record",
        "record_empty": "'{path}' is empty: its run was stopped before it began",
        "not_a_record": "'{path}' is not a run record: {cause}",
        "record_schema": "'{path}' is a record of schema {schema}; this version of codec-bench reads schema {expected}",
        "record_unreadable": "the run record '{path}' cannot be read: {cause}",
        "record_older": "the run record '{path}' is older than the finished '{name}' next to it",
        "not_a_judge_comparison": "'{path}' is no comparison of two judges: {cause}",
        "not_a_judge_test": "'{path}' is not the test of a judge: {cause}",
        "not_merged": "'{out}' holds a run that was not merged",
        "shard_changed": "shard {shard} in '{folder}' has changed since it was merged into '{out}'",
        "shards_changed": "shard {shard} has changed since it was merged, and shard {removed} is not named now",
        "run_without_shard": "'{folder}' holds a run of all samples, not of a shard",
        "not_a_run_folder": "'{folder}' is not a run folder: it holds no {database}",
        "folder_not_empty": "'{out}' is not empty",
        "sound_not_copied": "the audio in '{audio}' cannot be copied to '{out}': {cause}",
        "sound_unexpected": "the audio '{path}' is not the one that the record of its run names",
        "entries_lost": (
            "nothing of the run record '{path}' can be saved: its entries 'schema' and 'fingerprint' are lost"
        ),
        "nothing_to_save": "nothing of the run record '{path}' can be saved: {cause}",
        "table_lost": "nothing of the run record '{path}' can be saved: its table '{name}' is lost",
        "record_not_writable": "the run record '{path}' cannot be written: {cause}",
        "other_settings": "'{folder}' was started with other settings: {differences}",
        "sample_changed": "the audio of sample '{sample}' has changed since '{folder}' was started",
        "samples_reordered": "'{folder}' has its samples in another order: sample {number} was '{id}', now '{now}'",
        "imported_value": "the file holds {value}",
        "imported_nothing": "the file holds no value",
        "imported_counts": "the file does not hold all four counts of this error rate",
        "imported_negative": "the file holds {number:g}, and no {name} is below 0",
        "run_locked": lambda folder, owner: (
            f"'{folder}' is being written by another process{f' ({owner})' if owner else ''}"
        ),
        "journal_of_other_state": "'{path}' is of another state of the run than the closed record next to it",
        "export_unfinished": (
            "the run '{folder}' is not finished (its state is '{state}'), which {format} cannot express"
        ),
        "export_of_control": "the run '{folder}' is a control ({control}), and {format} takes results alone",
        "no_export_format": "there is no export format '{format}'",
        "parts_wrong": "{wrong} of {parts} parts cannot be merged: {causes}",
        "no_part_named": "no part was named",
        "shards_incomplete": "{causes}",
        "files_differ": "{wrong} of {files} files differ from the published ones",
        "checkpoints_not_fetched": "{failed} of {checkpoints} checkpoints could not be fetched: {names}",
        "export_one_system": lambda format, systems, names: (
            f"{format} holds one system, and the run has {systems}: {', '.join(names) or 'only unprocessed audio'}"
        ),
        "no_run_to_draw": "there is no run to draw",
        "no_value_to_write": "no metric of '{system}' has a value, so there is nothing to write",
        "log_name": "inspect_ai knows a log by the end of its name, and '{path}' does not end with .json",
        "no_hub_format": "there is no format '{format}' for the hub",
        "not_hub_data": "the data '{data}' are not a data set of the Hugging Face hub, which hf-eval-results needs",
        "export_one_value": "hf-eval-results holds one value, and the run has {metrics} metrics: {names}",
        "metric_without_value": "{metric} of '{system}' has no value, and hf-eval-results cannot say why",
        "no_submission": "'{benchmark}' is no benchmark whose answers are sent to a service",
        "submission_repeats": "the run holds several answers to a question, and the file has room for one",
        "submission_incomplete": "the run holds {answered:,} of {questions:,} questions, and the file must hold all",
        "submission_failed": "{failed:,} of {questions:,} questions have no answer, first '{id}': {reason}",
        "parquet_to_output": "parquet cannot be written to standard output",
        "pieces_unfinished": "pieces of shard {shard} in '{out}' are not finished: {unfinished}",
        "shards_of_another_run": "'{out}' holds the shards of another run: {differences}",
    },
}
