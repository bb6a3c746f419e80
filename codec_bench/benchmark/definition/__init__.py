"""Definitions: what a benchmark's YAML says, checked and turned into questions and prompts.

Which file to open
    `schema.py`     the fields of a definition and of a prompt; `windows.py` those of long sounds in parts.
    `loader.py`     finds definitions and fills in `matrix` and `extends`; `finding.py` places a mistake, `validate.py` finds them all.
    `questions.py`  rows as questions; `layouts.py` data that are not tables; `statistics.py` the data in numbers.
    `prompt.py`     chooses and fills a prompt. `benchmark.py` all of it together; `base.py` what a question is.
"""
