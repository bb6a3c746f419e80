"""Judging: rubrics, what a judge is asked about an answer, and how its replies are read.

Which file to open
    The wording of a rubric and the name of its reader are in `configs/judge/<name>.yaml`, or in a file of the user's;
    `rubric.py` says what may stand there. `replies.py` holds the project's own readers, and `own_words.py` finds what
    they may read; `published.py` holds the readers of other toolkits. `metric.py` asks the judge, and
    `benchmark/judging.py` records its verdicts. `spoken_answers.py` says what is wrong with a spoken answer before it
    is heard. `aligning.py` gives an answer in words of its own the letter of the option that it means, and `nearest.py`
    the option that its embedding is most like. A new reader of the project's own is a function in `replies.py`, its
    name in `Rubric.reply` and in `_read` of `metric.py`, a table in `tests/benchmark/judge/test_rubric_replies.py` and
    a line in `tests/fuzz/targets.py`; a published one is a row of `READERS` in `published.py`.
    `tests/benchmark/judge/test_replies.py` tests both kinds of readers.
"""
