"""Building: data sets that are made from other data by a recipe, with a check of every item and a count of what was dropped.

Each file here is one step of a build:
    `recipe` (what is asked for), `sources` and `texts` (what it is made of), a maker of items (`mixtures`, `spoken`, `joined`, `described`),
    `wording` and `voices` (what is said, and by whom), `checks`, `quality` and `readback` (what an item must fulfil), `record` (what is
    done already), `funnel` (what became of the items), `out`, `card` and `page` (the data set).
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "build": Command(
        "Benchmarks",
        "Build a data set by a recipe: spoken texts, joined recordings, mixtures or questions; every item checked, every dropped one counted.",
        "codec_bench.apps.building.command:build",
    ),
}
