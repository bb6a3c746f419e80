"""Reads, resamples, writes and hashes audio. Only this room changes sample rates.

Which file to open
    `resample.py` rates and channels; `loudness.py` loudness. `clip.py` audio that is read on demand; `encode.py` writes
    files; `hash.py` compares audio. `padded_passes.py` groups a batch for a network; `budget.py` limits a batch.
    `noises.py` non-speech for scores. `content.py` silence and bandwidth. `level_checks.py` silent, partial or
    unrelated estimates (messages in `store/rows.py`, called by `engine/run.py`).
"""
