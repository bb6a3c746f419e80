"""Shards on the machines of a cluster: submitting them, following them, and merging what they give.

Which file to open
    `slurm.py`       parts of a run as an array of jobs under Slurm. `command.py` has the commands `slurm` and
                     `progress`.
    `parts.py`       how far each part is, and the folders that a driver of Ray runs shards into.
    `ray.py`         the driver of a run on a Ray cluster; `actor.py` is what runs the shards, `queue.py` which shard is
                     next, and `connection.py` finds the cluster and says how many actors suit it.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "slurm": Command(
        "Many machines",
        "Run eval, score or run in parts under Slurm, and merge them: codec-bench slurm eval --codec ... --out DIR --parts 64.",
        "codec_bench.apps.cluster.command:slurm",
    ),
    "progress": Command(
        "Many machines",
        "Show how far the parts of a run are.",
        "codec_bench.apps.cluster.command:progress",
    ),
}
EXECUTORS = {"ray": "codec_bench.apps.cluster.ray:execute_on_ray"}
