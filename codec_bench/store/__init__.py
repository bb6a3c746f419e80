"""The run record: one SQLite file per run. It is written in transactions, and statistics and reports read it.

Which file to open
    What is in a record
    `tables.py`      the tables, their checksums and counts, and what a cell can hold; `rows.py` is items and scores as
                     values.
    `statuses.py`    what follows from the status of a score without a value.
    `writer.py`      a record of audio, for writing; `answers.py` adds what a model was asked and what it answered, and
                     in what ways (`draws.py`); `reasoning.py` cuts off what it thought before.
    `record.py`      a record, for reading; `columns.py` gives the columns by which results are broken down.
    `controls.py`    what a model was given in place of the sound or the question; `identity.py` what a benchmark was,
                     and `embeddings.py` embeddings as text.
    `folders.py`     the folder of a run, and its lock; `files.py` is the JSON files beside the record, and
                     `sound_files.py` the sounds of questions and answers.

    Whole or refused
    `integrity.py`   what is checked before a record is read. `survey.py` finds what is whole of a damaged one, and
                     `rescue.py` tells and saves it.

    From and to other places
    `export.py`      the record as a table in a file; `imported.py` is the result files of other toolkits.
    `parts.py`       the runs of shards, of which `merge.py` makes one record.
    `judge_tests.py`, `judge_successions.py`   what is kept beside all records: tests of judges, and judges in the place
                                               of others.
"""
