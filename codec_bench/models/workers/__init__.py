"""Isolated environments: worker code that needs other packages than codec-bench runs in its own Python environment.

`spec` reads what an environment contains, and `environment` makes it with uv. `host` starts and watches one worker process
in it, and `pool` distributes batches over several. `child` is the program of a worker process. `wire` is the protocol
between `host` and `child`.
"""
