"""A site over many runs: plain files that open from a disk and from any host, with leaderboards, comparisons and sound.

Which file to open
    `api.py`              the verb: runs are added to a site, and other sites are taken over.
    `make.py`             adds runs and finishes a site, whose files `folder.py` knows.
    `records.py`          what a site holds of one run.
    `boards.py`           its leaderboards and index; `best.py` marks the best rows, and `published.py` writes the
                          published boards.
    `contradictions.py`   which runs contradict each other; `same_sounds.py` which heard the same. `merge.py` takes
                          another site over.
    `assets/`             the pages' markup, style and scripts. `command.py` is what is typed.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "site": Command(
        "Look at results",
        "Make a static site over many runs: leaderboards, comparisons, samples with sound; or add runs to it.",
        "codec_bench.apps.site.command:site",
    ),
}
VERBS = {"site": "codec_bench.apps.site.api"}
