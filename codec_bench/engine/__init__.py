"""The engine: from what was asked to a finished run record, in batches, over workers, however often it is killed.

Where to look
    `evaluation.py` carries out one evaluation. It also collects the fingerprint, which must be the same when a run is
    continued. `plan.py` decides what is computed, and `run.py` follows every item until it is in the record. `batch.py`
    decides which items form a batch, how large it may be, and what happens to its items when it fails or when its
    worker dies. `pool.py` starts the workers, notices that one has died or is late, and starts another. `worker.py` is
    the program of a worker, `lanes.py` has a GPU's worker make the next batch ready while one computes, and `stage.py` is
    what it computes. `feed.py` reads samples, `arena.py` is the memory that
    holds them, and `cache.py` keeps features for later runs. `tests/engine/test_run.py` tests batches, the fingerprint,
    and workers that die or hang. `tests/engine/test_faults.py` tests what stops the main process: a kill, an interrupt,
    a full disk.
"""
