"""Judging: rubrics, requests to a judge, and the readers of its replies.

Which file to open
    A rubric is in `configs/judge/<name>.yaml`, or in a user's file; `rubric.py` has its fields. `replies.py` has the
    project's own readers, `judge_reply.py` the part of a reply that they read; `published.py` has other toolkits'
    readers. `metric.py` builds the requests, and `benchmark/judging.py` records the verdicts. `spoken_answers.py`
    checks a spoken answer first. `aligning.py` matches free words with an option, and `nearest.py` by embeddings. A new
    own reader is a function in `replies.py`, a name in `Rubric.reply` and in `_read` of `metric.py`, a table in
    `tests/benchmark/judge/test_rubric_replies.py` and a line in `tests/fuzz/targets.py`; a published one is a row of
    `READERS` in `published.py`. `tests/benchmark/judge/test_replies.py` tests both.
"""
