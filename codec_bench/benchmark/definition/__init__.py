"""Definitions: what a benchmark's YAML says, checked and turned into questions and prompts.

Which file to open
    `schema.py`     the fields of a definition and of a prompt; `windows.py` those of long sounds in parts.
    `loader.py`     finds definitions and fills in `matrix` and `extends`; `finding.py` places a mistake, `validate.py`
                    finds them all, `row_checks.py` those in the rows of data beside a definition.
    `questions.py`  rows as questions; `statistics.py` the data in numbers; `on_hub.py` what the hub has of them now.
    `joined_tables.py`  joins texts of another table; data that are not tables are read by `data/layouts/benchmarks.py`.
    `prompt.py`     chooses and fills a prompt. `benchmark.py` all of it together; `base.py` what a question is.
"""
