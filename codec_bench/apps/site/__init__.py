"""A static site over many runs: leaderboards, comparisons and audio.

Which file to open
    `api.py`              the verb: adds runs and other sites, and finishes a site; `folder.py` manages its files.
    `records.py`          a site's content of one run.
    `boards.py`           its leaderboards with the best rows, and the index; `published.py` the published boards.
    `contradictions.py`   contradicting runs, and runs over the same audio.
    `assets/`             the pages' markup, style and scripts. `command.py` is the command.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "site": Command(
        "Look at results",
        "Make a static site over many runs, or add runs.",
        "codec_bench.apps.site.command:site",
    )
}
VERBS = {"site": "codec_bench.apps.site.api"}
