"""Processes of others: workers with their environment, user programs.

Which file to open
    `environment.py`  what an environment contains, and how uv builds it. `host.py`  starts, queries and watches one
    worker process; `pool.py` distributes batches over several. `child.py` the program of a worker process; `wire.py` is
    the protocol between it and the host. `programs.py` finds, runs and stops the user's own programs.
"""
