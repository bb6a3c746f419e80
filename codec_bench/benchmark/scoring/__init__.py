"""Scoring: metrics of recorded answers, and published combinations.

Which file to open
    `scoring.py` scores recorded answers, `scheme.py` selects post-processing and metrics, and `options.py` analyses the
    order of the options.
"""
