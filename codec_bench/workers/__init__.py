"""Isolated environments: worker code that needs other packages than codec-bench runs in its own Python environment.

Which file to open
    `environment.py`  what an environment contains, and how uv makes it.
    `host.py`         starts, asks and watches one worker process; `pool.py` distributes batches over several.
    `child.py`        the program of a worker process; `wire.py` is the protocol between it and the host.
"""
