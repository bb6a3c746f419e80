"""Scoring: metrics of recorded answers, and published ways to combine their values.

Which file to open
    `scoring.py` scores recorded answers, `scheme.py` says by which post-processing and metrics, and `options.py` what
    changes with the order of the options.
"""
