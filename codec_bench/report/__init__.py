"""What people look at: tables for the terminal, and HTML pages with sound and plots, each in one file.

This room reads only the records of the store and the statistics that are made from them.

Which file to open
    `result_columns.py`  a column beside the metrics, in all tables of results, or one of the summary as a CSV.
    `table.py`           the tables of the terminal, and `narrow.py` what they are in a narrow one; `paper.py` those for
                         papers and notebooks.
    `numbers.py`         how a number, an interval, a name and a note are written.
    `data_warnings.py`   where data and metrics meet badly, in words.
    `chance_level.py`    what stands beside the values of metrics of answers; `answers.py` what is said of the answers
                         of a run.
    `breakdown/`         results by the values of a column; `robustness/` what wordings and the order of options do;
                         `controls/` what answers have beyond those under controls; `pairwise_preferences.py` strengths
                         of systems.
    `page/`              the page of a run; `figures/` its plots as files.
    `hugging_face.py`, `harnesses.py`  a run in the forms of other tools, and `export_facts.py` what these have in
                                       common.
    `submission.py`      the answers of a run for the service of a benchmark that scores them.
    `results.py`         the files beside a record; `open_run.py` a run as people open it.
"""
