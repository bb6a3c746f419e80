"""Definitions: a benchmark's YAML, validated, as questions and prompts.

Which file to open
    `schema.py`     the fields of a definition and of a prompt; `windows.py` those of long sounds in parts.
    `loader.py`     finds definitions and fills in `matrix` and `extends`; `finding.py` locates a mistake, `validate.py`
                    finds them all, `row_checks.py` those in the rows of local data.
    `questions.py`  rows as questions; `statistics.py` the data in numbers; `on_hub.py` their state on the hub.
    `joined_tables.py`  joins texts of another table; data that are not tables are read by `data/layouts/benchmarks.py`.
    `prompt.py`     selects and fills a prompt. `benchmark.py` is all of it together; `base.py` has the question.
"""
