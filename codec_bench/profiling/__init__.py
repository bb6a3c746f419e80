"""Profiles of codecs: one measurement a file, and each codec in a process of its own.

Where to look
    `steps.py` calls the measurements of one codec in their order, and `together.py` makes one profile of several
    codecs. `isolate.py` starts and ends the process of a codec, and `child.py` is its program. `settings.py` says how
    thoroughly is measured, and `material.py` on which audio.
"""
