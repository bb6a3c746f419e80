"""Judging: rubrics, what a judge is asked about an answer, and how its replies are read.

Where to look
    The wording of a rubric and the name of its reader are in `configs/judge/<name>.yaml`, which `metric.py` reads.
    `replies.py` holds the project's own readers, and `own_words.py` finds what they may read; `published.py` holds the
    readers of other toolkits. `metric.py` asks the judge and `judging.py` records its verdicts.
    `tests/benchmark/judge/test_replies.py` tests both kinds of readers.
"""
