"""Isolated environments: worker code with its own packages in its own Python.

Which file to open
    `environment.py`  what an environment contains, and how uv builds it. `host.py`  starts, queries and watches one
    worker process; `pool.py` distributes batches over several. `child.py` the program of a worker process; `wire.py` is
    the protocol between it and the host.
"""
