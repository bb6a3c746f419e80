"""Shards on the machines of a cluster: submission, progress and merging.

Which file to open
    `slurm.py`       parts of a run as an array of jobs under Slurm. `command.py` has the commands `slurm` and
    `progress`.
    `parts.py`       progress of parts, and the folders for shards of a Ray driver.
    `ray.py`         the driver of a run on a Ray cluster; `actor.py` runs the shards, `queue.py` orders them, and
                     `connection.py` finds the cluster and chooses the number of actors.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "slurm": Command(
        "Many machines",
        "Run eval, score or run in parts under Slurm.",
        "codec_bench.apps.cluster.command:slurm",
    ),
    "progress": Command(
        "Many machines", "Show how far the parts of a run are.", "codec_bench.apps.cluster.command:progress"
    ),
}
EXECUTORS = {"ray": "codec_bench.apps.cluster.ray:execute_on_ray"}
