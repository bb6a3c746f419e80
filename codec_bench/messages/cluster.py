"""Codes of shards on Ray and jobs of Slurm."""

from __future__ import annotations

SENTENCES = {
    "error": {
        "head_node_silent": "the head node of the Ray cluster has not answered for {limit_s:.0f} s",
        "no_cluster_node": "the Ray cluster has had no node to run on for {limit_s:.0f} s",
        "token_differs": "holds something else",
        "slurm_command": "the command for slurm is '{name}'; expected eval, score or run with its options",
        "slurm_sets_option": "slurm itself sets {option} for each part",
        "ray_address_form": "the Ray address is '{address}'; expected HOST:PORT, such as 10.0.0.1:6379",
        "ray_unreachable": "the Ray cluster at '{address}' does not answer: {cause}",
        "no_gpu_in_cluster": "the device is '{device}', and no node of the Ray cluster has a GPU",
        "run_folder_not_shared": "the node {node} does not see the run folder: '{path}' {cause}",
        "shard_count_differs": "the run in '{folder}' has {started} shards; got {shards}",
        "run_without_ray": "'{folder}' holds a run that was started without Ray",
        "shard_ends_actors": (
            "shard {shard} ended {actors} actors, and none of them finished an item of it; the last: {cause}"
        ),
        "shard_with_ray": "--shard cannot be used with --executor ray, which makes shards itself",
        "codec_is_object": ("the codec '{codec}' is an object, which cannot be sent to the nodes of a Ray cluster"),
        "cluster_lost": "{cause}; {finished:,} of {items:,} items are finished and stored in '{folder}'",
        "actors_not_started": "{actors} actors ended before they started; the last: {cause}",
        "below_least": "{name} is {value}; expected at least {least}",
        "time_limit_form": "the time limit is {value!r}; expected minutes, hours:minutes:seconds or days-hours:minutes",
        "folder_of_other_command": "'{folder}' belongs to another command: {command} in {parts} parts",
        "jobs_in_queue": "{count} jobs of '{folder}' are in the queue already: {jobs}",
        "parts_finished": "all {parts} parts in '{folder}' are finished",
        "nothing_submitted": "nothing was submitted for '{folder}'",
        "parts_cancelled": "{count} of {parts} parts were cancelled: {ranges}; nothing is submitted again",
        "parts_failed": "{count} of {parts} parts failed {times} times: {ranges}",
        "submission_unreadable": "'{path}' is no record of submitted jobs: {cause}",
        "merge_job_missing": "the parts are in the queue as job {job}, and the job that merges them is not: {cause}",
        "sbatch_output": "sbatch printed {output!r}; expected the number of a job",
        "no_slurm_program": "there is no '{program}' on this machine",
        "slurm_refused": "{program} refused: {cause}",
        "ray_not_started": "Ray cannot be started on this machine: {cause}",
    },
}
