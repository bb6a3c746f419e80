"""The engine: from what was asked to a finished run record, in batches, over workers, however often it is killed.

Which file to open
    What is run
    `evaluation.py`  one evaluation, from the plan to the record; the fingerprint, which must be the same when a run is
                     continued.
    `executor.py`    whether a run is for this machine or for a cluster, and `extend.py` a run that is continued with
                     more samples.
    `recorded_sounds.py`  whether the files of a run that is continued hold what its finished items were computed from.
    `systems.py`     the systems of a run and their names; `plan.py` decides what is computed for them.
    `running.py`     the options that change no number, and the workers and the cache that are started by them.

    How an item travels
    `run.py`         the event loop: follows every item until it is in the record.
    `live.py`        the same loop for samples that come while it runs.
    `feed.py`        reads samples ahead (`prefetch.py`, `reading.py`) into the memory that all processes share
                     (`arena.py`).
    `stage_queue.py`     which waiting items form a batch; `batch.py` how large it may be, and what happens to its items
                         when it fails.
    `checks.py`      the checks of the codecs of a run, and `cache.py` features that earlier runs have computed.
    `timings.py`     where the time went, and in words what a run is doing.

    Child processes
    `pool.py`        starts the workers, notices that one has died or is late, and starts another.
    `worker.py`      the program of a worker; `stage.py` is what it computes, and `loading.py` has it loaded.
    `double_buffer.py`       has a GPU's worker make the next batch ready while one computes; `device.py` says which
                             devices there are.
    `main_pipe.py`  a worker's end of the pipe to the main process, safe from the code that the worker runs.
    `own_worker.py`  the steps of one codec in a worker of its own, for `validate`, `verify-batching` and `profile`.

`tests/engine/test_run.py` tests batches, the fingerprint, and workers that die or hang. `tests/engine/test_faults.py`
tests what stops the main process: a kill, an interrupt, a full disk.
"""
