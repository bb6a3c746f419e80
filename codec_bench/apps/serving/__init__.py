"""A warm scorer for training loops and services: metrics stay loaded.

Which file to open
    `scorer.py`    `Scorer`: items in, scores out, in this process, with workers; `client.py` the same over HTTP.
    `items.py`     one item: its fields, and the checks of its audio.
    `rewards.py`   one number of several metrics, by a YAML file; `codec_bench/rewards.py` is for training libraries.
    `server.py`    the HTTP service; `wire.py` parses its requests, also by verl-omni's protocol.
    `recorder.py`  the run of a recording service. `ray.py` has the service on a Ray cluster.
    `page/`        the page at `/`. `command.py` is the command.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "serve": Command(
        "Measure",
        "Score audio over HTTP, for training and services.",
        "codec_bench.apps.serving.command:serve",
    )
}
VERBS = {"Scorer": "codec_bench.apps.serving.scorer"}
