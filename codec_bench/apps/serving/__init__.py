"""A warm scorer: metrics stay loaded, and scores come in a fraction of a second, for training loops and services.

Which file to open
    `scorer.py`    `Scorer`: items in, scores out, in this process, with workers that stay; `client.py` the same over HTTP.
    `items.py`     one item: what may be in it, and how its audio is checked.
    `rewards.py`   one number from several metrics, by a YAML file; `codec_bench/rewards.py` has the shapes of training
                   libraries.
    `server.py`    the HTTP service; `wire.py` reads its requests, and `verl_omni.py` speaks verl-omni's protocol.
    `recorder.py`  the run of a service that keeps one. `ray.py` has the service on a Ray cluster.
    `page/`        the page at `/`. `command.py` is the command line.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "serve": Command(
        "Measure",
        "Keep metrics loaded and score audio over HTTP, for training loops and services.",
        "codec_bench.apps.serving.command:serve",
    ),
}
VERBS = {"Scorer": "codec_bench.apps.serving.scorer"}
