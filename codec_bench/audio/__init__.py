"""Reading, resampling, writing and hashing sound. No other room changes a sample rate.

Which file to open
    `resample.py`   rates and channels; `loudness.py` is how loud a sound is.
    `clip.py`       a sound that is read when it is needed; `encode.py` writes files; `hash.py` says whether two sounds
                    are equal.
    `padded_passes.py`     which signals of a batch share a pass of a network; `budget.py` how much a batch may hold.
    `noises.py`     signals that are no speech, for scores that need the farthest from it.
    `content.py`    how much silence lies around a sound, and up to which frequency there is any.
    `level_checks.py`  whether an estimate holds what its reference says: silence, missing speech, another sound.
                       `store/rows.py` has the
                    words of these flags, and `engine/run.py` asks.
"""
