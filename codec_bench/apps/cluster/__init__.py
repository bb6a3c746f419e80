"""Shards on the machines of a cluster: submitting them, following them, and merging what they give."""

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
