"""The run record: one SQLite file per run, written in transactions.

Which file to open
    `tables.py`      the tables, their checksums and counts; `rows.py` is items and scores as values.
    `statuses.py`    groups of score statuses.
    `writer.py`      a record of audio, for writing; `answers.py` adds questions and answers of a model and `draws.py`
                     repeated questions; `reasoning.py` cuts off a model's reasoning.
    `record.py`      a record, for reading; `columns.py` the columns by which results are broken down.
    `controls.py`    replaced sounds or questions; `identity.py` the identity of a benchmark.
    `folders.py`     the folder of a run and its lock; `files.py` JSON files, `sound_files.py` sounds of questions.
    `integrity.py`   checks before a record is read; `survey.py` and `rescue.py` save the rest of a damaged one.
    `export.py`      the record as a table in a file; `imported.py` result files of other toolkits.
    `parts.py`       the runs of shards; `merge.py` makes one record of them.
    `judge_tests.py`, `judge_successions.py`   per user: tests of judges, and judges that replace others.
"""
