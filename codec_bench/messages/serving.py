"""Codes of the scoring service."""

from __future__ import annotations

SENTENCES = {
    "error": {
        "service_unreachable": "{url} cannot be reached: {cause}",
        "token_variable_empty": "the environment variable {variable} is empty",
        "host_without_token": "--host {host} lets other machines in, and there is no token",
        "token_variable_empty_on_node": "the environment variable {variable} is empty on a node of the cluster",
        "not_a_reward": "the reward '{reward}' is no YAML file and no metric that is scored",
        "reward_reads_unscored": "the term '{term}' of the reward reads {metric}, which is not scored",
        "reward_without_value": "{metric} has no value ({cause})",
        "reward_not_finite": "the reward is not finite",
        "scorer_ended": "the scorer has ended: {cause}",
        "queue_full": "{items} items wait; the queue holds {most}",
        "queue_audio_full": "items with {mib} MiB of audio wait",
        "too_many_files": "too many files are open",
        "no_audio_memory": "there is no memory for the audio: {cause}",
        "shutting_down_at_line": "the service is shutting down; line {line} and later ones were not scored",
        "no_room_for_bodies": "the bodies of other requests take all room",
        "shutting_down": "the service is shutting down",
        "port_unusable": "port {port} of {host} cannot be used: {cause}",
        "scorer_closed": "the scorer has ended: it was closed",
    },
}
