"""The engine: from a request to a finished run record, in batches, over workers.

Which file to open
    What is run
    `evaluation.py`  one evaluation, from the plan to the record; the fingerprint of a run.
    `executor.py`    whether a run is for this machine or a cluster; `extend.py` continues a run with more samples.
    `recorded_sounds.py`  whether a continued run has the files of its finished items.
    `systems.py`     the systems of a run and their names; `plan.py` decides what is computed for them.
    `running.py`     the options that change no number; starts workers, cache and engine.

    How an item travels
    `run.py`         the event loop: follows every item to the record. `live.py`: for samples that arrive meanwhile.
    `feed.py`        reads samples ahead (`prefetch.py`, `reading.py`) into shared memory (`arena.py`).
    `stage_queue.py`  which waiting items form a batch; `batch.py` how large it is, and what happens when it fails.
    `checks.py`      the checks of the codecs of a run; `timings.py` timings.
    `cache.py`       features of earlier runs; `score_cache.py` scores of their signals.

    Child processes
    `pool.py`        starts, watches and replaces workers; `device.py` lists the devices.
    `worker.py`      the program of a worker; `stage.py` is its work, `loading.py` loads it.
    `double_buffer.py`  prepares the next batch of a GPU; `main_pipe.py` is a worker's end of the pipe.
    `codec_worker.py`  one codec in its own worker, for `validate`, `verify-batching` and `profile`.
"""
