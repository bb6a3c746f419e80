"""Shards on the machines of a cluster: submission, progress and merging.

Which file to open
    `slurm.py`       parts of a run as an array of jobs under Slurm. `command.py` has `slurm` and `progress`.
    `parts.py`       progress of parts, and the folders for shards of a Ray driver.
    `ray.py`         the driver of a run on a Ray cluster; `queue.py` orders the shards, and `connection.py` finds the
                     cluster, chooses the number of actors, and is the actor that runs shards.
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
