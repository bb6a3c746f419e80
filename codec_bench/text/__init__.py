"""Comparing texts: named normalisers, rules, and error rates as counts that can be added.

Where to look
    `steps.py` holds the smallest parts, `normalise.py` the normalisers that are made of them, and `rules.py` which
    normaliser each language has under a rule. `whisper.py` is Whisper's English rule; the package whisper-normalizer
    does its work, numbers included. `chinese_numbers.py` serves published rules only. What a name stands for never
    changes, because it is part of protocol ids. A change is a new step or normaliser, and a rule with the next number
    that uses it. `docs/metrics/error_rate.md` describes every rule.
"""
