"""Output for people: tables for the terminal, and self-contained HTML pages.

This room reads only the records of the store and their statistics.

Which file to open
    `result_columns.py` extra columns of result tables and of the CSV. `table.py` tables of the terminal, `narrow.py`
    for narrow ones; `paper.py` for papers and notebooks. `numbers.py` formats numbers, intervals, names and notes.
    `data_warnings.py` data and metrics that do not fit. `chance_level.py` notes on values; `answers.py` on a run's
    answers. `breakdown/` results by column; `robustness/` wordings and option orders; `controls/` controls;
    `pairwise_preferences.py` strengths of systems. `page/` the page of a run; `figures/` plots as files.
    `hugging_face.py`, `harnesses.py` other tools' forms, with `export_facts.py`. `submission.py` answers for a
    benchmark's service. `results.py` files next to a record; `open_run.py` an opened run.
"""
